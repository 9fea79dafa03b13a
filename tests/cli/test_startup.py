"""Help is there at once: what it loads is the command line itself."""

import json
import subprocess
import sys

import pytest

COMMANDS = [
    "upper",
    "show",
    "stability",
    "count",
    "estimate",
    "mipbound",
    "export",
    "analyze",
    "demo",
    "warm",
    "plot",
    "report",
    "along",
    "local",
    "compress",
]
HEAVY = ["numpy", "scipy", "numba", "llvmlite", "onnx", "pyscipopt", "matplotlib", "torch", "tessella.cli.drawing"]
# A fresh Python that has loaded nothing of ours; each line that it reads is run by a child that begins there.
CODE = f"""
import json, os, sys
for line in sys.stdin:
    if os.fork():
        os.wait()
        continue
    sys.argv = ["tessella", *json.loads(line)]
    try:
        before = [name for name in sys.modules if name.startswith("tessella")]
        from tessella.cli import main
        main()
    except SystemExit as ended:
        print(json.dumps([ended.code, before + [name for name in {HEAVY!r} if name in sys.modules]]))
    sys.stdout.flush()
    os._exit(0)
"""
CALLS = [["--help"], ["--version"], [], *([name, "--help"] for name in COMMANDS)]


@pytest.fixture(scope="module")
def loaded():
    """Of each call: what was printed, the exit code, and which heavy modules were loaded."""
    calls = "".join(f"{json.dumps(call)}\n" for call in CALLS)
    done = subprocess.run([sys.executable, "-c", CODE], input=calls, capture_output=True, text=True, check=True)
    found, text = [], []
    for line in done.stdout.splitlines():
        if line.startswith("["):
            found.append(("\n".join(text), *json.loads(line)))
            text = []
        else:
            text.append(line)
    return dict(zip(map(tuple, CALLS), found, strict=True))


@pytest.mark.parametrize("arguments", CALLS)
def test_help_loads_no_heavy_module(loaded, arguments):
    text, code, heavy = loaded[tuple(arguments)]
    assert heavy == []
    assert code in {0, 2}
    assert "tessella" in text


def test_all_commands_are_known_here(loaded):
    assert all(name in loaded["--help",][0] for name in COMMANDS)


def test_a_wrong_option_is_told_at_once():
    done = subprocess.run([sys.executable, "-m", "tessella", "count", "--boks"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--boks" in done.stderr
