"""Models, their files, and the formulation of a network: which columns and rows there are, and what they mean."""

import gzip
import time

import numpy as np
import pytest
from scipy.sparse import csr_array

from tessella.domain import Box, Polytope
from tessella.errors import DomainError, FileError, OptionError
from tessella.formulation import Model, formulate, write_lp, write_model, write_mps
from tessella.network import Layer, Network
from tessella.preactivation import Method, PreactivationBounds


def small(**changes):
    parts = {
        "names": ("x", "z"),
        "lower": [0.0, 0.0],
        "upper": [1.0, 1.0],
        "integer": [False, True],
        "objective": [1.0, 0.5],
        "rows": csr_array([[1.0, -1.0]]),
        "row_names": ("link",),
        "row_lower": [-np.inf],
        "row_upper": [0.0],
        "maximize": True,
    }
    return Model(**{**parts, **changes})


def intervals(network, box):
    """Interval arithmetic, a little outward."""
    low, high, lower, upper = box.lower, box.upper, [], []
    for layer in network.layers:
        weight = layer.dense()
        plus, minus = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
        lower.append(plus @ low + minus @ high + layer.bias - 1e-9)
        upper.append(plus @ high + minus @ low + layer.bias + 1e-9)
        low, high = layer.activate(lower[-1]), layer.activate(upper[-1])
    return PreactivationBounds(tuple(lower), tuple(upper), Method.INTERVAL)


def known(lower, upper):
    return PreactivationBounds(
        tuple(np.array(part, dtype=float) for part in lower),
        tuple(np.array(part, dtype=float) for part in upper),
        Method.INTERVAL,
    )


def rows_of(model):
    """Every row as text, by name."""
    found = {}
    for name, low, high, row in zip(model.row_names, model.row_lower, model.row_upper, model.rows.toarray(), strict=True):
        found[name] = ({model.names[j]: row[j] for j in np.flatnonzero(row)}, low, high)
    return found


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"names": ("x", "x")}, "two columns are named 'x'"),
        ({"names": ("x", "1z")}, "column name '1z'"),
        ({"names": ("x", "e12")}, "column name 'e12'"),
        ({"names": ("x", "Free")}, "column name 'Free'"),
        ({"row_names": ("a b",)}, "row name 'a b'"),
        ({"row_names": ("obj",)}, "row name 'obj'"),
        ({"name": ""}, "model name ''"),
        ({"lower": [0.0]}, r"lower has shape \(1,\); expected 2"),
        ({"lower": [0.0, np.nan]}, "lower holds nan at 1"),
        ({"lower": [0.0, 2.0]}, "column z would lie between 2.0 and 1.0"),
        ({"row_lower": [np.inf], "row_upper": [np.inf]}, "row link would lie between inf"),
        ({"objective": [1.0, np.inf]}, "objective holds inf for column z"),
        ({"integer": [0, 1]}, "2 truth values"),
        ({"rows": csr_array([[1.0]])}, r"shape \(1, 1\); 1 rows and 2 columns"),
        ({"rows": csr_array([[1.0, np.nan]])}, "not finite"),
    ],
)
def test_bad_models_get_a_clear_error(changes, words):
    with pytest.raises(OptionError, match=words):
        small(**changes)


def test_models_are_read_only_copies():
    rows = csr_array([[1.0, -1.0]])
    model = small(rows=rows)
    rows.data[0] = 5.0
    assert model.rows.data.tolist() == [1.0, -1.0]
    with pytest.raises(ValueError, match="read-only"):
        model.lower[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        model.rows.data[0] = 1.0


def test_another_objective_and_what_a_vector_violates():
    model = small().with_objective([0.0, 2.0], maximize=False)
    assert model.objective.tolist() == [0.0, 2.0]
    assert not model.maximize
    assert model.violation([0.5, 1.0]) == 0.0
    assert model.violation([1.0, 0.75]) == 0.25  # the row, and the whole number
    assert model.violation([-3.0, 1.0]) == 3.0
    with pytest.raises(OptionError, match="each of the 2 columns"):
        model.violation([1.0])


def test_files_are_chosen_by_their_suffix(tmp_path):
    for name in ("a.mps", "a.lp", "a.MPS", "b.mps.gz", "b.lp.gz"):
        write_model(small(), tmp_path / name)
    assert (tmp_path / "a.mps").read_text().splitlines()[1] == "NAME model"
    assert "Maximize" in (tmp_path / "a.lp").read_text()
    assert gzip.decompress((tmp_path / "b.mps.gz").read_bytes()) == (tmp_path / "a.mps").read_bytes()
    assert gzip.decompress((tmp_path / "b.lp.gz").read_bytes()) == (tmp_path / "a.lp").read_bytes()
    for name in ("a.txt", "a", "a.gz", "a.sav"):
        with pytest.raises(OptionError, match=r"give a name that ends so"):
            write_model(small(), tmp_path / name)
    with pytest.raises(FileError, match=r"a\.lp: cannot be written \(there is no folder"):
        write_model(small(), tmp_path / "nowhere" / "a.lp")


def test_files_are_the_same_every_time(tmp_path):
    rng = np.random.default_rng(0)
    net = Network.from_arrays([(rng.normal(size=(5, 3)), rng.normal(size=5)), (rng.normal(size=(4, 5)), None)], relu_output=True)
    box = Box(-1, 1, dim=3)
    for suffix in ("mps", "lp", "mps.gz", "lp.gz"):
        for name in ("first", "second"):
            write_model(formulate(net, box, intervals(net, box)).model, tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"first.{suffix}").read_bytes() == (tmp_path / f"second.{suffix}").read_bytes()


def test_a_large_network_is_formulated_and_written_quickly(tmp_path):
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in ((784, 300), (300, 300))]
    net, box = Network.from_arrays(layers, relu_output=True), Box(0, 1, dim=784)
    bounds = intervals(net, box)
    start = time.process_time()
    model = formulate(net, box, bounds).model
    assert model.rows.nnz > 300_000
    write_mps(model, tmp_path / "a.mps")
    write_lp(model, tmp_path / "a.lp")
    assert time.process_time() - start < 15.0  # about 2 s
    assert max(map(len, (tmp_path / "a.lp").read_text().splitlines())) < 510


def test_each_kind_of_unit_has_its_columns_and_rows():
    first = Layer([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]], [0.0, 2.0, -5.0, 0.5], [True, True, True, False])
    net = Network((first, Layer([[1.0, 2.0, 3.0, 4.0]], [-1.0])))
    bounds = known([[-1, 1, -7, -1.5], [-6]], [[1, 3, -3, 2.5], [16]])
    found = formulate(net, Box(-1, 1, dim=2), bounds)
    assert found.model.names == (
        *("x0", "x1", "g_1_0", "h_1_1", "g_1_3", "h_1_0", "hbar_1_0", "z_1_0"),
        *("g_2_0", "h_2_0", "hbar_2_0", "z_2_0", "f"),
    )
    rows = rows_of(found.model)
    assert rows["affine_1_0"] == ({"x0": 1.0, "g_1_0": -1.0}, 0.0, 0.0)
    assert rows["split_1_0"] == ({"g_1_0": 1.0, "h_1_0": -1.0, "hbar_1_0": 1.0}, 0.0, 0.0)
    assert rows["active_1_0"] == ({"h_1_0": 1.0, "z_1_0": -1.0}, -np.inf, 0.0)
    assert rows["inactive_1_0"] == ({"hbar_1_0": 1.0, "z_1_0": 1.0}, -np.inf, 1.0)
    assert rows["positive_1_0"] == ({"f": 1.0, "h_1_0": -1.0, "z_1_0": 16.0}, -np.inf, 16.0)
    assert rows["affine_1_1"] == ({"x1": 1.0, "h_1_1": -1.0}, -2.0, -2.0)
    assert rows["affine_1_3"] == ({"x0": 1.0, "x1": -1.0, "g_1_3": -1.0}, -0.5, -0.5)
    assert rows["affine_2_0"] == ({"h_1_0": 1.0, "h_1_1": 2.0, "g_1_3": 4.0, "g_2_0": -1.0}, 1.0, 1.0)
    assert rows["inactive_2_0"] == ({"hbar_2_0": 1.0, "z_2_0": 6.0}, -np.inf, 6.0)
    assert "valid_2_0" not in rows
    assert found.binaries == ((0, 0), (1, 0))
    assert [found.model.names[column] for column in found.binary_columns] == ["z_1_0", "z_2_0"]
    assert found.model.names[found.positivity] == "f"
    assert found.model.maximize
    assert found.model.upper[found.positivity] == 16.0
    assert (found.model.lower[2:5].tolist(), found.model.upper[2:5].tolist()) == ([-1, 1, -1.5], [1, 3, 2.5])
    assert repr(found).startswith("Formulation(2-3+1-1 on [-1, 1]^2, 2 binaries, Model(13 columns, 2 integer, ")


def test_patterns_and_points_come_back():
    first = Layer([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]], [0.0, 2.0, -5.0, 0.5], [True, True, True, False])
    net = Network((first, Layer([[1.0, 2.0, 3.0, 4.0]], [-1.0])))
    found = formulate(net, Box(-1, 1, dim=2), known([[-1, 1, -7, -1.5], [-6]], [[1, 3, -3, 2.5], [16]]))
    values = np.zeros(len(found.model.names))
    values[:2], values[found.binary_columns] = [1.0 + 1e-9, -0.5], [1.0 - 1e-9, 1e-9]
    assert found.pattern(values).tolist() == [True, True, False, False]
    assert found.point(values).tolist() == [1.0, -0.5]
    with pytest.raises(OptionError, match="each of the 13 columns"):
        found.pattern([1.0])


def test_what_no_unstable_unit_needs_is_left_out():
    hidden = Layer([[1.0], [-1.0], [1.0]], [0.0, 3.0, 3.0])
    net = Network((hidden, Layer([[1.0, 1.0, 0.0]], [0.0], False), Layer([[2.0], [1.0]], [0.0, 0.0], False)))
    bounds = known([[-1, 2, 2], [2], [4, 2]], [[1, 4, 4], [5], [10, 5]])
    assert formulate(net, Box(-1, 1, dim=1), bounds).model.names == ("x0", "g_1_0", "h_1_0", "hbar_1_0", "z_1_0", "f")
    asked = formulate(net, Box(-1, 1, dim=1), bounds, outputs=True, positivity=False)
    assert asked.model.names == ("x0", "g_1_0", "h_1_1", "h_1_0", "hbar_1_0", "z_1_0", "g_2_0", "g_3_0", "g_3_1")
    assert asked.layers[-1].output.tolist() == [7, 8]
    assert asked.positivity is None
    assert not asked.model.objective.any()
    assert not asked.model.maximize


def test_without_unstable_units_the_one_pattern_is_positive():
    net = Network.from_arrays([([[1.0]], [2.0]), ([[1.0]], None)])
    found = formulate(net, Box(-1, 1, dim=1), known([[1], [1]], [[3], [3]]))
    assert found.model.names == ("x0", "f")
    assert found.model.rows.shape == (0, 2)
    assert found.model.upper.tolist() == [1.0, 1.0]
    assert found.pattern([0.0, 1.0]).tolist() == [True]
    assert found.binaries == ()


def test_a_unit_that_is_always_zero_counts_as_inactive():
    net = Network.from_arrays([([[0.0]], [0.0])], relu_output=True)
    found = formulate(net, Box(-1, 1, dim=1), known([[0]], [[0]]))
    assert found.pattern(np.zeros(2)).tolist() == [False]


def second_layer(weight, bias, rectified=True, low=(-1, -1, -1), high=(1, 1, 1), **options):
    """Three units x0, x1, x2 in the first layer, and one unit that reads them."""
    net = Network((Layer(np.eye(3), np.zeros(3), rectified), Layer([weight], [bias])))
    bounds = known([low, [-5]], [high, [5]])
    model = formulate(net, Box(-1, 1, dim=3), bounds, **options).model
    return model, rows_of(model).get("valid_2_0")


def test_valid_inequalities():
    _, row = second_layer([1.0, -1.0, 2.0], 0.0)
    assert row == ({"z_2_0": 1.0, "z_1_0": -1.0, "z_1_2": -1.0}, -np.inf, 0.0)
    _, row = second_layer([1.0, -1.0, 2.0], 0.5)
    assert row == ({"z_2_0": 1.0, "z_1_1": 1.0}, 1.0, np.inf)
    assert second_layer([1.0, -1.0, 2.0], 0.5, valid_inequalities=False)[1] is None


def test_stable_units_in_valid_inequalities():
    active, inactive = {"low": (0, -1, -1)}, {"high": (0, 1, 1)}
    assert second_layer([1.0, -1.0, 2.0], 0.0, **active)[1] is None  # always there to help
    _, row = second_layer([1.0, -1.0, 2.0], 0.5, **active)
    assert row == ({"z_2_0": 1.0, "z_1_1": 1.0}, 1.0, np.inf)
    _, row = second_layer([1.0, -1.0, 2.0], 0.0, **inactive)
    assert row == ({"z_2_0": 1.0, "z_1_2": -1.0}, -np.inf, 0.0)


def test_a_unit_that_nothing_can_switch_is_fixed():
    for weight, bias, value in (([-1.0, -1.0, 0.0], 0.0, 0.0), ([1.0, 1.0, 0.0], 0.5, 1.0)):
        model, row = second_layer(weight, bias)
        column = model.names.index("z_2_0")
        assert row is None
        assert model.lower[column] == model.upper[column] == value


@pytest.mark.parametrize(
    ("weight", "bias", "low", "high", "stays"),
    [
        ([1.0, 1.0, 1.0], -1.0, -1.0, 1.0, False),  # the linear unit can be positive
        ([1.0, 1.0, 1.0], -1.0, -1.0, 0.0, True),  # it cannot
        ([1.0, 1.0, -1.0], -1.0, -1.0, 1.0, False),  # negative times negative
        ([1.0, 1.0, -1.0], -1.0, 0.0, 1.0, True),
        ([-1.0, 1.0, 1.0], 1.0, -1.0, 1.0, False),
        ([-1.0, 1.0, 1.0], 1.0, 0.0, 1.0, True),
        ([-1.0, 1.0, -1.0], 1.0, -1.0, 0.0, True),
        ([-1.0, 1.0, -1.0], 1.0, -1.0, 0.5, False),
        ([1.0, 1.0, 0.0], -1.0, -1.0, 1.0, True),  # not read
    ],
)
def test_linear_units_take_valid_inequalities_away(weight, bias, low, high, stays):
    _, row = second_layer(weight, bias, rectified=[True, True, False], low=(-1, -1, low), high=(1, 1, high))
    assert (row is not None) == stays


def test_a_polytope_adds_its_rows():
    net = Network.from_arrays([([[1.0, 1.0]], [0.0])], relu_output=True)
    domain = Polytope([[1.0, 2.0]], [1.5], Box(-1, 1, dim=2))
    model = formulate(net, domain, known([[-2]], [[2]])).model
    assert rows_of(model)["domain_0"] == ({"x0": 1.0, "x1": 2.0}, -np.inf, 1.5)
    assert model.lower[:2].tolist() == [-1, -1]


def test_sparse_and_dense_weights_give_the_same_model():
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < 0.5)
    box, last = Box(-1, 1, dim=4), (rng.normal(size=(3, 6)), rng.normal(size=3))
    nets = [Network.from_arrays([(kind(weight), rng.normal(size=6) * 0), last]) for kind in (np.asarray, csr_array)]
    models = [formulate(net, box, intervals(net, box), outputs=True).model for net in nets]
    assert models[0].names == models[1].names
    assert (abs(models[0].rows - models[1].rows)).max() == 0.0


def test_misfits_get_a_clear_error():
    net = Network.from_arrays([([[1.0]], [0.0])], relu_output=True)
    with pytest.raises(DomainError, match="2 inputs"):
        formulate(net, Box(0, 1, dim=2), known([[-1]], [[1]]))
    with pytest.raises(OptionError, match=r"layers of \[2\] units, but the network is 1-1"):
        formulate(net, Box(0, 1, dim=1), known([[-1, -1]], [[1, 1]]))
    with pytest.raises(OptionError, match=r"layer 1, unit 0: the bounds -1\.0 and inf"):
        formulate(net, Box(0, 1, dim=1), known([[-1]], [[np.inf]]))
