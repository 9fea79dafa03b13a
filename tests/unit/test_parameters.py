"""Weights without an architecture: state dicts, .safetensors, scikit-learn, Flax, Haiku, Equinox, lists; and what to type instead."""

import json
import warnings
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

import tessella
from tessella.errors import FileError, NetworkError, UnsupportedModel, UnsupportedOperator

RNG = np.random.default_rng(4)
SIZES = [(3, 5), (5, 4), (4, 2)]  # inputs, units
PAIRS = [
    (RNG.standard_normal((units, inputs)).astype("float32"), RNG.standard_normal(units).astype("float32"))
    for inputs, units in SIZES
]
EXPECTED = tessella.Network.from_arrays(PAIRS)
SQUARE = [(RNG.standard_normal((3, 3)), RNG.standard_normal(3)) for _ in range(12)]


def state(names, pairs=PAIRS):
    return {
        f"{name}.{part}": array
        for name, pair in zip(names, pairs, strict=True)
        for part, array in zip(("weight", "bias"), pair, strict=True)
    }


def flax(names, pairs=PAIRS):
    return {name: {"kernel": weight.T, "bias": bias} for name, (weight, bias) in zip(names, pairs, strict=True)}


def packed(tensors, **changes):
    """A .safetensors file, with its entries in alphabetical order, as its writer has them."""
    header, raw = {"__metadata__": {"format": "pt"}}, b""
    for name in sorted(tensors):
        kind, data = tensors[name] if isinstance(tensors[name], tuple) else ("F32", np.asarray(tensors[name], dtype="<f4"))
        header[name] = {"dtype": kind, "shape": list(data.shape), "data_offsets": [len(raw), len(raw) + data.nbytes]}
        raw += data.tobytes()
    for name, change in changes.items():
        header[name.replace("_", ".")] = change
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + raw


def refusal(source, kind=UnsupportedModel):
    with pytest.raises(kind) as caught:
        tessella.load(source)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def nested(depth):
    return {"a": nested(depth - 1)} if depth else {"weight": np.ones((2, 2))}


@pytest.mark.parametrize(
    "source",
    [
        state(["0", "2", "4"]),
        state(["net.fc1", "net.fc2", "net.out"]),
        {"params": flax(["Dense_0", "Dense_1", "Dense_2"])},
        {"params": {"MLP_0": flax(["Dense_0", "Dense_1", "Dense_2"])}},
        {"params": flax(["a", "b", "c"][::-1], PAIRS[::-1])},  # which fit in one order only
        {f"mlp/~/linear_{place}": {"w": weight.T, "b": bias} for place, (weight, bias) in enumerate(PAIRS)},
        {
            name: {"w": weight.T, "b": bias}
            for name, (weight, bias) in zip(["linear_1", "linear", "linear_2"], [PAIRS[1], PAIRS[0], PAIRS[2]], strict=True)
        },
        ([weight.T for weight, _ in PAIRS], [bias for _, bias in PAIRS]),
        [[weight for weight, _ in PAIRS], [bias for _, bias in PAIRS]],
    ],
)
def test_parameters_of_a_plain_mlp(source):
    network = tessella.load(source)
    assert network == EXPECTED
    assert network.source.input_shape == (3,)
    assert network.source.units == (("ReLU", 9),)
    assert bool(network.source.notes) == isinstance(source, dict)


def test_layers_without_biases_and_single_ones():
    assert tessella.load({"0.weight": PAIRS[0][0], "2.weight": PAIRS[1][0]}) == tessella.load(
        [(PAIRS[0][0], None), (PAIRS[1][0], None)]
    )
    single = tessella.load({"weight": PAIRS[0][0], "bias": PAIRS[0][1]})
    assert (single.relus, single.source.notes) == (0, ())


def test_two_layers_of_two_lists_are_not_pairs():
    coefs, intercepts = [weight.T for weight, _ in PAIRS[1:]], [bias for _, bias in PAIRS[1:]]
    assert tessella.load((coefs, intercepts)) == tessella.load(PAIRS[1:])


def test_torch_parameters_need_no_detaching():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    expected = tessella.load(module)
    assert tessella.load(module.state_dict()) == expected
    assert tessella.load(dict(module.named_parameters())) == expected
    assert tessella.load([(module[0].weight, module[0].bias), (module[2].weight, module[2].bias)]) == expected
    assert tessella.load(([module[0].weight, module[2].weight], [module[0].bias, module[2].bias])) == expected
    half = tessella.load(module.to(torch.bfloat16).state_dict())
    np.testing.assert_array_equal(half.layers[0].dense(), module[0].weight.detach().double().numpy())


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            state(["0", "2"], [PAIRS[0], PAIRS[2]]),
            r"'0' has 5 units, '2' reads 4 inputs; build the module, module.load_state_dict(state)",
        ),
        (state(["fc1", "fc10", "fc2"]), "whose numbers are in another order; write the layers down in order"),
        (
            state(["0"], PAIRS[:1]) | {"1.running_mean": PAIRS[0][1], "1.weight": PAIRS[0][1]},
            "'1.running_mean', which belongs to no linear layer",
        ),
        (
            {"0.weight": np.ones((2, 1, 3, 3)), "0.bias": np.ones(2)},
            "shape (2, 1, 3, 3), so it is no linear layer; build the module",
        ),
        ({"0.weight": np.ones((2, 2)), "1.kernel": np.ones((2, 2))}, "not of one kind"),
        ({"state_dict": state(["0", "2", "4"]), "epoch": 3}, "tessella.load(checkpoint['state_dict'])"),
        ({"params": flax(["a", "b"], SQUARE[:2])}, "which have no numbers and fit in several orders; write the layers down"),
        ({"params": flax(["a", "b"], [PAIRS[0], PAIRS[2]])}, "fit in no order"),
        (
            {"params": {"Conv_0": {"kernel": np.ones((3, 3, 1, 2)), "bias": np.ones(2)}}},
            "no linear layer; export the model to ONNX",
        ),
        ({}, "is no network: it is empty, and holds no weights of linear layers"),
        (
            {"weight_ih_l0": np.ones((4, 2))},
            "is no network: it holds 'weight_ih_l0', and no weights of linear layers, called 'weight',",
        ),
        (nested(150), "nested more than 100 deep, or which holds itself"),
        (
            ([weight.T for weight, _ in SQUARE[:2]], [bias for _, bias in SQUARE[:2]]),
            "both as (inputs, units) and as (units, inputs); write",
        ),
        (([PAIRS[0][0], PAIRS[2][0]], [PAIRS[0][1], PAIRS[2][1]]), "neither as (inputs, units) nor as (units, inputs)"),
    ],
)
def test_what_is_not_clear_is_refused_with_what_to_write(source, words):
    assert words in refusal(source)


def test_numbers_decide_where_files_are_sorted_by_name(tmp_path):
    expected = tessella.Network.from_arrays([(w.astype("float32"), b.astype("float32")) for w, b in SQUARE])
    path = tmp_path / "net.safetensors"
    path.write_bytes(packed(state([f"layers.{place}" for place in range(12)], SQUARE)))
    network = tessella.load(path)
    assert network == expected
    assert (network.source.kind, network.source.name) == ("state_dict", "net.safetensors")
    path.write_bytes(packed(state(["hidden", "more", "out"])))
    assert tessella.load(path) == EXPECTED
    path.write_bytes(packed(state(["hidden", "more", "out"], SQUARE[:3])))
    assert "which have no numbers and fit in several orders" in refusal(path)


def test_types_of_numbers_in_safetensors(tmp_path):
    values = np.array([[1.5, -2.0], [0.25, 3.0]])
    path = tmp_path / "net.safetensors"
    for kind, raw in (
        ("F64", values.astype("<f8")),
        ("F16", values.astype("<f2")),
        ("BF16", (values.astype("<f4").view("<u4") >> 16).astype("<u2")),
    ):
        path.write_bytes(packed({"weight": (kind, raw)}))
        np.testing.assert_array_equal(tessella.load(path).layers[0].dense(), values)


def test_safetensors_of_the_package_itself(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    safetensors.save_file(state(["0", "2", "4"]), tmp_path / "net.safetensors")
    assert tessella.load(tmp_path / "net.safetensors") == EXPECTED


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x80\x02}q\x00.more bytes", "is no .safetensors file, or is cut short"),
        (packed(state(["0"], PAIRS[:1]))[:-3], "lies at"),
        ((9).to_bytes(8, "little") + b"[1, 2, 3]", "no JSON object"),
        ((9).to_bytes(8, "little") + b"nonsense!", "no JSON"),
        (
            packed(state(["0"], PAIRS[:1]), **{"0_bias": {"dtype": "F8_E4M3", "shape": [5], "data_offsets": [0, 5]}}),
            "save it as float32",
        ),
        (packed(state(["0"], PAIRS[:1]), **{"0_bias": {"dtype": "F32", "shape": [-5], "data_offsets": [0, 20]}}), "shape"),
        (
            packed(
                state(["0"], PAIRS[:1]),
                **{f"{k}_weight": {"dtype": "F32", "shape": [5, 3], "data_offsets": [0, 60]} for k in range(9)},
            ),
            "share",
        ),
        (packed(state(["0"], PAIRS[:1]), **{"0_bias": 3}), "is not described"),
        (
            packed(state(["0"], PAIRS[:1]), **{"0_bias": {"dtype": "F32", "shape": [10**15], "data_offsets": [0, 4 * 10**15]}}),
            "lies at",
        ),
    ],
)
def test_damaged_safetensors(tmp_path, content, words):
    path = tmp_path / "net.safetensors"
    path.write_bytes(content)
    assert words in refusal(path, FileError)


def test_pickles_and_torchscript_say_which_line_hands_them_over(tmp_path):
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    torch.save(module.state_dict(), tmp_path / "net.pt")
    line = "tessella.load(torch.load('net.pt', weights_only=True))"
    assert line in refusal(tmp_path / "net.pt", FileError)
    assert tessella.load(torch.load(tmp_path / "net.pt", weights_only=True)) == tessella.load(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(module), tmp_path / "net.pt")
        assert "tessella.load(torch.jit.load('net.pt').state_dict())" in refusal(tmp_path / "net.pt", FileError)
        assert tessella.load(torch.jit.load(tmp_path / "net.pt").state_dict()) == tessella.load(module)


def test_other_pickles_and_programs_under_another_name(tmp_path):
    (tmp_path / "model.joblib").write_bytes(b"\x80\x04]\x94.")
    assert "tessella.load(joblib.load('model.joblib'))" in refusal(tmp_path / "model.joblib", FileError)
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("model/models/model.json", "{}")
    assert refusal(tmp_path / "model.pt", FileError).endswith("rename it to model.pt2, and it is read")


# ---------------------------------------------------------------------------------------------- estimators


@pytest.fixture(scope="module")
def sklearn():
    package = pytest.importorskip("sklearn.neural_network")
    warnings.simplefilter("ignore")
    return package


def fitted(estimator, targets):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        return estimator.fit(np.random.default_rng(1).standard_normal((len(targets), 3)), targets)


ENDS = {"softmax": [0, 1, 2] * 5, "logistic": [0, 1] * 6, "labels": [[0, 1], [1, 1], [1, 0]] * 4}


@pytest.mark.parametrize("end", ENDS)
def test_scikit_learns_classifier(sklearn, end):
    estimator = fitted(sklearn.MLPClassifier((5, 4), max_iter=5, random_state=0), np.array(ENDS[end]))
    network = tessella.load(estimator)
    assert network.widths == (5, 4)
    assert network.source.kind == "scikit-learn"
    assert network.source.difference < 1e-12
    assert network.source.notes == (
        f"{'softmax' if end == 'softmax' else 'logistic'} at the end is left off: it changes no region",
    )
    assert network == tessella.load((estimator.coefs_, estimator.intercepts_))


def test_scikit_learns_regressor(sklearn):
    estimator = fitted(sklearn.MLPRegressor(hidden_layer_sizes=(4,), max_iter=5, random_state=0), np.arange(9.0))
    network = tessella.load(estimator)
    points = np.random.default_rng(2).standard_normal((7, 3))
    np.testing.assert_allclose(network(points).ravel(), estimator.predict(points), atol=1e-12)
    assert network.source.notes == ()
    linear = fitted(
        sklearn.MLPRegressor(hidden_layer_sizes=(4,), activation="identity", max_iter=5, random_state=0), np.arange(9.0)
    )
    assert tessella.load(linear).relus == 0
    counts = fitted(sklearn.MLPRegressor("poisson", hidden_layer_sizes=(4,), max_iter=5, random_state=0), np.arange(1.0, 9.0))
    network = tessella.load(counts)
    np.testing.assert_allclose(np.exp(network(points)).ravel(), counts.predict(points), rtol=1e-9)
    assert network.source.notes == ("exp at the end is left off: it changes no region",)


def test_estimators_that_cannot_be_read(sklearn):
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    assert "call fit(X, y) first" in refusal(sklearn.MLPClassifier())
    tanh = fitted(sklearn.MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=5, random_state=0), np.arange(9.0))
    assert "'tanh', which is not piecewise linear; train it with activation='relu'" in refusal(tanh, UnsupportedOperator)
    assert "tessella.load(pipeline[-1])" in refusal(make_pipeline(StandardScaler(), tanh))
    search = fitted(GridSearchCV(tanh, {"alpha": [0.1]}, cv=2), np.arange(9.0))
    assert "tessella.load(search.best_estimator_)" in refusal(search)
    assert "type LinearRegression is no network" in refusal(LinearRegression())


def test_digits_are_analysed_in_one_line(sklearn):
    from sklearn.datasets import load_digits

    images, targets = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = sklearn.MLPClassifier((8,), max_iter=10, random_state=0).fit(images / 16.0, targets)
    found = tessella.analyze(estimator, (0, 1), seconds=3)
    assert 1 <= found.proved_lower <= found.upper <= 2**8


# what Equinox' MLP looks like
def equinox(activation, final):
    layers = tuple(SimpleNamespace(weight=weight, bias=bias) for weight, bias in PAIRS)
    return SimpleNamespace(layers=layers, activation=activation, final_activation=final)


def softmax(values):
    return np.exp(values) / np.exp(values).sum()


def test_equinox_models():
    def relu(values):
        return np.maximum(values, 0.0)

    assert tessella.load(equinox(relu, lambda x: x)) == EXPECTED
    assert tessella.load(equinox(relu, relu)) == EXPECTED.with_relu_output()
    ended = tessella.load(equinox(relu, softmax))
    assert ended == EXPECTED
    assert ended.source.notes == ("softmax at the end is left off: it changes no region",)
    assert "activation tanh is no ReLU" in refusal(equinox(np.tanh, lambda x: x), UnsupportedOperator)
    assert "final activation sin is none" in refusal(equinox(relu, np.sin), UnsupportedOperator)


def test_lists_of_something_else_are_refused_as_before():
    with pytest.raises(NetworkError, match="layer 1"):
        tessella.load([[1, 2, 3]])
    with pytest.raises(NetworkError):
        tessella.load([])
