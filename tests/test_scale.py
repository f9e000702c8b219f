"""Data in partitions: on Dask clusters, in files, and the same trees as in memory."""

import os
import threading
import warnings
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from kxbook import IMM, KernelExKMC, KernelExpand, KernelIMM, KernelKMeans, KernelTree
from kxbook.tables import (
    PartitionedTable,
    as_partitioned,
    connect,
    partition_array,
    partition_parquet,
)

FIELDS = ("axis", "lo", "hi", "left", "right", "label")


def same(a, b):
    return all(np.array_equal(getattr(a, f), getattr(b, f)) for f in FIELDS)


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(3000, 3, centers=4, random_state=1)
    return X, y.astype(int)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "linear"])
@pytest.mark.parametrize("estimator", [KernelIMM, KernelExKMC, KernelExpand])
def test_partitions_files_dask_and_memory_agree(blobs, estimator, kernel, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = blobs
    np.save(tmp_path / "rows.npy", X)
    pq.write_table(
        pa.table({f"c{i}": x for i, x in enumerate(X.T)}),
        tmp_path / "rows.parquet",
        row_group_size=900,
    )
    model = estimator(kernel=kernel, bins=64, gram="nystroem", random_state=0)
    memory = clone(model).fit(X, reference_labels=y)
    forms = {
        "array": partition_array(X, 700),
        "map": partition_array(np.load(tmp_path / "rows.npy", mmap_mode="r"), 1000),
        "parquet": partition_parquet(tmp_path / "rows.parquet"),
        "dask": da.from_array(X, chunks=(1300, -1)),
    }
    for name, data in forms.items():
        found = clone(model).fit(data, reference_labels=y)
        assert same(found.tree_, memory.tree_), name
        assert_array_equal(np.asarray(found.labels_), memory.labels_)
        assert_allclose(found.feature_importances_, memory.feature_importances_, atol=1e-3)
        assert_allclose(found.price_, memory.price_, rtol=1e-2)
    assert list(forms["parquet"].names) == ["c0", "c1", "c2"]


@pytest.mark.slow
def test_imm_and_own_clusters(blobs):
    X, _ = blobs
    chunks = da.from_array(X, chunks=(1000, -1))
    for model in (IMM(4, random_state=0), KernelExKMC(4, random_state=0)):
        memory, far = clone(model).fit(X), clone(model).fit(chunks)
        assert_allclose(far.reference_cost_, memory.reference_cost_, rtol=1e-3)
        assert isinstance(far.labels_, da.Array) and isinstance(far.predict(chunks), da.Array)
        assert_array_equal(far.predict(chunks).compute(), far.predict(X))
        assert_array_equal(far.apply(chunks).compute(), far.apply(X))
        c, d = memory.certificate(), far.certificate()
        assert_allclose(c.one_cluster_price, d.one_cluster_price, rtol=1e-2)
        assert d.price_upper >= d.price - 1e-9 and np.isnan(d.worst_case)
        assert far.fit(X).certificate().proof  # a later fit in memory leaves nothing behind
    near = KernelKMeans(4, random_state=0).fit(X)
    far = KernelKMeans(4, random_state=0).fit(chunks)
    again = KernelKMeans(4, gram="nystroem", init=far.labels_.compute(), random_state=0).fit(X)
    assert far.inertia_ <= 1.01 * min(near.inertia_, again.inertia_)  # it stops a little early
    assert_array_equal(far.predict(chunks).compute(), far.labels_.compute())
    assert far.transform(X).shape == (3000, 4)


def test_given_labels_as_a_dask_array_and_init(blobs):
    X, y = blobs
    chunks, labels = da.from_array(X, chunks=(1000, -1)), da.from_array(y, chunks=700)
    a = KernelExpand(bins=32).fit(chunks, reference_labels=labels)
    assert same(a.tree_, KernelExpand(bins=32).fit(chunks, reference_labels=y).tree_)
    b = KernelKMeans(4, init=y, random_state=0).fit(chunks)
    assert (b.labels_.compute() == y).mean() > 0.9


def test_rare_values_outside_the_sample_get_bins(monkeypatch):
    from kxbook import columns

    monkeypatch.setattr(columns, "SAMPLE", 500)
    rng = np.random.default_rng(0)
    X = np.c_[np.r_[np.zeros(9990), np.full(10, 7.0)], rng.normal(size=10_000)]
    y = (X[:, 0] > 0).astype(int)
    for data in (X, partition_array(X, 1000), da.from_array(X, chunks=(3000, -1))):
        model = KernelExpand(base="empty", bins=16).fit(data, reference_labels=y)
        assert model.n_leaves_ == 2 and (np.asarray(model.labels_) == y).all()
    assert len(columns.sampled(10_000)) == 500


def test_an_end_that_is_a_value_is_consistent(monkeypatch):
    from kxbook import columns

    monkeypatch.setattr(columns, "SAMPLE", 300)
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4000, size=(9000, 2)).astype(float)
    y = (X[:, 0] > 1999).astype(int) + (X[:, 1] > 1500)
    for data in (X, partition_array(X, 1000)):
        model = KernelExpand(base="empty", bins=64, max_leaves=12).fit(data, reference_labels=y)
        counted = np.bincount(model.apply(X), minlength=model.n_leaves_)
        assert (counted > 0).all()
        assert_array_equal(np.asarray(model.labels_), model.predict(X))


def test_bad_input(blobs):
    X, y = blobs
    chunks = da.from_array(X, chunks=(1000, -1))
    with pytest.raises(ValueError, match="cannot take them in partitions"):
        KernelTree(2).fit(chunks)
    with pytest.raises(ValueError, match="3000 sample weights, one per sample"):
        KernelKMeans(2).fit(chunks, sample_weight=np.ones(7))
    for bad, message in ((-1.0, "Negative values"), (np.nan, "contains NaN or infinity")):
        with pytest.raises(ValueError, match=message):
            KernelKMeans(2).fit(chunks, sample_weight=np.r_[np.ones(2999), bad])
    with pytest.raises(ValueError, match="at least one non-zero"):
        IMM(2).fit(chunks, sample_weight=np.zeros(3000))
    with pytest.raises(ValueError, match="n_samples=5 should be >= n_clusters=8"):
        KernelKMeans(8).fit(chunks[:5])
    with pytest.raises(ValueError, match="expecting 3 features"):
        IMM(2).fit(chunks).predict(chunks[:, :2])
    with pytest.raises(ValueError, match="must be integers"):
        IMM().fit(chunks, reference_labels=y.astype(float))
    with pytest.raises(ValueError, match="-1 for noise"):
        IMM().fit(chunks, reference_labels=y - 1)
    with pytest.raises(ValueError, match="numbers"):
        as_partitioned(da.from_array(np.array([["a"]])))
    with pytest.raises(ValueError, match="2D"):
        as_partitioned(chunks[:, 0])
    far = chunks.copy()
    far = da.concatenate([far, da.from_array(np.array([[0.0, np.inf, 0.0]]))])
    with pytest.raises(ValueError, match="row 3000, column 1"):
        IMM(2).fit(far)


def test_a_column_that_is_not_a_number_is_named(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1.0, 2.0], "b": ["x", "y"]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="Column 'b' is string"):
        partition_parquet(tmp_path / "t.parquet")
    assert partition_parquet(tmp_path / "t.parquet", ["a"]).n == 2


def test_no_scheduler():
    with pytest.raises(ConnectionError, match="No Dask scheduler answers"):
        connect("tcp://127.0.0.1:9", timeout=1)


@contextmanager
def cluster_of(processes):
    "A scheduler that is asked over TCP, and two workers, which may be threads of this process."
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "20s"}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=processes,
            protocol="tcp://",
            dashboard_address=None,
            memory_limit=0,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize(
    "processes", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["threads", "processes"]
)
def test_a_cluster_by_its_address(blobs, processes):
    X, y = blobs
    chunks = da.from_array(X, chunks=(500, -1))
    with cluster_of(processes) as cluster, connect(cluster.scheduler.address):
        far = KernelExpand(bins=32, random_state=0).fit(chunks, reference_labels=y)
    assert same(
        far.tree_,
        KernelExpand(bins=32, gram="nystroem", random_state=0).fit(X, reference_labels=y).tree_,
    )


@pytest.fixture
def cluster():
    with cluster_of(processes=True) as client:
        yield client


@pytest.mark.slow
def test_a_lost_worker_changes_nothing(blobs, cluster):
    "One of two workers is killed when a number of tasks is done; the tree is the same."
    from distributed.diagnostics.plugin import SchedulerPlugin

    X, y = blobs
    chunks = da.from_array(X, chunks=(300, -1))
    settings = dict(bins=32, base="empty", max_leaves=9, random_state=0)
    before = KernelExKMC(**settings).fit(chunks, reference_labels=y)
    pids = cluster.run(os.getpid)
    victim, done = next(iter(pids.values())), threading.Event()
    scheduler = cluster.cluster.scheduler

    class Killer(SchedulerPlugin):
        count = 0

        def transition(self, key, start, finish, *args, **kwargs):
            Killer.count += finish == "memory"
            if Killer.count >= 40 and not done.is_set():
                done.set()
                os.kill(victim, 9)

    scheduler.add_plugin(Killer(), name="killer")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        after = KernelExKMC(**settings).fit(chunks, reference_labels=y)
    assert done.is_set() and victim not in cluster.run(os.getpid).values()
    assert same(before.tree_, after.tree_)
    assert_allclose(after.cost_, before.cost_, rtol=1e-6)


def test_clusters_in_partitions_converge():
    "From the same labels, kernel k-means in partitions ends about where it ends in memory."
    Z = np.random.default_rng(0).normal(size=(400, 3))
    model = KernelKMeans(6, kernel="linear", init=np.arange(400) % 6)
    near, far = clone(model).fit(Z), clone(model).fit(partition_array(Z, 50))
    assert far.n_iter_ > 3 and abs(far.inertia_ / near.inertia_ - 1) < 0.02
    with pytest.warns(UserWarning, match="before it converged"):
        clone(model).set_params(max_iter=2).fit(partition_array(Z, 50))
    with pytest.raises(ValueError, match="has 6 labels, for 2 clusters"):
        KernelKMeans(2, kernel="linear", init=np.arange(400) % 6).fit(partition_array(Z, 50))


def test_fewer_points_than_clusters_warn():
    "As in memory: a cluster stays empty, and the fit says so."
    Z = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
    with pytest.warns(
        ConvergenceWarning,
        match=r"\(2\) found smaller than n_clusters \(3\). Points of X may be equal",
    ):
        model = KernelKMeans(3, gamma=1.0, random_state=0).fit(partition_array(Z, 30))
    assert (
        len(np.unique(model.labels_[:50])) == len(np.unique(model.labels_[50:])) == 1
        and model.inertia_ < 1e-6
    )


def test_certificates_in_partitions_promise_no_more_than_they_know(blobs):
    X, y = blobs
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = KernelExpand(2, kernel="epsilon", base="empty", random_state=0).fit(
            partition_array(X[:300], 70)
        )
    c = model.certificate()
    assert c.price_upper == np.inf and "nothing is known" in " ".join(c.notes)
    Y = np.random.default_rng(0).normal(size=(1000, 2)) * 0.01 + 1000
    few = KernelExpand(1, kernel="quadratic", base="empty", random_state=0).fit(
        partition_array(Y, 300)
    )
    a, b = Y.astype(np.longdouble).T
    Z = np.column_stack(
        [a**2, b**2, np.sqrt(np.longdouble(2)) * a * b]
    )  # features of the quadratic kernel
    exact, c = float(((Z - Z.mean(0)) ** 2).sum()), few.certificate()
    assert 0.9 * exact < c.lower_bound <= exact <= c.price_upper * c.lower_bound
    same_rows = KernelExpand(1, base="empty").fit(partition_array(np.ones((20, 2)), 7))
    assert same_rows.certificate().price_upper >= 1


def test_models_travel_and_leave_nothing_behind(blobs, tmp_path):
    import pickle

    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = blobs
    pq.write_table(pa.table({f"c{i}": x for i, x in enumerate(X.T)}), tmp_path / "t.parquet")
    model = KernelExpand(bins=32).fit(pd.DataFrame(X, columns=list("abc")), reference_labels=y)
    model.fit(partition_array(X, 1000), reference_labels=y)
    assert not hasattr(model, "feature_names_in_") and not hasattr(model, "_points")
    model.fit(partition_parquet(tmp_path / "t.parquet"), reference_labels=y)
    again = pickle.loads(pickle.dumps(model))
    assert again.certificate().cost == pytest.approx(model.cost_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clusters = KernelKMeans(4, random_state=0).fit(partition_parquet(tmp_path / "t.parquet"))
        assert_array_equal(
            clusters.predict(partition_parquet(tmp_path / "t.parquet")), clusters.labels_
        )


def test_only_the_partitions_that_are_needed_are_read(blobs):
    X, _ = blobs
    read = []

    def part(i):
        read.append(i)
        return X[i * 1000 : (i + 1) * 1000]

    from functools import partial

    table = PartitionedTable([partial(part, i) for i in range(3)], [1000] * 3, 3)
    assert_array_equal(table.take(np.array([1500, 1501])), X[1500:1502])
    assert read == [1]


@pytest.mark.parametrize("Model", [KernelExKMC, KernelKMeans])
def test_columns_in_another_order_are_refused(blobs, Model, tmp_path):
    "Labels of swapped columns would be wrong without a word."
    import pandas as pd

    X = blobs[0][:900]
    frame = pd.DataFrame(X, columns=list("abc"))
    for names in ("abc", "bac", "abd"):
        frame.set_axis(list(names), axis=1).to_parquet(tmp_path / f"{names}.parquet")
    for data in (partition_parquet(tmp_path / "abc.parquet"), frame, partition_array(frame, 300)):
        model = Model(2, random_state=0).fit(data)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            near = model.predict(frame)
            assert_array_equal(model.predict(partition_parquet(tmp_path / "abc.parquet")), near)
            assert_array_equal(model.predict(partition_array(frame, 200)), near)
        for bad, message in (
            (tmp_path / "bac.parquet", "must be in the same order as they were in fit"),
            (
                tmp_path / "abd.parquet",
                "unseen at fit time:\n- d\nFeature names seen at fit time, yet now missing:\n- c\n",
            ),
        ):
            with pytest.raises(
                ValueError, match="should match those that were passed during fit"
            ) as here:
                model.predict(partition_parquet(bad))
            with pytest.raises(ValueError) as there:  # scikit-learn's own words
                model.predict(pd.read_parquet(bad))
            assert str(here.value) == str(there.value) and message in str(here.value)
        with pytest.raises(ValueError, match="same order"):
            model.predict(partition_array(frame[list("bca")], 200))
        with pytest.warns(UserWarning, match="X does not have valid feature names, but K") as told:
            assert_array_equal(model.predict(partition_array(X, 200)), near)
        assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="X has feature names, but K"):
        Model(2, random_state=0).fit(partition_array(X)).predict(partition_array(frame))


@pytest.mark.parametrize(
    "kernel, factor",
    [
        ("gaussian", 1e-170),
        ("laplace", 1e-170),
        ("laplace", 1e160),
        ("gaussian", 1e160),
        ("gaussian", 1e-155),
    ],
)
def test_a_variance_out_of_range_is_refused_as_in_memory(blobs, kernel, factor):
    X, y = blobs
    Z = X[:300] * factor
    for data in (Z, partition_array(Z, 70), da.from_array(Z, chunks=(100, -1))):
        for model in (KernelExKMC(kernel=kernel), KernelKMeans(2, kernel=kernel)):
            with pytest.raises(
                ValueError, match="variance of X is too large or too small for gamma='scale'"
            ):
                model.fit(
                    data,
                    **({"reference_labels": y[:300]} if isinstance(model, KernelExKMC) else {}),
                )


def test_widths_in_partitions_are_those_in_memory(blobs):
    X, y = blobs
    for Z in (X, X * 1e-100, X + 1e6, np.full((30, 3), 0.1), np.full((30, 3), 1e300)):
        labels = y[: len(Z)] * (len(Z) > 30)
        widths = [
            KernelExpand(gamma="scale").fit(data, reference_labels=labels).gamma_
            for data in (Z, partition_array(Z, 7 if len(Z) == 30 else 700))
        ]
        assert_allclose(*widths, rtol=1e-6)
    small = KernelExpand(kernel="linear").fit(
        partition_array(X * 1e-130, 700), reference_labels=y
    )  # it has no width
    assert small.gamma_ is None
    for data in (X * 1e-170, partition_array(X * 1e-170, 700)):
        with pytest.raises(ValueError, match="too close to zero on this data. Rescale X"):
            KernelExpand(kernel="linear").fit(data, reference_labels=y)


def test_a_table_with_a_column_called_partitions_is_no_data_in_partitions():
    import pandas as pd

    frame = pd.DataFrame({"partitions": [1.0, 2.0], "chunks": [0.0, 1.0]})
    with pytest.raises(
        TypeError, match="must be a PartitionedTable or a Dask array. Got a DataFrame"
    ):
        as_partitioned(frame)
    with pytest.raises(TypeError, match="Got a Dask DataFrame. Make it an array"):
        import dask.dataframe as dd

        as_partitioned(dd.from_pandas(frame, npartitions=1))
    table = partition_array(frame.to_numpy())
    assert as_partitioned(table) is table


def test_partitions_that_are_not_what_they_say_are_refused(blobs):
    from functools import partial

    X, _ = blobs
    two = [partial(X.__getitem__, slice(0, 100)), partial(X.__getitem__, slice(0, 0))]
    with pytest.raises(ValueError, match="Partition 1 has no rows: leave it out"):
        PartitionedTable(two, [100, 0], 3)
    with pytest.raises(ValueError, match="one per partition. Got 1"):
        PartitionedTable(two, [100], 3)
    with pytest.raises(ValueError, match="names must be 3, one per column. Got 1"):
        PartitionedTable(two[:1], [100], 3, ["a"])
    model = IMM(2, random_state=0)
    for data, message in (
        (
            PartitionedTable(two, [100, 100], 3),
            r"Partition 1 must have shape \(100, 3\), by sizes and n_features. Got \(0, 3\)",
        ),
        (PartitionedTable(two[::-1], [100, 100], 3), r"Partition 0 must have shape \(100, 3\)"),
        (
            PartitionedTable([two[0], partial(X[:, 0].__getitem__, slice(0, 100))], [100, 100], 3),
            r"Got \(100,\)",
        ),
        (
            PartitionedTable([two[0], partial(X[:, :2].__getitem__, slice(0, 100))], [100, 100], 3),
            r"Got \(100, 2\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(data)
        with pytest.raises(ValueError, match=message):
            clone(model).fit(X).predict(data)
    for data in (
        partition_array(X[:0]),
        PartitionedTable(two[1:], [0], 3),
        da.from_array(X, chunks=(1000, -1))[:0],
    ):
        with pytest.raises(ValueError, match="0 sample"):
            clone(model).fit(data)
        with pytest.raises(ValueError, match="0 sample"):
            clone(model).fit(X).predict(data)


def test_arrays_that_cannot_be_cut_are_refused(blobs):
    X, _ = blobs
    for bad, message in (
        (X[:, 0], r"Got an array of shape \(3000,\)"),
        (X.tolist(), "Got a list"),
        (X[:, :0], "at least 1 column. Got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            partition_array(bad)
    for rows in (0, -1, 2.5, "many", None):
        with pytest.raises(ValueError, match="'rows' parameter must be an int"):
            partition_array(X, rows)
    assert partition_array(X, np.int64(1000)).sizes == [1000] * 3


def test_columns_of_a_file_that_cannot_be_chosen_are_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1.0, 2.0])] * 3, names=["a", "a", "b"]), path)
    for columns, message in (
        (None, "more than one 'a'"),
        (["a"], "more than one 'a'"),
        (["b", "b"], "more than one 'b'"),
        ([], "at least 1 column"),
        (["c"], "no column 'c'. Choose among"),
    ):
        with pytest.raises(ValueError, match=message):
            partition_parquet(path, columns)
    assert_array_equal(partition_parquet(path, ["b"]).take(np.arange(2)), [[1.0], [2.0]])


def test_labels_far_apart_are_refused_before_they_are_counted(blobs):
    X, y = blobs
    for far in (2**32, 2**62, 5):
        labels = np.where(y > 0, far, 0)
        for data in (X, partition_array(X, 1000), da.from_array(X, chunks=(1000, -1))):
            with pytest.raises(
                ValueError,
                match=f"every label from 0 to {far}. There is no 1. Number them with np.unique",
            ):
                KernelExpand().fit(data, reference_labels=labels)
