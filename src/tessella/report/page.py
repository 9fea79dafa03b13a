"""The page itself: one file, without a connection to anywhere."""

import hashlib
import json
import os
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from tessella._version import __version__
from tessella.analysis.ranking import Ranking
from tessella.analysis.result import Analysis, Step
from tessella.errors import FileError, OptionError
from tessella.examples import Examples
from tessella.files import writing
from tessella.report import around, data, pictures
from tessella.report.explorer import Explorer, explore, record
from tessella.result import Side, Status, format_confidence, format_count, format_duration, format_estimate, shown, told_apart
from tessella.tables import html_table, marked_up


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a report comes from.

    Parameters
    ----------
    model
        The name of the model's file, or what else to call it.
    digest
        The SHA-256 of that file; empty if there is none.
    command
        The command that made the report, word by word; empty if it was made in Python.
    made
        When, in UTC.
    """

    model: str = ""
    digest: str = ""
    command: tuple[str, ...] = ()
    made: datetime | None = None

    @classmethod
    def of(cls, path: str | os.PathLike[str], command: Sequence[str] = ()) -> "Provenance":
        """The provenance of a report on a model's file."""
        try:
            digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        except OSError as error:
            msg = f"{path}: cannot be read ({error.strerror or error})"
            raise FileError(msg) from error
        return cls(Path(path).name, digest, tuple(command), datetime.now(UTC))


Shown: TypeAlias = Explorer | Mapping[str, Explorer] | None
Past: TypeAlias = Provenance | Mapping[str, Provenance] | None


def write(path: str | os.PathLike[str], found: Analysis | Ranking, *, shown: Shown = None, provenance: Past = None) -> None:
    """Write a report to a file.

    Parameters
    ----------
    path
        The file, such as ``report.html``.
    found
        What `tessella.analyze` returned; or what `tessella.rank` did, for a report that compares several networks.
    shown
        What `explore` returned, by name if there are several networks; by default the whole network, or a slice chosen for it.
    provenance
        Where the model comes from, by name if there are several.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import tessella
    >>> from tessella import report
    >>> found = tessella.analyze([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5]), ([[1.0, -1.0]], None)], (-1, 1), seconds=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.write(Path(folder, "report.html"), found)
    ...     [path.name for path in Path(folder).iterdir()]
    ['report.html']
    """
    text = page(found, shown=shown, provenance=provenance)
    with writing(path) as file:
        file.write(text.encode())


def page(found: Analysis | Ranking, *, shown: Shown = None, provenance: Past = None) -> str:
    """A report as one self-contained HTML page; the parameters are those of `write`.

    Examples
    --------
    >>> import tessella
    >>> from tessella import report
    >>> net = tessella.load([([[1.0, 0.0], [1.0, 1.0]], [0.0, 0.5]), ([[1.0, -1.0]], None)])
    >>> text = report.page(tessella.analyze(net, tessella.Box(-1, 1, dim=2), seconds=60))
    >>> "exactly 4" in text, "http://" in text.replace("http://www.w3.org/2000/svg", "")
    (True, False)
    """
    if isinstance(found, Analysis):
        explorers, pasts = _by_name("", shown), _by_name("", provenance)
        past = pasts.get("") or Provenance(made=datetime.now(UTC))
        name = past.model or found.network.shape
        return _assembled(name, found, "Linear regions of a ReLU network", "", [_Part(name, found, explorers.get(""), past)])
    explorers, pasts = _by_name(None, shown), _by_name(None, provenance)
    for given in (*explorers, *pasts):
        found.analysis(given)  # names what is unknown
    made = Provenance(made=datetime.now(UTC))
    parts = [_Part(name, one, explorers.get(name), pasts.get(name) or made) for name, one in found.analyses.items()]
    several = f"{len(parts)} networks compared"
    return _assembled(several, parts[0].found, "Linear regions of ReLU networks", _comparison(found), parts)


def _by_name(name: str | None, given: Any) -> Mapping[str, Any]:
    """What was given for each network; without names there is one."""
    if given is None or isinstance(given, Mapping):
        return cast("Mapping[str, Any]", given or {})
    if name is None:
        msg = "several networks are compared: give a dictionary, with one entry for each name"
        raise OptionError(msg)
    return {name: given}


@dataclass(frozen=True, slots=True)
class _Part:
    """One network of a page."""

    name: str
    found: Analysis
    shown: Explorer | None
    past: Provenance


def _assembled(name: str, first: Analysis, kind: str, comparison: str, parts: Sequence[_Part]) -> str:
    """The page, from its networks."""
    models, records = list[str](), list[str]()
    for number, part in enumerate(parts, start=1):
        suffix = "" if number == 1 else f"-{number}"
        text, explored = _model(part, suffix, named=len(parts) > 1)
        models.append(text)
        records.append(f'<script type="application/json" id="data{suffix}">{explored}</script>')
    shape = f"{first.network.shape}, {first.network.relus:,} ReLUs, inputs" if len(parts) == 1 else "Inputs"
    return _filled(
        "page.html",
        {
            "title": escape(f"{name}: linear regions"),
            "kind": kind,
            "name": escape(name),
            "subtitle": escape(f"{shape} from {first.domain.describe()}"),
            "comparison": comparison,
            "models": "\n".join(models),
            "data": "\n".join(records),
            "style": _asset("style.css"),
            "script": _asset("explorer.js"),
        },
    )


def _model(part: _Part, suffix: str, *, named: bool) -> tuple[str, str]:
    """What the page says of one network, and the data of its picture."""
    explorer = part.shown if part.shown is not None else explore(part.found.network, part.found.domain)
    if not (explorer.network == part.found.network and explorer.domain == part.found.domain):
        msg = "what is shown is of another network or domain than what was analysed"
        raise OptionError(msg)
    found = _with_slice(part.found, explorer)
    known = found.stability
    title = f'<h2 class="model">{escape(part.name)} <span>{escape(found.network.shape)}</span></h2>\n' if named else ""
    text = _filled(
        "model.html",
        {
            "suffix": suffix,
            "title": title,
            "answer": _answer(found),
            "stopped": _stopped(found),
            "bracket": "" if found.exact is not None else _scrolled(pictures.bracket(found)),
            "bounds": _bounds(found),
            "choices": marked_up(found.choices),
            "stability": "<p>Nothing is known of the units.</p>" if known is None else _scrolled(pictures.stability(known)),
            "units": "" if known is None else _units(found),
            "where": escape(explorer.where),
            "note": escape(explorer.note),
            "tabs": "" if explorer.data is None else _filled("tabs.html", {"suffix": suffix}),
            "data": "" if explorer.data is None else _data(found, explorer.data, suffix),
            "steps": _steps(found.steps),
            "provenance": _provenance(found, part.past),
        },
    )
    return text, _safe_json(record(explorer))


def _data(found: Analysis, given: Examples, suffix: str) -> str:
    """What the page says of data, in a tab."""
    parts = [one(found.network, found.domain, given, suffix) for one in (data.section, around.section)]
    return f'<div id="data-tab{suffix}">\n' + "\n".join(parts) + "\n</div>"


def _comparison(found: Ranking) -> str:
    """Which network has more: all brackets on one scale, and how sure each step down is."""
    heads = ["network", "at least, proved", "at least", "about", "at most", "at most, proved", "more than the next"]
    rows = list[list[str]]()
    for row, one in zip(found.rows(), found.analyses.values(), strict=True):
        lower = [format_count(value, Side.LOWER) for value in (one.proved_lower, one.probable_lower)]
        about = "-" if one.mean is None or one.maps_interval is None else format_estimate(one.mean, one.maps_interval)
        upper = [format_count(value, Side.UPPER) for value in (one.probable_upper, one.upper)]
        rows.append([row["network"], *lower, about, *upper, _step(row)])
    table = _scrolled(html_table(heads, rows, numbers=range(1, 6), kind="compared"))
    note = f"All probable bounds hold at once with {format_confidence(found.confidence)} confidence."
    drawn = _scrolled(pictures.brackets(found.analyses))
    return f'<section aria-labelledby="compared"><h2 id="compared">Which has more</h2>\n{drawn}{table}<p class="small">{note}</p></section>'


def _step(row: Mapping[str, Any]) -> str:
    """How sure it is that a network has more regions than the next one."""
    if row["more_than_the_next"] is None:
        return ""
    value = "" if row["p_value"] is None else f", p = {row['p_value']:.2g}"
    words = {"equal": "as many, proved", "undecided": "undecided"}
    return words.get(row["more_than_the_next"], f"yes, {row['more_than_the_next']}") + value


def _filled(asset: str, parts: Mapping[str, str]) -> str:
    """A template with its places filled."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match.group(1)], _asset(asset))


def _asset(name: str) -> str:
    return (files("tessella.report") / "assets" / name).read_text(encoding="utf-8")


def _safe_json(value: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value)  # ASCII only
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _with_slice(found: Analysis, explorer: Explorer) -> Analysis:
    """The regions that are shown are proved, so there are at least as many on the whole domain."""
    count = len(explorer.polygons)
    if count <= found.proved_lower:
        return found
    why = "regions on the slice that is shown are a proved lower bound"
    step = Step("slice", why, f"at least {count:,} regions", explorer.polygons.seconds)
    return replace(found, proved_lower=count, probable_lower=max(count, found.probable_lower), steps=(*found.steps, step))


def _answer(found: Analysis) -> str:
    compared = f" {told_apart(found.network.counted)}".rstrip()
    if found.exact is not None:
        plural = "" if found.exact == 1 else "s"
        return f"Exactly <strong>{_number(found.exact, Side.EXACT)}</strong> linear region{plural}, proved.{compared}"
    low, high = _number(found.proved_lower, Side.LOWER), _number(found.upper, Side.UPPER)
    text = f"Between <strong>{low}</strong> and <strong>{high}</strong> linear regions, proved"
    if found.probable_lower > found.proved_lower:
        probable = _number(found.probable_lower, Side.LOWER)
        text += f"; at least <strong>{probable}</strong> with {format_confidence(found.confidence)} confidence"
    if found.probable_upper < found.upper:
        probable = _number(found.probable_upper, Side.UPPER)
        text += f"; at most <strong>{probable}</strong> with {format_confidence(found.confidence)} confidence"
    if found.mean is not None and found.maps_interval is not None:
        text += f"; about <strong>{marked_up(format_estimate(found.mean, found.maps_interval))}</strong> by estimate"
    return f"{text}.{compared}"


def _stopped(found: Analysis) -> str:
    """A line for a bracket that may be wider than it had to be."""
    if found.status == Status.FINISHED or found.exact is not None:
        return ""
    time = format_duration(found.seconds)
    return f'<p class="stopped">Stopped early: the analysis was {found.status} after {time}. What is said holds; more time might say more.</p>\n'


def _number(count: int, side: Side) -> str:
    """A count as HTML."""
    return marked_up(format_count(count, side))


def _bounds(found: Analysis) -> str:
    rows = [[row["claim"], row["count"], row["maps"], row["sure"]] for row in map(shown, found.rows())]
    return _scrolled(html_table(["", "regions", "MAPS", "how sure"], rows, numbers=(1, 2)))


def _units(found: Analysis) -> str:
    known = found.stability
    if known is None:
        return ""
    heads = ["layer", "ReLUs", "stably active", "stably inactive", "unstable"]
    rows = [[str(row[key]) for key in ("layer", "relus", "active", "inactive", "unstable")] for row in known.rows()]
    return _scrolled(html_table(heads, rows, numbers=range(5)))


def _steps(steps: Sequence[Step]) -> str:
    rows = [[step.name, step.why, step.found, f"{step.seconds:.2f} s"] for step in steps]
    return _scrolled(html_table(["what", "why", "found", "time"], rows, numbers=(3,), kind="steps"))


def _provenance(found: Analysis, past: Provenance) -> str:
    made = "" if past.made is None else past.made.strftime("%Y-%m-%d %H:%M UTC")
    source = found.network.source
    lines = [
        ("model", past.model or "an object in Python"),
        ("SHA-256 of the file", past.digest),
        ("content hash of the network", found.network.fingerprint),
        (
            "compared with its source",
            f"at {source.points} points, largest difference {source.difference:.1e}" if source and source.points else "",
        ),
        ("network", f"{found.network.shape}, {found.network.parameters:,} parameters"),
        ("domain", found.domain.describe()),
        ("command", shlex.join(past.command)),
        ("made", made),
        ("analysis took", f"{format_duration(found.seconds)}, {found.status}"),
        ("Tessella", f"{__version__}, Python {platform.python_version()}, numpy {np.__version__}"),
    ]
    rows = [f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in lines if text]
    return f"<dl>{''.join(rows)}</dl>"


def _scrolled(content: str) -> str:
    """What may be too wide for a small screen."""
    return f'<div class="scroll">{content}</div>'
