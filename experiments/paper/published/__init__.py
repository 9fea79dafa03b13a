"""The paper's own numbers, from its figures and tables; each file says what it holds."""

import csv
from pathlib import Path


def bounds() -> dict[int, dict[str, float]]:
    """Figure 2 (top) and Table 1, by the units of the first layer: means over ten networks."""
    return {int(row["n1"]): row for row in _rows("bounds.csv")}


def times() -> list[dict[str, float]]:
    """Figure 2 (bottom): seconds of each of the 210 networks."""
    return _rows("times.csv")


def _rows(name: str) -> list[dict[str, float]]:
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    table = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [{column: float(value) for column, value in row.items()} for row in table]
