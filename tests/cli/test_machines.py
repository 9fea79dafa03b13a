"""`--processes` and `--cluster`: the same answers, and one line for what makes no sense."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

import tessella
from tessella.cli import commands
from tessella.result import Status

DIGITS = str(Path(tessella.__file__).parent / "data" / "digits.onnx")
BOX = ("--box", "0,1")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--processes", "0"), "--processes must be at least 1, got 0"),
        (("--processes", "-2"), "--processes must be at least 1, got -2"),
        (
            ("--processes", "2", "--cluster", "tcp://host:8786"),
            "give either --processes, of this machine, or --cluster, not both",
        ),
        (
            ("--processes", "2", "--workers", "2"),
            "--workers is the number of threads, without --processes; leave one of them out",
        ),
        (
            ("--cluster", "tcp://host:1", "--workers", "2"),
            "--workers is the number of threads, without --cluster; leave one of them out",
        ),
        (("--cluster", "host:8786"), "--cluster takes the address of a Dask scheduler, such as tcp://host:8786; got 'host:8786'"),
        (("--cluster", ""), "--cluster takes the address of a Dask scheduler, such as tcp://host:8786; got ''"),
    ],
)
@pytest.mark.parametrize("command", ["analyze", "count", "estimate", "mipbound", "stability", "upper", "report"])
def test_what_makes_no_sense_is_told_in_one_line(run, command, given, said):
    assert run(command, DIGITS, *BOX, *given) == (2, "", f"tessella: error: {said}\n")


def test_a_solver_counts_here(run):
    code, _, err = run("count", DIGITS, *BOX, "--method", "milp", "--processes", "2")
    assert (code, err) == (2, "tessella: error: --processes goes with --method walk\n")


def test_an_address_where_nobody_listens_is_told(run, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("tessella.executors._CONNECT", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    code, out, err = run("count", DIGITS, *BOX, "--cluster", address)
    assert (code, out) == (2, "")
    assert err.startswith(f"tessella: error: no Dask scheduler answers at {address} (")
    assert err.count("\n") == 1


@pytest.mark.slow
def test_processes_give_the_same_answers(run):
    given = ("--processes", "2", "-q")
    assert run("count", DIGITS, *BOX, *given) == (0, "26785\n", "")
    assert run("stability", DIGITS, *BOX, *given) == run("stability", DIGITS, *BOX, "-q")
    probes = ("estimate", DIGITS, *BOX, "--probes", "20", "-q")
    assert run(*probes, "--processes", "2") == run(*probes)


@pytest.mark.slow
def test_processes_analyse_and_bound(run):
    code, out, _ = run("analyze", DIGITS, *BOX, "--processes", "2", "--seconds", "60", "-q")
    assert (code, out) == (0, "26785\n")
    repeated = ("mipbound", DIGITS, *BOX, "--repetitions", "10", "-q")
    assert run(*repeated, "--processes", "2") == run(*repeated)


@pytest.mark.slow
def test_a_cluster_gives_the_same_answer(run):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster:
        given = ("--cluster", cluster.scheduler_address, "-q")
        assert run("count", DIGITS, *BOX, *given) == (0, "26785\n", "")
        assert run("stability", DIGITS, *BOX, *given) == run("stability", DIGITS, *BOX, "-q")


def test_lost_workers_are_no_whole_answer(run, monkeypatch):
    real = tessella.count

    def lost(*given, **options):
        found = real(*given, **{**options, "executor": None})
        return replace(found, upper=found.upper + 5, status=Status.LOST)

    monkeypatch.setattr(commands.tessella, "count", lost)
    code, out, err = run("count", DIGITS, *BOX, "-q")
    assert (code, out) == (1, "26785 26790\n")
    assert err == "Note: stopped by the loss of the workers before the end; with --checkpoint FILE it could go on later.\n"
