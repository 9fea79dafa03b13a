"""Every line of code in README and docs runs and says what the page shows; every public name has an example."""

import inspect
import json
import re

import pytest

import tessella
from helpers.here import Here
from helpers.pages import ROOT, blocks, run_commands, run_python
from tessella.analysis import plan

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*/*.md")), *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [page for page in PAGES if page.parent.name != "notebook" and page.name != "paper.md" and blocks(page)]
REFERENCE = {page: page.read_text() for page in (ROOT / "docs/reference").glob("*.md")}


SLOW = {"comparing.md"}  # it analyses six times


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.name in SLOW else []) for page in PAGES],
    ids=[str(page.relative_to(ROOT)) for page in PAGES],
)
def test_code_of_the_page_runs(page, run, tmp_path):
    (tmp_path / "model.onnx").write_bytes((ROOT / "src/tessella/data/digits.onnx").read_bytes())
    scope = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            run_python(block, scope)
        else:
            run_commands(block, run)


@pytest.mark.parametrize("name", sorted({*tessella.__all__} - {"__version__"}))
def test_every_public_name_is_in_the_reference_once_and_has_an_example(name):
    pages = [
        page for page, text in REFERENCE.items() if re.search(rf"^\.\. auto\w+:: tessella\.{name}\b(\(|$)", text, re.MULTILINE)
    ]
    assert len(pages) == 1
    code = "".join(block.code for block in blocks(pages[0]) if block.language == "python")
    documented = inspect.getdoc(getattr(tessella, name)) or ""
    assert re.search(rf"\b{name}\b", code) or ">>>" in documented


@pytest.mark.parametrize(
    "command",
    [
        "show model.onnx --box 0,1",
        "stability model.onnx --box 0,1",
        "compress model.onnx --box 0,1 -o smaller.npz",
        "upper model.onnx --box 0,1 --count 26785",
        "upper --widths 3,4",
        "count model.onnx --box 0,1",
        "estimate model.onnx --box 0,1 --probes 30",
        "mipbound model.onnx --box 0,1 --parity-size 5",
        "analyze model.onnx other.onnx --box 0,1",
        "report model.onnx --box 0,1 -o r.html",
        "plot model.onnx --box 0,1 -o r.svg",
        "summarise model.onnx --box 0,0.2 --statistics active,spectral,decision --seconds 5",
        "graph model.onnx --box 0,0.3 --limit 100 -o r.graphml",
        "along model.onnx --path points.csv",
        "local model.onnx --data points.csv --radius 0.01",
    ],
)
def test_every_field_of_json_is_on_its_page(command, run, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "EstimatingProcess", Here)
    for name in ("model.onnx", "other.onnx"):
        (tmp_path / name).write_bytes((ROOT / "src/tessella/data/digits.onnx").read_bytes())
    (tmp_path / "points.csv").write_text("\n".join(",".join([digit] * 64) for digit in "01"))
    ended = run(*command.split(), "--json")
    assert ended.code == 0, ended.err
    explained = set(re.findall(r"`(\w+)`", REFERENCE[ROOT / "docs/reference/json.md"]))
    assert fields(json.loads(ended.out)) - {"", *explained} == set()


def fields(value):
    """All names in a JSON value, but for names of units, which are the source's own."""
    if isinstance(value, list):
        return set().union(*map(fields, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(fields(part) for name, part in value.items() if name != "units"))
