"""What is measured of one network: each task is a function of plain values, so that any process of any machine can do it.

A task works with one thread, so that its CPU seconds are those of one core.  What has to be compiled is compiled before the clock starts.
"""

import json
import math
import os
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Final

import numpy as np

import tessella
from experiments.paper.files import write
from tessella.kernel.meter import measured_by

SCHEMA: Final = "tessella.experiments.paper.result/1"
XOR: Final = {f"xor-{size}": size for size in (2, 3, 4, 5)}
TASKS: Final = ("network", "stability", "upper", *XOR, "estimate", "count")
"""In the order in which they are done."""
NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "network": (),
    "stability": (),
    "upper": ("stability",),
    **dict.fromkeys(XOR, ("stability",)),
    "estimate": ("stability",),
    "count": ("stability", "estimate"),
}
"""What must be known before."""
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "network": ("training_cross_entropy", "training_error", "test_error", "dead", "epochs", "optimiser", "data", "data_sha256"),
    "stability": ("method", "unproved", "seconds", "layers", "lower", "upper"),
    "upper": ("raghu", "montufar", "configuration", "empirical", "inspected_active", "inspected_unstable"),
    **dict.fromkeys(XOR, ("lower", "exponent", "maps", "approximation", "probability", "repetitions", "given_up", "draws")),
    "estimate": (
        "maps",
        "mean",
        "relative_error",
        "lower",
        "upper",
        "upper_confidence",
        "confidence",
        "probes",
        "exact",
        "thin",
        "undecided",
    ),
    "count": ("exact", "lower", "upper", "borderline", "share", "limit_seconds"),
}
"""What a result says, at least."""

Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """What may be chosen.

    Parameters
    ----------
    confidence
        With which the probable lower bounds hold.
    seed
        Of the parity constraints and of the random descents.
    estimate_seconds
        CPU time of one core for an estimate; 20 seconds are what two cores have in ten.
    exact_seconds
        Time limit of a count.
    """

    confidence: float = 0.95
    seed: int = 0
    estimate_seconds: float = 20.0
    exact_seconds: float = 3600.0

    def of(self, task: str) -> dict[str, Any]:
        """Those that matter to a task; its result is used again only if they are the same."""
        names = {"estimate": ("confidence", "seed", "estimate_seconds"), **dict.fromkeys(XOR, ("confidence", "seed"))}
        return {name: value for name, value in asdict(self).items() if name in names.get(task, ())}


@dataclass(frozen=True, slots=True)
class Work:
    """One task of one network, with all that it needs.

    Parameters
    ----------
    task
        Its name.
    arrays
        Weights and biases of the network's layers.
    index
        What the index of networks says of it.
    known
        Values of the tasks that it needs.
    settings
        What was chosen.
    checkpoint
        The file in which a count keeps what is finished; None for none.
    """

    task: str
    arrays: list[tuple[Any, Any]]
    index: Mapping[str, Any]
    known: Mapping[str, Value]
    settings: Settings
    checkpoint: Path | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """The network as the paper counts it: a ReLU on each of its outputs, on the unit box."""

    network: tessella.Network
    box: tessella.Box

    @classmethod
    def of(cls, arrays: list[tuple[Any, Any]]) -> "Subject":
        """From weights and biases."""
        network = tessella.Network.from_arrays(arrays, relu_output=True)
        return cls(network, tessella.Box.cube(0.0, 1.0, network.input_dim))

    def stability(self, known: Value) -> tessella.Stability:
        """What a record says of the units' ranges."""
        lower, upper = (tuple(np.array(layer) for layer in known[side]) for side in ("lower", "upper"))
        bounds = tessella.PreactivationBounds(lower, upper, known["method"], known["unproved"], known["seconds"])
        return tessella.Stability(self.network, self.box, bounds)


def perform(work: Work) -> dict[str, Any]:
    """Do a task: what it found, how it ended, and what it cost."""
    warm(work.task.partition("-")[0], len(work.arrays[0][0][0]))
    subject, settings = Subject.of(work.arrays), work.settings
    begun, spent = perf_counter(), process_time()
    status, value = _FUNCTIONS[work.task](subject, work, settings)
    wall, cpu = perf_counter() - begun, process_time() - spent
    return {
        "status": status,
        "settings": settings.of(work.task),
        "value": value,
        "wall_seconds": round(wall + value.pop("earlier_wall", 0.0), 4),
        "cpu_seconds": round(cpu + value.pop("earlier_cpu", 0.0), 4),
        "machine": machine(),
        "versions": versions(),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _network(_: Subject, work: Work, __: Settings) -> tuple[str, Value]:
    return "finished", {name: work.index.get(name) for name in VALUES["network"]}


def _stability(subject: Subject, _: Work, __: Settings) -> tuple[str, Value]:
    found = tessella.stability(subject.network, subject.box, method="milp")
    value: Value = {"method": str(found.bounds.method), "unproved": found.bounds.unproved, "seconds": found.bounds.seconds}
    value |= {"layers": [{kind: row[kind] for kind in ("active", "inactive", "unstable")} for row in found.rows()]}
    value |= {side: [layer.tolist() for layer in getattr(found.bounds, side)] for side in ("lower", "upper")}
    return "finished", value


def _upper(subject: Subject, work: Work, _: Settings) -> tuple[str, Value]:
    found = tessella.upper_bounds(subject.network, subject.box, stability=subject.stability(work.known["stability"]))
    subsets = {} if found.empirical_details is None else found.empirical_details.to_dict()
    value: Value = {bound.method: bound.value for bound in found.bounds}
    return "finished", value | {name: subsets[name] for name in ("inspected_active", "inspected_unstable")}


def _xor(subject: Subject, work: Work, settings: Settings) -> tuple[str, Value]:
    found = tessella.mipbound(
        subject.network,
        subject.box,
        parity_size=XOR[work.task],
        confidence=settings.confidence,
        rng=settings.seed,
        stability=subject.stability(work.known["stability"]),
        workers=1,
    )
    return str(found.status), {name: getattr(found, name) for name in VALUES[work.task]} | {"draws": list(found.draws)}


def _estimate(subject: Subject, work: Work, settings: Settings) -> tuple[str, Value]:
    with measured_by(process_time):  # so that it does not matter who else works on the machine
        found = tessella.estimate(
            subject.network,
            subject.box,
            seconds=settings.estimate_seconds,
            confidence=settings.confidence,
            rng=settings.seed,
            stability=subject.stability(work.known["stability"]),
            workers=1,
        )
    value = {name: getattr(found, name) for name in VALUES["estimate"]}
    if not math.isfinite(found.relative_error):  # after one probe; JSON has no infinity
        value["relative_error"] = None
    return str(found.status), value


def _count(subject: Subject, work: Work, settings: Settings) -> tuple[str, Value]:
    """Count; give up early where the estimate and the speed so far say that the time limit is out of reach."""
    with TemporaryDirectory() as folder:
        checkpoint = work.checkpoint or Path(folder) / "count.db"
        meter = Meter.at(checkpoint.with_suffix(_METER))
        options: dict[str, Any] = {"workers": 1, "checkpoint": checkpoint, "progress": meter}
        options |= {"stability": subject.stability(work.known["stability"])}
        expected, limit = float(work.known["estimate"]["mean"]), settings.exact_seconds
        trial = max(min(_TRIAL, limit - meter.earlier[0]), _MOMENT)
        found = tessella.count(subject.network, subject.box, seconds=trial, **options)
        speed, left = found.lower / max(found.seconds, 1e-9), limit - meter.spent()[0]
        more = found.exact is None and left > 0.0
        hopeless = more and expected / speed > _PATIENCE * limit
        if more and not hopeless:
            found = tessella.count(subject.network, subject.box, seconds=left, **options)
        meter.save()
    value: Value = {name: getattr(found, name) for name in VALUES["count"] if name != "limit_seconds"} | {"limit_seconds": limit}
    value |= {"earlier_wall": meter.earlier[0], "earlier_cpu": meter.earlier[1]}
    if not hopeless:
        return str(found.status), value
    why = f"about {expected:.3g} regions at {speed:,.0f}/s need about {expected / speed:,.3g} s, the limit is {limit:,.6g} s"
    return "skipped", value | {"reason": why}


def tidy(checkpoint: Path) -> None:
    """Remove what a count keeps."""
    for path in (checkpoint, checkpoint.with_suffix(_METER)):
        path.unlink(missing_ok=True)


@dataclass(slots=True)
class Meter:
    """Seconds that a count took, over all its runs: beside its checkpoint lies a file that says how many.

    Parameters
    ----------
    path
        That file.
    earlier
        Wall and CPU seconds of earlier runs.
    begun
        What the clocks showed when this run began.
    """

    path: Path
    earlier: tuple[float, float]
    begun: tuple[float, float]
    saved: float = 0.0

    @classmethod
    def at(cls, path: Path) -> "Meter":
        """Begin, with what the file says."""
        now, earlier = (perf_counter(), process_time()), (0.0, 0.0)
        with suppress(OSError, ValueError, TypeError):
            wall, cpu = json.loads(path.read_text(encoding="utf-8"))
            earlier = (float(wall), float(cpu))
        return cls(path, earlier, now, now[0])

    def spent(self) -> tuple[float, float]:
        """Wall and CPU seconds until now."""
        return self.earlier[0] + perf_counter() - self.begun[0], self.earlier[1] + process_time() - self.begun[1]

    def save(self) -> None:
        """Write them down."""
        write(self.path, json.dumps(self.spent()).encode())
        self.saved = perf_counter()

    def __call__(self, _: tessella.CountProgress) -> None:
        """Write them down now and then."""
        if perf_counter() - self.saved > _EVERY:
            self.save()


_METER: Final = ".seconds.json"  # the file beside a checkpoint
_TRIAL, _MOMENT = 5.0, 1e-6  # seconds
_PATIENCE: Final = 1.5  # the speed of a trial is rough
_EVERY: Final = 5.0  # seconds
_FUNCTIONS: Final[Mapping[str, Callable[[Subject, Work, Settings], tuple[str, Value]]]] = {
    "network": _network,
    "stability": _stability,
    "upper": _upper,
    **dict.fromkeys(XOR, _xor),
    "estimate": _estimate,
    "count": _count,
}


@cache
def warm(kind: str, inputs: int) -> None:
    """Compile what a kind of task needs, or load what is compiled, once per process: for narrow and for wide first layers.

    Parameters
    ----------
    kind
        Its name, without a number.
    inputs
        How many the networks have.
    """
    if kind not in _READY:
        return
    rng = np.random.default_rng(0)
    if kind == "estimate":
        warm("count", inputs)  # which it tries first
    for widths in ((2, 4, 2), (9, 3, 2)):
        sizes = zip((inputs, *widths[:-1]), widths, strict=True)
        subject = Subject.of([(rng.normal(size=(units, before)), rng.normal(size=units)) for before, units in sizes])
        known = tessella.stability(subject.network, subject.box, method="milp")
        _READY[kind](subject.network, subject.box, known)


_READY: Final[Mapping[str, Callable[[tessella.Network, tessella.Box, tessella.Stability], object]]] = {
    "stability": lambda *_: None,  # that was it
    "xor": lambda network, box, known: tessella.mipbound(network, box, stability=known, repetitions=2, workers=1),
    "estimate": lambda network, box, known: tessella.estimate(network, box, stability=known, probes=20, workers=1),
    "count": lambda network, box, known: tessella.count(network, box, stability=known, workers=1),
}


@cache
def machine() -> dict[str, Any]:
    """Processor and number of cores."""
    models = list[str]()
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return {"processor": models[0] if models else platform.processor() or platform.machine(), "cores": os.cpu_count()}


@cache
def versions() -> dict[str, str]:
    """What the numbers came from."""
    import numba  # noqa: PLC0415  slow to load
    import scipy  # noqa: PLC0415

    packages = {package.__name__: package.__version__ for package in (np, scipy, numba)}
    return {"tessella": tessella.__version__, **packages, "python": platform.python_version()}
