"""What MIPBound answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tessella._version import __version__
from tessella.answer import Answer, past, read_domain, read_network
from tessella.domain import Domain
from tessella.network import Network
from tessella.probable.probability import feasible_after, probabilities
from tessella.result import SCHEMA, Bound, Counted, Side, Status, claims, format_confidence, format_number, maps, told


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose solutions are counted."""

    name: str  # in words
    variables: int  # how many binary variables parity constraints are drawn from: the unstable units of a network
    counted: Counted  # what is counted
    # network, domain: if it is a network
    network: Network | None = None
    domain: Domain | None = None


@dataclass(frozen=True, slots=True)
class MIPBound(Answer):
    """A lower bound on a number of solutions that holds with a probability.

    That is the chance over the random constraints that were drawn; nothing is assumed of the network, or of the problem.

    Parameters
    ----------
    subject
        Whose solutions.
    parity_size
        How many variables a parity constraint has: k in XOR-k.
    confidence
        The probability asked for.
    draws
        For each repetition, how many constraints were drawn until no solution was left; r in Algorithm 1.
    least
        What is certain: at least so many solutions are there.
    method
        What searched.
    epsilon
        By which part of its range an active unit had to be active; regions without such a point are missed, which keeps the bound true.
    unconfirmed
        How many solutions a solver offered that turned out not to be any.  They were cut off and not counted.
    given_up
        How many cells were left undecided because exact arithmetic would have taken too long.  They count as empty, which keeps the bound true.
    seed
        What the random constraints came from.
    empirical
        The Empirical upper bound, for a network.
    seconds
        Wall time spent.
    status
        Why it ended.
    compile_seconds
        Wall time that went by while code was compiled, once per machine, or loaded.
    """

    subject: Subject
    parity_size: int
    confidence: float
    draws: tuple[int, ...]
    least: int = 1
    method: str = "search"
    epsilon: float = 0.0
    unconfirmed: int = 0
    given_up: int = 0
    seed: tuple[int, ...] = ()
    empirical: int | None = None
    seconds: float = field(default=0.0, compare=False)
    status: Status = Status.FINISHED
    compile_seconds: float = field(default=0.0, compare=False)

    @property
    def repetitions(self) -> int:
        """How many there were; i in Algorithm 1."""
        return len(self.draws)

    @property
    def feasible_after(self) -> tuple[int, ...]:
        """How many repetitions were feasible after j constraints; f[j] in Algorithm 1."""
        return feasible_after(self.draws, self.subject.variables)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """With which probability there are more than 2**j solutions; P_j in Algorithm 1, as far as it says something."""
        return probabilities(self.feasible_after, self.repetitions)

    @property
    def exponent(self) -> int | None:
        """The largest j such that there are more than 2**j solutions with the confidence asked for; None if there is none."""
        sure = [j for j, probability in enumerate(self.probabilities) if probability >= self.confidence]
        return max(sure, default=None)

    @property
    def lower(self) -> int:
        """At least so many solutions are there, with the confidence asked for: 2**exponent + 1, or what is certain."""
        return self.least if self.exponent is None else max(self.least, 2**self.exponent + 1)

    @property
    def probability(self) -> float:
        """The probability that Algorithm 1 gives to the lower bound; 1 where it is certain."""
        return 1.0 if self.exponent is None or self.lower == self.least else self.probabilities[self.exponent]

    @property
    def maps(self) -> float:
        """Log2 of the lower bound."""
        return maps(self.lower)

    @property
    def approximation(self) -> float | None:
        """The paper's APP-k: the mean of log2 of this bound and of the Empirical upper bound; None without either."""
        if self.empirical is None or (not self.draws and self.subject.variables):
            return None
        return (self.maps + maps(self.empirical)) / 2.0

    @property
    def bound(self) -> Bound:
        """The claim."""
        certain = self.lower == self.least
        return Bound(
            self.lower,
            Side.LOWER,
            self.subject.counted,
            f"XOR-{self.parity_size}",
            1.0 if certain else self.confidence,
            self.seconds,
        )

    def __repr__(self) -> str:
        """One line a person can read."""
        time = f"{self.seconds:.2f} s" if self.seconds < 10.0 else f"{self.seconds:,.0f} s"
        if self.status is Status.INFEASIBLE:
            return f"MIPBound(no solutions, as {self.method} says, of {self.subject.name}, {time})"
        number = format_number(self.lower, "regions" if self.subject.network else "solutions", Side.LOWER)
        sure = "certain" if self.lower == self.least else f"{format_confidence(self.confidence)} sure"
        runs = f"{self.repetitions} repetition{'' if self.repetitions == 1 else 's'}"
        return f"MIPBound(at least {number}, {sure}, XOR-{self.parity_size}, {runs}, of {self.subject.name}, {time})"

    def rows(self) -> list[dict[str, Any]]:
        """The claim."""
        return claims([self.bound])

    def _title(self) -> str:
        return f"{str(self.subject.counted).capitalize()} of {self.subject.name}, {self.repetitions} repetitions, {self.seconds:.2f} s"

    def _note(self) -> str:
        if self.approximation is None:
            return ""
        return f"APP-{self.parity_size}, the mean of its MAPS and that of the Empirical upper bound: {self.approximation:.2f}. It claims nothing."

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        counted, variables = Counted(record["counted"]), int(record["variables"])
        if record.get("network") is None:
            return {**record, "subject": Subject(str(record["model"]), variables, counted)}
        of, domain = read_network(record, network), read_domain(record.get("domain"))
        name = f"{of.shape} on {domain.describe()}" if domain else of.shape
        return {**record, "subject": Subject(name, variables, counted, of, domain)}

    def _record(self) -> dict[str, Any]:
        network, domain = self.subject.network, self.subject.domain
        own = {"schema": SCHEMA, "tessella": __version__, "model": self.subject.name}
        return {
            **(own if network is None else past(network, domain)),
            **told(self, "lower", "least", "maps", "confidence", "probability"),
            "counted": self.subject.counted,
            "variables": self.subject.variables,
            **told(self, "parity_size", "repetitions", "draws", "feasible_after", "probabilities", "empirical"),
            **told(self, "approximation", "method", "epsilon", "unconfirmed", "given_up", "seed", "status", "seconds"),
            **told(self, "compile_seconds"),
        }
