"""The drawings of a report, as SVG that takes its colours from the page."""

from html import escape

import numpy as np

from tessella.analysis.result import Analysis
from tessella.plot import unit_shares
from tessella.result import Side, format_confidence, format_count, maps
from tessella.stability import Stability

_WIDE, _NARROW = 720.0, 340.0  # pixels of a screen, and of a phone: the page shows one of the two
_MOST_UNITS = 512  # of a layer that are drawn one by one; more are put together


def bracket(found: Analysis) -> str:
    """The bracket on a scale of powers of two, for wide screens and for narrow ones."""
    return _bracket(found, _WIDE) + _bracket(found, _NARROW)


def _bracket(found: Analysis, room: float) -> str:
    low, high = maps(found.proved_lower), maps(found.upper)
    left, right = (low - 1.0, high + 1.0) if high - low < 2.0 else (low - 0.03 * (high - low), high + 0.03 * (high - low))
    left = max(left, -0.5)

    def x(power: float) -> float:
        return 20.0 + (room - 40.0) * (power - left) / (right - left)

    parts = [f'<line class="axis" x1="20" x2="{room - 20:g}" y1="92" y2="92"/>']
    parts += [
        f'<line class="axis" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="92" y2="97"/>'
        f'<text class="tick" x="{x(tick):.1f}" y="112" text-anchor="middle">2<tspan dy="-5" font-size="9">{tick}</tspan></text>'
        for tick in _ticks(left, right, most=int(room / 55.0))
    ]
    if found.exact is not None:
        place = x(high)
        parts.append(f'<path class="exact" d="M{place:.1f} 50l9 10-9 10-9-10z"/>')
        parts.append(
            f'<text x="{place:.1f}" y="38" text-anchor="middle" class="value">exactly {format_count(found.exact)}</text>'
        )
        return _svg(room, 130.0, parts, f"Exactly {format_count(found.exact)} regions, proved.")
    parts.append(f'<rect class="proved" x="{x(low):.1f}" y="48" width="{x(high) - x(low):.1f}" height="24" rx="3"/>')
    parts.append(_label(x(low), "start", 38.0, f"≥ {format_count(found.proved_lower, Side.LOWER)} proved"))
    parts.append(_label(x(high), "end", 38.0, f"≤ {format_count(found.upper, Side.UPPER)} proved"))
    words = [
        f"Between {format_count(found.proved_lower, Side.LOWER)} and {format_count(found.upper, Side.UPPER)} regions, proved"
    ]
    if found.probable_lower > found.proved_lower:
        place, sure = x(maps(found.probable_lower)), f"{format_confidence(found.confidence)} sure"
        parts.append(f'<line class="probable" x1="{place:.1f}" x2="{place:.1f}" y1="42" y2="78"/>')
        words.append(
            f"at least {format_count(found.probable_lower, Side.LOWER)} with {format_confidence(found.confidence)} confidence"
        )
        parts.append(
            _label(
                place,
                "end" if place > room / 2.0 else "start",
                16.0,
                f"≥ {format_count(found.probable_lower, Side.LOWER)}, {sure}",
            )
        )
    if found.mean is not None:
        place = x(maps(found.mean))
        parts.append(
            f'<circle class="estimate" cx="{place:.1f}" cy="60" r="6"><title>about {format_count(found.mean)}, estimated</title></circle>'
        )
        words.append(f"about {format_count(found.mean)} by estimate")
    return _svg(room, 130.0, parts, "; ".join(words) + ".")


def _label(place: float, anchor: str, height: float, text: str) -> str:
    return f'<text x="{place:.1f}" y="{height:g}" text-anchor="{anchor}" class="value">{escape(text)}</text>'


def _ticks(left: float, right: float, most: int) -> list[int]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if (right - left) / step <= most)
    first = int(np.ceil(max(left, 0.0) / step)) * step
    return list(range(first, int(np.floor(right)) + 1, step))


def stability(found: Stability) -> str:
    """A row per layer, its units sorted from stably inactive to stably active; for wide screens and for narrow ones."""
    return _stability(found, _WIDE) + _stability(found, _NARROW)


def _stability(found: Stability, room: float) -> str:
    rows = [(number, np.sort(shares)) for number, shares in enumerate(unit_shares(found)) if len(shares)]
    parts, height, start = list[str](), 26.0, 150.0 if room == _WIDE else 118.0
    for place, (number, shares) in enumerate(rows):
        top, count = 8.0 + place * (height + 6.0), min(len(shares), int(_MOST_UNITS * room / _WIDE))
        values = np.array([chunk.mean() for chunk in np.array_split(shares, count)])
        width = (room - start - (20.0 if room == _WIDE else 2.0)) / max(count, 8)
        gap = 1.0 if width > 5.0 else 0.0
        unstable = int(found.unstable[number].sum())
        parts.append(
            f'<text x="{start - 10:g}" y="{top + 17:.1f}" text-anchor="end">layer {number + 1}: {unstable} of {len(shares)}</text>'
        )
        parts += [
            f'<rect class="{_state(value)}" style="--share:{value:.3f}" x="{start + i * width:.2f}" y="{top:.1f}" width="{width - gap:.2f}" height="{height:g}"/>'
            for i, value in enumerate(values.tolist())
        ]
    total = found.totals()
    words = f"{total['unstable']} of {found.network.relus} ReLUs change their state; {total['active']} are stably active, {total['inactive']} stably inactive."
    return _svg(room, 16.0 + len(rows) * (height + 6.0), parts, words)


def _state(value: float) -> str:
    return "off" if value <= 0.0 else "on" if value >= 1.0 else "both"


def _svg(room: float, height: float, parts: list[str], words: str) -> str:
    return (
        f'<svg class="{"wide" if room == _WIDE else "narrow"}" viewBox="0 0 {room:g} {height:g}" role="img" aria-label="{escape(words, quote=True)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
