"""Measuring networks: what is written is what was found, nothing is done twice, and a run goes on wherever it was stopped."""

import json
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tessella

ROOT = Path(__file__).parents[2]
if not (ROOT / "experiments").is_dir():
    pytest.skip("the experiments are not part of the package", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from experiments.paper import commands as program  # noqa: E402
from experiments.paper import tasks as measuring  # noqa: E402
from experiments.paper.index import Folder, Key  # noqa: E402
from experiments.paper.options import ending_gently, seeds_of  # noqa: E402
from experiments.paper.results import Results, closure  # noqa: E402
from experiments.paper.run import Measuring, executor_of, measure  # noqa: E402
from experiments.paper.tasks import NEEDS, TASKS, Settings, Subject, Work, perform  # noqa: E402
from experiments.paper.watch import drawn, sentence  # noqa: E402

KEYS = [Key(1, 21, 0), Key(2, 20, 0)]
QUICK = Settings(estimate_seconds=0.2, exact_seconds=60.0)


def save(folder: Path, entropy: int = 0) -> Path:
    """Networks with three inputs, which are counted in no time."""
    rng = np.random.default_rng(entropy)
    networks, records = {}, {}
    for key in KEYS:
        sizes = [3, key.n1, key.n2, 10]
        networks[key] = [(rng.normal(size=(n, m)), rng.normal(size=n)) for m, n in pairwise(sizes)]
        facts = {"training_cross_entropy": 0.5, "training_error": 0.1, "test_error": 0.1, "dead": False, "data": "random"}
        fingerprint = tessella.Network.from_arrays(networks[key]).fingerprint
        records[key] = {"n1": key.n1, "n2": key.n2, "seed": key.seed, "file": key.file, "fingerprint": fingerprint, **facts}
    store = Folder(folder)
    store.prepare()
    store.save(networks, records)
    return folder


def plan(tmp_path: Path, tasks: Any = TASKS, settings: Settings = QUICK) -> Measuring:
    return Measuring.of(tmp_path / "nets", tmp_path / "results", KEYS, tasks, settings)


def go(work: Measuring, most: int = 1000) -> list[tuple[Key, str]]:
    """Do what is left, or so much of it."""
    done = []
    with work.results.writing(), ThreadPoolExecutor(1) as executor:
        for news in measure(work, executor, 1):
            if news is not None:
                done.append(news[0])
            if len(done) == most:
                break
    return done


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    return save(tmp_path / "nets")


def lines(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "results" / "results.jsonl").read_text().splitlines()]


def test_what_is_written_is_what_the_package_says(nets, tmp_path):
    work = plan(tmp_path)
    done = go(work)
    assert sorted(done) == sorted((key, task) for key in KEYS for task in TASKS)
    assert [task for _, task in done[-2:]] == ["count", "count"]  # last, small ones first
    results = Results.read(tmp_path / "results")
    for key in KEYS:
        network = tessella.load(nets / key.file, relu_output=True)
        box = tessella.Box.cube(0, 1, 3)
        exact = tessella.count(network, box).exact
        assert results.value(key, "count")["exact"] == exact
        assert results.value(key, "estimate")["exact"] == exact  # there was time enough
        bounds = tessella.upper_bounds(network, box)
        found = results.value(key, "upper")
        assert {bound.method: bound.value for bound in bounds.bounds}.items() <= found.items()
        details = bounds.empirical_details
        assert [tuple(map(tuple, found[name])) for name in ("inspected_active", "inspected_unstable")] == [
            details.inspected_active,
            details.inspected_unstable,
        ]
        known = Subject.of(Folder(nets).arrays(key)).stability(results.value(key, "stability"))
        assert [part.tolist() for part in known.bounds.lower] == [part.tolist() for part in bounds.stability.bounds.lower]
        alone = tessella.mipbound(network, box, parity_size=4, rng=0, workers=1)
        assert results.value(key, "xor-4")["draws"] == list(alone.draws)
        assert results.records[key, "xor-4"]["network"]["fingerprint"] == network.fingerprint
    for record in lines(tmp_path):
        assert record["wall_seconds"] >= 0
        assert record["cpu_seconds"] >= 0
        assert record["versions"]["tessella"] == tessella.__version__
        assert record["machine"]["cores"]
    assert go(plan(tmp_path)) == []


def test_goes_on_where_it_was_stopped_and_past_a_half_written_line(nets, tmp_path):
    first = go(plan(tmp_path), most=5)
    path = tmp_path / "results" / "results.jsonl"
    with path.open("ab") as file:
        file.write(b'{"schema": "tessella.experiments.paper.result/1", "network": {"n1": 1')  # killed here
    assert len(Results.read(tmp_path / "results").records) == 5
    rest = go(plan(tmp_path))
    assert len(first) == 5
    assert not set(first) & set(rest)
    assert len(rest) == 2 * len(TASKS) - 5
    assert len(lines(tmp_path)) == 2 * len(TASKS)  # every line is whole


def test_a_last_line_that_lacks_only_its_end_is_kept(nets, tmp_path):
    go(plan(tmp_path, ["upper"]))
    path = tmp_path / "results" / "results.jsonl"
    before = path.read_bytes()
    path.write_bytes(before[:-1])
    assert plan(tmp_path, ["upper"]).left() == []
    go(plan(tmp_path, ["xor-2"]))
    assert path.read_bytes().startswith(before)
    assert len(lines(tmp_path)) == 8


def test_results_of_another_network_are_refused(nets, tmp_path):
    go(plan(tmp_path, ["network"]))
    save(tmp_path / "nets", entropy=1)
    with pytest.raises(tessella.OptionError, match="another network 1-21 of seed 0"):
        plan(tmp_path)
    with pytest.raises(tessella.OptionError, match="another network 1-21 of seed 0"):  # the file would hold both
        Measuring.of(tmp_path / "nets", tmp_path / "results", KEYS[1:], ["upper"], QUICK)


def test_lines_that_are_no_results_are_named(nets, tmp_path):
    go(plan(tmp_path, ["network"]))
    path = tmp_path / "results" / "results.jsonl"
    whole = path.read_text()
    part = {name: value for name, value in json.loads(whole.splitlines()[0]).items() if name != "versions"}
    for wrong in ("{}", "[1]", "half a li", '{"schema": "another/1"}', json.dumps(part)):
        path.write_text(whole + wrong + "\n" + whole)
        with pytest.raises(tessella.FileError, match="line 3 is no result"):
            Results.read(tmp_path / "results")


def test_two_runs_do_not_write_to_one_file(nets, tmp_path):
    pytest.importorskip("fcntl")
    with (
        plan(tmp_path).results.writing(),
        pytest.raises(tessella.FileError, match="another run"),
        plan(tmp_path).results.writing(),
    ):
        pass


def test_other_settings_do_a_task_again(nets, tmp_path):
    go(plan(tmp_path, ["xor-2", "upper"]))
    other = replace(QUICK, confidence=0.9)
    assert {task for _, task in go(plan(tmp_path, ["xor-2", "upper"], other))} == {"xor-2"}
    assert Results.read(tmp_path / "results").records[KEYS[0], "xor-2"]["settings"] == {"confidence": 0.9, "seed": 0}


def test_what_is_needed_is_done_first():
    assert closure(["count"]) == ["network", "stability", "estimate", "count"]
    for task, needs in NEEDS.items():
        assert all(TASKS.index(needed) < TASKS.index(task) for needed in needs)
    with pytest.raises(tessella.OptionError, match="no such task"):
        closure(["xor-6"])


def counting(nets: Path, expected: float, limit: float, checkpoint: Path | None) -> Work:
    """A count that is told how many regions to expect."""
    layers = Folder(nets).arrays(KEYS[1])
    known = {"stability": perform(Work("stability", layers, {}, {}, QUICK))["value"], "estimate": {"mean": expected}}
    return Work("count", layers, {}, known, replace(QUICK, exact_seconds=limit), checkpoint)


def test_a_count_without_hope_is_skipped_with_its_bracket(nets, tmp_path, monkeypatch):
    exact = perform(counting(nets, 100.0, 60.0, None))["value"]["exact"]
    monkeypatch.setattr(measuring, "_TRIAL", 1e-6)
    record = perform(counting(nets, 1e30, 60.0, tmp_path / "count.db"))
    assert record["status"] == "skipped"
    assert "1e+30 regions" in record["value"]["reason"]
    assert record["value"]["lower"] <= exact <= record["value"]["upper"]
    assert record["value"]["exact"] is None


def test_a_count_that_its_limit_stopped_goes_on(nets, tmp_path):
    exact = perform(counting(nets, 100.0, 60.0, None))["value"]["exact"]
    late = perform(
        counting(nets, 1e30, 1e-6, tmp_path / "count.db")
    )  # nothing is left of its time: not skipped, whatever is expected
    assert late["status"] == "time limit"
    assert late["value"]["lower"] <= exact <= late["value"]["upper"]
    assert (tmp_path / "count.db").exists()
    (tmp_path / "count.seconds.json").write_text("[5.0, 4.0]")  # as if it had taken that long
    record = perform(counting(nets, 1e-30, 60.0, tmp_path / "count.db"))
    assert (record["status"], record["value"]["exact"]) == ("finished", exact)
    assert record["wall_seconds"] >= 5.0
    assert record["cpu_seconds"] >= 4.0


def test_a_limit_is_that_of_all_runs_together(nets, tmp_path, monkeypatch):
    given, count = [], tessella.count

    def counted(*arguments: Any, seconds: float | None = None, **options: Any) -> Any:
        given.append(seconds)
        return count(*arguments, seconds=seconds, **options)

    work = counting(nets, 1.0, 5.5, tmp_path / "count.db")
    perform(work)  # compiles
    monkeypatch.setattr(tessella, "count", counted)
    (tmp_path / "count.seconds.json").write_text("[5.0, 4.0]")  # half a second is left
    perform(work)
    assert given
    assert all(0.0 < seconds <= 0.5 for seconds in given)


def test_a_checkpoint_stays_until_the_result_is_written(nets, tmp_path):
    work = plan(tmp_path, ["count"])
    go(work, most=6)  # all but the counts
    item = work.next()
    record = perform(work.work(item))
    kept = sorted(path.name.partition(".")[2] for path in (tmp_path / "results" / "checkpoints").iterdir())
    assert kept == ["db", "seconds.json"]
    again = perform(work.work(item))  # as if nobody had written it down
    assert again["value"]["exact"] == record["value"]["exact"] is not None
    assert again["cpu_seconds"] >= record["cpu_seconds"]
    work.write(item, again)
    assert not list((tmp_path / "results" / "checkpoints").iterdir())


def test_what_is_only_needed_is_not_done_again_with_other_settings(nets, tmp_path):
    go(plan(tmp_path, ["estimate"]))
    other = replace(QUICK, estimate_seconds=0.1)
    assert {task for _, task in plan(tmp_path, ["count"], other).left()} == {"count"}
    assert {task for _, task in plan(tmp_path, ["estimate"], other).left()} == {"estimate"}


def test_files_that_are_not_what_the_index_lists_are_refused(nets, tmp_path):
    good = (nets / KEYS[0].file).read_bytes()
    for wrong, words in (
        (good[:300], "is no network"),
        (b"", "is no network"),
        ((nets / KEYS[1].file).read_bytes(), "is not the network that index.jsonl lists"),
    ):
        (nets / KEYS[0].file).write_bytes(wrong)
        with pytest.raises(tessella.FileError, match=rf"1_21_0\.npz: {words}"):
            plan(tmp_path)
    (nets / KEYS[0].file).unlink()
    with pytest.raises(tessella.FileMissing, match=r"1_21_0\.npz: is listed"):
        plan(tmp_path)


def test_an_index_that_says_too_little_is_refused(nets, tmp_path):
    path = nets / "index.jsonl"
    whole = path.read_text()
    for wrong in (whole.replace('"test_error": 0.1', '"test_error": null'), whole.replace('"fingerprint"', '"finger"')):
        path.write_text(wrong)
        with pytest.raises(tessella.FileError, match="line 1 is no record of a network"):
            plan(tmp_path)


def test_results_of_other_images_are_refused(nets, tmp_path):
    go(plan(tmp_path, ["network"]))
    path = nets / "index.jsonl"
    path.write_text(path.read_text().replace('"data": "random"', '"data": "others", "data_sha256": "1"'))
    with pytest.raises(tessella.OptionError, match=r"trained on other images \(1_21_0.npz: random\)"):
        plan(tmp_path)


def test_a_larger_limit_counts_again(nets, tmp_path):
    work = plan(tmp_path)
    go(work)
    late = {**work.results.records[KEYS[0], "count"], "status": "time limit"}
    late["value"] = {**late["value"], "exact": None, "limit_seconds": 60.0}
    work.results.append(KEYS[0], work.fingerprints[KEYS[0]], "count", late)
    assert plan(tmp_path).left() == []
    assert plan(tmp_path, settings=replace(QUICK, exact_seconds=61.0)).left() == [(KEYS[0], "count")]


def test_failures_are_told_and_the_rest_is_done(nets, tmp_path, monkeypatch):
    def fails(*_: Any) -> Any:
        msg = "a solver that fails"
        raise tessella.SolverError(msg)

    monkeypatch.setattr(measuring, "_FUNCTIONS", {**measuring._FUNCTIONS, "upper": fails})
    work = plan(tmp_path, ["upper", "network"])
    assert {task for _, task in go(work)} == {"network", "stability", "upper"}
    assert {task for _, task in Results.read(tmp_path / "results").records} == {"network", "stability"}
    assert work.failed == dict.fromkeys(((key, "upper") for key in KEYS), "a solver that fails")


def test_a_disk_that_is_full_ends_in_one_line(nets, tmp_path, monkeypatch, capsys):
    given = ["run", "--nets", str(nets), "--out", str(tmp_path / "results"), "--tasks"]
    assert program.main([*given, "estimate", "--estimate-seconds", "0.2"]) == 0
    (tmp_path / "results" / "checkpoints").touch()
    capsys.readouterr()
    assert program.main([*given, "count"]) == 2
    assert "cannot be written (File exists)" in capsys.readouterr().err

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert program.main([*given, "xor-2"]) == 2
    assert "results.jsonl: cannot be written (No space left on device)" in capsys.readouterr().err.splitlines()[-1]


def test_progress_says_what_is_left(nets, tmp_path):
    from rich.console import Console

    work = plan(tmp_path)
    seconds, whole = work.time_left(1)
    assert seconds > 0  # guesses
    assert not whole  # nobody knows how long counts will be
    go(work, most=7)
    console = Console(width=120)
    with console.capture() as captured:
        console.print(drawn(work, 1))
    assert "count " in captured.get()
    assert "11 tasks left" in captured.get()
    go(work)
    assert work.time_left(1) == (0.0, True)
    words = [sentence(item, record) for item, record in work.results.records.items()]
    assert any("exactly" in line for line in words)
    assert all("seed 0" in line for line in words)


def test_processes_do_the_same(nets, tmp_path):
    work = plan(tmp_path, ["network"])
    with work.results.writing(), executor_of("processes", 2) as executor:
        assert len([news for news in measure(work, executor, 2) if news]) == 2
    with pytest.raises(tessella.OptionError, match="dask scheduler"), executor_of("elsewhere", 1):
        pass


def test_a_cluster_needs_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(tessella.MissingPackage, match=r"pip install 'dask\[distributed\]'"), executor_of("tcp://127.0.0.1:1", 1):
        pass


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    def client(address: str, **_: Any) -> None:
        msg = f"timed out: {address}"
        raise OSError(msg)

    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=client))
    with pytest.raises(tessella.SolverError, match=r"tcp://127.0.0.1:1: no dask scheduler"), executor_of("tcp://127.0.0.1:1", 1):
        pass


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tasks", "magic"], "no such task"),
        (["--only", "5-5"], "expected two layers"),
        (["--seeds", "2-1"], "ranges such as 0-2"),
        (["--seeds", "0-9999999999999"], "at most 10,000 seeds"),
        (["--seeds", "7"], "no trained networks of seed 7"),
        (["--seeds", "0", "7"], "no trained networks of seed 7"),
        (["--only", "1-21", "9-13"], "no trained networks with hidden layers 9-13"),
        (["--only", "1-21", "9-13", "--seeds", "0", "7"], "no trained networks with hidden layers 9-13, and none of seed 7"),
        (["--nets", "nowhere"], "no trained networks here, no file index.jsonl"),
        (["--executor", "magic"], "dask scheduler"),
    ],
)
def test_wrong_options_end_in_one_line(nets, tmp_path, capsys, arguments, words):
    given = ["run", "--nets", str(nets), "--out", str(tmp_path / "results"), *arguments]
    assert program.main(given) == 2
    said = capsys.readouterr().err
    assert words in said
    assert len(said.splitlines()) == 1


def test_the_first_request_ends_a_run_and_the_second_changes_nothing():
    def asked_three_times() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)

    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyboardInterrupt), ending_gently():
        asked_three_times()
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_what_is_ignored_stays_ignored():
    """As Ctrl-C is where a script starts a run in its background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ending_gently():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_seeds():
    assert seeds_of(["0-2", "5"]) == {0, 1, 2, 5}
    assert seeds_of([]) == set()
