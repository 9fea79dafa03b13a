"""Multi-layer perceptrons of other libraries: scikit-learn's estimators, Equinox' MLP."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella.errors import UnsupportedModel, UnsupportedOperator
from tessella.importers.check import checked
from tessella.importers.parameters import numbers
from tessella.network import Floats, Layer, Network, Source

_POINTS = np.array([-2.0, -0.5, 0.0, 0.5, 3.0])
_SMOOTH = frozenset({"softmax", "log_softmax", "sigmoid", "tanh", "logistic", "softplus"})


def is_fitted_like(source: object) -> bool:
    """Whether this has what scikit-learn's multi-layer perceptrons have."""
    return hasattr(source, "hidden_layer_sizes") and hasattr(source, "activation") and hasattr(source, "predict")


def from_estimator(estimator: Any) -> Network:
    """Read scikit-learn's MLPClassifier or MLPRegressor.

    Parameters
    ----------
    estimator
        The estimator, once it is fitted.  What it makes of its outputs to give probabilities is left off.
    """
    name = type(estimator).__name__
    if not hasattr(estimator, "coefs_"):
        msg = f"{name}: is not fitted, so it has no weights yet; call fit(X, y) first"
        raise UnsupportedModel(msg)
    kind, end = str(estimator.activation), str(estimator.out_activation_)
    if kind not in {"relu", "identity"}:
        msg = f"{name}: its hidden units are {kind!r}, which is not piecewise linear; train it with activation='relu'"
        raise UnsupportedOperator(msg)
    if end not in _PROBABILITIES:
        msg = f"{name}: its output is {end!r}; only {', '.join(_PROBABILITIES)} are known; write the layers down, as in tessella.load((coefs_, intercepts_))"
        raise UnsupportedOperator(msg)
    pairs = [(numbers(weight).T, numbers(bias)) for weight, bias in zip(estimator.coefs_, estimator.intercepts_, strict=True)]
    bare = _network(pairs, rectified=kind == "relu", notes=() if end == "identity" else (end,))
    predict = estimator.predict_proba if end in {"softmax", "logistic"} else estimator.predict

    def forward(point: Floats) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the names of the columns that it was fitted with
            return np.asarray(predict(point[None]), dtype=np.float64)

    return checked(bare, Source("scikit-learn", name, (bare.input_dim,)), forward, after=_PROBABILITIES[end])


def _network(pairs: list[tuple[Any, Any]], *, rectified: bool, notes: tuple[str, ...]) -> Network:
    layers = [Layer(weight, bias, np.array(rectified and place < len(pairs))) for place, (weight, bias) in enumerate(pairs, 1)]
    network = Network(tuple(layers))
    units = (("ReLU", network.relus),) if network.relus else ()
    said = tuple(f"{end} at the end is left off: it changes no region" for end in notes)
    return replace(network, source=Source("", "", units=units, notes=said))


def _softmax(values: Floats) -> Floats:
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _logistic(values: Floats) -> Floats:
    share = 1.0 / (1.0 + np.exp(-values))
    return np.hstack([1.0 - share, share]) if share.shape[1] == 1 else share


_PROBABILITIES: dict[str, Callable[[Floats], Floats] | None] = {
    "identity": None,
    "softmax": _softmax,
    "logistic": _logistic,
    "exp": np.exp,  # of a regressor with loss='poisson'
}


def is_equinox(source: object) -> bool:
    """Whether this is a row of linear layers as Equinox has them."""
    layers: Any = getattr(source, "layers", None)
    if not isinstance(layers, (list, tuple)) or not layers:
        return False
    return all(hasattr(layer, "weight") and hasattr(layer, "bias") for layer in layers)  # pyright: ignore[reportUnknownVariableType]


def from_equinox(model: Any) -> Network:
    """Read Equinox' MLP, or what is made like it: layers of weights (units, inputs), an activation, and one at the end.

    Parameters
    ----------
    model
        The model.
    """
    name = type(model).__name__
    if not _acts_like(getattr(model, "activation", None), lambda x: np.maximum(x, 0.0)):
        msg = f"{name}: its activation {_called(model, 'activation')} is no ReLU; only ReLUs can be read from it"
        raise UnsupportedOperator(msg)
    end = getattr(model, "final_activation", None)
    notes: tuple[str, ...] = ()
    rectified = end is not None and _acts_like(end, lambda x: np.maximum(x, 0.0))
    if end is not None and not rectified and not _acts_like(end, lambda x: x):
        notes = (_called(model, "final_activation"),)
        if notes[0] not in _SMOOTH:
            msg = f"{name}: its final activation {notes[0]} is none that can be left off; {', '.join(sorted(_SMOOTH))} can"
            raise UnsupportedOperator(msg)
    pairs = [(numbers(layer.weight), None if layer.bias is None else numbers(layer.bias)) for layer in model.layers]
    for place, (weight, bias) in enumerate(pairs, start=1):
        if weight.ndim != 2 or (bias is not None and bias.ndim != 1):
            msg = (
                f"{name}: layer {place} has a weight of shape {weight.shape}, so it is no linear layer; pass a list [(W, b), ...]"
            )
            raise UnsupportedModel(msg)
    network = _network(
        [(weight, np.zeros(len(weight)) if bias is None else bias) for weight, bias in pairs], rectified=True, notes=notes
    )
    source = network.source or Source("", "")
    network = network.with_relu_output() if rectified else network
    return replace(network, source=replace(source, kind="equinox", name=name, input_shape=(network.input_dim,)))


def _called(model: Any, attribute: str) -> str:
    function = getattr(model, attribute, None)
    return str(getattr(function, "__name__", type(function).__name__))


def _acts_like(function: Any, other: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> bool:
    """Whether two functions give the same at some points; one that fails does not."""
    try:
        found = np.asarray(function(_POINTS), dtype=np.float64)
    except Exception:  # noqa: BLE001  whatever somebody else's function throws
        return False
    return found.shape == _POINTS.shape and bool(np.allclose(found, other(_POINTS), rtol=1e-6, atol=1e-6))
