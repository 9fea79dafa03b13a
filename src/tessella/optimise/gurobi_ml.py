"""Bounds for gurobi-machinelearning: set on the variables of a network that ``gurobi_ml.add_predictor_constr`` added.

gurobi-ml has no option for bounds of neurons (its issue 237 asks for one); its maintainers point to the variables that each layer keeps.  Gurobi turns the maxima of these variables
into rows with coefficients as tight as the bounds are, and a ReLU with one sign into an equation.
"""

from typing import Any, NamedTuple

import numpy as np

from tessella.optimise.neurons import Handed, Neurons, check_inputs, check_same, handed, package
from tessella.stability import Stability


class _Step(NamedTuple):
    """An affine map of gurobi-ml, and the variables before and behind its ReLU."""

    weight: Any
    bias: Any
    before: Any
    behind: Any


def add_bounds(constraint: Any, stability: Stability, *, trusted: bool = False) -> Handed:
    """Set proved bounds on all neurons of a network in a Gurobi model.

    Parameters
    ----------
    constraint
        What ``gurobi_ml.add_predictor_constr`` returned, of a network of dense layers and ReLUs: a PyTorch Sequential, a Keras or ONNX model, or scikit-learn's MLP.
    stability
        What `tessella.stability` found for the same network.  With ``units="all"`` the bounds of linear and output units are exact, too.
    trusted
        Whether to take for granted that inputs lie in the stability's domain.  Otherwise the input variables' own bounds must say so.

    Returns
    -------
    How many units' bounds were set, and how many of these are stable.

    Examples
    --------
    Where gurobi-machinelearning is installed::

        added = gurobi_ml.add_predictor_constr(model, module, x, y)
        tessella.optimise.gurobi_ml.add_bounds(added, tessella.stability(module, (0, 1), units="all"))
    """
    package("gurobi-machinelearning", "gurobi_ml")
    model = constraint.gp_model
    model.update()
    lower, upper = constraint.input.LB, constraint.input.UB
    for row in range(lower.shape[0]):
        check_inputs(stability, np.asarray(lower[row]), np.asarray(upper[row]), trusted=trusted)
    steps = _steps(constraint)
    known = check_same(
        stability,
        [step.weight.T for step in steps],
        [step.bias for step in steps],
        [step.behind is not None for step in steps],
        "gurobi-ml",
    )
    for step, layer in zip(_last_of_each(steps), known, strict=True):
        _set(step, layer)
    model.update()
    return handed(known)


def _steps(constraint: Any) -> list[_Step]:
    found = list[_Step]()
    for layer in constraint:
        if not hasattr(layer, "coefs"):
            found[-1] = found[-1]._replace(behind=layer.output)
        elif hasattr(layer, "mixing"):
            found.append(_Step(layer.coefs, layer.intercept, layer.mixing, layer.output))
        else:
            found.append(_Step(layer.coefs, layer.intercept, layer.output, None))
    return found


def _last_of_each(steps: list[_Step]) -> list[_Step]:
    """Those whose preactivations Tessella knows: the last ones of runs without a ReLU between."""
    return [step for number, step in enumerate(steps) if step.behind is not None or number == len(steps) - 1]


def _set(step: _Step, known: Neurons) -> None:
    pairs = [(step.before, known.lower, known.upper)]
    if step.behind is not None:
        pairs.append((step.behind, known.least, known.most))
    for variables, low, high in pairs:
        variables.LB = np.maximum(variables.LB, low)
        variables.UB = np.minimum(variables.UB, high)
