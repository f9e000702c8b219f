"""What a certificate says is true, in numbers and in words: the three that were not, an adversary that looks for more, and interval arithmetic."""

import builtins
import os
import re
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from adversary import (
    Problem,
    attack,
    cauchy,
    certificate,
    cubic,
    draw,
    faults,
    gap_faults,
    saddle,
    said,
    truth,
)

from kxbook import KernelExKMC, KernelExpand, KernelIMM, KernelTree
from kxbook.certificate import Allowance, _at_most_percent, _digits, certify, sum_up
from kxbook.data import load_iris
from kxbook.gram import (
    LowRankGram,
    StreamedGram,
    as_gram,
    left_out,
    nystroem_error,
    nystroem_features,
    nystroem_gram,
    nystroem_root,
)
from kxbook.kernel import (
    Kernel,
    chi2,
    distance,
    epsilon,
    gaussian,
    hellinger,
    intersection,
    is_formula,
    laplace,
    linear,
    quadratic,
)
from kxbook.kkmeans import best_partition
from kxbook.price import kernel_cost, relaxed_bound, spectral_bound
from kxbook.rigorous import at_least, at_most, verify
from kxbook.tables import partition_array

CERTIFICATES = int(os.environ.get("CERTIFICATES", 400))


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(s, marks=pytest.mark.slow) for s in range(4, 8))]
)
def test_no_certificate_is_false(seed):
    rows = attack(1000 + seed, CERTIFICATES // 8)
    wrong = [one for row in rows for one in row[2]]
    assert not wrong, wrong[0]
    assert (
        sum(row[1] for row in rows) >= CERTIFICATES // 8
        and all(row[3] <= 1 + 1e-9 for row in rows)
        and len({row[0] for row in rows}) > 1
    )


@pytest.mark.parametrize("trials", [25, pytest.param(300, marks=pytest.mark.slow)])
def test_no_bound_over_trees_is_false(trials, monkeypatch):
    rng = np.random.default_rng(trials)
    problems = [draw(rng) for _ in range(trials)]
    assert not [wrong for problem in problems if (wrong := gap_faults(problem))]
    monkeypatch.setattr("kxbook.gap.rounding_bound", lambda gram, w, m: -0.01 * (w @ gram.diag))
    assert [problem for problem in problems if gap_faults(problem)]


def bilinear(X, Y):
    return X @ Y.T


def crossed(X, Y):  # not semidefinite, zero on its diagonal where a coordinate is
    return X[:, :1] * Y[:, -1:].T + X[:, -1:] * Y[:, :1].T


# Found by the adversary: a kernel that somebody brought, so small that floats call it zero.
@pytest.mark.parametrize("how", ["dense", "streamed", "single", "pieces", "nystroem"])
@pytest.mark.parametrize("function", [bilinear, saddle, crossed])
@pytest.mark.parametrize("trials", [24, pytest.param(60, marks=pytest.mark.slow)])
def test_kernels_that_vanish_promise_no_more_than_floats_know(function, how, trials):
    seen, rng = 0, np.random.default_rng(0)
    for trial in range(trials):
        n, d = int(rng.integers(2, 6)), int(rng.integers(1, 3))
        X = np.abs(rng.integers(0, 3, size=(n, d)) + rng.normal(size=(n, d)) * (trial % 2))
        X, k = X * 10.0 ** rng.uniform(-175, -140), int(rng.integers(1, min(n, 3) + 1))
        labels = np.r_[np.arange(k), rng.integers(0, k, size=n - k)]
        kernel = Kernel(
            function.__name__, whole=function, semidefinite=function is bilinear and trial % 3 == 0
        )
        problem = Problem(X, kernel, k, labels, how, ("tree", "exkmc")[trial % 2], landmarks=X[:2])
        if (result := certificate(problem)) is not None:
            seen += 1
            assert not (wrong := faults(problem, *result)[0]), (wrong, problem)
    assert seen >= 10
    X = np.array([[1.0e-163], [1.0e-163], [2.0e-163]])
    c, labels = certificate(
        Problem(X, Kernel("saddle", whole=saddle), 2, np.array([0, 0, 1]), "dense", "tree")
    )
    assert c.cost == 0 and c.price_upper == 1 and 0 < c.tolerance < 1e-320
    assert "Up to rounding of" in c.words()


# The first: landmarks that see nothing of what a cluster costs.
FAR = np.r_[np.zeros((1, 1)), np.full((20, 1), 100.0), np.full((20, 1), 200.0)]


@pytest.mark.parametrize("pieces", [True, False])
def test_zero_cost_on_landmarks_is_not_zero_cost(pieces):
    labels = (FAR[:, 0] > 0).astype(int)
    model = KernelExKMC(
        base="empty", max_leaves=2, kernel=gaussian(1.0), gram="nystroem", rank=np.zeros((1, 1))
    )
    c = model.fit(partition_array(FAR, 7) if pieces else FAR, reference_labels=labels).certificate()
    K = gaussian(1.0)(FAR)
    cost, best = (
        kernel_cost(K, model.labels_),
        kernel_cost(K, (FAR[:, 0] > 100).astype(int)),
    )  # 20, and a clustering of 40/21
    assert c.cost == 0 and np.isclose(cost, 20) and np.isclose(best, 40 / 21)
    assert c.price_upper == np.inf and c.lower_bound <= best and c.price_upper * best >= cost
    assert (
        "is not known" in c.words()
        and "at most" not in c.words()
        and "cost nothing" not in c.words()
    )
    least, most = said(c)[2:]
    assert least <= cost <= most


def test_zero_cost_with_a_kernel_that_may_cost_less_than_nothing():
    X = np.array([[0.0], [0.9], [1.8], [2.7]])  # 0 ~ 0.9 ~ 1.8 ~ 2.7: not semidefinite
    for how in ("dense", "streamed", "nystroem"):
        for data in (X, partition_array(X, 2)) if how == "nystroem" else (X,):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = KernelExpand(
                    base="empty", max_leaves=2, kernel=epsilon(1.0), gram=how, rank=X[:1]
                ).fit(data, reference_labels=[0, 0, 1, 1])
            c = model.certificate()
            assert (
                model.cost_ == 0
                and c.price_upper == np.inf
                and c.lower_bound <= best_partition(epsilon(1.0)(X), 2)[1]
            )


# The second: landmarks that nearly coincide.
NEAR = np.array([[0.0, 0.0], [3.857e-8, 0.0], [0.0, 10.0]])


@pytest.mark.parametrize("single", [True, False])
def test_landmarks_that_nearly_coincide_add_nothing(single, monkeypatch):
    monkeypatch.setattr("kxbook.gram.FLOAT64_UP_TO", 0 if single else 10**6)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = np.vstack([NEAR, rng.normal(size=(6, 2)) * 10.0 ** rng.integers(-8, 1)])
        labels = np.r_[0, 1, rng.integers(0, 2, size=7)]
        problem = Problem(
            X,
            gaussian(1.0),
            2,
            labels,
            "nystroem",
            "exkmc",
            "spectral",
            NEAR + [10.0 ** rng.integers(-9, -6), 0] * (np.arange(3) == 1)[:, None],
        )
        assert not faults(problem, *certificate(problem))[0]


def test_the_features_of_landmarks_are_never_too_long():
    rng = np.random.default_rng(0)
    for kernel in (gaussian(1.0), laplace(1.0), hellinger(), chi2(), intersection(), quadratic()):
        for gap in 10.0 ** np.arange(-12, 0):
            L = np.abs(rng.normal(size=(3, 2)))
            L = np.vstack([L, L + gap])
            M, R = kernel(L).astype(np.longdouble), nystroem_root(kernel, L)
            assert np.linalg.eigvalsh((R.T @ M @ R).astype(float))[-1] <= 1 + 1e-9
            X = np.vstack([L, np.abs(rng.normal(size=(20, 2)))])
            Z, moved = nystroem_features(kernel, X, L), nystroem_error(kernel, L)
            assert (
                left_out(kernel.diag(X), (Z**2).sum(1), moved)[1] == moved < 1e-3
            )  # none longer than the kernel
            assert np.linalg.eigvalsh(kernel(X) - Z @ Z.T)[0] >= -3 * moved * kernel.diag(X).sum()


def test_features_that_are_too_long_withdraw_the_bound():
    X = np.random.default_rng(0).normal(size=(30, 2))
    gram, labels = as_gram(gaussian(1.0), X, "nystroem", rank=10), np.arange(30) % 2
    items, kernel = (np.arange(30), labels, np.ones(30)), gaussian(1.0)
    assert np.isfinite(certify(gram, X, kernel, items, labels).price_upper)
    longer = LowRankGram(1.01 * gram.Z, gram.features)
    longer.missing, longer.moved = left_out(kernel.diag(X), longer.diag, gram.moved)
    c = certify(longer, X, kernel, items, labels)
    assert longer.moved == np.inf and c.price_upper == np.inf and c.lower_bound == 0


def test_all_rows_as_landmarks_lose_next_to_nothing():
    X, _ = load_iris(return_X_y=True)
    X = np.unique(X, axis=0)
    for kernel in (gaussian(0.2), laplace(1.0), chi2(), intersection()):
        dense, low = as_gram(kernel, X), as_gram(kernel, X, "nystroem", rank=X)
        labels, items = (
            np.arange(len(X)) % 3,
            (np.arange(len(X)), np.arange(len(X)) % 3, np.ones(len(X))),
        )
        one, other = (certify(gram, X, kernel, items, labels) for gram in (dense, low))
        assert 0.999 * one.lower_bound <= other.lower_bound <= one.lower_bound * (1 + 1e-9)
        assert one.price_upper * (1 - 1e-9) <= other.price_upper <= 1.001 * one.price_upper


# The third: a kernel that is semidefinite where somebody looked, and nowhere else.
@pytest.mark.parametrize("pieces", [True, False])
def test_landmarks_promise_nothing_about_a_kernel_that_is_not_known(pieces):
    X = np.r_[np.zeros(500), -0.9, 0.9][
        :, None
    ]  # 502 points; the two at the ends do not see each other
    model = KernelExKMC(
        base="empty",
        max_leaves=2,
        kernel=epsilon(1.0),
        gram="nystroem",
        rank=np.array([[-0.9], [0.9]]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        c = model.fit(
            partition_array(X, 100) if pieces else X, reference_labels=np.r_[np.zeros(501, int), 1]
        ).certificate()
    assert c.lower_bound == -np.inf and c.price_upper == np.inf
    text = " ".join([c.words(), *c.notes])
    assert (
        "none costs less" not in text
        and "holds for the kernel itself" not in text
        and "nothing is known about the kernel itself" in text
    )


@pytest.mark.parametrize("kernel", [distance(cauchy), cubic, Kernel("cubic", whole=cubic)])
def test_a_kernel_that_is_brought_along_may_be_declared(kernel):
    X = np.random.default_rng(0).normal(size=(40, 2))
    for declared in (False, True):
        if callable(kernel) and not isinstance(kernel, Kernel) and declared:
            continue
        brought = Kernel(**(vars(kernel) | {"semidefinite": True})) if declared else kernel
        model = KernelExKMC(
            base="empty", max_leaves=2, kernel=brought, gram="nystroem", rank=30, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            c = model.fit(X, reference_labels=np.arange(40) % 2).certificate()
            dense = (
                model.set_params(gram="dense")
                .fit(X, reference_labels=np.arange(40) % 2)
                .certificate()
            )
        assert (
            np.isfinite(c.price_upper) == declared and dense.lower_bound > 0
        )  # a matrix is known in full
        assert not declared or c.lower_bound <= dense.lower_bound


def test_known_kernels_are_semidefinite_and_others_are_not_known():
    known = [gaussian(), laplace(), linear(), hellinger(), intersection(0.5), chi2(), quadratic()]
    assert (
        all(kernel.semidefinite for kernel in known)
        and not epsilon().semidefinite
        and not distance(cauchy).semidefinite
    )
    rng = np.random.default_rng(0)
    for kernel in known:
        for _ in range(20):
            X = rng.uniform(0, 3, size=(30, 2)).round(1)
            assert np.linalg.eigvalsh(kernel(X))[0] > -1e-11 * np.trace(kernel(X))


@pytest.mark.parametrize(
    "profile",
    [lambda t: (t <= 1).astype(float), lambda t: np.where(t < 1, 1.0, np.where(t < 2, 0.9, 0.0))],
)
def test_no_worst_case_for_axes_that_have_no_features(profile):
    X = np.random.default_rng(1).uniform(0, 4, size=(12, 2)).round(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        c = (
            KernelIMM(kernel=distance(profile))
            .fit(X, reference_labels=np.arange(12) % 3)
            .certificate()
        )
    assert np.isnan(c.worst_case) and any(
        "not known to be positive semidefinite" in note for note in c.notes
    )
    fine = (
        KernelIMM(kernel=distance(cauchy)).fit(X, reference_labels=np.arange(12) % 3).certificate()
    )
    assert np.isfinite(fine.worst_case)


@pytest.mark.parametrize("up", [True, False])
def test_digits_are_cut_off_to_the_safe_side(up):
    rng = np.random.default_rng(0)
    for value in np.r_[
        rng.normal(size=200) * 10.0 ** rng.integers(-20, 20, size=200),
        0.0,
        1.0,
        123456.5,
        -0.1234565,
    ]:
        shown = float(_digits(value, up))
        assert (shown >= value if up else shown <= value) and abs(shown - value) <= 1e-5 * abs(
            value
        )
    assert _digits(np.inf, up) == "inf"


def test_shares_are_rounded_up():
    rng = np.random.default_rng(0)
    prices = [
        1.0,
        1 + 1e-15,
        1.00001,
        1.00123456,
        1.012345,
        1.0991,
        1.09999,
        1.26,
        1.5001,
        10.999,
        11.001,
        12345.6789,
        *(1 + 10.0 ** rng.uniform(-6, 6, size=300)),
    ]
    for price in prices:
        text = _at_most_percent(price)
        exact, number = 100 * (Fraction(price) - 1), Fraction(re.search(r"([\d.]+)%", text)[1])
        assert exact <= number <= exact * Fraction(11, 10) + 1, (price, text)
        assert "times" not in text or price <= int(text.split()[0]) < price + 1
    for boundary in range(1, 100):  # the floats next to a number of two digits
        for price in (np.nextafter(1 + boundary / 1000, side) for side in (0, 2)):
            text = _at_most_percent(float(price))
            assert 100 * (Fraction(float(price)) - 1) <= Fraction(text[:-1])


def test_what_allowances_mean():
    plain = Allowance(0.5)
    assert plain.least(3.0) == 2.5 and plain.most(3.0) == 3.5
    moved = Allowance(0.0, moved=0.5, lost=2.0)
    assert moved.least(4.0) == 1.5**2 and moved.most(4.0) == 2.5**2 + 2 and moved.least(0.1) == 0
    unknown = Allowance(0.0, known=False)
    assert unknown.least(4.0) == -np.inf and unknown.most(4.0) == np.inf
    given = dict(scale=100.0, hidden=0.0, rest=dict(proof=(), reasons=()))
    c = sum_up((4.0, 4.0, 9.0), 3.0, moved, 2, below=0.0, **given)
    assert (
        np.isclose(c.lower_bound, (np.sqrt(3) - 0.5) ** 2)
        and np.isclose(c.price_upper * c.lower_bound, 2.5**2 + 2)
        and c.tolerance == 4e-9
    )
    free = sum_up((0.0, 0.0, 9.0), -1.0, Allowance(2.0**-33), 2, below=0.0, **given)
    assert (
        free.price_upper == 1
        and free.tolerance == 2.0**-33
        and "Up to rounding of 1.2e-10 they cost nothing" in free.words()
    )
    assert (
        sum_up((0.0, 0.0, 9.0), -1.0, Allowance(2.0**-33), 2, below=np.inf, **given).price_upper
        == np.inf
    )
    assert (
        sum_up((0.0, 0.0, 9.0), -1.0, Allowance(1.0), 2, below=0.0, **given).price_upper == np.inf
    )
    some = sum_up((0.0, 0.0, 9.0), -1.0, Allowance(2.0**-33), 2, **(given | dict(below=2.0**-33)))
    assert (
        some.price_upper == 1 and some.tolerance == 2.0**-32
    )  # an eigenvalue that rounding hides may be negative
    assert (
        sum_up((2.0, 3.0, 9.0), 2.5, Allowance(1.0), 2, below=0.0, **given).lower_bound == 2
    )  # never above a cost


def test_rounding_of_indefinite_matrices_is_measured_by_their_norm():
    A = np.zeros((6, 6))
    A[:3, 3:] = A[3:, :3] = 1e8 * np.random.default_rng(0).random((3, 3))  # a trace of zero
    for k in (2, 3):
        best = best_partition(A, k)[1]
        for bound in (spectral_bound, relaxed_bound):
            assert bound(A, k) < best and bound(A, k) > best - 1e9
    X = np.random.default_rng(0).normal(size=(40, 2))
    indefinite = Kernel("zero trace", whole=lambda X, Y: (np.abs(X[:, :1] - Y[:, :1].T)) * 1e6)
    dense, streamed = (
        spectral_bound(as_gram(indefinite, X, how), 3) for how in ("dense", "streamed")
    )
    assert np.isclose(dense, streamed, rtol=1e-6)


def test_probes_in_words(monkeypatch):
    monkeypatch.setattr("kxbook.price.DENSE_UP_TO", 100)
    X = np.random.default_rng(0).normal(size=(300, 2))
    c = (
        KernelExKMC(2, base="empty", max_leaves=2, gram="streamed", random_state=0)
        .fit(X)
        .certificate()
    )
    assert (
        "whose seed was fixed before the data was seen" in " ".join(c.notes)
        and c.price_upper < np.inf
    )
    gram = StreamedGram(gaussian(1.0), X)
    anew = [spectral_bound(gram, 3, rng=np.random.default_rng(seed)) for seed in range(8)]
    assert len(set(anew)) > 1  # though many agree to the last digit
    assert np.allclose(anew, anew[0], rtol=1e-3)


# What a sceptical reader found
@pytest.mark.parametrize("scale", [0.0, 1e-170, 1e-150, 1.0, 1e150])
def test_probes_neither_vanish_nor_grow(scale, monkeypatch):
    monkeypatch.setattr("kxbook.price.DENSE_UP_TO", 100)
    group = np.arange(301) % 25
    K = (group[:, None] == group) * scale  # the groups cost nothing
    assert spectral_bound(K, 25) <= 0
    assert spectral_bound(K, 5) <= kernel_cost(K, np.minimum(group, 4))


def test_distances_that_overflow_are_refused():
    for kernel, X in (("gaussian", [[0.0], [1e155]]), ("laplace", [[1e308], [-1e308]])):
        for data in (np.array(X), partition_array(np.array(X), 1)):
            with pytest.raises(ValueError, match="Rescale X"):
                KernelIMM(1, kernel=kernel, gamma=1e-310).fit(data)


def test_the_symmetric_part_of_a_kernel_counts():
    same = np.equal.outer(np.arange(20) % 2, np.arange(20) % 2)
    X = np.arange(20.0)[:, None]
    tilt = 4e-9 * np.sign(X - X.T) * (2 * same - 1)
    assert spectral_bound(same - tilt, 2) <= 1e-12  # the two groups cost nothing

    def tilted(X, Y):
        i, j = np.rint(X[:, 0]).astype(int), np.rint(Y[:, 0]).astype(int)
        return (same - tilt)[np.ix_(i, j)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        c = KernelTree(2, kernel=tilted, max_leaves=20, random_state=0).fit(X).certificate()
    assert c.lower_bound <= c.tolerance and any("taken to be symmetric" in note for note in c.notes)


@pytest.mark.parametrize("scale", [1e-165, 1e-90, 1e-40, 1e40, 1e80, 1e150])
@pytest.mark.parametrize("kernel", [linear(), hellinger(), intersection(), chi2(), quadratic()])
def test_single_precision_is_used_where_it_reaches(kernel, scale):
    X = scale * np.array([[1.0], [1.3], [1.7], [7.0], [7.1], [7.9]])
    labels = np.array([0, 1, 1, 1, 1, 1])
    for how in ("pieces", "nystroem single", "single", "dense"):
        problem = Problem(X, kernel, 2, labels, how, "exkmc", "spectral", X)
        result = certificate(problem)
        if result is not None:  # not refused
            assert not faults(problem, *result)[0], how


def test_tiny_matrices_with_a_zero_diagonal_have_noise():
    X = np.random.default_rng(0).normal(size=(8, 2))
    K = -0.5e-170 * ((X[:, None] - X) ** 2).sum(2)
    for k in (7, 8):
        assert spectral_bound(K, k) <= best_partition(K, k)[1]


def test_a_kernel_that_borrows_a_name_is_not_that_kernel():
    fake = Kernel(
        "laplace",
        "product",
        lambda s, t, gamma: np.exp(-gamma * np.sqrt(np.abs(s - t))),
        params=(("gamma", 1.0),),
        semidefinite=True,
    )
    assert (
        is_formula(laplace())
        and is_formula(intersection(0.5))
        and not is_formula(fake)
        and not is_formula(epsilon())
        and not is_formula(distance(cauchy))
    )
    model = KernelExKMC(base="empty", max_leaves=2, kernel=fake).fit(
        np.arange(6.0)[:, None], reference_labels=np.arange(6) % 2
    )
    with pytest.raises(ValueError, match="whose formula is known"):
        model.certificate(rigorous=True)


def test_words_compare_only_what_is_known():
    X = np.array([[0.0], [7.8e-12], [8.2e-12], [5.0], [6.0]])
    c = (
        KernelExKMC(base="empty", max_leaves=3, kernel=laplace(1.0))
        .fit(X, reference_labels=[0, 0, 1, 1, 2])
        .certificate()
    )
    cost, best = truth(
        laplace(1.0),
        X,
        KernelExKMC(base="empty", max_leaves=3, kernel=laplace(1.0))
        .fit(X, reference_labels=[0, 0, 1, 1, 2])
        .labels_,
        3,
    )
    assert cost <= np.longdouble(c.price_upper) * best + c.tolerance
    tiny = replace(c, cost=1e-12, reference_cost=2e-12, price=0.5, rounding=1e-11)
    assert "as far as rounding can tell" in tiny.words() and "less than those" not in tiny.words()
    few = (
        KernelExKMC(2, gram="nystroem", rank=1, base="empty", max_leaves=2, random_state=0)
        .fit(np.random.default_rng(0).normal(size=(30, 1)))
        .certificate()
    )
    assert (
        few.landmarks
        and few.words().startswith("By the features, ")
        and any(note.startswith("On all rows") for note in few.notes)
    )


def test_rigorous_prices_are_known_or_said_to_be_unknown():
    X = np.array([[1.0], [2.0], [3.0], [8.0]])
    tree = KernelExKMC(base="empty", max_leaves=2, kernel=intersection(1e-80)).fit(
        X, reference_labels=[0, 0, 1, 1]
    )
    known = verify(
        intersection(1e-80),
        X,
        (np.arange(4), np.array([0, 0, 1, 1]), np.ones(4)),
        np.array([0, 1, 1, 1]),
    )
    assert (
        known.cost.sharp
        and known.reference.sharp
        and 1.05 < known.cost.middle / known.reference.middle < 1.15
    )
    assert tree.certificate(rigorous=True).rigorous
    lost = verify(
        gaussian(1e-290),
        1e-20 * X,
        (np.arange(4), np.array([0, 0, 1, 1]), np.ones(4)),
        np.array([0, 1, 1, 1]),
    )
    assert not lost.cost.sharp and np.isnan(lost.cost.middle)  # below the smallest float


# Interval arithmetic
MODELS = [
    lambda: KernelIMM(2, random_state=0),
    lambda: KernelExKMC(2, kernel="laplace", gram="nystroem", rank=3, random_state=0),
    lambda: KernelTree(2, kernel="chi2", random_state=0),
    lambda: KernelExpand(2, kernel="quadratic", base="empty", max_leaves=2, random_state=0),
    lambda: KernelIMM(2, kernel="hellinger", random_state=0),
    lambda: KernelIMM(2, kernel=intersection(2.0), random_state=0),
]


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("bound", ["spectral", "relaxed"])
@pytest.mark.parametrize(
    "seeds", [range(4), pytest.param(range(4, 12), marks=pytest.mark.slow)], ids=["few", "more"]
)
def test_rigorous_certificates_are_true_without_tolerance(make, bound, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 2, size=(8, 2)).round(1) * 10.0 ** rng.integers(
            -3, 3
        ) + 10.0 ** rng.integers(-2, 6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(X)
        c, ordinary = model.certificate(bound, rigorous=True), model.certificate(bound)
        cost, best = truth(model.result_.problem.kernel, X, model.labels_, c.n_clusters)
        assert c.rigorous and c.tolerance == 0 and not ordinary.rigorous
        assert c.lower_bound <= best and (
            c.price_upper == np.inf or cost <= np.longdouble(c.price_upper) * best
        )
        assert (
            np.isclose(c.cost, float(cost), rtol=1e-12, atol=0)
            and "no rounding can make it wrong" in c.words()
        )
        assert (
            c.lower_bound >= ordinary.lower_bound * (1 - 1e-9)
            if bound == "spectral"
            else c.lower_bound <= best
        )
        assert "approximate" not in " ".join(c.notes)


def test_rigorous_is_for_known_kernels_in_memory_and_few_rows():
    X = np.random.default_rng(0).normal(size=(30, 2))
    brought = KernelExKMC(
        2, base="empty", max_leaves=2, kernel=distance(cauchy), random_state=0
    ).fit(X)
    with pytest.raises(ValueError, match="whose formula is known"):
        brought.certificate(rigorous=True)
    with pytest.raises(ValueError, match="all rows in memory"):
        KernelExKMC(2, base="empty", max_leaves=2, random_state=0).fit(
            partition_array(X, 10)
        ).certificate(rigorous=True)
    with pytest.raises(ValueError, match="at most 1000 distinct rows"):
        KernelExKMC(base="empty", max_leaves=2).fit(
            np.arange(1001.0)[:, None], reference_labels=np.arange(1001) % 2
        ).certificate(rigorous=True)
    with pytest.raises(ValueError, match="'bound' parameter"):
        KernelIMM(2, random_state=0).fit(X).certificate(bound="best", rigorous=True)


def test_rigorous_says_what_to_install(monkeypatch):
    found = builtins.__import__

    def without(name, *rest, **options):
        if name == "flint":
            raise ImportError(name)
        return found(name, *rest, **options)

    model = KernelIMM(2, random_state=0).fit(np.random.default_rng(0).normal(size=(20, 2)))
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install python-flint"):
        model.certificate(rigorous=True)


def test_rigorous_with_copies_and_points_of_no_cost():
    X = np.array([[0.0], [0.0], [0.0], [5.0], [5.0]])
    c = KernelIMM(2, random_state=0).fit(X).certificate(rigorous=True)
    assert (
        c.cost == 0
        and c.price_upper == 1
        and "They cost nothing, and no clustering costs less" in c.words()
    )
    both = (
        KernelIMM(kernel=gaussian(1.0))
        .fit(X, reference_labels=[0, 0, 1, 1, 1])
        .certificate(rigorous=True)
    )  # copies in two clusters
    assert np.isclose(
        both.reference_cost, kernel_cost(gaussian(1.0)(X), [0, 0, 1, 1, 1]), rtol=1e-12
    )


def test_floats_around_intervals():
    flint = pytest.importorskip("flint")
    for ball in (
        flint.arb(1) / 3,
        flint.arb(2).sqrt(),
        flint.arb(1e-320) / 3,
        -(flint.arb(10) ** 300) / 7,
    ):
        assert flint.arb(at_least(ball)) <= ball <= flint.arb(at_most(ball))
    assert at_most(flint.arb("nan")) == np.inf and at_least(flint.arb("nan")) == -np.inf
    n = 40
    X = np.random.default_rng(0).normal(size=(n, 2))
    known = verify(gaussian(1.0), X, (np.arange(n), np.arange(n) % 3, np.ones(n)), np.arange(n) % 2)
    for part in known:
        assert part.low <= part.high <= part.low * (1 + 1e-11)


def test_nystroem_grams_know_how_far_rounding_moved_them():
    X = np.random.default_rng(0).normal(size=(50, 2))
    gram = as_gram(gaussian(1.0), X, "nystroem", rank=10)
    again = nystroem_gram(X, gram.features)
    assert (
        again.moved == gram.moved > 0
        and (again.missing == gram.missing).all()
        and gram.part(np.arange(5)).moved == gram.moved
    )
    single = nystroem_error(gaussian(1.0), X[:5], "float32")
    assert single - nystroem_error(gaussian(1.0), X[:5]) == pytest.approx(
        np.finfo(np.float32).eps, rel=1e-3
    )
