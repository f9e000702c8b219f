"""KernelTree to given labels of blobs beside CART, a regression tree on the centres, and IMM: seconds, price and depth, in turn."""

import statistics
import time

import numpy as np
from kxbook import IMM, KernelTree
from kxbook.gram import as_gram
from kxbook.kernel import linear
from kxbook.price import kernel_cost
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor


def regression(X, y, leaves):
    "Labels of leaves by a tree that is fitted to the centre of each point's cluster."
    centres = np.array([X[y == c].mean(0) for c in range(y.max() + 1)])
    found = DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=0).fit(X, centres[y]).predict(X)
    return ((found[:, None, :] - centres) ** 2).sum(2).argmin(1)


def measure(say):
    rows = []
    for n, k, leaves, rounds in ((10_000, 10, 10, 1), (10_000, 50, 50, 1), (100_000, 10, 20, 3)):
        X, y = make_blobs(n, n_features=10, centers=k, cluster_std=4, random_state=0)
        y = KMeans(k, n_init=1, random_state=0).fit(X).labels_ if n == 10_000 else y
        whole = kernel_cost(as_gram(linear(), X), y)
        contenders = {
            "KernelTree, intervals": lambda: KernelTree(max_leaves=leaves, kernel="linear").fit(X, reference_labels=y),
            "KernelTree, thresholds": lambda: KernelTree(max_leaves=leaves, kernel="linear", cuts="threshold").fit(X, reference_labels=y),
            "IMM": lambda: IMM().fit(X, reference_labels=y),
            "CART": lambda: DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(X, y),
            "regression tree on the centres": lambda: regression(X, y, leaves),
        }
        if n > 10_000:
            del contenders["regression tree on the centres"]
        KernelTree(max_leaves=4, kernel="linear").fit(X[:500], reference_labels=np.arange(500) % 3)  # compiles
        times, found = {name: [] for name in contenders}, {}
        for _ in range(rounds):
            for name, fit in contenders.items():
                start = time.perf_counter()
                found[name] = fit()
                times[name].append(time.perf_counter() - start)
                say(f"n = {n}, k = {k}, {name}: {times[name][-1]:.2f} s")
        other = statistics.median(times["CART"])
        for name, model in found.items():
            labels = model.predict(X) if hasattr(model, "predict") else model
            depth = model.tree_.depth if hasattr(model, "price_") else model.get_depth() if hasattr(model, "get_depth") else None
            seconds = statistics.median(times[name])
            rows.append({"what": name, "n": n, "k": k, "leaves": leaves, "price": kernel_cost(as_gram(linear(), X), labels) / whole, "depth": depth, "seconds": seconds, "share of CART's": seconds / other})
    return rows
