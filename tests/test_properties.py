"""What must hold for any data: ties, copies, denormal numbers, large offsets, scales from 1e-150 to 1e150, columns that hardly vary.

Quick: as part of `make test`. Long, at least 10^5 examples in all: `HYPOTHESIS_PROFILE=long .venv/bin/python -m pytest tests/test_properties.py`.
"""

import itertools
import os
import re
import sqlite3
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from kxbook import IMM, KernelExKMC, KernelExpand, KernelIMM, KernelKMeans, KernelTree, report
from kxbook.columns import encode
from kxbook.exact import best_tree, optimal_cut
from kxbook.gram import (
    DenseGram,
    LowRankGram,
    StreamedGram,
    as_gram,
    cluster_norms,
    nystroem_features,
    sq_dists,
)
from kxbook.grow import grow
from kxbook.imm import kernel_imm
from kxbook.kernel import (
    as_kernel,
    chi2,
    epsilon,
    gaussian,
    hellinger,
    intersection,
    is_psd,
    laplace,
    linear,
    matern,
    polya,
    quadratic,
    rational_quadratic,
    scale_gamma,
)
from kxbook.kkmeans import best_partition, lloyd, partitions, spectral_rows
from kxbook.price import kernel_cost, relaxed_bound, spectral_bound
from kxbook.surrogate import (
    ROOT_ERROR,
    axis_features,
    interval_features,
    root_features,
    taylor_features,
    taylor_tail,
)
from kxbook.sweep import bin_sums, brute_cut, group_sums, quantise, sweep
from kxbook.tree import LEAF, Tree, build_tree

PROFILE = os.environ.get(
    "HYPOTHESIS_PROFILE", "quick"
)  # or "long", or "mutants": the quick one without a search for small examples
LONG = PROFILE == "long"
TIMES = 60  # how many more examples the long profile tries


def examples(n, times=TIMES):
    "The number of examples of the quick profile; they are the same in every run, those of the long one are not. What is slow gets fewer times as many."
    phases = (Phase.generate,) if PROFILE == "mutants" else tuple(Phase)
    return settings(
        max_examples=n * times if LONG else n,
        deadline=None,
        derandomize=not LONG,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=phases,
    )


@pytest.fixture(autouse=True)
def no_warning_but_documented_ones():
    "Kernel k-means and trees may say that a result is degraded; arithmetic must not warn at all."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        yield


SHAPES = {  # how whole numbers become a column
    "ties": lambda z, e: z,
    "offset": lambda z, e: 1e8 + z,
    "fine offset": lambda z, e: 1e8 + z * 2.0**-20,
    "scale": lambda z, e: z * 10.0**e,
    "denormal": lambda z, e: z * 5e-324,
    "nearly constant": lambda z, e: 1 + z * 2.0**-52,
    "constant": lambda z, e: np.full(len(z), 10.0**e),
    "constant one": lambda z, e: np.ones(len(z)),
    "spread": lambda z, e: np.sign(z) * 10.0 ** (np.abs(z) * 10.0 * np.sign(e)),
}


@st.composite
def tables(draw, n=(1, 10), d=(1, 3), shapes=tuple(SHAPES), low=-4):
    "Points, some of them copies."
    n, d = draw(st.integers(*n)), draw(st.integers(*d))
    columns = []
    for _ in range(d):
        z = np.array(draw(st.lists(st.integers(low, 4), min_size=n, max_size=n)), dtype=float)
        columns.append(SHAPES[draw(st.sampled_from(shapes))](z, draw(st.integers(-150, 150))))
    X = np.column_stack(columns)
    return (
        X[draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))]
        if draw(st.booleans())
        else X
    )


@st.composite
def clustered(draw, k=(1, 4), **options):
    "Points with labels that use every number up to k - 1."
    X = draw(tables(**options))
    k = min(draw(st.integers(*k)), len(X))
    labels = np.array(
        [
            *range(k),
            *draw(st.lists(st.integers(0, k - 1), min_size=len(X) - k, max_size=len(X) - k)),
        ]
    )
    return X, labels[np.array(draw(st.permutations(range(len(X)))))], k


MILD = (
    "ties",
    "offset",
    "fine offset",
    "nearly constant",
    "constant",
)  # columns on which a width of about 1 makes a kernel of many values
TAME = (
    "ties",
    "constant",
    "scale",
)  # columns on which no digits are lost to an offset or to underflow
WIDTHS = st.sampled_from([1e-3, 0.1, 1.0, 7.0])
INVARIANT = [
    gaussian,
    laplace,
    matern,
    partial(matern, nu=2.5),
    rational_quadratic,
    polya,
]  # kernels of the difference alone
ADDITIVE = [linear(), hellinger(), intersection(), intersection(0.5), chi2()]


def any_kernel(draw_width):
    return st.one_of(
        st.builds(gaussian, draw_width),
        st.builds(laplace, draw_width),
        st.sampled_from([*ADDITIVE, quadratic()]),
    )


def on(kernel, X):
    "The data, made nonnegative where the kernel needs that."
    return np.abs(X) if kernel.nonnegative else X


def affordable(X, gamma):
    "Whether the Gaussian's root features are few, or so many that they are refused: between lie tables of up to 5e8 numbers, right but too large for a test."
    reach = np.ptp(X, 0).max() * np.sqrt(gamma)
    return reach < 1e4 or reach > 2.1e8


def brute_sums(K, labels, k):
    return np.column_stack([K[:, labels == c].sum(1) for c in range(k)])


# Chapter 2: kernels


@examples(60)
@given(tables(), st.floats(1e-6, 1e6), st.sampled_from(INVARIANT))
def test_kernels_of_differences(X, gamma, make):
    K = make(gamma)(X)
    assert (
        (K == K.T).all()
        and (K.diagonal() == 1).all()
        and (0 <= K).all()
        and (K <= 1).all()
        and is_psd(K)
    )
    same = (X[:, None] == X[None]).all(2)
    assert (K[same] == 1).all() and (make(gamma).diag(X) == 1).all()


@examples(60)
@given(tables(shapes=TAME), st.sampled_from([*ADDITIVE, quadratic()]))
def test_kernels_of_values_are_semidefinite_or_refused(X, kernel):
    X = on(kernel, X)
    try:
        K = kernel(X)
    except ValueError as e:
        assert "Rescale X" in str(e)
    else:
        assert is_psd(K) and np.allclose(kernel.diag(X), K.diagonal(), rtol=1e-14, atol=0)


@examples(60)
@given(tables(shapes=("ties", "offset", "fine offset", "constant")), WIDTHS, st.integers(-300, 300))
def test_scaling_the_data_is_scaling_the_width(X, gamma, power):
    s = 2.0**power  # a power of two: not a digit changes
    assert (laplace(gamma / s)(X * s) == laplace(gamma)(X)).all()
    if abs(power) <= 150:
        assert (gaussian(gamma / s / s)(X * s) == gaussian(gamma)(X)).all()
        if X.min() < X.max() and all(
            1e-150 < np.abs(Z).max() < 1e150 for Z in (X, X * s)
        ):  # beyond, the variance is refused
            assert np.isclose(scale_gamma(X * s), scale_gamma(X) / s / s, rtol=1e-12)


@examples(40)
@given(tables())
def test_the_neighbourhood_has_a_sharp_edge(X):
    x, y = X[0], X[-1]
    eps = float(np.hypot.reduce(np.abs(x - y)))
    few = max(1e-12 * eps, 4 * 5e-324)  # how far `hypot` may be off
    assume(eps > few)
    assert epsilon(eps + few)(X)[0, -1] == 1 and epsilon(eps - few)(X)[0, -1] == 0
    if X.shape[1] == 1:  # here not a digit is lost
        assert epsilon(eps)(X)[0, -1] == 1 and epsilon(np.nextafter(eps, 0))(X)[0, -1] == 0


# Chapter 3: cluster sums


@examples(60, times=10)
@given(
    clustered(n=(1, 30), shapes=MILD),
    any_kernel(WIDTHS),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
)
def test_streamed_dense_and_full_rank_are_one_kernel(data, kernel, block, seed):
    X, labels, k = data
    X = on(kernel, X)
    try:
        as_gram(kernel, X)
    except ValueError as e:
        assert "Rescale X" in str(e) and kernel.name not in ("gaussian", "laplace")
        return
    K = kernel(X)
    wanted, slack = brute_sums(K, labels, k), 1e-11 * max(np.abs(K).max() * len(X), 1e-300)
    Y = X[np.random.default_rng(seed).integers(len(X), size=5)]
    features = lambda Z: nystroem_features(kernel, Z, np.unique(X, axis=0))  # noqa: E731
    grams = [
        as_gram(kernel, X, "dense"),
        as_gram(kernel, X, "streamed"),
        StreamedGram(kernel, X, block=block),
        LowRankGram(features(X), features),
    ]
    for gram in (
        grams[2:] if kernel.name == "linear" else grams
    ):  # as_gram centres linear data, which changes no distance
        assert np.abs(gram.cluster_sums(labels, k) - wanted).max() <= slack
        assert (
            np.abs(gram.cluster_sums(labels, k, Y=Y) - brute_sums(kernel(Y, X), labels, k)).max()
            <= slack
        )
        assert (
            np.abs(gram.diag - K.diagonal()).max() <= slack
            and np.abs(gram.diag_of(Y) - kernel.diag(Y)).max() <= slack
        )
        some = np.arange(0, len(X), 2)
        assert np.abs(gram.times(np.eye(len(some)), columns=some) - K[:, some]).max() <= slack
        assert (
            np.abs(gram.part(some).times(np.eye(len(some))) - K[np.ix_(some, some)]).max() <= slack
        )


@examples(60)
@given(clustered(shapes=("ties",)))
def test_the_distance_lemma(data):
    X, labels, k = data
    sums = brute_sums(X @ X.T, labels, k)
    D = sq_dists(sums, (X**2).sum(1), *cluster_norms(sums, labels))
    for c in range(k):
        mean = [Fraction(int(s), int((labels == c).sum())) for s in X[labels == c].sum(0)]
        for x, d in zip(X, D[:, c]):
            assert abs(
                Fraction(float(d)) - sum((Fraction(float(a)) - m) ** 2 for a, m in zip(x, mean))
            ) < Fraction(1, 10**12)


# Chapter 4: kernel k-means


@examples(60)
@given(
    clustered(n=(1, 7), k=(1, 3), shapes=MILD),
    st.one_of(st.builds(gaussian, WIDTHS), st.builds(laplace, WIDTHS), st.just(linear())),
)
def test_costs_fall_to_a_fixed_point_between_the_bounds_and_the_start(data, kernel):
    X, labels, k = data
    gram = as_gram(kernel, X)
    run = lloyd(gram, labels, k)
    K = gram.times(np.eye(gram.n))
    slack = 1e-10 * max(np.trace(K), 1e-300)
    assert run.converged and all(b <= a + slack for a, b in zip(run.costs, run.costs[1:]))
    assert (
        abs(run.cost - kernel_cost(K, run.labels)) <= slack
        and run.cost <= kernel_cost(K, labels) + slack
    )
    best = best_partition(K, k)[1]
    assert (
        spectral_bound(gram, k) <= best + slack
        and relaxed_bound(gram, k, max_iter=10) <= best + slack
        and best <= run.cost + slack
    )
    assert (lloyd(gram, run.labels, k).labels == run.labels).all()


@examples(30)
@given(tables(n=(1, 7), shapes=("ties",)), st.integers(1, 3))
def test_every_partition_is_tried(X, k):
    K = gaussian(0.3)(X)
    costs = [kernel_cost(K, p) for p in partitions(len(X), k)]
    assert np.isclose(best_partition(K, k)[1], min(costs), atol=1e-12) and len(
        set(map(tuple, partitions(len(X), k)))
    ) == len(costs)


@examples(60)
@given(
    clustered(shapes=MILD),
    st.sampled_from(["gaussian", "laplace", "linear", "quadratic"]),
    st.data(),
)
def test_copies_are_weights_and_rows_have_no_order(data, kernel, more):
    X, labels, k = data
    distinct, place = np.unique(X, axis=0, return_inverse=True)
    labels = labels[np.unique(place, return_index=True)[1]][
        place.ravel()
    ]  # copies begin in one cluster
    times = np.array(more.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))))
    assume(times.sum() >= k)
    order = np.array(more.draw(st.permutations(range(len(X)))))
    many, few = np.repeat(X, times, axis=0), np.repeat(labels, times)

    def fit(X, init, weight=None):
        return KernelKMeans(k, kernel=kernel, gamma=0.5, init=init).fit(X, sample_weight=weight)

    try:
        weighted, copied, shuffled = (
            fit(X, labels, times),
            fit(many, few),
            fit(X[order], labels[order], times[order]),
        )
    except ValueError as e:
        assert "Rescale X" in str(e) and kernel in ("linear", "quadratic")
        return
    kept = times > 0
    assert (np.repeat(weighted.labels_[kept], times[kept]) == copied.labels_).all() and (
        weighted.labels_[order] == shuffled.labels_
    ).all()
    scale = max(abs(copied.inertia_), 1e-12 * np.abs(as_kernel(kernel, 0.5).diag(many)).max(), 1e-9)
    assert (
        abs(weighted.inertia_ - copied.inertia_) <= 1e-9 * scale
        and weighted.inertia_ == shuffled.inertia_
    )


@examples(20)
@given(tables(n=(3, 8), shapes=("ties",)), st.sampled_from([1e-300, 1e-310, 1e-320]))
def test_tiny_kernels_have_spectral_starts(X, scale):
    K = laplace(0.5)(X) * scale
    assert all(np.isfinite(rows).all() for rows in spectral_rows(DenseGram(K), 2, np.ones(len(X))))


# Chapter 7: surrogates


@st.composite
def values(draw, shapes=tuple(SHAPES)):
    return np.unique(draw(tables(n=(1, 12), d=(1, 1), shapes=shapes))[:, 0] + 0.0)


@examples(80)
@given(values(), st.sampled_from([1e-8, 1e-3, 1.0, 50.0, 1e6, 1e12]))
def test_root_features_are_the_kernel_up_to_their_bound(z, gamma):
    assume(affordable(z, gamma))
    try:
        Phi = root_features(z, gamma, z[0], z[-1])
    except ValueError as e:
        assert "too narrow" in str(e) and (z[-1] - z[0]) * np.sqrt(gamma) > 1e6
    else:
        assert np.abs(Phi @ Phi.T - gaussian(gamma).axis(z)).max() <= ROOT_ERROR
        unimodal(Phi)


def test_too_many_root_features_are_refused_before_they_are_made():
    with pytest.raises(ValueError, match="too narrow for the data: 2.5e\\+32 root features"):
        KernelIMM(2, gamma=1e4).fit([[0.0], [1e30]], reference_labels=[0, 1])
    certificate = (
        KernelIMM(gamma=1e4).fit([[0.0], [1e30]], reference_labels=[0, 0]).certificate()
    )  # one cluster needs none
    assert len(certificate.proof) == 1 and "too narrow for the data" in str(certificate)


def unimodal(Phi):
    "Every feature rises and then falls, so that what exceeds a threshold is an interval."
    for column in Phi.T:
        slack = 1e-14 * np.abs(column).max()
        top = column.argmax()
        assert (np.diff(column[: top + 1]) >= -slack).all() and (
            np.diff(column[top:]) <= slack
        ).all()


@examples(80)
@given(values(), st.sampled_from([1e-8, 1.0, 50.0, 1e12]))
def test_exact_features_of_laplace(z, gamma):
    Phi = axis_features(laplace(gamma), "exact", z)
    assert np.abs(Phi @ Phi.T - laplace(gamma).axis(z)).max() <= 1e-12
    unimodal(Phi)


@examples(80)
@given(values(), st.sampled_from([1e-8, 1.0, 50.0, 1e12]), st.sampled_from([0.5, 1.5, 2.5]))
def test_exact_features_of_matern(z, gamma, nu):
    Phi = axis_features(matern(gamma, nu), "exact", z)
    assert np.abs(Phi @ Phi.T - matern(gamma, nu).axis(z)).max() <= 1e-12
    unimodal(Phi)


@examples(80)
@given(values(), st.sampled_from([1e-8, 1.0, 50.0, 1e12]), st.sampled_from([polya, laplace]))
def test_interval_features_of_convex_profiles(z, gamma, make):
    Phi = interval_features(make(gamma).axis(z))
    assert np.abs(Phi @ Phi.T - make(gamma).axis(z)).max() <= 1e-12
    assert set(np.abs(np.diff(Phi > 0, axis=0, prepend=0, append=0)).sum(0)) <= {2}
    assert make is laplace or Phi.shape[1] <= 2 * len(z) - 1


@examples(60)
@given(values(), st.sampled_from([1e-8, 1.0, 50.0]), st.sampled_from([0.05, 1.0, 40.0, 1e5, 1e9]))
def test_bumps_of_the_rational_quadratic_kernel(z, gamma, alpha):
    kernel = rational_quadratic(gamma, alpha)
    assume(np.ptp(z) * np.sqrt(gamma) < 1e3)
    Phi = axis_features(kernel, "root", z)
    assert np.abs(Phi @ Phi.T - kernel.axis(z)).max() <= ROOT_ERROR
    unimodal(Phi)


@examples(80)
@given(values(TAME), st.sampled_from([hellinger(), intersection(), intersection(0.7)]))
def test_exact_features_of_additive_kernels(z, kernel):
    z = np.unique(np.abs(z))
    Phi, K = axis_features(kernel, "exact", z), kernel.axis(z)
    assert np.abs(Phi @ Phi.T - K).max() <= 1e-12 * K.max()
    unimodal(Phi)


@examples(40)
@given(values(("ties", "scale")), st.integers(2, 5))
def test_fitted_features_of_chi2(z, order):
    z = np.unique(np.abs(z))
    Phi, K = axis_features(chi2(), "quadrature", z, order=order), chi2().axis(z)
    assert np.abs(Phi @ Phi.T - K).max() <= {2: 0.05, 3: 0.01, 4: 0.003, 5: 1e-3}[order] * z[-1]
    unimodal(Phi)


@examples(60)
@given(values(), st.integers(0, 40), st.sampled_from([1e-8, 0.1, 1.0, 1e6]))
def test_what_taylor_features_leave_is_a_tail(z, order, gamma):
    z = z - z[0]
    Phi = taylor_features(z, order, gamma)
    assert (
        np.isfinite(Phi).all()
        and np.abs((Phi**2).sum(1) - (1 - taylor_tail(z, order, gamma))).max() <= 1e-11
    )
    unimodal(Phi)


# Chapter 8: IMM


@examples(120)
@given(
    tables(d=(1, 1), n=(1, 30)),
    st.none() | st.integers(2, 9),
    st.lists(st.integers(-9, 9), max_size=3),
)
def test_codes_and_ends_agree(X, bins, extra):
    x = X[:, 0]
    extra = x[0] + np.array(extra) * (np.ptp(x) or 1.0) / 7 if extra else None
    column = encode(x, bins, extra)
    for c in range(len(column.lo)):
        assert ((column.lo[c] <= x) == (column.codes >= c)).all() and (
            (x <= column.hi[c]) == (column.codes <= c)
        ).all()
    assert extra is None or np.isin(extra, column.values).all()
    assert (
        (np.diff(column.values) > 0).all()
        and (column.gaps >= 0).all()
        and column.gaps.sum() <= 1 + 1e-9
    )


def fewest_mistakes(Phi, centres, label, here):
    "The fewest points that a threshold on a feature puts on another side than their centre, by trying all."
    best = None
    for j in range(Phi.shape[1]):
        for theta in np.unique(np.r_[Phi[:, j], centres[here, j]]):
            up = centres[:, j] > theta
            if up[here].any() and not up[here].all():
                mistakes = int((up[label] != (Phi[:, j] > theta)).sum())
                best = mistakes if best is None else min(best, mistakes)
    return best


@examples(80)
@given(clustered(n=(2, 12), k=(2, 4), shapes=("ties", "offset", "constant")))
def test_every_cut_of_imm_has_the_fewest_mistakes(data):
    X, labels, k = data
    centres = np.clip(
        [X[labels == c].mean(0) for c in range(k)], X.min(0), X.max(0)
    )  # the mean of equal numbers may miss them
    tree, steps = kernel_imm(X, labels, linear())
    for step in steps:
        assert step.mistakes == fewest_mistakes(
            X[step.items], centres, labels[step.items], step.centres
        )
    exact = {
        tuple(
            sum(map(Fraction, X[labels == c, a])) / int((labels == c).sum())
            for a in range(X.shape[1])
        )
        for c in range(k)
    }
    assert len(steps) == len(exact) - 1  # it goes on as long as centres differ
    if len(exact) == k:
        assert {int(tree.predict(centres[[c]])[0]) for c in range(k)} == set(range(k))


@examples(60)
@given(
    clustered(n=(2, 12), k=(2, 4), shapes=("ties", "constant")),
    st.sampled_from([laplace(0.3), intersection(), hellinger()]),
)
def test_every_cut_of_kernel_imm_has_the_fewest_mistakes(data, kernel):
    X, labels, k = data
    X = on(kernel, X)
    tree, steps = kernel_imm(X, labels, kernel)
    columns = [np.unique(x, return_inverse=True) for x in X.T]
    Phi = np.hstack([axis_features(kernel, "exact", z)[code] for z, code in columns])
    Phi = np.round(
        Phi / np.maximum(np.abs(Phi).max(0), 1e-300), 12
    )  # the mean of equal numbers may miss them
    centres = np.round(np.array([Phi[labels == c].mean(0) for c in range(k)]), 10)
    centres = np.where(
        np.abs(centres[:, None] - Phi).min(1) < 1e-9,
        Phi[np.abs(centres[:, None] - Phi).argmin(1), np.arange(Phi.shape[1])],
        centres,
    )
    assert len(steps) == len(np.unique(np.round(centres, 9), axis=0)) - 1
    for step in steps:
        assert step.mistakes == fewest_mistakes(
            Phi[step.items], centres, labels[step.items], step.centres
        )


@examples(80)
@given(
    clustered(n=(2, 12), k=(2, 4), shapes=("ties", "offset", "fine offset", "scale", "constant"))
)
def test_the_bound_of_imm(data):
    X, labels, k = data
    X = (X - X.mean(0)) / max(np.abs(X - X.mean(0)).max(), 1e-300)
    centres = np.array([X[labels == c].mean(0) for c in range(k)])
    tree, steps = kernel_imm(X, labels, linear())
    assume(len(steps) == k - 1)  # that it is so where centres differ, the last properties tell
    cost, mine = ((X - centres[labels]) ** 2).sum(), kernel_cost(X @ X.T, tree.predict(X))
    paid = sum(
        s.mistakes
        * max(((centres[a] - centres[b]) ** 2).sum() for a in s.centres for b in s.centres)
        for s in steps
    )
    assert mine <= (np.sqrt(cost) + np.sqrt(paid)) ** 2 + 1e-9 and paid <= k * (k - 1) * cost + 1e-9


KERNELS = st.sampled_from(
    [linear(), gaussian(0.5), laplace(0.5), intersection(), hellinger(), chi2()]
)


@examples(80)
@given(clustered(n=(2, 20)), KERNELS, st.data())
def test_imm_knows_no_order_of_rows_and_no_names_of_clusters(data, kernel, more):
    X, labels, k = data
    X = on(kernel, X)
    assume(kernel.name != "gaussian" or np.ptp(X, 0).max() < 1e4)  # or the features are very many
    order, names = (np.array(more.draw(st.permutations(range(m)))) for m in (len(X), k))
    tree, steps = kernel_imm(X, labels, kernel)
    shuffled, _ = kernel_imm(X[order], labels[order], kernel)
    renamed, _ = kernel_imm(X, names[labels], kernel)
    binned, _ = kernel_imm(X, labels, kernel, bins=64)
    assert tree == shuffled == binned
    if (
        len(steps) == k - 1
    ):  # centres that coincide share a leaf, and equals among them are told apart by their names
        assert (names[tree.predict(X)] == renamed.predict(X)).all() and tree.to_text().count(
            "?"
        ) == renamed.to_text().count("?")


# Chapter 9 and 10: the sweep and growth


@st.composite
def costs(draw, n, k):
    kind = draw(st.sampled_from(["small", "large", "tiny", "huge"]))
    D = np.array(
        draw(st.lists(st.integers(0, 3), min_size=n * k, max_size=n * k)), dtype=float
    ).reshape(n, k)
    return {"small": D, "large": D * 1e8 + 1, "tiny": D * 1e-150, "huge": D * 1e150}[kind]


@st.composite
def to_grow(draw, **options):
    X = draw(tables(**options))
    return (
        X,
        draw(costs(len(X), draw(st.integers(1, 4)))),
        draw(st.integers(1, 8)),
        draw(st.sampled_from(["interval", "threshold"])),
    )


@examples(150)
@given(
    st.integers(2, 9),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([1, 3, 10**12]),
    st.integers(0, 2**32 - 1),
)
def test_the_sweep_is_the_search_through_all_intervals(m, k, threshold, most, seed):
    G = np.random.default_rng(seed).integers(-most, most + 1, size=(m, k))
    assert tuple(map(int, brute_cut(G, threshold))) == sweep(G, threshold)


@examples(60)
@given(st.integers(1, 12), st.integers(1, 4), st.data())
def test_costs_in_integers(n, k, more):
    D = more.draw(costs(n, k))
    Q, unit = quantise(D)
    assert (Q.min(1) == 0).all() and np.abs(Q.sum()) < 2**62 and np.frexp(unit)[0] == 0.5
    assert np.abs(Q * unit - (D - D.min(1, keepdims=True))).max() <= unit / 2 and (
        np.ptp(D, 1).max() == 0 or unit <= np.ptp(D, 1).max() * 2.0**-40
    )
    codes = np.array(more.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    order = np.argsort(codes, kind="stable")
    G, found = group_sums(order, codes, Q)
    H = bin_sums(order, codes[:, None], Q, 5)[0]
    assert (
        (found == np.unique(codes)).all()
        and (H[found, :-1] == G).all()
        and (H[:, -1] == np.bincount(codes, minlength=5)).all()
    )
    assert all((G[i] == Q[codes == c].sum(0)).all() for i, c in enumerate(found))


@examples(120)
@given(to_grow(n=(1, 20)), st.data())
def test_growth_knows_no_order_no_names_no_units(given_, more):
    X, D, m, cuts = given_
    order, names = (np.array(more.draw(st.permutations(range(size)))) for size in D.shape)
    tree, binned = grow(X, D, m, cuts=cuts), grow(X, D, m, cuts=cuts, bins=64)
    assert (
        tree
        == binned
        == grow(X[order], D[order], m, cuts=cuts)
        == grow(X, D * 4, m, cuts=cuts)
        == Tree.from_json(tree.to_json())
    )
    Q, rows = quantise(D)[0], np.arange(len(X))
    renamed = grow(
        X, D[:, names], m, cuts=cuts
    )  # equal costs may get other labels, never other costs
    assert (
        Q[rows, tree.predict(X)].sum() == Q[rows, names[renamed.predict(X)]].sum()
        and tree.n_leaves <= m
    )


@examples(80)
@given(
    to_grow(n=(1, 20), shapes=("ties", "scale", "offset", "denormal", "constant")),
    st.sampled_from([None, 3]),
    st.data(),
)
def test_a_monotone_map_of_a_column_changes_no_part(given_, bins, more):
    X, D, m, cuts = given_
    ranks = np.column_stack([np.unique(x, return_inverse=True)[1] for x in X.T]).astype(float)
    maps = [
        lambda r: r,
        lambda r: 10.0 ** (r - 20),
        lambda r: -(2.0**-r),
        lambda r: r**3 + 1e8,
        lambda r: np.arctan(r) * 1e-300,
    ]
    Z = np.column_stack([more.draw(st.sampled_from(maps))(r) for r in ranks.T])
    assert all(len(np.unique(a)) == len(np.unique(b)) for a, b in zip(X.T, Z.T))
    assert (
        grow(X, D, m, cuts=cuts, bins=bins).apply(X) == grow(Z, D, m, cuts=cuts, bins=bins).apply(Z)
    ).all()


@examples(60)
@given(to_grow(n=(2, 9), d=(1, 2), shapes=("ties",)))
def test_two_leaves_are_the_best_two_leaves(given_):
    X, D, _, cuts = given_
    Q = quantise(D)[0]
    best = Q.sum(0).min()
    for x in X.T:
        ends = np.unique(x)
        for a, b in itertools.combinations_with_replacement(ends, 2):
            if cuts == "interval" or a == ends[0]:
                inside = (a <= x) & (x <= b)
                best = min(
                    best,
                    Q[inside].sum(0).min() + (Q[~inside].sum(0).min() if (~inside).any() else 0),
                )
    tree = grow(X, D, 2, cuts=cuts)
    assert Q[np.arange(len(X)), tree.predict(X)].sum() == best


# Chapter 11: the price


@examples(80)
@given(
    clustered(shapes=(*MILD, "scale", "denormal", "spread")),
    WIDTHS,
    st.sampled_from(INVARIANT),
    st.booleans(),
)
def test_decoupling(data, gamma, make, relative):
    X, labels, _ = data
    reach = np.ptp(X, 0).max() ** (2 if make is gaussian else 1)
    kernel = make(
        gamma / reach if relative and 1e-290 < reach < 1e290 else gamma
    )  # else most values are 0 or 1
    cost, parts = (
        kernel_cost(kernel(X), labels),
        sum(kernel_cost(kernel.axis(x), labels) for x in X.T),
    )
    slack = 1e-11 * len(X)
    assert cost <= parts + slack and parts <= X.shape[1] * cost + slack


@examples(60)
@given(clustered(shapes=(*MILD, "scale")), any_kernel(WIDTHS), st.data())
def test_the_cost_knows_no_names_and_no_order(data, kernel, more):
    X, labels, k = data
    X = on(kernel, X)
    try:
        K = kernel(X)
    except ValueError:
        assume(False)
    order, names = (np.array(more.draw(st.permutations(range(m)))) for m in (len(X), k))
    slack = 1e-10 * np.abs(K).max() * len(X)
    cost = kernel_cost(K, labels)
    assert (
        cost >= -slack
        and abs(cost - kernel_cost(K, names[labels])) <= slack
        and abs(cost - kernel_cost(K[np.ix_(order, order)], labels[order])) <= slack
    )
    by_definition = sum(K[i, i] - K[i, labels == labels[i]].mean() for i in range(len(X)))
    assert (
        abs(cost - by_definition) <= slack and cost <= kernel_cost(K, np.zeros(len(X), int)) + slack
    )


@examples(40)
@given(tables(n=(2, 8), d=(1, 2), shapes=MILD), st.data())
def test_the_best_cut_and_the_best_tree(X, more):
    assume(len(np.unique(X, axis=0)) > 1)
    times = np.array(
        more.draw(st.lists(st.integers(1, 3), min_size=len(X), max_size=len(X))), dtype=float
    )
    K = laplace(0.7)(X)
    best = np.inf
    for x in X.T:
        for a, b in itertools.combinations_with_replacement(np.unique(x), 2):
            inside = (a <= x) & (x <= b)
            if not inside.all():
                best = min(best, kernel_cost(K, inside.astype(int), times))
    two, again, three = (
        optimal_cut(K, X, times),
        best_tree(K, X, 2, times),
        best_tree(K, X, 3, times),
    )
    assert np.isclose(kernel_cost(K, two.predict(X), times), best, atol=1e-10) and np.isclose(
        kernel_cost(K, again.predict(X), times), best, atol=1e-10
    )
    assert kernel_cost(K, three.predict(X), times) <= best + 1e-10 and three.n_leaves <= 3


# Chapter 13: the estimators


TREES = [IMM, KernelIMM, KernelExKMC, KernelExpand, KernelTree]
OPTIONS = st.fixed_dictionaries(
    {
        "kernel": st.sampled_from(
            ["gaussian", "laplace", "linear", "hellinger", "intersection", "chi2", "quadratic"]
        ),
        "gamma": st.sampled_from(["scale", 1e-4, 1.0, 1e4]),
        "gram": st.sampled_from(["auto", "streamed", "nystroem"]),
    }
)


def fitted(Model, k, X, options, **more):
    "A fitted model and its data, or None for what is refused in words of the package."
    options = {} if Model is IMM else dict(options)
    kernel = options.get("kernel")
    if kernel == "quadratic" and Model is not KernelKMeans and Model is not KernelTree:
        assume(Model is not KernelIMM)
        options["base"] = "empty"
    X = np.abs(X) if kernel in ("hellinger", "intersection", "chi2") else X
    assume(kernel != "gaussian" or options["gamma"] == "scale" or affordable(X, options["gamma"]))
    try:
        return Model(k, random_state=0, **options).fit(X, **more), X
    except ValueError as e:
        assert any(words in str(e) for words in ("Rescale X", "too narrow for the data")), e
        assume(False)


@examples(50, times=10)
@given(tables(n=(1, 12)), st.integers(1, 4), OPTIONS)
def test_any_data_can_be_clustered_or_is_refused(X, k, options):
    model, X = fitted(KernelKMeans, min(k, len(X)), X, options)
    assert (model.predict(X) == model.labels_).all() and 0 <= model.inertia_ < np.inf
    D = model.transform(X)
    used = np.unique(model.labels_)
    assert (
        np.isfinite(D[:, used]).all()
        and (D >= 0).all()
        and np.isinf(np.delete(D, used, axis=1)).all()
    )


@examples(70, times=10)
@given(clustered(n=(1, 12)), st.sampled_from(TREES), OPTIONS, st.booleans())
def test_any_data_can_be_explained_or_is_refused(data, Model, options, told):
    X, labels, k = data
    model, X = fitted(Model, k, X, options, reference_labels=labels if told else None)
    assert (model.predict(X) == model.labels_).all() and (model.apply(X) < model.n_leaves_).all()
    assert (
        0 <= model.cost_ < np.inf and model.price_ >= 0 and (model.feature_importances_ >= 0).all()
    )
    certificate = model.certificate()
    lines = [line.value for line in certificate.proof]
    assert lines == sorted(lines) and np.isclose(lines[0], model.cost_, rtol=1e-9)
    assert certificate.lower_bound <= min(model.cost_, model.reference_cost_) * (
        1 + 1e-9
    ) and certificate.price_upper >= min(certificate.price, 1) * (1 - 1e-9)
    assert (
        certificate.words()
        and str(certificate)
        and certificate._repr_html_()
        and model.export_text()
        and len(model.tree_.rules()) == model.n_leaves_
    )


@examples(40)
@given(
    clustered(n=(2, 12)),
    st.sampled_from([IMM, KernelIMM, KernelExKMC, KernelExpand]),
    OPTIONS,
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_matter(data, Model, options, random):
    X, labels, k = data
    order = np.array(random.sample(range(len(X)), len(X)))
    one, _ = fitted(Model, k, X, options, reference_labels=labels)
    two, _ = fitted(Model, k, X[order], options, reference_labels=labels[order])
    assert (
        one.tree_ == two.tree_
        and one.cost_ == two.cost_
        and (one.labels_[order] == two.labels_).all()
    )


UNITS = st.one_of(
    st.integers(-480, 480).map(lambda power: 2.0**power),
    st.builds(lambda digit, e: digit * 10.0**e, st.floats(1, 10), st.integers(-148, 146)),
)


@examples(60)
@given(
    clustered(n=(2, 12), shapes=("ties", "constant one")),
    st.sampled_from([KernelKMeans, KernelIMM, KernelExKMC, KernelExpand, KernelTree]),
    st.sampled_from(["gaussian", "laplace"]),
    UNITS,
)
def test_units_do_not_matter(data, Model, kernel, s):
    X, labels, k = data
    gammas = 0.5, 0.5 / s if kernel == "laplace" else 0.5 / s / s
    if Model is KernelKMeans:
        one, two = (
            Model(k, kernel=kernel, gamma=g, init=labels).fit(Z) for g, Z in zip(gammas, (X, X * s))
        )
        assert (one.labels_ == two.labels_).all() and np.isclose(
            one.inertia_, two.inertia_, rtol=1e-9, atol=1e-9
        )
        return
    one, two = (
        Model(kernel=kernel, gamma=g, random_state=0).fit(Z, reference_labels=labels)
        for g, Z in zip(gammas, (X, X * s))
    )
    assert (
        (one.labels_ == two.labels_).all()
        and one.n_leaves_ == two.n_leaves_
        and np.isclose(one.cost_, two.cost_, rtol=1e-9, atol=1e-9)
    )


@examples(60)
@given(
    clustered(n=(2, 20), shapes=("ties", "offset", "constant one")),
    st.sampled_from([IMM, KernelIMM, KernelExKMC, KernelExpand]),
    st.sampled_from(["gaussian", "laplace"]),
    st.data(),
)
def test_names_of_clusters_do_not_matter(data, Model, kernel, more):
    X, labels, k = data
    names = np.array(more.draw(st.permutations(range(k))))
    options = {} if Model is IMM else {"kernel": kernel, "gamma": 0.5}
    one, two = (Model(**options).fit(X, reference_labels=L) for L in (labels, names[labels]))
    assert np.isclose(one.reference_cost_, two.reference_cost_, rtol=1e-9, atol=1e-9)
    if (
        Model in (IMM, KernelIMM) and one.n_leaves_ == k
    ):  # elsewhere equals are told apart by their names
        assert (names[one.labels_] == two.labels_).all() and np.isclose(
            one.cost_, two.cost_, rtol=1e-9, atol=1e-9
        )


@examples(60)
@given(
    clustered(n=(2, 40), shapes=("ties", "offset")),
    st.sampled_from(["linear", "gaussian", "laplace"]),
    st.integers(-150, 150),
    st.floats(1, 10),
    st.sampled_from([KernelKMeans, IMM, KernelIMM, KernelExKMC]),
)
def test_constant_columns_change_nothing(data, kernel, e, digit, Model):
    X, labels, k = data
    options = {} if Model is IMM else {"kernel": kernel, "gamma": 0.5}
    more = np.c_[np.full(len(X), digit * 10.0**e), X]
    if Model is KernelKMeans:
        one, two = (Model(k, init=labels, **options).fit(Z) for Z in (X, more))
        assert (one.labels_ == two.labels_).all() and np.isclose(
            one.inertia_, two.inertia_, rtol=1e-9, atol=1e-9
        )
        assert len(set(Model(k, random_state=0, **options).fit(more).labels_)) == min(
            k, len(np.unique(X, axis=0))
        )
        return
    one, two = (Model(**options).fit(Z, reference_labels=labels) for Z in (X, more))
    assert (
        (one.labels_ == two.labels_).all()
        and one.n_leaves_ == two.n_leaves_
        and not two.feature_importances_[0]
    )
    assert np.isclose(one.cost_, two.cost_, rtol=1e-9, atol=1e-9) and np.isclose(
        one.reference_cost_, two.reference_cost_, rtol=1e-9, atol=1e-9
    )


# Chapters 6 and 17: what is exported says what the tree says

ENDS = [
    -1e300,
    -1e8,
    -1.0,
    -(2.0**-1074),
    0.0,
    5e-324,
    2.2250738585072014e-308,
    0.1,
    1 / 3,
    1.0,
    1.0 + 2**-52,
    1e8 + 2**-20,
    123456789.123456789,
    1e22,
    1e150,
    1.7976931348623157e308,
]


@st.composite
def trees(draw, d=2):
    nodes, label, todo = [LEAF], {}, [(0, 0)]
    while todo:
        node, depth = todo.pop()
        if depth == 4 or (depth and draw(st.booleans())):
            label[node] = draw(st.integers(0, 3))
            continue
        lo, hi = sorted([draw(st.sampled_from(ENDS)), draw(st.sampled_from(ENDS))])
        side = draw(st.integers(0, 2))
        nodes[node] = [
            draw(st.integers(0, d - 1)),
            -np.inf if side == 1 else lo,
            np.inf if side == 2 else hi,
            len(nodes),
            len(nodes) + 1,
        ]
        todo += [(len(nodes), depth + 1), (len(nodes) + 1, depth + 1)]
        nodes += [LEAF, LEAF]
    return build_tree(nodes, label, d)


@examples(120)
@given(trees(), st.integers(0, 2**32 - 1))
def test_exports_say_what_the_tree_says(tree, seed):
    beside = np.array(ENDS + [np.nextafter(e, s) for e in ENDS for s in (-1.7e308, 1.7e308)])
    X = np.random.default_rng(seed).choice(beside, size=(60, tree.n_features))
    said = tree.predict(X).tolist()
    assert (
        Tree.from_json(tree.to_json()) == tree
        and report.from_document(report.to_document(tree))[0] == tree
    )
    names: dict = {}
    exec(report.to_python(tree), names)
    assert [names["cluster"]({f"x{a}": v for a, v in enumerate(row)}) for row in X.tolist()] == said
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE data (number INTEGER, x0 DOUBLE, x1 DOUBLE)")
        base.executemany(
            "INSERT INTO data VALUES (?, ?, ?)", [(i, *row) for i, row in enumerate(X.tolist())]
        )
        assert [row[-1] for row in sorted(base.execute(report.to_sql(tree)).fetchall())] == said
    base.close()
    rules, lines = tree.rules(X=X), tree.to_text().splitlines()
    assert sum(rule.count for rule in rules) == len(X)
    for row, label in zip(X.tolist(), said):
        assert follow(lines, row) == label and all(holds(c, row) for c in tree.explain(row))
        assert [rule.label for rule in rules if all(holds(c, row) for c in rule.conditions)] == [
            label
        ]


def holds(condition, row):
    "Whether a condition in words holds."
    if condition in ("always", "never"):
        return condition == "always"
    if condition.startswith("(") and condition.endswith(")"):
        return any(holds(part, row) for part in condition[1:-1].split(" or "))
    python = re.sub(
        "(?<![<>])=", "==", condition.replace("≤", "<=").replace("≥", ">=").replace("≠", "!=")
    )
    return bool(eval(python, {f"x{a}": v for a, v in enumerate(row)}))


def follow(lines, row):
    "The cluster that the indented text of a tree gives to a row."
    if not lines[0].endswith("?"):
        return int(lines[0].removeprefix("cluster "))
    word = f"|-- {'yes' if holds(lines[0][:-1], row) else 'no'}: "
    (i,) = [i for i, line in enumerate(lines) if line.startswith(word)]
    end = next((j for j in range(i + 1, len(lines)) if not lines[j].startswith("|   ")), len(lines))
    return follow([lines[i].removeprefix(word)] + [line[4:] for line in lines[i + 1 : end]], row)
