"""The gallery: every picture is there, small, and used."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_pictures_are_there_small_and_used():
    named = re.findall(r"!\[[^\]]+\]\((gallery/[^)]+)\)", (DOCS / "gallery.md").read_text())
    assert len(named) == len(set(named)) >= 7
    assert {f"gallery/{path.name}" for path in (DOCS / "gallery").iterdir()} == set(named)
    for name in named:
        content = (DOCS / name).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < 300_000
