"""How much cheaper another tree with as many leaves can be: the paper's five data sets, k and 2k leaves, a minute each, beside the spectral bound and the relaxation.

.venv/bin/python benchmarks/gap.py [SECONDS]    # writes benchmarks/gap.json, which the chapter on the gap reads
"""

import json
import os
import platform
import sys
import time
import warnings
from datetime import date
from importlib.metadata import version

from run import HERE, table

from kxbook import KernelTree
from kxbook.data import (
    load_aggregation,
    load_breast_cancer,
    load_flame,
    load_iris,
    load_pathbased,
)
from kxbook.gap import tree_bound
from kxbook.gram import as_gram
from kxbook.kernel import gaussian, laplace
from kxbook.kkmeans import kernel_kmeans
from kxbook.price import kernel_cost, relaxed_bound, spectral_bound

SETS = {  # data, kernel, clusters, as in the chapter on the experiments
    "Flame": (load_flame, gaussian(0.1), 2),
    "Iris": (load_iris, laplace(1.0), 3),
    "Pathbased": (load_pathbased, gaussian(0.05), 3),
    "Cancer": (load_breast_cancer, gaussian(5e-6), 2),
    "Aggregation": (load_aggregation, laplace(0.5), 7),
}
SECONDS = 60


def measure(say, seconds=SECONDS):
    warnings.simplefilter("ignore")  # some trees need fewer leaves than they may use
    X, _ = load_iris(return_X_y=True)
    tree_bound(X[::5], laplace(1.0)(X[::5]), 3, 4, effort=20)  # compiles
    rows = []
    for name, (load, kernel, k) in SETS.items():
        X, _ = load(return_X_y=True)
        gram = as_gram(kernel, X)
        reference = kernel_kmeans(gram, k)
        spectral, relaxed = spectral_bound(gram, k), relaxed_bound(gram, k)
        for leaves in (k, 2 * k):
            model = KernelTree(k, max_leaves=leaves, kernel=kernel, random_state=0)
            tree = model.fit(X, reference_labels=reference.labels).tree_
            start = time.perf_counter()
            found = tree_bound(X, gram, k, leaves, upper=tree, time_limit=seconds)
            spent, cost = time.perf_counter() - start, kernel_cost(gram, tree.predict(X))
            rows.append(
                {
                    "data": name,
                    "points": len(X),
                    "clusters": k,
                    "leaves": leaves,
                    "price": cost / reference.cost,
                    "spectral gap": max(0.0, 1 - spectral / cost),
                    "relaxation gap": max(0.0, 1 - relaxed / cost),
                    "gap": max(0.0, 1 - found.bound / cost),
                    "exact": found.exact and found.cost >= cost * (1 - 1e-9),
                    "nodes": found.nodes,
                    "seconds": spent,
                }
            )
            say(f"{name}, {leaves} leaves: {found.words()}")
    return rows


def main():
    rows = measure(print, *map(float, sys.argv[1:]))
    print(table(rows))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    record = {"date": f"{date.today()}", "machine": f"{machine}, {libraries}", "rows": rows}
    (HERE / "gap.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
