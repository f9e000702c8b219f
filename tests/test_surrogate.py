"""Surrogate features where chapter 07 does not look: series of high order, and functions that are no Taylor kernels by little."""

from math import factorial

import numpy as np
import pytest

from kxbook.surrogate import series_coefficients


@pytest.mark.parametrize("order", [0, 5, 30, 60])
def test_rounding_is_no_negative_coefficient(order):
    found = series_coefficients(np.exp, order)
    assert len(found) == order + 1 and (found >= 0).all()
    exact = np.array([1 / factorial(j) for j in range(order + 1)])
    assert (np.abs(found - exact) <= 1e-12 * 2.0 ** np.arange(order + 1)).all()  # rounding on a circle of radius 1/2


@pytest.mark.parametrize("degree", [1, 2, 10])
def test_a_coefficient_below_zero_is_refused(degree):
    with pytest.raises(ValueError, match="coefficients >= 0"):
        series_coefficients(lambda t: np.exp(t) - (1 / factorial(degree) + 1e-6) * t**degree, 12)
