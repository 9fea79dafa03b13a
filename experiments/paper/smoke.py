"""The whole pipeline on scikit-learn's digits, in a minute or two: whether everything still fits together."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.paper.certify import Certificates
from experiments.paper.results import Results
from experiments.paper.summary import checks, rows

CONFIGURATIONS = ("1-21", "4-18", "5-17", "21-1")


def smoke(folder: Path, command: Callable[[Sequence[str]], int]) -> list[str]:
    """Train, measure and report.

    Parameters
    ----------
    folder
        Where everything goes.
    command
        What runs a command line of the experiment, and returns its exit code.

    Returns
    -------
    What went wrong, in words; nothing if all is well.
    """
    nets, results, page = (str(folder / name) for name in ("nets", "results", "report.html"))
    small = ["--only", *CONFIGURATIONS, "--seeds"]
    steps = [
        ["train", "--digits", "--out", nets, *small, "1", "--epochs", "3"],
        ["run", "--nets", nets, "--out", results, *small, "0", "--estimate-seconds", "0.5", "--exact-seconds", "2"],
        ["certify", "--nets", nets, "--results", results, *small, "0", "--whole", "1000", "--parts", "5"],
        ["report", "--results", results, "-o", page, "--figures", str(folder / "figures"), "--formats", "pdf"],
    ]
    for step in steps:
        if (code := command(step)) != 0:
            return [f"{step[0]} ended with exit code {code}"]
    return wrong(Path(results))


def wrong(results: Path) -> list[str]:
    """What is missing in a folder of results, or contradicts what is proved."""
    networks = rows(Results.read(results))
    found = [
        f"{check.name} fails for {json.dumps([key.file for key in check.failed])}"
        for check in checks(networks)
        if check.sure == "proved" and check.failed
    ]
    if len(networks) != len(CONFIGURATIONS):
        found.append(f"{len(networks)} networks instead of {len(CONFIGURATIONS)}")
    if not any(row.exact for row in networks):
        found.append("no network was counted")
    if not Certificates.read(results).records:
        found.append("no count was certified")
    return found
