"""What a person sees while networks are measured: a live table in a terminal, a line per result elsewhere."""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from statistics import median
from time import perf_counter
from typing import Any, Protocol

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from experiments.paper.options import amount
from experiments.paper.results import Record
from experiments.paper.run import Item, Measuring
from experiments.paper.tasks import XOR

_PATIENCE = 3.0  # seconds


class Watch(Protocol):
    """Is told of each result, and now and then that time passed."""

    def __call__(self, news: tuple[Item, Record] | None) -> None:
        """A result, or nothing new."""
        ...


@contextmanager
def watching(plan: Measuring, workers: int) -> Generator[Watch, None, None]:
    """A live table if stderr is a terminal, else plain lines.

    Parameters
    ----------
    plan
        What is being done.
    workers
        How many work on it.
    """
    console = Console(stderr=True, highlight=False, markup=False)
    live = Live(drawn(plan, workers), console=console, refresh_per_second=4) if sys.stderr.isatty() else None
    known = set[str]()

    def watch(news: tuple[Item, Record] | None) -> None:
        late = {task for (_, task), since in plan.under_way.items() if perf_counter() - since > _PATIENCE}
        for kind in sorted({_kind(task) for task in late} - known):
            console.print(
                f"{kind}: under way; the first of its kind on a machine is compiled before, for up to a minute", soft_wrap=True
            )
            known.add(kind)
        if news is not None:
            known.add(_kind(news[0][1]))
            console.print(sentence(*news) if live else f"{sentence(*news)}; {_left(plan, workers)}", soft_wrap=True)
        if live:
            live.update(drawn(plan, workers))

    with live or nullcontext():
        yield watch


def drawn(plan: Measuring, workers: int) -> Group:
    """Tasks with what is done and what is left of each, what is under way, and the time left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("task", "done", "not ended", "left", "median s"):
        table.add_column(name, justify="left" if name == "task" else "right")
    left = plan.left()
    for task in plan.tasks:
        here = [record for (key, name), record in plan.results.records.items() if name == task and key in plan.index]
        done = [record["wall_seconds"] for record in here if record["status"] == "finished"]
        late = len(here) - len(done)
        todo = sum(item[1] == task for item in left)
        table.add_row(task, str(len(done)), str(late or "-"), str(todo or "-"), f"{median(done):.2f}" if done else "-")
    now = [
        f"{task} of {key.n1}-{key.n2} seed {key.seed}, for {perf_counter() - since:.0f} s"
        for (key, task), since in plan.under_way.items()
    ]
    return Group(table, Text("now: " + ("; ".join(now) or "-")), Text(_left(plan, workers)))


def _kind(task: str) -> str:
    """What tasks have in common that run the same code."""
    return "xor" if task in XOR else task


def sentence(item: Item, record: Record) -> str:
    """One result."""
    (key, task), value = item, record["value"]
    if record["status"] == "failed":
        return f"{key.n1}-{key.n2} seed {key.seed}, {task}: failed: {value['error']}"
    texts = {
        "network": lambda: f"test error {100 * value['test_error']:.2f} %",
        "stability": lambda: f"{sum(layer['unstable'] for layer in value['layers'])} unstable units",
        "upper": lambda: f"at most {value['empirical']:,} regions, from the shape {value['configuration']:,}",
        "estimate": lambda: _estimated(value),
        "count": lambda: _counted(record),
    }
    found = texts.get(task, lambda: f"at least {value['lower']:,} regions, APP-{task[-1]} {value['approximation']:.2f}")()
    return f"{key.n1}-{key.n2} seed {key.seed}, {task}: {found}, {record['wall_seconds']:.1f} s"


def _estimated(value: Mapping[str, Any]) -> str:
    if value["exact"] is not None:
        return f"exactly {value['exact']:,} regions: it had time to count them"
    ends = f"at least {value['lower']:,} and at most {value['upper']:,} with {100 * value['confidence']:g} %"
    if value["upper_confidence"] == 1.0:
        ends = f"at least {value['lower']:,} with {100 * value['confidence']:g} %, proved to be at most {value['upper']:,}"
    return f"about {value['mean']:,.0f} regions, {ends}"


def _counted(record: Record) -> str:
    value = record["value"]
    if value["exact"] is not None:
        return f"exactly {value['exact']:,} regions"
    return f"{record['status']}, between {value['lower']:,} and {value['upper']:,} regions" + (
        f" ({value['reason']})" if "reason" in value else ""
    )


def _left(plan: Measuring, workers: int) -> str:
    tasks, (seconds, whole) = len(plan.left()), plan.time_left(workers)
    if not tasks:
        return "nothing left"
    return f"{amount(tasks, 'task')} left, {'about' if whole else 'more than'} {_clock(seconds)}"


def _clock(seconds: float) -> str:
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
