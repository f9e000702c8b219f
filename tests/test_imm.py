"""IMM and Kernel IMM: every centre in a leaf, exact and binned trees, bad input."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kxbook import IMM, KernelExKMC, KernelExpand, KernelIMM
from kxbook.columns import encode
from kxbook.data import load_iris, load_pathbased, quadratic_xor
from kxbook.gram import as_gram
from kxbook.imm import _only_centre, closest_rows, imm_factor, kernel_imm, medoids
from kxbook.kernel import (
    chi2,
    distance,
    gaussian,
    hellinger,
    intersection,
    laplace,
    linear,
    matern,
    polya,
    quadratic,
    rational_quadratic,
)

X, Y = load_iris(return_X_y=True)
KERNELS = [
    (linear(), "auto"),
    (gaussian(0.5), "root"),
    (gaussian(0.5), "taylor"),
    (gaussian(0.5), "landmark"),
    (laplace(0.5), "exact"),
    (laplace(0.5), "landmark"),
    (hellinger(), "auto"),
    (intersection(1.5), "auto"),
    (chi2(), "quadrature"),
    (chi2(), "riemann"),
    (distance(lambda t: 1 / (1 + t)), "auto"),
    (distance(lambda t: 1 / (1 + t)), "interval"),
    (distance(lambda t: 1 / (1 + t**2)), "fitted"),
    (matern(0.5), "auto"),
    (matern(0.5, 2.5), "landmark"),
    (rational_quadratic(0.5), "auto"),
    (polya(0.2), "auto"),
]


@pytest.mark.parametrize("kernel, surrogate", KERNELS, ids=lambda v: str(getattr(v, "name", v)))
@pytest.mark.parametrize("candidates", ["all", "midpoints"])
def test_every_cluster_has_one_leaf(kernel, surrogate, candidates):
    tree, steps = kernel_imm(X, Y, kernel, surrogate, candidates=candidates)
    assert sorted(tree.label[tree.leaves]) == [0, 1, 2] and len(steps) == 2
    assert (tree.predict(X) == Y).mean() > 0.85


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KERNELS[:6] + KERNELS[-4:]))
def test_bins_for_every_value_change_nothing(seed, chosen):
    rng = np.random.default_rng(seed)
    n, k = rng.integers(4, 30), rng.integers(1, 4)
    Z, labels = (
        rng.integers(1, 6, size=(n, 2)).astype(float),
        np.r_[np.arange(k), rng.integers(0, k, size=n - k)],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact, _ = kernel_imm(Z, labels, *chosen)
        binned, _ = kernel_imm(Z, labels, *chosen, bins=64)
        counts = np.eye(k, dtype=int)[labels]
        order = rng.permutation(n)
        shuffled, _ = kernel_imm(Z[order], counts[order], *chosen)
    assert exact == binned == shuffled


@pytest.mark.parametrize("bins", [2, 3, 7, 10, 49, 100])
def test_bins_have_equal_numbers_of_values(bins):
    for n in range(bins + 1, 400, 3):
        sizes = np.bincount(encode(np.arange(n) / 7, bins).codes)
        assert len(sizes) == bins and sizes.max() - sizes.min() <= 1


def test_copies_count():
    Z, labels = load_pathbased(return_X_y=True)
    times = np.random.default_rng(0).integers(1, 4, size=300)
    counted, _ = kernel_imm(
        Z, np.eye(3, dtype=int)[labels] * times[:, None], gaussian(0.05), "landmark"
    )
    repeated, _ = kernel_imm(
        np.repeat(Z, times, axis=0), np.repeat(labels, times), gaussian(0.05), "landmark"
    )
    assert counted == repeated


@pytest.mark.parametrize(
    "kernel", [linear(), chi2(), hellinger(), laplace(0.5)], ids=lambda kernel: kernel.name
)
def test_means_do_not_depend_on_the_order_of_rows(kernel):
    rng = np.random.default_rng(0)
    Z, labels = (
        rng.random((2000, 2)) * 10.0 ** rng.integers(-3, 4, size=(2000, 2)),
        np.arange(2000) % 3,
    )
    first = kernel_imm(Z, labels, kernel, candidates="midpoints")[1]
    for _ in range(5):  # thresholds come from sums of numbers of very different size
        order = rng.permutation(2000)
        other = kernel_imm(Z[order], labels[order], kernel, candidates="midpoints")[1]
        assert [step.feature for step in first] == [step.feature for step in other]


def test_coinciding_centres_warn_and_share_a_leaf():
    Z, labels = quadratic_xor(4)
    with pytest.warns(UserWarning, match="coincide in the features"):
        model = KernelIMM(kernel="laplace", gamma=1.0).fit(Z, reference_labels=labels)
    assert model.n_leaves_ == 1


@pytest.mark.parametrize("Model", [IMM, KernelIMM, KernelExKMC, KernelExpand])
def test_estimators_agree_with_themselves(Model):
    model = Model(3, random_state=0).fit(X)
    assert (model.predict(X) == model.labels_).all() and model.n_leaves_ >= 3
    assert np.isclose(model.price_, model.cost_ / model.reference_cost_)
    assert np.isclose(model.feature_importances_.sum(), 1)
    one = Model(1, random_state=0).fit(X[:20], reference_labels=np.zeros(20, dtype=int))
    assert one.n_leaves_ == 1 and one.price_ == 1


def test_growing_the_imm_tree_lowers_the_price():
    Z, _ = load_pathbased(return_X_y=True)
    few = KernelIMM(3, gamma=0.05, random_state=0).fit(Z)
    more = KernelExKMC(3, max_leaves=6, gamma=0.05, random_state=0).fit(Z)
    assert more.price_ < few.price_ and (few.reference_labels_ == more.reference_labels_).all()


def test_order_from_the_remainder():
    Z, _ = load_pathbased(return_X_y=True)
    auto = KernelIMM(3, gamma=0.05, surrogate="taylor", order="auto", random_state=0).fit(Z - 20)
    assert auto.n_leaves_ == 3


BAD = {
    "surrogate of another kernel": (
        dict(kernel="laplace", surrogate="taylor"),
        X,
        r"among \['exact', 'landmark'\]",
    ),
    "kernel without surrogate": (dict(kernel="quadratic"), X, "base='empty'"),
    "callable": (dict(kernel=lambda A, B: A @ B.T), X, "base='empty'"),
    "taylor on negative values": (dict(surrogate="taylor", shift=0.0), X - 5, "shift='auto'"),
    "order": (dict(order=-1), X, "'order' parameter of KernelIMM must be"),
    "candidates": (dict(candidates="some"), X, "'candidates' parameter of KernelIMM must be"),
    "shift": (dict(surrogate="taylor", shift=[1.0, 2.0]), X, "shift"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    options, data, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        KernelIMM(**options).fit(data, reference_labels=Y)


def test_fewer_leaves_than_clusters():
    with pytest.raises(ValueError, match="at least the number of clusters, 3, for base='imm'"):
        KernelExKMC(3, max_leaves=2, random_state=0).fit(X)
    assert KernelExKMC(3, max_leaves=2, base="empty", random_state=0).fit(X).n_leaves_ == 2


def test_columns_of_one_value():
    Z = np.c_[np.full(150, 3.0), X, np.zeros(150)]
    for Model in (IMM, KernelIMM):
        model = Model(3).fit(Z, reference_labels=Y)
        assert not np.isin(model.tree_.axis, [0, 5]).any() and model.n_leaves_ == 3


def test_ends_of_intervals_are_short_numbers():
    ends = encode(np.array([0.1, 0.2, 0.7, 1.1, 1.3])).hi[:-1]
    assert ends.tolist() == [0.15, 0.45, 0.9, 1.2] and 0.1 / 2 + 0.2 / 2 != 0.15


def test_centres_that_differ_little_beside_an_offset_are_told_apart():
    tree, steps = kernel_imm(
        1e8 + np.array([[0.0], [1e-5], [2e-5], [3e-5]]), np.array([0, 0, 1, 1]), linear()
    )
    assert len(steps) == 1 and steps[0].mistakes == 0 and tree.n_leaves == 2


@pytest.mark.parametrize("values", [[0, 1], [0, 2, 3], [0, 1, 2, 9]])
def test_a_threshold_is_an_interval_from_below(values):
    X = np.array(values, dtype=float)[:, None]
    labels = np.minimum(np.arange(len(X)), 1)  # the first value against all others
    tree, _ = kernel_imm(X, labels, linear())
    assert (tree.lo[0], tree.label[tree.left[0]]) == (-np.inf, 0) and 0 < tree.hi[0] < values[1]


@pytest.mark.parametrize("labels", [[0, 1, 2], [2, 1, 0]])
def test_of_equal_thresholds_the_first_is_taken(labels):
    tree, _ = kernel_imm(np.array([[0.0], [1.0], [2.0]]), labels, linear())
    assert tree.hi[0] == 0.5  # 1.5 has as few mistakes, and as much room


def test_only_centres_that_coincide_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel_imm(np.array([[0.0], [1.0], [2.0]]), [0, 1, 2], linear())
        assert _only_centre(np.array([0, 2]), np.array([1.0, 3.0, 2.0]), quiet=True) == 2


@pytest.mark.parametrize("kernel, surrogate", KERNELS, ids=lambda v: str(getattr(v, "name", v)))
@pytest.mark.parametrize("candidates", ["all", "midpoints"])
def test_a_point_is_its_own_mean(kernel, surrogate, candidates):
    rows, options = np.array([10, 60, 110]), dict(candidates=candidates)
    given, _ = kernel_imm(X, np.eye(3)[Y], kernel, surrogate, centres=rows, **options)
    assert sorted(given.label[given.leaves]) == [0, 1, 2]
    assert (given.predict(X[rows]) == [0, 1, 2]).all()
    only, _ = kernel_imm(X[rows], [0, 1, 2], kernel, surrogate, centres=[0, 1, 2], **options)
    means, _ = kernel_imm(X[rows], [0, 1, 2], kernel, surrogate, **options)
    assert only == means


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KERNELS[:6]), st.sampled_from([None, 64]))
def test_points_as_centres_end_in_leaves_of_their_own(seed, chosen, bins):
    rng = np.random.default_rng(seed)
    n, k = rng.integers(4, 30), rng.integers(2, 4)
    Z = (rng.permutation(900)[:n, None] // [30, 1] % [30, 30] + 1) / 10  # all different
    labels = np.r_[np.arange(k), rng.integers(0, k, size=n - k)]
    rows = rng.choice(n, k, replace=False)
    tree, steps = kernel_imm(Z, labels, *chosen, bins=bins, centres=rows)
    assert (tree.predict(Z[rows]) == np.arange(k)).all() and len(steps) == k - 1
    order = rng.permutation(n)
    back = np.argsort(order)
    other, _ = kernel_imm(Z[order], labels[order], *chosen, bins=bins, centres=back[rows])
    assert tree == other


def test_coordinates_will_do_for_any_kernel_if_points_are_centres():
    rows = medoids(as_gram(quadratic(), X), Y)
    for bins in (None, 10):
        plain = kernel_imm(X, Y, linear(), "coordinate", centres=rows, bins=bins)
        for kernel in (quadratic(), gaussian(), laplace()):
            found = kernel_imm(X, Y, kernel, "coordinate", centres=rows, bins=bins)
            assert found.tree == plain.tree
            assert (found.tree.lo[found.tree.left >= 0] == -np.inf).all()
        assert (plain.tree.predict(X[rows]) == [0, 1, 2]).all()
    with pytest.raises(ValueError, match="base='empty'"):
        kernel_imm(X, Y, quadratic(), "coordinate")
    with pytest.raises(ValueError, match="'surrogate' parameter"):
        kernel_imm(X, Y, gaussian(), "coordinate")


def test_equal_points_as_centres_share_a_leaf():
    Z = np.array([[0.0], [0.0], [1.0], [5.0]])
    with pytest.warns(UserWarning, match="coincide in the features"):
        tree, _ = kernel_imm(Z, [0, 1, 1, 2], gaussian(), centres=[0, 1, 3])
    assert tree.n_leaves == 2


@pytest.mark.parametrize("rows", [[0, 1], [0, 1, 150], [-1, 0, 1], [0.0, 1.0, 2.0], [[0, 1, 2]]])
def test_rows_that_are_none_are_refused(rows):
    with pytest.raises(ValueError, match="'centres' parameter must be 3 rows, 0 to 149"):
        kernel_imm(X, Y, gaussian(), centres=rows)


@pytest.mark.parametrize("kernel", [gaussian(0.5), laplace(0.5), quadratic()], ids=lambda k: k.name)
@pytest.mark.parametrize("weighted", [False, True])
def test_medoids_have_the_least_sum_of_distances(kernel, weighted):
    rng = np.random.default_rng(0)
    Z, labels = rng.normal(size=(60, 2)), np.arange(60) % 3
    w = rng.integers(0, 4, size=60).astype(float) if weighted else np.ones(60)
    K = kernel(Z, Z)
    D = K.diagonal()[:, None] + K.diagonal() - 2 * K
    found = medoids(as_gram(kernel, Z), labels, w if weighted else None)
    for c in range(3):
        mine = np.flatnonzero((labels == c) & (w > 0))
        assert found[c] == mine[(D[np.ix_(mine, mine)] @ w[mine]).argmin()]


def test_of_equal_medoids_the_first_is_taken():
    corners = 0.1 * np.array([[1, 1], [0, 0], [1, 0], [0, 1.0]])
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        assert medoids(as_gram(gaussian(0.7), corners[order]), np.zeros(4, dtype=int)) == [0]
    assert closest_rows(np.array([[2.0], [1.0], [1.0]]), np.array([[1], [0], [1]])).tolist() == [2]


def test_factor_of_imm():
    assert imm_factor(1) == imm_factor(1, midpoints=True) == 1
    assert np.isclose(imm_factor(2), 3 + 2 * np.sqrt(2))
    assert imm_factor(2, midpoints=True) == 9 == imm_factor(2, times=2)
    assert np.isclose(imm_factor(10, times=0.4), 49)
