"""What `progress=True` draws, where, and for whom."""

import inspect
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tessella
from tessella import plot, progress, report
from tessella.tightening import tighten

RNG = np.random.default_rng(0)
NETWORK = tessella.load([(RNG.normal(size=(8, 2)), RNG.normal(size=8)), (RNG.normal(size=(1, 8)), [0.0])])
BOX = tessella.Box(-1, 1, dim=2)


def _knapsack(**options):
    from pyscipopt import Model

    model = Model("knapsack")
    items = [model.addVar(f"i{number}", "B") for number in range(6)]
    model.addCons(sum(items) <= 3)
    return tessella.mipbound_model(model, repetitions=3, **options)


VERBS = {
    "count": lambda **options: tessella.count(NETWORK, BOX, **options),
    "estimate": lambda **options: tessella.estimate(NETWORK, BOX, probes=20, **options),
    "analyze": lambda **options: tessella.analyze(NETWORK, BOX, seconds=5, **options),
    "mipbound": lambda **options: tessella.mipbound(NETWORK, BOX, repetitions=3, confidence=0.5, **options),
    "mipbound_model": _knapsack,
    "stability": lambda **options: tessella.stability(NETWORK, BOX, **options),
    "tighten": lambda **options: tighten(NETWORK, BOX, **options),
    "upper_bounds": lambda **options: tessella.upper_bounds(NETWORK, BOX, **options),
    "empirical_bound": lambda **options: tessella.empirical_bound(NETWORK, BOX, **options),
    "polygons": lambda **options: tessella.polygons(NETWORK, BOX, **options),
    "plot.regions": lambda **options: plot.regions(NETWORK, BOX, **options),
    "report.explore": lambda **options: report.explore(NETWORK, BOX, **options),
}


class Screen:
    """Keeps what it is told."""

    def __init__(self):
        self.seen, self.closed = [], False

    def draw(self, text, share):
        assert share is None or 0.0 <= share <= 1.0
        self.seen.append(text)

    def close(self):
        self.closed = True


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_draws_a_bar_and_takes_it_away(name, monkeypatch):
    screen = Screen()
    monkeypatch.setattr(progress, "screen", lambda: screen)
    VERBS[name](progress=True)
    assert screen.closed
    assert all("regions" in text or "units" in text or "repetitions" in text for text in screen.seen)
    if name not in {"count", "estimate", "polygons", "plot.regions", "report.explore"}:  # may end before there are news
        assert screen.seen


@pytest.mark.parametrize("name", VERBS)
def test_nothing_is_drawn_where_nobody_looks(name, capfd):
    VERBS[name](progress=True)
    VERBS[name](progress=False)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", VERBS)
def test_what_cannot_be_called_is_refused(name):
    with pytest.raises(tessella.OptionError, match="True for a bar, or None"):
        VERBS[name](progress="yes")


def test_a_bar_goes_away_when_a_verb_fails(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(progress, "screen", lambda: screen)
    with pytest.raises(tessella.OptionError):
        tessella.count(NETWORK, BOX, seconds=-1, progress=True)
    assert screen.closed


def test_a_verb_looks_as_it_did():
    assert list(inspect.signature(tessella.count).parameters)[:3] == ["network", "domain", "seconds"]
    assert tessella.count.__name__ == "count"
    assert ">>>" in tessella.count.__doc__


def test_a_notebook_shows_a_bar_without_widgets(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda _html, display_id: handle if display_id else None)
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    tessella.stability(NETWORK, BOX, progress=True)
    assert shown[0].startswith('<div><progress value="0.')
    assert " units</div>" in shown[0]
    assert not shown[-1]
    screen = progress.Notebook()
    screen.draw("<b>", None)
    assert shown[-1] == "<div><progress></progress> &lt;b&gt;</div>"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo terminals")
def test_a_terminal_shows_a_bar_on_stderr():
    import pty

    code = """
from time import sleep
from tessella.progress import with_bar
@with_bar(lambda done: (f"{done} regions [0, 1]", None if done else 0.5))
def work(*, progress):
    for done in (0, 1):
        progress(done)
        sleep(0.3)
work(progress=True)
"""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:  # the other side is closed
        pass
    assert done.communicate()[0] == b""
    assert done.returncode == 0
    assert b"0 regions [0, 1]" in seen
    assert b"1 regions [0, 1]" in seen
