"""One road through fit: what is computed once, weights all the way, and numbers of threads."""

import pickle
import warnings

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs

from kxbook import IMM, KernelExKMC, KernelExpand, KernelIMM, KernelKMeans, KernelTree
from kxbook.fit import Settings, fit_clusters, fit_tree
from kxbook.gram import StreamedGram
from kxbook.kernel import Kernel
from kxbook.memory import MemoryData
from kxbook.partitioned import PartitionedData
from kxbook.report import explain_table, report_html
from kxbook.tables import partition_array

TREES = {
    "IMM": IMM(3, random_state=0),
    "IMM in bins": IMM(3, bins=8, random_state=0),
    "KernelIMM": KernelIMM(3, random_state=0),
    "KernelIMM, midpoints": KernelIMM(3, kernel="laplace", candidates="midpoints", random_state=0),
    "KernelIMM, Taylor": KernelIMM(3, surrogate="taylor", order="auto", random_state=0),
    "KernelExKMC": KernelExKMC(3, random_state=0),
    "KernelExKMC, landmarks": KernelExKMC(3, gram="nystroem", rank=20, random_state=0),
    "KernelExpand": KernelExpand(3, base="empty", random_state=0),
    "KernelTree": KernelTree(3, max_leaves=4, random_state=0),
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def table(n=90, seed=0):
    "Rows with ties and copies, labels for them that differ between copies, and weights."
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 7, size=(n, 2)) / 2
    y = (X.sum(1) + (rng.random(n) < 0.1)).astype(int) % 3
    return X, y, rng.integers(0, 4, size=n)


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("name", TREES)
def test_a_weight_is_a_number_of_copies(name, told):
    X, y, w = table()
    many, labels = np.repeat(X, w, axis=0), np.repeat(y, w)
    one, two = (clone(TREES[name]) for _ in range(2))
    one.fit(X, sample_weight=w, reference_labels=y if told else None)
    two.fit(many, reference_labels=labels if told else None)
    assert one.tree_.to_json() == two.tree_.to_json()
    assert_array_equal(np.repeat(one.labels_, w), two.labels_)
    assert_array_equal(np.repeat(one.reference_labels_, w), two.reference_labels_)
    assert_array_equal(one.labels_, one.predict(X))  # those of weight zero too
    assert_allclose(one.feature_importances_, two.feature_importances_, atol=1e-12)
    a, b = one.certificate(), two.certificate()
    for field in ("cost", "reference_cost", "lower_bound", "price_upper", "worst_case"):
        assert_allclose(getattr(a, field), getattr(b, field), rtol=1e-8, err_msg=field)
    assert_allclose([v for _, v in a.proof], [v for _, v in b.proof], rtol=1e-8)


@pytest.mark.parametrize("name", TREES)
def test_weights_that_are_no_whole_numbers(name):
    "Only their proportions matter for the tree, and costs grow with them."
    X, y, w = table(seed=1)
    model = clone(TREES[name]).fit(X, sample_weight=w, reference_labels=y)
    part = clone(TREES[name]).fit(X, sample_weight=0.37 * w, reference_labels=y)
    assert part.tree_.to_json() == model.tree_.to_json()
    assert_allclose(part.cost_, 0.37 * model.cost_, rtol=1e-9)
    assert_allclose(
        part.certificate().lower_bound, 0.37 * model.certificate().lower_bound, rtol=1e-6
    )


@pytest.mark.parametrize("form", ["array", "dask"])
@pytest.mark.parametrize(
    "model", [IMM(), KernelIMM(), KernelExpand(base="empty"), KernelExKMC()], ids=str
)
def test_weights_in_partitions(form, model):
    X, y, w = table(200)
    y = (X.sum(1)).astype(int) % 3  # equal rows have equal labels, as they are one point in memory
    made = {"array": lambda: partition_array(X, 60), "dask": lambda: da.from_array(X, (60, -1))}
    model = clone(model).set_params(
        bins=64, **({} if isinstance(model, IMM) else dict(kernel="laplace"))
    )
    weights = da.from_array(w, 70) if form == "dask" else w
    far = clone(model).fit(made[form](), sample_weight=weights, reference_labels=y)
    near = clone(model).fit(X, sample_weight=w, reference_labels=y)
    assert far.tree_ == near.tree_
    assert_array_equal(np.asarray(far.labels_), near.labels_)
    assert_array_equal(np.asarray(far.reference_labels_), y)
    half = clone(model).fit(made[form](), sample_weight=w / 3, reference_labels=y)
    assert half.tree_ == near.tree_
    assert_allclose(3 * half.cost_, far.cost_, rtol=0.05)  # other landmarks, perhaps
    c = far.certificate()
    assert c.lower_bound <= far.cost_ * (1 + 1e-9)


def test_clusters_in_partitions_have_weights():
    X, _ = make_blobs(400, 2, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    w = np.random.default_rng(0).integers(0, 3, size=400)
    model = KernelKMeans(3, kernel="linear", random_state=0)
    far = clone(model).fit(partition_array(X, 90), sample_weight=w)
    near = clone(model).fit(X, sample_weight=w)
    assert_allclose(far.inertia_, near.inertia_, rtol=1e-6)
    assert len(far.labels_) == 400 and len(np.unique(far.labels_)) == 3
    assert_array_equal(far.labels_, far.predict(X))


def test_labels_that_only_rows_of_no_weight_have_are_refused():
    X, y, _ = table()
    w = np.where(y == 1, 0, 1)
    for data in (X, partition_array(X, 40)):
        with pytest.raises(ValueError, match="There is no 1"):
            KernelExpand(base="empty").fit(data, sample_weight=w, reference_labels=y)


def count_matrices(monkeypatch, n):
    "Every time that a kernel is computed on all pairs of n points."
    built = []
    matrix, call = StreamedGram.matrix, Kernel.__call__

    def counted_matrix(self, *given):
        built.append(n) if self.X.shape[1] > 1 and self.n == n else None
        return matrix(self, *given)

    def counted_call(self, X, Y=None):
        if np.shape(X)[0] == n and np.shape(X)[1] > 1 and (Y is None or np.shape(Y)[0] == n):
            built.append(n)
        return call(self, X, Y)

    monkeypatch.setattr(StreamedGram, "matrix", counted_matrix)
    monkeypatch.setattr(Kernel, "__call__", counted_call)
    return built


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_the_kernel_is_computed_once(monkeypatch, kernel):
    X, _ = make_blobs(400, 3, centers=3, random_state=0)
    built = count_matrices(monkeypatch, 400)
    model = KernelExKMC(3, kernel=kernel, random_state=0).fit(X)
    model.certificate()
    assert model.feature_importances_.sum() > 0
    assert built == [400]
    report_html(
        explain_table(X, k=3, kernel=kernel, method="exkmc")
    )  # fit, certificate, other sizes
    assert built == [400] * 2
    KernelTree(3, max_leaves=4, kernel=kernel, random_state=0).fit(X).certificate()
    assert built == [400] * 3


def test_a_pickle_leaves_out_what_can_be_made_again():
    X, _ = make_blobs(1500, 3, centers=3, random_state=0)
    for options in ({}, {"gram": "streamed"}, {"gram": "nystroem"}, {"kernel": "linear"}):
        model = KernelExKMC(3, random_state=0, **options).fit(X)
        text = pickle.dumps(model)
        assert len(text) < 20 * X.nbytes
        assert str(pickle.loads(text).certificate()) == str(model.certificate())


def test_a_large_kernel_is_not_kept(monkeypatch):
    monkeypatch.setattr("kxbook.memory.KEPT_BYTES", 1000)
    X, y, _ = table()
    model = KernelExKMC(random_state=0).fit(X, reference_labels=y)
    assert "gram" not in vars(model.result_.problem)
    before = KernelExKMC(random_state=0).fit(X, reference_labels=y)
    assert model.certificate().lower_bound == before.certificate().lower_bound


@pytest.mark.parametrize("name", TREES)
def test_the_number_of_threads_changes_nothing(name):
    X = np.random.default_rng(4).normal(size=(1300, 3)).round(1)
    models = [clone(TREES[name]).set_params(n_jobs=n) for n in (1, 2, 3, None, -1)]
    if name != "IMM" and "IMM in" not in name and "landmarks" not in name and "Tree" not in name:
        models = [m.set_params(gram="streamed") for m in models]
    y = (X[:, 0] > 0) * 1 + (X[:, 1] > 0.5)
    first, *others = [m.fit(X, reference_labels=y) for m in models]
    for other in others:
        assert other.tree_ == first.tree_ and other.cost_ == first.cost_


def test_threads_of_kernel_kmeans():
    X, _ = make_blobs(2000, 3, centers=4, random_state=0)
    models = [KernelKMeans(4, gram="streamed", n_jobs=n, n_init=1, random_state=0) for n in (1, 3)]
    one, three = (m.fit(X) for m in models)
    assert one.inertia_ == three.inertia_ and (one.labels_ == three.labels_).all()
    far = [KernelKMeans(4, n_jobs=n, random_state=0).fit(partition_array(X, 300)) for n in (1, 3)]
    assert far[0].inertia_ == far[1].inertia_
    with pytest.raises(ValueError, match="n_jobs"):
        KernelKMeans(2, n_jobs=0).fit(X)


def test_the_functions_themselves():
    X, y, w = table()
    settings = Settings(3, kernel="gaussian", growth="distances", max_leaves=5)
    fit = fit_tree(MemoryData(X, w.astype(float)), settings, y)
    assert fit.tree.n_leaves <= 5 and fit.price == fit.evaluation.cost / fit.reference.cost
    assert fit.certificate().cost == fit.evaluation.cost
    clusters = fit_clusters(PartitionedData(partition_array(X, 30)), settings)
    assert len(clusters.rows) == len(X) and len(clusters.used) == 3
