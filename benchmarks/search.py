"""KernelTree to given labels of blobs beside other trees with as many leaves: price, depth and seconds; times in turn."""

import statistics
import time
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from kxbook import IMM, KernelExKMC, KernelExpand, KernelTree
from kxbook.gram import as_gram
from kxbook.kernel import gaussian, linear, scale_gamma
from kxbook.price import kernel_cost

RANK = 100  # of the Nyström features, where the kernel is not linear
CASES = (  # kernel, points, clusters, leaves per cluster, rounds
    ("gaussian, exact", 2_000, 10, (2,), 5),
    ("gaussian, exact", 10_000, 10, (2,), 3),
    ("gaussian", 100_000, 10, (2,), 3),
    ("linear", 2_000, 10, (2,), 5),
    ("linear", 1_000_000, 10, (2,), 1),
    ("gaussian", 2_000, 10, (1, 2), 1),
    ("linear", 10_000, 10, (1, 2), 1),
    ("linear", 10_000, 50, (1, 2), 1),
    ("linear", 100_000, 50, (1, 2), 1),
    ("linear", 100_000, 10, (1,), 1),
    ("linear", 100_000, 10, (2,), 3),
)


class Regression:
    "A regression tree to the centre of each point's cluster; a leaf has the label of the nearest centre."

    def __init__(self, Z, y, leaves):
        self.centres = np.array([Z[y == c].mean(0) for c in range(y.max() + 1)])
        self.y, self.tree = y, DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=0)

    def fit(self, X):
        self.tree.fit(X, self.centres[self.y])
        return self

    def predict(self, X):
        found = self.tree.predict(X)
        return ((self.centres**2).sum(1) - 2 * found @ self.centres.T).argmin(1)

    def get_depth(self):
        return self.tree.get_depth()


def contenders(name, X, Z, y, leaves):
    "What is fitted, by name; Z are the points in the feature space."
    k, kind = y.max() + 1, name.split(",")[0]
    options = dict(max_leaves=leaves, kernel=kind, random_state=0)
    options |= dict(gram="nystroem", rank=RANK) if name == "gaussian" else {}
    found, many = {}, len(X) >= 1_000_000 or name != kind
    for cuts in ("interval", "threshold"):
        for method in (KernelTree,) if many else (KernelTree, KernelExKMC, KernelExpand):
            more = (
                dict(cuts=cuts)
                if method is KernelTree
                else dict(cuts=cuts, base="imm" if cuts == "interval" else "empty")
            )
            found[f"{method.__name__}, {cuts}s"] = lambda m=method, more=more: m(
                **options, **more
            ).fit(X, reference_labels=y)
    if kind == "linear" and leaves == k:
        found["IMM"] = lambda: IMM().fit(X, reference_labels=y)
    found["CART"] = lambda: DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(X, y)
    if many:
        return found
    found["regression tree on the centres"] = lambda: Regression(Z, y, leaves).fit(X)
    return found


def measure(say, cases=CASES):
    warnings.simplefilter("ignore")  # some need fewer leaves than they may use
    KernelTree(max_leaves=4, kernel="linear").fit(
        np.random.default_rng(0).normal(size=(500, 10)), reference_labels=np.arange(500) % 3
    )  # compiles
    rows = []
    for name, n, k, per_cluster, rounds in cases:
        X, _ = make_blobs(n, n_features=10, centers=k, cluster_std=4, random_state=0)
        y = KMeans(k, n_init=1, random_state=0).fit(X).labels_
        kernel = linear() if name == "linear" else gaussian(scale_gamma(X))
        how = ("nystroem",) if name == "gaussian" else ()
        gram = as_gram(kernel, X, *how, rank=RANK, rng=np.random.default_rng(0))
        Z, whole = gram.Z if name == "gaussian" else X, kernel_cost(gram, y)
        for leaves in (times * k for times in per_cluster):
            fits = contenders(name, X, Z, y, leaves)
            times, found = {what: [] for what in fits}, {}
            for _ in range(rounds):
                for what, fit in fits.items():
                    start = time.perf_counter()
                    found[what] = fit()
                    times[what].append(time.perf_counter() - start)
                    say(
                        f"{name}, n = {n}, k = {k}, {leaves} leaves, {what}: {times[what][-1]:.2f} s"
                    )
            other = statistics.median(times["CART"])
            for what, model in found.items():
                seconds, depth = (
                    statistics.median(times[what]),
                    model.tree_.depth if hasattr(model, "price_") else model.get_depth(),
                )
                price = kernel_cost(gram, model.predict(X)) / whole
                rows.append(
                    {
                        "what": what,
                        "kernel": name,
                        "n": n,
                        "k": k,
                        "leaves": leaves,
                        "price": price,
                        "depth": depth,
                        "seconds": seconds,
                        "share of CART's": seconds / other,
                    }
                )
    return rows
