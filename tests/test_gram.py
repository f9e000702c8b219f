"""Choice of landmarks, extremes of kernels, precision and threads, where chapter 03 does not look."""

import itertools
import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kxbook import gram
from kxbook.gram import (
    StreamedGram,
    _enough,
    _folds,
    as_gram,
    choose_landmarks,
    feature_sums,
    nystroem_features,
    one_blas_thread,
    tall_product,
)
from kxbook.kernel import gaussian, linear, quadratic

X = np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize("rank", [0, 0.0, -3, 1.5, -0.5, np.nan, np.inf])
def test_ranks_that_mean_nothing_are_refused(rank):
    with pytest.raises(ValueError, match="landmarks"):
        choose_landmarks(gaussian(1.0), X, rank)


def test_a_tolerance_that_is_not_reached_is_told(monkeypatch):
    monkeypatch.setattr(gram, "MOST_LANDMARKS", 5)
    with pytest.warns(UserWarning, match="5 landmarks leave out more than rank=0.001"):
        assert len(choose_landmarks(gaussian(1.0), X, 0.001)) == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 1 <= len(choose_landmarks(gaussian(1.0), X, 0.9)) < 5


@pytest.mark.parametrize(
    "kernel", [gaussian(1.0), linear(), quadratic()], ids=lambda kernel: kernel.name
)
@pytest.mark.parametrize("columns", [1, 3])
def test_landmarks_have_as_many_columns_as_the_points(kernel, columns):
    with pytest.raises(
        ValueError, match=r"must have 2 columns, as X has. Got an array of shape \(5, "
    ):
        choose_landmarks(kernel, X, np.zeros((5, columns)))


def lost(landmarks):
    "The share of the kernel that landmarks leave out, on all points."
    return 1 - (nystroem_features(gaussian(1.0), X, landmarks) ** 2).sum() / len(X)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_a_tolerance_is_kept_with_as_few_landmarks_as_that_takes(share):
    enough = _enough(gaussian(1.0), X, X, share)
    assert 1 < enough < 60 and lost(X[:enough]) <= share < lost(X[: enough - 1])
    for seed, spread in itertools.product(range(8), (False, True)):
        assert (
            lost(choose_landmarks(gaussian(1.0), X, share, spread, np.random.default_rng(seed)))
            <= share
        )


def test_landmarks_may_lie_close_together():
    assert len(np.unique(choose_landmarks(gaussian(1.0), X / 1000, 5, spread=True), axis=0)) == 5
    assert len(choose_landmarks(gaussian(1.0), np.zeros((60, 2)), 5, spread=True)) == 1


@pytest.mark.parametrize("kernel", [quadratic(), linear()], ids=lambda k: k.name)
def test_one_row_can_be_too_large_but_not_too_small(kernel):
    with pytest.raises(ValueError, match="not finite on this data. Rescale X"):
        as_gram(kernel, [[1.0], [2.0], [1e200]])
    assert as_gram(kernel, [[1e-200], [1.0], [2.0]]).n == 3
    with pytest.raises(ValueError, match="too close to zero"):
        as_gram(kernel, [[1e-200], [2e-200], [3e-200]])


def test_a_constant_column_may_be_as_large_as_it_likes():
    assert np.allclose(
        as_gram(linear(), [[1e154, 0.0], [1e154, 1.0], [1e154, 5.0]]).diag, [4, 1, 9]
    )


def clumps(reach, d, rng):
    "Points far from their mean and near each other: where a folded exponent loses most."
    return (
        reach * np.repeat([[-1.0], [1.0]], 40, axis=0) / np.sqrt(d) + rng.normal(size=(80, d)) / 3
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 3, 10, 100])
def test_products_are_as_precise_as_a_gram_says(d, dtype):
    rng = np.random.default_rng(0)
    for reach in (0.3, 1, 2, 3, 5, 7, 10, 30, 100, 300, 1e3, 3e3, 1e4, 1e8):
        Z, V, kernel = (
            clumps(reach, d, rng),
            np.c_[np.eye(80), np.eye(3)[np.arange(80) % 3]],
            gaussian(min(1.0, 5 / d)),
        )
        wanted = kernel(Z) @ V
        for one in (
            StreamedGram(kernel, Z, dtype),
            as_gram(kernel, Z),
            as_gram(kernel, Z).part(np.arange(80)),
        ):
            error = np.abs(one.times(V) - wanted) / np.where(
                wanted > 1e-30, wanted, np.inf
            )  # float32 has no smaller numbers
            assert error.max() <= one.precision < 1.1e-4 * (1 if dtype == "float32" else 1e-6), (
                reach,
                type(one).__name__,
            )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_with_new_points_are_precise_up_to_the_largest_values(dtype):
    rng = np.random.default_rng(0)
    for reach in (0.1, 1, 3, 7, 30, 300):
        Z, V = clumps(reach, 3, rng), np.ones((80, 1))
        one = StreamedGram(gaussian(1.0), Z, dtype)
        Y = np.concatenate([Z + rng.normal(size=Z.shape) * far for far in (0.1, 1, 3, 10, 1e3)])
        assert (np.abs(one.times(V, Y) - gaussian(1.0)(Y, Z) @ V) <= one.precision * 80).all(), (
            reach
        )


def test_the_exponent_is_folded_where_that_costs_little():
    choices = [
        (1, "float32", True, "float32"),
        (100, "float32", True, "float64"),
        (1e5, "float32", False, "float64"),
        (100, "float64", True, "float64"),
        (1e5, "float64", False, "float64"),
    ]
    for reach, asked, fold, used in choices:
        Z = clumps(reach, 2, np.random.default_rng(0))
        found = _folds(gaussian(1.0), Z, np.dtype(asked), Z.mean(0))
        assert found[:2] == (fold, np.dtype(used)), (reach, asked)


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_limits_of_threads_are_given_back():
    with threadpool_limits(2, "blas"):
        assert blas_threads() == {2}
        for _ in range(2):
            with one_blas_thread:
                assert blas_threads() == {1}
                with one_blas_thread:
                    assert blas_threads() == {1}
                assert blas_threads() == {1}
            assert blas_threads() == {2}
        StreamedGram(gaussian(1.0), X).times(np.eye(60))
        assert blas_threads() == {2}


@pytest.mark.parametrize("block", [1, 7, 60, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_features_in_blocks_of_any_size(block, dtype):
    rng = np.random.default_rng(0)
    Z, V, rows = (
        rng.integers(-9, 10, size=(60, 4)).astype(dtype),
        rng.integers(-9, 10, size=(60, 3)).astype(float),
        rng.permutation(60),
    )
    assert (tall_product(Z, V, None, block) == Z.T @ V).all()  # whole numbers: no rounding
    assert (tall_product(Z, V[:40], rows[:40], block) == Z[rows[:40]].T @ V[:40]).all()


def test_nystroem_features_of_a_small_kernel():
    Z = nystroem_features(quadratic(), X * 1e-5, X * 1e-5)
    np.testing.assert_allclose(Z @ Z.T, quadratic()(X * 1e-5), rtol=1e-6, atol=1e-26)


@pytest.mark.parametrize("block", [1, 7, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_features_over_clusters(block, dtype):
    rng = np.random.default_rng(0)
    Z, rows, labels, weights = (
        X.astype(dtype),
        rng.integers(0, 60, 80),
        rng.integers(0, 3, 80),
        rng.uniform(1, 2, 80),
    )
    sums = feature_sums(Z, rows, labels, weights, 4, block)
    direct = [
        (weights[labels == c, None] * Z[rows[labels == c]].astype(float)).sum(0) for c in range(4)
    ]
    np.testing.assert_allclose(sums, direct, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(
        feature_sums(Z, rows, labels, weights, 4), feature_sums(Z, rows, labels, weights, 4, 1000)
    )


def test_landmarks_are_drawn_uniformly_unless_asked_otherwise():
    kernel, seeds = gaussian(1.0), range(5)
    drawn = {
        spread: [
            choose_landmarks(kernel, X, 10, *spread, rng=np.random.default_rng(s)) for s in seeds
        ]
        for spread in [(), (False,), (True,)]
    }
    np.testing.assert_array_equal(drawn[()], drawn[(False,)])
    assert any((a != b).any() for a, b in zip(drawn[()], drawn[(True,)]))
