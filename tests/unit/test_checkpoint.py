"""Checkpoints: whatever ends a count, what is finished stays, and what is wrong with a file is said."""

import itertools
import os
import random
import sqlite3
import subprocess
import sys
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import tessella
from helpers.brute_force import patterns_on_a_line
from helpers.line_walker import LineWalker, line_network
from tessella import Box, FileError, FileMissing, Network
from tessella.counting import checkpoint as module
from tessella.counting import schedule
from tessella.counting.checkpoint import Checkpoint, Step, Totals
from tessella.counting.count import count
from tessella.partition.tree import Node, Tree
from tessella.result import Status


def truth(network, box):
    layers = [(layer.dense(), layer.bias, layer.rectified) for layer in network.layers]
    return len(patterns_on_a_line(layers, box.lower, box.upper))


class Dying(LineWalker):
    """Raises at one of its calls, before or after its work."""

    calls, at, after = 0, 0, False

    def advance(self, nodes, seconds, stop):
        Dying.calls = number = Dying.calls + 1
        if number == Dying.at and not Dying.after:
            raise MemoryError
        found = super().advance(nodes, seconds, stop)
        if number == Dying.at:
            raise MemoryError
        return found


@pytest.fixture
def on_a_line(monkeypatch):
    """Count with the slow exact walker of one input."""

    def use(kind=LineWalker, **options):
        monkeypatch.setattr(schedule, "walker_for", partial(kind, **{"steps": 3, "thin_every": 15, **options}))

    use()
    return use


@pytest.fixture
def half_done(on_a_line, tmp_path):
    """A count that was stopped, its file, and its answer."""
    on_a_line(Dying)
    Dying.calls, Dying.at, Dying.after = 0, 13, False
    network, box = line_network(0, (9, 9))
    path = tmp_path / "run.db"
    with pytest.raises(MemoryError):
        count(network, box, checkpoint=path, workers=1)
    Dying.at = 0
    with Checkpoint(path, network, box) as file:
        saved = file.load()
    assert min(len(saved.open), len(saved.thin)) > 2
    return path, network, box, truth(network, box)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_count_goes_on_from_every_point_where_it_can_end(on_a_line, tmp_path, workers, after):
    on_a_line(Dying, steps=8)
    network, box = line_network(1, (7, 6))
    exact = truth(network, box)
    for moment in itertools.count(1):
        path = tmp_path / f"{moment}.db"
        Dying.calls, Dying.at, Dying.after = 0, moment, after
        try:
            first = count(network, box, checkpoint=path, workers=workers)
        except MemoryError:
            Dying.at = 0
            first = None
        again = count(network, box, checkpoint=path, workers=workers)
        assert (again.exact, again.status) == (exact, "finished")
        if first is not None:
            assert moment > 3
            break


def test_a_count_that_ends_at_every_step_still_ends(on_a_line, tmp_path):
    """Each run does two steps and dies; what is counted only grows."""
    on_a_line(Dying)
    network, box = line_network(2, (7, 6))
    path, lower, runs = tmp_path / "run.db", 0, 0
    while True:
        Dying.calls, Dying.at, runs = 0, 3, runs + 1
        try:
            found = count(network, box, checkpoint=path, workers=1)
            break
        except MemoryError:
            with Checkpoint(path, network, box) as file:
                saved = file.load()
            assert lower <= saved.totals.lower <= truth(network, box) <= saved.totals.upper
            lower = saved.totals.lower
    assert runs > 4
    assert found.exact == truth(network, box)


def test_a_time_limit_goes_on_later_and_seconds_add_up(on_a_line, tmp_path):
    on_a_line(rest=0.01)
    network, box = line_network(0, (7, 6))
    path, found = tmp_path / "run.db", []
    while not found or found[-1].exact is None:
        found.append(count(network, box, checkpoint=path, seconds=0.25, workers=2))
    assert len(found) > 1
    assert found[-1].exact == truth(network, box)
    for before, after in itertools.pairwise(found):
        assert before.lower <= after.lower <= after.upper <= before.upper
        assert before.share <= after.share
        assert before.seconds < after.seconds
        assert before.tests < after.tests


def test_a_finished_count_is_returned_at_once(on_a_line, tmp_path, monkeypatch):
    network, box = line_network(3)
    path = tmp_path / "run.db"
    first = count(network, box, checkpoint=path)
    size = path.read_bytes()
    monkeypatch.setattr(schedule, "walker_for", None)
    again = count(network, box, checkpoint=path)
    assert (again.exact, again.tests, again.borderline) == (first.exact, first.tests, first.borderline)
    assert (again.status, again.share) == (Status.FINISHED, 1.0)
    assert path.read_bytes() == size
    assert list(tmp_path.iterdir()) == [path]


def test_what_has_nothing_to_walk_is_kept_too(tmp_path):
    network, path = Network.from_arrays([([[1.0]], [5.0])], relu_output=True), tmp_path / "run.db"
    for _ in range(2):
        assert count(network, Box(-1, 1, dim=1), checkpoint=path).exact == 1


def test_ctrl_c_keeps_what_is_done(on_a_line, tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "_TICK", 0.0)
    network, box = line_network(0, (7, 6))
    path = tmp_path / "run.db"

    def pressed(now):
        if now.lower > 4:
            raise KeyboardInterrupt

    found = count(network, box, checkpoint=path, progress=pressed, workers=2)
    assert found.status is Status.INTERRUPTED
    with Checkpoint(path, network, box) as file:
        totals = file.load().totals
    assert (totals.lower, totals.upper) == (found.lower, found.upper)
    assert count(network, box, checkpoint=path).exact == truth(network, box)


@pytest.mark.parametrize("before", [False, True])
def test_ctrl_c_just_before_or_after_a_step_is_written_loses_nothing(on_a_line, tmp_path, monkeypatch, before):
    on_a_line(LineWalker, steps=8)
    network, box = line_network(1, (7, 6))
    exact, save, calls = truth(network, box), Checkpoint.save, itertools.count(1)

    def pressed(self, step):
        now = next(calls)
        if before and now == moment:
            raise KeyboardInterrupt
        save(self, step)
        if now == moment:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", pressed)
    for moment in range(1, 9):
        calls, path = itertools.count(1), tmp_path / f"{moment}.db"
        found = count(network, box, checkpoint=path, workers=2)
        assert found.status is Status.INTERRUPTED or found.exact == exact
        assert found.lower <= exact <= found.upper
        calls = itertools.count(10)
        assert count(network, box, checkpoint=path).exact == exact


def test_the_same_count_on_another_number_of_workers_goes_on(half_done):
    path, network, box, exact = half_done
    assert count(network, box, checkpoint=path, workers=5).exact == exact


def test_another_network_domain_or_stability_is_refused_and_the_file_left_as_it_is(half_done):
    path, network, box, exact = half_done
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"run\.db: is the checkpoint of another network"):
        count(line_network(9)[0], box, checkpoint=path)
    with pytest.raises(FileError, match="another domain"):
        count(network, Box(-1, 1.5, dim=1), checkpoint=path)
    with pytest.raises(FileError, match="another domain"):
        count(network, tessella.Polytope([[1.0]], [0.5], box), checkpoint=path)
    units = len(network.layers[0].bias)
    bounds = tessella.stability(network, box, method="linear").bounds
    lower = (np.where(np.arange(units) == 0, 0.0, bounds.lower[0]), *bounds.lower[1:])
    other = tessella.Stability(network, box, tessella.PreactivationBounds(lower, bounds.upper, bounds.method))
    with pytest.raises(FileError, match="other stable units"):
        count(network, box, checkpoint=path, stability=other)
    assert path.read_bytes() == before
    assert count(network, box, checkpoint=path).exact == exact


def test_another_format_is_refused(half_done, monkeypatch):
    path, network, box, _ = half_done
    monkeypatch.setattr(module, "FORMAT", 99)
    with pytest.raises(FileError, match="is a checkpoint of format '1', and this version of Tessella reads 99"):
        count(network, box, checkpoint=path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello", "is no checkpoint"),
        (b"x" * 5000, "is no checkpoint"),
        (b"SQLite format 3\0", "is no checkpoint"),
        (b"SQLite format 3\0" + bytes(5000), "no checkpoint of Tessella"),
    ],
)
def test_other_files_are_refused_and_left_as_they_are(tmp_path, content, words):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(FileError, match=words):
        count(*line_network(0), checkpoint=path)
    assert path.read_bytes() == content


def test_another_database_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "mine.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE open (prefix)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(FileError, match="is a database, but no checkpoint"):
        count(*line_network(0), checkpoint=path)
    assert path.read_bytes() == before


def test_an_empty_file_is_a_new_checkpoint(on_a_line, tmp_path):
    path = tmp_path / "run.db"
    path.touch()
    network, box = line_network(0)
    assert count(network, box, checkpoint=path).exact == truth(network, box)


def test_a_file_that_holds_no_count_yet_is_begun(on_a_line, tmp_path):
    network, box = line_network(0)
    Checkpoint(tmp_path / "run.db", network, box).close()
    assert count(network, box, checkpoint=tmp_path / "run.db").exact == truth(network, box)


def test_places_that_cannot_be_written_are_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("tessella.counting.count.find_stability", None)
    network, box = line_network(0)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileMissing, match="there is no folder"):
        count(network, box, checkpoint=tmp_path / "nowhere" / "run.db")
    with pytest.raises(FileError, match="is a folder"):
        count(network, box, checkpoint=tmp_path)
    with pytest.raises(FileError, match=r"no folder|cannot be opened"):
        count(network, box, checkpoint=tmp_path / "file" / "run.db")
    with pytest.raises(FileError, match="cannot be opened"):
        count(network, box, checkpoint="a\0b")
    with pytest.raises(FileError, match="cannot be written"):
        count(network, box, checkpoint="/proc/run.db")


def test_a_checkpoint_in_use_is_refused(on_a_line, tmp_path):
    network, box = line_network(0)
    path = tmp_path / "run.db"
    code = (
        "import sys; from tessella import Network, Box; from tessella.counting.checkpoint import Checkpoint\n"
        "from helpers.line_walker import line_network\n"
        f"file = Checkpoint({str(path)!r}, *line_network(0)); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=with_helpers()
    ) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(FileError, match="in use by another count that is still running"):
            count(network, box, checkpoint=path)
        other.kill()
    assert count(network, box, checkpoint=path).exact == truth(network, box)
    with Checkpoint(path, network, box), pytest.raises(FileError, match="in use by another count in this process"):
        count(network, box, checkpoint=path)


def test_a_full_disk_is_a_clear_error_and_the_file_stays_good(half_done):
    path, network, box, exact = half_done
    with Checkpoint(path, network, box) as file:
        saved = file.load()
        file._database.execute("PRAGMA max_page_count = 1")
        many = tuple(Node(bytes([1, 1]) * number, 1) for number in range(1, 2000))
        with pytest.raises(FileError, match="cannot be written"):
            file.save(Step(saved.totals, opened=many))
        assert file.load() == saved
    assert count(network, box, checkpoint=path).exact == exact


def test_a_step_is_written_whole_or_not_at_all(half_done):
    path, network, box, exact = half_done
    with Checkpoint(path, network, box) as file:
        saved = file.load()

        def half():
            yield Node(bytes([1]), 1)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            file.save(Step(saved.totals, closed=saved.open, opened=half()))
        assert file.load() == saved
        file._database.execute("BEGIN")  # as if Ctrl-C had come between two statements
        file.save(Step(saved.totals))
        assert file.load() == saved
    assert count(network, box, checkpoint=path).exact == exact


def read(path, network, box):
    """What a file says, or None if it is refused as it should be."""
    try:
        with Checkpoint(path, network, box) as file:
            return file.load() if file.begun else ()
    except FileError as error:
        assert str(path) in str(error)
        return None


def test_truncated_files_are_refused_or_right(half_done):
    path, network, box, _ = half_done
    content, saved, found = path.read_bytes(), read(*half_done[:3]), []
    for size in [*range(1, 4096, 455), *range(4096, len(content), 512)]:
        path.write_bytes(content[:size])
        found.append(read(path, network, box))
    assert all(state is None or state == saved for state in found)
    assert found.count(None) > len(found) / 2


def test_flipped_bytes_are_refused_or_harmless(half_done):
    path, network, box, exact = half_done
    rng, content, saved, found = random.Random(0), path.read_bytes(), read(*half_done[:3]), []
    used = [place for place, byte in enumerate(content) if byte]
    for place in [*range(100), *rng.sample(used, 300)]:
        broken = bytearray(content)
        broken[place] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        found.append(read(path, network, box))
        if found[-1] is not None and len(found) % 10 == 0:
            assert count(network, box, checkpoint=path).exact == exact
    assert all(state is None or state == saved for state in found)
    assert found.count(None) > len(found) / 2


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE totals SET value = '0x5' WHERE name = 'regions'",
        "UPDATE totals SET value = 'five' WHERE name = 'regions'",
        "DELETE FROM totals WHERE name = 'seconds'",
        "DELETE FROM totals",
        "DELETE FROM meta WHERE name = 'tree'",
        "DELETE FROM open WHERE prefix = (SELECT max(prefix) FROM open)",
        "UPDATE open SET splits = splits + 1",
        "UPDATE open SET splits = 'many'",
        "UPDATE open SET prefix = 12345678901234 WHERE prefix = (SELECT max(prefix) FROM open)",
        "INSERT INTO thin VALUES (x'0101')",
        "INSERT INTO thin VALUES ('text')",
        "DROP TABLE thin",
        "DROP TABLE meta",
    ],
)
def test_changed_rows_are_refused(half_done, change):
    path, network, box, _ = half_done
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(change)
    database.close()
    with pytest.raises(FileError, match="damaged"):
        count(network, box, checkpoint=path)


def test_a_damaged_log_loses_steps_not_truth(half_done, tmp_path):
    """A killed count leaves its last steps in the write-ahead log; where that is cut off or damaged, an older standing is read."""
    path, network, box, exact = half_done
    states = [read(*half_done[:3])]
    with Checkpoint(path, network, box) as file:
        saved = file.load()
        for number in range(1, 4):
            totals = saved.totals._replace(tests=saved.totals.tests + number)
            file.save(Step(totals, closed=saved.open[:1], opened=saved.open[:1]))
            states.append(file.load())
        main, log = path.read_bytes(), (tmp_path / "run.db-wal").read_bytes()
    assert len(log) > 4096
    rng = random.Random(0)
    for size in (*range(0, len(log), 500), len(log)):
        copy = tmp_path / f"copy{size}.db"
        copy.write_bytes(main)
        flip = rng.randrange(len(log))
        broken = log[:size] if size % 1000 else log[:flip] + bytes([log[flip] ^ 1]) + log[flip + 1 :]
        (tmp_path / f"{copy.name}-wal").write_bytes(broken)
        assert read(copy, network, box) in states
    assert count(network, box, checkpoint=copy).exact == exact


def test_digests_tell_domains_apart():
    box = Box([0, 0], [1, 1])
    domains = [box, Box([0, 0], [1, 2]), Box([0, -0.0, 0], [1, 1, 1]), tessella.Polytope([[1.0, 1.0]], [1.0], box)]
    domains += [tessella.Polytope([[1.0, 1.0]], [1.5], box), tessella.Polytope([[1.0, 1.0], [0.0, 1.0]], [1.0, 1.0], box)]
    assert len({module.domain_digest(domain) for domain in domains}) == len(domains)
    assert module.domain_digest(box) == module.domain_digest(Box([-0.0, 0], [1, 1]))


def test_numbers_of_any_size_survive(tmp_path):
    network, box = line_network(0)
    totals = Totals(3**500, 5, 6, 0.1, 3**500, 7**900)
    with Checkpoint(tmp_path / "run.db", network, box) as file:
        file.begin(Tree(network, box), Step(totals, opened=(Node(),)))
    with Checkpoint(tmp_path / "run.db", network, box) as file:
        assert file.load().totals == totals


def eight_inputs():
    """A network that takes a second or two to count."""
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in ((8, 13), (13, 13))]
    return Network.from_arrays(layers, relu_output=True), Box.cube(-1, 1, 8)


def with_helpers():
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": paths}


@pytest.mark.filterwarnings(
    "ignore:.*multi-threaded.*fork:DeprecationWarning"
)  # of Python 3.12: a parallel run of the tests has a thread
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 10))])
def test_a_count_killed_ten_times_goes_on(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "_SLICE", 0.01)  # more steps, so that more of them are cut
    network, box = eight_inputs()
    exact = count(network, box).exact
    rng, path, states = random.Random(seed), tmp_path / "run.db", []
    for kills in range(100):
        if kills >= 10 and len({state.regions for state in states}) > 1:
            break
        process = get_context("fork").Process(target=count, args=(network, box), kwargs={"checkpoint": path, "workers": 2})
        process.start()
        process.join(rng.uniform(0.02, 0.15) * (1 + kills // 10))  # longer where ten times were too short to write a step
        process.kill()
        process.join()
        if path.exists():
            with Checkpoint(path, network, box) as file:
                states += [file.load().totals] if file.begun else []
    for before, after in itertools.pairwise(states):
        assert before.regions <= after.regions
        assert before.lower <= after.lower <= exact <= after.upper <= before.upper
    assert len({state.regions for state in states}) > 1
    assert count(network, box, checkpoint=path).exact == exact
