"""What proved bounds of neurons bring to those who optimise over networks.

``python benchmarks/optimising.py mnist.npz`` solves 20 problems, each with the bounds that a package finds itself and with those of Tessella: adversarial examples within a ball, maxima of an output, and
inverse problems (inputs whose outputs are as near as possible to given ones).  PySCIPOpt-ML writes them for SCIP (big-M), OMLT for HiGHS (big-M), gurobi-ml for Gurobi (as far as its free
licence goes).  Without Tessella, bounds are those that each package finds itself: PySCIPOpt-ML and OMLT by interval arithmetic, gurobi-ml none, as it leaves that to Gurobi's presolve.
Times are CPU seconds of one thread; Tessella's time for the bounds is added to the solver's.
"""

import argparse
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
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

_PATIENCE = 10.0  # wall seconds for a CPU second, on a busy machine


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


PIXELS = (
    ((25, 25), 0.1, (0, 1, 2)),
    ((20, 20, 20), 0.07, (0, 1, 2)),
    ((40, 20), 0.08, (0, 1)),
)  # hidden layers, radius, images attacked
FEW = ((6, (16, 16, 16)), (8, (24, 24)), (4, (18, 18, 18)))  # inputs, hidden layers


def problems(data: str) -> list[Callable[[], Problem]]:
    """Twenty, each trained when it is called: 8 adversarial examples, 6 maxima, 6 inverse problems; 14 have 784 inputs, 6 have 4 to 8.

    Sizes were chosen by what solvers take without Tessella (2 to 60 s of CPU for most), on one problem of each kind, before anything was measured with its bounds.
    """
    with np.load(data) as file:
        images, labels = file["x_train"][:20000].reshape(-1, 784) / 255.0, file["y_train"][:20000].astype(np.int64)
    found = list[Callable[[], Problem]]()
    for seed, (hidden, radius, attacked) in enumerate(PIXELS):
        module = cache(partial(fitted, [784, *hidden, 10], images, labels, seed, 600, classes=True))
        name = f"784-{'-'.join(map(str, hidden))}-10"
        found += [
            partial(_adversarial, module, images[image], radius, f"adversarial, {name}, image {image}") for image in attacked
        ]
        found.append(partial(_largest, module, _ball(images[5], radius), f"maximum, {name}, image 5"))
        found.append(partial(_inverse, module, images[6], radius, f"inverse, {name}, image 6"))
    for seed, (dim, hidden) in enumerate(FEW, start=len(PIXELS)):
        inputs, outputs = waves(seed, dim)
        module = cache(partial(fitted, [dim, *hidden, 3], inputs, outputs, seed, 600))
        name, box = f"{dim}-{'-'.join(map(str, hidden))}-3", tessella.Box(-1, 1, dim=dim)
        found.append(partial(_largest, module, box, f"maximum, {name}"))
        found.append(partial(_best_of_all, module, box, outputs.max(axis=0), f"inverse, {name}"))
    return found


def waves(seed: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and outputs of a wavy function."""
    rng = np.random.default_rng([1, seed])
    inputs = rng.uniform(-1, 1, (4000, dim))
    pairs = [rng.standard_normal((2, dim)) / np.sqrt(dim) for _ in range(3)]
    return inputs, np.stack([np.sin(4.5 * inputs @ one) + np.cos(2.0 * inputs @ other) for one, other in pairs], axis=1)


def _adversarial(module: Callable[[], nn.Sequential], image: np.ndarray, radius: float, name: str) -> Problem:
    """By how much the second class can pass the first one near an image."""
    factors = np.zeros(10)
    factors[np.argsort(_scores(module(), image))[::-1][:2]] = -1.0, 1.0
    return Problem(name, module(), _ball(image, radius), factors)


def _largest(module: Callable[[], nn.Sequential], box: tessella.Box, name: str) -> Problem:
    """The largest first output."""
    made = module()
    return Problem(name, made, box, np.eye(made[-1].out_features)[0])


def _inverse(module: Callable[[], nn.Sequential], image: np.ndarray, radius: float, name: str) -> Problem:
    """Outputs as near as possible to those of an image, the first one larger by 1."""
    return Problem(name, module(), _ball(image, radius), goal=_scores(module(), image) + np.eye(10)[0])


def _best_of_all(module: Callable[[], nn.Sequential], box: tessella.Box, goal: np.ndarray, name: str) -> Problem:
    """Outputs as near as possible to the best that was seen of each."""
    return Problem(name, module(), box, goal=goal)


def _scores(module: nn.Sequential, image: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return module(torch.tensor(image)).numpy()


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
    solver.options.update({"threads": 1, "time_limit": _PATIENCE * seconds, "mip_rel_gap": 1e-6})  # it knows no CPU seconds
    start = time.process_time()
    found = solver.solve(model, load_solutions=False)
    spent = time.process_time() - start
    proved = str(found.solver.termination_condition) == "optimal"
    if proved:
        solver.load_vars()
    return (pyo.value(model.best) if proved else float("nan")), spent, proved


def by_gurobi(problem: Problem, known: tessella.Stability | None, seconds: float) -> tuple[float, float, bool]:
    """The same."""
    model = gurobipy.Model(
        env=gurobipy.Env(params={"OutputFlag": 0, "Threads": 1, "TimeLimit": _PATIENCE * seconds, "MIPGap": 1e-6})
    )
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


def bounds(problem: Problem, method: str, units: str) -> tuple[tessella.Stability, float]:
    """Tessella's, and its CPU seconds."""
    start = time.process_time()
    found = tessella.stability(problem.module, problem.box, method=method, units=units, seconds_per_unit=1.0)
    return found, time.process_time() - start


def measured(problem: Problem, given: argparse.Namespace) -> dict[str, object]:
    """Seconds with and without the bounds, by each solver, and the optima."""
    known, spent = bounds(problem, given.method, given.units)
    loose = tessella.stability(problem.module, problem.box, method="interval").totals()["unstable"]
    record: dict[str, object] = {"problem": problem.name, "loose": loose, "open": known.totals()["unstable"], "bounds": spent}
    for name, solve in SOLVERS.items():
        try:
            record[name] = [solve(problem, None, given.seconds), solve(problem, known, given.seconds)]
        except gurobipy.GurobiError as error:
            record[name] = str(error)[:40]
    return record


def line(record: dict[str, object]) -> tuple[str, dict[str, float]]:
    """A row of the table, and how many times as fast each solver was."""
    cells = [record["problem"], str(record["loose"]), str(record["open"]), f"{record['bounds']:.2f}"]
    optima, ratios = list[float](), dict[str, float]()
    for name in SOLVERS:
        if isinstance(record[name], str):
            cells.append(record[name])
            continue
        (one, without, sure), (other, within, settled) = record[name]
        optima += [value for value, proved in ((one, sure), (other, settled)) if proved]
        ratios[name] = without / (within + record["bounds"])
        marks = "" if sure else ">", "" if settled else ">"
        cells.append(f"{marks[0]}{without:.2f}, {marks[1]}{within:.2f}, {ratios[name]:.1f}")
    same = max(optima) - min(optima) <= 1e-4 * (1.0 + abs(optima[0])) if optima else None
    return "| " + " | ".join([*cells, {True: "yes", False: "NO", None: "-"}[same]]) + " |", ratios


def main() -> None:
    """A line for each problem, and medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--method", default="milp")
    parser.add_argument("--units", default="unstable")
    parser.add_argument("--seconds", type=float, default=120.0, help="CPU seconds for one solve, after which it is marked with >")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of problems")
    parser.add_argument("--notes", type=Path, help="a file that keeps what was measured; a later run goes on from there")
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("pyomo").setLevel(logging.ERROR)  # that OMLT starts variables at 0
    lines = given.notes.read_text().splitlines() if given.notes and given.notes.exists() else []
    done = dict(map(json.loads, lines))
    chosen = problems(given.data)
    for method in ("milp", "linear"):
        tessella.stability(
            nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 9), nn.ReLU()), (-1, 1), method=method
        )  # loads compiled code
    heads = [
        "problem",
        "open ReLUs, interval",
        "open ReLUs",
        "bounds, s",
        *(f"{name}: without, with, ratio" for name in SOLVERS),
        "same optimum",
    ]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads), flush=True)
    ratios: dict[str, list[float]] = {name: [] for name in SOLVERS}
    for number, make in enumerate(chosen):
        if given.only is not None and number not in given.only:
            continue
        if number not in done:
            done[number] = measured(make(), given)
            if given.notes:
                with given.notes.open("a") as file:
                    file.write(json.dumps([number, done[number]]) + "\n")
        row, found = line(done[number])
        print(row, flush=True)
        for name, ratio in found.items():
            ratios[name].append(ratio)
    for name, found in ratios.items():
        print(f"{name}: median {median(found):.1f} times as fast with bounds, their time included ({len(found)} problems)")


if __name__ == "__main__":
    main()
