"""The rules of others do what their papers say, beside slow ones, and the record of the field adds up."""

import json
import sys
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))

import field  # noqa: E402
import field_exact  # noqa: E402
import field_rules as rules  # noqa: E402

from kxbook.columns import encode  # noqa: E402
from kxbook.kernel import gaussian  # noqa: E402
from kxbook.price import kernel_cost  # noqa: E402

RECORD = json.loads((BENCHMARKS / "field.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def not_compiled(monkeypatch):
    "The functions of the benchmarks as they are written: compiling them takes longer than these tests."
    for module in (rules, field_exact):
        for name, function in vars(module).copy().items():
            if getattr(function, "__module__", "") == module.__name__:
                monkeypatch.setattr(module, name, getattr(function, "py_func", function))


def points(seed, n=14):
    "Points with ties, their columns and their kernel."
    X = np.random.default_rng(seed).integers(0, 5, size=(n, 2)).astype(float)
    return X, [encode(x) for x in X.T], gaussian(0.3)(X)


def thresholds(X, rows):
    "The ways to divide some points by a threshold."
    for axis in range(X.shape[1]):
        for value in np.unique(X[rows, axis])[:-1]:
            yield rows[X[rows, axis] <= value], rows[X[rows, axis] > value]


def kauri_sides(label, home, k):
    "The labels that a split of Kauri may give to its sides: star, double star, switch, reallocation."
    new = [c for c in range(k) if c not in label][:2]
    others = [c for c in dict.fromkeys(label) if c != home]
    for c in new[:1] + others:
        yield from ((c, home), (home, c))
    yield from (pair for pair in [tuple(new)] if len(pair) == 2)
    yield from ((a, b) for a, b in product(others, others) if a != b)


def slow_kauri(X, K, k, leaves):
    "Kauri by its definition: every split of every leaf, and the cost of the clusters after it."
    label, parts = np.zeros(len(X), dtype=int), [np.arange(len(X))]
    while len(parts) < leaves:
        best, found = kernel_cost(K, label) - 1e-9, None
        for i, rows in enumerate(parts):
            for yes, no in thresholds(X, rows):
                for a, b in kauri_sides(label, label[rows[0]], k):
                    new = label.copy()
                    new[yes], new[no] = a, b
                    if (cost := kernel_cost(K, new)) < best - 1e-12:
                        best, found = cost, (i, yes, no, new)
        if found is None:
            break
        i, yes, no, label = found
        parts[i : i + 1] = [yes, no]
    return kernel_cost(K, label)


@pytest.mark.parametrize("seed", range(3))
def test_kauri(seed):
    X, columns, K = points(seed)
    for k, leaves in ((2, 4), (3, 5)):
        tree = rules.kauri(columns, K, k, leaves)
        assert tree.n_leaves <= leaves and tree.predict(X).max() < k
        assert kernel_cost(K, tree.predict(X)) == pytest.approx(slow_kauri(X, K, k, leaves))


def normalised_cut(A, part):
    "The edges that leave a part, as a share of all of its edges."
    inside = np.isin(np.arange(len(A)), part)
    return A[inside][:, ~inside].sum() / A[inside].sum()


def test_spex():
    X, columns, K = points(4)
    y = (X.sum(1) > 4).astype(int)
    for A, labels in (
        ((y[:, None] == y).astype(float), rules.spex(columns, y, 2).predict(X)),
        (K, rules.spex_kernel(columns, K, y, 2).predict(X)),
    ):
        best = min(
            normalised_cut(A, yes) + normalised_cut(A, no)
            for yes, no in thresholds(X, np.arange(len(X)))
        )
        found = sum(normalised_cut(A, np.flatnonzero(labels == c)) for c in np.unique(labels))
        assert found == pytest.approx(best)


def test_other_rules():
    X, columns, K = points(5, 40)
    y = (X[:, 0] > 2) * 1 + (X[:, 1] > 3) * (X[:, 0] > 2)
    for tree in (
        rules.cart(columns, y, 3),
        rules.regression(columns, K, y, 3),
        rules.spex(columns, y, 3),
    ):
        assert tree.n_leaves == 3 and (tree.predict(X) == y).all()
    V = np.eye(3)[y] / np.bincount(y)
    D = K.diagonal()[:, None] - 2 * K @ V + (V * (K @ V)).sum(0)
    tree = rules.nearest(columns, X, D, y, 0.0)
    assert tree.n_leaves == 3 and (tree.predict(X) == y).mean() > 0.8


def plain_cost(K, y):
    "The kernel k-means cost, by its definition."
    return np.trace(K) - sum(K[y == c][:, y == c].sum() / (y == c).sum() for c in set(y.tolist()))


def slow_optimum(X, K, leaves, k):
    "The least cost of interval trees, by all partitions into leaves and all ways to label these."

    def partitions(parts):
        yield parts
        for i, rows in enumerate(parts if len(parts) < leaves else ()):
            for axis in range(X.shape[1]):
                values = np.unique(X[rows, axis])
                for lo, hi in combinations([*values, np.inf], 2):
                    inside = (lo <= X[rows, axis]) & (X[rows, axis] < hi)
                    if not inside.all():
                        yield from partitions(
                            [*parts[:i], rows[inside], rows[~inside], *parts[i + 1 :]]
                        )

    seen, best = set(), np.inf
    for parts in partitions([np.arange(len(X))]):
        name = frozenset(tuple(sorted(rows)) for rows in parts)
        if len(parts) < leaves or name in seen:
            continue
        seen.add(name)
        for labels in product(range(k), repeat=len(parts)):
            y = np.zeros(len(X), dtype=int)
            for rows, label in zip(parts, labels):
                y[rows] = label
            best = min(best, plain_cost(K, y))
    return best


def test_the_optimum_of_small_cases():
    X = np.array([[0, 1], [1, 3], [2, 0], [3, 2], [4, 4], [5, 1.0]])
    K, (codes, orders) = gaussian(0.2)(X), rules.by_axis([encode(x) for x in X.T])
    upper = float(np.trace(K))
    found = field_exact.best_cost(orders, codes, K, upper, True)
    assert found == pytest.approx(slow_optimum(X, K, 4, 3))
    assert field_exact.best_cost(orders, codes, K, upper, False) >= found - 1e-12


def test_rows_are_merged_and_losses_counted():
    row = {"data": "Iris", "width": 1, "leaves": 3, "cuts": "threshold", "reference": 2.0}
    old = [row | {"what": what, "price": price} for what, price in (("Kauri", 1.2), ("CART", 1.3))]
    new = [row | {"what": "KernelTree thresholds", "price": 1.25}]
    rows = field.merged(old, new)
    assert [r["what"] for r in rows] == ["KernelTree thresholds", "Kauri", "CART"]
    (loss,) = field.losses(rows, "KernelTree thresholds", ["Kauri", "CART"])
    assert loss["rival"] == "Kauri" and loss["by"] == pytest.approx(1.25 / 1.2 - 1)
    assert field.losses(rows, "Kauri", ["CART"]) == []
    other = [new[0] | {"reference": 3.0}]  # other clusters: what was recorded is worth nothing
    assert field.merged(old, other) == other
    (change,) = field.changes(new, [new[0] | {"price": 1.0}])
    assert change["cheaper"] == 1 and change["least"] == change["mean"] == pytest.approx(-0.2)
    assert json.loads(field.as_text(record := {"rows": rows, "none": [], "n": 1})) == record
    assert field.chosen("kauri, kerneltree", ["Kauri", "CART", "KernelTree"])[1] == "KernelTree"


def test_the_record():
    rows = RECORD["rows"]
    assert RECORD["summary"] == json.loads(json.dumps(field.summary(rows)))
    cases = {field.case_of(row) for row in rows}
    assert len(cases) == len(field.SETS) * len(field.WIDTHS) * len(field.LEAVES)
    for name, contender in field.CONTENDERS.items():
        mine = [row for row in rows if row["what"] == name]
        assert len(mine) == (len(cases) // 3 if contender.only_k else len(cases)), name
        assert all(row["used"] <= row["leaves"] and row["depth"] < row["leaves"] for row in mine)
        assert all(row["price"] > 0.9 and 0 < row["agreement"] <= 1 for row in mine)
    ours, theirs = (
        {field.case_of(row): row["price"] for row in rows if row["what"] == name}
        for name in ("Kauri", "gemclus Kauri")
    )
    assert ours == pytest.approx(theirs, rel=1e-9)  # our own reading of the paper is theirs
    assert len(RECORD["optimum"]["rows"]) == field_exact.CASES
    assert all(row["grown"] > -1e-9 for row in RECORD["centres"]["rows"])
