"""One layer of a network: an affine map, and what its units make of it."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tessella.errors import NetworkError

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Sparse: TypeAlias = Any  # a scipy.sparse.csr_array; scipy has no types of its own
Weight: TypeAlias = Floats | Sparse


def is_sparse(array: object) -> bool:
    """Whether this is a scipy sparse matrix, without importing scipy to find out."""
    asked = getattr(
        sys.modules.get("scipy.sparse"), "issparse", None
    )  # not there while another thread imports it, and then nobody has one
    return asked is not None and bool(asked(array))


def frozen_floats(values: object, name: str, ndim: int) -> Floats:
    """Copy to a read-only float64 array of finite numbers, or say what is wrong with it."""
    if isinstance(values, np.ma.MaskedArray):
        msg = f"{name} is a masked array; fill in what is masked first"
        raise NetworkError(msg)
    if hasattr(values, "detach"):  # a torch tensor, which may take part in training
        values = cast("Any", values).detach().cpu()
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "biuf":
            msg = f"{name} holds no real numbers (its type is {raw.dtype})"
            raise NetworkError(msg)
        with np.errstate(over="ignore"):  # of longer numbers, which are then said not to be finite
            array = np.array(raw, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, NetworkError):
            raise
        msg = f"{name} cannot be read as an array of numbers: {error}"
        raise NetworkError(msg) from error
    if array.ndim != ndim:
        msg = f"{name} has shape {array.shape}; expected {ndim} dimension{'s' if ndim > 1 else ''}"
        raise NetworkError(msg)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = f" at {where}" if where else ""
        msg = f"{name} holds {array[where]}{place}; every number must be finite"
        raise NetworkError(msg)
    array.flags.writeable = False
    return array


def _frozen_weight(values: object, name: str) -> Weight:
    if not is_sparse(values):
        return frozen_floats(values, name, ndim=2)
    import scipy.sparse  # noqa: PLC0415  heavy, and only needed by those who already use it

    source = cast("Any", values)
    if source.ndim != 2 or source.dtype.kind not in "biuf":
        msg = f"{name} is a sparse array of {source.dtype} with shape {source.shape}; expected real numbers in 2 dimensions"
        raise NetworkError(msg)
    matrix: Sparse = scipy.sparse.csr_array(source, dtype=np.float64, copy=True)
    if not np.isfinite(matrix.data).all():
        msg = f"{name} holds numbers that are not finite; every number must be finite"
        raise NetworkError(msg)
    return frozen_sparse(matrix)


def frozen_sparse(matrix: Sparse) -> Sparse:
    """The same matrix, made read-only in its place: each coefficient once, and none that is 0."""
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


def _slopes(given: object, rectified: Mask) -> Floats:
    """One slope per unit, read-only: that of a linear unit is 1 where none is given."""
    values = frozen_floats(given, "slope", ndim=np.ndim(cast("Any", given)))
    if values.shape not in {(), rectified.shape}:
        msg = f"slope has shape {values.shape}; expected one number, or {len(rectified)}: one per unit"
        raise NetworkError(msg)
    own = np.where(values == 0.0, 1.0, values) if values.ndim else 1.0  # of linear units
    slopes = np.where(rectified, values, own) + 0.0  # -0.0 becomes 0.0
    if (rectified & (slopes == 1.0)).any():
        unit = int(np.argmax(rectified & (slopes == 1.0)))
        msg = f"unit {unit} has the slope 1 on both sides: it is linear, so set its entry of rectified to False"
        raise NetworkError(msg)
    slopes.flags.writeable = False
    return slopes


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """An affine map and a ReLU, or a leaky one, on the units where `rectified` is true.

    A unit passes its preactivation g on where it is active (g > 0), and elsewhere slope * g.

    Parameters
    ----------
    weight
        One row per unit, one column per input; dense or scipy-sparse.
    bias
        One number per unit.
    rectified
        True or False for all units, or one truth value per unit.  Unrectified units are linear: they carry a value on.
    slope
        One number for all rectified units, or one per unit: 0 for a ReLU, 0.01 for a leaky one, -1 for an absolute value.  A linear unit is
        never active: it passes its preactivation times its slope on, which is 1 unless another one (not 0) is given.

    Examples
    --------
    >>> import numpy as np
    >>> import tessella
    >>> tessella.Layer([[1.0, -1.0]], [0.5])
    Layer(2 -> 1, 1 ReLU)
    >>> layer = tessella.Layer([[1.0], [1.0], [1.0]], [0.0, 0.0, 0.0], slope=[0.0, 0.1, -1.0])
    >>> layer, layer.activate(layer.preactivation(np.array([[-2.0]]))).tolist()
    (Layer(1 -> 3, 1 ReLU + 2 leaky), [[0.0, -0.2, 2.0]])
    """

    weight: Weight
    bias: Floats
    rectified: Mask = True  # pyright: ignore[reportAssignmentType]  a scalar is broadcast on the way in
    slope: Floats = 0.0  # pyright: ignore[reportAssignmentType]  so is this one

    if TYPE_CHECKING:  # what may be given; the fields are what is kept

        def __init__(
            self,
            weight: npt.ArrayLike | Sparse,
            bias: npt.ArrayLike,
            rectified: npt.ArrayLike = True,  # noqa: FBT002
            slope: npt.ArrayLike = 0.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Validate, copy, and make read-only."""
        weight = _frozen_weight(self.weight, "weight")
        bias = frozen_floats(self.bias, "bias", ndim=1)
        units, inputs = weight.shape
        if units == 0 or inputs == 0:
            msg = f"weight has shape {weight.shape}; a layer needs at least one input and one unit"
            raise NetworkError(msg)
        if bias.shape != (units,):
            msg = f"weight has shape {weight.shape} (units, inputs), so bias must have {units} numbers; it has {bias.size}"
            raise NetworkError(msg)
        mask = np.asarray(self.rectified)
        if mask.dtype != np.bool_ or mask.shape not in {(), (units,)}:
            msg = f"rectified must be True, False or {units} truth values; got {mask.dtype} of shape {mask.shape}"
            raise NetworkError(msg)
        mask = np.array(np.broadcast_to(mask, (units,)))
        mask.flags.writeable = False
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "bias", bias)
        object.__setattr__(self, "rectified", mask)
        object.__setattr__(self, "slope", _slopes(self.slope, mask))

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return int(self.weight.shape[1])

    @property
    def units(self) -> int:
        """Number of units, linear ones included."""
        return int(self.weight.shape[0])

    @property
    def relus(self) -> int:
        """Number of rectified units."""
        return int(self.rectified.sum())

    @property
    def leaky(self) -> Mask:
        """Which units are rectified and have a slope where they are not active: they never lose what they carry."""
        return self.rectified & (self.slope != 0.0)

    @property
    def is_plain(self) -> bool:
        """Whether all units are ReLUs or pass their preactivation on as it is."""
        return bool((self.slope == ~self.rectified).all())

    @property
    def linear_units(self) -> int:
        """Number of units without a ReLU."""
        return self.units - self.relus

    @property
    def parameters(self) -> int:
        """Number of weights that are stored (non-zeros, if sparse) and of biases."""
        stored = self.weight.size if isinstance(self.weight, np.ndarray) else int(self.weight.nnz)
        return stored + self.units

    def preactivation(self, batch: Floats) -> Floats:
        """The affine map, for a batch of shape (points, inputs)."""
        return np.asarray((self.weight @ batch.T).T) + self.bias

    def activate(self, preactivation: Floats) -> Floats:
        """What the units pass on, for preactivations in the last axis."""
        inactive = preactivation <= 0.0
        values = np.where(self.rectified & inactive, 0.0, preactivation)
        if self.is_plain:
            return values
        return np.where((self.slope != 0.0) & (inactive | ~self.rectified), self.slope * preactivation, values)

    def factors(self, active: Mask) -> Floats:
        """What each unit multiplies its preactivation with where its ReLUs, in the last axis, have these states."""
        result = np.empty((*active.shape[:-1], self.units))
        result[...] = self.slope
        result[..., self.rectified] = np.where(active, 1.0, self.slope[self.rectified])
        return result

    def dense(self) -> Floats:
        """The weight as a dense array."""
        return self.weight if isinstance(self.weight, np.ndarray) else np.asarray(self.weight.toarray())

    def __repr__(self) -> str:
        """One line a person can read."""
        leaky = int(self.leaky.sum())
        kinds = [f"{self.relus - leaky} ReLU"] if self.relus > leaky else []
        kinds += [f"{leaky} leaky"] if leaky else []
        kinds += [f"{self.linear_units} linear"] if self.linear_units else []
        sparse = "" if isinstance(self.weight, np.ndarray) else ", sparse"
        return f"Layer({self.inputs} -> {self.units}, {' + '.join(kinds)}{sparse})"
