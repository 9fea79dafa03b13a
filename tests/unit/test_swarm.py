"""`tessella.estimating.moving`, `swarm` and `crossing`: particles that move across the walls of their cells."""

import itertools
import math

import numpy as np
import pytest

import tessella
from tessella.estimating import crossing
from tessella.estimating.contest import Contest, Kind
from tessella.estimating.descents import Batch, Records
from tessella.estimating.moving import MovingParticles, room_for, steered
from tessella.estimating.rounds import Rounds
from tessella.partition.tree import Tree

FREELY = steered(16)


def layers_of(sizes, seed=0, bias=0.5):
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal((n, m)) / math.sqrt(m), bias * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]


def network_of(*sizes, seed=0):
    return tessella.Network.from_arrays(layers_of(sizes, seed), relu_output=True)


def tree_of(network, domain):
    return Tree.of(tessella.stability(network, domain, method="linear"))


def leaky():
    layers = [
        tessella.Layer(weight, bias, np.ones(len(bias), dtype=bool), np.full(len(bias), 0.1))
        for weight, bias in layers_of((3, 8, 6), 2)
    ]
    return tessella.Network(tuple(layers))


def skipping():
    """Units without a ReLU, one of them behind a slope."""
    (one, first), (two, second), (three, third) = layers_of((3, 8, 7, 5), 4)
    slopes = np.array([0.0] * 6 + [1.0, 0.5])
    return tessella.Network(
        (
            tessella.Layer(one, first, np.arange(8) < 6, slopes),
            tessella.Layer(two, second, np.ones(7, dtype=bool), np.zeros(7)),
            tessella.Layer(three, third, np.ones(5, dtype=bool), np.zeros(5)),
        )
    )


def triangle(dim):
    return tessella.Polytope(np.ones((1, dim)), [0.5], tessella.Box.cube(-1, 1, dim))


CASES = {
    "one layer": (network_of(3, 14), tessella.Box.cube(-1, 1, 3)),
    "two layers": (network_of(3, 9, 8, seed=1), tessella.Box.cube(-1, 1, 3)),
    "three layers": (network_of(4, 7, 6, 5, seed=3), tessella.Box.cube(-1, 1, 4)),
    "leaky": (leaky(), tessella.Box.cube(-1, 1, 3)),
    "linear units": (skipping(), tessella.Box.cube(-1, 1, 3)),
    "a polytope": (network_of(4, 8, 7, seed=5), triangle(4)),
    "more inputs than units": (network_of(20, 5, 6, seed=6), tessella.Box.cube(-1, 1, 20)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_mean_is_the_number_of_regions(name):
    """Of many swarms that are far too small: within five standard errors; none is lost."""
    network, domain = CASES[name]
    exact = tessella.count(network, domain).exact
    swarm = MovingParticles(tree_of(network, domain), 6)
    found = np.exp(swarm.rounds(0, 400, 1, FREELY).logarithms)
    assert found.min() > 0.0
    assert abs(found.mean() - exact) < 5.0 * found.std(ddof=1) / math.sqrt(len(found)) + 1e-9
    assert 0.0 < found.std(ddof=1) < exact


def test_with_room_for_all_cells_it_is_a_count():
    network, domain = CASES["two layers"]
    exact = tessella.count(network, domain).exact
    found = MovingParticles(tree_of(network, domain), 2 * exact).rounds(0, 2, 1, FREELY).logarithms
    assert np.allclose(np.exp(found), exact)


def test_moves_keep_particles_evenly_spread():
    """Without moves the same swarms spread further."""
    tree = tree_of(network_of(6, 16, 16), tessella.Box.cube(-1, 1, 6))
    still, moving = (MovingParticles(tree, 6).rounds(0, 100, 1, steered(moves)).logarithms for moves in (0, 16))
    assert moving.std() < 0.8 * still.std()


@pytest.mark.parametrize("name", ["two layers", "three layers", "leaky", "linear units", "more inputs than units"])
def test_rows_follow_walls_that_are_crossed(name):
    """After a swarm has gone down, each particle's rows and vertex are those of its signs, composed anew from the weights."""
    network, domain = CASES[name]
    tree = tree_of(network, domain)
    particles = MovingParticles(tree, 8)
    particles.rounds(0, 1, 3, FREELY)
    swarm, scaled = particles._swarm, tree.scaled
    undecided = int(swarm.layers.unit_of[-1])
    for node in swarm.members[: swarm.size]:
        rows, constants = scaled.weights[0], scaled.biases[0]
        place = np.zeros(scaled.weights[0].shape[1])
        vertices = swarm.primal.vertices
        place[:] = vertices.sides[node] * (1.0 - 1e-9)
        k = vertices.size[node]
        place[vertices.basic[node, :k]] = vertices.values[node, :k]
        first = 0
        for depth, bias in enumerate(scaled.biases):
            units = np.arange(first, first + len(bias))
            active = swarm.signs[node, units] > 0
            values = rows @ place + constants
            on = scaled.rectified[depth] & (units != undecided)
            assert (values[on] > 0.0).tolist() == active[on].tolist()
            assert swarm.errors[node, units].max() < 1e-9
            if depth + 1 < len(scaled.biases):
                factors = np.where(active, 1.0, scaled.slopes[depth])
                weight = scaled.weights[depth + 1] * factors
                rows, constants = weight @ rows, weight @ constants + scaled.biases[depth + 1]
            first += len(bias)


def test_the_way_back_is_open():
    """From the other side of a wall the same unit leads back, and a unit that is no wall stays none."""
    network, domain = CASES["three layers"]
    particles = MovingParticles(tree_of(network, domain), 8)
    particles.rounds(0, 1, 3, FREELY)
    swarm = particles._swarm
    decided, node, crossed = len(swarm.layers.unit_of) - 1, int(swarm.members[0]), 0
    for u in [*range(decided)] * 3:
        before = swarm.signs[node].copy()
        found = crossing.cross(swarm, node, u, decided)
        if found == crossing.INFEASIBLE:
            assert crossing.cross(swarm, node, u, decided) == crossing.INFEASIBLE
            continue
        assert found == crossing.FEASIBLE
        assert crossing.follow(swarm, node, u, decided)
        assert crossing.cross(swarm, node, u, decided) == crossing.FEASIBLE
        assert crossing.follow(swarm, node, u, decided)
        assert (swarm.signs[node] == before).all()
        crossed += 1
        crossing.cross(swarm, node, u, decided)
        crossing.follow(swarm, node, u, decided)
    assert crossed > 5


def test_same_numbers_give_the_same_results():
    """Whoever makes them, and in which order."""
    network, domain = CASES["two layers"]
    tree = tree_of(network, domain)
    one, other = MovingParticles(tree, 6), MovingParticles(tree, 6)
    all_of_them = one.rounds(0, 6, 9, FREELY).logarithms
    parts = [other.rounds(first, 2, 9, FREELY).logarithms for first in (4, 0, 2)]
    assert np.concatenate([parts[1], parts[2], parts[0]]).tolist() == all_of_them.tolist()
    assert len(set(all_of_them)) > 1


def test_what_takes_too_long_is_lost():
    network, domain = CASES["two layers"]
    particles = MovingParticles(tree_of(network, domain), 6)
    assert particles.rounds(0, 2, 1, steered(16, 3.0)).logarithms.tolist() == [-math.inf] * 2
    assert len(particles.answers) == particles.answers.given_up == 2
    assert np.isfinite(particles.rounds(0, 2, 1, FREELY).logarithms).all()


def twins():
    """Two units with one hyperplane."""
    (weight, bias), *others = layers_of((3, 8, 6))
    weight[1], bias[1] = weight[0], bias[0]
    return [(weight, bias), *others]


@pytest.mark.parametrize(("layers", "low"), [(twins(), -1), (layers_of((3, 8, 6), 7, bias=0.0), 0)])
def test_hyperplanes_that_meet_in_a_corner_or_everywhere_are_left_to_others(layers, low):
    """Rounding cannot tell on which side of such a hyperplane a cell lies: swarms count nothing there, and nothing too much."""
    network = tessella.Network.from_arrays(layers, relu_output=True)
    found = MovingParticles(tree_of(network, tessella.Box.cube(low, 1, 3)), 6).rounds(0, 20, 1, FREELY).logarithms
    assert (found == -math.inf).all()


def test_memory_limits_their_number():
    assert room_for(tree_of(*CASES["two layers"])) > 1000
    assert 1 < room_for(tree_of(network_of(100, 200, 200), tessella.Box.cube(-1, 1, 100))) < 1000


def turns(contest, spread, seconds, shares):
    """The kinds of turns whose rounds spread so far, and take so long."""
    nothing = Records(np.zeros((0, 1), dtype=np.float32), np.zeros((0, 3), dtype=np.int64), np.zeros(0))
    found = []
    for share in shares:
        turn = contest.turn(share, 1000.0)
        count = int(min(turn.most, 20))
        logarithms = math.log(2.0) * np.random.default_rng(0).normal(50.0, spread[turn.kind], count)
        contest.take(turn, Batch(logarithms, nothing), seconds[turn.kind] * count)
        contest.end(turn)
        found.append(turn)
    return found


@pytest.mark.parametrize(
    ("moving", "kinds"),
    [
        (1.0, [Kind.MOVING, Kind.MOVING, Kind.PROGRAMS, Kind.MOVING, Kind.MOVING]),
        (20.0, [Kind.MOVING, Kind.MOVING, Kind.PROGRAMS, Kind.PROGRAMS, Kind.PROGRAMS]),
    ],
)
def test_the_first_tenth_of_the_time_decides(moving, kinds):
    """Small populations come first, then single descents; what promises the narrower interval is chosen."""
    contest = Contest(tree_of(network_of(5, 30, 30), tessella.Box.cube(-1, 1, 5)), timed=True, seconds=100.0)
    spread, seconds = {Kind.MOVING: moving, Kind.PROGRAMS: 2.0}, {Kind.MOVING: 0.1, Kind.PROGRAMS: 0.5}
    made = turns(contest, spread, seconds, [0.0, 0.01, 0.05, 0.41, 0.5])
    assert [turn.kind for turn in made] == kinds
    assert not made[2].bets
    assert [turn.most for turn in made[:2]] == [1, 5]
    if moving == 1.0:
        assert made[-1].population > 60
        assert contest.learned
        assert contest.settled == 26
    else:
        assert made[-1].bets


def test_what_is_lost_is_tried_with_fewer_moves_and_then_not_again():
    contest = Contest(tree_of(network_of(5, 30, 30), tessella.Box.cube(-1, 1, 5)), timed=True, seconds=100.0)
    nothing = Records(np.zeros((0, 1), dtype=np.float32), np.zeros((0, 3), dtype=np.int64), np.zeros(0))
    for moves in (16, 4):  # fewer moves take less time
        turn = contest.turn(0.0)
        assert (turn.kind, turn.theta[0, 0], turn.most) == (Kind.MOVING, moves, 1)
        contest.take(turn, Batch(np.array([-math.inf]), nothing), 0.1)
        contest.end(turn)
    assert [contest.turn(share).kind for share in (0.0, 0.2, 0.5)] == [Kind.PROGRAMS] * 3


def test_an_estimate_of_a_hundred_units():
    """In one second of one processor: the interval is narrow and holds the number, and the bound lies below."""
    from time import process_time

    blocks = [layers_of((4, 8, 6), seed) for seed in range(8)]
    exact = 0.0
    for layers in blocks:
        network = tessella.Network.from_arrays(layers, relu_output=True)
        exact += math.log2(tessella.count(network, tessella.Box.cube(0, 1, 4)).exact)
    from scipy.linalg import block_diag

    layers = [(block_diag(*[b[d][0] for b in blocks]), np.concatenate([b[d][1] for b in blocks])) for d in range(2)]
    tree = tree_of(tessella.Network.from_arrays(layers, relu_output=True), tessella.Box.cube(0, 1, 32))
    rounds = Rounds(tree, 1, lambda _: None, process_time)
    rounds.go(None, process_time() + 1.0, None, 1)
    from tessella.estimating.said import said

    found = said(rounds.sample, 0.95, 1 << tree.units)
    assert rounds.sample.method == "particles"
    assert math.log2(found.lower) <= exact
    assert found.maps_interval[1] - found.maps_interval[0] < 3.0
    assert abs(found.maps - exact) < 2.0
