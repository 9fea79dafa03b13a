"""Docstrings are numpydoc without types: text under Returns, or before a colon in a property, is a sentence and no type."""

from typing import Any

from sphinx.application import Sphinx

NO_TYPE = "NO_TYPE"
COLON = "\ufdd0"  # stands for a colon while napoleon looks for types


def setup(app: Sphinx) -> dict[str, Any]:
    """Come before napoleon, which would read the sentence as a type, and once more after it."""
    app.connect("autodoc-process-docstring", before, priority=400)
    app.connect("autodoc-process-docstring", after, priority=600)
    return {"parallel_read_safe": True}


def before(_app: Sphinx, what: str, _name: str, _of: object, _options: object, lines: list[str]) -> None:
    """Put something where a type is expected, and hide what looks like one."""
    if what in {"property", "attribute", "data"}:
        lines[:] = [line.replace(":", COLON) for line in lines]
    if "Returns" in lines:
        start = lines.index("Returns") + 2
        end = next((place for place in range(start, len(lines)) if not lines[place].strip()), len(lines))
        lines[start:end] = [NO_TYPE, f"    {' '.join(line.strip() for line in lines[start:end])}"]


def after(_app: Sphinx, _what: str, _name: str, _of: object, _options: object, lines: list[str]) -> None:
    """Take both back; types come from annotations."""
    lines[:] = [line.replace(COLON, ":") for line in lines if line != f":rtype: {NO_TYPE}"]
