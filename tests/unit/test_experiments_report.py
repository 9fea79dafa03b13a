"""The report: the paper's own numbers give the paper's own table, and the page stands alone."""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "experiments").is_dir():
    pytest.skip("the experiments are not part of the package", allow_module_level=True)
pytest.importorskip("matplotlib")
sys.path.insert(0, str(ROOT))

from experiments.paper import commands as program  # noqa: E402
from experiments.paper import published  # noqa: E402
from experiments.paper.index import Key  # noqa: E402
from experiments.paper.results import Results  # noqa: E402
from experiments.paper.summary import Configuration, checks, configurations, fit, points, rows, sureness  # noqa: E402
from experiments.paper.tables import gap  # noqa: E402
from experiments.paper.tasks import VALUES, XOR, Settings  # noqa: E402


def result(key: Key, task: str, value: dict[str, Any], status: str = "finished", seconds: float = 2.0) -> dict[str, Any]:
    return {
        "status": status,
        "settings": Settings().of(task),
        "value": dict.fromkeys(VALUES[task]) | value,
        "wall_seconds": seconds,
        "cpu_seconds": seconds,
        "machine": {"processor": "a processor", "cores": 2},
        "versions": {"tessella": "0.1.0"},
        "finished_at": "2026-11-15T12:00:00+00:00",
    }


def invented(folder: Path, counted: bool = True) -> Results:
    """Results of networks that do not exist: more regions, smaller errors."""
    results = Results.read(folder)
    folder.mkdir(exist_ok=True)
    for n1 in (1, 5, 6, 7, 8, 20):
        for seed in (0, 1):
            key, exact = Key(n1, 22 - n1, seed), 1000 * n1 + seed
            found = {
                "network": {"test_error": 0.5 / n1, "training_cross_entropy": 1.0 / n1, "data": "invented"},
                "upper": {
                    "raghu": 2**32,
                    "montufar": 2**31,
                    "configuration": 2**30,
                    "empirical": 2**28,
                    "inspected_active": [[0], [0, 1, 3 + seed, 0], [0, 0]],
                    "inspected_unstable": [[0], [0, 1, 5, 0], [0, 2]],
                },
                **{
                    task: {"lower": 2**size + 1, "exponent": size, "approximation": (size + 28) / 2} for task, size in XOR.items()
                },
                "estimate": {
                    "maps": 10.0,
                    "mean": 1024.0,
                    "relative_error": 0.05,
                    "lower": 900,
                    "upper": 2**15,
                    "upper_confidence": 0.95,
                },
            }
            if counted:
                found["count"] = {"exact": exact, "lower": exact, "upper": exact}
            for task, value in {"stability": {}, **found}.items():
                results.append(key, "f" * 64, task, result(key, task, value))
    return results


def write(folder: Path, *more: str) -> int:
    return program.main(["report", "--results", str(folder), "-o", str(folder / "report.html"), *more])


def test_the_papers_means_give_the_papers_table():
    table = published.bounds()
    means = [
        Configuration(n1, 22 - n1, 10, 10, row["exact"], row["configuration_ub"], row["empirical_ub"])
        for n1, row in table.items()
    ]
    lines = gap(means).body
    assert len(lines) == 21
    for line in lines:
        assert float(line[3]) == pytest.approx(float(line[4]), abs=0.0501)  # printed with one digit


def test_published_numbers_are_whole():
    table, times = published.bounds(), published.times()
    assert sorted(table) == list(range(1, 22))
    assert len(times) == 210
    assert round(sum(row["exact_s"] for row in times)) == 12_978_827
    for row in table.values():
        assert row["xor5_lb"] <= row["exact"] <= row["empirical_ub"] <= row["configuration_ub"]


@pytest.mark.slow
def test_the_page_stands_alone(tmp_path):
    invented(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- table gap -->\nold\n<!-- end -->\n<!-- table coverage -->\n<!-- end -->\nbetween\n<!-- table standing -->\n<!-- end -->\nafter\n"
    )
    assert write(tmp_path, "--figures", str(tmp_path / "figures"), "--markdown", str(page)) == 0
    text = (tmp_path / "report.html").read_text()
    assert len(re.findall(r"<img ", text)) == 5 == len(re.findall(r"src='data:image/svg\+xml;base64,", text))
    assert not re.findall(r"(?:src|href)=['\"](?!data:)|<script|<link|@import|url\(", text)
    assert "12 networks" in text
    assert "Hollow circles" not in text  # all are counted
    assert "(est.)" not in text
    assert "invented" in text
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    kinds = ("svg", "png", "pdf")
    assert names == {f"{name}.{kind}" for name in ("bounds", "times", "accuracy", "accuracy-all", "estimate") for kind in kinds}
    tables = page.read_text()
    assert "old" not in tables
    assert "| 5;17;10 | 2 | 2 |" in tables
    closed = 100 * (30 - 15) / (30 - (math.log2(5000) + math.log2(5001)) / 2)
    assert f"| 3.9 | {closed:.1f} |" in tables  # the paper's, and ours by the probable upper bound
    assert "| 5;17;10 | 2 | 1, 3.5 | 1, 5 | 0 | 2 | 5 |" in tables
    assert "| count | 12 |" in tables
    assert tables.startswith("before\n")
    assert "\nbetween\n" in tables
    assert tables.endswith("after\n")
    assert write(tmp_path, "--markdown", str(page)) == 0
    assert page.read_text() == tables
    assert (tmp_path / "report.html").read_text() == text  # the same results give the same bytes


def test_results_without_counts_are_reported_too(tmp_path):
    results = invented(tmp_path, counted=False)
    assert write(tmp_path) == 0
    means = configurations(rows(results))
    assert [each.maps for each in means] == [10.0] * 6
    assert not any(each.counted for each in means)
    text = (tmp_path / "report.html").read_text()
    assert "<td>10.00 (est.) / 3.75</td>" in text  # ours is the estimate, not the paper's
    assert "Hollow circles" in text


def test_numbers_of_the_report(tmp_path):
    found = rows(invented(tmp_path))
    wide = [row for row in found if not row.narrow]
    assert {row.key.n1 for row in wide} == {5, 6, 7, 8}
    line = fit(points(wide, None, "test_error"))
    assert line.points == 8
    assert line.correlation < -0.9
    assert line.slope < 0
    assert fit(points(wide, 3, "test_error")) is None  # all at one place
    assert found[0].seconds["xor-3"] == 4.0  # with the coefficients H
    assert found[0].seconds["count"] == 2.0


def test_claims_that_fail_are_found(tmp_path):
    results = invented(tmp_path)
    assert not any(check.failed for check in checks(rows(results)))
    key = Key(5, 17, 1)
    results.append(key, "f" * 64, "count", result(key, "count", {"exact": 2**29, "lower": 2**29, "upper": 2**29}))
    wrong = {"maps": 31.0, "relative_error": 0.1, "lower": 2**30, "upper": 2**31, "upper_confidence": 0.95}
    results.append(key, "f" * 64, "estimate", result(key, "estimate", wrong))
    failed = {check.name: check.failed for check in checks(rows(results)) if check.failed}
    names = ("exact <= empirical", "proved lower <= empirical", "estimate's lower bound <= exact")
    assert failed == {name: [key] for name in names}
    results.append(key, "f" * 64, "estimate", result(key, "estimate", wrong | {"lower": 3, "upper": 2**29 - 1}))
    failed = {check.name: check.failed for check in checks(rows(results)) if check.failed}
    assert "exact <= estimate's upper bound" in failed
    assert "estimate's lower bound <= exact" not in failed


def test_approximations_are_the_papers(tmp_path):
    found = rows(invented(tmp_path))[0]
    assert found.approximation == {size: (size + 28.0) / 2.0 for size in (2, 3, 4, 5)}  # j, not log2 of the bound


def test_a_proved_upper_bound_is_no_probable_one(tmp_path):
    results = invented(tmp_path)
    key = Key(5, 17, 1)
    proved = {"maps": 10.0, "relative_error": 0.1, "lower": 9, "upper": 2**28, "upper_confidence": 1.0}
    results.append(key, "f" * 64, "estimate", result(key, "estimate", proved))
    row = next(row for row in rows(results) if row.key == key)
    assert row.estimate_upper is None
    assert row.interval == (9, 2**28)


def test_estimates_that_counted_claim_nothing(tmp_path):
    results = invented(tmp_path)
    key = Key(5, 17, 1)
    counted = {"maps": 12.0, "relative_error": 0.0, "lower": 2**30, "upper": 2**30, "exact": 2**30}
    results.append(key, "f" * 64, "estimate", result(key, "estimate", counted))
    bounds = [check for check in checks(rows(results)) if check.sure == "95 % together"]
    assert [(check.checked, check.failed) for check in bounds] == [(11, [])] * 2


def test_another_confidence_is_told(tmp_path):
    results = invented(tmp_path)
    key = Key(5, 17, 1)
    less = result(key, "xor-2", {"lower": 5, "exponent": 2, "approximation": 15.0})
    results.append(key, "f" * 64, "xor-2", {**less, "settings": {"confidence": 0.5, "seed": 0}})
    assert sureness(rows(results)) == "50 to 95 %"
    assert write(tmp_path) == 0
    assert "claimed with 50 to 95 %" in (tmp_path / "report.html").read_text()


def test_nothing_to_report(tmp_path, capsys, monkeypatch):
    assert write(tmp_path) == 2
    assert "results.jsonl: is not there, or empty; make results with: python -m experiments.paper run" in capsys.readouterr().err
    invented(tmp_path)
    assert write(tmp_path, "--markdown", str(tmp_path / "nowhere.md")) == 2
    assert "nowhere.md" in capsys.readouterr().err
    (tmp_path / "page.md").write_text("no marks\n")
    assert write(tmp_path, "--markdown", str(tmp_path / "page.md")) == 2
    assert "page.md: has no line <!-- table NAME -->" in capsys.readouterr().err
    assert write(tmp_path, "--formats", "png") == 2
    assert "give --figures FOLDER" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert write(tmp_path) == 2
    assert "pip install matplotlib" in capsys.readouterr().err


def test_a_page_is_written_whole_or_not_at_all(tmp_path, capsys, monkeypatch):
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    invented(tmp_path)
    (tmp_path / "report.html").write_text("old")
    monkeypatch.setattr(Path, "replace", full)
    assert write(tmp_path) == 2
    assert "report.html: cannot be written (No space left on device)" in capsys.readouterr().err
    assert (tmp_path / "report.html").read_text() == "old"
    assert not list(tmp_path.glob("*.part"))


def test_results_that_say_too_little_are_named(tmp_path, capsys):
    results = invented(tmp_path)
    lines = results.path.read_text().splitlines()
    lines[3] = json.dumps({**json.loads(lines[3]), "value": {"lower": 3}})
    results.path.write_text("\n".join(lines) + "\n")
    assert write(tmp_path) == 2
    assert "line 4 is no result of this experiment" in capsys.readouterr().err


def test_skipped_counts_have_a_bracket_and_no_count(tmp_path):
    results = invented(tmp_path, counted=False)
    key = Key(7, 15, 0)
    value = {"exact": None, "lower": 500, "upper": 2**28, "reason": "too many"}
    results.append(key, "f" * 64, "count", result(key, "count", value, status="skipped"))
    row = next(row for row in rows(results) if row.key == key)
    assert row.exact is None
    assert row.bracket == (500, 2**28)
    assert row.maps == 10.0
    assert row.count_status == "skipped"
    assert json.loads(results.path.read_text().splitlines()[-1])["status"] == "skipped"
