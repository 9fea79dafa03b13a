"""Which operators of an ONNX graph to run, in which order, and where to stop: decided before anything is computed.

An operator that is not piecewise linear, such as a softmax, ends what can be read.  If only such ends and what moves elements about follow, they are left
off: the network is read up to what they read.  If anything else follows, the model is refused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tessella.errors import UnsupportedOperator
from tessella.importers.onnx_graph import advice, label, makers_of, sorted_nodes
from tessella.importers.onnx_index import OPERATORS
from tessella.importers.onnx_node import attribute
from tessella.importers.onnx_reference import FOLDED

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

DOMAINS = frozenset({"", "ai.onnx"})

_FLOATS = frozenset({1, 10, 11, 16})  # element types
_SHAPES = frozenset({"Shape", "Size"})
_COMPARISONS = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
_SEVERAL_RESULTS = frozenset({"Split"})

# ends: what a model makes of its scores
_SMOOTH = frozenset(
    {"Softmax", "LogSoftmax", "Sigmoid", "Tanh", "Exp", "Softplus", "Erf", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}
)
_LABELS = frozenset({"ArgMax", "ArgMin", "Hardmax"})
# what may follow an end: moving elements, scaling probabilities, counting labels
_MOVES = frozenset(
    {
        "Identity",
        "Dropout",
        "Reshape",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Slice",
        "Gather",
        "Concat",
        "Split",
        "Cast",
        "Expand",
        "Tile",
    }
)
_SCALINGS = frozenset({"Add", "Sub", "Mul", "Div", "Neg"})
_COUNTS = frozenset({"OneHot", "Equal", "ReduceSum", "ReduceMean", "Not", "And", "Or", *_COMPARISONS})

_CURVED = frozenset(
    {
        *(
            "Celu",
            "Cos",
            "Elu",
            "Gelu",
            "GRU",
            "HardSwish",
            "InstanceNormalization",
            "LayerNormalization",
            "Log",
            "LpNormalization",
            "LRN",
            "LSTM",
        ),
        *(
            "MeanVarianceNormalization",
            "Mish",
            "Reciprocal",
            "ReduceL2",
            "ReduceLogSumExp",
            "ReduceProd",
            "ReduceSumSquare",
            "RNN",
            "Selu",
            "Sin",
        ),
        *("Softsign", "Sqrt", "Swish", *_SMOOTH),
    }
)
_JUMPS = frozenset({"Ceil", "Floor", "Mod", "Round", "Sign", "DynamicQuantizeLinear", "QuantizeLinear", *_LABELS})


class Kind(Enum):
    """What is known of a tensor before anything is computed."""

    CONSTANT = "does not depend on the input"
    LINEAR = "is piecewise linear in the input"
    TRUTH = "says whether something that is linear is positive"
    ROUNDED = "is a whole number made of something that is linear"
    SMOOTH = "follows a smooth end"
    LABEL = "follows an end that makes labels"


_ENDED = frozenset({Kind.SMOOTH, Kind.LABEL})


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    nodes: "tuple[NodeProto, ...]"  # the operators, each after those that it reads
    labels: tuple[str, ...]  # what to call each in messages
    kept: tuple[str, ...]  # the tensors that are read
    left_off: tuple[str, ...]  # the labels of the operators after these


def planned(graph: "GraphProto", entries: Iterable[str], constants: Iterable[str], outputs: Iterable[str]) -> Plan:
    """Sort the operators that some outputs need, and find where what can be read ends, or refuse.

    Parameters
    ----------
    graph
        The graph.
    entries
        The inputs that vary.
    constants
        The tensors that are known: initializers, and inputs that are fixed.
    outputs
        The tensors that are wanted.
    """
    nodes = list(graph.node)
    makers = makers_of(nodes)
    known, outputs = dict.fromkeys(constants, Kind.CONSTANT) | dict.fromkeys(entries, Kind.LINEAR), list(outputs)
    order = sorted_nodes(nodes, makers, outputs, known)
    reading = _Reading(nodes, makers, dict(known))
    for position in order:
        reading.read(position)
    kept = reading.kept(outputs)
    wanted = set(sorted_nodes(nodes, makers, kept, known))
    left_off = tuple(label(nodes, position) for position in order if position not in wanted and reading.varies(position))
    ran = [position for position in order if position in wanted]
    return Plan(tuple(nodes[place] for place in ran), tuple(label(nodes, place) for place in ran), tuple(kept), left_off)


class _Reading:
    """A walk along the sorted operators that keeps what is known of each tensor."""

    def __init__(self, nodes: "list[NodeProto]", makers: Mapping[str, tuple[int, int]], known: dict[str, Kind]) -> None:
        self._nodes, self._makers, self._kinds = nodes, makers, known
        self._sources: dict[str, tuple[str, ...]] = {}  # the last tensors that are linear, of each that is not

    def varies(self, position: int) -> bool:
        """Whether an operator's results depend on the input."""
        return any(self._kinds.get(name) is not Kind.CONSTANT for name in self._nodes[position].output)

    def kept(self, outputs: Iterable[str]) -> list[str]:
        """The tensors to read for some outputs."""
        names: list[str] = []
        for name in outputs:
            self._check_result(name)
            kind = self._kinds[name]
            if kind is Kind.ROUNDED:
                position = self._makers[name][0]
                raise self._refusal(
                    position,
                    "casts to a type that is not floating-point; only float16, float32 and float64 keep a network piecewise linear",
                )
            names += self._sources[name] if kind in {Kind.SMOOTH, Kind.LABEL, Kind.TRUTH} else (name,)
        return list(dict.fromkeys(names))

    def _check_result(self, name: str) -> None:
        """Refuse what reads a result that is not computed, such as where a maximum was found."""
        position, place = self._makers.get(name, (0, 0))
        operator = self._nodes[position].op_type
        if place and operator not in _SEVERAL_RESULTS and self._kinds[name] is not Kind.CONSTANT:
            raise self._refusal(
                position, f"has {name!r} as result number {place + 1}, which is used, but only its first can be read"
            )

    def read(self, position: int) -> None:
        """Find out what an operator's results are, or refuse it."""
        proto = self._nodes[position]
        for name in proto.input:
            self._check_result(name)
        kinds = [self._kinds.get(name, Kind.CONSTANT) for name in proto.input]
        kind = self._kind(position, proto, kinds)
        for name in proto.output:
            self._kinds[name] = kind
            if kind in {Kind.SMOOTH, Kind.LABEL, Kind.TRUTH}:
                self._sources[name] = self._behind(proto, kind)

    def _behind(self, proto: "NodeProto", kind: Kind) -> tuple[str, ...]:
        found: list[str] = []
        for name in proto.input:
            before = self._kinds.get(name, Kind.CONSTANT)
            if before is Kind.LINEAR and (kind is not Kind.LABEL or proto.op_type != "Equal"):
                found.append(name)
            found += self._sources.get(name, ())
        return tuple(dict.fromkeys(found))

    def _kind(self, position: int, proto: "NodeProto", kinds: list[Kind]) -> Kind:
        operator, given = proto.op_type, set(kinds)
        if proto.domain not in DOMAINS:
            raise self._refusal(
                position, f"is of type {operator}, from the domain {proto.domain!r}, whose operators are not read"
            )
        if given <= {Kind.CONSTANT} and (operator in OPERATORS or operator in FOLDED):
            return Kind.CONSTANT
        if operator in _SHAPES and kinds[:1] == [Kind.LINEAR]:
            return Kind.CONSTANT
        if given & _ENDED:
            return self._after_the_end(position, proto, kinds)
        if (operator in _SMOOTH or operator in _LABELS) and kinds[:1] == [Kind.LINEAR] and given <= {Kind.LINEAR, Kind.CONSTANT}:
            return Kind.SMOOTH if operator in _SMOOTH else Kind.LABEL
        if operator == "Cast" and attribute(proto, "to") not in _FLOATS:
            return Kind.TRUTH if kinds[0] is Kind.TRUTH else Kind.ROUNDED
        if operator not in OPERATORS:
            raise self._refusal(position, f"is of type {operator}, which {_why(operator)}")
        if Kind.ROUNDED in given:
            why = "reads whole numbers made of values that depend on the input, which jump; that is not piecewise linear"
            raise self._refusal(position, why)
        return self._linear(position, proto, kinds)

    def _linear(self, position: int, proto: "NodeProto", kinds: list[Kind]) -> Kind:
        """The kind that an operator which can be read makes of linear tensors and comparisons."""
        operator = OPERATORS[proto.op_type]
        for place in operator.fixed(len(kinds)):
            if place < len(kinds) and kinds[place] is not Kind.CONSTANT:
                raise self._refusal(position, _unfit(proto.op_type, place))
        if sum(kinds[place] is Kind.LINEAR for place in operator.factors if place < len(kinds)) > 1:
            raise self._refusal(position, "multiplies two values that both depend on the input; that is not piecewise linear")
        if Kind.TRUTH in kinds:
            if proto.op_type in {"Identity", "Cast", "Not"}:
                return Kind.TRUTH
            if not (proto.op_type == "Where" and Kind.TRUTH not in kinds[1:]) and not (
                proto.op_type == "Mul" and Kind.LINEAR in kinds
            ):
                raise self._refusal(
                    position,
                    "reads a comparison, which jumps; only a choice between two values that are equal where it turns can be read",
                )
        return Kind.TRUTH if proto.op_type in _COMPARISONS else Kind.LINEAR

    def _after_the_end(self, position: int, proto: "NodeProto", kinds: list[Kind]) -> Kind:
        """The kind of what follows an end, or a refusal."""
        operator, given = proto.op_type, set(kinds)
        others, labels = given - _ENDED - {Kind.CONSTANT}, Kind.LABEL in given
        alone = not others and sum(kind in _ENDED for kind in kinds) == 1
        whole = operator == "Cast" and attribute(proto, "to") not in _FLOATS
        counts = operator in _COUNTS and others <= {Kind.ROUNDED} and (labels or operator in _COMPARISONS)
        if whole or counts or (operator in _LABELS and not others):
            return Kind.LABEL
        moves = alone and kinds[0] in _ENDED if operator != "Concat" else others <= {Kind.LINEAR}
        if (operator in _MOVES and moves) or (operator in _SMOOTH | _SCALINGS and alone):
            return Kind.LABEL if labels else Kind.SMOOTH
        ended = next(name for name, kind in zip(proto.input, kinds, strict=True) if kind in _ENDED)
        origin = self._first_end(ended)
        why = _why(self._nodes[origin].op_type)
        message = f"reads the result of {label(self._nodes, origin)}, which {why}; only at the end of a model can it be left off"
        raise self._refusal(position, message, origin)

    def _first_end(self, name: str) -> int:
        """The first operator of an end that a tensor follows."""
        while True:
            position = self._makers[name][0]
            before = [entry for entry in self._nodes[position].input if self._kinds.get(entry) in _ENDED]
            if not before:
                return position
            name = before[0]

    def _refusal(self, position: int, why: str, cut: int | None = None) -> UnsupportedOperator:
        """Why an operator cannot be read, and where the model could be cut."""
        inputs = self._nodes[position if cut is None else cut].input
        linear = next((name for name in inputs if self._kinds.get(name) is Kind.LINEAR and name in self._makers), None)
        return UnsupportedOperator(f"{label(self._nodes, position)} {why}; {advice(linear)}")


def _unfit(operator: str, place: int) -> str:
    what = {"Div": "divides by a value that depends", "Pow": "raises to a power that depends"}.get(operator)
    if what is not None:
        return f"{what} on the input; that is not piecewise linear"
    return f"input {place} depends on the network's input; a constant was expected"


def _why(operator: str) -> str:
    if operator in _CURVED:
        return "is not piecewise linear"
    if operator in _JUMPS:
        return f"jumps{' (quantised values are rounded)' if 'Quantize' in operator else ''} and so is not piecewise linear"
    return "cannot be read"
