"""Bounds for gurobi-machinelearning: set on the variables of a network that ``gurobi_ml.add_predictor_constr`` added.

gurobi-ml has no option for bounds of neurons (https://github.com/Gurobi/gurobi-machinelearning/issues/237); its maintainers point to the variables that each layer keeps.  Gurobi turns the maxima of these variables
into rows with coefficients as tight as the bounds are, and a ReLU with one sign into an equation.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from tessella.optimise.neurons import Handed, Neurons, Step, check_inputs, handed, matched, package
from tessella.stability import Stability


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
    found = matched(stability, _steps(constraint), "gurobi-ml")
    for step, layer in found:
        _set(step, layer)
    model.update()
    return handed([layer for _, layer in found])


def _steps(constraint: Any) -> list[Step]:
    found = list[Step]()
    for layer in constraint:
        if not hasattr(layer, "coefs"):
            found[-1] = replace(found[-1], behind=layer.output)
        elif hasattr(layer, "mixing"):
            found.append(Step(layer.coefs, layer.intercept, layer.mixing, layer.output))
        else:
            found.append(Step(layer.coefs, layer.intercept, layer.output, None))
    return found


def _set(step: Step, known: Neurons) -> None:
    pairs = [(step.before, known.lower, known.upper)]
    if step.behind is not None:
        pairs.append((step.behind, known.least, known.most))
    for variables, low, high in pairs:
        variables.LB = np.maximum(variables.LB, low)
        variables.UB = np.minimum(variables.UB, high)
