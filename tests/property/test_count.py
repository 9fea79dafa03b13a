"""What must hold for every count, whatever the network."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tessella
from helpers.odd_networks import Case, random_case
from tessella.listing.listing import regions

cases = st.integers(0, 2**32 - 1).map(lambda seed: random_case([1989, seed], largest=300))
few = settings(max_examples=40)


def count(case):
    return tessella.count(case.network, case.domain, workers=1).exact


def patterns(case):
    return {region.pattern.tobytes() for region in regions(case.network, case.domain)}


def with_layers(case, layers):
    return case._replace(layers=layers)


def halves(case, axis, place):
    """The domain below and above a value of one input."""
    low, high = case.lower.copy(), case.upper.copy()
    low[axis] = high[axis] = place
    return case._replace(upper=high), case._replace(lower=low)


def with_cut(case, axis, place):
    """The same network with one more unit, which nothing reads, active above a value of one input."""
    (weight, bias, rectified), *rest = case.layers
    first = (np.vstack([weight, np.eye(weight.shape[1])[axis]]), np.append(bias, -place), np.append(rectified, True))
    if rest:
        (after, shift, mask), *others = rest
        rest = [(np.hstack([after, np.zeros((len(shift), 1))]), shift, mask), *others]
    return with_layers(case, [first, *rest])


def splits():
    """A case whose domain is a box, one of its free inputs, and a place to cut it."""

    def cut(drawn):
        case, pick, share = drawn
        free = np.flatnonzero(case.lower < case.upper)
        axis = int(free[pick % len(free)])
        return case, axis, float(case.lower[axis] + share * (case.upper[axis] - case.lower[axis]))

    # a polytope that is cut may leave halves without an interior, which Polytope refuses
    boxes = cases.map(lambda case: Case(case.layers, case.lower, case.upper)).filter(lambda case: case.free > 0)
    shares = st.sampled_from([0.125, 0.25, 0.5]) | st.floats(0.01, 0.99)
    return st.tuples(boxes, st.integers(0, 100), shares).map(cut)


@few
@given(splits())
def test_a_box_and_its_halves(drawn):
    case, axis, place = drawn
    left, right = halves(case, axis, place)
    whole, below, above = count(case), count(left), count(right)
    assert max(below, above) <= whole <= below + above
    assert count(with_cut(case, axis, place)) == below + above
    assert patterns(case) == patterns(left) | patterns(right)


@few
@given(cases, st.randoms(use_true_random=False))
def test_the_order_of_units_does_not_matter(case, random):
    layers, columns = [], np.arange(len(case.lower))
    for weight, bias, rectified in case.layers:
        order = np.array(random.sample(range(len(bias)), len(bias)))
        layers.append((weight[order][:, columns], bias[order], rectified[order]))
        columns = order
    assert count(with_layers(case, layers)) == count(case)


@few
@given(cases, st.randoms(use_true_random=False))
def test_units_may_be_rescaled(case, random):
    layers, before = [], np.ones(len(case.lower))
    for weight, bias, rectified in case.layers:
        factors = 2.0 ** np.array([random.randint(-6, 6) for _ in bias])  # powers of two: no rounding
        layers.append((factors[:, None] * weight / before, factors * bias, rectified))
        before = factors
    assert count(with_layers(case, layers)) == count(case)


@few
@given(cases, st.randoms(use_true_random=False))
def test_inputs_may_be_reordered_and_reflected(case, random):
    dim = len(case.lower)
    order = np.array(random.sample(range(dim), dim))
    signs = np.array([random.choice([-1.0, 1.0]) for _ in range(dim)])
    (weight, bias, rectified), *rest = case.layers
    low, high = signs * case.lower[order], signs * case.upper[order]
    moved = case._replace(
        layers=[(weight[:, order] * signs, bias, rectified), *rest],
        lower=np.minimum(low, high),
        upper=np.maximum(low, high),
        matrix=None if case.matrix is None else case.matrix[:, order] * signs,
    )
    assert count(moved) == count(case)


@few
@given(cases)
def test_no_count_is_above_the_upper_bounds(case):
    assert count(case) <= tessella.upper_bounds(case.network, case.domain).empirical


@few
@given(cases, st.integers(0, 2**32 - 1))
def test_no_count_is_below_what_points_show(case, seed):
    network, domain = case.network, case.domain
    points = domain.box.sample(1000, seed)
    points = points[domain.contains(points)]
    parts = [before[:, layer.rectified] for layer, before in zip(network.layers, network.preactivations(points), strict=True)]
    values = np.concatenate(parts, axis=1)
    sizes = 1e-9 * np.abs(values).max(axis=1, initial=1.0, keepdims=True)
    sure = ((np.abs(values) > sizes) | (values == values[:1])).all(axis=1)  # not near a border, where rounding may decide
    assert len(np.unique(network.patterns(points)[sure], axis=0)) <= count(case)


@settings(max_examples=10)
@given(cases)
def test_the_number_of_workers_does_not_matter(case):
    one, two = (tessella.count(case.network, case.domain, workers=workers) for workers in (1, 2))
    assert (one.lower, one.exact, one.upper) == (two.lower, two.exact, two.upper)
