"""Tries to make a certificate say something false: small problems whose optimum is known by enumeration, changed again and again towards where the bounds are tight.

    .venv/bin/python tools/adversary.py --certificates 100000 [--seed 0] [--jobs 2]

A problem is a handful of points, a kernel, a way to store it, a tree. The truth is computed with more digits than the certificate has, in a form in which nothing cancels (squared distances of features, not kernel values), over all partitions.
What a certificate says in numbers and in words must then be true, up to its `tolerance`. Each problem is changed some times, and a change is kept if it brings lower_bound / optimum, or the price / price_upper, closer to 1 or beyond.
"""

import argparse
import json
import re
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from kxbook import IMM, KernelExKMC, KernelExpand, KernelIMM, KernelTree, gram, price
from kxbook.certificate import certify
from kxbook.gap import tree_bound
from kxbook.kernel import (
    Kernel,
    chi2,
    distance,
    epsilon,
    gaussian,
    hellinger,
    intersection,
    laplace,
    linear,
    matern,
    polya,
    quadratic,
    rational_quadratic,
)
from kxbook.kkmeans import partitions
from kxbook.surrogate import SURROGATES
from kxbook.tables import partition_array

STEPS = 12  # changes of each problem
LONG = np.longdouble


def cubic(X, Y):
    return (1 + X @ Y.T) ** 3


def saddle(X, Y):  # not semidefinite
    return X[:, :1] * Y[:, :1].T - X[:, -1:] * Y[:, -1:].T * 0.5


def box(t):  # not semidefinite: neighbours on each axis
    return (t <= 1).astype(float)


def cauchy(t):
    return 1 / (1 + t**2)


def apart(kernel, X):
    "Squared distances of the features, (n, n), K(x, x) + K(y, y) - 2 K(x, y), with long digits and without cancellation."
    X, params = (
        X.astype(LONG),
        {name: LONG(v) if isinstance(v, float) else v for name, v in kernel.params},
    )
    x, y = X[:, None], X[None]
    if kernel.name == "gaussian":
        return -2 * np.expm1(-params["gamma"] * ((x - y) ** 2).sum(2))
    if kernel.name == "laplace":
        return -2 * np.expm1(-params["gamma"] * np.abs(x - y).sum(2))
    if kernel.name == "linear":
        return ((x - y) ** 2).sum(2)
    if kernel.name == "hellinger":
        return ((np.sqrt(x) - np.sqrt(y)) ** 2).sum(2)
    if kernel.name == "intersection":
        return np.abs(x ** params["beta"] - y ** params["beta"]).sum(2)
    if kernel.name == "chi2":
        return ((x - y) ** 2 / np.where(x + y > 0, x + y, 1)).sum(2)
    if kernel.name == "quadratic":
        square = X[:, :, None] * X[:, None]
        return ((square[:, None] - square[None]) ** 2).sum((2, 3))
    if kernel.name == "rational_quadratic":
        alpha = params["alpha"]
        return -2 * np.expm1(-alpha * np.log1p(params["gamma"] * (x - y) ** 2 / alpha).sum(2))
    if kernel.name == "matern" and params["nu"] == 1.5:
        r = params["gamma"] * np.abs(x - y)
        return -2 * np.expm1((np.log1p(r) - r).sum(2))
    if kernel.name == "polya":
        with np.errstate(divide="ignore"):
            return -2 * np.expm1(np.log1p(-np.minimum(params["gamma"] * np.abs(x - y), 1)).sum(2))
    if kernel.name == "distance" and params["h"] is cauchy:
        return -2 * np.expm1(-np.log1p((x - y) ** 2).sum(2))
    K = (
        kernel.whole(X, X)
        if kernel.whole and kernel.name != "epsilon"
        else kernel(X.astype(float)).astype(LONG)
    )
    return K.diagonal()[:, None] + K.diagonal() - 2 * K


@cache
def pairs_of(n, k):
    "For every partition of n points into at most k clusters and every pair: 1 / the size of their common cluster, or 0."
    labels = partitions(n, min(k, n))
    return np.concatenate([weigh(labels[i : i + 1000]) for i in range(0, len(labels), 1000)])


def weigh(labels):
    i, j = np.triu_indices(labels.shape[1], 1)
    same = labels[:, :, None] == labels[:, None]
    return np.where(same[:, i, j], 1 / same.sum(2)[:, i].astype(LONG), LONG(0))


def truth(kernel, X, labels, k):
    "Cost of the labels, and of the best clustering."
    D = apart(kernel, X)[np.triu_indices(len(X), 1)]
    return (weigh(labels[None]) @ D)[0], (pairs_of(len(X), k) @ D).min()


@dataclass
class Problem:
    X: np.ndarray  # (n, d) points
    kernel: Kernel
    k: int
    labels: np.ndarray | None  # reference, or None for kernel k-means
    how: str  # dense, streamed, single, probes, nystroem, nystroem single, pieces, dask
    model: str
    bound: str = "spectral"
    landmarks: np.ndarray = field(default_factory=lambda: np.zeros((0, 1)))


HOW = (
    ["dense"] * 4
    + ["streamed", "single", "probes"] * 2
    + ["nystroem"] * 6
    + ["nystroem single"] * 2
    + ["pieces"] * 2
)
MODELS = ["imm"] * 4 + ["exkmc"] * 4 + ["expand"] * 2 + ["tree"]
MODELS += ["medoid", "potential", "exkmc from imm", "expand from imm"]
POTENTIAL = ("gaussian", "laplace", "linear", "hellinger", "intersection")


def landmarks_for(X, rng):
    "Few, nearly equal, useless or all of them."
    n, d = X.shape
    L = X[rng.integers(0, n, size=rng.integers(1, 6))]
    kind = rng.integers(0, 5)
    if kind == 0:
        L = np.vstack([L, L[:1] + 10.0 ** rng.integers(-12, -1) * rng.normal(size=d)])
    elif kind == 1:
        L = np.vstack([L, 100 * np.abs(rng.normal(size=(1, d)))])
    elif kind == 2:
        L = np.abs(rng.normal(size=(rng.integers(1, 5), d)))
    elif kind == 3:
        L = X
    return np.abs(L) if (X >= 0).all() else L


def draw(rng):
    "A problem at random."
    n, d, k = int(rng.integers(2, 10)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    k = min(k, n)
    X = [
        rng.normal(size=(n, d)),
        rng.integers(0, 4, size=(n, d)).astype(float),
        rng.integers(0, 3, size=(n, 1)) * 10.0
        + rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 1),
    ][rng.integers(3)]
    X = X * 10.0 ** rng.integers(-3, 3) + (10.0 ** rng.integers(0, 9) if rng.random() < 0.25 else 0)
    if rng.random() < 0.3:
        X[rng.integers(n)] = X[rng.integers(n)]
    gamma = float(10.0 ** rng.uniform(-6, 2))
    if rng.random() < 0.05:  # at the ends of what floats hold
        scale = 10.0 ** rng.choice([-163, -160, -90, -60, -40, 40, 60, 90, 150])
        X, gamma = (
            X * scale,
            float(
                10.0 ** np.clip(np.log10(gamma) - np.log10(scale) * rng.choice([1, 2]), -305, 300)
            ),
        )
    kernel = [
        gaussian(gamma),
        laplace(gamma),
        linear(),
        hellinger(),
        intersection(float(rng.choice([1.0, 0.5, 2.0]))),
        chi2(),
        quadratic(),
    ]
    kernel += [
        gaussian(gamma),
        laplace(gamma),
        rational_quadratic(gamma),
        matern(gamma),
        polya(gamma),
        distance(cauchy),
        distance(box),
        epsilon(float(10.0 ** rng.uniform(-1, 1))),
        Kernel("cubic", whole=cubic),
        Kernel("saddle", whole=saddle),
    ]
    kernel = kernel[rng.integers(len(kernel))]
    X = np.abs(X) if kernel.nonnegative or rng.random() < 0.5 else X
    labels = (
        None
        if rng.random() < 0.1
        else rng.permutation(np.r_[np.arange(k), rng.integers(0, k, size=n - k)])
    )
    how = "dask" if rng.random() < 0.003 else HOW[rng.integers(len(HOW))]
    bound = "relaxed" if rng.random() < 0.1 and how not in ("pieces", "dask") else "spectral"
    return Problem(
        X, kernel, k, labels, how, MODELS[rng.integers(len(MODELS))], bound, landmarks_for(X, rng)
    )


def change(problem, rng):
    "The problem with something else."
    X, kind = problem.X.copy(), rng.integers(0, 8)
    n, d = X.shape
    if kind <= 2:  # a coordinate, by a little or a lot
        i, j = rng.integers(n), rng.integers(d)
        X[i, j] += rng.normal() * 10.0 ** rng.integers(-9, 1) * max(np.abs(X).max(), 1e-3)
    elif kind == 3:
        X[rng.integers(n)] = X[rng.integers(n)]
    elif kind == 4:
        i, j = rng.integers(n, size=2)
        X[i] = X[j] + rng.normal(size=d) * 10.0 ** rng.integers(-9, -2) * max(np.abs(X).max(), 1e-3)
    elif kind == 5:
        X = X * 10.0 ** rng.uniform(-1, 1)
    elif kind == 6:
        return replace(problem, landmarks=landmarks_for(X, rng))
    elif problem.labels is not None:
        labels = problem.labels.copy()
        i, j = rng.integers(n, size=2)
        labels[[i, j]] = labels[[j, i]]
        return replace(problem, labels=labels)
    return replace(problem, X=np.abs(X) if problem.kernel.nonnegative else X)


def fitted(problem):
    "The estimator of a problem."
    name, kernel = problem.model, problem.kernel
    if (
        kernel.name in ("gaussian", "rational_quadratic")
        and name not in ("exkmc", "expand")
        and kernel.gamma * float(np.ptp(problem.X, axis=0).max()) ** 2 > 1e6
    ):
        name = "exkmc"  # features by the thousand, and nothing to learn from them
    if kernel.name == "linear" and name == "imm":
        return IMM(problem.k, random_state=0)
    options = dict(kernel=kernel, random_state=0)
    if problem.how.startswith(("nystroem", "pieces", "dask")):
        options |= dict(gram="nystroem", rank=problem.landmarks)
    elif problem.how == "streamed":
        options |= dict(gram="streamed")
    if name == "imm" and kernel.name in SURROGATES:
        return KernelIMM(
            problem.k,
            surrogate=SURROGATES[kernel.name][len(problem.X) % len(SURROGATES[kernel.name])],
            **options,
        )
    midpoints = dict(candidates="midpoints" if len(problem.X) % 2 else "all")
    if name == "medoid":
        coordinates = dict(surrogate="coordinate") if kernel.name not in SURROGATES else {}
        return KernelIMM(problem.k, centres="medoid", **coordinates, **midpoints, **options)
    if name == "potential" and kernel.name in POTENTIAL and problem.how not in ("pieces", "dask"):
        return KernelIMM(problem.k, centres="medoid", rule="potential", **options)
    if name.endswith("from imm") and kernel.name in SURROGATES:
        make = KernelExpand if name.startswith("expand") else KernelExKMC
        return make(problem.k, max_leaves=problem.k + 2, **midpoints, **options)
    if name == "tree" and not problem.how.startswith(("pieces", "dask")):
        return KernelTree(problem.k, max_leaves=problem.k, **options)
    make = KernelExpand if name.startswith("expand") else KernelExKMC
    return make(problem.k, base="empty", max_leaves=problem.k, **options)


def certificate(problem):
    "What is certified, and the tree's labels; None where the fit refuses the data."
    X, data = problem.X, problem.X
    if problem.how == "pieces":
        data = partition_array(X, 3)
    elif problem.how == "dask":
        import dask.array as da

        data = da.from_array(X, chunks=(4, -1))
    old = gram.FLOAT64_UP_TO, price.DENSE_UP_TO
    gram.FLOAT64_UP_TO = 0 if problem.how == "nystroem single" else old[0]
    price.DENSE_UP_TO = 0 if problem.how == "probes" else old[1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fitted(problem).fit(data, reference_labels=problem.labels)
            labels = np.asarray(model.labels_)
            if problem.how == "single":
                items = np.arange(len(X)), np.asarray(model.reference_labels_), np.ones(len(X))
                return certify(
                    gram.StreamedGram(problem.kernel, X, "float32"),
                    X,
                    problem.kernel,
                    items,
                    labels,
                    bound=problem.bound,
                ), labels
            return model.certificate(bound=problem.bound), labels
    except ValueError as e:
        if re.search(
            "not finite|close to zero|Rescale|surrogate|too large|too small|[Ff]eatures", str(e)
        ):
            return None  # data that is refused in words
        raise
    finally:
        gram.FLOAT64_UP_TO, price.DENSE_UP_TO = old


def said(c):
    "The numbers that the words of a certificate claim: (optimum at least, price at most, cost at least, cost at most)."
    text = " ".join([c.words(), *c.notes])
    number = r"(-?[\d.]+(?:e[+-]?\d+)?|inf|nan)"
    low = re.search(rf"none costs less than {number}\.(?: |$)", text)
    share = re.search(rf"cost at most {number}(?: times as much, or {number})?%? more", text)
    both = re.search(rf"this tree between {number} and {number}\. ", text)
    upper = 1 + float(share[2] or share[1]) / 100 if share else np.inf
    if "they cost nothing" in text.lower():
        upper = 1.0
    return (
        float(low[1]) if low else -np.inf,
        upper,
        *((float(both[1]), float(both[2])) if both else (-np.inf, np.inf)),
    )


def faults(problem, c, labels):
    "What the certificate says that is not true; and how close to the truth it comes."
    cost, best = truth(problem.kernel, problem.X, labels, c.n_clusters)
    t, found = LONG(c.tolerance), []
    low, share, least, most = said(c)
    for name, bound in (("lower_bound", c.lower_bound), ("the words on the lower bound", low)):
        if bound > best + t:
            found.append(f"{name} is {bound}, the optimum {best}")
    for name, bound in (("price_upper", c.price_upper), ("the words on the price", share)):
        if np.isfinite(bound) and cost > LONG(bound) * best + t:
            found.append(f"{name} is {bound}, cost {cost}, optimum {best}")
    if not least - t <= cost <= most + t:
        found.append(f"the words say a cost of {least} to {most}, it is {cost}")
    if c.cost > 0 and c.tolerance > max(1e-9 * c.cost, np.finfo(float).tiny):
        found.append(f"tolerance {c.tolerance} for a cost of {c.cost}")
    if np.isfinite(c.worst_case) and cost > c.worst_case * (1 + 1e-9) + t:
        found.append(f"worst case {c.worst_case}, cost {cost}")
    if "holds for the kernel itself" in " ".join(c.notes) and not problem.kernel.semidefinite:
        found.append("the notes promise a bound for a kernel that may have none")
    tight = 0.0
    if best > 0:
        tight = max(
            c.lower_bound / (best + t),
            (cost - t) / (LONG(c.price_upper) * best) if np.isfinite(c.price_upper) else 0.0,
        )
    return found, float(tight)


def leaves_of_trees(X, most):
    "The leaf of each point, (trees, n), for every division by an interval tree with at most so many leaves."
    n = len(X)
    ranges = {
        sum(1 << i for i in range(n) if a <= x[i] <= z) for x in X.T for a, z in product(x, x)
    }

    @cache
    def below(mask, most):
        found = {frozenset([mask])}
        for inside in {r & mask for r in ranges} - {0, mask} if most > 1 else ():
            for i in range(1, most):
                pairs = product(below(inside, i), below(mask ^ inside, most - i))
                found |= {one | other for one, other in pairs}
        return found

    trees = [sorted(leaves) for leaves in below((1 << n) - 1, most)]
    return np.array([[[m >> i & 1 for m in t].index(1) for i in range(n)] for t in trees])


def gap_faults(problem):
    "What the bound over trees says that is not true: all trees with k leaves or one more, at most three, are tried."
    X, kernel = problem.X, problem.kernel
    k, m = min(problem.k, 2 + len(X) % 2), min(problem.k + len(X) % 2, 3)
    try:
        found = tree_bound(X, gram.as_gram(kernel, X, "dense"), k, m, effort=50)
    except ValueError as e:
        if re.search("finite|Rescale|too large|too small", str(e)):
            return []  # data that is refused in words
        raise
    D, leaf = apart(kernel, X)[np.triu_indices(len(X), 1)], leaves_of_trees(X, m)
    labels = np.unique(np.concatenate([p[leaf] for p in partitions(m, min(k, m))]), axis=0)
    best = min((weigh(labels[i : i + 1000]) @ D).min() for i in range(0, len(labels), 1000))
    slack = LONG(1e-9) * abs(found.cost)
    words = re.search(r"more than ([\d.]+)% cheaper", found.words())
    share = LONG(words[1]) / 100 if words else LONG(0 if found.exact else 1)
    wrong = []
    if found.bound > best + slack:
        wrong.append(f"no tree is said to cost less than {found.bound}, one costs {best}")
    if best > 0 and best < found.cost * (1 - share) - slack:
        wrong.append(f"words on the gap: {found.words()} It costs {found.cost}, the best {best}")
    return wrong


def attack(seed, certificates):
    "Problems and their changes until so many certificates were seen: (how, certificates, false ones, how tight at the end) of each problem."
    rng, seen, rows = np.random.default_rng(seed), 0, []
    with threadpool_limits(1):  # nothing here is large enough for two
        while seen < certificates:
            problem, best, wrong, tried = draw(rng), -1.0, [], 0
            for _ in range(STEPS):
                other = problem if best < 0 else change(problem, rng)
                result = certificate(other)
                if result is None:
                    best = max(best, 0.0)
                    continue
                tried += 1
                found, score = faults(other, *result)
                if found:
                    wrong.append((found, other))
                if score >= best:
                    problem, best = other, score
            if problem.how == "dense" and (found := gap_faults(problem)):
                wrong.append((found, problem))
            seen += tried
            rows.append((problem.how, tried, wrong, best))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--certificates", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--outcome", type=Path, help="where to write the counts, as JSON")
    args = parser.parse_args()
    size = min(2000, -(-args.certificates // args.jobs))
    seeds = range(args.seed, args.seed + -(-args.certificates // size))
    rows = []
    with ProcessPoolExecutor(args.jobs) as pool:
        for some in pool.map(attack, seeds, [size] * len(seeds)):
            rows += some
            print(
                f"{sum(row[1] for row in rows)} certificates, {sum(len(row[2]) for row in rows)} false",
                flush=True,
            )
    wrong = [one for row in rows for one in row[2]]
    for found, problem in wrong[:20]:
        print(*found, problem, sep="\n  ")
    table = []
    for how in sorted({row[0] for row in rows}):
        mine = [row for row in rows if row[0] == how]
        tight = np.mean([row[3] > 1 - 1e-6 for row in mine])
        table.append(
            {
                "kernel as": how,
                "certificates": sum(row[1] for row in mine),
                "false": sum(len(row[2]) for row in mine),
                "problems": len(mine),
                "tight": f"{tight:.0%}",
            }
        )
    print(*table, sep="\n")
    if args.outcome:
        args.outcome.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
