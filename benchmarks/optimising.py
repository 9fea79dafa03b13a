"""What proved bounds of neurons bring to those who optimise over networks.

``python benchmarks/optimising.py mnist.npz`` solves 20 problems, each with the bounds that a package finds itself and with those of Tessella: adversarial examples within a ball, maxima of an output, and
inverse problems (inputs whose outputs are as near as possible to given ones).  PySCIPOpt-ML writes them for SCIP, OMLT for HiGHS, gurobi-ml for Gurobi (as far as its free licence goes).
Times are CPU seconds of one thread; Tessella's time for the bounds is added to the solver's.
"""

import argparse
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import gurobi_ml
import gurobipy
import numpy as np
import omlt
import omlt.neuralnet
import pyomo.environ as pyo
import pyscipopt
import torch
from pyscipopt_ml.add_predictor import add_predictor_constr
from torch import nn

import tessella
from tessella.optimise import gurobi_ml as for_gurobi
from tessella.optimise import omlt as for_omlt
from tessella.optimise import pyscipopt_ml as for_scip


@dataclass(frozen=True)
class Problem:
    """A network, where its inputs are, and what is asked of its outputs: the largest sum with factors, or the smallest distance from a goal."""

    name: str
    module: nn.Sequential
    box: tessella.Box
    factors: np.ndarray | None = None
    goal: np.ndarray | None = None


def fitted(
    sizes: list[int], inputs: np.ndarray, outputs: np.ndarray, seed: int, steps: int, *, classes: bool = False
) -> nn.Sequential:
    """A network in double precision, trained by Adam."""
    torch.manual_seed(seed)
    parts: list[nn.Module] = []
    for before, after in pairwise(sizes):
        parts += [nn.Linear(before, after), nn.ReLU()]
    module = nn.Sequential(*parts[:-1]).double()
    optimiser, rng = torch.optim.Adam(module.parameters(), 3e-3), np.random.default_rng(seed)
    given, wanted = torch.tensor(inputs), torch.tensor(outputs)
    for _ in range(steps):
        some = torch.tensor(rng.integers(0, len(inputs), 256))
        loss = (
            nn.functional.cross_entropy(module(given[some]), wanted[some])
            if classes
            else nn.functional.mse_loss(module(given[some]), wanted[some])
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return module.eval()


def problems(data: str) -> list[Problem]:
    """Twenty: 8 adversarial examples, 6 maxima, 6 inverse problems; 14 have 784 inputs, 6 have 4 or 8."""
    with np.load(data) as file:
        images, labels = file["x_train"][:20000].reshape(-1, 784) / 255.0, file["y_train"][:20000].astype(np.int64)
    found = list[Problem]()
    for seed, (hidden, radius) in enumerate((([20, 20], 0.08), ([15, 15, 15], 0.06), ([12, 12, 12, 12], 0.05))):
        module = fitted([784, *hidden, 10], images, labels, seed, 600, classes=True)
        with torch.no_grad():
            scores = module(torch.tensor(images[:20])).numpy()
        name = f"784-{'-'.join(map(str, hidden))}-10"
        for image in range(3 if seed < 2 else 2):
            first, second = np.argsort(scores[image])[::-1][:2]
            factors = np.zeros(10)
            factors[first], factors[second] = -1.0, 1.0
            found.append(Problem(f"adversarial, {name}, image {image}", module, _ball(images[image], radius), factors))
        found.append(Problem(f"maximum, {name}, image 5", module, _ball(images[5], radius), np.eye(10)[0]))
        found.append(Problem(f"inverse, {name}, image 6", module, _ball(images[6], radius), goal=scores[6] + np.eye(10)[0]))
    for seed in range(6):
        rng, dim, hidden = np.random.default_rng([1, seed]), (4, 8)[seed % 2], [12, 12, 12]
        inputs = rng.uniform(-1, 1, (4000, dim))
        waves = [rng.standard_normal((2, dim)) / np.sqrt(dim) for _ in range(3)]
        outputs = np.stack([np.sin(4.5 * inputs @ one) + np.cos(2.0 * inputs @ other) for one, other in waves], axis=1)
        module, box = fitted([dim, *hidden, 3], inputs, outputs, seed, 600), tessella.Box(-1, 1, dim=dim)
        name = f"{dim}-12-12-12-3, network {seed}"
        if seed < 3:
            found.append(Problem(f"maximum, {name}", module, box, np.eye(3)[0]))
        else:
            found.append(Problem(f"inverse, {name}", module, box, goal=outputs[0] + 0.5))
    return found


def _ball(image: np.ndarray, radius: float) -> tessella.Box:
    return tessella.Box.around(image, radius, within=tessella.Box(0, 1, dim=784))


def by_scip(problem: Problem, known: tessella.Stability | None, seconds: float) -> tuple[float, float, bool]:
    """The optimum, CPU seconds, and whether it is proved."""
    model = pyscipopt.Model()
    model.hideOutput()
    ends = zip(problem.box.lower.tolist(), problem.box.upper.tolist(), strict=True)
    x = np.array([[model.addVar(lb=low, ub=high) for low, high in ends]])
    added = add_predictor_constr(model, problem.module, x, formulation="bigm")
    outputs = [added.output[0][number] for number in range(added.output.shape[1])]
    if known is not None:
        for_scip.add_bounds(added, known)
    if problem.factors is not None:
        model.setObjective(
            pyscipopt.quicksum(float(f) * y for f, y in zip(problem.factors, outputs, strict=True) if f), "maximize"
        )
    else:
        away = [model.addVar() for _ in outputs]
        for gap, y, goal in zip(away, outputs, problem.goal.tolist(), strict=True):
            model.addCons(gap >= y - goal)
            model.addCons(gap >= goal - y)
        model.setObjective(pyscipopt.quicksum(away))
    model.setParam("limits/time", seconds)
    model.setParam("timing/clocktype", 1)
    start = time.process_time()
    model.optimize()
    return model.getObjVal(), time.process_time() - start, model.getStatus() == "optimal"


def by_highs(problem: Problem, known: tessella.Stability | None, seconds: float) -> tuple[float, float, bool]:
    """The same."""
    model = pyo.ConcreteModel()
    model.nn = omlt.OmltBlock()
    loose = tessella.stability(problem.module, problem.box, method="interval")
    formulation = for_omlt.formulation(known) if known else omlt.neuralnet.ReluBigMFormulation(for_omlt.definition(loose))
    model.nn.build_formulation(formulation)
    outputs = [model.nn.outputs[number] for number in range(len(model.nn.outputs))]
    if problem.factors is not None:
        expression = sum(float(f) * y for f, y in zip(problem.factors, outputs, strict=True) if f)
        model.best = pyo.Objective(expr=expression, sense=pyo.maximize)
    else:
        model.gap = pyo.Var(range(len(outputs)), within=pyo.NonNegativeReals)
        model.rows = pyo.ConstraintList()
        for number, (y, goal) in enumerate(zip(outputs, problem.goal.tolist(), strict=True)):
            model.rows.add(model.gap[number] >= y - goal)
            model.rows.add(model.gap[number] >= goal - y)
        model.best = pyo.Objective(expr=sum(model.gap[number] for number in range(len(outputs))))
    solver = pyo.SolverFactory("appsi_highs")
    solver.options.update({"threads": 1, "time_limit": seconds, "mip_rel_gap": 1e-6})
    start = time.process_time()
    found = solver.solve(model, load_solutions=False)
    spent = time.process_time() - start
    proved = str(found.solver.termination_condition) == "optimal"
    if proved:
        solver.load_vars()
    return (pyo.value(model.best) if proved else float("nan")), spent, proved


def by_gurobi(problem: Problem, known: tessella.Stability | None, seconds: float) -> tuple[float, float, bool]:
    """The same."""
    model = gurobipy.Model(env=gurobipy.Env(params={"OutputFlag": 0, "Threads": 1, "TimeLimit": seconds, "MIPGap": 1e-6}))
    x = model.addMVar((1, problem.box.dim), lb=problem.box.lower[None], ub=problem.box.upper[None])
    added = gurobi_ml.add_predictor_constr(model, problem.module, x)
    if known is not None:
        for_gurobi.add_bounds(added, known)
    if problem.factors is not None:
        model.setObjective(added.output[0] @ problem.factors, gurobipy.GRB.MAXIMIZE)
    else:
        gap = model.addMVar(len(problem.goal))
        model.addConstr(gap >= added.output[0] - problem.goal)
        model.addConstr(gap >= problem.goal - added.output[0])
        model.setObjective(gap.sum(), gurobipy.GRB.MINIMIZE)
    start = time.process_time()
    model.optimize()
    return model.ObjVal, time.process_time() - start, model.Status == gurobipy.GRB.OPTIMAL


SOLVERS: dict[str, Callable[[Problem, tessella.Stability | None, float], tuple[float, float, bool]]] = {
    "SCIP": by_scip,
    "HiGHS": by_highs,
    "Gurobi": by_gurobi,
}


def bounds(problem: Problem, method: str) -> tuple[tessella.Stability, float]:
    """Tessella's, and its CPU seconds."""
    start = time.process_time()
    found = tessella.stability(problem.module, problem.box, method=method, units="all", seconds_per_unit=1.0)
    return found, time.process_time() - start


def main() -> None:
    """A line for each problem, and medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--method", default="milp")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one solve, after which it counts as that long")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of problems")
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("pyomo").setLevel(logging.ERROR)  # that OMLT starts variables at 0
    chosen = problems(given.data)
    chosen = [chosen[number] for number in given.only] if given.only else chosen
    for method in ("milp", "linear"):
        bounds(chosen[-1], method)  # loads compiled code
    heads = ["problem", "open ReLUs", "bounds, s", *(f"{name}: without, with, ratio" for name in SOLVERS), "same optimum"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads), flush=True)
    ratios: dict[str, list[float]] = {name: [] for name in SOLVERS}
    for problem in chosen:
        known, spent = bounds(problem, given.method)
        cells, optima = [problem.name, str(known.totals()["unstable"]), f"{spent:.2f}"], list[float]()
        for name, solve in SOLVERS.items():
            try:
                (one, without, sure), (other, within, settled) = (
                    solve(problem, None, given.seconds),
                    solve(problem, known, given.seconds),
                )
            except gurobipy.GurobiError as error:
                cells.append(str(error)[:40])
                continue
            optima += [value for value, proved in ((one, sure), (other, settled)) if proved]
            ratios[name].append(without / (within + spent))
            marks = "" if sure else ">", "" if settled else ">"
            cells.append(f"{marks[0]}{without:.2f}, {marks[1]}{within:.2f}, {ratios[name][-1]:.1f}")
        same = max(optima) - min(optima) <= 1e-4 * (1.0 + abs(optima[0])) if optima else None
        print("| " + " | ".join([*cells, {True: "yes", False: "NO", None: "-"}[same]]) + " |", flush=True)
    for name, found in ratios.items():
        print(f"{name}: median {median(found):.1f} times as fast with bounds, their time included ({len(found)} problems)")


if __name__ == "__main__":
    main()
