"""Files in the .pt2 format: nothing in them is run, and what cannot be read is refused in one line."""

import json
import pickle
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tessella.errors import FileError, FileMissing, TessellaError, UnsupportedModel, UnsupportedOperator  # noqa: E402
from tessella.importers.door import refuse_pickle  # noqa: E402
from tessella.importers.torch import from_module, read_pt2  # noqa: E402


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A sound file."""
    path = tmp_path / "model.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(mlp().eval(), (torch.ones(1, 3),)), path)
    return path


def refusal(kind: type[TessellaError], read: Callable[[], Any]) -> str:
    """The message of the error, in a single line."""
    with pytest.raises(kind) as caught:
        read()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rewritten(path: Path, change: Callable[[str, bytes], bytes], extra: dict[str, bytes] | None = None, **options: Any) -> Path:
    """A copy of an archive with some records changed or added."""
    target = path.with_name("changed.pt2")
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(target, "w", **options) as copied:
        for name in archive.namelist():
            copied.writestr(name, change(name, archive.read(name)))
        for name, data in (extra or {}).items():
            copied.writestr(name, data)
    return target


class Bomb:
    """What leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def bomb(path: Path) -> bytes:
    return pickle.dumps(Bomb(path))


def forbid_unpickling(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        pytest.fail("something was unpickled or loaded")

    for owner, name in ((pickle, "loads"), (pickle, "load"), (pickle, "Unpickler"), (torch, "load"), (torch.export, "load")):
        monkeypatch.setattr(owner, name, fail)


def test_files_are_read_without_unpickling(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_unpickling(monkeypatch)
    assert read_pt2(model) == from_module(mlp())


def test_a_pickle_for_sample_inputs_is_not_touched(model: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    path = rewritten(model, lambda name, data: bomb(trap) if "sample_inputs" in name else data)
    assert pickle.loads(bomb(trap)) is None
    assert trap.exists()  # the pickle works
    trap.unlink()
    assert read_pt2(path) == from_module(mlp())
    assert not trap.exists()


@pytest.mark.parametrize("where", ["weights", "constants"])
def test_pickled_payloads_are_refused(model: Path, tmp_path: Path, where: str) -> None:
    trap = tmp_path / "trap"

    def config(name: str, data: bytes, **fields: Any) -> bytes:
        if f"{where}_config" not in name:
            return data
        payload = {"path_name": "weight_0", "is_param": True, "use_pickle": True, "tensor_meta": None} | fields
        return json.dumps({"config": {"0.weight": payload}}).encode()

    places = {f"model/data/{where}/{name}": bomb(trap) for name in ("custom_obj_0", "opaque_obj_0")}
    for fields in ({}, {"use_pickle": False}, {"path_name": "custom_obj_0"}, {"path_name": "opaque_obj_0", "use_pickle": False}):
        path = rewritten(model, lambda name, data, fields=fields: config(name, data, **fields), places)
        assert "never opened" in refusal(FileError, lambda path=path: read_pt2(path))
    path = rewritten(model, lambda _, data: data, {f"model/data/{where}/model.pt": bomb(trap)})
    assert "never opened" in refusal(FileError, lambda: read_pt2(path))
    assert not trap.exists()


def changed_program(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    def edit(name: str, data: bytes) -> bytes:
        if not name.endswith("models/model.json"):
            return data
        program = json.loads(data)
        change(program)
        return json.dumps(program).encode()

    return rewritten(path, edit)


def test_code_in_the_graph_is_not_run(model: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    code = f"__import__('pathlib').Path({str(trap)!r}).touch()"

    def guards(program: dict[str, Any]) -> None:
        program["guards_code"] = [code]
        program["range_constraints"] = {code: {"min_val": 0, "max_val": 9}}
        for meta in program["graph_module"]["graph"]["tensor_values"].values():
            meta["sizes"][0] = {"as_expr": {"expr_str": code, "hint": {"as_int": 2}}}

    read_pt2(changed_program(model, guards))  # a dynamic batch, whatever its symbol
    assert not trap.exists()


@pytest.mark.parametrize(
    "target",
    [
        "torch.os.system",
        "torch.load",
        "torch.hub.load",
        "torch.ops.aten.from_file.default",
        "torch.ops.aten.relu.__class__",
        "torch.ops.aten.zeros.out",
        "torch.ops.aten.relu.default.__call__",
        "_operator.attrgetter",
        "math.factorial",
        "#extension:op",
        "builtins.eval",
        "\x1b[31m\n",
    ],
)
def test_functions_beyond_the_list_are_not_called(model: Path, tmp_path: Path, target: str) -> None:
    trap = tmp_path / "trap"

    def call(program: dict[str, Any]) -> None:
        inputs = [{"name": "self", "arg": {"as_string": f"touch {trap}"}, "kind": 1}]
        node = {"target": target, "inputs": inputs, "outputs": [{"as_tensor": {"name": "evil"}}], "metadata": {}}
        program["graph_module"]["graph"]["nodes"].insert(0, node)

    path = changed_program(model, call)
    message = refusal(UnsupportedOperator, lambda: read_pt2(path))
    assert "\x1b" not in message
    assert not trap.exists()


def bulky(operator: str, *arguments: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    inputs = [{"name": name, "arg": argument, "kind": 1} for name, argument in arguments]
    return {"target": operator, "inputs": inputs, "outputs": [{"as_tensor": {"name": "big"}}], "metadata": {}}


BULKY = {
    "full": bulky("torch.ops.aten.full.default", ("size", {"as_ints": [10**6, 10**6]}), ("fill_value", {"as_float": 1.0})),
    "arange": bulky("torch.ops.aten.arange.default", ("end", {"as_int": 10**13})),
    "expand": bulky(
        "torch.ops.aten.repeat.default", ("self", {"as_tensor": {"name": "input"}}), ("repeats", {"as_ints": [10**9, 9]})
    ),
    "pad": bulky(
        "torch.ops.aten.constant_pad_nd.default", ("self", {"as_tensor": {"name": "input"}}), ("pad", {"as_ints": [0, 10**12]})
    ),
    "list": bulky("_operator.mul", ("a", {"as_ints": [1, 2]}), ("b", {"as_int": 10**12})),
    "integer": bulky("_operator.mul", ("a", {"as_int": 2**62}), ("b", {"as_int": 2**62})),
}


@pytest.mark.parametrize("name", BULKY)
def test_graphs_that_would_fill_the_memory_are_refused(model: Path, name: str) -> None:
    path = changed_program(model, lambda program: program["graph_module"]["graph"]["nodes"].insert(0, BULKY[name]))
    refusal(UnsupportedModel, lambda: read_pt2(path))


def test_weights_beyond_their_storage_are_refused(model: Path) -> None:
    for text, other in (
        (b'"sizes": [{"as_int": 5}', b'"sizes": [{"as_int": 6}'),
        (b'"storage_offset": {"as_int": 0', b'"storage_offset": {"as_int": 9'),
    ):
        path = rewritten(
            model, lambda name, data, text=text, other=other: data.replace(text, other) if "config" in name else data
        )
        refusal(FileError, lambda path=path: read_pt2(path))


def test_archives_of_other_kinds_are_explained(model: Path, tmp_path: Path) -> None:
    def read(name: str, data: bytes) -> str:
        (tmp_path / name).write_bytes(data)
        return refusal(FileError, lambda: read_pt2(tmp_path / name))

    whole = model.read_bytes()
    assert "is empty" in read("empty.pt2", b"")
    assert "no .pt2 archive" in read("text.pt2", b"hello")
    for length in (10, len(whole) // 2, len(whole) - 400, len(whole) - 1):
        assert "cut short" in read("short.pt2", whole[:length])
    assert "cut short" in read("long.pt2", b"x" + whole)
    torch.save(mlp().state_dict(), tmp_path / "checkpoint.pt2")
    assert "pickled checkpoint" in refusal(FileError, lambda: read_pt2(tmp_path / "checkpoint.pt2"))
    with zipfile.ZipFile(tmp_path / "old.pt2", "w") as archive:
        archive.writestr("serialized_exported_program.json", "{}")
    assert "before 2.8" in refusal(FileError, lambda: read_pt2(tmp_path / "old.pt2"))
    with zipfile.ZipFile(tmp_path / "foreign.pt2", "w") as archive:
        archive.writestr("notes.txt", "hello")
    assert "not one that torch.export.save wrote" in refusal(FileError, lambda: read_pt2(tmp_path / "foreign.pt2"))
    packed = rewritten(model, lambda _, data: data, compression=zipfile.ZIP_DEFLATED)
    assert "compressed" in refusal(FileError, lambda: read_pt2(packed))
    assert "no such file" in refusal(FileMissing, lambda: read_pt2(tmp_path / "missing.pt2"))
    refusal(FileError, lambda: read_pt2(tmp_path))


def test_declared_sizes_are_checked(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessella.importers.torch_archive._LARGEST_FILE", 1000)
    assert "at most 1,000" in refusal(FileError, lambda: read_pt2(model))


def test_broken_records_are_refused(model: Path) -> None:
    def broken(part: str) -> Callable[[str, bytes], bytes]:
        return lambda name, data: b"[" * (7 if part == "weight_0" else 100_000) if part in name else data

    for part in ("models/model.json", "weights_config", "constants_config", "archive_format", "byteorder", "weight_0"):
        path = rewritten(model, broken(part))
        refusal(FileError, lambda path=path: read_pt2(path))
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda program: program["schema_version"].update(major=99),
        lambda program: program.pop("graph_module"),
        lambda program: program["graph_module"]["graph"]["nodes"][0]["inputs"].pop(0),
        lambda program: program["graph_module"]["graph"]["nodes"][0]["inputs"][0].update(name="strange"),
    ]
    for change in changes:
        path = changed_program(model, change)
        refusal(FileError, lambda path=path: read_pt2(path))
    path = changed_program(model, lambda program: program["graph_module"]["graph"]["nodes"].pop(0))
    assert "which nothing in it computes" in refusal(UnsupportedModel, lambda: read_pt2(path))


def test_pickled_checkpoints_are_refused_with_advice() -> None:
    message = refusal(FileError, lambda: refuse_pickle("weights.pth"))
    assert message.startswith("weights.pth: ")
    assert "weights_only=True" in message
    assert "torch.export.save" in message
