"""The command `kxbook explain` beside the fit alone (20 columns, 5 clusters): seconds, medians of three, in turn."""

import csv
import statistics
import tempfile
import time
from pathlib import Path

from sklearn.datasets import make_blobs

from kxbook import KernelExKMC
from kxbook.cli import main
from kxbook.report import NYSTROEM_FROM, scale_columns

SIZES, D, K, ROUNDS = (1_000, 3_000, 10_000, 100_000), 20, 5, 3


def measure(say):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n in SIZES:
            X, _ = make_blobs(n, D, centers=K, cluster_std=6.0, random_state=0)
            table, page = Path(folder) / f"{n}.csv", Path(folder) / f"{n}.html"
            with open(table, "w", newline="") as file:
                csv.writer(file).writerows([[f"column {i}" for i in range(D)], *X.tolist()])
            Z, gram = scale_columns(X, "standard"), "nystroem" if n > NYSTROEM_FROM else "auto"
            contenders = {
                "fit": lambda Z=Z, gram=gram: KernelExKMC(K, gram=gram, random_state=0).fit(Z),
                "command": lambda: main(
                    ["explain", str(table), "-k", str(K), "-o", str(page), "--quiet"]
                ),
            }
            times = {name: [] for name in contenders}
            for round_ in range(-1, ROUNDS):  # the first one compiles, and is not counted
                for name, run in contenders.items():
                    start = time.perf_counter()
                    run()
                    times[name] += [time.perf_counter() - start] * (round_ >= 0)
            seconds = {name: statistics.median(found) for name, found in times.items()}
            say(f"{n} rows: " + ", ".join(f"{name} {s:.1f} s" for name, s in seconds.items()))
            rows.append(
                {
                    "rows": n,
                    "kernel": "Nyström" if n > NYSTROEM_FROM else "exact",
                    "fit, s": seconds["fit"],
                    "command, s": seconds["command"],
                    "times the fit": seconds["command"] / seconds["fit"],
                    "report, MB": page.stat().st_size / 1e6,
                }
            )
    return rows
