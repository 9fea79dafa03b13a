"""The pages in Markdown: links lead somewhere, the design stays short, and the notebook's index names every page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What links can name after the #, as GitHub makes it of headings."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text())):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


def test_design_stays_short():
    assert len((ROOT / "docs/design.md").read_text().split()) <= 3000


def test_index_of_the_notebook_names_every_page():
    index = (ROOT / "docs/notebook/README.md").read_text()
    assert [page.name for page in sorted((ROOT / "docs/notebook").glob("2*.md")) if f"]({page.name})" not in index] == []
