"""Which descents an estimate makes: a contest of kinds, and of predictions, that the least spread for the time wins.

Which kind suits a network cannot be told from its sizes.  So where two kinds are possible, both are tried for the first part of the time, and the better one makes the rest of the rounds.  What counts
is how far log X spreads, and what a round takes: with deviation s and n rounds the estimate of log N (`tessella.estimating.spread`) has about the variance (s^2 + c s^4 + d s^6) / n.

Predictions of `tessella.estimating.shared` are on trial, too.  What was learned is tried in a few fresh rounds, and kept only if log X spreads no further than it did before.

**Particles that move** (`tessella.estimating.moving`) need not learn anything.  A few small populations of them are made first; how far these spread, and what they take, says how well large ones do.  Where other kinds come
nowhere near that in the first tenth of the time, they are chosen then, else with the others; and populations are made as large as lets a score of them fit into the time that is left.

**Particles.**  Where log X of descents by linear programs still spreads by some bits when the kind is chosen, a round becomes a whole population that goes down in step (`tessella.estimating.population`), steered by what was
learned so far.  It is as large as lets a few dozen such rounds fit into the time that is left: independent ones, which the interval and the bets are made from.  Without a time limit rounds stay single descents.

**Valid for the bets.**  All is chosen from earlier rounds, in the order of their numbers: given those, each round has the right mean.  Only with a time limit do choices depend on the clock (on how
long *earlier* rounds took), and so on the machine.
"""

import math
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np

from tessella.estimating.descents import Batch, Descents, Records, Shape
from tessella.estimating.moving import MovingParticles, room_for, seconds_per_pivot, steered
from tessella.estimating.nodes import WIDE
from tessella.estimating.shared import SharedValues
from tessella.estimating.tilts import Tilts
from tessella.estimating.values import Values
from tessella.estimating.wide import WideDescents, is_wide
from tessella.network import Floats
from tessella.partition.tree import Tree

_NARROW = 8  # units of the first layer up to which two nodes are kept, and not one
_WIDEST = 512  # units; points are not pushed through wider layers
_UNITS = 900  # more have too many coefficients to learn together: about four per unit, and memory for each pair of them
_PROGRAMS = 64_000  # dimensions times units: beyond it, linear programs take too long beside points
_CONTEST = 0.4  # part of the time after which the kind is chosen
_FIRST = 12  # rounds by points, to begin with
_TELLING = 6  # rounds that tell how far log X spreads, roughly
_TRIAL = 4  # rounds of a trial, to one that there was before
_WORSE = 1.1  # how much further log X may spread in a trial, which has few rounds
_RECENT = 64  # rounds that tell how far log X spreads, where turns are not told apart
_APART = 2.5  # bits that log X spreads by, from which on rounds become populations
_GAIN = 4.0  # by which populations lower the variance in the same time, as was measured
_POPULATIONS = 24  # of these, in the time that is left
_FEWEST, _MOST = 4, 128  # in one population
_SCATTERED, _SCATTERED_IN = 48, 48  # points scattered over each cell, and the dimensions up to which they pay
_LEAST = 48  # units; networks with fewer are estimated well by anything
_MOVES, _MOVES_FEWER = 16, 4  # walls that each particle tries to cross between two decisions; the same where that takes too long
_TRIALS, _TRIED = 6, 4  # populations of moving particles to begin with, and particles in each
_TOO_SHORT = 0.5  # seconds in all, in a tenth of which not even small populations end
_SHARE = 0.1  # part of the time that these may take, and after which others are compared with them
_NEAR = 10.0  # times the variance in the same time: single descents that come no nearer by then are given up
_DOUBT = 0.35  # how large skewnesses are
_LITTLE = 1e-4  # bits^2; a few populations may look alike by chance
_FEW, _SCORE = 12, 24  # large populations, at least and at most: fewer say little of how far they spread, more are smaller
_LARGEST = 4096  # particles in one
_SLOWER = 1.25  # times what a particle of a small population takes
_LN2 = math.log(2.0)


class Kind(StrEnum):
    """How rounds descend, and what they learn."""

    PROGRAMS = "linear programs"
    SHARED = "linear programs, shared predictions"
    POINTS = "points"
    PARTICLES = "particles"
    SHARED_PARTICLES = "particles, shared predictions"
    MOVING = "particles, moving"

    @property
    def method(self) -> str:
        """The same for people."""
        return self.split(",", maxsplit=1)[0]


_PARTICLES = {Kind.PROGRAMS: Kind.PARTICLES, Kind.SHARED: Kind.SHARED_PARTICLES}


class Turn(NamedTuple):
    """How the next rounds are made."""

    kind: Kind  # how they descend
    theta: Floats  # what they are steered by; of particles that move, how often they do and when to give up
    most: float = math.inf  # how many at most
    population: int | None = None  # nodes of a round; None for what suits the kind
    bets: bool = True  # whether anything is to be bet on them; nothing is while rounds are expected to become populations
    seconds: float = 0.0  # what one is expected to take of a processor; 0 where that is not known


class Learner(Protocol):
    """What learns from rounds."""

    @property
    def theta(self) -> Floats:
        """What was learned."""
        ...

    def add(self, records: Records) -> None:
        """Take in what a batch of rounds noted."""
        ...

    def learn(self) -> Floats:
        """Fit."""
        ...


def kinds_for(tree: Tree) -> tuple[Kind, ...]:
    """The kinds of descents that are worth a trial; small trees have one."""
    first, widest = tree.network.layers[0].units, max(layer.units for layer in tree.network.layers)
    few = widest <= _WIDEST and tree.units <= _UNITS
    programs = Kind.SHARED if widest > WIDE and few else Kind.PROGRAMS
    if not is_wide(tree):
        return (programs,)
    if not few or min(tree.domain.free_dim, first) * tree.units > _PROGRAMS:
        return (Kind.POINTS,)
    return (programs, Kind.POINTS)


def descents_of(tree: Tree, kind: Kind, population: int | None = None) -> Descents | WideDescents | MovingParticles:
    """What makes rounds of a kind."""
    return MovingParticles(tree, population or _FEWEST) if kind is Kind.MOVING else descents_with_leaves(tree, kind, population)


def descents_with_leaves(tree: Tree, kind: Kind, population: int | None = None) -> Descents | WideDescents:
    """Descents of a kind, which can draw a leaf, with the population that was best: a second node pays where the first layer is narrow."""
    if kind is Kind.POINTS:
        return WideDescents(tree)
    if kind is Kind.PARTICLES:
        return Descents(tree, population=population or _FEWEST, in_step=True)
    if kind is Kind.PROGRAMS:
        return Descents(tree, population=population or (2 if tree.walked.layers[0].units <= _NARROW else 1))
    particles = kind is Kind.SHARED_PARTICLES
    scattered = _SCATTERED if tree.domain.free_dim <= _SCATTERED_IN else 0
    size = (population or _FEWEST) if particles else 1
    return Descents(tree, population=size, widest=_WIDEST, in_step=particles, scattered=scattered)


def _learner(tree: Tree, kind: Kind) -> Learner:
    if kind is Kind.POINTS:
        return Tilts(len(tree.network.layers))
    return SharedValues(Shape.of(tree, _WIDEST)) if kind is Kind.SHARED else Values(Shape.of(tree))


class _Entrant:
    """One kind, what it has learned, and how it did of late."""

    def __init__(self, tree: Tree, kind: Kind) -> None:
        self.kind, self.learner, self.validates = kind, _learner(tree, kind), kind is Kind.SHARED
        self.done, self.seconds, self.deviation = 0, 0.0, math.inf
        self._best, self._trying = self.learner.theta.copy(), False
        self._lately: list[Floats] = []

    def turn(self) -> Turn:
        """The next rounds: with what was learned, as a trial if that has not been seen to pay."""
        if not self.validates:
            return Turn(self.kind, self.learner.theta.copy())
        if self._trying:
            return Turn(self.kind, self.learner.theta.copy(), max(_FIRST, self.done // _TRIAL))
        return Turn(self.kind, self._best)

    @property
    def best(self) -> Floats:
        """What rounds are best steered by."""
        return self._best if self.validates else self.learner.theta.copy()

    def take(self, batch: Batch, seconds: float) -> None:
        """Some rounds of this turn."""
        self.done += len(batch.logarithms)
        self.seconds += seconds
        self._lately.append(batch.logarithms)
        self.learner.add(batch.records)

    def end(self, turn: Turn) -> None:
        """The end of a turn: keep what it was steered by if that was good, and learn."""
        made = np.concatenate(self._lately or [np.zeros(0)]) / _LN2
        self._lately = [] if self.validates else [made[-_RECENT:] * _LN2]
        found = made[np.isfinite(made)]
        deviation = float(found.std(ddof=1)) if len(found) >= _TELLING else math.inf
        if not self.validates:
            self.deviation = deviation if math.isfinite(deviation) else self.deviation
            self.learner.learn()
        elif self._trying and not deviation <= _WORSE * self.deviation:
            self._trying = False  # go on with what was better, and learn from these rounds later
        elif math.isfinite(deviation):
            self._best, self.deviation = turn.theta, deviation
            if not self._trying:
                self.learner.learn()
            self._trying = not self._trying
        else:
            self.learner.learn()
            self._trying = True

    def score(self, *, timed: bool) -> float:
        """The variance of an estimate from the rounds of one second."""
        if not self.done or not math.isfinite(self.deviation):
            return math.inf
        square = self.deviation**2
        cost = self.seconds / self.done if timed else 1.0
        if timed and self.kind in _PARTICLES and self.deviation >= _APART:
            cost /= _GAIN
        return cost * (square + _LN2**2 / 2.0 * square**2 + _LN2**4 / 6.0 * square**3)


class _Moving:
    """Particles that move: a few small populations of them, and what these say of large ones.

    Parameters
    ----------
    tree
        Where they go down.
    seconds
        The time there is, of all processors together.
    """

    def __init__(self, tree: Tree, seconds: float) -> None:
        self._room, self._allowed = min(room_for(tree), _LARGEST), _SHARE * seconds
        self._limit, self._moves = self._allowed / seconds_per_pivot(tree), _MOVES
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of what so many moves bring."""
        self.done, self.seconds, self.wanted = 0, 0.0, _TRIALS
        self._found: list[Floats] = []

    def trial(self) -> Turn:
        """The next small populations; the first one alone, to see what it takes."""
        return Turn(
            Kind.MOVING, steered(self._moves, self._limit), self.wanted - self.done if self.done else 1, _TRIED, bets=False
        )

    def take(self, batch: Batch, seconds: float) -> None:
        """Some small populations."""
        self.done += len(batch.logarithms)
        self.seconds += seconds
        self._found.append(batch.logarithms / _LN2)
        fitting = self._allowed / max(self.seconds / self.done, 1e-9)
        lost = not np.isfinite(batch.logarithms).any()  # what is lost at first is lost again
        self.wanted = self.done if lost else int(min(max(fitting, 2), _TRIALS))
        if lost and self._moves == _MOVES:  # perhaps because it takes too long
            self._moves = _MOVES_FEWER
            self._begin()

    @property
    def tried(self) -> bool:
        """Whether there were enough."""
        return self.done >= self.wanted

    @property
    def _variance(self) -> float:
        """Of log X, for one particle in a population; infinite if too many were lost."""
        found = np.concatenate(self._found or [np.zeros(0)])
        hits = found[np.isfinite(found)]
        if len(hits) < 2 or 2 * len(hits) <= len(found):
            return math.inf
        return max(float(hits.var(ddof=1)), _LITTLE) * _TRIED

    @property
    def alive(self) -> bool:
        """Whether most of them found something."""
        return math.isfinite(self._variance)

    @property
    def score(self) -> float:
        """The variance of an estimate from what one second brings, in large populations."""
        return self._variance * self._each

    @property
    def _each(self) -> float:
        """What one particle takes."""
        return self.seconds / max(self.done, 1) / _TRIED

    def large(self, seconds: float) -> Turn:
        """The populations that make use of so many seconds of a processor."""
        particles = seconds / max(_SLOWER * self._each, 1e-9)
        size = int(min(max(particles / _how_many(self._variance / particles), _FEWEST), self._room))
        return Turn(Kind.MOVING, steered(self._moves), population=size, seconds=_SLOWER * self._each * size)


def _how_many(variance: float) -> int:
    """How many populations to make of all particles together, which would leave the estimate this variance in bits.

    In n populations log X has n times the variance v; what is not known of the mean, the variance and the skewness of log X (`tessella.estimating.spread`) is least for this n.
    """
    count = np.arange(_FEW, _SCORE + 1)
    square = variance * count
    unknown = square / count + (_LN2 / 2.0 * square) ** 2 * 2.0 / (count - 1) + (_LN2**2 / 6.0 * _DOUBT) ** 2 * square**3
    return int(count[np.argmin(unknown * (1.0 + _FEW / (4.0 * count)) ** 2)])


def _may_move(tree: Tree) -> bool:
    """Whether trials of particles that move are worth it; cells of a network on all of space meet in one point, so no linear program would tell which are neighbours."""
    return tree.units >= _LEAST and not tree.homogeneous and room_for(tree) >= _TRIED


class Contest:
    """Says how rounds are to be made, and learns from them.

    Parameters
    ----------
    tree
        Where to descend.
    timed
        Whether what rounds take counts; without a time limit answers must not depend on it.
    seconds
        The time there is, of all processors together; 0 where that is not known: then, or in too short a time, particles do not move.
    """

    def __init__(self, tree: Tree, *, timed: bool, seconds: float = 0.0) -> None:
        """Nothing is known yet."""
        self._entrants = [_Entrant(tree, kind) for kind in kinds_for(tree)]
        self._timed, self._chosen = timed, self._entrants[0] if len(self._entrants) == 1 else None
        self._moving = _Moving(tree, seconds) if timed and seconds >= _TOO_SHORT and _may_move(tree) else None
        self._seconds, self._trials = seconds, 0
        self._particles: Turn | None = None
        self._grows = True
        self.settled = 0  # rounds before the choice

    def turn(self, share: float, fitting: float = 0.0, free: float = 1.0) -> Turn:
        """How to make the next rounds.

        Parameters
        ----------
        share
            The part of the time, or of the rounds, that is over.
        fitting
            How many single descents, of the kind made most, would fit into the time that is left.
        free
            The part of the time in which workers have a processor.
        """
        if self._particles is not None:
            return self._particles
        if self._moving is not None:
            return self._beside(self._moving, share, fitting, free)
        return self._descend(share, fitting)

    def _beside(self, moving: _Moving, share: float, fitting: float, free: float) -> Turn:
        """Small populations of moving particles, then what else there is until the better one is known."""
        if not moving.tried:
            return moving.trial()
        best = self._leader.score(timed=True)
        if not moving.alive or (share >= _CONTEST and best <= moving.score):
            self._moving, self.settled = None, self.settled or self._trials
            return self._descend(share, fitting)
        if share >= (_SHARE if best > _NEAR * moving.score else _CONTEST):
            self.settled = self._made
            found = moving.large((1.0 - share) * self._seconds * free)
            self._particles = found._replace(seconds=found.seconds / free)
            return self._particles
        return self._descend(share, fitting)._replace(bets=False)

    def _descend(self, share: float, fitting: float) -> Turn:
        """The next single descents, or populations of particles that do not move."""
        if self._chosen is None:
            programs, points = self._entrants
            if points.done < _FIRST:
                return points.turn()._replace(most=_FIRST - points.done)
            if share < _CONTEST:
                return self._single(programs, share, fitting)
            self._chosen, self.settled = self._leader, self._made
        if share >= _CONTEST and self._grows:
            self._grows = False
            size = int(min(fitting / _POPULATIONS, _MOST)) if self._is_apart(self._chosen) else 0
            if size >= _FEWEST:
                self.settled = self._made
                turn = self._chosen.turn()
                self._particles = Turn(_PARTICLES[turn.kind], self._chosen.best, population=size)
                return self._particles
        return self._single(self._chosen, share, fitting)

    def _single(self, entrant: _Entrant, share: float, fitting: float) -> Turn:
        """Rounds of single descents; no more than until the kind is chosen, if that may change them."""
        turn = entrant.turn()
        if not (self._grows and self._is_apart(entrant)):
            return turn
        rest = math.floor(fitting * (_CONTEST - share) / (1.0 - share)) if fitting > 0.0 and share < _CONTEST else turn.most
        return turn._replace(bets=False, most=min(turn.most, max(rest, 1)))

    def _is_apart(self, entrant: _Entrant) -> bool:
        """Whether log X spreads so far that rounds should become populations."""
        return self._timed and entrant.kind in _PARTICLES and entrant.done >= _TELLING and entrant.deviation >= _APART

    def take(self, turn: Turn, batch: Batch, seconds: float) -> None:
        """Some rounds of a turn, which took so many seconds of one processor."""
        if turn is self._particles:
            return
        if turn.kind is not Kind.MOVING:
            self._entrant(turn.kind).take(batch, seconds)
        elif self._moving is not None:
            self._trials += len(batch.logarithms)
            self._moving.take(batch, seconds)

    def end(self, turn: Turn) -> None:
        """All rounds of a turn are there."""
        if turn is not self._particles and turn.kind is not Kind.MOVING:
            self._entrant(turn.kind).end(turn)

    @property
    def leader(self) -> Turn:
        """The best so far, of those that make single descents."""
        return self._leader.turn()

    @property
    def learned(self) -> bool:
        """Whether nothing more is learned: rounds are populations, all of them alike."""
        return self._particles is not None

    @property
    def kind(self) -> Kind:
        """How rounds are made now."""
        return self._particles.kind if self._particles is not None else self._leader.kind

    @property
    def _made(self) -> int:
        """Rounds so far."""
        return self._trials + sum(one.done for one in self._entrants)

    @property
    def _leader(self) -> _Entrant:
        return self._chosen or min(reversed(self._entrants), key=lambda one: (one.score(timed=self._timed), -one.done))

    def _entrant(self, kind: Kind) -> _Entrant:
        return next(one for one in self._entrants if one.kind is kind)
