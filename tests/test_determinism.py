"""The same seed gives the same tree: in every run, with any number of threads, in blocks of any size and for rows in any order.

Sums of kernel values may differ in their last digits, by at most the relative error that a Gram calls its `precision`; labels and trees may not differ at all.
"""

import os
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kxbook import IMM, KernelExKMC, KernelExpand, KernelIMM, KernelKMeans, KernelTree
from kxbook.gram import (
    StreamedGram,
    as_gram,
    map_threads,
    nystroem_features,
    thread_count,
    threads,
)
from kxbook.grow import grow
from kxbook.imm import kernel_imm
from kxbook.kernel import gaussian, laplace, linear, quadratic
from kxbook.kkmeans import kernel_kmeans, lloyd
from kxbook.price import spectral_bound

RUN = """
import hashlib, warnings
import numpy as np
from kxbook import IMM, KernelExKMC, KernelExpand, KernelIMM, KernelKMeans, KernelTree
from kxbook.grow import grow
from kxbook.imm import kernel_imm
from kxbook.kernel import linear
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.integers(0, 12, size=(400, 3)) / 4 + rng.integers(0, 2, size=(400, 1)) * 3  # ties and copies
found = []
for Model, options in ((KernelKMeans, {}), (KernelKMeans, {"gram": "streamed"}), (KernelKMeans, {"gram": "nystroem", "rank": 30}), (KernelIMM, {}), (KernelExKMC, {"kernel": "laplace"}), (KernelExpand, {}), (KernelTree, {}), (IMM, {})):
    model = Model(3, random_state=7, **options).fit(X)
    found.append(model.labels_.tobytes())
    if Model is not KernelKMeans:
        found.append(model.tree_.to_json().encode())
Z = rng.normal(size=(25_000, 3)).round(2)  # enough for threads over the axes
y = (Z[:, 0] > 0) * 2 + (Z[:, 1] > 0.5)
found += [grow(Z, 1 - np.eye(4)[y], 6, bins=b).to_json().encode() for b in (None, 64)]
found += [kernel_imm(Z, y, linear(), bins=b)[0].to_json().encode() for b in (None, 64)]
print(hashlib.sha256(b"|".join(found)).hexdigest())
"""


def in_a_process(**variables):
    return subprocess.run(
        [sys.executable, "-c", RUN],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | variables,
    ).stdout


@pytest.mark.slow
def test_runs_and_numbers_of_threads():
    names = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"
    settings = [dict.fromkeys(names, many) | {"PYTHONHASHSEED": many} for many in "12"] + [
        dict.fromkeys(names[:3], "4")
    ]
    assert len({in_a_process(**s) for s in settings}) == 1


def ties(n=120, d=2, seed=0):
    "Points on a grid, with copies."
    return np.random.default_rng(seed).integers(0, 5, size=(n, d)).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2])
def test_limits_of_threads_within_a_process(limit):
    X = np.random.default_rng(4).normal(size=(1300, 3)).round(1)  # several blocks
    with threadpool_limits(limit):
        model = KernelExKMC(3, gram="streamed", random_state=0).fit(X)
    assert model.tree_ == KernelExKMC(3, gram="streamed", random_state=0).fit(X).tree_


@pytest.mark.parametrize("kernel", [gaussian(0.3), laplace(0.3), quadratic()], ids=lambda k: k.name)
@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_blocks_of_any_size(kernel, block):
    X, rng = np.random.default_rng(1).normal(size=(150, 3)), np.random.default_rng(2)
    labels, K = rng.integers(3, size=150), np.abs(kernel(X))
    whole, parts = StreamedGram(kernel, X), StreamedGram(kernel, X, block=block)
    V = np.eye(3)[labels]
    for gram in (parts, as_gram(kernel, X, "dense")):
        assert (np.abs(whole.times(V) - gram.times(V)) <= whole.precision * (K @ V)).all()
        assert (lloyd(whole, labels, 3).labels == lloyd(gram, labels, 3).labels).all()
    assert (
        whole.times(V) == whole.times(V)
    ).all()  # and the same blocks in the same order give the same digits


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_nystroem_features_in_blocks_of_any_size(block):
    X = np.random.default_rng(1).normal(size=(150, 3))
    wanted = nystroem_features(gaussian(0.3), X, X[::10])
    np.testing.assert_allclose(
        nystroem_features(gaussian(0.3), X, X[::10], block=block), wanted, atol=1e-9
    )


@pytest.mark.parametrize("dtype, least, most", [("float32", 1e-7, 1e-5), ("float64", 1e-16, 2e-12)])
def test_blocks_are_as_precise_as_they_say(dtype, least, most):
    X = np.random.default_rng(1).normal(size=(150, 3))
    gram, V = StreamedGram(gaussian(0.3), X, dtype), np.eye(3)[np.arange(150) % 3]
    exact = gaussian(0.3)(X) @ V
    assert (
        least <= gram.precision <= most
        and (np.abs(gram.times(V) - exact) <= gram.precision * exact).all()
    )


def test_the_same_digits_twice():
    X = np.random.default_rng(3).normal(size=(1300, 4))  # several blocks
    gram = StreamedGram(gaussian(0.2), X)
    one, two = (kernel_kmeans(gram, 4, n_init=2, rng=np.random.default_rng(0)) for _ in range(2))
    assert one.costs == two.costs and (one.labels == two.labels).all()
    assert spectral_bound(gram, 4) == spectral_bound(gram, 4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("Model", [IMM, KernelIMM, KernelExKMC, KernelExpand, KernelTree])
def test_ties_do_not_follow_the_order_of_rows(Model, seed):
    rng, X = np.random.default_rng(seed), ties(seed=seed)
    order = rng.permutation(len(X))
    labels = np.r_[0, 1, 2, rng.integers(3, size=len(X) - 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = [
            Model(random_state=0).fit(X[o], reference_labels=labels[o])
            for o in (slice(None), order)
        ]
        free = [Model(3, random_state=0).fit(X[o]) for o in (slice(None), order)]
    for one, two in (told, free):
        assert (
            one.tree_.to_json() == two.tree_.to_json() and (one.labels_[order] == two.labels_).all()
        )
        assert np.isclose(one.cost_, two.cost_, rtol=1e-12) and np.isclose(
            one.reference_cost_, two.reference_cost_, rtol=1e-12
        )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gram": "streamed"},
        {"gram": "nystroem", "rank": 20},
        {"kernel": "linear"},
        {"init": "random", "n_init": 3},
    ],
    ids=str,
)
def test_clusters_do_not_follow_the_order_of_rows(options):
    X, order = ties(200, 3), np.random.default_rng(0).permutation(200)
    one, two = (KernelKMeans(4, random_state=3, **options).fit(X[o]) for o in (slice(None), order))
    assert (one.labels_[order] == two.labels_).all() and one.inertia_ == two.inertia_


def test_threads_over_the_axes_change_nothing():
    X = (
        np.random.default_rng(5).normal(size=(24_000, 4)).round(2)
    )  # beyond 20 000 items there are two threads
    y = (X[:, 0] > 0) * 2 + (X[:, 1] > 0.5)
    few = np.random.default_rng(6).permutation(len(X))

    def trees(o):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [
                tree
                for bins in (None, 100)
                for tree in (
                    kernel_imm(X[o], y[o], linear(), bins=bins)[0],
                    grow(X[o], 1 - np.eye(4)[y[o]], 6, bins=bins),
                )
            ]

    found = trees(slice(None))
    assert found == trees(few)
    with threads(1):
        assert found == trees(slice(None))


def with_jobs(n_jobs, f):
    "The bytes of what f returns with so many threads."
    with threads(n_jobs):
        return f().tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [gaussian(0.2), laplace(0.2), quadratic()], ids=lambda k: k.name)
def test_sums_have_the_same_digits_with_any_number_of_threads(kernel, dtype):
    rng = np.random.default_rng(0)
    X, Y, V = rng.normal(size=(1100, 3)), rng.normal(size=(300, 3)), rng.normal(size=(1100, 4))
    few = rng.choice(1100, 200, replace=False)
    for block in (64, 512):  # many blocks, several to a task, and few
        gram = StreamedGram(kernel, X, dtype, block)
        for f in (
            lambda: gram.times(V),
            lambda: gram.times(V[:, :1]),
            lambda: gram.times(V, Y),
            lambda: gram.times(V[:200], columns=few),
            lambda: gram.times(V[:0], columns=few[:0]),
            gram.matrix,
        ):
            assert len({with_jobs(n_jobs, f) for n_jobs in (1, 2, 3, 5, None)}) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [gaussian(0.2), laplace(0.2)], ids=lambda k: k.name)
def test_features_have_the_same_digits_with_any_number_of_threads(kernel, dtype):
    X = np.random.default_rng(0).normal(size=(1100, 3))
    f = lambda: nystroem_features(kernel, X, X[::20], dtype, block=100)  # noqa: E731
    assert len({with_jobs(n_jobs, f) for n_jobs in (1, 2, 3, 5, None)}) == 1


def test_numbers_of_threads():
    cores = joblib.cpu_count()
    assert thread_count() == cores
    for n_jobs, wanted in ((None, cores), (-1, cores), (-2, max(cores - 1, 1)), (1, 1), (7, 7)):
        with threads(7), threads(np.int64(n_jobs) if n_jobs else n_jobs):
            assert thread_count() == wanted
    with joblib.parallel_config(backend="sequential"), threads(3):  # a matter of others
        assert thread_count() == 3
    assert thread_count() == cores


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2"])
def test_numbers_of_threads_that_mean_nothing_are_refused(n_jobs):
    wanted = pytest.raises(ValueError, match="'n_jobs' parameter must be None .* Use 1 for")
    with wanted, threads(n_jobs):
        pass
    assert thread_count() == joblib.cpu_count()


def test_two_callers_have_two_numbers_of_threads():
    together = threading.Barrier(2)

    def caller(n_jobs):
        with threads(n_jobs):
            together.wait()
            return thread_count(), set(map_threads(lambda _: thread_count(), range(20)))

    with threads(5), ThreadPoolExecutor(2) as pool:
        assert list(pool.map(caller, (2, 3))) == [(2, {1}), (3, {1})]
        assert thread_count() == 5


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_order_and_few_wait(n_jobs):
    begun, lock, where = [], threading.Lock(), set()

    def work(i, j):
        with lock:
            begun.append(i)
            where.add(threading.get_ident())
        time.sleep(0.002 * (i % 3))
        return i, j

    with threads(n_jobs):
        results = map_threads(work, iter(range(60)), range(100, 200))
    with threads(9):  # the number was fixed before
        for i, result in enumerate(results):
            assert result == (i, 100 + i) and len(begun) <= i + 1 + 3 * n_jobs
    assert sorted(begun) == list(range(60)) and len(where) <= n_jobs
    assert n_jobs > 1 or where == {threading.get_ident()}


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_threads_are_in_the_context_of_the_caller(n_jobs):
    with threads(n_jobs), np.errstate(over="raise"), pytest.raises(FloatingPointError):
        list(map_threads(np.exp, [np.array([1.0]), np.array([1e9])]))


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_an_error_in_a_thread_reaches_the_caller_and_ends_the_work(n_jobs):
    begun = []

    def work(i):
        begun.append(i)
        if i == 3:
            raise ZeroDivisionError(f"at {i}")
        return i

    with threads(n_jobs), pytest.raises(ZeroDivisionError, match="at 3"):
        list(map_threads(work, range(10_000)))
    assert len(begun) < 100


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("attribute", ["_fill", "progress"])
def test_an_interrupt_leaves_no_thread_behind(attribute, n_jobs):
    gram, before = StreamedGram(laplace(1.0), np.ones((300, 2)), block=16), threading.enumerate()
    setattr(gram, attribute, interrupt)
    with threads(n_jobs), pytest.raises(KeyboardInterrupt):
        gram.times(np.ones((300, 1)))
    assert set(threading.enumerate()) <= set(before)  # other tests may have threads of their own


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_who_stops_asking_stops_the_work(n_jobs):
    begun = []
    with threads(n_jobs):
        results = map_threads(begun.append, range(10_000))
        next(results)
        results.close()
    assert len(begun) < 20
