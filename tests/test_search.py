"""The search never ends above its starts, keeps to its limits, and agrees with itself."""

import time
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.tree import DecisionTreeClassifier

from kxbook import KernelExKMC, KernelExpand, KernelIMM, KernelTree, codetree
from kxbook.codetree import CodeTree, code_tree, prune, value_tree
from kxbook.columns import encode
from kxbook.data import load_flame, load_pathbased
from kxbook.fit import Reference
from kxbook.gram import as_gram
from kxbook.imm import Surrogate, axis_shifts
from kxbook.kernel import gaussian, laplace, linear, quadratic, taylor
from kxbook.price import kernel_cost
from kxbook.search import (
    LEAF_LIMIT,
    Centres,
    CutOptimizer,
    Search,
    _cart,
    _scatters,
    centre_features,
    centre_scatter,
    nearest_tree,
    preimage_tree,
    random_cuts,
    trade_offs,
)


def data(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2)).round(rng.integers(0, 3)) + 2 * rng.integers(0, 3, size=(60, 1))
    return X, np.r_[np.arange(3), rng.integers(0, 3, size=57)]


@pytest.mark.parametrize("cuts", ["interval", "threshold"])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 6))]
)
def test_never_worse_than_its_rivals(cuts, seed):
    X, labels = data(seed)
    for leaves in (3, 4, 6, 9):
        options = dict(max_leaves=leaves, kernel=("gaussian", "laplace")[seed % 2])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = KernelTree(cuts=cuts, **options).fit(X, reference_labels=labels)
            rivals = [
                m(cuts=cuts, base=base, **options).fit(X, reference_labels=labels)
                for m in (KernelExKMC, KernelExpand)
                for base in ("imm", "empty")
            ]
        allowed = [m.cost_ for m in rivals if cuts == "interval" or m.base == "empty"]
        cart = (
            DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(X, labels).predict(X)
        )
        gram = as_gram(model.result_.problem.kernel, X)
        assert model.cost_ <= min(allowed) + 1e-9 and model.cost_ <= kernel_cost(gram, cart) + 1e-9
        assert model.n_leaves_ <= leaves and (model.predict(X) == model.labels_).all()
        assert np.isclose(model.cost_, kernel_cost(gram, model.labels_))
        if cuts == "threshold":
            tree, inner = model.tree_, model.tree_.left >= 0
            assert (np.isneginf(tree.lo[inner]) | np.isposinf(tree.hi[inner])).all()


def test_limits_and_labels():
    X, labels = data(0)
    for depth in (1, 2, 3):
        model = KernelTree(max_leaves=8, max_depth=depth).fit(X, reference_labels=labels)
        assert model.tree_.depth <= depth
        assert np.isnan(model.certificate().worst_case) or depth >= 2
    few = KernelTree(max_leaves=2).fit(X, reference_labels=labels)
    assert few.n_leaves_ == 2 and len(np.unique(few.labels_)) == 2
    own = KernelTree(max_leaves=3).fit(X, reference_labels=labels)
    assert len(np.unique(own.tree_.label[own.tree_.left < 0])) == own.n_leaves_


def test_kernels_without_surrogates_and_low_rank():
    X, labels = data(1)
    for options in (
        dict(kernel=quadratic()),
        dict(gram="nystroem", rank=20),
        dict(gram="streamed"),
    ):
        model = KernelTree(**options, random_state=0).fit(X, reference_labels=labels)
        assert model.cost_ >= 0 and (model.predict(X) == model.labels_).all()
        assert model.certificate().proof[0].value == model.cost_


def test_the_same_twice_and_in_any_order():
    X, labels = data(2)
    shuffled = np.random.default_rng(0).permutation(len(X))
    one, two = (
        KernelTree().fit(X, reference_labels=labels),
        KernelTree().fit(X[shuffled], reference_labels=labels[shuffled]),
    )
    assert (
        one.tree_.to_json()
        == KernelTree().fit(X, reference_labels=labels).tree_.to_json()
        == two.tree_.to_json()
    )


def test_figures_of_the_book():
    X, _ = load_pathbased(return_X_y=True)
    assert KernelTree(3, max_leaves=4, gamma=0.05, random_state=0).fit(X).price_ < 1.0002
    X, _ = load_flame(return_X_y=True)
    best = KernelTree(2, max_leaves=2, gamma=0.1, random_state=0).fit(X)
    assert best.price_ < KernelIMM(2, gamma=0.1, random_state=0).fit(X).price_


def rules(X, labels, kernel, surrogate):
    "The reference, the columns, and the features of the centres."
    reference = Reference(as_gram(kernel, X), None, labels)
    columns = [encode(x) for x in X.T]
    known = Surrogate(kernel, surrogate, 5, axis_shifts(X, "auto"))
    return reference, columns, centre_features(reference.V, columns, known)


@pytest.mark.parametrize("seed", range(4))
def test_never_worse_than_the_rules_of_others(seed):
    X, labels = data(seed)
    kernel, surrogate = (gaussian(0.3), "root") if seed % 2 else (laplace(0.5), "exact")
    reference, columns, features = rules(X, labels, kernel, surrogate)
    D, weight, values = reference.D, np.ones(len(X)), [mu.T for _, mu in features]
    U, rng = np.hstack([mu for _, mu in features]), np.random.default_rng(seed)
    trees = [nearest_tree(columns, D, weight, values, depth_penalty=p) for p in (0.0, 0.3)]
    cost = KernelTree(max_leaves=3, kernel=kernel).fit(X, reference_labels=labels).cost_
    assert cost <= min(kernel_cost(reference.gram, tree.predict(X)) for tree in trees) + 1e-9
    for _ in range(5):
        thresholds = random_cuts(U, 2, rng)
        tree = preimage_tree(thresholds, features, columns)
        Phi = np.hstack([F[c.codes] for (F, _), c in zip(features, columns)])
        assert (tree.predict(X) == thresholds.predict(Phi)).all()


def test_nearest_centre_left():
    X, labels = data(3)
    reference, columns, features = rules(X, labels, linear(), "coordinate")
    values = [mu.T for _, mu in features]
    order = np.random.default_rng(0).permutation(len(X))
    moved = [encode(x) for x in X[order].T]
    for penalty in (0.0, 0.3):
        for cuts in ("interval", "threshold"):
            options = dict(depth_penalty=penalty, cuts=cuts)
            tree = nearest_tree(columns, reference.D, np.ones(60), values, **options)
            assert (
                tree.to_json()
                == nearest_tree(moved, reference.D[order], np.ones(60), values, **options).to_json()
            )
            assert tree.n_leaves == len(set(tree.label[tree.left < 0].tolist())) <= 3
            if cuts == "threshold":
                assert (
                    np.isneginf(tree.lo[tree.left >= 0]) | np.isposinf(tree.hi[tree.left >= 0])
                ).all()
    doubled = nearest_tree(columns, reference.D, np.full(60, 2.0), values)
    assert doubled.to_json() == nearest_tree(columns, reference.D, np.ones(60), values).to_json()
    same = nearest_tree(columns, reference.D, np.ones(60), [np.zeros((1, 3))] * 2)
    assert same.n_leaves == 1


def test_scatters_of_all_intervals():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 2))
    E = ((centres[:, None] - centres) ** 2).sum(2)
    P = np.vstack([np.zeros(4), rng.integers(0, 3, size=(6, 4)).cumsum(0)])
    scatters = _scatters(P, E)
    for a in range(7):
        for b in range(6):
            inside = P[b] - P[a] if b > a else np.zeros(4)
            if 0 < inside.sum() < P[-1].sum():
                parts = centre_scatter(inside, E) + centre_scatter(P[-1] - inside, E)
                assert np.isclose(scatters[a, b], parts)
            else:
                assert np.isinf(scatters[a, b])


def parity(A, B):
    return np.cos(np.pi * (A - B.T))


@pytest.mark.parametrize("n", [200, 600, pytest.param(2400, marks=pytest.mark.slow)])
def test_deep_trees(n):
    Z, labels = np.arange(float(n))[:, None], np.arange(n) % 2
    begin = time.process_time()
    model = KernelTree(2, max_leaves=n, kernel=parity, random_state=0).fit(
        Z, reference_labels=labels
    )
    assert time.process_time() - begin < 60
    assert (
        model.tree_.depth > n / 3
        and (model.labels_ == labels).all()
        and np.isclose(model.cost_, 0, atol=1e-9)
    )
    assert (n > 500) == (model.n_leaves_ > LEAF_LIMIT)
    start = KernelExKMC(2, max_leaves=n, base="empty", kernel=parity).fit(
        Z, reference_labels=labels
    )
    assert model.cost_ <= start.cost_ + 1e-9 and model.n_leaves_ <= n


def deep(n, first, last):
    "A tree that cuts off one code, or all up to one, at a time; labels 0 and 1 in turn."
    axis, left, right, label = np.full((4, 2 * n - 1), -1)
    axis[:-1:2], left[:-1:2] = 0, np.arange(1, 2 * n - 1, 2)
    right[:-1:2], label[1::2], label[-1] = np.arange(2, 2 * n, 2), np.arange(n - 1) % 2, 1
    ends = np.full((2, 2 * n - 1), -1)
    ends[:, :-1:2] = first, last
    return CodeTree(axis, *ends, left, right, label)


def test_walks_through_deep_trees():
    n = 3000
    column, Z = encode(np.arange(float(n))), np.arange(float(n))[:, None]
    below = np.arange(n - 1)
    chain = deep(n, below[::-1], below[::-1])  # one point is cut off at a time
    optimizer, tree = CutOptimizer([column]), value_tree(chain, [column])
    assert (optimizer.labels(chain) == tree.predict(Z)).all()
    assert value_tree(code_tree(tree, [column]), [column]) == tree
    for node, by, leaves in ((0, 0, 1), (0, 2, n - 1), (2 * n - 4, 1, n - 1)):
        assert (prune(chain, node, by).left < 0).sum() in (leaves, leaves - 1)  # siblings may merge
    thresholds = value_tree(deep(n, np.zeros(n - 1, int), below), [column])  # one after the other
    pulled = preimage_tree(thresholds, [(Z, Z[:1])], [column])
    assert (pulled.predict(Z) == thresholds.predict(Z)).all()


@pytest.mark.parametrize("how", ["dense", "streamed", "nystroem"])
def test_centres_that_follow_agree_with_those_computed_anew(how):
    rng = np.random.default_rng(3)
    X, w, k = rng.normal(size=(200, 3)), rng.random(200) + 0.1, 4
    gram = as_gram(gaussian(0.3), X, how, rank=30, rng=np.random.default_rng(0))
    label = rng.integers(0, k, size=200)
    centres = Centres(gram, label, w, k)
    for share in (0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 0.02):
        label = np.where(rng.random(200) < share, rng.integers(0, k - 1, size=200), label)
        assert np.isclose(centres.cost(label), kernel_cost(gram, label, w), rtol=1e-11)
        centres.move(label)
        anew = Centres(gram, label, w, k)
        assert np.allclose(centres.distances(), anew.distances(), atol=1e-10)
    assert centres.changed < 800
    emptied = np.where(label == 0, 1, label)
    assert np.isclose(centres.cost(emptied), kernel_cost(gram, emptied, w), rtol=1e-11)
    old = centres.distances()
    centres.move(emptied)
    assert (centres.distances(old)[:, 0] == old[:, 0]).all()


def test_a_start_that_the_data_does_not_allow_is_left_out():
    X = np.random.default_rng(0).uniform(size=(40, 3))
    assert KernelTree(2, gamma=1e8, random_state=0).fit(X * 1e5).cost_ > 0
    with pytest.raises(ValueError, match="too narrow"):
        KernelTree(2, gamma=1e8, surrogate="root", random_state=0).fit(X * 1e5)
    kernel = taylor(lambda x: np.exp(-x * x / 2), np.exp)
    model = KernelTree(2, kernel=kernel, random_state=0).fit(X - 0.5)
    assert model.n_leaves_ >= 2 and model.certificate().cost == model.cost_
    with pytest.raises(ValueError, match="shift"):
        KernelTree(2, kernel=kernel, surrogate="taylor", random_state=0).fit(X - 0.5)


@pytest.mark.parametrize("s", [2.0**127, 1e140, 2.0**-480, 1e-150])
def test_units_do_not_matter_to_cart(s):
    X, labels = np.array([[0.0], [0.0], [0.0], [0.0], [-1.0], [2.0]]), [0, 1, 2, 0, 0, 0]
    one, two = (KernelTree(gamma=0.5 / u / u).fit(X * u, reference_labels=labels) for u in (1.0, s))
    assert (one.labels_ == two.labels_).all() and np.isclose(one.cost_, two.cost_)


def searched(X, labels, leaves):
    points, place = np.unique(X, axis=0, return_inverse=True)
    reference = Reference(as_gram(gaussian(0.5), points), place.ravel(), labels)
    return Search(points, np.bincount(place.ravel()).astype(float), reference, leaves)


@pytest.mark.parametrize("seed", range(4))
def test_cart_is_that_of_scikit_learn_whatever_the_values(seed):
    X, labels = data(seed)
    search = searched(X, labels, 6)
    label = search.reference.V.argmax(1)
    theirs = (
        DecisionTreeClassifier(max_leaf_nodes=6, random_state=0)
        .fit(search.X, label, search.total)
        .predict(search.X)
    )
    assert (_cart(search, label).predict(search.X) == theirs).all()
    for far in (
        search.X * 1e-200,
        search.X * 1e200,
        1e8 + np.column_stack([c.codes for c in search.columns]) * 2.0**-20,
    ):
        moved = Search(far, search.total, search.reference, 6)
        assert (_cart(moved, label).predict(far) == theirs).all()


def test_cart_keeps_the_names_of_labels():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [2.0]])
    search = searched(X, np.array([0, 0, 1, 2, 2, 2]), 4)  # no point is mostly in cluster 1
    tree = _cart(search, search.reference.V.argmax(1))
    assert tree.predict(search.X).tolist() == [0, 2, 2]


def test_objectives_and_effort():
    X, labels = data(4)
    options = dict(max_leaves=5, gamma=2.0, random_state=0)
    fits = {
        aim: KernelTree(objective=aim, **options).fit(X, reference_labels=labels)
        for aim in ("cost", 0, 0.5, 1, "agreement")
    }
    same = {aim: (m.labels_ == labels).mean() for aim, m in fits.items()}
    assert fits["cost"].tree_ == fits[0].tree_ and fits["agreement"].tree_ == fits[1].tree_
    assert same["agreement"] >= max(same.values()) > same["cost"]
    assert fits["cost"].cost_ <= min(m.cost_ for m in fits.values()) + 1e-9
    more = KernelTree(effort=3, **options).fit(X, reference_labels=labels)
    assert more.cost_ <= fits["cost"].cost_ + 1e-9
    for how in ("dense", "streamed", "nystroem"):
        both = KernelTree(objective=0.3, gram=how, **options).fit(X, reference_labels=labels)
        assert both.cost_ >= 0 and both.certificate().cost == both.cost_


def test_trade_offs_are_none_better_than_another():
    X, labels = data(5)
    front = trade_offs(KernelTree(max_leaves=4, gamma=2.0, random_state=0), X, labels)
    prices, agreements = [f.price for f in front], [f.agreement for f in front]
    assert prices == sorted(prices) and agreements == sorted(set(agreements))
    assert all(f.price == f.model.price_ for f in front)


@pytest.mark.parametrize("leaves", [1, 2, 3])
def test_one_cluster_and_one_leaf(leaves):
    X, labels = data(6)
    alone = KernelTree(1, max_leaves=leaves).fit(X, reference_labels=np.zeros(len(X), int))
    assert alone.n_leaves_ == 1 and np.isclose(alone.price_, 1.0)
    few = KernelTree(max_leaves=leaves, random_state=0).fit(X, reference_labels=labels)
    assert few.n_leaves_ <= leaves


def test_sampled_shapes_are_polished_on_all_points():
    X, labels = make_blobs(5600, 3, centers=4, random_state=0)
    options = dict(max_leaves=6, kernel="gaussian", gamma=0.05, random_state=0)
    model = KernelTree(gram="streamed", **options).fit(X, reference_labels=labels)
    stored = KernelTree(gram="dense", **options).fit(X, reference_labels=labels)
    assert np.isclose(model.price_, stored.price_, atol=0.02)
    cart = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0).fit(X, labels)
    assert model.cost_ <= kernel_cost(as_gram(gaussian(0.05), X), cart.predict(X)) + 1e-9


def test_columns_with_very_many_values_keep_their_codes():
    x = np.arange(70_000.0)
    codes = codetree.coded_points([encode(x)]).codes
    assert codes[-1, 0] == 69_999 and codetree.coded_points([encode(x[:9])]).codes.itemsize == 2
