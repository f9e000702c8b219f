"""The estimators as scikit-learn sees them, and what they do with bad input."""

import doctest
import pickle
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from kxbook import (
    IMM,
    KernelExKMC,
    KernelExpand,
    KernelIMM,
    KernelKMeans,
    KernelTree,
    estimators,
    search,
)
from kxbook.gram import StreamedGram
from kxbook.kernel import epsilon, gaussian
from kxbook.kkmeans import lloyd, random_start

X = np.random.default_rng(0).uniform(size=(40, 3))


USUAL = [KernelKMeans(), IMM(), KernelExKMC()]
OTHER = [  # the others share the road of these, and take longer
    KernelIMM(),
    KernelExpand(),
    KernelTree(),
    KernelKMeans(3, kernel="linear", max_iter=50),
    IMM(3, candidates="midpoints", bins=16),
    KernelIMM(3, kernel="laplace", gram="streamed"),
    KernelExKMC(3, cuts="threshold", gram="nystroem"),
    KernelExpand(3, base="empty", kernel="laplace"),
    KernelTree(3, max_leaves=3, kernel="linear"),
]


@parametrize_with_checks(USUAL)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHER)
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


@pytest.mark.parametrize("module", [estimators, search])
def test_examples_run(module):
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed


BAD = {
    "NaN": (dict(), np.where(X > 0.9, np.nan, X), "contains NaN"),
    "infinity": (dict(), np.where(X > 0.9, np.inf, X), "contains infinity"),
    "fewer rows than clusters": (dict(n_clusters=50), X, "n_samples=40 should be >= n_clusters=50"),
    "no clusters": (dict(n_clusters=0), X, "'n_clusters' parameter of KernelKMeans must be an int"),
    "negative for hellinger": (
        dict(kernel="hellinger"),
        X - 1,
        "Negative values in data passed to the hellinger kernel",
    ),
    "negative for chi2": (
        dict(kernel="chi2"),
        X - 1,
        "Negative values in data passed to the chi2 kernel",
    ),
    "negative for intersection": (
        dict(kernel="intersection"),
        X - 1,
        "Negative values in data passed to the intersection kernel",
    ),
    "negative gamma": (dict(gamma=-1.0), X, "'gamma' parameter of KernelKMeans must be"),
    "gamma zero": (dict(gamma=0.0), X, "'gamma' parameter of KernelKMeans must be"),
    "gamma NaN": (dict(gamma=np.nan), X, "gamma"),
    "gamma infinite": (dict(gamma=np.inf), X, "gamma"),
    "gamma a word": (dict(gamma="auto"), X, "'gamma' parameter of KernelKMeans must be"),
    "unknown kernel": (dict(kernel="rbf"), X, "'kernel' parameter of KernelKMeans must be"),
    "unknown init": (dict(init="kmeans++"), X, "'init' parameter of KernelKMeans must be"),
    "labels out of range": (dict(init=np.full(40, 9)), X, "integer labels from 0 to 1"),
    "matrix not symmetric": (
        dict(kernel="precomputed"),
        np.triu(np.ones((5, 5))),
        "must be symmetric",
    ),
    "matrix not square": (dict(kernel="precomputed"), X, "square matrix"),
    "matrix and stream": (
        dict(kernel="precomputed", gram="streamed"),
        np.eye(5),
        "must be 'auto' or 'dense'",
    ),
    "one dimension": (dict(), X[:, 0], "Expected 2D array, got 1D array"),
    "callable of wrong shape": (dict(kernel=lambda A, B: A), X, "must return a matrix of shape"),
    "callable not symmetric": (
        dict(kernel=lambda A, B: A @ np.triu(np.ones((3, 3))) @ B.T),
        X,
        "The <lambda> kernel must be symmetric. Got entries that differ by",
    ),
    "clusters True": (
        dict(n_clusters=True),
        X,
        "'n_clusters' parameter of KernelKMeans must be an int in the range .* Got True",
    ),
    "starts True": (dict(n_init=True), X, "'n_init' parameter of KernelKMeans must be .* Got True"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    options, data, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        KernelKMeans(**({"n_clusters": 2} | options)).fit(data)


def test_sparse_is_refused():
    with pytest.raises(TypeError, match="[Ss]parse"):
        KernelKMeans(2).fit(csr_array(X))


def test_weights_are_checked():
    with pytest.raises(ValueError, match="[Nn]egative"):
        KernelKMeans(2).fit(X, sample_weight=-np.ones(40))
    with pytest.raises(ValueError, match="at least one non-zero"):
        KernelKMeans(2).fit(X, sample_weight=np.zeros(40))
    for size in (1e308, 5e-324):
        with (
            warnings.catch_warnings(),
            pytest.raises(
                ValueError,
                match="Sample weights must have a sum from .* Divide them by the largest",
            ),
        ):
            warnings.simplefilter("error")
            KernelKMeans(2).fit(X, sample_weight=np.full(40, size))


@pytest.mark.parametrize("Model", [KernelExpand, KernelTree])
def test_masked_labels_are_refused(Model):
    labels = np.ma.masked_array(np.arange(40) % 2, mask=np.arange(40) == 7)
    with pytest.raises(
        ValueError, match="reference_labels must not be masked. Got 1 masked labels"
    ):
        Model(2).fit(X, reference_labels=labels)
    whole = np.ma.masked_array(np.arange(40) % 2, mask=False)
    assert (Model(2).fit(X, reference_labels=whole).reference_labels_ == whole).all()


@pytest.mark.parametrize("Model", [KernelIMM, KernelExKMC, KernelTree])
def test_trees_refuse_what_is_no_number_and_no_kernel(Model):
    with pytest.raises(
        ValueError, match=f"'n_clusters' parameter of {Model.__name__} must be an int .* Got True"
    ):
        Model(True).fit(X)
    more = "max_depth" if Model is KernelTree else "max_leaves" if Model is KernelExKMC else "order"
    with pytest.raises(
        ValueError, match=f"'{more}' parameter of {Model.__name__} must be .* Got True"
    ):
        Model(2, **{more: True}).fit(X)
    if Model is KernelTree:  # the others need surrogate features, which a function does not have
        with pytest.raises(ValueError, match="kernel must be symmetric"):
            Model(2, kernel=lambda A, B: A @ np.triu(np.ones((3, 3))) @ B.T).fit(X)


def test_constant_columns_do_no_harm():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = KernelKMeans(3, gamma=2.0, random_state=0).fit(X)
        padded = KernelKMeans(3, gamma=2.0, random_state=0).fit(np.c_[X, np.full(40, 1e6)])
    assert (plain.labels_ == padded.labels_).all()
    np.testing.assert_allclose(plain.inertia_, padded.inertia_)


@pytest.mark.parametrize(
    "model",
    [
        KernelKMeans(3, kernel="linear", random_state=0),
        IMM(3, random_state=0),
        KernelTree(3, kernel="linear", random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("value", [1e16 / 3, 1.7e30, 0.7e150])
def test_rounding_of_the_mean_of_a_constant_column_does_no_harm(model, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, padded = (
            clone(model).fit(X[:39]),
            clone(model).fit(np.c_[X[:39], np.full(39, value)]),
        )
    assert adjusted_rand_score(plain.labels_, padded.labels_) == 1


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "linear", "hellinger", "quadratic"])
def test_equal_points_make_one_cluster_and_a_warning(kernel):
    data = np.full((6, 2), 3.0)
    with pytest.warns(
        ConvergenceWarning, match=r"distinct clusters \(1\) found smaller than n_clusters \(2\)"
    ):
        model = KernelKMeans(2, kernel=kernel).fit(data)
    assert model.inertia_ == 0 and set(model.labels_) == {0} and (model.predict(data) == 0).all()


@pytest.mark.parametrize("Model", [KernelKMeans, KernelTree])
@pytest.mark.parametrize("kernel", ["quadratic", "hellinger", "intersection", "chi2"])
def test_distances_that_are_lost_in_rounding_are_not_called_copies(Model, kernel):
    data = np.c_[X, np.full(40, 1e15)]
    with pytest.warns(
        ConvergenceWarning,
        match=r"clusters \(1\) found smaller than n_clusters \(2\). In feature space the others differ by no more than rounding. Rescale X",
    ):
        Model(2, kernel=kernel, random_state=0).fit(data)
    with pytest.warns(
        ConvergenceWarning,
        match=r"\(3\) found smaller than n_clusters \(4\). Possibly due to duplicate points",
    ):
        Model(4, kernel=kernel, random_state=0).fit(np.repeat(X[:3], 4, axis=0))


@pytest.mark.parametrize(
    "kernel",
    ["quadratic", "linear", "hellinger", lambda A, B: (A @ B.T) ** 2],
    ids=["quadratic", "linear", "hellinger", "callable"],
)
def test_kernels_without_room_for_sums_and_distances_are_refused(kernel):
    largest = {"linear": 1.2e154, "hellinger": 1.7e308}.get(
        kernel, 1.1e77
    )  # K is finite, 2 K is not
    with pytest.raises(ValueError, match="not finite on this data. Rescale X"):
        KernelKMeans(2, kernel=kernel, random_state=0).fit([[0.0], [largest / 2], [largest]])
    with pytest.raises(ValueError, match="too large: sums of its entries are not finite"):
        KernelKMeans(2, kernel="precomputed", random_state=0).fit(np.diag([1e308, 1e308, 1.0]))


def test_a_kernel_that_is_none_warns_and_works():
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = KernelKMeans(3, kernel=epsilon(0.4), random_state=0).fit(X)
    assert len(set(model.labels_)) == 3
    with pytest.warns(UserWarning, match="precomputed kernel is not positive semidefinite"):
        KernelKMeans(2, kernel="precomputed", random_state=0).fit(epsilon(0.4)(X))


def test_few_passes_warn():
    data, _ = make_moons(300, noise=0.1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 passes"):
        KernelKMeans(2, gamma=15, init="random", n_init=1, max_iter=1, random_state=0).fit(data)


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(gram="streamed"),
        dict(gram="streamed", dtype="float32"),
        dict(gram="nystroem", rank=50),
        dict(kernel="linear"),
        dict(kernel="chi2"),
    ],
)
def test_predictions_on_the_training_data_are_its_labels(options):
    data = (
        np.random.default_rng(1).integers(0, 6, size=(300, 3)).astype(float)
    )  # many ties and copies
    for seed in range(5):
        model = KernelKMeans(4, random_state=seed, **options).fit(data)
        assert (model.predict(data) == model.labels_).all()
        again = pickle.loads(pickle.dumps(model))
        assert (again.predict(data) == model.labels_).all()


@pytest.mark.parametrize("how", ["auto", "dense", "nystroem"])
@pytest.mark.parametrize("kernel", ["chi2", "laplace", "gaussian"])
def test_the_precision_of_the_stream_concerns_the_stream_only(how, kernel):
    data = np.random.default_rng(0).random((200, 3)) + 1000
    single, double = (
        KernelKMeans(4, kernel=kernel, dtype=t, gram=how, random_state=0).fit(data)
        for t in ("float32", "float64")
    )
    assert (single.predict(data) == single.labels_).all() and (
        single.labels_ == double.labels_
    ).all()
    assert (
        np.isclose(single.score(data), -single.inertia_, rtol=1e-6)
        and single.inertia_ == double.inertia_
    )
    assert (single.transform(data) == double.transform(data)).all()


def test_new_parameters_leave_a_fitted_model_as_it_is():
    model = KernelKMeans(3, gamma=2.0, random_state=0).fit(X)
    before = model.predict(X), model.transform(X), model.score(X)
    model.set_params(n_clusters=5, dtype="float32", gamma=1.0, kernel="linear")
    assert (
        (model.predict(X) == before[0]).all()
        and (model.transform(X) == before[1]).all()
        and model.score(X) == before[2]
    )


def cuts_of(tree):
    return {
        (int(a), lo, hi)
        for a, lo, hi, left in zip(tree.axis, tree.lo, tree.hi, tree.left)
        if left >= 0
    }


@pytest.mark.filterwarnings("ignore:The tree has")
@pytest.mark.parametrize("Model", [KernelExKMC, KernelExpand])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "linear", "hellinger"])
def test_cuts_concern_the_nodes_that_are_grown(Model, kernel):
    data = np.r_[X, X[:, ::-1] + 3, X + 6]
    labels = np.repeat([0, 1, 0], 40)
    labels[::7] = 1 - labels[::7]
    base = cuts_of(KernelIMM(kernel=kernel).fit(data, reference_labels=labels).tree_)
    grown, empty = (
        cuts_of(
            Model(kernel=kernel, cuts="threshold", base=b, max_leaves=6)
            .fit(data, reference_labels=labels)
            .tree_
        )
        for b in ("imm", "empty")
    )
    intervals = {cut for cut in grown if np.isfinite(cut[1:]).all()}
    assert intervals <= base and len(grown) > len(base)
    assert bool(intervals) == (
        kernel in ("gaussian", "laplace")
    )  # the features of the others are monotone
    assert empty and not any(np.isfinite(cut[1:]).all() for cut in empty)
    assert 'base="empty" has thresholds only' in Model.__doc__


@pytest.mark.parametrize("seed", range(3))
def test_moons_are_found_and_no_random_start_is_better(seed):
    data, truth = make_moons(2000, noise=0.06, random_state=seed)
    model = KernelKMeans(2, gamma=15, random_state=seed).fit(data)
    assert adjusted_rand_score(truth, model.labels_) >= 0.995
    gram, rng = StreamedGram(gaussian(15), data), np.random.default_rng(seed)
    assert (
        model.inertia_
        <= min(lloyd(gram, random_start(gram, 2, None, rng), 2).cost for _ in range(5)) + 1e-6
    )


def test_progress_is_shown(capsys):
    data, _ = make_moons(200, noise=0.06, random_state=0)
    KernelKMeans(2, gamma=15, gram="streamed", verbose=1, random_state=0).fit(data)
    assert "start 1 of" in capsys.readouterr().err
    KernelKMeans(2, gamma=15, random_state=0).fit(data)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_an_interrupt_ends_a_long_fit():
    source = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a job of the background\nimport numpy as np\nfrom kxbook import KernelKMeans\nX = np.random.default_rng(0).normal(size=(200_000, 10))\nprint('ready', flush=True)\nKernelKMeans(10, random_state=0).fit(X)"
    with subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        time.sleep(8)  # by now it streams the full kernel, which takes minutes
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in err


def test_a_local_kernel_has_many_equal_eigenvalues():
    data = np.random.default_rng(0).normal(size=(500, 2))
    assert len(set(KernelKMeans(3, gamma=30.0, random_state=0).fit(data).labels_)) == 3


def test_an_outlier_does_not_hide_the_others():
    rng = np.random.default_rng(0)
    data, truth = (
        np.r_[rng.normal(0, 0.1, (50, 1)), rng.normal(1, 0.1, (50, 1)), [[1e6]]],
        np.repeat([0, 1, 2], [50, 50, 1]),
    )
    model = KernelKMeans(3, kernel="linear", random_state=0).fit(data)
    assert adjusted_rand_score(truth, model.labels_) == 1
    tree = KernelExKMC(base="empty", kernel="linear").fit(data, reference_labels=truth)
    assert (tree.labels_ == truth).all() and np.isclose(
        tree.reference_cost_, model.inertia_, rtol=1e-2
    )
    far = np.r_[rng.normal(size=(200, 2)), [[1e10, 1e10]]]
    model = KernelKMeans(3, gamma=1.0, random_state=0).fit(far)
    assert (model.predict(far) == model.labels_).all()


def test_heavy_points_are_never_missed():
    rng = np.random.default_rng(0)
    data = np.r_[rng.normal(size=(20_000, 2)), [[30, 0], [0, 30], [-30, 0], [0, -30], [30, 30]]]
    weights = np.r_[np.ones(20_000), np.full(5, 1e6)]
    model = KernelKMeans(5, kernel="linear", random_state=0).fit(data, sample_weight=weights)
    assert len(set(model.labels_[-5:])) == 5


def test_the_scale_of_weights_does_not_matter():
    plain = KernelKMeans(3, gamma=2.0, random_state=0).fit(X)
    for scale in (1e-200, 1e300):
        scaled = KernelKMeans(3, gamma=2.0, random_state=0).fit(X, sample_weight=np.full(40, scale))
        assert (scaled.labels_ == plain.labels_).all() and np.isclose(
            scaled.inertia_, scale * plain.inertia_
        )


def test_a_callable_keeps_its_meaning_whatever_its_name():
    def linear(A, B):
        return np.outer((A**2).sum(1), (B**2).sum(1))

    def other(A, B):
        return linear(A, B)

    labels = [KernelKMeans(2, kernel=k, random_state=0).fit(X).labels_ for k in (linear, other)]
    assert (labels[0] == labels[1]).all()


@pytest.mark.slow
def test_threads_leave_the_process_as_it_was():
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    before, filters = [p["num_threads"] for p in threadpool_info()], list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda seed: KernelKMeans(3, gram="streamed", random_state=0).fit(X).labels_,
                range(8),
            )
        )
    assert all((labels == found[0]).all() for labels in found)
    assert [p["num_threads"] for p in threadpool_info()][
        : len(before)
    ] == before and warnings.filters == filters


def test_words_are_literally_true():
    years = np.arange(1990.0, 2010.0)[:, None]
    model = KernelExKMC(base="empty", max_leaves=2).fit(
        years, reference_labels=(years[:, 0] >= 2000).astype(int)
    )
    assert model.explain([2000]) == ["x0 > 1999.5"] and model.explain([1999]) == ["x0 ≤ 1999.5"]


def test_a_fitted_estimator_shows_its_tree():
    import pandas as pd
    from sklearn import config_context

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["<a>", "b"])
    model = KernelExKMC(2, random_state=0)
    assert "cluster 0" not in model._repr_html_()
    html = model.fit(X)._repr_mimebundle_()["text/html"]
    assert html.count("<b>cluster") == model.n_leaves_ and "&lt;a&gt;" in html
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
