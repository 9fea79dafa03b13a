"""Images of digits with their labels, scaled to [0, 1]: MNIST from a path, or the small ones that come with scikit-learn."""

import gzip
import hashlib
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import tessella

CLASSES: Final = 10
PARTS: Final = ("x_train", "y_train", "x_test", "y_test")

_WHAT_TO_GIVE: Final = (
    f"give an .npz file with {', '.join(PARTS)}, or a folder with the four MNIST files train-images-idx3-ubyte[.gz], ..."
)
_IDX_STEMS: Final = {
    "x_train": ("train-images", "idx3"),
    "y_train": ("train-labels", "idx1"),
    "x_test": ("t10k-images", "idx3"),
    "y_test": ("t10k-labels", "idx1"),
}
_UNREADABLE: Final = (OSError, EOFError, ValueError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """Images in [0, 1], one flat row each, and labels from 0 to 9.

    Parameters
    ----------
    name
        What they are called in the index of networks.
    x_train, y_train, x_test, y_test
        The images as float32 (images, pixels), and the labels as int64.
    """

    name: str
    x_train: npt.NDArray[np.float32]
    y_train: npt.NDArray[np.int64]
    x_test: npt.NDArray[np.float32]
    y_test: npt.NDArray[np.int64]

    @property
    def inputs(self) -> int:
        """Pixels of one image."""
        return int(self.x_train.shape[1])

    def record(self) -> dict[str, Any]:
        """Name, sizes, and a hash of all numbers, to tell whether two networks were trained on the same images."""
        digest = hashlib.sha256()
        for part in PARTS:
            digest.update(np.ascontiguousarray(getattr(self, part)).data)
        return {
            "data": self.name,
            "data_sha256": digest.hexdigest(),
            "training_images": len(self.y_train),
            "test_images": len(self.y_test),
        }


def read_mnist(path: Path) -> Digits:
    """Read MNIST, or anything of the same layout, from an ``.npz`` file or a folder of idx files.

    Parameters
    ----------
    path
        A file with the arrays ``x_train``, ``y_train``, ``x_test`` and ``y_test``, or a folder with the four idx files, plain or
        as ``.gz``.
    """
    if path.is_dir():
        arrays = _read_idx_folder(path)
    elif path.exists():
        arrays = _read_npz(path)
    else:
        msg = f"{path}: there is no such file or folder; {_WHAT_TO_GIVE}"
        raise tessella.FileMissing(msg)
    x_train, y_train = _checked(path, "train", arrays["x_train"], arrays["y_train"])
    x_test, y_test = _checked(path, "test", arrays["x_test"], arrays["y_test"])
    if x_train.shape[1] != x_test.shape[1]:
        msg = f"{path}: x_train has {x_train.shape[1]} pixels per image, x_test {x_test.shape[1]}; they must agree"
        raise tessella.FileError(msg)
    return Digits(path.resolve().name, x_train, y_train, x_test, y_test)


def scikit_learn_digits() -> Digits:
    """The 1,797 digits of 8 x 8 pixels that come with scikit-learn: 1,437 to train on, 360 to test."""
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415  optional, and only needed here
    except ImportError as error:
        msg = "--digits needs scikit-learn, which is not installed; install it with: pip install scikit-learn"
        raise tessella.MissingPackage(msg) from error
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))  # the file is sorted by writer
    images, labels = (images[order] / 16.0).astype(np.float32), labels[order].astype(np.int64)
    return Digits("scikit-learn digits", images[:1437], labels[:1437], images[1437:], labels[1437:])


def _read_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            arrays = {part: loaded[part] for part in PARTS if part in getattr(loaded, "files", ())}
    except _UNREADABLE as error:
        msg = f"{path}: cannot be read as an .npz file of plain arrays; {_WHAT_TO_GIVE}"
        raise tessella.FileError(msg) from error
    missing = [part for part in PARTS if part not in arrays]
    if missing:
        msg = f"{path}: has no array {', '.join(missing)}; {_WHAT_TO_GIVE}"
        raise tessella.FileError(msg)
    return arrays


def _read_idx_folder(folder: Path) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {}
    for part, (stem, kind) in _IDX_STEMS.items():
        names = [f"{stem}{separator}{kind}-ubyte{ending}" for separator in "-." for ending in ("", ".gz")]
        found = next((folder / name for name in names if (folder / name).is_file()), None)
        if found is None:
            msg = f"{folder}: has no file {names[0]} or {names[1]}; {_WHAT_TO_GIVE}"
            raise tessella.FileMissing(msg)
        arrays[part] = _read_idx(found, dimensions=3 if kind == "idx3" else 1)
    return arrays


def _read_idx(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """Bytes behind a header: two zeros, the type 8 (unsigned bytes), the number of dimensions, and the big-endian sizes."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except _UNREADABLE as error:
        msg = f"{path}: cannot be read ({error}); fetch the file again"
        raise tessella.FileError(msg) from error
    start = 4 + 4 * dimensions
    if len(content) < start or content[:4] != bytes([0, 0, 8, dimensions]):
        msg = f"{path}: is no idx file of unsigned bytes in {dimensions} dimension{'s' if dimensions > 1 else ''}"
        raise tessella.FileError(msg)
    shape = tuple(int(size) for size in np.frombuffer(content, dtype=">u4", count=dimensions, offset=4))
    if len(content) - start != np.prod(shape, dtype=object):
        msg = f"{path}: announces the shape {shape} but holds {len(content) - start:,} bytes; fetch the file again"
        raise tessella.FileError(msg)
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _checked(
    path: Path, part: str, images: npt.NDArray[Any], labels: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Flat images in [0, 1] and their labels, or what is wrong with them."""
    if images.ndim < 2 or images.size == 0 or labels.shape != images.shape[:1]:
        msg = f"{path}: x_{part} has shape {images.shape} and y_{part} {labels.shape}; expected (n, 28, 28) and (n,)"
        raise tessella.FileError(msg)
    if labels.dtype.kind not in "iu":
        msg = f"{path}: y_{part} holds {labels.dtype}; expected whole numbers from 0 to {CLASSES - 1}"
        raise tessella.FileError(msg)
    if labels.min() < 0 or labels.max() >= CLASSES:
        msg = f"{path}: y_{part} reaches from {labels.min()} to {labels.max()}; expected labels from 0 to {CLASSES - 1}"
        raise tessella.FileError(msg)
    if images.dtype.kind not in "iuf":
        msg = f"{path}: x_{part} holds {images.dtype}; expected grey levels from 0 to 255, or numbers from 0 to 1"
        raise tessella.FileError(msg)
    largest = 255 if images.dtype.kind in "iu" else 1
    if not (images.min() >= 0 and images.max() <= largest):  # written so that a NaN is refused too
        msg = f"{path}: x_{part} reaches from {images.min()} to {images.max()}; expected {images.dtype} from 0 to {largest}"
        raise tessella.FileError(msg)
    flat = images.reshape(len(images), -1).astype(np.float32)
    flat /= np.float32(largest)
    return flat, labels.astype(np.int64)
