"""The drawings of a report, as SVG that takes its colours from the page."""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple, Self

import numpy as np

from tessella.analysis.result import Analysis
from tessella.charts import unit_shares
from tessella.result import Side, format_confidence, format_count, format_estimate, maps
from tessella.stability import Stability

_WIDE, _NARROW = 720.0, 340.0  # pixels of a screen, and of a phone: the page shows one of the two
_LETTER = 7.0  # how wide one is, about
_MOST_UNITS = 512  # of a layer that are drawn one by one; more are put together


class _Label(NamedTuple):
    """Text at a place of a scale, held by the edge that it would pass."""

    start: float
    text: str
    place: float
    anchor: str

    @property
    def end(self) -> float:
        """Where it ends, at most."""
        return self.start + _LETTER * len(self.text)

    @classmethod
    def at(cls, place: float, text: str, room: float) -> Self:
        """Around a place, within the picture."""
        width = _LETTER * len(text)
        if place + width / 2.0 > room - 2.0 and width < room:
            return cls(room - 2.0 - width, text, room - 2.0, "end")
        if place - width / 2.0 < 2.0:
            return cls(2.0, text, 2.0, "start")
        return cls(place - width / 2.0, text, place, "middle")

    def drawn(self, height: float) -> str:
        """As SVG."""
        return f'<text x="{self.place:.1f}" y="{height:g}" text-anchor="{self.anchor}" class="value">{_raised(self.text)}</text>'


def bracket(found: Analysis) -> str:
    """The bracket on a scale of powers of two, for wide screens and for narrow ones."""
    return _brackets({"": found}, _WIDE) + _brackets({"": found}, _NARROW)


def brackets(found: Mapping[str, Analysis]) -> str:
    """Several of them on one scale."""
    return _brackets(found, _WIDE) + _brackets(found, _NARROW)


def _brackets(found: Mapping[str, Analysis], room: float) -> str:
    low, high = min(maps(one.proved_lower) for one in found.values()), max(maps(one.upper) for one in found.values())
    left, right = (low - 1.0, high + 1.0) if high - low < 2.0 else (low - 0.03 * (high - low), high + 0.03 * (high - low))
    left = max(left, -0.5)

    def x(power: float) -> float:
        return 20.0 + (room - 40.0) * (power - left) / (right - left)

    parts, words, height = list[str](), list[str](), 4.0
    for name, one in found.items():
        if name:
            height += 18.0
            parts.append(f'<text x="2" y="{height:g}" class="name">{escape(name)}</text>')
        drawn, height = _one(one, x, room, height)
        parts += drawn
        words.append(f"{name}{': ' if name else ''}{_in_words(one)}")
    base = height + 12.0
    parts.append(f'<line class="axis" x1="20" x2="{room - 20:g}" y1="{base:g}" y2="{base:g}"/>')
    parts += [
        f'<line class="axis" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{base:g}" y2="{base + 5:g}"/>'
        f'<text class="tick" x="{x(tick):.1f}" y="{base + 20:g}" text-anchor="middle">{_raised(f"2^{tick}")}</text>'
        for tick in _ticks(left, right, most=int(room / 55.0))
    ]
    parts.append(f'<text class="tick" x="{room / 2:g}" y="{base + 38:g}" text-anchor="middle">number of regions</text>')
    return _svg(room, base + 44.0, parts, " ".join(words))


def _one(found: Analysis, x: Callable[[float], float], room: float, height: float) -> tuple[list[str], float]:
    """One bar with its labels: bounds above it, the estimate below; and where it ends."""
    low, high = x(maps(found.proved_lower)), x(maps(found.upper))
    if found.exact is not None:
        label = _Label.at(high, f"exactly {format_count(found.exact)}", room)
        top = height + 24.0
        mark = f'<path class="exact" d="M{high:.1f} {top:g}l9 10-9 10-9-10z"/>'
        return [label.drawn(height + 16.0), mark], top + 22.0
    above = [(low, f"at least {format_count(found.proved_lower, Side.LOWER)}, proved")]
    sure, marks = f"{format_confidence(found.confidence)} sure", list[float]()
    if found.probable_lower > found.proved_lower:
        marks.append(x(maps(found.probable_lower)))
        above.append((marks[-1], f"at least {format_count(found.probable_lower, Side.LOWER)}, {sure}"))
    if found.probable_upper < found.upper:
        marks.append(x(maps(found.probable_upper)))
        above.append((marks[-1], f"at most {format_count(found.probable_upper, Side.UPPER)}, {sure}"))
    above.append((high, f"at most {format_count(found.upper, Side.UPPER)}, proved"))
    lines = _in_lines([_Label.at(at, text, room) for at, text in above])
    parts = [label.drawn(height + 15.0 * (number + 1)) for number, line in enumerate(lines) for label in line]
    top = height + 15.0 * len(lines) + 8.0
    parts.append(f'<rect class="proved" x="{low:.1f}" y="{top:g}" width="{high - low:.1f}" height="24" rx="3"/>')
    parts += [f'<line class="probable" x1="{at:.1f}" x2="{at:.1f}" y1="{top - 5:g}" y2="{top + 29:g}"/>' for at in marks]
    if found.mean is None or found.maps_interval is None:
        return parts, top + 30.0
    place, ends = x(maps(found.mean)), [x(power) for power in found.maps_interval]
    about = f"about {format_estimate(found.mean, found.maps_interval)}, estimated"
    parts.append(f'<line class="spread" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{top + 12:g}" y2="{top + 12:g}"/>')
    parts.append(f'<circle class="estimate" cx="{place:.1f}" cy="{top + 12:g}" r="6"/>')
    parts.append(_Label.at(place, about, room).drawn(top + 46.0))
    return parts, top + 50.0


def _in_lines(labels: Sequence[_Label]) -> list[list[_Label]]:
    """Labels in as few lines as it takes that none touches another."""
    lines = list[list[_Label]]()
    for label in labels:
        free = [line for line in lines if all(one.end + _LETTER < label.start or label.end + _LETTER < one.start for one in line)]
        if free:
            free[0].append(label)
        else:
            lines.append([label])
    return lines


def _in_words(found: Analysis) -> str:
    """The bracket as a sentence, for those who do not see it."""
    if found.exact is not None:
        return f"Exactly {format_count(found.exact)} regions, proved."
    low, high = format_count(found.proved_lower, Side.LOWER), format_count(found.upper, Side.UPPER)
    words = [f"Between {low} and {high} regions, proved"]
    if found.probable_lower > found.proved_lower:
        probable = format_count(found.probable_lower, Side.LOWER)
        words.append(f"at least {probable} with {format_confidence(found.confidence)} confidence")
    if found.probable_upper < found.upper:
        probable = format_count(found.probable_upper, Side.UPPER)
        words.append(f"at most {probable} with {format_confidence(found.confidence)} confidence")
    if found.mean is not None and found.maps_interval is not None:
        words.append(f"about {format_estimate(found.mean, found.maps_interval)} by estimate")
    return "; ".join(words) + "."


def _raised(text: str) -> str:
    """Text as SVG: powers of two are raised."""
    raised = r'2<tspan dy="-5" font-size="9">\1</tspan><tspan dy="5">\2</tspan>'
    return re.sub(r"2\^([-\d.]*\d)([^2]*)", raised, escape(text))


def _ticks(left: float, right: float, most: int) -> list[int]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if (right - left) / step <= most)
    first = int(np.ceil(max(left, 0.0) / step)) * step
    return list(range(first, int(np.floor(right)) + 1, step))


def stability(found: Stability) -> str:
    """A row per layer, its units sorted from stably inactive to stably active; for wide screens and for narrow ones."""
    return _stability(found, _WIDE) + _stability(found, _NARROW)


def _stability(found: Stability, room: float) -> str:
    rows = [(number, np.sort(shares)) for number, shares in enumerate(unit_shares(found)) if len(shares)]
    parts, height, wide = list[str](), 26.0, room == _WIDE
    texts = {
        number: f"layer {number + 1}: {int(found.unstable[number].sum()):,} of {len(shares):,} change" for number, shares in rows
    }
    beside = 24.0 + 7.2 * max(map(len, texts.values()), default=0)
    start, above = (beside, 0.0) if wide else (2.0, 18.0)  # on a phone the text stands above its row
    for place, (number, shares) in enumerate(rows):
        top, count = 8.0 + above + place * (height + above + 6.0), min(len(shares), int(_MOST_UNITS * room / _WIDE))
        values = np.array([chunk.mean() for chunk in np.array_split(shares, count)])
        width = (room - start - (20.0 if wide else 2.0)) / max(count, 8)
        gap = 1.0 if width > 5.0 else 0.0
        anchor = f'x="{start - 10:g}" y="{top + 17:.1f}" text-anchor="end"' if wide else f'x="2" y="{top - 5:.1f}"'
        parts.append(f"<text {anchor}>{texts[number]}</text>")
        parts += [
            f'<rect class="{_state(value)}" style="--share:{value:.3f}" x="{start + i * width:.2f}" y="{top:.1f}" width="{width - gap:.2f}" height="{height:g}"/>'
            for i, value in enumerate(values.tolist())
        ]
    total = found.totals()
    words = f"{total['unstable']} of {found.network.relus} ReLUs change their state; {total['active']} are stably active, {total['inactive']} stably inactive."
    return _svg(room, 16.0 + len(rows) * (height + above + 6.0), parts, words)


def _state(value: float) -> str:
    return "off" if value <= 0.0 else "on" if value >= 1.0 else "both"


def _svg(room: float, height: float, parts: list[str], words: str) -> str:
    return (
        f'<svg class="{"wide" if room == _WIDE else "narrow"}" viewBox="0 0 {room:g} {height:g}" role="img" aria-label="{escape(words, quote=True)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
