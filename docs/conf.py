"""How Sphinx makes the pages: `make docs` writes build/docs/index.html."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent / "src")]

from sphinx.application import Sphinx

import tessella

project = "Tessella"
author = "The Tessella authors"
copyright = author  # noqa: A001  the name that Sphinx reads
version = release = tessella.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_copybutton",
    "command_line",
    "links",
    "returns",
]
exclude_patterns = ["_*"]
myst_heading_anchors = 4  # the same names after # as on GitHub
myst_enable_extensions = ["colon_fence"]
highlight_language = "none"  # what is Python says so
smartquotes = False  # -- in the help of a command stays as it is
default_role = "literal"  # `name` in a docstring
nitpicky = False  # types of other packages lead nowhere

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_ivar = False
add_module_names = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"Tessella {version}"
html_static_path = ["_static"]
html_css_files = ["tessella.css"]
html_favicon = html_logo = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # browsers do not let a page on disk read the others
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {"color-brand-primary": "#8a4b08", "color-brand-content": "#8a4b08"},
    "dark_css_variables": {"color-brand-primary": "#f0b060", "color-brand-content": "#f0b060"},
}


def setup(app: Sphinx) -> None:
    """Let the pages of the notebook stand below its index, which is read on other sites as well and cannot say so itself."""
    app.connect("source-read", _with_pages)


def _with_pages(_app: Sphinx, name: str, source: list[str]) -> None:
    if name == "notebook/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n2*\n```\n"
