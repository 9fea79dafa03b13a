"""From results to a page, figures and tables."""

from collections.abc import Sequence
from pathlib import Path

import tessella
from experiments.paper.figures import figures, image
from experiments.paper.page import fill, page
from experiments.paper.results import RESULTS, Results
from experiments.paper.summary import rows
from experiments.paper.tables import tables


def report(folder: Path, out: Path, pictures: Path | None, kinds: Sequence[str], markdown: Path | None) -> list[Path]:
    """Write the report.

    Parameters
    ----------
    folder
        Of the results.
    out
        The HTML page.
    pictures, kinds
        Where single figures go, and as what; None for nowhere.
    markdown
        A page whose tables are replaced; None for none.

    Returns
    -------
    The files that were written.
    """
    results = Results.read(folder)
    networks = rows(results)
    if not networks:
        msg = f"{folder / RESULTS}: has no network with upper bounds yet; make results with: python -m experiments.paper run"
        raise tessella.FileMissing(msg)
    drawn, texts = figures(networks), tables(results, networks)
    files = {out: page(results, networks, texts, {name: image(each, "svg") for name, each in drawn.items()}).encode()}
    if pictures is not None:
        files |= {pictures / f"{name}.{kind}": image(each, kind) for name, each in drawn.items() for kind in kinds}
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        msg = f"{error.filename}: cannot be written ({error.strerror}); choose another place"
        raise tessella.FileError(msg) from error
    if markdown is not None:
        fill(markdown, texts)
    return [*files, *([markdown] if markdown else [])]
