"""How far from the best tree: no bound above the enumerated optimum, exact where the search ends, and breaks of it that these tests notice."""

import json
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from kxbook import gap
from kxbook.data import load_flame
from kxbook.exact import best_tree
from kxbook.gap import TreeBound, _halves, _Question, _Search, pair_matrix, tree_bound
from kxbook.gram import LowRankGram, StreamedGram, as_gram
from kxbook.kernel import chi2, epsilon, gaussian, laplace, linear
from kxbook.kkmeans import partitions
from kxbook.price import kernel_cost, relaxed_bound, spectral_bound
from kxbook.tree import Tree, TreeBuilder

KERNELS = (gaussian(0.3), laplace(0.7), linear(), chi2(), gaussian(5.0))


@cache
def labellings(leaves, k):
    "Which leaves each cluster has, for every labelling: (p, k, leaves)."
    P = partitions(leaves, k)
    return (P[:, None] == np.arange(k)[:, None]).astype(float)


def divisions(X, leaves, intervals):
    "Every division of the points by a tree with at most so many leaves, as a set of bit masks; from the definition of a tree."
    n = len(X)
    ranges = {
        sum(1 << i for i in range(n) if a <= x[i] <= z)
        for x in X.T
        for a, z in product(np.unique(x) if intervals else [x.min()], np.unique(x))
    }

    @cache
    def below(mask, most):
        found = {frozenset([mask])}
        for inside in {r & mask for r in ranges} - {0, mask} if most > 1 else ():
            for i in range(1, most):
                for one, other in product(below(inside, i), below(mask ^ inside, most - i)):
                    found.add(one | other)
        return found

    return below((1 << n) - 1, leaves)


def optimum(K, X, w, k, m, intervals):
    "The cost of the best tree, over all divisions and all labels."
    n, best = len(X), -np.inf
    G = K * w[:, None] * w
    for division in divisions(X, m, intervals):
        V = np.array([[mask >> i & 1 for i in range(n)] for mask in division], float)
        sums, size = V @ G @ V.T, V @ w
        mine = labellings(len(V), k)
        gain = np.einsum("pcl,lm,pcm->pc", mine, sums, mine) / np.maximum(mine @ size, 1e-300)
        best = max(best, gain.sum(1).max())
    return float(w @ K.diagonal() - best)


def case(seed):
    "A small problem, with ties and weights in half of the cases."
    rng = np.random.default_rng(seed)
    cuts = ("threshold", "interval")[seed % 2]
    m = int(rng.integers(2, 5))
    k = m if rng.random() < 0.5 else int(rng.integers(1, m + 1))
    n, d = int(rng.integers(8, 15)), int(rng.integers(2, 4))
    if cuts == "interval" and m == 4:  # so that all trees can be listed
        n, d = min(n, 10), 2
    X = np.abs(rng.normal(size=(n, d)))
    if rng.random() < 0.5:
        X = rng.integers(0, 4, size=(n, d)).astype(float)
    w = rng.uniform(0.1, 4, size=n) if rng.random() < 0.5 else np.ones(n)
    return X, KERNELS[seed % 5](X), w, k, m, cuts


def faults(seed, effort):
    "What a search says that is not true; and whether it has ended."
    X, K, w, k, m, cuts = case(seed)
    best, wrong = optimum(K, X, w, k, m, cuts == "interval"), []
    found = tree_bound(X, K, k, m, cuts=cuts, sample_weight=w, effort=effort)
    noise = 1e-9 * float(w @ K.diagonal())
    if found.bound > best + noise:
        wrong.append(f"bound {found.bound}, optimum {best}")
    if abs(kernel_cost(K, found.tree.predict(X), w) - found.cost) > noise:
        wrong.append("the cost is not that of the tree")
    if found.cost < best - noise or (found.exact and found.cost > best + noise):
        wrong.append(f"cost {found.cost}, optimum {best}, exact: {found.exact}")
    if found.tree.n_leaves > m or len(np.unique(found.tree.predict(X))) > k:
        wrong.append("too many leaves or clusters")
    if cuts == "threshold" and (found.tree.lo[found.tree.left >= 0] > -np.inf).any():
        wrong.append("an interval among thresholds")
    return wrong, found


@pytest.mark.parametrize("effort", [5, 60])
def test_no_bound_is_above_the_optimum(effort):
    found = [faults(seed, effort) for seed in range(16)]
    assert not [wrong for wrong, _ in found if wrong]
    assert sum(one.exact for _, one in found) >= (2 if effort == 5 else 5)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_no_bound_is_above_the_optimum_in_500_cases(part):
    "Each case twice: stopped early, and after a while."
    ended = 0
    for seed in range(100 + 50 * part, 150 + 50 * part):
        for effort in (int(seed % 40), 2500):
            wrong, found = faults(seed, effort)
            assert not wrong, (seed, effort, wrong)
        ended += found.exact
    assert ended >= 40


def one_side_lost(q, codes):
    return _halves(q, codes)[:1]


BREAKS = {  # what must not go unnoticed
    "a half of each box is lost": ("_halves", one_side_lost),
    "a little more than is known": ("_gain", lambda M, v, k: 0.95 * GAIN(M, v, k)),
    "an eigenvalue is left out": ("_gain", lambda M, v, k: GAIN(M, v, k - 1)),
    "costs of cells without their noise": (
        "_axis_cut",
        lambda G, trace, *rest: CUT(G, 1.05 * trace, *rest),
    ),
    "a diagonal that does not pay": ("_multiplier", lambda Y, root: (Y + Y.T) / 2 - 0.1),
}
GAIN, CUT = gap._gain, gap._axis_cut


@pytest.mark.parametrize("name", BREAKS)
def test_breaks_are_noticed(name, monkeypatch):
    monkeypatch.setattr(gap, *BREAKS[name])
    assert any(faults(seed, 60)[0] for seed in range(16))


@pytest.mark.parametrize("n, m", [(40, 3), (12, 4), (120, 2)])
def test_the_search_ends_where_the_exact_one_does(n, m):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2)) + 2 * rng.integers(0, 3, size=(n, 1))
    K = gaussian(0.3)(X)
    found = tree_bound(X, K, m, m, effort=20_000)
    assert found.exact and found.gap < 1e-9
    assert np.isclose(found.cost, kernel_cost(K, best_tree(K, X, m).predict(X)), rtol=1e-9)


def test_an_effort_can_be_repeated_and_more_of_it_is_not_worse():
    X = np.random.default_rng(0).normal(size=(30, 2))
    K = laplace(1.0)(X)
    runs = [tree_bound(X, K, 3, 4, effort=effort) for effort in (100, 100, 1000)]
    first, again, more = runs
    assert (first.bound, first.cost, first.nodes) == (again.bound, again.cost, again.nodes)
    assert first.bound <= more.bound + 1e-9 and first.cost >= more.cost - 1e-9
    assert first.bound >= spectral_bound(K, 3)


def test_time_is_kept():
    X, _ = load_flame(return_X_y=True)
    found = tree_bound(X, gaussian(0.1)(X), 2, 4, time_limit=1.0)
    assert 0 < found.gap < 0.1 and found.bound > spectral_bound(gaussian(0.1)(X), 2)


def test_pairs_are_tighter_than_the_relaxation():
    X, _ = load_flame(return_X_y=True)
    K = gaussian(0.1)(X[::4])
    n = len(K)
    M, v = K + pair_matrix(K, np.ones(n), 2, 200), np.full(n, n**-0.5)
    assert np.trace(K) - gap._gain(M, v, 2) > relaxed_bound(K, 2)


@pytest.mark.parametrize("scale", [1e-160, 1e150])
def test_the_ends_of_what_floats_hold(scale):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9, 2))
    K, w = scale * (X @ X.T), rng.uniform(1, 2, size=9)
    one = tree_bound(X, X @ X.T, 2, 3, sample_weight=w, effort=300)
    other = tree_bound(X, K, 2, 3, sample_weight=w / scale, effort=300)
    assert np.isclose(one.bound, other.bound) and np.isclose(one.cost, other.cost)
    third = tree_bound(X, K, 2, 3, sample_weight=w, effort=300)
    assert np.isclose(one.gap, third.gap, atol=1e-9)


def test_ways_to_store_the_kernel_agree():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 2))
    dense = tree_bound(X, as_gram(gaussian(0.5), X), 3, 3)
    for gram in (StreamedGram(gaussian(0.5), X), gaussian(0.5)(X)):
        found = tree_bound(X, gram, 3, 3)
        assert found.exact and np.isclose(found.cost, dense.cost, rtol=1e-6)
    low = tree_bound(X, LowRankGram(X, lambda Y: Y), 3, 3)
    assert np.isclose(low.cost, tree_bound(X, linear()(X), 3, 3).cost)


def test_a_kernel_that_is_not_semidefinite_promises_no_more_than_it_may():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 5, size=(8, 2)).astype(float)
        K = epsilon(1.5)(X)
        found = tree_bound(X, K, 2, 3 - seed % 2, effort=300)
        best = optimum(K, X, np.ones(8), 2, 3 - seed % 2, True)
        assert found.bound <= best + 1e-9
        assert not found.exact or np.isclose(found.cost, best)  # the relaxation alone proves it


def test_a_known_tree_is_kept_if_it_is_better():
    X, _ = load_flame(return_X_y=True)
    K = gaussian(0.1)(X)
    best = best_tree(K, X, 2)
    builder = TreeBuilder(2)
    builder.labels = dict(zip(builder.split(0, 0, -np.inf, 1.0), (0, 1)))
    for tree in (best, builder.build()):
        found = tree_bound(X, K, 2, 2, upper=tree)
        assert found.exact and np.isclose(found.cost, kernel_cost(K, best.predict(X)))


def test_points_that_cannot_be_divided():
    X = np.zeros((5, 2))
    K = np.diag(np.arange(1.0, 6))  # equal points that the kernel tells apart
    found = tree_bound(X, K, 2, 3)
    assert found.exact and found.tree.n_leaves == 1
    assert np.isclose(found.cost, kernel_cost(K, np.zeros(5, int)))
    zero = tree_bound(X, np.ones((5, 5)), 2, 2)
    assert zero.cost == 0 and zero.gap == 0 and zero.exact


def test_beyond_what_can_be_searched_there_is_the_spectral_bound(monkeypatch):
    monkeypatch.setattr(gap, "DENSE_UP_TO", 10)
    X = np.random.default_rng(0).normal(size=(20, 2))
    K, tree = gaussian(1.0)(X), best_tree(gaussian(1.0)(X), X, 2)
    found = tree_bound(X, K, 2, 2, upper=tree)
    assert found.tree is tree and found.bound == spectral_bound(K, 2) and not found.exact
    with pytest.raises(ValueError, match="'upper'"):
        tree_bound(X, K, 2, 2)


def test_words():
    leaf = TreeBuilder(1)
    leaf.labels = {0: 0}
    some = TreeBound(0.99231, 1.0, leaf.build(), False, 7, 3, 6)
    assert isinstance(some.tree, Tree) and np.isclose(some.gap, 0.00769)
    assert some.words().startswith(
        "No tree with 6 leaves and 3 clusters is more than 0.77% cheaper"
    )
    assert "none costs less than 0.9923" in some.words()
    assert "is cheaper than this one, up to rounding" in replace(some, exact=True).words()
    unknown = replace(some, bound=-3.0)
    assert unknown.gap == 1 and "is not known" in unknown.words()
    assert replace(some, bound=2.0).gap == 0
    assert replace(some, cost=0.0).gap == 1 and replace(some, cost=0.0, exact=True).gap == 0


def test_boxes_are_halved_without_loss():
    rng = np.random.default_rng(0)
    for _ in range(60):
        p = int(rng.integers(2, 9))
        codes, todo, seen = np.arange(p), [_Question(0, 0, p - 1, 0, p - 1, 1, 1)], []
        reach = rng.integers(0, p, size=12)
        while todo:
            q = todo.pop()
            if q.a1 == q.a2 and q.z1 == q.z2:
                seen.append((q.a1, q.z1))
            else:
                todo += _halves(q, codes)
        assert sorted(seen) == [(a, z) for a in range(p) for z in range(a, p)]
        search = _Search(np.eye(12), reach[:, None], np.ones(12), 1, 2, True)
        ends, todo = set(), [2]
        while todo:
            part = todo.pop()
            news = search.next(part)
            todo += news
            if not news:
                ends.add(search.name(part))
        divided = [end for end in ends if len(end) == 2 and all(any(core) for core, _ in end)]
        values = len(np.unique(reach))
        assert len(divided) == values * (values - 1) // 2


def test_the_record_says_what_the_chapter_says():
    record = json.loads((Path(__file__).parent.parent / "benchmarks" / "gap.json").read_text())
    rows = record["rows"]
    assert len(rows) == 10 and {row["leaves"] // row["clusters"] for row in rows} == {1, 2}
    assert sum(row["gap"] < row["spectral gap"] for row in rows) >= 5
    assert all(0 <= row["gap"] <= 1 and row["seconds"] < 66 for row in rows)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(n_clusters=3, max_leaves=2), "n_clusters <= max_leaves"),
        (dict(n_clusters=2.5, max_leaves=3), "must be integers"),
        (dict(n_clusters=2, max_leaves=2, cuts="oblique"), "'interval' or 'threshold'"),
        (dict(n_clusters=2, max_leaves=2, sample_weight=[1.0]), "positive numbers"),
    ],
)
def test_what_is_refused(options, message):
    X = np.arange(4.0)[:, None]
    with pytest.raises(ValueError, match=message):
        tree_bound(X, linear()(X), **options)
