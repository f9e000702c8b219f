"""A million points and more, ten columns: trees in bins beside CART, Nyström fits beside scikit-learn's, Dask beside memory."""

import json
import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.tree import DecisionTreeClassifier

from kxbook import KernelExKMC
from kxbook.gram import as_gram
from kxbook.imm import kernel_imm
from kxbook.kernel import linear
from kxbook.price import kernel_cost

D, RANK = 10, 200


def row(what, n, k, seconds, other, ratio, **more):
    empty = {"cost of the exact tree's": None, "memory, GB": None, "features, GB": None}
    return (
        {"what": what, "n": n, "k": k, "seconds": seconds, "beside": other, "share": ratio}
        | empty
        | more
    )


def trees(say, n=1_000_000):
    "IMM in 256 bins to given labels beside CART with as many leaves; medians of three."
    rows = []
    for k in (10, 50):
        X, y = make_blobs(n, D, centers=k, cluster_std=3.0, random_state=0)
        kernel_imm(X[:1000], y[:1000] % 3, linear(), bins=8)  # compiles
        times = {"tree": [], "CART": []}
        for _ in range(3):
            start = time.perf_counter()
            tree = kernel_imm(X, y, linear(), bins=256)[0]
            middle = time.perf_counter()
            DecisionTreeClassifier(max_leaf_nodes=k, random_state=0).fit(X, y)
            times["tree"].append(middle - start)
            times["CART"].append(time.perf_counter() - middle)
            say(f"tree in bins, k = {k}: {times['tree'][-1]:.2f} s, CART {times['CART'][-1]:.1f} s")
        gram, exact = as_gram(linear(), X), kernel_imm(X, y, linear())[0]
        cost = kernel_cost(gram, tree.predict(X)) / kernel_cost(gram, exact.predict(X))
        seconds, other = np.median(times["tree"]), np.median(times["CART"])
        rows.append(
            row(
                "IMM in 256 bins",
                n,
                k,
                seconds,
                "CART",
                seconds / other,
                **{"cost of the exact tree's": cost},
            )
        )
    return rows


def one_fit(what, n, k=10):
    "Seconds and peak memory of a fit in a process of its own."
    X, _ = make_blobs(n, D, centers=k, cluster_std=3.0, random_state=0)
    if what == "sklearn":
        from sklearn.cluster import KMeans
        from sklearn.kernel_approximation import Nystroem

        start = time.perf_counter()
        features = Nystroem(gamma=1 / (D * X.var()), n_components=RANK, random_state=0)
        KMeans(k, random_state=0).fit(features.fit_transform(X))
    else:
        KernelExKMC(k, gram="nystroem", rank=8, random_state=0).fit(X[:5000])  # compiles
        start = time.perf_counter()
        KernelExKMC(k, gram="nystroem", rank=RANK, random_state=0).fit(X)
    seconds = time.perf_counter() - start
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9]))


def fits(say, n=1_000_000):
    "Kernel k-means and its tree from Nyström features of rank 200, beside scikit-learn's clustering alone."
    found = {}
    for what in ("kxbook", "sklearn"):
        done = subprocess.run(
            [sys.executable, __file__, what, str(n)], capture_output=True, text=True, check=True
        )
        found[what] = json.loads(done.stdout.splitlines()[-1])
        say(f"{what}, Nyström, n = {n}: {found[what][0]:.1f} s, {found[what][1]:.2f} GB")
    (seconds, memory), (other, _) = found["kxbook"], found["sklearn"]
    sizes = {"memory, GB": memory, "features, GB": 4 * n * RANK / 1e9}
    return [
        row("Kernel ExKMC, Nyström", n, 10, seconds, "Nystroem + KMeans", seconds / other, **sizes)
    ]


def chunk(block_id, size, k=10):
    "A chunk of blobs, made where it is needed."
    centres = np.random.default_rng(0).uniform(-10, 10, size=(k, D))
    rng = np.random.default_rng(block_id)
    return centres[rng.integers(k, size=size)] + rng.normal(scale=3, size=(size, D))


def dask_fits(say, n=2_000_000, size=100_000, k=10):
    "The same fit on two Dask workers and in memory, and on half the points."
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    parts = [
        da.from_delayed(dask.delayed(chunk)(i, size), (size, D), float) for i in range(n // size)
    ]
    X = da.concatenate(parts)
    settings = dict(n_clusters=k, gram="nystroem", rank=RANK, bins=256, random_state=0)
    times = {}

    def clock(name, data):
        start = time.perf_counter()
        model = KernelExKMC(**settings).fit(data)
        times[name] = time.perf_counter() - start
        say(f"{name}: {times[name]:.1f} s, price {model.price_:.4f}")

    memory = X.compute(scheduler="threads")
    clock("memory", memory)
    del memory
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster),
    ):
        half, whole = X[: n // 2].persist(), X.persist()
        clock("half", half)
        clock("whole", whole)
    return [
        row(
            "Kernel ExKMC, two Dask workers",
            n,
            k,
            times["whole"],
            "in memory",
            times["whole"] / times["memory"],
        ),
        row(
            "Kernel ExKMC, two Dask workers",
            n,
            k,
            times["whole"],
            "half the points",
            times["whole"] / times["half"],
        ),
    ]


def measure(say):
    return [*trees(say), *fits(say), *dask_fits(say)]


if __name__ == "__main__":
    one_fit(sys.argv[1], int(sys.argv[2]))
