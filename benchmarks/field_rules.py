"""The rules of others for trees with thresholds, written from their papers: Kauri, SpEx, CART, a regression tree on the centres, ExGreedy and ExShallow.

Each takes the columns as codes and returns a tree with at most so many leaves.
"""

from typing import NamedTuple

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from kxbook.columns import compiled
from kxbook.search import nearest_tree
from kxbook.tree import TreeBuilder


@compiled
def pair_sums(K, orders):
    "For each axis, the sums of the kernel over the pairs of the first points, (d, t + 1)."
    d, t = orders.shape
    sums = np.zeros((d, t + 1))
    for axis in range(d):
        order = orders[axis]
        for i in range(t):
            x, across = order[i], 0.0
            row = K[x]
            for j in range(i):
                across += row[order[j]]
            sums[axis, i + 1] = sums[axis, i] + 2 * across + row[x]
    return sums


@compiled
def label_pair_sums(label, k, orders):
    "The same, for the kernel that is 1 for points with one label and 0 for others."
    d, t = orders.shape
    sums = np.zeros((d, t + 1))
    for axis in range(d):
        count = np.zeros(k)
        for i in range(t):
            c = label[orders[axis, i]]
            sums[axis, i + 1] = sums[axis, i] + 2 * count[c] + 1
            count[c] += 1
    return sums


@compiled
def _two_largest(values, home, some):
    "The labels of the two largest values, of clusters that are there, but for one; -1 if none."
    first, second = -1, -1
    for c in range(len(values)):
        if c != home and some[c]:
            if first < 0 or values[c] > values[first]:
                first, second = c, first
            elif second < 0 or values[c] > values[second]:
                second = c
    return first, second


@compiled
def _best_sides(left, right, home, some, new):
    "The labels of the two sides that are worth most, and their worth: what a Kauri split may do."
    a1, a2 = _two_largest(left, home, some)
    b1, b2 = _two_largest(right, home, some)
    if a1 >= 0 and a1 == b1:  # both sides want the same cluster
        mine = a2 < 0 or left[a1] + right[b2] > left[a2] + right[b1]
        pair = (a1, b2) if mine else (a2, b1)
    else:
        pair = a1, b1
    e, f = new
    best, sides = -np.inf, (-1, -1)
    for a, b in ((e, home), (home, e), (e, f), (home, b1), (a1, home), pair):
        if a >= 0 and b >= 0 and left[a] + right[b] > best:
            best, sides = left[a] + right[b], (a, b)
    return best, sides[0], sides[1]


@compiled
def best_kauri(orders, codes, pairs, S, own, q, size, home, noise):
    "The best split of a leaf of a cluster: its gain, axis, last place inside, labels of the sides."
    (d, t), k = orders.shape, len(q)
    leaf, leaf_own, now = np.zeros(k), pairs[0, t], q[home] / size[home]
    for x in orders[0]:
        leaf += S[x]
    q, size = q.copy(), size.copy()  # without the leaf
    size[home] -= t
    q[home] += leaf_own - 2 * leaf[home] if size[home] > 0.5 else -q[home]
    leaf[home] -= leaf_own
    base, some, new, count = np.zeros(k), size > 0.5, np.full(2, -1), 0
    for c in range(k):
        if some[c]:
            base[c] = q[c] / size[c]
        elif c != home and count < 2:
            new[count] = c
            count += 1
    rest, best = base[home] - now, (noise, -1, -1, -1, -1)
    left, right, inside = np.empty(k), np.empty(k), np.empty(k)
    for axis in range(d):
        order, code, part = orders[axis], codes[axis], 0.0
        inside[:] = 0
        for i in range(t - 1):
            x = order[i]
            inside += S[x]
            inside[home] -= own[x]
            part += own[x]
            if code[x] == code[order[i + 1]]:
                continue
            n, yes = i + 1, pairs[axis, i + 1]
            no = leaf_own - 2 * part + yes
            for c in range(k):
                outside = leaf[c] - inside[c]
                left[c] = (q[c] + 2 * inside[c] + yes) / (size[c] + n) - base[c]
                right[c] = (q[c] + 2 * outside + no) / (size[c] + t - n) - base[c]
            value, a, b = _best_sides(left, right, home, some, (new[0], new[1]))
            if value + rest > best[0]:
                best = value + rest, axis, i, a, b
    return best


@compiled
def best_graph_cut(orders, codes, pairs, back, degree):
    "The cut of a leaf that raises the normalised cut least: minus by how much, axis, last place inside."
    d, t = orders.shape
    whole = 0.0
    for x in orders[0]:
        whole += degree[x]
    kept, best = pairs[0, t] / whole, (-np.inf, -1, -1)
    for axis in range(d):
        order, code, volume = orders[axis], codes[axis], 0.0
        for i in range(t - 1):
            volume += degree[order[i]]
            if code[order[i]] == code[order[i + 1]]:
                continue
            sides = pairs[axis, i + 1] / volume + back[axis, t - i - 1] / (whole - volume)
            if sides - kept - 1 > best[0]:
                best = sides - kept - 1, axis, i
    return best


class _Leaf(NamedTuple):
    "A leaf of a tree that grows."

    node: int  # its number
    orders: np.ndarray  # (d, t) its points in the order of each axis
    known: tuple  # what need not be computed again


def by_axis(columns):
    "Codes of the points, a row for each axis, and the points in their order."
    codes = np.array([column.codes for column in columns])
    return codes, np.argsort(codes, axis=1, kind="stable")


class _Growth:
    "A tree that grows leaf by leaf."

    def __init__(self, columns, know):
        self.columns, self.builder = columns, TreeBuilder(len(columns))
        self.codes, orders = by_axis(columns)
        self.know = know  # what is computed once for each leaf, from its orders
        self.leaves = [_Leaf(0, orders, know(orders))]

    def split(self, i, axis, last):
        "Split a leaf after a place of an axis; the two leaves are the last ones."
        leaf = self.leaves.pop(i)
        cut = self.codes[axis, leaf.orders[axis, last]]
        inside = self.codes[axis] <= cut
        nodes = self.builder.split(leaf.node, axis, -np.inf, self.columns[axis].hi[cut])
        for node, mine in zip(nodes, (inside, ~inside)):
            orders = np.array([order[mine[order]] for order in leaf.orders])
            self.leaves.append(_Leaf(node, orders, self.know(orders)))

    def tree(self, label):
        "The tree, with a label for each leaf, from its points."
        self.builder.labels = {leaf.node: int(label(leaf.orders[0])) for leaf in self.leaves}
        return self.builder.build()


def kauri(columns, K, k, max_leaves):
    "The tree that Kauri grows: a tree and its clusters together, by what a split gains in the cost."
    K, n = np.ascontiguousarray(K), len(K)
    label, noise = np.zeros(n, dtype=int), 1e-12 * float(np.trace(K))

    def know(orders):
        own, points = np.zeros(n), orders[0]
        own[points] = K[np.ix_(points, points)].sum(1)
        return pair_sums(K, orders), own

    growth = _Growth(columns, know)
    while len(growth.leaves) < max_leaves:
        V = np.eye(k)[label]
        S, size = K @ V, V.sum(0)
        q = (S * V).sum(0)
        found = [
            best_kauri(orders, growth.codes, pairs, S, own, q, size, label[orders[0, 0]], noise)
            for _, orders, (pairs, own) in growth.leaves
        ]
        i = max(range(len(found)), key=lambda i: found[i][0])
        gain, axis, last, *sides = found[i]
        if axis < 0:
            break
        growth.split(i, axis, last)
        for leaf, side in zip(growth.leaves[-2:], sides):
            label[leaf.orders[0]] = side
    return growth.tree(lambda points: label[points[0]])


def _by_graph(columns, know, degree, max_leaves):
    "A growth that keeps the normalised cut of the leaves small."
    growth = _Growth(columns, lambda orders: (know(orders), know(orders[:, ::-1].copy())))
    while len(growth.leaves) < max_leaves:
        found = [
            best_graph_cut(orders, growth.codes, *known, degree)
            for _, orders, known in growth.leaves
        ]
        i = max(range(len(found)), key=lambda i: found[i][0])
        _, axis, last = found[i]
        if axis < 0:
            break
        growth.split(i, axis, last)
    return growth


def _majority(y):
    "The label that most of some points have."
    return lambda points: np.bincount(y[points]).argmax()


def spex(columns, y, max_leaves):
    "SpEx for given clusters: the graph has an edge between any two points of a cluster."
    k = int(y.max()) + 1
    degree = np.bincount(y, minlength=k)[y].astype(float)
    growth = _by_graph(columns, lambda orders: label_pair_sums(y, k, orders), degree, max_leaves)
    return growth.tree(_majority(y))


def spex_kernel(columns, K, y, max_leaves):
    "SpEx with the kernel as its graph; with k leaves each is a cluster, with more they are named."
    K = np.ascontiguousarray(K)
    growth = _by_graph(columns, lambda orders: pair_sums(K, orders), K.sum(1), max_leaves)
    if max_leaves > y.max() + 1:
        return growth.tree(_majority(y))
    number = {leaf.orders[0, 0]: i for i, leaf in enumerate(growth.leaves)}
    return growth.tree(lambda points: number[points[0]])


def _from_sklearn(model, columns, label):
    "A tree of scikit-learn on codes as a tree of the package, with a label for each node."
    tree, builder, todo = model.tree_, TreeBuilder(len(columns)), [(0, 0)]
    while todo:
        node, source = todo.pop()
        if tree.children_left[source] < 0:
            builder.labels[node] = int(label[source])
            continue
        axis = int(tree.feature[source])
        end = columns[axis].hi[int(tree.threshold[source])]
        children = tree.children_left[source], tree.children_right[source]
        todo += zip(builder.split(node, axis, -np.inf, end), children)
    return builder.build()


def _codes(columns):
    "The codes of all points, (n, d): exact in the single precision of scikit-learn."
    return np.column_stack([column.codes for column in columns])


def cart(columns, y, max_leaves):
    "CART for the reference labels."
    model = DecisionTreeClassifier(max_leaf_nodes=max_leaves, random_state=0)
    model.fit(_codes(columns), y)
    return _from_sklearn(model, columns, model.classes_[model.tree_.value[:, 0].argmax(1)])


def regression(columns, K, y, max_leaves):
    "A regression tree to the centre of each point's cluster, in the space of the kernel."
    V = np.eye(y.max() + 1)[y] / np.bincount(y)
    values, vectors = np.linalg.eigh(V.T @ K @ V)
    centres = vectors * np.sqrt(np.maximum(values, 0))  # with the same inner products
    model = DecisionTreeRegressor(max_leaf_nodes=max_leaves, random_state=0)
    model.fit(_codes(columns), centres[y])
    means = model.tree_.value[:, :, 0]
    away = (centres**2).sum(1) - 2 * means @ centres.T
    return _from_sklearn(model, columns, away.argmin(1))


def nearest(columns, X, D, y, depth_penalty):
    "ExGreedy, or ExShallow with a penalty: cuts between centres, by distances to the nearest one left."
    V = np.eye(y.max() + 1)[y] / np.bincount(y)
    values = [mean[None] for mean in (V.T @ X).T]
    weight = np.ones(len(X))
    return nearest_tree(columns, D, weight, values, depth_penalty=depth_penalty, cuts="threshold")
