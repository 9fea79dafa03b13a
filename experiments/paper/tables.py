"""The report's tables: ours beside the paper's, as plain text cells."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean, median

from experiments.paper import published
from experiments.paper.certify import Certificates
from experiments.paper.index import UNITS
from experiments.paper.results import Results
from experiments.paper.summary import NARROW, Configuration, Row, checks, configurations, fit, points
from experiments.paper.tasks import TASKS, XOR

OUTCOMES = {"test_error": "test error", "cross_entropy": "training cross-entropy"}


@dataclass(frozen=True, slots=True)
class Table:
    """Cells under a head; the first column is text, the others numbers."""

    head: tuple[str, ...]
    body: list[tuple[str, ...]]

    def markdown(self) -> str:
        """As Markdown."""
        lines = [self.head, ("---", *("---:" for _ in self.head[1:])), *self.body]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def tables(results: Results, networks: Sequence[Row]) -> dict[str, Table]:
    """All of them, by name; that of certificates only where there are some beside the results."""
    means, certificates = configurations(networks), Certificates.read(results.path.parent)
    return {
        "gap": gap(means),
        "coverage": coverage(networks),
        "bounds": bounds(means),
        "times": times(networks),
        "correlation": correlation(networks),
        "estimate": estimate(networks),
        "inequalities": inequalities(networks),
        "shapes": shapes(networks, means),
        "standing": standing(results),
        **({"certificates": certified(certificates)} if certificates.records else {}),
    }


def gap(means: Sequence[Configuration]) -> Table:
    """Table 1: the gap closed, in per cent."""
    theirs = published.bounds()
    head = (
        "widths",
        "networks",
        "of these counted",
        "gap closed, ours, %",
        "gap closed, paper, %",
        "gap closed by the probable upper bound, %",
    )
    return Table(
        head,
        [
            (
                _widths(each),
                str(each.networks),
                str(each.counted),
                _number(each.gap_closed, 1) + _estimated(each),
                _number(theirs[each.n1]["gap_closed_percent"], 1),
                _number(each.gap_closed_probably, 1) + _estimated(each),
            )
            for each in means
        ],
    )


def bounds(means: Sequence[Configuration]) -> Table:
    """Figure 2, top: means of MAPS, ours / paper; of our interval both ends."""
    theirs = published.bounds()
    head = ("widths", "XOR-2", "XOR-3", "XOR-4", "XOR-5", "regions", "our interval", "Empirical UB", "Configuration UB")

    def pair(ours: float | None, n1: int, name: str, digits: int = 2, note: str = "") -> str:
        return f"{_number(ours, digits)}{note} / {theirs[n1][name]:.{digits}f}"

    body = [
        (
            _widths(each),
            *(pair(each.xor.get(size), each.n1, f"xor{size}_lb", 1) for size in XOR.values()),
            pair(each.maps, each.n1, "exact", note=_estimated(each)),
            "-" if each.interval is None else f"{each.interval[0]:.2f} to {each.interval[1]:.2f}",
            pair(each.empirical, each.n1, "empirical_ub"),
            pair(each.configuration, each.n1, "configuration_ub"),
        )
        for each in means
    ]
    return Table(head, body)


def coverage(networks: Sequence[Row]) -> Table:
    """Appendix E: subsets inspected for A(k) and I(k) of the second and third layer, means over the networks for k = 1, 2, ..."""
    kinds = [(layer, kind) for layer in (1, 2) for kind in (0, 1)]
    names = [f"layer {layer + 1}: for {'AI'[kind]}(1), {'AI'[kind]}(2), ..." for layer, kind in kinds]
    body = list[tuple[str, ...]]()
    for n1 in sorted({row.key.n1 for row in networks}):
        here = [row for row in networks if row.key.n1 == n1]
        cells = [_means([row.inspected[kind][layer][1:] for row in here]) for layer, kind in kinds]
        most = max(max(subsets, default=0) for row in here for side in row.inspected for subsets in side)
        body.append((f"{n1};{UNITS - n1};10", str(len(here)), *cells, str(most)))
    return Table(("widths", "networks", *names, "most for one k"), body)


def _means(lists: Sequence[Sequence[int]]) -> str:
    """Means of numbers at the same place, without zeros at the end."""
    sums = [sum(numbers) for numbers in zip_longest(*lists, fillvalue=0)]
    while sums and not sums[-1]:
        sums.pop()
    return ", ".join(f"{total / len(lists):.3g}" for total in sums) or "0"


def times(networks: Sequence[Row]) -> Table:
    """Figure 2, bottom: medians and largest of seconds."""
    theirs = published.times()
    body = list[tuple[str, ...]]()
    for size in XOR.values():
        ours, paper = [row.seconds[f"xor-{size}"] for row in networks if size in row.xor], [row[f"xor{size}_s"] for row in theirs]
        body.append((f"XOR-{size}", *_spread(ours), *_spread(paper)))
    ours, paper = [row.seconds["count"] for row in networks if row.exact is not None], [row["exact_s"] for row in theirs]
    body.append(("exact count", *_spread(ours), *_spread(paper)))
    half = ("networks", "median s", "largest s", "all, s")
    return Table(("", *(f"ours: {name}" for name in half), *(f"paper: {name}" for name in half)), body)


def correlation(networks: Sequence[Row]) -> Table:
    """Figure 3: correlation of MAPS with errors, and slopes."""
    body = list[tuple[str, ...]]()
    for words, here in ((f"no layer of {NARROW} or fewer", [row for row in networks if not row.narrow]), ("all", networks)):
        for outcome, name in OUTCOMES.items():
            for size in (None, *XOR.values()):
                found = fit(points(here, size, outcome))
                label = "regions" if size is None else f"APP-{size}"
                numbers = (
                    ("-", "-", "-") if found is None else (str(found.points), f"{found.correlation:.3f}", f"{found.slope:.4f}")
                )
                body.append((f"{words}: {name}, {label}", *numbers))
    return Table(("networks, outcome, measure", "points", "correlation r", "slope per bit"), body)


def estimate(networks: Sequence[Row]) -> Table:
    """The new figure: how far estimates and bounds are from the count."""
    known = [row for row in networks if row.exact is not None]
    estimated = [row for row in known if row.estimate is not None and row.estimate_lower]
    body = list[tuple[str, ...]]()
    errors = [abs(2.0 ** ((row.estimate or 0.0) - math.log2(row.exact or 1)) - 1.0) for row in estimated]
    if errors:
        body.append(
            ("estimate: error in % of the count", str(len(errors)), f"{100 * median(errors):.1f}", f"{100 * max(errors):.1f}")
        )
    above = [math.log2(row.estimate_upper / (row.exact or 1)) for row in known if row.estimate_upper is not None]
    if above:
        body.append(
            ("estimate's upper bound: bits above the count", str(len(above)), f"{median(above):.2f}", f"{max(above):.2f}")
        )
    kinds = {"estimate's lower bound": [math.log2((row.exact or 1) / (row.estimate_lower or 1)) for row in estimated]}
    for size in reversed(XOR.values()):
        kinds[f"XOR-{size}"] = [math.log2(row.exact or 1) - row.xor[size] for row in known if size in row.xor]
    for name, bits in kinds.items():
        if bits:
            body.append((f"{name}: bits below the count", str(len(bits)), f"{median(bits):.2f}", f"{max(bits):.2f}"))
    return Table(("claim", "networks", "median", "largest"), body)


def inequalities(networks: Sequence[Row]) -> Table:
    """What must hold, and whether it does."""
    body = [(check.name, check.sure, str(check.checked), str(len(check.failed))) for check in checks(networks)]
    return Table(("inequality", "how sure", "networks", "failed"), body)


def certified(certificates: Certificates) -> Table:
    """What was certified and checked, per configuration and kind."""
    body = list[tuple[str, ...]]()
    for n1 in sorted({key.n1 for key in certificates.records}):
        for kind in ("whole", "parts"):
            here = {key: each for key, each in certificates.records.items() if key.n1 == n1 and each["value"]["kind"] == kind}
            values = [each["value"] for each in here.values()]
            if not values:
                continue
            regions, counts = sum(value["regions"] for value in values), [value["count"] for value in values]
            spread = f"{min(counts):,}" if len(counts) == 1 else f"{min(counts):,} to {max(counts):,}"
            seeds = _listed(sorted(key.seed for key in here))
            what = "all regions" if kind == "whole" else f"{sum(value['parts'] for value in values):,} subtrees"
            spent = [1e3 * sum(value[f"{verb}_cpu_seconds"] for value in values) / regions for verb in ("written", "checked")]
            size = sum(value["bytes"] for value in values) / regions
            row = (
                f"{n1};{UNITS - n1};10",
                seeds,
                spread,
                what,
                f"{regions:,}",
                *(f"{each:.2f}" for each in spent),
                f"{size:.0f}",
            )
            body.append(row)
    head = (
        "widths",
        "seeds",
        "regions counted",
        "certified",
        "regions in them",
        "writing, ms/region",
        "checking, ms/region",
        "bytes/region",
    )
    return Table(head, body)


def _listed(numbers: Sequence[int]) -> str:
    """Numbers in order, as ranges where more than two follow each other.

    Examples
    --------
    >>> _listed([0, 1, 2, 5, 6, 9])
    '0 to 2, 5, 6, 9'
    """
    runs = list[list[int]]()
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def shapes(networks: Sequence[Row], means: Sequence[Configuration]) -> Table:
    """What one sees in the figures, as numbers."""
    theirs = published.bounds()
    known = [each for each in means if each.maps is not None]
    wide = [row for row in networks if not row.narrow]
    body = list[tuple[str, ...]]()
    if known:
        most = max(known, key=lambda each: each.maps or 0.0)
        best = max(theirs, key=lambda n1: theirs[n1]["exact"])
        off = max(abs(each.configuration - theirs[each.n1]["configuration_ub"]) for each in means)
        body += [
            ("Configuration UB: largest difference, bits", f"{off:.1e}", "-"),
            *(
                (f"regions at {_widths(each)}, MAPS", _number(each.maps, 2), f"{theirs[each.n1]['exact']:.2f}")
                for each in (known[0], known[-1])
            ),
            (
                "most regions (mean MAPS)",
                f"{_widths(most)}: {_number(most.maps, 2)}",
                f"{best};{22 - best};10: {theirs[best]['exact']:.2f}",
            ),
            ("XOR-2 <= XOR-3 <= XOR-4 <= XOR-5 in the means", _ordered([each.xor for each in means]), _ordered(_paper_xor())),
        ]
        for size in XOR.values():
            below = [each.maps - each.xor[size] for each in known if each.maps is not None and size in each.xor]
            paper = [row["exact"] - row[f"xor{size}_lb"] for row in theirs.values()]
            ours = f"{fmean(below):.2f} ({min(below):.2f} to {max(below):.2f})" if below else "-"
            body.append(
                (
                    f"XOR-{size}: bits below the regions, mean over configurations (range)",
                    ours,
                    f"{fmean(paper):.2f} ({min(paper):.2f} to {max(paper):.2f})",
                )
            )
    for size in (None, *XOR.values()):
        found = fit(points(wide, size, "test_error"))
        label = "regions" if size is None else f"APP-{size}"
        body.append(
            (f"correlation of {label} with the test error, no narrow layer", _number(found and found.correlation, 3), "negative")
        )
    large = [row for row in networks if row.exact is not None and row.exact >= 4096 and 5 in row.xor]
    sooner = sum(row.seconds["xor-5"] < row.seconds["count"] for row in large)
    paper_large = [row for row in published.times() if not row["small"]]
    paper_sooner = sum(row["xor5_s"] < row["exact_s"] for row in paper_large)
    body.append(
        (
            "large networks on which XOR-5 is faster than the count",
            f"{sooner} of {len(large)}",
            f"{paper_sooner} of {len(paper_large)}",
        )
    )
    return Table(("shape", "ours", "paper"), body)


def standing(results: Results) -> Table:
    """How far the run is."""
    body = list[tuple[str, ...]]()
    for task in TASKS:
        here = [record for (_, name), record in results.records.items() if name == task]
        ends = Counter(record["status"] for record in here)
        other = ", ".join(f"{number} {status}" for status, number in sorted(ends.items()) if status != "finished")
        body.append((task, str(ends["finished"]), other or "-", f"{sum(record['cpu_seconds'] for record in here):,.0f}"))
    return Table(("task", "finished", "ended otherwise", "CPU seconds"), body)


def _ordered(values: Sequence[dict[int, float]]) -> str:
    whole = [each for each in values if len(each) == len(XOR)]
    right = sum(list(each.values()) == sorted(each.values()) for each in whole)
    return f"{right} of {len(whole)}"


def _paper_xor() -> list[dict[int, float]]:
    return [{size: row[f"xor{size}_lb"] for size in XOR.values()} for row in published.bounds().values()]


def _spread(values: Sequence[float]) -> tuple[str, ...]:
    if not values:
        return "0", "-", "-", "-"
    return str(len(values)), _seconds(median(values)), _seconds(max(values)), _seconds(sum(values))


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.1f}" if value >= 10.0 else f"{value:.2f}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _estimated(each: Configuration) -> str:
    return "" if each.counted or each.maps is None else " (est.)"


def _widths(each: Configuration) -> str:
    return f"{each.n1};{each.n2};10"
