"""Cluster sums of the Gaussian kernel (n = 20 000, d = 10, k = 10): seconds per 10⁹ kernel entries, medians of five, in turn."""

import statistics
import time

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from kxbook.gram import StreamedGram
from kxbook.kernel import gaussian

N, D, K, GAMMA, ROUNDS = 20_000, 10, 10, 0.05, 5


def numpy_blocks(X, V, rows=1000):
    "What one would write first: blocks of rows, the squared distance by the binomial formula."
    q, sums = (X**2).sum(1), np.empty((len(X), V.shape[1]), dtype=X.dtype)
    for i in range(0, len(X), rows):
        squared = q[i : i + rows, None] + q - 2 * X[i : i + rows] @ X.T
        sums[i : i + rows] = np.exp(-GAMMA * squared) @ V
    return sums


def sklearn_blocks(X, rows=1000):
    "The kernel alone, without any sums."
    for i in range(0, len(X), rows):
        rbf_kernel(X[i : i + rows], X, gamma=GAMMA)


def measure(say):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(N, D)), rng.integers(0, K, size=N)
    V, some = np.eye(K)[labels], rng.choice(N, 500, replace=False)
    exact = gaussian(GAMMA)(X[some], X) @ V
    rows = []
    for dtype in ("float32", "float64"):
        Xd, Vd, streamed = X.astype(dtype), V.astype(dtype), StreamedGram(gaussian(GAMMA), X, dtype)
        stored = np.empty((N, N), dtype=dtype)
        for i in range(0, N, 1000):
            stored[i : i + 1000] = rbf_kernel(Xd[i : i + 1000], Xd, gamma=GAMMA)
        contenders = {
            "kxbook, streamed": lambda: streamed.cluster_sums(labels, K),
            "multiply a stored K": lambda: stored @ Vd,
            "NumPy blocks": lambda: numpy_blocks(Xd, Vd),
            "rbf_kernel, no sums": lambda: sklearn_blocks(Xd),
        }
        times = {name: [] for name in contenders}
        for turn in range(ROUNDS + 1):
            for name, run in contenders.items():
                start = time.perf_counter()
                result = run()
                if turn:  # the first round warms up
                    times[name].append((time.perf_counter() - start) / N**2 * 1e9)
                elif result is not None:
                    say(f"{dtype} {name}")
        ours = statistics.median(times["kxbook, streamed"])
        for name, run in contenders.items():
            result = None if "no sums" in name else run()
            error = None if result is None else float(np.abs(result[some] / exact - 1).max())
            median = statistics.median(times[name])
            rows.append(
                {
                    "what": name,
                    "precision": dtype,
                    "s per 10⁹ entries": median,
                    "times ours": median / ours,
                    "largest relative error": error,
                }
            )
        stored = contenders = None  # room for the next one
    far = X + 1e8
    near = StreamedGram(gaussian(GAMMA), far - 1e8).cluster_sums(
        labels, K
    )  # the same rounded points, without the offset
    off = float(np.abs(StreamedGram(gaussian(GAMMA), far).cluster_sums(labels, K) / near - 1).max())
    rows.append(
        {
            "what": "kxbook, streamed, offset 10⁸",
            "precision": "float64",
            "s per 10⁹ entries": None,
            "times ours": None,
            "largest relative error": off,
        }
    )
    return rows
