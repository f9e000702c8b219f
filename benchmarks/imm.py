"""IMM and Kernel IMM to given labels beside CART with as many leaves: seconds, medians of three, in turn."""

import statistics
import time

from sklearn.datasets import make_blobs
from sklearn.tree import DecisionTreeClassifier

from kxbook import IMM
from kxbook.imm import kernel_imm
from kxbook.kernel import gaussian, linear, scale_gamma

ROUNDS = 3


def cart(X, y, k):
    return DecisionTreeClassifier(max_leaf_nodes=k, random_state=0).fit(X, y)


def measure(say):
    rows = []
    for n, k in ((1_000_000, 10), (1_000_000, 50), (100_000, 10)):
        X, y = make_blobs(n, 10, centers=k, cluster_std=3.0, random_state=0)
        if n == 1_000_000:
            contenders = {
                "IMM, the tree": lambda: kernel_imm(X, y, linear(), bins=256)[0],
                "IMM, the estimator": lambda: IMM(k).fit(X, reference_labels=y).tree_,
            }
        else:
            kernel = gaussian(scale_gamma(X))
            contenders = {
                "Kernel IMM, Gaussian root, the tree": lambda: kernel_imm(X, y, kernel)[0]
            }
        contenders["CART"] = lambda: cart(X, y, k)
        kernel_imm(X[:1000], y[:1000] % 3, linear(), bins=8)  # compiles
        kernel_imm(X[:1000], y[:1000] % 3, linear())
        times, found = {name: [] for name in contenders}, {}
        for _ in range(ROUNDS):
            for name, fit in contenders.items():
                start = time.perf_counter()
                found[name] = fit()
                times[name].append(time.perf_counter() - start)
                say(f"n = {n}, k = {k}, {name}: {times[name][-1]:.2f} s")
        other = statistics.median(times["CART"])
        for name in contenders:
            seconds = statistics.median(times[name])
            right = float((found[name].predict(X) == y).mean())
            rows.append(
                {
                    "what": name,
                    "n": n,
                    "k": k,
                    "seconds": seconds,
                    "share of CART's": seconds / other,
                    "labels right": right,
                }
            )
    return rows
