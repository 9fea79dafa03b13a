"""Tables as people want them: HTML that suits notebooks with light and dark pages, and data frames."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from tessella.packages import needed

_MOST = 20  # rows of a table in a notebook
_POWER = re.compile(r"\b2\^([-\d.]*\d|[a-z]\b)")
_DARK = "--ink: #e7e9ea; --soft: #9ba7b0; --line: #3a434b;"
_STYLE = f"""
.tessella {{ --ink: #1f2933; --soft: #5b6873; --line: #d5dade; color: var(--ink); font: 13px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
@media (prefers-color-scheme: dark) {{ .tessella {{ {_DARK} }} }}
[data-jp-theme-light="true"] .tessella, [data-theme="light"] .tessella, .vscode-light .tessella {{ --ink: #1f2933; --soft: #5b6873; --line: #d5dade; }}
[data-jp-theme-light="false"] .tessella, [data-theme="dark"] .tessella, .vscode-dark .tessella {{ {_DARK} }}
.tessella p {{ margin: .25rem 0; color: var(--ink); }}
.tessella .small {{ color: var(--soft); }}
.tessella table {{ font: inherit; border-collapse: collapse; margin: .3rem 0; color: var(--ink); background: none; }}
.tessella th, .tessella td {{ text-align: left; padding: .2rem 1.2rem .2rem 0; border: 0; border-bottom: 1px solid var(--line); background: none; vertical-align: top; }}
.tessella th {{ color: var(--soft); font-weight: 500; }}
.tessella .number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
"""


def marked_up(text: str) -> str:
    """Text as HTML: powers of two are raised.

    Examples
    --------
    >>> marked_up("at most 2^79.90 < 2^80")
    'at most 2<sup>79.90</sup> &lt; 2<sup>80</sup>'
    """
    return _POWER.sub(r"2<sup>\1</sup>", escape(text))


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = (), kind: str = "") -> str:
    """A table as HTML.

    Parameters
    ----------
    heads
        What the columns are called.
    rows
        Their cells, as text.
    numbers
        Which columns hold numbers, from 0.
    kind
        A class for the table; its cells then say what their column is called, for screens that are too narrow for columns.

    Examples
    --------
    >>> html_table(["layer", "ReLUs"], [["1", "10"]], numbers=[1])
    '<table><thead><tr><th>layer</th><th class="number">ReLUs</th></tr></thead><tbody><tr><td>1</td><td class="number">10</td></tr></tbody></table>'
    """
    right = frozenset(numbers)

    def line(cells: Iterable[str], tag: str) -> str:
        parts = list[str]()
        for place, cell in enumerate(cells):
            number = ' class="number"' if place in right else ""
            head = f' data-head="{escape(heads[place])}"' if kind and tag == "td" else ""
            parts.append(f"<{tag}{number}{head}>{marked_up(cell)}</{tag}>")
        return f"<tr>{''.join(parts)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    named = f' class="{kind}"' if kind else ""
    return f"<table{named}><thead>{line(heads, 'th')}</thead><tbody>{body}</tbody></table>"


def notebook_html(title: str, rows: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, str]], note: str) -> str:
    """What a notebook shows of a result: a title, a table, and a note.

    Parameters
    ----------
    title
        One line.
    rows, shown
        The first rows of the table, and their cells as text, by the names of columns.
    note
        A sentence below; empty for none.
    """
    if not rows:
        table = ""
    else:
        heads = list(shown[0])
        numbers = [place for place, name in enumerate(heads) if any(_is_number(row[name]) for row in rows)]
        table = html_table([name.replace("_", " ") for name in heads], [list(row.values()) for row in shown], numbers=numbers)
    below = f'<p class="small">{marked_up(note)}</p>' if note else ""
    return f'<div class="tessella"><style>{_STYLE}</style><p>{marked_up(title)}</p>{table}{below}</div>'


def first_rows(rows: Sequence[Mapping[str, Any]]) -> tuple[Sequence[Mapping[str, Any]], str]:
    """As many rows as a notebook shows, and what to say of the others."""
    if len(rows) <= _MOST:
        return rows, ""
    return rows[:_MOST], f"and {len(rows) - _MOST:,} more; to_frame() has all."


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def data_frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A pandas data frame of rows."""
    why = "to_frame() makes a pandas data frame: pip install pandas (or take rows(), which needs nothing)"
    return needed("pandas", why).DataFrame([dict(row) for row in rows])
