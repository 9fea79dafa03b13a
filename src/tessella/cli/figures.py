"""Files of pictures: which there are, and how they are written."""

import io
from pathlib import Path
from typing import Any

from tessella.cli.meanings import check_output
from tessella.files import writing

FORMATS = (".svg", ".png", ".pdf")


def check_drawable(output: str, *more: str) -> None:
    """Refuse what cannot be drawn before the work is done; ``more`` are endings that are drawn besides."""
    from tessella.charts import require_matplotlib  # noqa: PLC0415  loads the compiler

    require_matplotlib()
    check_output(output, (*FORMATS, *more))


def write_figure(figure: Any, output: str) -> None:
    """Write a picture to a file, in the format that its name says."""
    picture = rendered(figure, Path(output).suffix[1:].lower())
    with writing(output) as file:
        file.write(picture)


def rendered(figure: Any, kind: str) -> bytes:
    """A picture as the bytes of its file."""
    from matplotlib import rc_context  # noqa: PLC0415

    buffer, dated = io.BytesIO(), {"svg": "Date", "pdf": "CreationDate"}.get(kind)
    with rc_context({"svg.hashsalt": "tessella"}):  # the same picture, the same file
        figure.savefig(buffer, format=kind, dpi=200, metadata={dated: None} if dated else None)
    return buffer.getvalue()
