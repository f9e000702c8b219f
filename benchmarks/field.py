"""All rules against each other at the same number of leaves: `make field`, or some of them.

.venv/bin/python benchmarks/field.py --only kauri,KernelTree --sets iris,flame --dry

Rows of contenders that are not run again are kept in field.json. Contenders with the mark "package" run in an environment of their own,
.venv-field, which `make field` makes; without it their rows are kept, too. --only and --sets take parts of names; --dry writes nothing.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import field_exact as exact
import field_rules as rules
import numpy as np
from run import table
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits, make_blobs, make_moons

from kxbook import (
    IMM,
    KernelExKMC,
    KernelExpand,
    KernelIMM,
    KernelKMeans,
    KernelTree,
    explain,
)
from kxbook.columns import encode
from kxbook.data import (
    load_aggregation,
    load_breast_cancer,
    load_flame,
    load_iris,
    load_pathbased,
)
from kxbook.gram import as_gram
from kxbook.kernel import gaussian, scale_gamma
from kxbook.price import kernel_cost
from kxbook.search import DEPTH_PENALTY

HERE = Path(__file__).resolve().parent
RECORD = HERE / "field.json"
RIVALS = HERE.parent / ".venv-field" / "bin" / "python"
SETS = {  # points and number of clusters
    "Pathbased": (lambda: load_pathbased(return_X_y=True)[0], 3),
    "Aggregation": (lambda: load_aggregation(return_X_y=True)[0], 7),
    "Flame": (lambda: load_flame(return_X_y=True)[0], 2),
    "Iris": (lambda: load_iris(return_X_y=True)[0], 3),
    "Cancer": (lambda: load_breast_cancer(return_X_y=True)[0], 2),
    "Moons": (lambda: make_moons(2000, noise=0.08, random_state=0)[0], 2),
    "Digits": (lambda: load_digits(return_X_y=True)[0], 10),
    "Blobs": (
        lambda: make_blobs(2000, n_features=10, centers=10, cluster_std=4, random_state=0)[0],
        10,
    ),
}
WIDTHS = (1, 4)  # times the default γ
LEAVES = (1, 2, 3)  # times the number of clusters
LOSS = 1e-9  # a relative difference that counts


class Problem:
    "A data set with a kernel, and the clusters that all trees explain."

    def __init__(self, data, X, k, width):
        self.data, self.X, self.k, self.width = data, X, k, width
        self.gamma = scale_gamma(X) * width
        self.gram = as_gram(gaussian(self.gamma), X, "dense")
        model = KernelKMeans(k, gamma=self.gamma, random_state=0).fit(X)
        self.y, self.cost = model.labels_, kernel_cost(self.gram, model.labels_)

    @cached_property
    def columns(self):
        "The axes as codes."
        return [encode(x) for x in self.X.T]

    @cached_property
    def K(self):
        "The kernel matrix."
        return self.gram.times(np.eye(len(self.X)))

    @cached_property
    def D(self):
        "Squared distances to the centres of the reference, (n, k)."
        V = np.eye(self.k)[self.y] / np.bincount(self.y)
        S = self.K @ V
        return np.maximum(self.K.diagonal()[:, None] - 2 * S + (V * S).sum(0), 0)


class Found(NamedTuple):
    "What a contender has found."

    labels: np.ndarray  # (n,) cluster of each point
    leaves: int  # how many leaves it used
    depth: int  # the most questions on the way to one
    seconds: float | None = None  # if it has measured them itself


@dataclass(frozen=True)
class Contender:
    "A rule, and what it may do."

    cuts: str  # "threshold", or "interval"
    tree: Callable  # from a problem and a number of leaves to a tree or a `Found`
    only_k: bool = False  # whether its trees have one leaf per cluster
    package: bool = False  # whether it runs in an environment of its own


def _fitted(kind, fixed=False, **options):
    "The tree of an estimator for the clusters of a problem."

    def tree(problem, leaves):
        more = {} if fixed else {"max_leaves": leaves}
        more |= {} if kind is IMM else {"gamma": problem.gamma}
        model = kind(problem.k, random_state=0, **more, **options)
        return model.fit(problem.X, reference_labels=problem.y).tree_

    return tree


def _command(problem, leaves):
    "The tree of `kxbook explain` with its defaults, but for the kernel's width and the leaves."
    options = dict(gamma=problem.gamma, scale="none", leaves=leaves)
    return explain(problem.X, problem.k, **options).tree


def _named(tree, problem):
    "The tree with the label of the nearest reference centre at each leaf."
    ends, label = tree.apply(problem.X), tree.label.copy()
    for i in np.unique(ends):
        label[tree.leaves[i]] = problem.D[ends == i].sum(0).argmin()
    return replace(tree, label=label)


def _kauri(problem, leaves):
    return rules.kauri(problem.columns, problem.K, problem.k, leaves)


def _nearest(penalty):
    return lambda p, leaves: rules.nearest(p.columns, p.X, p.D, p.y, penalty)


CONTENDERS = {
    "KernelTree thresholds": Contender("threshold", _fitted(KernelTree, cuts="threshold")),
    "Kauri": Contender("threshold", _kauri),
    "Kauri named": Contender("threshold", lambda p, leaves: _named(_kauri(p, leaves), p)),
    "gemclus Kauri": Contender("threshold", lambda p, leaves: run_kauri(p, leaves), package=True),
    "SpEx": Contender("threshold", lambda p, leaves: rules.spex(p.columns, p.y, leaves)),
    "SpEx on the kernel": Contender(
        "threshold", lambda p, leaves: rules.spex_kernel(p.columns, p.K, p.y, leaves)
    ),
    "CART": Contender("threshold", lambda p, leaves: rules.cart(p.columns, p.y, leaves)),
    "regression tree": Contender(
        "threshold", lambda p, leaves: rules.regression(p.columns, p.K, p.y, leaves)
    ),
    "ExGreedy": Contender("threshold", _nearest(0.0), only_k=True),
    "ExShallow": Contender("threshold", _nearest(DEPTH_PENALTY), only_k=True),
    "IMM": Contender("threshold", _fitted(IMM, fixed=True), only_k=True),
    "Kernel IMM medoids": Contender(
        "threshold", _fitted(KernelIMM, fixed=True, centres="medoid"), only_k=True
    ),
    "KernelExKMC thresholds": Contender(
        "threshold", _fitted(KernelExKMC, base="empty", cuts="threshold")
    ),
    "KernelExpand thresholds": Contender(
        "threshold", _fitted(KernelExpand, base="empty", cuts="threshold")
    ),
    "Kernel IMM intervals": Contender("interval", _fitted(KernelIMM, fixed=True), only_k=True),
    "KernelExKMC intervals": Contender("interval", _fitted(KernelExKMC)),
    "KernelExpand intervals": Contender("interval", _fitted(KernelExpand)),
    "kxbook explain": Contender("interval", _command),
    "KernelTree intervals": Contender("interval", _fitted(KernelTree)),
}
OURS = (
    "KernelTree thresholds",
    "kxbook explain",
    "KernelTree intervals",
)  # whose losses are counted


class NotInstalled(Exception):
    "There is no environment with the packages of others."


def run_package(task, **arrays):
    "Run a task of field_rivals.py in the environment of the packages; its arrays."
    if not RIVALS.exists():
        raise NotInstalled("There is no .venv-field with gemclus and pystreed: `make field`.")
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "given.npz"), Path(folder, "found.npz")
        np.savez(given, **arrays)
        command = [RIVALS, HERE / "field_rivals.py", task, given, found]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise NotInstalled((done.stderr.strip() or "field_rivals.py failed").splitlines()[-1])
        with np.load(found) as arrays:
            return dict(arrays)


def run_kauri(problem, leaves):
    "Kauri as its authors have written it."
    found = run_package("kauri", X=problem.X, K=problem.K, k=problem.k, leaves=leaves)
    used, depth = int(found["leaves"]), int(found["depth"])
    return Found(found["labels"], used, depth, float(found["seconds"]))


def agreement(labels, y):
    "The share of points with the same cluster, for the best names of clusters."
    counts = np.zeros((labels.max() + 1, y.max() + 1))
    np.add.at(counts, (labels, y), 1)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(y))


def measured(contender, problem, leaves):
    "The tree of a contender, and what it took."
    start = time.perf_counter()
    found = contender.tree(problem, leaves)
    seconds = time.perf_counter() - start
    if not isinstance(found, Found):
        found = Found(found.predict(problem.X), found.n_leaves, found.depth)
    return found._replace(seconds=seconds if found.seconds is None else found.seconds)


def row(problem, leaves, name):
    "What is recorded of a contender."
    found = measured(CONTENDERS[name], problem, leaves)
    cost = kernel_cost(problem.gram, found.labels)
    return {
        "data": problem.data,
        "width": problem.width,
        "leaves": leaves,
        "what": name,
        "cuts": CONTENDERS[name].cuts,
        "price": cost / problem.cost,
        "agreement": agreement(found.labels, problem.y),
        "used": found.leaves,
        "depth": found.depth,
        "seconds": found.seconds,
        "reference": problem.cost,
    }


def case_of(row):
    "The case that a row belongs to, in words."
    return f"{row['data']} ×{row['width']}, {row['leaves']} leaves"


def merged(old, new):
    "Old rows and new ones, which take the place of old ones, in the order of cases."
    cost = {case_of(r): r["reference"] for r in new}
    kept = [r for r in old if abs(cost.get(case_of(r), r["reference"]) / r["reference"] - 1) < LOSS]
    known = {(case_of(r), r["what"]): r for r in [*kept, *new] if r["what"] in CONTENDERS}
    sets, names = list(SETS), list(CONTENDERS)
    some = (r for r in known.values() if r["data"] in SETS)
    return sorted(
        some,
        key=lambda r: (sets.index(r["data"]), r["width"], r["leaves"], names.index(r["what"])),
    )


def losses(rows, ours, rivals):
    "The cases in which a rival is cheaper, the best rival of each, and by how much: the worst first."
    price = {(case_of(r), r["what"]): r["price"] for r in rows}
    found = []
    for case in dict.fromkeys(case for case, _ in price):
        mine = price.get((case, ours))
        theirs = [(price[case, rival], rival) for rival in rivals if (case, rival) in price]
        if mine is None or not theirs:
            continue
        least, rival = min(theirs)
        by = mine / least - 1
        if by > LOSS:
            found.append({"case": case, "rival": rival, "by": by})
    return sorted(found, key=lambda loss: -loss["by"])


def rivals_of(ours):
    "The contenders that one of ours is compared with: thresholds, or all for intervals."
    some = ("threshold", "interval") if ours == "KernelTree intervals" else ("threshold",)
    return [name for name, c in CONTENDERS.items() if name != ours and c.cuts in some]


def summary(rows):
    "How often ours lose, to whom, and by how much."
    found, cases_of = {}, {name: set() for name in CONTENDERS}
    for r in rows:
        cases_of[r["what"]].add(case_of(r))
    for ours in OURS:
        rivals, mine = rivals_of(ours), cases_of[ours]
        others = [r for r in rivals if ours != "kxbook explain" or r not in OURS]
        lost = losses(rows, ours, others)
        by_rival = {}
        for rival in rivals:
            some = losses(rows, ours, [rival])
            both, worst = len(mine & cases_of[rival]), some[0]["by"] if some else 0.0
            by_rival[rival] = {"cases": both, "lost": len(some), "worst": worst}
        found[ours] = {"cases": len(mine), "lost": len(lost), "losses": lost, "by rival": by_rival}
    return found


def print_summary(found):
    "The summary as tables."
    for ours, result in found.items():
        print(f"\n{ours} loses {result['lost']} of {result['cases']} cases", end="")
        print(", to the best rival of each by:" if result["lost"] else ".")
        for loss in result["losses"]:
            print(f"   {loss['by']:9.3%}  {loss['case']}: {loss['rival']}")
        print(table([{"rival": rival, **row} for rival, row in result["by rival"].items()]))


def changes(old, new):
    "What contenders that are measured again cost now, beside what is recorded of them."
    before = {(case_of(r), r["what"]): r["price"] for r in old}
    found = []
    for name in dict.fromkeys(r["what"] for r in new):
        mine = [(case_of(r), r["price"]) for r in new if r["what"] == name]
        by = [price / before[case, name] - 1 for case, price in mine if (case, name) in before]
        row = {"what": name, "cases": len(by), "cheaper": sum(x < -LOSS for x in by)}
        row |= {"dearer": sum(x > LOSS for x in by), "least": min(by, default=0.0)}
        found.append(row | {"most": max(by, default=0.0), "mean": sum(by) / max(len(by), 1)})
    return found


def print_changes(found):
    "The contenders that have changed."
    some = [row for row in found if row["cheaper"] or row["dearer"]]
    print("\nBeside the record", "nothing has changed." if not some else "these have changed:")
    if some:
        print(table(some))


def problems(sets):
    "The problems that are asked for, one at a time."
    for data in sets:
        load, k = SETS[data]
        X = load()
        for width in WIDTHS:
            yield Problem(data, X, k, width)


def measure(say, names=tuple(CONTENDERS), sets=tuple(SETS)):
    "The rows of some contenders on some sets."
    warnings.simplefilter("ignore")  # some need fewer leaves than they may use
    rows, absent = [], set()
    for problem in problems(sets):
        for leaves in (times * problem.k for times in LEAVES):
            some = [n for n in names if leaves == problem.k or not CONTENDERS[n].only_k]
            new, start = [], time.perf_counter()
            for name in (n for n in some if n not in absent):
                try:
                    new.append(row(problem, leaves, name))
                except NotInstalled as why:
                    absent.add(name)
                    say(f"{name} is left out, and its rows are kept. {why}")
            if new:
                best, seconds = min(new, key=lambda r: r["price"]), time.perf_counter() - start
                least = f"least price {best['price']:.6f} of {best['what']}"
                say(f"{case_of(best)}: {least}, {seconds:.1f} s")
            rows += new
    return rows


def warm_up():
    "Compile everything, so that it is not measured."
    warnings.simplefilter("ignore")
    X, k = load_iris(return_X_y=True)[0][::3], 3
    problem = Problem("Iris", X, k, 1)
    for name, contender in CONTENDERS.items():
        if not contender.package:
            row(problem, k if contender.only_k else k + 1, name)


def machine():
    "What the figures were measured on."
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    cores = f"{platform.machine()}, {os.cpu_count()} cores"
    return f"{cores}, Python {platform.python_version()}, {libraries}"


def chosen(words, names):
    "The names that have one of some words in them; all of them without words."
    some = [word.strip().lower() for word in (words or "").split(",")]
    found = [name for name in names if any(w in name.lower() for w in some)]
    if not found:
        sys.exit(f"Nothing is called {words}. There are {'; '.join(names)}.")
    return found


def read():
    "What is recorded."
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def as_text(value, indent=""):
    "JSON with one line for each row."
    if isinstance(value, dict) and any(isinstance(v, dict | list) for v in value.values()):
        pairs = (f"{json.dumps(k)}: {as_text(v, indent + ' ')}" for k, v in value.items())
        return "{\n" + ",\n".join(f"{indent} {pair}" for pair in pairs) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        items = ",\n".join(f"{indent} {as_text(v, indent + ' ')}" for v in value)
        return f"[\n{items}\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="parts of names of contenders, with commas between them")
    parser.add_argument("--sets", help="parts of names of data sets")
    parser.add_argument("--part", help="rules, optimum or centres; all of them by default")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    args = parser.parse_args(words)
    record, say = read(), lambda text: print(text, flush=True)
    some = args.only or args.sets
    parts = chosen(args.part or ("rules" if some else None), ("rules", "optimum", "centres"))
    if "rules" in parts:
        warm_up()
        rows = measure(say, chosen(args.only, CONTENDERS), chosen(args.sets, SETS))
        print_changes(changes(record.get("rows", []), rows))
        rows = merged(record.get("rows", []), rows)
        record |= {"date": f"{date.today()}", "machine": machine()}
        record |= {"rows": rows, "summary": summary(rows)}
        print_summary(record["summary"])
    if "optimum" in parts:
        record["optimum"] = exact.optimum(say, record.get("optimum", {}))
        exact.print_optimum(record["optimum"])
    if "centres" in parts:
        try:
            record["centres"] = exact.centres(say, problems(exact.FIXED), run_package)
        except NotInstalled as why:
            say(f"Fixed centres are left out, and what is recorded is kept. {why}")
        if "centres" in record:
            exact.print_centres(record["centres"])
    if not args.dry:
        RECORD.write_text(as_text(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
