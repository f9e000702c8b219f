"""Choice of landmarks and extremes of kernels, where chapter 03 does not look."""

import warnings

import numpy as np
import pytest

from kxbook import gram
from kxbook.gram import as_gram, choose_landmarks
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


@pytest.mark.parametrize("kernel", [quadratic(), linear()], ids=lambda k: k.name)
def test_one_row_can_be_too_large_but_not_too_small(kernel):
    with pytest.raises(ValueError, match="not finite on this data. Rescale X"):
        as_gram(kernel, [[1.0], [2.0], [1e200]])
    assert as_gram(kernel, [[1e-200], [1.0], [2.0]]).n == 3
    with pytest.raises(ValueError, match="too close to zero"):
        as_gram(kernel, [[1e-200], [2e-200], [3e-200]])
