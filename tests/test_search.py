"""The search never ends above its starts, keeps to its limits, and agrees with itself."""

import warnings

import numpy as np
import pytest
from kxbook import KernelExKMC, KernelExpand, KernelIMM, KernelTree
from kxbook.data import load_flame, load_pathbased
from kxbook.gram import as_gram
from kxbook.kernel import quadratic
from kxbook.price import kernel_cost
from sklearn.tree import DecisionTreeClassifier


def data(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2)).round(rng.integers(0, 3)) + 2 * rng.integers(0, 3, size=(60, 1))
    return X, np.r_[np.arange(3), rng.integers(0, 3, size=57)]


@pytest.mark.parametrize("cuts", ["interval", "threshold"])
@pytest.mark.parametrize("seed", range(6))
def test_never_worse_than_its_rivals(cuts, seed):
    X, labels = data(seed)
    for leaves in (3, 4, 6, 9):
        options = dict(max_leaves=leaves, kernel=("gaussian", "laplace")[seed % 2])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = KernelTree(cuts=cuts, **options).fit(X, reference_labels=labels)
            rivals = [m(cuts=cuts, base=base, **options).fit(X, reference_labels=labels) for m in (KernelExKMC, KernelExpand) for base in ("imm", "empty")]
        allowed = [m.cost_ for m in rivals if cuts == "interval" or m.base == "empty"]
        cart = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(X, labels).predict(X)
        gram = as_gram(model._kernel, X)
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
    for options in (dict(kernel=quadratic()), dict(gram="nystroem", rank=20), dict(gram="streamed")):
        model = KernelTree(**options, random_state=0).fit(X, reference_labels=labels)
        assert model.cost_ >= 0 and (model.predict(X) == model.labels_).all()
        assert model.certificate().proof[0].value == model.cost_


def test_the_same_twice_and_in_any_order():
    X, labels = data(2)
    shuffled = np.random.default_rng(0).permutation(len(X))
    one, two = KernelTree().fit(X, reference_labels=labels), KernelTree().fit(X[shuffled], reference_labels=labels[shuffled])
    assert one.tree_.to_json() == KernelTree().fit(X, reference_labels=labels).tree_.to_json() == two.tree_.to_json()


def test_figures_of_the_book():
    X, _ = load_pathbased(return_X_y=True)
    assert KernelTree(3, max_leaves=4, gamma=0.05, random_state=0).fit(X).price_ < 1.0002
    X, _ = load_flame(return_X_y=True)
    best = KernelTree(2, max_leaves=2, gamma=0.1, random_state=0).fit(X)
    assert best.price_ < KernelIMM(2, gamma=0.1, random_state=0).fit(X).price_
