"""What the search is worth where the best tree is known: small data, and trees for fixed costs; part of `field.py`."""

import warnings
from functools import partial
from unittest import mock

import numpy as np
from field_rules import by_axis

import kxbook.search
from kxbook import KernelKMeans, KernelTree
from kxbook.codetree import (
    coded_points,
    grow_codes,
    leaves_reached,
    prune,
    recut,
    single_leaf,
    table_cost,
)
from kxbook.columns import compiled, encode
from kxbook.gram import as_gram
from kxbook.kernel import gaussian, scale_gamma
from kxbook.price import kernel_cost
from kxbook.sweep import quantise

CASES = 200  # small data sets
CLUSTERS, SMALL_LEAVES = 3, 4
REACHED = 1e-9  # a relative difference that does not count
BINS = 16  # codes of a column, so that the best tree for fixed costs can be found
SHAPES = ((3, 2), (4, 2), (4, 3), (6, 3), (8, 3))  # most leaves, and most questions on a path
FIXED = ("Pathbased", "Aggregation", "Flame", "Iris", "Cancer", "Moons")
LIMIT = 60  # seconds for the package


@compiled
def _parts(orders, codes, axis, first, last):
    "The orders of the points inside and outside of places of an axis."
    d, t = orders.shape
    n, inside = last - first + 1, np.zeros(codes.shape[1], np.bool_)
    for i in range(first, last + 1):
        inside[orders[axis, i]] = True
    yes, no = np.empty((d, n), np.int64), np.empty((d, t - n), np.int64)
    for a in range(d):
        p, q = 0, 0
        for x in orders[a]:
            if inside[x]:
                yes[a, p] = x
                p += 1
            else:
                no[a, q] = x
                q += 1
    return yes, no


@compiled
def _cell(orders, K):
    "The sum of the kernel over pairs of points of a cell, its trace, and its size."
    total, trace = 0.0, 0.0
    for x in orders[0]:
        trace += K[x, x]
        for y in orders[0]:
            total += K[x, y]
    return total, trace, orders.shape[1]


@compiled
def _kept(cell):
    "What a cell as a cluster takes off the trace."
    return cell[0] / cell[2]


@compiled
def _most_kept(orders, codes, K, sums, other, intervals):
    "The most that a cut takes off the trace, if one side has another cell, or none, as company."
    d, t = orders.shape
    whole, with_other, best, row = 0.0, 0.0, -np.inf, np.zeros(len(K))
    for x in orders[0]:
        with_other += sums[x]
        for y in orders[0]:
            row[x] += K[x, y]
        whole += row[x]
    own, rows, across = np.zeros(t), np.zeros(t + 1), np.zeros(t + 1)
    for axis in range(d):
        order, code = orders[axis], codes[axis]
        for i in range(t):
            rows[i + 1] = rows[i] + row[order[i]]
            across[i + 1] = across[i] + sums[order[i]]
        for z in range(t):
            column = 0.0
            for a in range(z, -1, -1):
                if a == z:
                    own[a] = K[order[z], order[z]]
                else:
                    column += K[order[a], order[z]]
                    own[a] += 2 * column + K[order[z], order[z]]
                n = z - a + 1
                if n == t or (a > 0 and (not intervals or code[order[a - 1]] == code[order[a]])):
                    continue
                if z < t - 1 and code[order[z]] == code[order[z + 1]]:
                    continue
                yes, to_yes = own[a], across[z + 1] - across[a]
                no, to_no = whole - 2 * (rows[z + 1] - rows[a]) + yes, with_other - to_yes
                s, m = other[0], other[2]
                one = (yes + 2 * to_yes + s) / (n + m) + no / (t - n)
                two = yes / n + (no + 2 * to_no + s) / (t - n + m)
                best = max(best, one, two)
    return best


@compiled
def _most_of(orders, codes, K, intervals, known):
    "The most that a cut of a cell takes off the trace; it is remembered, by the points."
    key = np.uint64(0)
    for x in orders[0]:
        key |= np.uint64(1) << np.uint64(x)
    if key not in known:
        none = (0.0, 0.0, 0)
        known[key] = _most_kept(orders, codes, K, np.zeros(len(K)), none, intervals)
    return known[key]


@compiled
def _cuts(orders, codes, intervals):
    "All cuts of some points: axis, first and last place inside."
    d, t = orders.shape
    found, c = np.empty((d * t * (t + 1) // 2, 3), np.int64), 0
    for axis in range(d):
        order, code = orders[axis], codes[axis]
        for a in range(t if intervals else 1):
            if a > 0 and code[order[a - 1]] == code[order[a]]:
                continue
            for z in range(a, t):
                if z - a + 1 < t and (z == t - 1 or code[order[z]] != code[order[z + 1]]):
                    found[c] = axis, a, z
                    c += 1
    return found[:c]


@compiled
def _sums_with(orders, K):
    "The sums of the kernel of all points with those of a cell."
    sums = np.zeros(len(K))
    for x in orders[0]:
        sums += K[x]
    return sums


@compiled
def _last_cut(one, two, last, most, best, codes, K, intervals):
    "The most that three cells take off the trace, if one is cut and two of the four are one cluster."
    a, b = _cell(one, K), _cell(two, K)
    if most + _kept(a) + _kept(b) <= best:  # companions take off no more
        return best
    with_a, across = _sums_with(one, K), 0.0
    for x in two[0]:
        across += with_a[x]
    best = max(best, most + (a[0] + b[0] + 2 * across) / (a[2] + b[2]))
    best = max(best, _kept(b) + _most_kept(last, codes, K, with_a, a, intervals))
    with_b = _sums_with(two, K)
    return max(best, _kept(a) + _most_kept(last, codes, K, with_b, b, intervals))


@compiled
def best_cost(orders, codes, K, upper, intervals):
    "The least cost of trees with at most four leaves and three clusters; `upper` is that of one."
    trace, known = np.trace(K), {np.uint64(0): 0.0}
    best = trace - upper
    for axis, first, last in _cuts(orders, codes, intervals):
        sides = _parts(orders, codes, axis, first, last)
        for side in range(2):
            cut, rest = sides[side], sides[1 - side]
            rest_cell = _cell(rest, K)
            rest_most = _most_of(rest, codes, K, intervals, known)
            for axis2, first2, last2 in _cuts(cut, codes, intervals):
                a, b = _parts(cut, codes, axis2, first2, last2)
                kept_a, kept_b = _kept(_cell(a, K)), _kept(_cell(b, K))
                best = max(best, kept_a + kept_b + _kept(rest_cell))
                best = _last_cut(a, b, rest, rest_most, best, codes, K, intervals)
                for one, two, kept, other in ((a, b, kept_a, kept_b), (b, a, kept_b, kept_a)):
                    room = _cell(one, K)[1] + other + _kept(rest_cell)
                    if room > best:  # as if each point of it were a cluster
                        most = _most_of(one, codes, K, intervals, known)
                        best = _last_cut(two, rest, one, most, best, codes, K, intervals)
    return trace - best


def small_case(seed):
    "Points, their kernel's width, and the Gram: with ties or without, in groups or not."
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(12, 41)), int(rng.integers(2, 4))
    groups = 3 * rng.normal(size=(CLUSTERS, d))[rng.integers(0, CLUSTERS, n)]
    X = rng.normal(size=(n, d)) + (seed % 2) * groups
    X = np.round(1.5 * X) if seed % 3 == 0 else X
    gamma = scale_gamma(X) * (1, 4)[seed // 2 % 2]
    return X, gamma, as_gram(gaussian(gamma), X, "dense")


def _searched(X, gamma, cuts):
    "The tree of the search alone, without the best tree among its starts."
    y = KernelKMeans(CLUSTERS, gamma=gamma, random_state=0).fit(X).labels_
    search = partial(kxbook.search.best_found, exact=False)
    with mock.patch.object(kxbook.search, "best_found", search):
        model = KernelTree(
            CLUSTERS, max_leaves=SMALL_LEAVES, gamma=gamma, cuts=cuts, random_state=0
        )
        return model.fit(X, reference_labels=y).tree_


def small_row(seed, known):
    "By how much the search misses the optimum of a case, which is computed if it is not known."
    X, gamma, gram = small_case(seed)
    row = {"case": seed, "n": len(X), "d": X.shape[1], "ties": seed % 3 == 0}
    for cuts in ("interval", "threshold"):
        cost = kernel_cost(gram, _searched(X, gamma, cuts).predict(X))
        optimum = known.get(f"optimum, {cuts}")
        if optimum is None:
            codes, orders = by_axis([encode(x) for x in X.T])
            K = gram.times(np.eye(len(X)))
            optimum = best_cost(orders, codes, K, cost, cuts == "interval")
        if cost < optimum * (1 - REACHED):
            raise AssertionError(f"Case {seed}: {cost} is less than the optimum, {optimum}.")
        row |= {f"optimum, {cuts}": optimum, f"missed by, {cuts}": max(cost / optimum - 1, 0.0)}
    return row


def optimum(say, record, cases=CASES):
    "How many of the small cases the search solves; optima that are recorded are not computed again."
    warnings.simplefilter("ignore")
    known, rows = {row["case"]: row for row in record.get("rows", [])}, []
    for seed in range(cases):
        rows.append(small_row(seed, known.get(seed, {})))
        if seed % 20 == 19:
            say(f"{seed + 1} small cases")
    found = {"cases": len(rows), "clusters": CLUSTERS, "leaves": SMALL_LEAVES}
    for cuts in ("interval", "threshold"):
        missed = [row[f"missed by, {cuts}"] for row in rows]
        found[f"reached, {cuts}"] = sum(by <= REACHED for by in missed)
        found[f"worst, {cuts}"] = max(missed)
    return found | {"rows": rows}


def print_optimum(found):
    "What the search reaches, and where it misses most."
    for cuts in ("interval", "threshold"):
        key = f"missed by, {cuts}"
        print(f"\nThe optimum with {cuts} cuts is reached in {found[f'reached, {cuts}']}", end="")
        print(f" of {found['cases']} small cases; the worst:")
        for row in sorted(found["rows"], key=lambda row: -row[key])[:10]:
            if row[key] > REACHED:
                ties = ", ties" if row["ties"] else ""
                print(
                    f"   {row[key]:9.4%}  case {row['case']}: n = {row['n']}, d = {row['d']}{ties}"
                )


def regrown(tree, points, Q, leaves, depth):
    "The tree after pruning one node and growing again, as long as that helps."
    best, improved = table_cost(tree, points.codes, Q), True
    while improved:
        improved = False
        for node, by in ((n, by) for n in np.flatnonzero(tree.left >= 0) for by in (0, 1, 2)):
            new = grow_codes(prune(tree, node, by), points, Q, leaves, depth, False)
            new = recut(new, points, Q, False, True, 20)
            if (cost := table_cost(new, points.codes, Q)) < best:
                tree, best, improved = new, cost, True
                break
    return tree


def fixed_trees(points, Q, leaves, depth):
    "The trees that the functions of the search find for fixed costs, step by step."
    grown = grow_codes(single_leaf(), points, Q, leaves, depth, False)
    moved = recut(grown, points, Q, False, True, 20)
    return {
        "grown": grown,
        "recut": moved,
        "regrown": regrown(moved, points, Q, leaves, depth),
    }


def fixed_row(problem, leaves, depth, run_package):
    "What trees cost against the centres of the reference, beside the cheapest one."
    columns, D = [encode(x, BINS) for x in problem.X.T], problem.D
    points, Q = coded_points(columns), quantise(D)[0]
    features = [c.codes <= t for c in columns for t in range(len(c.values) - 1)]
    given = dict(features=np.column_stack(features).astype(np.int64), costs=D)
    found = run_package("streed", **given, leaves=leaves, depth=depth, limit=LIMIT)
    everybody = np.arange(len(D))
    least = float(D[everybody, found["labels"]].sum())
    row = {"data": problem.data, "width": problem.width, "leaves": leaves, "depth": depth}
    row |= {"optimal": bool(found["optimal"]), "cost": least, "seconds": float(found["seconds"])}
    for name, tree in fixed_trees(points, Q, leaves, depth).items():
        labels = tree.label[leaves_reached(tree, points.codes)]
        row[name] = float(D[everybody, labels].sum()) / least - 1
    return row


def centres(say, problems, run_package):
    "What growing, moving cuts, and pruning and growing again lose to the cheapest tree for fixed costs."
    warnings.simplefilter("ignore")
    rows = []
    for problem in problems:
        for leaves, depth in SHAPES:
            rows.append(fixed_row(problem, leaves, depth, run_package))
        say(f"{problem.data} ×{problem.width}: {rows[-1]['seconds']:.1f} s for the last")
    found = {"cases": len(rows)}
    for name in ("grown", "recut", "regrown"):
        missed = [row[name] for row in rows]
        found[f"reached, {name}"] = sum(by <= REACHED for by in missed)
        found[f"worst, {name}"] = max(missed)
    return found | {"rows": rows}


def print_centres(found):
    "How often the cheapest tree is found, and what is lost at most."
    print(f"\nThe cheapest tree for fixed centres, in {found['cases']} cases")
    for name in ("grown", "recut", "regrown"):
        reached, worst = found[f"reached, {name}"], found[f"worst, {name}"]
        print(f"   {name}: reached in {reached}, missed by at most {worst:.3%}")
    for row in sorted(found["rows"], key=lambda row: -row["regrown"])[:10]:
        if row["regrown"] > REACHED:
            shape = f"{row['leaves']} leaves, depth {row['depth']}"
            print(f"   {row['regrown']:9.3%}  {row['data']} ×{row['width']}, {shape}")
