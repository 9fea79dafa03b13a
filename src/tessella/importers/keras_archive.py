"""A look into a ``.keras`` file before Keras opens it: what it would build, and how large that is.

Keras' own safe mode refuses Python code that is stored in a file (Lambda layers), unless
``keras.config.enable_unsafe_deserialization`` was called; what else is checked differs between versions.  So nothing is
left to it: only classes that can be read are let through, none of which reads a file or runs code from one.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, Final, cast

from tessella.errors import FileError, UnsupportedModel, UnsupportedOperator
from tessella.importers.keras_calls import ACTIVATIONS, ENDS, SUPPORTED, unsupported
from tessella.importers.keras_layers import LAYERS, MERGES
from tessella.importers.keras_operations import OPERATIONS
from tessella.importers.linear_maps import LARGEST_TENSOR

LARGEST_CONTENT: Final = 4 * 2**30  # bytes, of everything in the archive once it is unpacked
LARGEST_CONFIG: Final = 64 * 2**20  # bytes

_CONFIG, _WEIGHTS, _METADATA = "config.json", "model.weights.h5", "metadata.json"
_ENCRYPTED: Final = 0x1  # the bit of a zip member's flags
_MODELS: Final = frozenset({"Functional", "Model", "Sequential"})
_PLAIN: Final = frozenset({"__ellipsis__", "__keras_tensor__", "__numpy__", "__slice__", "__tensor__"})
_HELPERS: Final = frozenset({"constraints", "dtype_policies", "initializers", "losses", "metrics", "optimizers", "regularizers"})
_SIZES: Final = frozenset({"depth_multiplier", "filters", "kernel_size", "lora_rank", "units"})
_AGAIN: Final = "save the model again with model.save('name.keras')"


def inspect(path: Path) -> None:
    """Refuse a file that is no ``.keras`` archive, is too large, or holds more than a model of known layers."""
    with path.open("rb") as file:
        start = file.read(8)
        if start == b"\x89HDF\r\n\x1a\n":
            msg = f"is a legacy HDF5 file; load it in Keras and {_AGAIN}"
            raise FileError(msg)
        if not zipfile.is_zipfile(file):
            msg = f"is not a .keras file: it starts with {start!r}, or its end is lost; {_AGAIN}"
            raise FileError(msg)
        with zipfile.ZipFile(file) as archive:
            _check_members(archive.infolist())
            largest = _largest_axis(archive.read(_WEIGHTS))
            config = json.loads(archive.read(_CONFIG))
    if not isinstance(config, dict):
        msg = f"holds a {_CONFIG} that describes no model; {_AGAIN}"
        raise FileError(msg)
    model = cast("dict[str, Any]", config)
    model.pop("compile_config", None)  # losses and optimizers are not loaded
    if not isinstance(model.get("class_name"), str) or model["class_name"] in _PLAIN:
        msg = f"holds a {_CONFIG} that describes no model; {_AGAIN}"
        raise FileError(msg)
    for key, value in _walk(model):
        if isinstance(value, dict):
            _check_class(cast("dict[str, Any]", value))
        else:
            _check_sizes(key, value, largest)


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    missing = {_CONFIG, _WEIGHTS}.difference(names)
    if missing:
        msg = f"is a zip archive but no Keras model: {', '.join(sorted(missing))} is missing; {_AGAIN}"
        raise FileError(msg)
    if len(set(names)) < len(names) or not {_CONFIG, _WEIGHTS, _METADATA}.issuperset(names):
        odd = next(name for name in names if name not in {_CONFIG, _WEIGHTS, _METADATA} or names.count(name) > 1)
        msg = f"holds {odd[:60]!r} besides one each of {_CONFIG}, {_WEIGHTS} and {_METADATA}; no supported layer has such files"
        raise FileError(msg)
    if any(member.flag_bits & _ENCRYPTED for member in members):
        msg = f"is encrypted; {_AGAIN}"
        raise FileError(msg)
    total = sum(member.file_size for member in members)
    config = sum(member.file_size for member in members if member.filename != _WEIGHTS)
    if total > LARGEST_CONTENT or config > LARGEST_CONFIG:
        msg = (
            f"would unpack to {total / 2**30:,.2f} GiB, {config / 2**20:,.1f} MiB of it description; "
            f"at most {LARGEST_CONTENT >> 30} GiB and {LARGEST_CONFIG >> 20} MiB are read"
        )
        raise FileError(msg)


def _largest_axis(content: bytes) -> int:
    """The longest axis of all stored arrays, each of which must lie in the file itself."""
    import h5py  # noqa: PLC0415  comes with Keras

    longest, total = 1, 0
    with h5py.File(io.BytesIO(content), "r") as file:
        groups: list[Any] = [file]
        seen = {file["/"]}
        while groups:
            group = groups.pop()
            for key in group:
                item: Any = group[key] if isinstance(group.get(key, getlink=True), h5py.HardLink) else None
                if item is None or item in seen:
                    msg = f"holds weights with a link at {group.name}/{key}, which is not followed; {_AGAIN}"
                    raise FileError(msg)
                seen.add(item)
                if isinstance(item, h5py.Group):
                    groups.append(item)
                    continue
                if not isinstance(item, h5py.Dataset) or item.external or item.is_virtual or item.dtype.kind not in "biufV":
                    msg = f"holds weights with something other than an array of numbers at {group.name}/{key}; {_AGAIN}"
                    raise FileError(msg)
                total += prod(item.shape) * item.dtype.itemsize
                longest = max(longest, *item.shape, 1)
                if total > LARGEST_CONTENT:
                    msg = f"declares weights of {total / 2**30:,.1f} GiB or more; at most {LARGEST_CONTENT >> 30} GiB are read"
                    raise FileError(msg)
    return longest


def _walk(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every dictionary, and every other value with the key it stands under (lists keep theirs)."""
    pending: list[tuple[str, Any]] = [("", config)]
    while pending:
        key, value = pending.pop()
        yield key, value
        if isinstance(value, dict):
            pending += cast("dict[str, Any]", value).items()
        elif isinstance(value, list):
            pending += [(key, item) for item in cast("list[Any]", value)]


def _check_sizes(key: str, value: Any, largest: int) -> None:
    """Refuse sizes that no stored weight has, before memory is asked for them."""
    if key in _SIZES and isinstance(value, (int, float)) and value > largest:
        msg = f"describes a layer with {key}={value}, but no stored weight has an axis longer than {largest}; {_AGAIN}"
        raise FileError(msg)
    if key.endswith("shape") and isinstance(value, list):
        sizes = [item for item in cast("list[Any]", value) if isinstance(item, (int, float))]
        if abs(prod(sizes)) > LARGEST_TENSOR:
            msg = f"describes a tensor of shape {tuple(sizes)}; at most {LARGEST_TENSOR:.3g} entries can be read"
            raise UnsupportedModel(msg)


def _check_class(entry: dict[str, Any]) -> None:
    """Let only classes through that can be read, by the module that Keras would take them from."""
    if "class_name" not in entry:
        return
    kind, module, config = entry["class_name"], entry.get("module"), entry.get("config")
    if isinstance(kind, str) and kind in _PLAIN and module is None:
        return
    inner = cast("dict[str, Any]", config) if isinstance(config, dict) else {}
    name = repr(str(entry.get("name", inner.get("name", "")))[:60])
    where = f"layer {name}" if "inbound_nodes" in entry or "layers" in str(module) else f"the object {name} in its description"
    if kind in ("Lambda", "__lambda__"):
        msg = f"{where} is a {kind}, which is Python code and is never run from a file; rebuild it from layers. Supported are {SUPPORTED}."
        raise UnsupportedOperator(msg)
    if not isinstance(kind, str) or not isinstance(module, str) or not _is_keras(kind, module, entry):
        registered = f", registered as {entry['registered_name']!s:.60}" if entry.get("registered_name") else ""
        shown = f"{kind!s:.60} from the module {module!s:.60}{registered}"
        msg = (
            f"{where} is a {shown}, which is no part of Keras and is never imported from a file; "
            f"rebuild the model from Keras' own layers, or export it to ONNX. Supported are {SUPPORTED}."
        )
        raise UnsupportedOperator(msg)
    if not _is_known(kind, module, config):
        what = "the activation" if kind == "function" else "a layer of class"
        raise UnsupportedOperator(f"{where}: " + unsupported(what, f"{config if kind == 'function' else kind!s:.60}"))


def _is_keras(kind: str, module: str, entry: dict[str, Any]) -> bool:
    registered = entry.get("registered_name")
    if registered not in (None, kind) and not (kind == "function" and registered == entry.get("config")):
        return False
    return module == "keras" or module.startswith("keras.") or (kind == "function" and module == "builtins")


def _is_known(kind: str, module: str, config: Any) -> bool:
    if kind == "function":
        return isinstance(config, str) and (config in ACTIVATIONS or config in ENDS)
    parts = module.removeprefix("keras.").removeprefix("src.").split(".")
    if _HELPERS.intersection(parts):
        return True
    part = parts[0]
    if part == "layers":
        return kind in LAYERS or kind in MERGES or kind == "InputLayer"
    if part in {"ops", "activations"}:
        return kind in OPERATIONS
    return part in {"keras", "models"} and (kind in _MODELS or kind.endswith("DTypePolicy"))
