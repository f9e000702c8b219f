"""The rule without lots knows no order, no unit and no names; its ties are decided; what it promises holds. The chapter compares it with the definition, cut by cut."""

import numpy as np
import pytest

from kxbook.oblivious import potential_tree, random_cuts


def g(t):
    return 2 - 2 * np.exp(-t)


def data(seed):
    rng = np.random.default_rng(seed)
    k, d = 2 + seed % 4, 1 + seed % 3
    U = rng.normal(size=(k, d)).round(1) * 2
    labels = np.r_[np.arange(k), rng.integers(0, k, size=30 - k)]
    X = U[labels] + rng.normal(size=(30, d)).round(1) * (np.arange(30) >= k)[:, None]
    return X, U, labels, rng


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_order_units_names_and_copies(seed, q):
    X, U, labels, rng = data(seed)
    tree, potential = potential_tree(X, U, labels, g, q)
    order, names, weights = rng.permutation(30), rng.permutation(len(U)), rng.integers(1, 4, 30)
    moved = potential_tree(X[order], U, labels[order], g, q)
    assert moved.tree == tree and np.allclose(moved.potential, potential)
    scaled = potential_tree(X * 8, U * 8, labels, lambda t: g(t / 8**q), q).tree
    assert (scaled.predict(X * 8) == tree.predict(X)).all() and (scaled.hi == tree.hi * 8).all()
    renamed = potential_tree(X, U[np.argsort(names)], names[labels], g, q).tree
    assert (renamed.predict(X) == names[tree.predict(X)]).all()
    again = np.repeat(np.arange(30), weights)
    heavy = potential_tree(X, U, labels, g, q, weights * 1.0)
    copies = potential_tree(X[again], U, labels[again], g, q)
    assert heavy.tree == copies.tree and np.allclose(heavy.potential, copies.potential)


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_the_potential_falls_and_is_not_below_what_is_paid(seed, q):
    X, U, labels, _ = data(seed)
    tree, potential = potential_tree(X, U, labels, g, q)
    assert tree.n_leaves == len(U) == len(potential) and (tree.predict(U) == range(len(U))).all()
    paid = g((np.abs(X - U[tree.predict(X)]) ** q).sum(1)).sum()
    assert (np.diff(potential) <= 1e-12).all() and paid <= potential[-1] + 1e-12
    k, t = len(U), (np.abs(X - U[labels]) ** q).sum(1)
    factor = k if q == 1 else (1 + np.sqrt(k * (k - 1))) ** 2
    assert np.isclose(potential[0], g(factor * t).sum(), rtol=1e-12)


def test_ties_go_to_the_widest_gap_then_to_the_first_axis_and_the_lowest():
    def first(*points):
        X = np.array(points, dtype=float)
        tree = potential_tree(X, X, np.arange(len(X)), g).tree
        return tree.axis[0], tree.hi[0]

    assert first((0, 0), (1, 3), (9, 4)) == (0, 5)  # 8 of 9 against 3 of 4
    assert first((0, 0), (2, 9), (3, 10)) == (1, 4.5)
    assert first((0, 0), (1, 1)) == (0, 0.5) and first((0,), (1,), (2,)) == (0, 0.5)


def test_one_centre_equal_centres_and_centres_without_points():
    X, U, labels, _ = data(2)
    alone = potential_tree(X, U[:1], np.zeros(30, int), g)
    assert alone.tree.n_leaves == 1 and len(alone.potential) == 1
    twice = potential_tree(X, np.vstack([U, U]), labels, g)
    assert twice.tree == potential_tree(X, U, labels, g).tree
    none = potential_tree(X[:0], U, labels[:0], g)
    assert none.tree.n_leaves == len(U) and not none.potential.any()


def test_thresholds_are_below_the_next_value():
    a = 1.0
    b = np.nextafter(a, 2)
    X = np.array([[a], [b]])
    for tree in (
        potential_tree(X, X, np.arange(2), g).tree,
        random_cuts(X, 1, np.random.default_rng(0)),
    ):
        assert tree.predict(X).tolist() == [0, 1]
