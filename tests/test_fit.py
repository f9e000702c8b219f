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
from kxbook.kernel import Kernel, chi2, gaussian, intersection, laplace
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
    "KernelIMM, medoids": KernelIMM(3, centres="medoid", random_state=0),
    "KernelIMM, medoids in features": KernelIMM(
        3, centres="medoid", surrogate="root", random_state=0
    ),
    "KernelIMM, potential": KernelIMM(3, centres="medoid", rule="potential", random_state=0),
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
    "model",
    [IMM(), KernelIMM(), KernelIMM(centres="medoid"), KernelExpand(base="empty"), KernelExKMC()],
    ids=str,
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
    X, _ = make_blobs(700, 3, centers=3, random_state=0)
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
    X, _ = make_blobs(1300, 3, centers=4, random_state=0)  # several blocks
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


@pytest.mark.parametrize("small, large", [(1e-14, 1.0), (1.0, 1e16), (1e-300, 1.0), (1.0, 1e100)])
@pytest.mark.parametrize("Model", [IMM, KernelIMM, KernelExKMC])
def test_weights_of_very_different_size(Model, small, large):
    "A cluster that weighs next to nothing is still a cluster, in memory and in partitions."
    X, y = make_blobs(60, 2, centers=3, random_state=0)
    w = np.where(y == 0, small, large)
    for data in (X, partition_array(X, 20)):
        model = Model(**({} if Model is IMM else {"gamma": 0.1})).fit(
            data, sample_weight=w, reference_labels=y
        )
        assert np.isfinite(model.cost_) and set(model.tree_.label[model.tree_.leaves]) == {0, 1, 2}


def test_weights_whose_squares_are_no_numbers_are_refused():
    X, y, _ = table()
    for size in (1e-200, 1e200):
        with pytest.raises(ValueError, match="sum from 1e-150 to 1e\\+150.* Divide them by the"):
            KernelIMM().fit(X, sample_weight=np.full(90, size), reference_labels=y)


@pytest.mark.parametrize("weight", [1e-100, 1e-40, 1e40, 1e100])
def test_weights_beyond_single_precision(weight):
    X, _ = make_blobs(60, 2, centers=3, random_state=0)
    model = KernelKMeans(3, gamma=0.1, random_state=0)
    far = clone(model).fit(partition_array(X, 20), sample_weight=np.full(60, weight))
    near = clone(model).fit(partition_array(X, 20))
    assert_allclose(far.inertia_ / weight, near.inertia_, rtol=1e-5)


def test_what_follows_from_the_kernel_is_made_again():
    X, y, _ = table()
    model = KernelExKMC(random_state=0).fit(X, reference_labels=y)
    reference = model.result_.reference
    assert not {"D", "V"} & set(vars(reference))  # they take room
    assert_allclose(pickle.loads(pickle.dumps(model)).result_.reference.D, reference.D)


def test_labels_of_rows_without_weight_may_be_any():
    X, y, _ = table()
    w, y = np.r_[0, np.ones(89)], np.r_[9, y[1:]]
    for data in (X, partition_array(X, 40)):
        model = KernelExpand(base="empty").fit(data, sample_weight=w, reference_labels=y)
        assert model.reference_labels_[0] == 9
        with pytest.raises(ValueError, match="-1 for noise"):
            model.fit(data, sample_weight=w, reference_labels=np.r_[-1, y[1:]])


def test_missing_values_of_rows_in_partitions_are_found_where_they_are():
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[25, 1] = np.nan
    for w in (np.r_[np.zeros(12), np.ones(28)], np.where(np.arange(40) == 25, 0, 1)):
        with pytest.raises(ValueError, match=r"row 25, column 1 \(partition 2\)"):
            KernelKMeans(2).fit(partition_array(X, 10), sample_weight=w)


def test_starts_in_partitions():
    X, y = make_blobs(60, 2, centers=3, random_state=0)
    start = np.where(y == 1, 0, y)  # label 1 is not used
    assert len(KernelKMeans(3, init=start).fit(partition_array(X, 20)).labels_) == 60
    with pytest.raises(ValueError, match="'init' parameter has 2 labels, for 2 clusters"):
        KernelKMeans(2, init=start).fit(partition_array(X, 20))


def test_a_given_matrix_is_not_copied_again_and_again():
    import tracemalloc

    K = np.exp(-np.square(np.random.default_rng(0).normal(size=(600, 1)) - np.zeros(600)))
    K = (K + K.T) / 2
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        KernelKMeans(2, kernel="precomputed", n_init=1, random_state=0).fit(K)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4.5 * K.nbytes


def medoids_by_definition(X, y, kernel):
    "In each cluster the first row with the least sum of squared distances to the others."
    K = kernel(X)
    D = K.diagonal()[:, None] + K.diagonal() - 2 * K
    groups = [np.flatnonzero(y == c) for c in range(y.max() + 1)]
    return [g[np.flatnonzero(np.isclose(s := D[np.ix_(g, g)].sum(0), s.min()))[0]] for g in groups]


@pytest.mark.parametrize("kernel", [gaussian(0.3), laplace(0.3), intersection(), chi2()], ids=str)
def test_medoids_are_those_of_the_kernel(kernel):
    X = np.random.default_rng(3).gamma(1.0, 2.0, size=(60, 2))
    y = (X.sum(1) > 4).astype(int) + (X[:, 0] > 5)
    model = KernelIMM(3, kernel=kernel, centres="medoid").fit(X, reference_labels=y)
    rows = medoids_by_definition(X, y, kernel)
    assert_array_equal(model.result_.imm.centres, X[rows])
    assert_array_equal(model.predict(X[rows]), np.arange(3))  # each in a leaf of its own


def test_the_least_potential_takes_kernels_that_it_knows():
    X = np.random.default_rng(3).gamma(1.0, 2.0, size=(60, 2))
    y = (X.sum(1) > 4).astype(int) + (X[:, 0] > 5)
    for kernel in ("gaussian", "laplace", "linear", "hellinger", "intersection"):
        model = KernelIMM(3, kernel=kernel, centres="medoid", rule="potential")
        tree = model.fit(X, reference_labels=y).tree_
        assert tree.n_leaves <= 3 and np.isneginf(tree.lo[tree.left >= 0]).all()
        assert_array_equal(model.predict(model.result_.imm.centres), np.arange(3))


@pytest.mark.parametrize(
    "options, says",
    [
        (dict(rule="potential"), "Add centres='medoid'"),
        (dict(rule="potential", centres="medoid", kernel="chi2"), "Use rule='mistakes'"),
        (dict(rule="potential", centres="medoid", surrogate="root"), "as they are by default"),
        (dict(rule="potential", centres="medoid", candidates="midpoints"), "by default"),
        (dict(centres="median"), "'centres' parameter"),
        (dict(rule="fewest"), "'rule' parameter"),
    ],
    ids=str,
)
def test_rules_that_cannot_be(options, says):
    X, y, _ = table()
    with pytest.raises(ValueError, match=says):
        KernelIMM(3, **options).fit(X, reference_labels=y)


def test_the_least_potential_is_not_for_partitions():
    X, y, _ = table()
    model = KernelIMM(3, centres="medoid", rule="potential")
    with pytest.raises(ValueError, match="needs all rows in memory"):
        model.fit(partition_array(X, 30), reference_labels=y)


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "laplace"])
def test_medoids_in_partitions_are_those_in_memory(kernel):
    "Features of few landmarks have lengths that differ, and so have coordinates."
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).round(1)
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int) + (X[:, 1] > 0.7)
    landmarks = {} if kernel == "linear" else dict(gram="nystroem", rank=X[:8])
    model = KernelIMM(3, kernel=kernel, centres="medoid", bins=256, **landmarks)
    near = clone(model).fit(X, reference_labels=y)
    far = clone(model).fit(partition_array(X, 64), reference_labels=y)
    assert_array_equal(far.result_.imm.centres, near.result_.imm.centres)
    assert far.tree_ == near.tree_


@pytest.mark.parametrize("kernel", ["hellinger", intersection(0.3)], ids=str)
def test_a_threshold_of_the_least_potential_divides_neighbouring_floats(kernel):
    a, b = 0.3, 0.1 + 0.2
    X, y, w = np.array([[a, 0.1], [a, 4.0], [b, 4.0], [b, 0.1]]), [0, 0, 1, 1], [1e6, 1, 1e6, 1]
    model = KernelIMM(2, kernel=kernel, centres="medoid", rule="potential")
    model.fit(X, reference_labels=y, sample_weight=w)
    assert model.labels_.tolist() == y or model.tree_.axis[0] == 1


def test_medoids_that_a_wide_column_brings_together_are_kept_apart():
    X, y = np.repeat([0.0, 3.0, 1e13], [5, 5, 1])[:, None], np.repeat([0, 1, 2], [5, 5, 1])
    model = KernelIMM(3, gamma=1.0, centres="medoid").fit(X, reference_labels=y)
    assert_array_equal(model.labels_, y)
    assert model.certificate().theorem == "thm-price-medoid"
