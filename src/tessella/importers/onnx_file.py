"""An ONNX file, gzipped or not, with the weights that are stored beside it."""

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

from tessella.errors import FileError

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

_LARGEST_FILE = 2**31  # bytes; the format's own limit for one message
_GZIP = b"\x1f\x8b"


def read_model(place: Path) -> "ModelProto":
    """Read a file that is there.

    Parameters
    ----------
    place
        The file; whether it is gzipped is seen from its first bytes, not from its name.
    """
    import onnx  # noqa: PLC0415  heavy

    with place.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
    with gzip.open(place) if packed else place.open("rb") as file:
        content = file.read(_LARGEST_FILE)
    if len(content) == _LARGEST_FILE:
        msg = "is larger than 2 GB, the limit of the format; store the weights as external data"
        raise FileError(msg)
    model = onnx.load_model_from_string(content)
    _fetch(model, place.parent.resolve())
    return model


def _fetch(model: "ModelProto", folder: Path) -> None:
    """Load the weights that are stored in other files."""
    from onnx.external_data_helper import load_external_data_for_model, load_external_data_for_tensor  # noqa: PLC0415  heavy

    for tensor in model.graph.initializer:
        location = _location(tensor)
        if location is None:
            continue
        if not (folder / location).is_file():
            msg = f"its weights {tensor.name!r} are stored in {location!r}, which is not beside it; put that file there, or save the model again in one file"
            raise FileError(msg)
        try:
            load_external_data_for_tensor(tensor, str(folder))
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            msg = f"its weights {tensor.name!r} cannot be read from {location!r} ({reason:.160}); is that file complete, and inside the model's folder?"
            raise FileError(msg) from error
    load_external_data_for_model(model, str(folder))  # those of operators' attributes


def _location(tensor: "TensorProto") -> str | None:
    """The file that holds a tensor's numbers, if that is another one."""
    from onnx.external_data_helper import uses_external_data  # noqa: PLC0415  heavy

    if not uses_external_data(tensor):
        return None
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def check_numbers(model: "ModelProto") -> None:
    """Refuse a model in memory that was loaded without the weights stored beside its file."""
    left = next((tensor for tensor in model.graph.initializer if _location(tensor) is not None), None)
    if left is not None:
        msg = f"its weights {left.name!r} are stored in {_location(left)!r} and were not loaded; load it with onnx.load(path), or pass the path"
        raise FileError(msg)
