"""Growing and running trees (n = 10⁶, d = 10, k = 10, 20 leaves): seconds, medians of three, in turn."""

import statistics
import time

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.tree import DecisionTreeClassifier

from kxbook.grow import grow

N, D, K, LEAVES, ROUNDS = 1_000_000, 10, 10, 20, 3


def measure(say):
    X, y = make_blobs(N, D, centers=K, cluster_std=4.0, random_state=0)
    centres = np.array([X[y == c].mean(0) for c in range(K)])
    distances = ((X**2).sum(1)[:, None] - 2 * X @ centres.T) + (centres**2).sum(1)
    mistakes = (y[:, None] != np.arange(K)).astype(float)
    contenders = {
        "kxbook, 256 bins, squared distances": lambda: grow(X, distances, LEAVES, bins="auto"),
        "kxbook, 256 bins, label mistakes": lambda: grow(X, mistakes, LEAVES, bins="auto"),
        "kxbook, exact, squared distances": lambda: grow(X, distances, LEAVES),
        "CART": lambda: DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0).fit(X, y),
    }
    grow(X[:1000], distances[:1000], 3)  # compiles
    grow(X[:1000], distances[:1000], 3, bins=8)
    times, runs, found = {name: [] for name in contenders}, {name: [] for name in contenders}, {}
    for _ in range(ROUNDS):
        for name, fit in contenders.items():
            start = time.perf_counter()
            found[name] = fit()
            times[name].append(time.perf_counter() - start)
            start = time.perf_counter()
            found[name].predict(X)
            runs[name].append(time.perf_counter() - start)
            say(f"{name}: {times[name][-1]:.1f} s, predict {runs[name][-1]:.2f} s")
    cart = {
        what: statistics.median(values["CART"]) for what, values in (("grow", times), ("run", runs))
    }
    return [
        {
            "what": name,
            "grow, s": statistics.median(times[name]),
            "share of CART's": statistics.median(times[name]) / cart["grow"],
            "predict, s": statistics.median(runs[name]),
            "share of CART's predict": statistics.median(runs[name]) / cart["run"],
            "labels right": float((found[name].predict(X) == y).mean()),
            "cost against the means": float(distances[np.arange(N), found[name].predict(X)].sum()),
        }
        for name in contenders
    ]
