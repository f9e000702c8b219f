"""Surrogate features where chapter 07 does not look: series of high order, functions that are no Taylor kernels by little, many values, and numbers without room."""

from math import factorial

import numpy as np
import pytest

from kxbook import KernelIMM, KernelTree
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
    rational_quadratic,
    taylor,
)
from kxbook.surrogate import (
    FEW_KNOTS,
    MOST_KNOTS,
    SURROGATES,
    axis_error,
    axis_features,
    choose_surrogate,
    exponential_sum,
    knot_error,
    knots_of,
    quadrature_features,
    series_coefficients,
    taylor_features,
)


@pytest.mark.parametrize("order", [0, 5, 30, 60])
def test_rounding_is_no_negative_coefficient(order):
    found = series_coefficients(np.exp, order)
    assert len(found) == order + 1 and (found >= 0).all()
    exact = np.array([1 / factorial(j) for j in range(order + 1)])
    assert (
        np.abs(found - exact) <= 1e-12 * 2.0 ** np.arange(order + 1)
    ).all()  # rounding on a circle of radius 1/2


@pytest.mark.parametrize("degree", [1, 2, 10])
def test_a_coefficient_below_zero_is_refused(degree):
    with pytest.raises(ValueError, match="coefficients >= 0"):
        series_coefficients(lambda t: np.exp(t) - (1 / factorial(degree) + 1e-6) * t**degree, 12)


def test_knots_are_all_values_or_quantiles_from_the_first_to_the_last():
    z = np.sort(np.random.default_rng(0).normal(size=MOST_KNOTS + 1))
    assert (knots_of(z[1:]) == z[1:]).all()
    knots = knots_of(z)
    assert (
        len(knots) == FEW_KNOTS
        and (knots[0], knots[-1]) == (z[0], z[-1])
        and np.isin(knots, z).all()
    )
    steps = np.diff(np.searchsorted(z, knots))
    assert steps.min() >= MOST_KNOTS // FEW_KNOTS and steps.max() <= MOST_KNOTS // FEW_KNOTS + 1


def test_taylor_features_are_taken_after_the_shift():
    z = np.array([-3.0, -1.0, 2.0])
    assert (
        axis_features(gaussian(0.3), "taylor", z, shift=-3.0) == taylor_features(z + 3, 5, 0.3)
    ).all()


def test_features_of_other_taylor_kernels_are_the_terms_of_the_series():
    z, kernel = np.array([0.0, 0.3, 0.8]), taylor(lambda x: 1 - x**2, lambda t: 1 / (1 - t) ** 2)
    wanted = (
        np.sqrt(np.arange(1, 7)) * z[:, None] ** np.arange(6) * (1 - z**2)[:, None]
    )  # 1 + 2t + 3t² + ...
    np.testing.assert_allclose(axis_features(kernel, "taylor", z), wanted, atol=1e-12)


def test_one_exponential_is_a_fit_too():
    s, w = exponential_sum(0.1, 1)
    assert (
        s.shape == w.shape == (1,)
        and np.abs(axis_features(chi2(), "quadrature", np.array([0.5, 1.0]), order=1)).max() < 2
    )


def test_fits_are_few_and_cover_the_range_of_the_data():
    exponential_sum.cache_clear()
    z = np.geomspace(1e-9, 1, 40)
    for low in (1e-9, 1e-7, 1e-5, 2e-4, 1e-4):
        Phi = quadrature_features(z, 5, low, 1.0)
        assert np.abs(Phi @ Phi.T - chi2().axis(z)).max() < 1e-3
    assert exponential_sum.cache_info().misses == 1


HUGE = {
    "a series": (
        KernelIMM(2, kernel=taylor(lambda x: 1 / (1 + x), lambda t: 1 + t), order=100),
        np.random.default_rng(0).random((30, 2)) * 2000,
    ),
    "a narrow kernel": (
        KernelIMM(2, gamma=1e308, surrogate="taylor"),
        np.random.default_rng(0).random((30, 2)),
    ),
    "a shift": (KernelIMM(2, gamma=1.0, surrogate="taylor"), np.array([[-1e308], [1e308], [0.0]])),
    "a square": (
        KernelTree(2, kernel="chi2", surrogate="quadrature"),
        np.array([[1e306], [5e306], [0.0]]),
    ),
}


@pytest.mark.parametrize("case", HUGE)
def test_features_that_are_not_finite_are_refused(case):
    model, X = HUGE[case]
    with pytest.raises(ValueError, match="not finite on this data. Rescale X"):
        model.fit(X)


@pytest.mark.parametrize("kernel", [laplace(1.0), intersection()], ids=lambda kernel: kernel.name)
def test_features_of_many_values_are_near_the_kernel(kernel):
    z = np.sort(np.random.default_rng(0).random(MOST_KNOTS + 500))
    Phi = axis_features(kernel, "exact", z)
    assert Phi.shape == (len(z), FEW_KNOTS) and np.abs(Phi @ Phi.T - kernel.axis(z)).max() < 0.05


KNOTS = [laplace(3.0), matern(3.0), matern(3.0, 2.5), intersection(), polya(1.0)]


@pytest.mark.parametrize("kernel", KNOTS, ids=str)
@pytest.mark.parametrize("clusters", [1, 3, 40])
def test_costs_by_features_at_quantiles_are_as_close_as_promised(kernel, clusters):
    rng = np.random.default_rng(clusters)
    z = np.sort(rng.random(MOST_KNOTS + 100))
    Phi = axis_features(kernel, choose_surrogate(kernel), z)
    allowed = axis_error(kernel, choose_surrogate(kernel), z, Phi).sum()
    R = kernel.axis(z) - Phi @ Phi.T
    own = np.eye(clusters)[np.arange(len(z)) % clusters]
    change = R.trace() - ((own.T @ R @ own).diagonal() / own.sum(0)).sum()
    assert 0 < abs(change) <= allowed < 0.05 * len(z)


@pytest.mark.parametrize("kernel", [*KNOTS, distance(lambda t: 1 / (1 + t))], ids=lambda k: k.name)
def test_features_at_all_values_have_no_error(kernel):
    z = np.sort(np.random.default_rng(0).random(30))
    surrogate = "interval" if kernel.name == "distance" else choose_surrogate(kernel)
    Phi = axis_features(kernel, surrogate, z)
    assert (knot_error(kernel, z) == 0).all() and (axis_error(kernel, surrogate, z, Phi) == 0).all()
    assert np.abs(Phi @ Phi.T - kernel.axis(z)).max() < 1e-12


MANY = [
    gaussian(2.0),
    rational_quadratic(2.0),
    chi2(),
    linear(),
    hellinger(),
    taylor(lambda x: np.exp(-(x**2)), lambda u: np.exp(2 * u)),
    distance(lambda t: (1 + t) * np.exp(-t)),
]


@pytest.mark.parametrize("kernel", MANY, ids=lambda kernel: kernel.name)
def test_costs_by_features_are_as_close_as_promised(kernel):
    rng = np.random.default_rng(0)
    z, own = np.sort(rng.random(200)), np.eye(3)[np.arange(200) % 3]
    for surrogate in SURROGATES[kernel.name]:
        if surrogate == "interval":
            with pytest.raises(ValueError, match="convex"):
                axis_features(kernel, surrogate, z)
            continue
        Phi = axis_features(kernel, surrogate, z)
        R = kernel.axis(z) - Phi @ Phi.T
        change = R.trace() - ((own.T @ R @ own).diagonal() / own.sum(0)).sum()
        allowed = axis_error(kernel, surrogate, z, Phi).sum()
        assert abs(change) <= allowed + 1e-9 and (np.isinf(allowed) == (surrogate == "landmark"))


@pytest.mark.parametrize("name", ["rational_quadratic", "matern", "polya"])
def test_new_kernels_by_name(name):
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:30] += 6
    model = KernelIMM(2, kernel=name, gamma=0.2, random_state=0).fit(X)
    assert model.price_ == 1 and len(set(model.labels_[:30])) == 1
    assert KernelTree(2, kernel=name, gamma=0.2, random_state=0).fit(X).price_ == 1


def test_one_value_has_one_feature():
    for kernel in (matern(), polya(), rational_quadratic(), distance(lambda t: 1 / (1 + t))):
        for surrogate in SURROGATES[kernel.name]:
            Phi = axis_features(kernel, surrogate, np.array([3.0]))
            assert np.isclose((Phi**2).sum(), 1)
