"""After the build, every link inside the pages is followed: to its file, and to its place there."""

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util.logging import getLogger


class Page(HTMLParser):
    """What a page links to, and what can be linked to there."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.places = set[str](), set[str]()
        self.feed(path.read_text())

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note both."""
        for name, value in attrs:
            if name in {"href", "src"} and value:
                self.links.add(value)
            elif name in {"id", "name"} and value:
                self.places.add(value)


def setup(app: Sphinx) -> dict[str, Any]:
    """Look when all is written."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True}


def check(app: Sphinx, failed: Exception | None) -> None:
    """Warn of each link that leads nowhere; a warning ends the build as a failure."""
    if failed or app.builder.format != "html":
        return
    pages = {path: Page(path) for path in sorted(Path(app.outdir).rglob("*.html"))}
    exists = cache(Path.exists)
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            lost = not exists(there) or (parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].places)
            if lost:
                getLogger(__name__).warning("%s links to %s, which is not there", path.relative_to(app.outdir), link)
