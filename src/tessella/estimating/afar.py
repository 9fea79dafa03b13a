"""Descents in a worker process of somebody else."""

from collections.abc import Callable
from typing import Any, TypeVar

from tessella.kernel.threads import single_threaded
from tessella.parallel import Crew
from tessella.partition.tree import Tree

Found = TypeVar("Found")

_kept = dict[Any, Crew[Any]]()  # for each kind of work, who did it for the trees that were asked about last


def work_afar(work: Callable[[Crew[Any], str, Tree, Any], Found], key: str, tree: Tree, task: Any) -> Found:
    """What a foreign executor is given; the number of the first descent, in the task, makes each call another one."""
    with single_threaded():
        return work(_kept.setdefault(work, Crew[Any]()), key, tree, task)
