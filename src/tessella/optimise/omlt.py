"""Networks and their bounds for OMLT, in Pyomo: a network definition, and a formulation that knows the bounds of all neurons.

OMLT takes bounds of inputs and computes those of neurons by interval arithmetic, layer by layer, for its big-M rows.  Its formulations take other functions for activations, and that is what is
done here: such a function sets the proved bounds first.  It also knows layers that OMLT has none for: with ReLUs beside linear units, as `tessella.compress` makes them, and leaky ones.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tessella.domain import check_bounded
from tessella.errors import OptionError
from tessella.optimise.neurons import Neurons, check_inputs, neurons, package
from tessella.stability import Stability

_ACTIVATION = "tessella"


def definition(stability: Stability) -> Any:
    """An OMLT network definition of a stability's network, with the bounds of its inputs.

    Its layers have an activation that only `formulation` knows, unless they are all ReLUs, or all linear.

    Parameters
    ----------
    stability
        What `tessella.stability` found; its domain's box gives the bounds of inputs.  Inequalities of a polytope are left to the caller.

    Examples
    --------
    Where OMLT is installed::

        known = tessella.stability("model.onnx", (0, 1), units="all")
        model.nn = omlt.OmltBlock()
        model.nn.build_formulation(tessella.optimise.omlt.formulation(known))
    """
    neuralnet = package("omlt", "omlt.neuralnet")
    layers = package("omlt", "omlt.neuralnet.layer")
    neurons(stability)
    network, box = stability.network, stability.domain.box
    ends = {number: (float(low), float(high)) for number, (low, high) in enumerate(zip(box.lower, box.upper, strict=True))}
    made = neuralnet.NetworkDefinition(scaled_input_bounds=ends)
    before = layers.InputLayer([network.input_dim])
    made.add_layer(before)
    for layer in network.layers:
        kind = (
            "relu"
            if layer.is_plain and layer.rectified.all()
            else "linear"
            if layer.is_plain and not layer.relus
            else _ACTIVATION
        )
        dense = layers.DenseLayer([layer.inputs], [layer.units], activation="linear", weights=layer.dense().T, biases=layer.bias)
        dense.activation = kind
        made.add_layer(dense)
        made.add_edge(before, dense)
        before = dense
    return made


def formulation(stability: Stability, network: Any = None, *, trusted: bool = False) -> Any:
    """An OMLT formulation with big-M rows as tight as the proved bounds; stable ReLUs have no open binary.

    Parameters
    ----------
    stability
        What `tessella.stability` found.  With ``units="all"`` the bounds of linear and output units are exact, too.
    network
        An OMLT network definition of the same network, from OMLT's own readers, say; by default that of `definition`.  Inputs must be unscaled, or the network be the one that reads scaled inputs.
    trusted
        Whether to take for granted that inputs lie in the stability's domain.  Otherwise the bounds of the definition's inputs must say so.

    Returns
    -------
    A formulation for ``OmltBlock.build_formulation``.
    """
    neuralnet = package("omlt", "omlt.neuralnet")
    check_bounded(stability.domain, "a big-M formulation")
    given = definition(stability) if network is None else network
    known = _matched(stability, given)
    _check_box(stability, given, trusted=trusted)
    rules = {name: _rule(known) for name in ("relu", "linear", _ACTIVATION)}
    return neuralnet.FullSpaceNNFormulation(given, activation_constraints=rules)


def _matched(stability: Stability, given: Any) -> Mapping[int, Neurons]:
    """The bounds of each layer of a definition; raises unless its layers are those of the network."""
    layers = [layer for layer in given.layers if hasattr(layer, "weights")]
    known = neurons(stability)
    theirs = [int(np.prod(layer.output_size)) for layer in layers]
    ours = [one.layer.units for one in known]
    if theirs != ours:
        msg = f"the OMLT network has layers of {theirs} units, but the bounds are those of {stability.network!r}; give the stability of the same network"
        raise OptionError(msg)
    for number, (layer, one) in enumerate(zip(layers, known, strict=True), start=1):
        kinds = {"relu": one.layer.rectified.all() and one.layer.is_plain, "linear": not one.layer.relus, _ACTIVATION: True}
        dense = len(layer.output_size) == 1 and np.shape(layer.weights) == (one.layer.inputs, one.layer.units)
        if not kinds.get(layer.activation, False) or (
            dense and np.abs(np.asarray(layer.weights).T - one.layer.dense()).max() > 1e-5
        ):
            msg = f"layer {number} of the OMLT network is not that of {stability.network!r}, whose bounds these are; give the stability of the same network"
            raise OptionError(msg)
    return {id(layer): one for layer, one in zip(layers, known, strict=True)}


def _check_box(stability: Stability, given: Any, *, trusted: bool) -> None:
    """Raise if the definition allows inputs for which the bounds were not proved."""
    bounds = given.scaled_input_bounds
    if bounds is None:
        msg = "the OMLT network has no bounds of its inputs; give it scaled_input_bounds within the domain of the stability"
        raise OptionError(msg)
    ends = np.array([bounds[key] for key in sorted(bounds)], dtype=np.float64)
    check_inputs(stability, ends[:, 0], ends[:, 1], trusted=trusted)


def _rule(known: Mapping[int, Neurons]) -> Callable[[Any, Any, Any, Any], None]:
    """The constraints of an activation: bounds first, then a few rows per unit."""

    def rule(_net_block: Any, _network: Any, block: Any, layer: Any) -> None:
        pyomo = package("pyomo", "pyomo.environ")
        one, indexes = known[id(layer)], list(layer.output_indexes)
        open_units = [index for unit, index in enumerate(indexes) if _is_open(one, unit)]
        block.open_relu = pyomo.Set(initialize=open_units, dimen=len(indexes[0]))
        block.q_relu = pyomo.Var(block.open_relu, within=pyomo.Binary)
        block.tessella = pyomo.ConstraintList()
        for unit, index in enumerate(indexes):
            before, behind = block.zhat[index], block.z[index]
            _narrow(before, one.lower[unit], one.upper[unit])
            _narrow(behind, one.least[unit], one.most[unit])
            if not _is_open(one, unit):
                block.tessella.add(behind == _factor(one, unit) * before)
                continue
            low, high, slope = before.lb, before.ub, float(one.layer.slope[unit])
            active = block.q_relu[index]
            over = behind - slope * before  # (1 - slope) times the positive part
            rise = 1.0 - slope
            rows = [
                over >= 0,
                over >= rise * before,
                over <= rise * before - rise * low * (1 - active),
                over <= rise * high * active,
            ]
            if rise < 0.0:
                rows = [
                    over <= 0,
                    over <= rise * before,
                    over >= rise * before - rise * low * (1 - active),
                    over >= rise * high * active,
                ]
            for row in rows:
                block.tessella.add(row)

    return rule


def _is_open(one: Neurons, unit: int) -> bool:
    return bool(one.layer.rectified[unit] and not one.active[unit] and not one.inactive[unit])


def _factor(one: Neurons, unit: int) -> float:
    """What a unit without a choice multiplies its preactivation with."""
    return 1.0 if one.active[unit] else float(one.layer.slope[unit])


def _narrow(variable: Any, low: float, high: float) -> None:
    below, above = variable.lb, variable.ub
    variable.setlb(float(low) if below is None else max(below, float(low)))
    variable.setub(float(high) if above is None else min(above, float(high)))
