"""Counting regions: how fast, how it grows, and against other programs on the same networks.

python benchmarks/counting.py                       # seeded networks, one thread (a minute)
python benchmarks/counting.py --nets NETS           # also trained networks n1_n2_0.npz (experiments/paper), --seconds each
python benchmarks/counting.py --peers               # also regioncam and relucent, where they are installed
python benchmarks/counting.py --solver --nets NETS  # also SCIP, network by network until one takes longer than --patience
python benchmarks/counting.py --growth --threads    # also ten million regions, and two threads
python benchmarks/counting.py --list                # the networks of each part

Each measurement is a process of its own, with linear algebra held to one thread.  What compiles or loads the kernel is counted before the
clock starts.  Short counts are repeated: the smallest times are shown.  Rates and ratios are of CPU time, so that other work
on the machine matters little; wall time stands beside it.
"""

import argparse
import itertools
import multiprocessing
import os
import platform
import resource
import signal
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import tessella
from tessella.network import Network

SEEDED = (
    (2, (32, 32, 32)),
    (2, (128, 128)),
    (2, (256, 256)),
    (2, (100,) * 8),
    (3, (16, 16)),
    (3, (32, 32)),
    (4, (10, 10)),
    (4, (24, 24)),
    (5, (12, 12)),
    (5, (20, 20)),
    (8, (12, 12)),
    (16, (12, 8)),
    (20, (8, 6)),
)
GROWTH = ((8, (10, 10)), (8, (13, 12)), (8, (14, 14)), (8, (22, 22)))  # about 1e4, 1e5, 1e6 and 1e7 regions
THREADS = ((8, (20, 18)), (16, (14, 12)))  # more than 5 seconds each

REPEATS, ENOUGH, LONG = 3, 0.3, 10.0  # runs at least, seconds of work at least, seconds after which one is not repeated
WARM = 2.0  # seconds of counting before the clock starts
RELUCENT_WHOLE, RELUCENT_PART = 2_000, 500  # networks with more regions than the first: only so many of them


@dataclass(frozen=True)
class Subject:
    """A network and its box: seeded, or trained and read from a file."""

    inputs: int
    widths: tuple[int, ...] = ()
    path: Path | None = None

    @property
    def name(self):
        """What tables call it."""
        if self.path:
            return "`" + ";".join([*self.path.stem.split("_")[:2], "10"]) + "`"
        same = len(self.widths) > 3 and len(set(self.widths)) == 1
        return f"{self.inputs}: " + (f"{self.widths[0]} x {len(self.widths)}" if same else "+".join(map(str, self.widths)))

    def build(self):
        """The network and the box."""
        if self.path:
            return tessella.load(self.path, relu_output=True), tessella.Box.cube(0, 1, self.inputs)
        return seeded(self.inputs, self.widths), tessella.Box.cube(-1, 1, self.inputs)


def seeded(inputs, widths):
    """He-normal weights, normal biases, and an affine output of one unit."""
    rng = np.random.default_rng(0)
    sizes = itertools.pairwise([inputs, *widths, 1])
    return Network.from_arrays([(rng.normal(0, np.sqrt(2 / m), (n, m)), rng.normal(0, 0.5, n)) for m, n in sizes])


@dataclass(frozen=True)
class Measured:
    """What one program found, and what it took."""

    regions: int
    finished: bool
    wall: float
    cpu: float
    megabytes: float
    tests: int = 0
    before: float = 0.0  # megabytes, before the count
    borderline: int = 0

    @property
    def count(self):
        """The number of regions as a table shows it."""
        return f"{self.regions:,}" if self.finished else f">= {self.regions:,}"

    @property
    def each(self):
        """Microseconds of CPU time per region."""
        return 1e6 * self.cpu / self.regions


def fastest(work):
    """A result, and the smallest wall and CPU times of some runs."""
    walls, cpus = [], []
    while not walls or (sum(walls) < LONG and (len(walls) < REPEATS or sum(walls) < ENOUGH)):
        wall, cpu = perf_counter(), process_time()
        result = work()
        walls.append(perf_counter() - wall)
        cpus.append(process_time() - cpu)
    return result, min(walls), min(cpus)


def peak(who=resource.RUSAGE_SELF):
    """The most memory that this process has held so far, or the largest of those it started, in megabytes."""
    return resource.getrusage(who).ru_maxrss / 1024  # kilobytes on Linux


def ours(subject, seconds, workers=1):
    """Tessella's count, compiled and warm."""
    network, box = subject.build()
    tessella.count(seeded(subject.inputs, (3, 3)), box, workers=workers)
    before = peak()
    tessella.count(network, box, workers=workers, seconds=min(seconds, WARM))
    found, wall, cpu = fastest(lambda: tessella.count(network, box, workers=workers, seconds=seconds))
    return Measured(found.lower, found.exact is not None, wall, cpu, peak(), found.tests, before, found.borderline)


def by_scip(subject, seconds):
    """All solutions of the mixed-integer program, by SCIP; once, and with its own tightening."""
    network, box = subject.build()
    tessella.count(seeded(subject.inputs, (3, 3)), box, method="milp")
    wall, cpu = perf_counter(), process_time()
    found = tessella.count(network, box, method="milp", seconds=seconds)
    return Measured(found.lower, found.exact is not None, perf_counter() - wall, process_time() - cpu, peak())


def by_regioncam(subject):
    """Faces of regioncam's planar subdivision of the square, in single precision."""
    import regioncam  # noqa: PLC0415  optional

    single = [(layer.dense().T.astype("f4", order="C"), layer.bias.astype("f4")) for layer in subject.build()[0].layers[:-1]]

    def faces():
        plane = regioncam.Regioncam(size=1)
        for weight, bias in single:
            plane.linear(weight, bias)
            plane.relu()
        return plane.num_faces

    found, wall, cpu = fastest(faces)
    return Measured(found, finished=True, wall=wall, cpu=cpu, megabytes=peak())


def by_relucent(subject, most):
    """Cells that meet the cube by relucent's breadth-first search, one worker; its certification is left out."""
    import relucent  # noqa: PLC0415  optional
    from relucent.model.model import LinearLayer, ReLULayer, ReLUNetwork  # noqa: PLC0415

    parts = [part for layer in subject.build()[0].layers for part in (LinearLayer(layer.dense(), layer.bias), ReLULayer())]
    cells = relucent.Complex(ReLUNetwork(parts[:-1]))
    wall, cpu = perf_counter(), all_cpu()
    done = cells.bfs(cube_radius=1.0, cube_mode="intersect", nworkers=1, max_polys=most, verify=False, verbose=0)
    memory = peak() + peak(resource.RUSAGE_CHILDREN)
    return Measured(len(cells), done.complete, perf_counter() - wall, all_cpu() - cpu, memory)


def all_cpu():
    """CPU seconds of this process and of those it has started and ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def apart(work, *given, patience=None):
    """What a function of this file returns in a process of its own; or why there is nothing, in words."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=answer, args=(there, work, given))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(patience) else f"more than {patience:g} s"
    except EOFError:
        return "failed"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # and what it started
        process.join()


def answer(pipe, work, given):
    """The other side of `apart`."""
    os.setsid()
    pipe.send(work(*given))


class Known:
    """Our count of each network, measured once in a run."""

    def __init__(self, seconds):
        """Nothing is known yet."""
        self.seconds, self._found = seconds, {}

    def __call__(self, subject):
        """Measure it, or remember."""
        if subject not in self._found:
            self._found[subject] = apart(ours, subject, self.seconds)
        return self._found[subject]


def row(*cells):
    """A line of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def table(title, *columns):
    """A heading and the top of a table."""
    print(f"\n{title}\n")
    row(*columns)
    print("|" + "---|" * len(columns))


def short(seconds):
    """Seconds with three digits."""
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.3g}" if seconds < 100 else f"{seconds:,.0f}"


def times(ratio):
    """A ratio with two digits."""
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"


def speeds(title, subjects, known):
    """How fast each network is counted, one thread."""
    columns = ("regions", "wall s", "CPU s", "regions/s", "us/region", "tests/region", "borderline", "peak MB", "before MB")
    table(title, "network", *columns)
    for subject in subjects:
        found = known(subject)
        if isinstance(found, str):
            row(subject.name, found, *[""] * (len(columns) - 1))
            continue
        rates = f"{found.regions / found.cpu:,.0f}", f"{found.each:.2f}", f"{found.tests / found.regions:.2f}"
        memory = f"{found.megabytes:.0f}", f"{found.before:.0f}"
        row(subject.name, found.count, short(found.wall), short(found.cpu), *rates, found.borderline, *memory)


def against(title, subjects, known, theirs, *, until_slow=False):
    """Another program on the same networks: its count, and its CPU time per region over ours."""
    columns = ("regions", "CPU s", "peak MB", "its count", "its wall s", "its CPU s", "its peak MB", "ratio of CPU s/region")
    table(title, "network", *columns)
    for subject in subjects:
        mine = known(subject)
        if isinstance(mine, str):
            row(subject.name, mine, *[""] * (len(columns) - 1))
            continue
        own = mine.count, short(mine.cpu), f"{mine.megabytes:.0f}"
        found = theirs(subject, mine)
        if isinstance(found, str):
            row(subject.name, *own, found, *[""] * (len(columns) - len(own) - 1))
        else:
            its = found.count, short(found.wall), short(found.cpu), f"{found.megabytes:.0f}"
            row(subject.name, *own, *its, times(found.each / mine.each))
        if until_slow and (isinstance(found, str) or not found.finished):
            return


def against_peers(subjects, known, patience):
    """Regioncam where there are two inputs, relucent everywhere."""

    def regioncam(subject, _):
        return apart(by_regioncam, subject, patience=patience)

    def relucent(subject, mine):
        most = float("inf") if mine.regions <= RELUCENT_WHOLE else RELUCENT_PART
        return apart(by_relucent, subject, most, patience=patience)

    planes = [subject for subject in subjects if subject.inputs == 2]
    for name, tried, note, some, theirs in (
        ("regioncam", "0.5.2", "in single precision", planes, regioncam),
        ("relucent", "1.0.0", "one worker, not certified; >= where it was stopped after some regions", subjects, relucent),
    ):
        if find_spec(name) is None:
            print(f"\n{name} is not installed: pip install {name}=={tried}")
        else:
            against(f"{name} {version(name)}, {note}:", some, known, theirs)


def against_solver(subjects, known, patience):
    """SCIP on one network after the other, by their number of regions, until one takes too long."""
    sizes = {subject: found.regions for subject in subjects if not isinstance(found := known(subject), str) and found.finished}
    title = f"SCIP (PySCIPOpt {version('pyscipopt')}), method 'milp', at most {patience:g} s:"
    walls = {}

    def scip(subject, _):
        found = apart(by_scip, subject, patience)
        if not isinstance(found, str) and found.finished:
            walls[subject] = found.wall
        return found

    against(title, sorted(sizes, key=sizes.__getitem__), known, scip, until_slow=True)
    cores = os.cpu_count()
    table(
        f"The same in wall time, ours with {cores} threads (as it counts if nobody says otherwise):",
        "network",
        "wall s",
        "its wall s",
        "ratio",
    )
    for subject, wall in walls.items():
        mine = apart(ours, subject, known.seconds, cores)
        row(
            subject.name, *([mine, "", ""] if isinstance(mine, str) else [short(mine.wall), short(wall), times(wall / mine.wall)])
        )


def in_threads(subjects, seconds):
    """One thread against two."""
    columns = ("regions", "wall s, 1", "CPU s, 1", "wall s, 2", "CPU s, 2", "wall 1 / wall 2", "CPU 1 / CPU 2")
    table("Two threads:", "network", *columns)
    for subject in subjects:
        one, two = (apart(ours, subject, seconds, workers) for workers in (1, 2))
        if isinstance(one, str) or isinstance(two, str):
            row(subject.name, one if isinstance(one, str) else two, *[""] * (len(columns) - 1))
            continue
        assert one.regions == two.regions or not (one.finished and two.finished)
        # a count that was stopped is compared by what it reached
        shares = [value / found.regions for found in (one, two) for value in (found.wall, found.cpu)]
        ends = [short(value) for found in (one, two) for value in (found.wall, found.cpu)]
        row(subject.name, two.count, *ends, f"{shares[0] / shares[2]:.2f}", f"{shares[1] / shares[3]:.2f}")


def machine():
    """Where and when, in one line."""
    models = set()
    with suppress(OSError), Path("/proc/cpuinfo").open() as file:
        models |= {line.split(":")[1].strip() for line in file if line.startswith("model name")}
    names = ", ".join(f"{name} {version(name)}" for name in ("tessella", "numpy", "numba"))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    processor = f"{os.cpu_count()} x {', '.join(models) or platform.processor()}"
    return f"{datetime.now(UTC):%Y-%m-%d}, {processor}, load average {load}, Python {platform.python_version()}, {names}"


def options():
    """What was asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", type=Path, help="a folder of trained networks n1_n2_seed.npz; those with seed 0 are counted")
    parser.add_argument("--peers", action="store_true", help="compare with regioncam and relucent")
    parser.add_argument("--solver", action="store_true", help="compare with SCIP")
    parser.add_argument("--growth", action="store_true", help="ten thousand to ten million regions")
    parser.add_argument("--threads", action="store_true", help="one thread against two")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="time limit of one count of ours (growth and threads: at least 600)"
    )
    parser.add_argument("--patience", type=float, default=600.0, help="time limit of another program on one network")
    parser.add_argument("--only", default="", help="only networks whose name contains this")
    parser.add_argument("--list", action="store_true", help="name the networks and stop")
    return parser.parse_args()


def main():
    """Print the tables."""
    given = options()
    paths = sorted(given.nets.glob("*_0.npz"), key=lambda path: int(path.stem.split("_")[0])) if given.nets else []
    shapes = {
        "seeded": SEEDED,
        "trained": [(784, (), path) for path in paths],
        "growth": GROWTH if given.growth or given.list else (),
        "threads": THREADS if given.threads or given.list else (),
    }
    parts = {
        part: [subject for shape in some if given.only in (subject := Subject(*shape)).name] for part, some in shapes.items()
    }
    if given.list:
        for part, subjects in parts.items():
            print(f"{part}: {', '.join(subject.name for subject in subjects) or 'none (see --nets)'}")
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # for the processes that measure
        os.environ[name] = "1"
    print(machine())
    known, patient = Known(given.seconds), max(given.seconds, 600.0)
    for part, title, measure in (
        ("seeded", "Seeded networks on [-1, 1]^n, one thread:", known),
        ("trained", f"MNIST, outputs counted as ReLUs, one thread, at most {given.seconds:g} s each:", known),
        ("growth", "Growth, one thread:", Known(patient)),
    ):
        if parts[part]:
            speeds(title, parts[part], measure)
    if parts["threads"]:
        in_threads(parts["threads"], patient)
    if given.peers:
        against_peers(parts["seeded"], known, given.patience)
    if given.solver:
        against_solver([*parts["seeded"], *parts["trained"]], known, given.patience)


if __name__ == "__main__":
    main()
