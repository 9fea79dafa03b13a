"""The report as one HTML page without anything from outside, and as tables inside a Markdown page."""

import base64
import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import tessella
from experiments.paper.options import amount
from experiments.paper.results import Results
from experiments.paper.summary import Row, configurations, sureness
from experiments.paper.tables import Table

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
p { max-width: 48rem; } .past { color: #555; }
figure { margin: 1rem 0; overflow-x: auto; } figure img { width: 100%; min-width: 44rem; height: auto; }
figcaption { color: #444; max-width: 48rem; font-size: 0.95rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; margin: 0.5rem 0 1rem; }
th, td { padding: 0.2rem 0.7rem; text-align: right; border-bottom: 1px solid #e4e4e4; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 2px solid #888; vertical-align: bottom; white-space: normal; }
code { background: #f2f2f2; padding: 0 0.25em; }
"""

CAPTIONS = {
    "bounds": (
        "Figure 2, top. Averages of the bounds over the networks of each configuration. Upper bounds are proved; each XOR-k lower bound holds "
        "with {sure} for its network, and so does our interval, both ends of it together. Inset: our interval relative to the counts.{hollow}"
    ),
    "times": (
        "Figure 2, bottom. Time for the lower bound (coefficients H included) against time for the exact count, of networks that are "
        "counted. The two machines differ: compare shapes, not seconds."
    ),
    "accuracy": (
        "Figure 3. Error against MAPS: the number of regions in black, APP-k in colour, with regressions and correlations r (black left, coloured "
        "right). The paper's networks are not public and its text has no numbers for this figure: it reports a negative correlation, "
        "and regressions that become more parallel as k grows."
    ),
    "accuracy-all": "The same with all configurations. Their points lie on curves: the dashed lines are the regressions behind r, and describe them badly.",
    "estimate": (
        "What the paper could not draw: the estimate and its two bounds ({sure} together, at every stopping time) against the exact count, "
        "beside the XOR-k bounds. Networks so small that the estimate counted them instead are left out of it."
    ),
}

_SECTIONS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("Table 1: the gap closed by the Empirical UB", (), ("gap",)),
    ("Appendix E: subsets inspected", (), ("coverage",)),
    ("Figure 2, top: bounds", ("bounds",), ("bounds",)),
    ("Figure 2, bottom: time", ("times",), ("times",)),
    ("Figure 3: accuracy", ("accuracy", "accuracy-all"), ("correlation",)),
    ("The estimate against the count", ("estimate",), ("estimate",)),
    ("What must hold", (), ("inequalities",)),
    ("Shapes, as numbers", (), ("shapes",)),
    ("Certificates", (), ("certificates",)),
    ("How far the run is", (), ("standing",)),
)
NOTES = {
    "gap": (
        "(Configuration UB - Empirical UB) / (Configuration UB - regions), of mean MAPS of the networks that are counted; in the last column our upper bound, which holds with "
        "{sure}, takes the Empirical UB's place (the count does where there was time for it).{estimated}"
    ),
    "coverage": (
        "Subsets of k units of the layer before that were inspected for A(k), the most units that can be active where k units before are, and I(k), the most that can be "
        "unstable: means over the networks for k = 1, 2, ..., without zeros at the end. Where both are maxima over the same sets, the same subsets give both."
    ),
    "bounds": "Mean MAPS, ours (of the networks that are counted, where any is) / paper. XOR-k as the paper writes it: j, where more than 2^j regions are claimed with {sure} (the paper: 95 %). Our interval holds with {sure}, both ends together.",
    "times": "Ours: CPU seconds of one core. Paper: seconds on 40 cores with CPLEX 12.8. XOR-k with the coefficients H.",
    "correlation": "APP-k is the mean of j and of the Empirical UB's MAPS, as in the paper. Pearson's r of MAPS with the outcome, and the slope of the regression (per cent, or nats, per bit).",
    "estimate": "On networks that are counted.",
    "inequalities": "Proved claims must never fail; others may, as often as said. Estimates that counted instead are left out.",
    "shapes": "",
    "certificates": (
        "Written, and checked by verify.py: networks with few regions in whole, random subtrees of the others. Times are CPU time of one core."
    ),
    "standing": "A count that its limit stopped, or whose estimate says that it would, is recorded with its proved bracket.",
}

_ESTIMATED = {
    "hollow": " Hollow circles: configurations whose networks are estimated, not counted.",
    "estimated": " (est.): these counts are estimates.",
}


def page(results: Results, networks: Sequence[Row], tables: Mapping[str, Table], images: Mapping[str, bytes]) -> str:
    """The whole page.

    Parameters
    ----------
    results, networks
        What it is about.
    tables
        By name.
    images
        SVG pictures by name.
    """
    parts = [
        f"<h1>Empirical bounds on linear regions, reproduced</h1>\n<p class='past'>{html.escape(past(results, networks))}</p>"
    ]
    words = {
        "sure": sureness(networks),
        **(_ESTIMATED if any(not each.counted for each in configurations(networks)) else dict.fromkeys(_ESTIMATED, "")),
    }
    for title, pictures, names in _SECTIONS:
        if not set(names) <= tables.keys():
            continue
        parts.append(f"<h2>{title}</h2>")
        parts += [_figure(CAPTIONS[name].format(**words), images[name]) for name in pictures]
        parts += [_table(tables[name], NOTES[name].format(**words)) for name in names]
    head = f"<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>The paper, reproduced</title><style>{_STYLE}</style>"
    return f"<!doctype html>\n<html lang='en'><head>{head}</head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"


def past(results: Results, networks: Sequence[Row]) -> str:
    """Where the numbers come from, in a sentence or two."""
    records = list(results.records.values())
    machines = sorted({f"{record['machine']['cores']} x {record['machine']['processor']}" for record in records})
    versions = sorted({record["versions"]["tessella"] for record in records})
    data = sorted({str(record["value"]["data"]) for record in records if record["task"] == "network"})
    times = sorted(record["finished_at"][:10] for record in records)
    when = times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"
    return (
        f"{amount(len(networks), 'network')} n1;n2;10, n1 + n2 = 22, trained on {', '.join(data)}; their 10 outputs are counted as ReLUs, on the "
        f"unit box. Measured {when} with Tessella {', '.join(versions)} on {'; '.join(machines)}, one thread per task. "
        "Paper: T. Serra and S. Ramalingam, Empirical Bounds on Linear Regions of Deep Rectifier Networks, AAAI 2020."
    )


def fill(path: Path, tables: Mapping[str, Table]) -> str:
    """A Markdown page with tables between ``<!-- table NAME -->`` and ``<!-- end -->``.

    Parameters
    ----------
    path
        The page.
    tables
        By name.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror}); --markdown takes a page with lines <!-- table NAME -->"
        raise tessella.FileError(msg) from error
    if not any(f"<!-- table {name} -->" in text for name in tables):
        msg = f"{path}: has no line <!-- table NAME --> to put a table behind; the names are {', '.join(tables)}"
        raise tessella.FileError(msg)
    for name, table in tables.items():
        mark = f"<!-- table {name} -->"
        pattern = re.compile(rf"{re.escape(mark)}\n.*?<!-- end -->", re.DOTALL)
        text = pattern.sub(lambda _, mark=mark, table=table: f"{mark}\n\n{table.markdown()}\n<!-- end -->", text)
    return text


def _figure(words: str, image: bytes) -> str:
    caption = html.escape(words)
    data = base64.b64encode(image).decode()
    return f"<figure><img alt='{caption}' src='data:image/svg+xml;base64,{data}'><figcaption>{caption}</figcaption></figure>"


def _table(table: Table, note: str) -> str:
    head = "".join(f"<th>{_kept_together(html.escape(cell))}</th>" for cell in table.head)
    body = "\n".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in table.body)
    words = f"<p>{html.escape(note)}</p>" if note else ""
    return f"{words}<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"


def _kept_together(words: str) -> str:
    """A unit stays on the line of the word before it."""
    return re.sub(r" (s|%)$", r"&nbsp;\1", words)
