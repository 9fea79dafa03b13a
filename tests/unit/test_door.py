"""The door of verbs: what people have where a network or a domain is expected."""

import inspect
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import tessella
from tessella import formulation, plot, report, tightening
from tessella.domain import Box, Polytope
from tessella.door import enter, enter_anywhere
from tessella.errors import DomainError, NetworkError, TessellaError, UnknownShape, UnsupportedModel
from tessella.importers.arrays import write_npz

ARRAYS = [([[1.0, 0.5], [-1.0, 0.25]], [0.5, -0.5]), ([[1.0, 1.0]], [-0.25])]
NETWORK, BOX = tessella.load(ARRAYS), Box(0, 1, dim=2)
VALUES = {"load", "load_domain", "load_domains", "mipbound_model", "rank"}  # these take no network
SHAPES = {"raghu_bound", "montufar_bound", "configuration_bound"}  # these take a network, and no domain
NOWHERE = {*SHAPES, "along"}  # nor does this one, which takes a path
CALLS = {
    "sample_regions": {"n": 3},
    "slice": {"axes": (0, 1)},
    "formulate": {"bounds": tessella.stability(NETWORK, BOX).bounds},
    "estimate": {"probes": 3},
    "mipbound": {"repetitions": 1, "confidence": 0.4},
    "along": {"path": [[0.0, 0.0], [1.0, 1.0]]},
    "local": {"points": [[0.5, 0.5]], "radius": 0.25},
}


def verbs():
    """Every public function that takes a network, by introspection, so that none is forgotten."""
    public = {name: getattr(tessella, name) for name in tessella.__all__}
    public |= {f"{verb.__module__}.{verb.__name__}": verb for verb in (formulation.formulate, tightening.tighten)}
    for module in (plot, report):
        public |= {f"{module.__name__}.{name}": item for name, item in vars(module).items() if not name.startswith("_")}
    found = {
        name: verb
        for name, verb in public.items()
        if inspect.isfunction(verb) and verb.__module__.startswith(name.rpartition(".")[0])
    }
    taking = {name: next(iter(inspect.signature(verb).parameters), "") for name, verb in found.items() if name not in VALUES}
    return [pytest.param(found[name], id=name) for name, first in taking.items() if first in {"network", "model"}]


def answer(verb, network, domain, folder):
    """What a verb says, in plain values that can be compared; what it writes goes into the folder."""
    named = inspect.signature(verb).parameters
    given = {} if verb.__name__ in NOWHERE else {"domain": domain}
    if verb.__name__ == "certify":
        given["path"] = folder / "proof.cert"
    found = verb(network, **given, **CALLS.get(verb.__name__, {}))
    if "domain" in named and verb.__name__ == "track":
        return found.step().exact
    if hasattr(found, "__next__"):
        return [part.pattern.tolist() for part in found]
    if hasattr(found, "axes"):
        return found.axes[0].get_title() if isinstance(found.axes, list) else found.network
    if isinstance(found, list):
        return [part.region.pattern.tolist() for part in found]
    if is_dataclass(found) and "seconds" in {field.name for field in fields(found)}:
        return type(found), found.network if hasattr(found, "network") else len(fields(found))
    return found if isinstance(found, int) else type(found)


def test_there_are_many_verbs():
    names = {parameter.id for parameter in verbs()}
    assert {"count", "estimate", "regions", "sample_regions", "stability", "upper_bounds", "empirical_bound", "mipbound"} <= names
    assert {"slice", "polygons", "analyze", "track", "tessella.plot.regions", "tessella.report.explore"} <= names
    assert {"tessella.formulation.relu.formulate", "tessella.tightening.tighten", *SHAPES} <= names


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_takes_what_people_have(verb, tmp_path):
    write_npz(NETWORK, tmp_path / "net.npz")
    expected = answer(verb, NETWORK, BOX, tmp_path)
    assert answer(verb, ARRAYS, (0, 1), tmp_path) == expected
    assert answer(verb, str(tmp_path / "net.npz"), (np.zeros(2), np.ones(2)), tmp_path) == expected


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_refuses_what_it_cannot_read_in_one_line(verb, tmp_path):
    for network, domain, words in [
        (3.5, (0, 1), "type float"),
        (tmp_path / "gone.npz", (0, 1), "no such file"),
        (ARRAYS, (0, 1, 2), "a domain was expected, not a tuple of 3"),
        (ARRAYS, 1.0, "a domain was expected, not an object of type float"),
        (ARRAYS, ([0, 0, 0], [1, 1, 1]), "the domain has 3 inputs, but the network reads 2"),
        (ARRAYS, (1, 0), "the box is empty"),
    ]:
        if verb.__name__ in NOWHERE and words[0] in "at" and network is ARRAYS:
            continue
        with pytest.raises(TessellaError, match=words) as caught:
            answer(verb, network, domain, tmp_path)
        assert "\n" not in str(caught.value)


def test_domains_are_read():
    assert enter(ARRAYS, BOX) == (NETWORK, BOX)
    assert enter_anywhere(ARRAYS, None) == enter_anywhere(NETWORK, None) == (NETWORK, None)
    assert enter_anywhere(ARRAYS, BOX) == (NETWORK, BOX)
    for given in (
        (0, 1),
        [0, 1],
        np.array([0.0, 1.0]),
        (0, [1, 1]),
        ([0, 0], 1.0),
        np.array([[0, 0], [1, 1]]),
        ([[0, 0]], [[1, 1]]),
    ):
        assert enter(NETWORK, given)[1] == BOX
    assert enter(NETWORK, (-np.inf, np.inf))[1] == Box(-np.inf, np.inf, dim=2)
    polytope = Polytope([[1.0, 1.0]], [1.0], BOX)
    assert enter(ARRAYS, polytope)[1] is polytope
    assert enter(NETWORK, BOX) == (NETWORK, BOX)
    assert enter(NETWORK, BOX)[0] is NETWORK


def test_a_property_is_a_domain(tmp_path):
    declared = "".join(f"(declare-const X_{n} Real)(assert (>= X_{n} 0))(assert (<= X_{n} 1))" for n in range(2))
    (tmp_path / "p.vnnlib").write_text(declared)
    assert enter(ARRAYS, tmp_path / "p.vnnlib")[1] == BOX


def test_two_lists_of_two_that_may_be_intervals_are_refused():
    with pytest.raises(
        DomainError, match=r"tessella\.Box\(\[0, 1\], \[0, 1\]\) for corners, tessella\.Box\(\[0, 0\], \[1, 1\]\) for intervals"
    ):
        enter(NETWORK, [[0, 1], [0, 1]])
    with pytest.raises(DomainError, match="may be two corners or two intervals"):
        enter(NETWORK, ((-1, 1), (0, 3)))
    assert enter(NETWORK, ([0, 0], [1, 2]))[1] == Box([0, 0], [1, 2])  # as intervals they would fix an input
    assert enter(NETWORK, (np.array([-1, 0]), np.array([1, 2])))[1] == Box([-1, 0], [1, 2])  # arrays are corners


@pytest.mark.parametrize(
    "domain",
    [
        None,
        {"lower": 0, "upper": 1},
        {0, 1},
        object(),
        0,
        (0,),
        ("a", "b"),
        ([0, [1]], 1),
        (None, 1),
        (0, 10**400),
        b"01",
        (b"0", 1),
    ],
)
def test_other_domains_are_refused(domain):
    with pytest.raises(DomainError, match=r"\(0, 1\)"):
        enter(NETWORK, domain)


def test_masked_ends_and_ends_that_are_no_numbers_are_refused():
    with pytest.raises(DomainError, match="lower is a masked array"):
        enter(NETWORK, (np.ma.array([0.0, 0.0], mask=[True, False]), [1, 1]))
    with pytest.raises(DomainError, match="upper holds nan; ends of a box are finite numbers, or -inf and inf"):
        enter(NETWORK, (0, np.nan))


def test_other_networks_are_refused():
    with pytest.raises(NetworkError, match="expected a pair"):
        enter([1, 2], (0, 1))
    with pytest.raises(UnsupportedModel, match="no network"):
        enter(None, (0, 1))


def test_images_are_domains_row_by_row():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(27, 1))
    lower = np.arange(32.0).reshape(2, 4, 4)
    network, box = enter(module, (lower, lower + 1.0))  # the shape of one input is that of the arrays
    assert network == tessella.load(module, input_shape=(2, 4, 4))
    assert box.lower.tolist() == lower.ravel().tolist()
    with pytest.raises(DomainError, match=r"lower has shape \(4, 4, 2\), but the model reads inputs of shape \(2, 4, 4\)"):
        enter(network, (lower.transpose(1, 2, 0), 40.0))
    with pytest.raises(UnknownShape, match=r"tessella\.load\(module, input_shape=\(1, 28, 28\)\)"):
        enter(module, (0, 1))
    with pytest.raises(UnknownShape, match=r"tessella\.load\(module, input_shape=\(1, 28, 28\)\)"):
        enter(module, Box(0, 1, dim=32))


def test_the_domain_tells_how_many_inputs_there_are():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3), torch.nn.ReLU())
    assert enter(linear, (0, 1))[0].input_dim == 4
    normed = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3))
    assert enter(normed, Box(0, 1, dim=4))[0].input_dim == 4
    with pytest.raises(UnknownShape, match="cannot be told"):
        enter(normed, (0, 1))


@pytest.mark.filterwarnings("ignore::DeprecationWarning:keras.*")
def test_keras_models_take_their_inputs_from_the_domain():
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
    with pytest.raises(UnknownShape, match="does not know its input yet"):
        enter(model, (0, 1))
    network, box = enter(model, ([0, 0], 1))
    assert (network.input_dim, box) == (2, BOX)
