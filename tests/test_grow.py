"""Growth where chapter 10 does not look: limits of depth, numbers of bins, and who is told that no leaf is worth splitting."""

import numpy as np
import pytest

from kxbook.grow import EXACT_UP_TO, check_bins, grow
from kxbook.sweep import brute_cut, sweep_spec
from kxbook.tree import LEAF, build_tree

POINTS = np.arange(32.0)[:, None]
COSTS = 1 - np.eye(16)[np.arange(32) // 2]  # every two points are a cluster


@pytest.mark.parametrize("cuts", ["interval", "threshold"])
@pytest.mark.parametrize("depth", [0, 1, 2, 3, 5])
def test_growth_goes_as_deep_as_it_may_and_no_deeper(depth, cuts):
    tree = grow(POINTS, COSTS, 100, cuts=cuts, max_depth=depth, quiet=True)
    assert tree.depth == depth and tree.n_leaves >= depth + 1
    again = grow(POINTS, COSTS, 100, tree, cuts=cuts, max_depth=depth + 2, quiet=True)
    assert again.depth == depth + 2 and again.n_leaves > tree.n_leaves


def test_growth_in_bins_begins_beyond_a_number_of_points():
    assert check_bins("auto", EXACT_UP_TO) is None and check_bins("auto", EXACT_UP_TO + 1) == 256


def test_the_caller_is_told_that_no_leaf_is_worth_splitting():
    with pytest.warns(
        UserWarning, match="The tree has 16 leaves, fewer than the 40 asked for"
    ) as told:
        grow(POINTS, COSTS, 40, cuts="threshold")
    assert told[0].filename == __file__


def test_the_sweep_looks_for_intervals_unless_it_is_told_otherwise():
    G = np.array([[0, 9], [9, 0], [0, 9], [0, 9]])
    assert brute_cut(G) == sweep_spec(G) == (0, 1, 1) and brute_cut(G, True) == sweep_spec(
        G, True
    ) == (9, 0, 0)


def test_a_tree_with_as_many_leaves_as_it_may_have_is_left_as_it_is():
    tree = grow(POINTS, COSTS, 5)
    assert grow(POINTS, COSTS, 5, tree) == tree
    with pytest.raises(ValueError, match="has 5 leaves already"):
        grow(POINTS, COSTS, 4, tree)


@pytest.mark.parametrize("bins", [None, 8])
def test_a_leaf_without_points_keeps_its_label(bins):
    base = build_tree([[0, 100.0, 200.0, 1, 2], LEAF, LEAF], {1: 3, 2: 0}, 1)
    tree = grow(POINTS, COSTS, 5, base, bins=bins)
    assert tree.predict([[150.0]]) == [3] and tree.n_leaves == 5
