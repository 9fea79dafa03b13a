"""Bounds for optimisers: the same optimum with and without them, and a refusal where they would be wrong."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import tessella
from tessella import Box, Layer, Network, Polytope
from tessella.optimise import plain

WEIGHTS = np.random.default_rng(7)
LAYERS = [
    (WEIGHTS.standard_normal((6, 3)), WEIGHTS.standard_normal(6)),
    (WEIGHTS.standard_normal((5, 6)), WEIGHTS.standard_normal(5)),
    (WEIGHTS.standard_normal((2, 5)), WEIGHTS.standard_normal(2)),
]
NETWORK = tessella.load(LAYERS)
BOX = Box(-1, 0.5, dim=3)
KNOWN = tessella.stability(NETWORK, BOX, units="all")
MIXED = Network(
    (
        Layer(LAYERS[0][0], LAYERS[0][1], [True, True, False, True, True, True], [0.0, 0.1, -0.5, -1.0, 2.0, 0.0]),
        Layer(LAYERS[1][0], LAYERS[1][1]),
        Layer(LAYERS[2][0], LAYERS[2][1], False),
    )
)


def module():
    pytest.importorskip("torch")
    return NETWORK.to_torch()


class Gurobi:
    """The model of gurobi-ml."""

    def __init__(self, box=BOX, predictor=None):
        gurobipy, self.ml = pytest.importorskip("gurobipy"), pytest.importorskip("gurobi_ml")
        self.model = gurobipy.Model(env=gurobipy.Env(params={"OutputFlag": 0, "Threads": 1}))
        self.x = self.model.addMVar((1, box.dim), lb=box.lower[None], ub=box.upper[None])
        self.added = self.ml.add_predictor_constr(self.model, predictor or module(), self.x)
        self.sense = gurobipy.GRB.MAXIMIZE

    def bound(self, known, **options):
        return tessella.optimise.gurobi_ml.add_bounds(self.added, known, **options)

    def maximum(self, output):
        self.model.setObjective(self.added.output[0, output], self.sense)
        self.model.optimize()
        return self.model.ObjVal


class Scip:
    """The model of PySCIPOpt-ML."""

    def __init__(self, box=BOX, predictor=None, formulation="bigm"):
        pyscipopt, self.ml = pytest.importorskip("pyscipopt"), pytest.importorskip("pyscipopt_ml.add_predictor")
        self.model = pyscipopt.Model()
        self.model.hideOutput()
        self.x = np.array([[self.model.addVar(lb=low, ub=high) for low, high in zip(box.lower, box.upper, strict=True)]])
        self.added = self.ml.add_predictor_constr(self.model, predictor or module(), self.x, formulation=formulation)

    def bound(self, known, **options):
        return tessella.optimise.pyscipopt_ml.add_bounds(self.added, known, **options)

    def maximum(self, output):
        self.model.setObjective(self.added.output[0][output], "maximize")
        self.model.optimize()
        return self.model.getObjVal()


def by_omlt(formulation, output):
    """The largest output by OMLT and HiGHS."""
    pyomo, omlt = pytest.importorskip("pyomo.environ"), pytest.importorskip("omlt")
    pytest.importorskip("highspy")
    model = pyomo.ConcreteModel()
    model.nn = omlt.OmltBlock()
    model.nn.build_formulation(formulation)
    model.largest = pyomo.Objective(expr=model.nn.outputs[output], sense=pyomo.maximize)
    pyomo.SolverFactory("appsi_highs").solve(model)
    return pyomo.value(model.largest), model


@pytest.mark.parametrize("way", [Gurobi, Scip, lambda: Scip(formulation="sos")])
def test_the_optimum_is_the_exact_end_of_the_range(way):
    for output in range(2):
        without, with_bounds = way(), way()
        given = with_bounds.bound(KNOWN)
        total = KNOWN.totals()
        assert (given.units, given.active, given.inactive) == (13, total["active"], total["inactive"])
        expected = KNOWN.outputs[1][output]
        assert without.maximum(output) == pytest.approx(expected, abs=1e-5)
        assert with_bounds.maximum(output) == pytest.approx(expected, abs=1e-5)


def test_exact_ranges_are_in_the_rows_of_scip():
    """PySCIPOpt-ML's big-M come from interval arithmetic; of open ReLUs they are the proved bounds then."""
    given = Scip()
    given.bound(KNOWN)
    relus = [layer for layer in given.added if layer.activation == "relu"]
    for number, layer in enumerate(relus):
        (binaries,), (_, inactive, active) = layer._created_vars, layer._created_cons
        for unit in np.flatnonzero(KNOWN.unstable[number]):
            name = binaries[0, unit].name
            found = [given.model.getValsLinear(rows[0, unit])[name] for rows in (inactive, active)]
            assert found == [-KNOWN.bounds.lower[number][unit], -KNOWN.bounds.upper[number][unit]]
            assert given.model.getRhs(inactive[0, unit]) == -KNOWN.bounds.lower[number][unit]


def test_omlt_finds_the_same():
    neuralnet = pytest.importorskip("omlt.neuralnet")
    for output in range(2):
        expected = KNOWN.outputs[1][output]
        found, model = by_omlt(tessella.optimise.omlt.formulation(KNOWN), output)
        assert found == pytest.approx(expected, abs=1e-5)
        binaries = [
            var for var in model.component_data_objects(ctype=pytest.importorskip("pyomo.environ").Var) if var.is_binary()
        ]
        assert len(binaries) == KNOWN.totals()["unstable"]
        own = neuralnet.ReluBigMFormulation(tessella.optimise.omlt.definition(KNOWN))
        assert by_omlt(own, output)[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_omlt_knows_every_kind_of_unit(seed):
    pytest.importorskip("omlt")
    box = Box([-1.0, -0.5, 0.0], [0.5 * seed, 0.5, 1.0])
    known = tessella.stability(MIXED, box, units="all")
    found, model = by_omlt(tessella.optimise.omlt.formulation(known), 0)
    assert found == pytest.approx(known.outputs[1][0], abs=1e-5)
    point = [model.nn.inputs[number].value for number in range(3)]
    assert MIXED([point])[0, 0] == pytest.approx(found, abs=1e-5)


def test_a_compressed_network_has_the_same_optimum():
    pytest.importorskip("omlt")
    smaller = tessella.compress(NETWORK, BOX, stability=KNOWN).network
    known = tessella.stability(smaller, BOX)
    assert by_omlt(tessella.optimise.omlt.formulation(known), 1)[0] == pytest.approx(KNOWN.outputs[1][1], abs=1e-5)


@pytest.mark.parametrize("way", [Gurobi, Scip])
def test_bounds_are_refused_where_they_do_not_hold(way):
    wide = way(Box(-2, 0.5, dim=3))
    with pytest.raises(
        tessella.DomainError, match=r"input 0 of the model may be -2 to 0\.5, but the bounds hold from -1 to 0\.5"
    ):
        wide.bound(KNOWN)
    assert wide.bound(KNOWN, trusted=True).units == 13
    below = Polytope([[1.0, 1.0, 1.0]], [0.5], BOX)
    with pytest.raises(tessella.DomainError, match="nobody can see whether the model has these inequalities"):
        way().bound(tessella.stability(NETWORK, below))


@pytest.mark.parametrize("way", [Gurobi, Scip])
def test_bounds_of_another_network_are_refused(way):
    other = tessella.load([(LAYERS[0][0] * 1.5, LAYERS[0][1]), *LAYERS[1:]])
    with pytest.raises(tessella.OptionError, match=r"layer 1 of the .* model is not that of"):
        way().bound(tessella.stability(other, BOX))
    with pytest.raises(tessella.OptionError, match="model has layers of 6 ReLU, 5 ReLU, 2 units"):
        way().bound(tessella.stability([LAYERS[0]], BOX))
    with pytest.raises(tessella.OptionError, match="the model has 3 inputs, but the network of the bounds reads 1"):
        way().bound(tessella.stability([([[1.0]], None)], (0, 1)))
    with pytest.raises(tessella.OptionError, match="stability is a list"):
        tessella.optimise.plain.rows([])


def test_omlt_refuses_what_does_not_fit():
    neuralnet = pytest.importorskip("omlt.neuralnet")
    adapter = tessella.optimise.omlt
    other = tessella.load([(LAYERS[0][0] * 1.5, LAYERS[0][1]), *LAYERS[1:]])
    with pytest.raises(tessella.OptionError, match="layer 1 of the OMLT network is not that of"):
        adapter.formulation(tessella.stability(other, BOX), adapter.definition(KNOWN))
    with pytest.raises(tessella.OptionError, match=r"the OMLT network has layers of \[6, 5, 2\] units"):
        adapter.formulation(tessella.stability(LAYERS[:2], BOX), adapter.definition(KNOWN))
    wide = adapter.definition(tessella.stability(NETWORK, Box(-2, 2, dim=3), method="linear"))
    with pytest.raises(tessella.DomainError, match="input 0 of the model may be -2 to 2"):
        adapter.formulation(KNOWN, wide)
    with pytest.raises(tessella.OptionError, match="the OMLT network has no bounds of its inputs"):
        adapter.formulation(KNOWN, _without_bounds(neuralnet, adapter.definition(KNOWN)))
    below = tessella.stability(NETWORK, Polytope([[1.0, 1.0, 1.0]], [0.5], BOX))
    with pytest.raises(tessella.DomainError, match="nobody can see"):
        adapter.formulation(below)
    assert adapter.formulation(below, trusted=True).input_indexes
    with pytest.raises(tessella.DomainError, match="a big-M formulation needs a bounded domain"):
        adapter.formulation(tessella.stability(NETWORK, (-np.inf, np.inf)))


def _without_bounds(neuralnet, definition):
    found, before = neuralnet.NetworkDefinition(), None
    for layer in definition.layers:
        found.add_layer(layer)
        if before is not None:
            found.add_edge(before, layer)
        before = layer
    return found


def test_layers_without_a_relu_between_are_one_layer():
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    deep = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2), torch.nn.Linear(2, 1)
    ).double()
    network = tessella.load(deep)
    known = tessella.stability(network, BOX, units="all")
    for way in (Gurobi, Scip):
        made = way(predictor=deep)
        made.bound(known)
        assert made.maximum(0) == pytest.approx(known.outputs[1][0], abs=1e-5)


def test_scikit_learn_networks_keep_their_preactivations_elsewhere():
    neural = pytest.importorskip("sklearn.neural_network")
    rng = np.random.default_rng(0)
    data = rng.uniform(-1, 0.5, (40, 3))
    found = neural.MLPRegressor(hidden_layer_sizes=(4,), max_iter=2000, tol=1e-2, random_state=0).fit(data, data.sum(axis=1))
    known = tessella.stability(found, BOX, units="all")
    for way in (Gurobi, Scip):
        made = way(predictor=found)
        made.bound(known)
        assert made.maximum(0) == pytest.approx(known.outputs[1][0], abs=1e-4)


def test_files_have_every_unit_and_every_digit(tmp_path):
    plain.write(KNOWN, tmp_path / "bounds.csv")
    with (tmp_path / "bounds.csv").open() as file:
        table = list(csv.DictReader(file))
    assert len(table) == 13
    assert [float(row["lower"]) for row in table[:6]] == KNOWN.bounds.lower[0].tolist()
    assert [float(row["output_upper"]) for row in table[-2:]] == KNOWN.outputs[1].tolist()
    ends = [(float(row["lower"]), float(row["upper"])) for row in table]
    states = ["active" if low >= 0 else "inactive" if high <= 0 else "open" for low, high in ends[:11]]
    assert [(row["kind"], row["state"]) for row in table] == [*(("relu", state) for state in states), *[("linear", "")] * 2]
    assert {"open"} < set(states)
    plain.write(KNOWN, tmp_path / "bounds.json")
    again = tessella.Stability.from_dict(json.loads((tmp_path / "bounds.json").read_text()), network=NETWORK)
    assert again.totals() == KNOWN.totals()
    with pytest.raises(tessella.OptionError, match=r"bounds are written as \.csv or \.json"):
        plain.write(KNOWN, tmp_path / "bounds.txt")


def test_nothing_is_imported_before_it_is_used():
    code = "import sys, tessella.optimise; print([name for name in ('gurobi_ml', 'omlt', 'pyomo', 'pyscipopt_ml', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert tessella.optimise.__dir__() == ["gurobi_ml", "omlt", "plain", "pyscipopt_ml"]
    with pytest.raises(AttributeError, match="no attribute 'cplex'"):
        _ = tessella.optimise.cplex


def test_a_missing_package_is_named(monkeypatch):
    for name in ("gurobi_ml", "omlt.neuralnet", "pyscipopt_ml"):
        monkeypatch.setitem(sys.modules, name, None)
    for call, said in (
        (lambda: tessella.optimise.gurobi_ml.add_bounds(None, KNOWN), "pip install gurobi-machinelearning"),
        (lambda: tessella.optimise.omlt.definition(KNOWN), "pip install omlt"),
        (lambda: tessella.optimise.pyscipopt_ml.add_bounds(None, KNOWN), "pip install pyscipopt-ml"),
    ):
        with pytest.raises(tessella.MissingPackage, match=said):
            call()
