"""Thin prefixes are settled as brute force counts them, however they are split, and within the limits that are given."""

import tessella
from helpers.brute_force import count_regions
from helpers.odd_networks import random_case
from tessella.partition.exact import Exact
from tessella.partition.settler import Settler
from tessella.partition.tree import Tree


def cases():
    """Trees, and how many regions they have."""
    for seed in range(20):
        case = random_case(seed, most_inputs=3)
        tree = Tree.of(tessella.stability(case.network, case.domain, method="interval"))
        if tree.units and tree.domain.free_dim:
            yield tree, count_regions(*case)


def trees():
    return (tree for tree, _ in cases())


def test_settlers_count_what_brute_force_does():
    seen = 0
    for tree, right in cases():
        seen += right > 16
        for above in (1, 4, 16):
            found = Settler(tree, split_above=above).settle([b""])
            assert (found.regions, found.waiting) == (right, ())
        assert sorted(Settler(tree).leaves([b""])) == sorted(Exact(tree).leaves(b""))
    assert seen


def test_settlers_go_on_where_they_stopped():
    for tree, right in cases():
        settler, waiting, regions, cells = Settler(tree, split_above=2), (b"",), 0, 0
        whole = settler.settle([b""]).cells
        while waiting:
            found = settler.settle(waiting, lambda: True)
            assert found.cells == 1
            waiting, regions, cells = found.waiting, regions + found.regions, cells + found.cells
        assert (regions, cells) == (right, whole)


def test_settlers_look_at_no_more_cells_than_they_may():
    for tree in trees():
        whole, right = Settler(tree, split_above=1).settle([b""]).cells, list(Exact(tree).leaves(b""))
        settler = Settler(tree, split_above=1, most_cells=whole - 1)
        found = settler.settle([b""])
        assert (found.cells, len(found.waiting)) == (whole - 1, 1)
        assert settler.settle(found.waiting) == (0, found.waiting, 0)
        settler.renew()
        assert settler.settle(found.waiting).regions + found.regions == len(right)


def test_what_settlers_may_not_look_at_is_given_up():
    for tree in trees():
        right = list(Exact(tree).leaves(b""))
        settler = Settler(tree, most_cells=tree.units)  # the first leaf lies one deeper
        assert list(settler.leaves([b""])) == []
        assert settler.given_up > 0
        settler.renew()
        assert settler.given_up == 0
        settler.most_cells = None
        assert list(settler.leaves([b""])) == right
        wanted = list(settler.leaves([b""], lambda prefix: not prefix.startswith(b"\0")))
        assert wanted == [leaf for leaf in right if leaf.startswith(b"\1")]
        assert list(settler.leaves([b""], stopped=lambda: True)) == []
