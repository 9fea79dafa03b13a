"""What torch models end with that changes no region: probabilities, classes, smooth losses.

Such an operator, and what only moves, scales or shifts its results, is left off if nothing else reads them.
"""

from collections.abc import Sequence
from typing import Any

from tessella.importers.torch_moves import DROPOUTS, MOVES
from tessella.importers.trace import Ended, Tensor

_SMOOTH = """
    softmax _softmax log_softmax _log_softmax sigmoid log_sigmoid tanh softplus exp argmax argmin
    cross_entropy_loss nll_loss nll_loss_nd nll_loss2d mse_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div poisson_nll_loss
    soft_margin_loss
"""
_AFFINE = frozenset(
    {"add", "sub", "subtract", "rsub", "mul", "multiply", "div", "divide", "true_divide", "neg", "negative", "mean", "sum"}
)
ENDS = frozenset(_SMOOTH.split())


def ending(aten: str, args: Sequence[Any]) -> Ended | None:
    """The end that an operator makes of its first argument, if it is one that may end a model."""
    first = args[0] if args else None
    others = [value for value in args if isinstance(value, (Tensor, Ended))]
    return Ended(first, (aten.strip("_"),)) if aten in ENDS and isinstance(first, Tensor) and len(others) == 1 else None


def after_end(aten: str, values: Sequence[Any]) -> Ended:
    """What follows the end, if that is no more than one of its kind, or only moves or scales its elements."""
    ended = next(value for value in values if isinstance(value, Ended))
    moves = aten in MOVES and not (aten in DROPOUTS and any(value is True for value in values))
    alone = all(value is ended for value in values if isinstance(value, (Tensor, Ended)))
    if not alone or not (moves or aten in ENDS or aten in _AFFINE):
        ended.refuse()
    return ended if moves else ended.then(aten.strip("_"))
