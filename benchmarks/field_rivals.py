"""Packages of others, in an environment of their own: what `field.py` runs for Kauri (gemclus) and the best trees for fixed costs (pystreed).

.venv-field/bin/python benchmarks/field_rivals.py TASK GIVEN.npz FOUND.npz
"""

import sys
import time

import numpy as np


def kauri(X, K, k, leaves):
    "Kauri with a kernel matrix."
    from gemclus.tree import Kauri

    options = dict(max_clusters=int(k), max_leaves=int(leaves), kernel="precomputed")
    start = time.perf_counter()
    model = Kauri(**options, random_state=0).fit(X, K)
    seconds = time.perf_counter() - start
    used = sum(child < 0 for child in model.tree_.children_left)
    depth = model.tree_.get_depth()
    labels = model.labels_.astype(np.int64)
    return dict(labels=labels, leaves=used, depth=depth, seconds=seconds)


def streed(features, costs, leaves, depth, limit):
    "The cheapest tree for the cost of each point with each label, on features of 0 and 1."
    from pystreed import STreeDInstanceCostSensitiveClassifier

    options = dict(max_depth=int(depth), max_num_nodes=int(leaves) - 1, time_limit=float(limit))
    start = time.perf_counter()
    model = STreeDInstanceCostSensitiveClassifier(**options).fit(features, costs)
    seconds = time.perf_counter() - start
    labels = np.asarray(model.predict(features)).astype(np.int64).ravel()
    return dict(labels=labels, seconds=seconds, optimal=model.fit_result.is_optimal())


if __name__ == "__main__":
    task, given, found = sys.argv[1:]
    with np.load(given) as arrays:
        np.savez(found, **{"kauri": kauri, "streed": streed}[task](**arrays))
