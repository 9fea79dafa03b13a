"""``.pt2`` files: archives of a graph in JSON and of weights in plain bytes.

``torch.export.load`` trusts its file: it unpickles, evaluates symbolic shapes and guards as code, and resolves operators
to any function reachable from torch.  So the file is not handed to torch.  Its JSON is read here, operators are looked up
in a fixed list of functions that only compute, sample inputs are not touched, and whatever would need pickle is refused.
"""

import json
import math
import operator
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from tessella.errors import FileError, UnsupportedModel, UnsupportedOperator
from tessella.importers.door import refuse_pickle
from tessella.importers.linear_maps import LARGEST_MATRIX, check_size
from tessella.importers.torch_call import arguments, arranged
from tessella.importers.torch_ends import ENDS
from tessella.importers.torch_graph import IGNORED, Graph, Ref, Step, check_ends, input_shape, layer_words, unsupported
from tessella.importers.torch_operators import HANDLERS

_LARGEST_FILE = 2**32  # bytes
_SCHEMA = 8  # the major version of torch's JSON that is read here
_SAVE_AGAIN = "write it again with torch.export.save(torch.export.export(module, (x,)), 'model.pt2') and a recent torch"

# What a file may let torch compute from constants, besides the operators that are read.  None of these touches anything
# but its arguments.
_FOLDABLE_NAMES = """
    zeros ones full arange eye linspace scalar_tensor abs sqrt rsqrt reciprocal square exp log pow sin cos sign floor ceil round
    sigmoid tanh softmax where eq ne lt le gt ge logical_not logical_and logical_or var std norm linalg_vector_norm amax amin
    _weight_norm cumsum outer
"""
_FOLDABLE = frozenset(_FOLDABLE_NAMES.split())


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, for numbers only; a list times a number could be of any length."""

    def call(*args: Any) -> Any:
        if not all(isinstance(item, (int, float)) for item in args):
            msg = "it computes with something else than numbers"
            raise UnsupportedModel(msg)
        return function(*args)

    return call


_ARITHMETIC = "add sub mul floordiv truediv mod neg eq ne lt le gt ge and_ or_ not_"
_SYMBOLIC: dict[str, Any] = {
    **{f"_operator.{name}": _of_numbers(getattr(operator, name)) for name in _ARITHMETIC.split()},
    **{f"math.{name}": _of_numbers(getattr(math, name)) for name in ("ceil", "floor", "trunc")},
    "_operator.getitem": operator.getitem,
    "torch.sym_max": _of_numbers(max),
    "torch.sym_min": _of_numbers(min),
    "torch.sym_int": _of_numbers(int),
    "torch.sym_float": _of_numbers(float),
    "torch.sym_not": _of_numbers(operator.not_),
}
# torch's numbers for its types
_DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    12: "bool",
    13: "bfloat16",
}
_MEMORY_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_STRIDED = 7


def read_graph(path: Path) -> Graph:
    """The graph in a ``.pt2`` file.

    Parameters
    ----------
    path
        A file that is there.
    """
    if not path.is_file():
        msg = f"{path.name}: is no file but a device or pipe; {_SAVE_AGAIN}"
        raise FileError(msg)
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        msg = f"{path.name}: has {size:,} bytes; at most {_LARGEST_FILE:,} are read"
        raise FileError(msg)
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        msg = f"{path.name}: is no .pt2 archive, or is cut short ({error}); {_SAVE_AGAIN}"
        raise FileError(msg) from error
    with archive:
        records = _Records(path.name, archive, size)
        model = records.model()
        return _Reader(path.name, _described(records, model), _payloads(records, model)).graph()


class _Records:
    """The files in an archive, all in one folder that is named after the file first written."""

    def __init__(self, name: str, archive: zipfile.ZipFile, size: int) -> None:
        self._name, self._archive = name, archive
        items = archive.infolist()
        self._records = {item.filename.partition("/")[2]: item for item in items}
        if min((item.header_offset for item in items), default=0) > 0:  # what is left may be an archive within the archive
            msg = f"{name}: is no .pt2 archive, or is cut short (it does not begin like one); {_SAVE_AGAIN}"
            raise FileError(msg)
        if "archive_format" not in self:
            self._refuse({item.filename for item in items})
        if any(item.compress_type != zipfile.ZIP_STORED or item.flag_bits & 1 for item in items):
            msg = f"{name}: is compressed or encrypted, which torch never does; {_SAVE_AGAIN}"
            raise FileError(msg)
        if sum(item.file_size for item in items) > size:  # overlapping records, or lies
            msg = f"{name}: declares more bytes than it has; {_SAVE_AGAIN}"
            raise FileError(msg)

    def _refuse(self, names: set[str]) -> NoReturn:
        """Say what the archive is instead."""
        if "serialized_exported_program.json" in names:
            msg = (
                f"{self._name}: is in the layout of torch before 2.8, with pickled weights, which are never opened; {_SAVE_AGAIN}"
            )
            raise FileError(msg)
        if any(name.endswith(".pkl") for name in names):
            refuse_pickle(self._name)
        msg = f"{self._name}: is an archive, but not one that torch.export.save wrote; {_SAVE_AGAIN}"
        raise FileError(msg)

    def __contains__(self, record: str) -> bool:
        return record in self._records

    def read(self, record: str) -> bytes:
        """The bytes of one."""
        if record not in self:
            msg = f"{self._name}: has no {record}; {_SAVE_AGAIN}"
            raise FileError(msg)
        return self._archive.read(self._records[record])

    def json(self, record: str) -> dict[str, Any]:
        """One as a JSON object."""
        content = json.loads(self.read(record))
        if not isinstance(content, dict):
            msg = f"{self._name}: {record} holds no JSON object; {_SAVE_AGAIN}"
            raise FileError(msg)
        return content

    def model(self) -> str:
        """The name of the only model, if this is an archive with one."""
        if self.read("archive_format") != b"pt2":
            msg = f"{self._name}: is an archive of another format than pt2; {_SAVE_AGAIN}"
            raise FileError(msg)
        order = self.read("byteorder").decode() if "byteorder" in self else sys.byteorder
        if order != sys.byteorder:
            msg = f"{self._name}: its numbers are {order:.20}-endian, this machine's are {sys.byteorder}-endian; {_SAVE_AGAIN}"
            raise FileError(msg)
        models = [name[7:-5] for name in self._records if name.startswith("models/") and name.endswith(".json")]
        if not models and any(name.startswith("data/aotinductor/") for name in self._records):
            msg = f"{self._name}: holds compiled code, not an exported program; {_SAVE_AGAIN}"
            raise FileError(msg)
        if len(models) != 1:
            msg = f"{self._name}: holds {len(models)} models; a file with one is expected"
            raise FileError(msg)
        return models[0]


def _described(records: _Records, model: str) -> dict[str, Any]:
    program = records.json(f"models/{model}.json")
    version = program["schema_version"]["major"]
    if version != _SCHEMA:
        msg = f"its graph is written in version {version} of torch's format, not {_SCHEMA}; {_SAVE_AGAIN}"
        raise FileError(msg)
    return program["graph_module"]


def _payloads(records: _Records, model: str) -> dict[str, Any]:
    """Weights and constants by the names that the graph's signature gives them."""
    found: dict[str, Any] = {}
    storages: dict[str, bytearray] = {}  # weights may share one
    for kind, folder in (("constants", "data/constants/"), ("weights", "data/weights/")):
        if f"{folder}{model}.pt" in records:
            msg = f"its {kind} are pickled, which is never opened; {_SAVE_AGAIN}"
            raise FileError(msg)
        for name, payload in records.json(f"{folder}{model}_{kind}_config.json")["config"].items():
            meta = payload["tensor_meta"]
            if payload["use_pickle"] or meta is None or not payload["path_name"].startswith(("weight_", "tensor_")):
                msg = f"{name!r} is pickled or a custom object, which is never opened; {_SAVE_AGAIN}"
                raise FileError(msg)
            place = f"{folder}{payload['path_name']}"
            if place not in storages:
                storages[place] = bytearray(records.read(place))
            found[name] = _tensor(name, storages[place], meta)
    return found


def _tensor(name: str, raw: bytearray, meta: Mapping[str, Any]) -> Any:
    import torch  # noqa: PLC0415  optional, and here already imported by whoever reads

    dtype = _dtype(meta["dtype"])
    sizes, strides = ([_integer(item) for item in meta[key]] for key in ("sizes", "strides"))
    check_size(math.prod(sizes), f"the weight {name!r}", LARGEST_MATRIX)
    if meta["layout"] != _STRIDED:
        msg = f"{name!r} is stored in a sparse layout, which is not read; convert it with to_dense() first"
        raise UnsupportedModel(msg)
    if not raw:
        if math.prod(sizes):
            msg = f"{name!r} has no numbers; was it exported without weights?"
            raise FileError(msg)
        return torch.zeros(sizes, dtype=dtype)
    flat = torch.frombuffer(raw, dtype=dtype)
    return torch.as_strided(flat, sizes, strides, _integer(meta["storage_offset"]))


def _dtype(number: int) -> Any:
    import torch  # noqa: PLC0415  optional, and here already imported by whoever reads

    if number not in _DTYPES:
        msg = f"it holds numbers of torch's type {number}; only real numbers can be read"
        raise UnsupportedModel(msg)
    return getattr(torch, _DTYPES[number])


def _integer(item: Mapping[str, Any]) -> int:
    """A size that must not be symbolic."""
    size = item.get("as_int")
    if not isinstance(size, int):
        msg = f"a weight's size is {str(item)[:60]}, where a whole number is expected"
        raise FileError(msg)
    return size


@dataclass(frozen=True, slots=True)
class _Reader:
    """From JSON to a graph."""

    name: str
    described: Mapping[str, Any]
    payloads: Mapping[str, Any]

    def graph(self) -> Graph:
        graph, signature = self.described["graph"], self.described["signature"]
        constants, inputs = self._inputs(signature["input_specs"])
        outputs = [_only(_only(spec)[1]["arg"]) for spec in signature["output_specs"] if "user_output" in spec]
        tensors = [value["name"] for kind, value in outputs if kind == "as_tensor"]
        check_ends(self.name, inputs, tensors)
        metas = [graph["tensor_values"][name] for name in inputs]
        dtypes = {_dtype(meta["dtype"]) for meta in metas}
        if len(dtypes) > 1 or not next(iter(dtypes)).is_floating_point:
            msg = f"{self.name}: its input is of type {', '.join(sorted(map(str, dtypes)))}; only floating-point inputs of one type can be read"
            raise UnsupportedModel(msg)
        # a size with a symbol in it is dynamic, whatever the symbol; what it was derived from is not looked at
        shapes = tuple(input_shape(self.name, [item.get("as_int") for item in meta["sizes"]]) for meta in metas)
        return Graph(self.name, list(self._steps(graph["nodes"])), constants, tuple(inputs), tensors[0], shapes, dtypes.pop())

    def _inputs(self, specs: list[dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
        constants: dict[str, Any] = {}
        inputs: list[str] = []
        for spec in specs:
            kind, content = _only(spec)
            if kind == "user_input":
                inputs.append(_only(content["arg"])[1]["name"])
            elif kind == "constant_input":
                constants[content["name"]] = _argument(content["value"])
            elif kind in {"parameter", "buffer", "tensor_constant"}:
                constants[content["arg"]["name"]] = self.payloads[content[f"{kind}_name"]]
            else:
                msg = f"{self.name}: reads a {kind}, which is never opened; only tensors can be read"
                raise FileError(msg)
        return constants, inputs

    def _steps(self, nodes: list[dict[str, Any]]) -> Iterator[Step]:
        for place, node in enumerate(nodes):
            results = [_only(output) for output in node["outputs"]]
            names = [name for kind, value in results for name in _output_names(kind, value)]
            single = len(results) == 1 and results[0][0] != "as_tensors"
            step = Step(
                name=str(node.get("name") or (names[0] if names else place)),
                operator=_plain(node["target"]).removeprefix("torch.ops."),
                call=None,
                args=(),
                kwargs={},
                outputs=names[0] if single and names else tuple(names),
                layer=_layer(node),
            )
            yield step if step.aten in IGNORED else _resolved(step, node["inputs"])


def _resolved(step: Step, inputs: list[dict[str, Any]]) -> Step:
    """The step with its arguments and torch's function, if that is one of those that a file may call."""
    if step.operator in _SYMBOLIC:
        return replace(step, call=_SYMBOLIC[step.operator], args=tuple(_argument(item["arg"]) for item in inputs))
    function = _function(step)
    given = {str(item["name"]): _argument(item["arg"]) for item in inputs}
    strange = set(given) - {argument.name for argument in arguments(function)}
    missing = {argument.name for argument in arguments(function) if not argument.has_default_value()} - set(given)
    if strange or missing:
        what = f"has a strange argument {min(strange)!r}" if strange else f"lacks the argument {min(missing)!r}"
        msg = f"{step}, {step.operator}, {what}; {_SAVE_AGAIN}"
        raise FileError(msg)
    places, keywords = arranged(function, given)
    return replace(step, call=function, args=places, kwargs=keywords)


def _function(step: Step) -> Any:
    """Torch's function, by its name."""
    import torch  # noqa: PLC0415  optional, and here already imported by whoever reads

    _, name, overload, *others = [*step.operator.split("."), "", ""]
    known = step.aten in HANDLERS or step.aten in _FOLDABLE or step.aten in ENDS
    packet: Any = getattr(torch.ops.aten, name, None) if known else None
    if packet is not None and overload in packet.overloads() and not any(others):
        function = getattr(packet, overload)
        if name.endswith("_") or not function._schema.is_mutable:  # noqa: SLF001  torch offers the schema under no other name
            return function
    msg = f"{unsupported(step)} Saving program.run_decompositions() instead lets torch take it apart, where it can."
    raise UnsupportedOperator(msg)


def _only(union: Mapping[str, Any]) -> tuple[str, Any]:
    """Torch writes a choice between kinds as an object with one entry."""
    ((kind, value),) = union.items()
    return kind, value


def _output_names(kind: str, value: Any) -> list[str]:
    if kind == "as_tensor":
        return [value["name"]]
    if kind == "as_tensors":
        return [item["name"] for item in value]
    if kind in {"as_sym_int", "as_sym_bool", "as_sym_float"}:
        return [value["as_name"]]
    if kind == "as_none":
        return []
    msg = f"a node returns what torch calls {kind[3:]!r}, which is not read"
    raise UnsupportedModel(msg)


def _argument(union: Mapping[str, Any]) -> Any:
    """An argument, with `Ref` for values computed before."""
    import torch  # noqa: PLC0415  optional, and here already imported by whoever reads

    kind, value = _only(union)
    if kind.endswith("s") and isinstance(value, list):  # as_ints, as_tensors, as_sym_ints, ...
        return [_argument({kind[:-1]: item}) for item in value]
    if kind in {"as_sym_int", "as_sym_bool", "as_sym_float", "as_optional_tensor"}:
        inner, content = _only(value)
        return Ref(content) if inner == "as_name" else _argument(value)
    readers: dict[str, Callable[[Any], Any]] = {
        "as_none": lambda _: None,
        "as_int": int,
        "as_bool": bool,
        "as_float": float,  # JSON has no word for infinity, so torch writes that as text
        "as_string": str,
        "as_tensor": lambda item: Ref(item["name"]),
        "as_scalar_type": _dtype,
        "as_memory_format": lambda item: getattr(torch, _MEMORY_FORMATS[item]),
        "as_layout": lambda _: torch.strided,
        "as_device": lambda _: torch.device("cpu"),  # wherever it was exported, it is computed here
    }
    if kind not in readers:
        msg = f"a node takes what torch calls {kind[3:]!r}, which is not read"
        raise UnsupportedModel(msg)
    return readers[kind](value)


def _layer(node: Mapping[str, Any]) -> str:
    """The module that a node comes from, as ``key,path,class;...`` says, outermost first."""
    stack = (node.get("metadata") or {}).get("nn_module_stack")
    if not isinstance(stack, str) or stack.count(",") < 2:
        return ""
    _, path, kind = stack.split(";")[-1].rsplit(",", 2)
    return layer_words(path, _plain(kind))


def _plain(text: object) -> str:
    """A name from a file, fit for an error message."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text)[:100])
