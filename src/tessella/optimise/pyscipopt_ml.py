"""Bounds for PySCIPOpt-ML: set on the variables of a network that ``pyscipopt_ml.add_predictor_constr`` added, and in its big-M rows, before SCIP starts.

PySCIPOpt-ML propagates the bounds of inputs through the layers by interval arithmetic while it adds them, and has no option for better ones.  With ``formulation="bigm"`` it writes these into the
coefficients of rows, where bounds that are set later do not reach them: so the coefficients are changed, too.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from tessella.optimise.neurons import Handed, Neurons, Step, check_inputs, handed, matched, package
from tessella.stability import Stability


def add_bounds(constraint: Any, stability: Stability, *, trusted: bool = False) -> Handed:
    """Set proved bounds on all neurons of a network in a SCIP model.

    Parameters
    ----------
    constraint
        What ``pyscipopt_ml.add_predictor_constr`` returned, of a network of dense layers and ReLUs, with either of its formulations ("sos" or "bigm").
    stability, trusted
        As in `tessella.optimise.gurobi_ml.add_bounds`, and so is what is returned.

    Examples
    --------
    Where PySCIPOpt-ML is installed::

        added = pyscipopt_ml.add_predictor_constr(scip, module, x, y, formulation="bigm")
        tessella.optimise.pyscipopt_ml.add_bounds(added, tessella.stability(module, (0, 1), units="all"))
    """
    package("pyscipopt-ml", "pyscipopt_ml")
    scip = constraint.scip_model
    for row in np.asarray(constraint.input, dtype=object).reshape(-1, constraint.input.shape[-1]):
        ends = np.array([[_end(scip, one.getLbOriginal()), _end(scip, one.getUbOriginal())] for one in row])
        check_inputs(stability, ends[:, 0], ends[:, 1], trusted=trusted)
    found = matched(stability, _steps(constraint), "PySCIPOpt-ML")
    for step, layer in found:
        _set(scip, step, layer)
    return handed([layer for _, layer in found])


def _end(scip: Any, value: float) -> float:
    """A bound, infinite if SCIP takes it for that."""
    return float(np.copysign(np.inf, value)) if scip.isInfinity(abs(value)) else value


def _steps(constraint: Any) -> list[Step]:
    found = list[Step]()
    for layer in constraint:
        relu = layer.activation == "relu"
        extra = layer._created_vars[0] if relu and layer._created_vars else None  # noqa: SLF001  nothing else names them
        rows = layer._created_cons[-2:] if extra is not None and layer.formulation == "bigm" else None  # noqa: SLF001  likewise
        if not hasattr(layer, "coefs"):
            found[-1] = replace(found[-1], behind=layer.output, extra=extra, rows=rows)
        elif relu:
            found.append(Step(layer.coefs, layer.intercept, None, layer.output, extra, rows))
        else:
            found.append(Step(layer.coefs, layer.intercept, layer.output, None))
    return found


def _set(scip: Any, step: Step, known: Neurons) -> None:
    if step.before is not None:
        _bound(scip, step.before, known.lower, known.upper)
    if step.behind is None:
        return
    _bound(scip, step.behind, known.least, known.most)
    if step.extra is None:
        return
    if step.rows is not None:
        _bound(scip, step.extra, np.where(known.active, 1.0, 0.0), np.where(known.inactive, 0.0, 1.0))
        _tighten(scip, step, known)
    else:  # the negative part
        _bound(scip, step.extra, np.maximum(-known.upper, 0.0), np.maximum(-known.lower, 0.0))


def _tighten(scip: Any, step: Step, known: Neurons) -> None:
    """Put the bounds into the big-M rows of open ReLUs; those of others have a binary variable that is fixed, and say the right thing whatever M is."""
    inactive, active = step.rows
    least, most = np.minimum(known.lower, 0.0), np.maximum(known.upper, 0.0)
    for index in np.ndindex(*step.extra.shape):
        unit = index[-1]
        if known.active[unit] or known.inactive[unit]:
            continue
        constant = 0.0 if step.before is not None else float(np.ravel(step.bias)[unit])
        binary = step.extra[index]
        scip.chgCoefLinear(inactive[index], binary, -float(least[unit]))
        scip.chgRhs(inactive[index], constant - float(least[unit]))
        scip.chgCoefLinear(active[index], binary, -float(most[unit]))


def _bound(scip: Any, variables: Any, low: Any, high: Any) -> None:
    for index in np.ndindex(*variables.shape):
        one, unit = variables[index], index[-1]
        if low[unit] > one.getLbOriginal():
            scip.chgVarLb(one, float(low[unit]))
        if high[unit] < one.getUbOriginal():
            scip.chgVarUb(one, float(high[unit]))
