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
CODE = f"""
import json, sys
sys.argv[0] = "tessella"
from tessella.cli import main
try:
    main()
except SystemExit as ended:
    print(json.dumps([ended.code, [name for name in {HEAVY!r} if name in sys.modules]]))
"""


def loaded(*arguments):
    """What was printed, the exit code, and which heavy modules were loaded."""
    done = subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=True)
    *text, last = done.stdout.splitlines()
    return "\n".join(text), *json.loads(last)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], *([name, "--help"] for name in COMMANDS)])
def test_help_loads_no_heavy_module(arguments):
    text, code, heavy = loaded(*arguments)
    assert heavy == []
    assert code in {0, 2}
    assert "tessella" in text


def test_all_commands_are_known_here():
    text, _, _ = loaded("--help")
    assert all(name in text for name in COMMANDS)


def test_a_wrong_option_is_told_at_once():
    done = subprocess.run([sys.executable, "-m", "tessella", "count", "--boks"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--boks" in done.stderr
