"""From results to a page, figures and tables."""

from collections.abc import Sequence
from pathlib import Path

import tessella
from experiments.paper.figures import figures, image
from experiments.paper.files import write
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
    if not results.records:
        msg = f"{folder / RESULTS}: is not there, or empty; make results with: python -m experiments.paper run"
        raise tessella.FileMissing(msg)
    networks = rows(results)
    if not networks:
        msg = f"{folder / RESULTS}: has no network of which errors and upper bounds are known yet; python -m experiments.paper run --tasks upper finds both"
        raise tessella.FileMissing(msg)
    texts = tables(results, networks)
    filled = None if markdown is None else fill(markdown, texts)
    drawn = figures(networks)
    images = {(name, "svg"): image(each, "svg") for name, each in drawn.items()}
    files = {out: page(results, networks, texts, {name: content for (name, _), content in images.items()}).encode()}
    if pictures is not None:
        for name, kind in ((name, kind) for name in drawn for kind in kinds):
            files[pictures / f"{name}.{kind}"] = images.get((name, kind)) or image(drawn[name], kind)
    if markdown is not None and filled is not None:
        files[markdown] = filled.encode()
    for path, content in files.items():
        write(path, content)
    return list(files)
