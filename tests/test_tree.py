"""Trees, cuts and growth on many small cases with ties, and trees from hostile files."""

import json
import time
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.cluster import DBSCAN, SpectralClustering
from sklearn.exceptions import NotFittedError

from kxbook import KernelExKMC, KernelExpand, Tree
from kxbook.columns import encode
from kxbook.data import load_iris, quadratic_xor
from kxbook.grow import check_bins, grow
from kxbook.sweep import brute_cut, cost_unit, sweep, sweep_spec

entries = st.sampled_from(
    [st.integers(0, 1), st.integers(0, 2), st.integers(-3, 3), st.integers(-(10**12), 10**12)]
)  # small ones tie often
tables = st.tuples(st.integers(1, 9), st.integers(1, 4), entries).flatmap(
    lambda t: arrays(np.int64, t[:2], elements=t[2], fill=st.nothing())
)
points = st.tuples(st.integers(1, 25), st.integers(1, 3)).flatmap(
    lambda shape: arrays(
        float,
        shape,
        elements=st.sampled_from([-1e8, -1.0, 0.0, 5e-324, 1.0, 1.0 + 2**-52, 2.0, 1e150]),
    )
)


@given(tables, st.booleans())
def all_intervals(G, threshold):
    assert (
        tuple(map(int, brute_cut(G, threshold))) == sweep(G, threshold) == sweep_spec(G, threshold)
    )


@pytest.mark.parametrize("examples", [300, pytest.param(1500, marks=pytest.mark.slow)])
def test_the_sweep_is_the_search_through_all_intervals(examples):
    settings(max_examples=examples, deadline=None, derandomize=True, database=None)(all_intervals)()


@pytest.mark.parametrize("n", [1, 2, 1000, 2**17, 2**30, 2**40])
@pytest.mark.parametrize("largest", [1e-200, 0.7, 1.0, 1.999, 1e200])
def test_units_of_the_sweep_leave_room_for_sums_and_few_digits_out(n, largest):
    unit = cost_unit(largest, n)
    assert (
        2 * n * (largest / unit) < 2**62
    )  # the sweep adds two sums, and 2**62 stands for more than any cost
    assert unit > largest * 2.0**-44 and (n > 2**17 or unit <= largest * 2.0**-43)


def test_numbers_of_bins():
    assert [check_bins(bins, 10) for bins in (None, "auto", 2, 65_536)] == [None, None, 2, 65_536]
    for bins in (1, 65_537, 2.5, "many"):
        with pytest.raises(ValueError, match="range"):
            check_bins(bins, 10)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1, max_size=30),
    st.none() | st.integers(2, 9),
)
def test_codes_and_ends_agree(values, bins):
    x = np.array(values)
    with np.errstate(over="ignore"):
        if np.isinf(np.ptp(x)):
            x = x / 4
    column = encode(x, bins)
    codes, lo, hi = column.codes, column.lo, column.hi
    for c in range(len(lo)):
        assert ((lo[c] <= x) == (codes >= c)).all() and ((x <= hi[c]) == (codes <= c)).all()
    assert bins is None or len(lo) <= bins


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(
    points,
    st.integers(1, 3),
    st.integers(1, 8),
    st.sampled_from(["interval", "threshold"]),
    st.randoms(use_true_random=False),
)
def test_growth(X, k, m, cuts, random):
    rng = np.random.default_rng(random.randrange(2**32))
    D = rng.integers(0, 4, size=(len(X), k))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree, binned = (grow(X, D, m, cuts=cuts, bins=b) for b in (None, 64))
        order = rng.permutation(len(X))
        shuffled = grow(X[order], D[order], m, cuts=cuts)
    assert tree == binned == shuffled == Tree.from_json(tree.to_json())
    leaf = tree.apply(X)
    assert leaf.min() >= 0 and leaf.max() < tree.n_leaves <= m
    assert (tree.decision_path(X)[:, tree.leaves].sum(1) == 1).all()
    for u in np.unique(leaf):  # a leaf has the label that costs least, up to joined siblings
        assert len(set(tree.predict(X[leaf == u]))) == 1


def test_xor_needs_a_cut_that_gains_nothing():
    X, y = quadratic_xor(7)
    for Model in (KernelExKMC, KernelExpand):
        model = Model(max_leaves=4, base="empty", kernel="quadratic").fit(X, reference_labels=y)
        assert (model.labels_ == y).all() and model.n_leaves_ == 4 and model.price_ == 1


GOOD = Tree(
    [0, 1, -1, -1, -1],
    [0.5, -np.inf, 0, 0, 0],
    [np.inf, 2, 0, 0, 0],
    [1, 2, -1, -1, -1],
    [4, 3, -1, -1, -1],
    [-1, -1, 0, 1, 2],
    2,
).to_json()
HOSTILE = {
    "empty": "",
    "no object": "[1, 2]",
    "other format": '{"format": "pickle"}',
    "deep": "[" * 10**6,
    "deep object": '{"format":' * 10**5,
    "huge integer": json.dumps(json.loads(GOOD) | {"left": [10**30, 2, -1, -1, -1]}),
    "endless integer": '{"format": "kxbook-tree", "version": ' + "9" * 10**5 + "}",
    "infinite end": GOOD.replace("0.5", "1e999"),
    "NaN": GOOD.replace("0.5", "NaN"),
    "Infinity": GOOD.replace("0.5", "Infinity"),
    "cycle": json.dumps(json.loads(GOOD) | {"left": [1, 0, -1, -1, -1]}),
    "own child": json.dumps(json.loads(GOOD) | {"left": [0, 2, -1, -1, -1]}),
    "missing child": json.dumps(json.loads(GOOD) | {"left": [1, 9, -1, -1, -1]}),
    "two parents": json.dumps(json.loads(GOOD) | {"left": [1, 3, -1, -1, -1]}),
    "half a leaf": json.dumps(json.loads(GOOD) | {"right": [4, -1, -1, -1, -1]}),
    "strings": json.dumps(json.loads(GOOD) | {"axis": ["0"] * 5}),
    "booleans": json.dumps(json.loads(GOOD) | {"label": [True] * 5}),
    "floats": json.dumps(json.loads(GOOD) | {"label": [0.5] * 5}),
    "missing array": json.dumps({k: v for k, v in json.loads(GOOD).items() if k != "hi"}),
    "no nodes": json.dumps(
        json.loads(GOOD) | {k: [] for k in ("axis", "lo", "hi", "left", "right", "label")}
    ),
    "no features": json.dumps(json.loads(GOOD) | {"n_features": 0}),
    "negative label": json.dumps(json.loads(GOOD) | {"label": [-1, -1, -7, 1, 2]}),
    "future": json.dumps(json.loads(GOOD) | {"version": 99}),
    "ends reversed": json.dumps(json.loads(GOOD) | {"hi": [0.1, 2, None, None, None]}),
    "too many": json.dumps(json.loads(GOOD) | {"label": [0] * 1_000_001}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused(case):
    with pytest.raises(ValueError, match="not a tree of kxbook"):
        Tree.from_json(HOSTILE[case])


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_a_changed_file_is_a_tree_or_refused(data):
    text = list(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(
            st.sampled_from('0123456789-.,[]{}":naulfe ')
        )
    try:
        tree = Tree.from_json("".join(text))
    except ValueError as e:
        assert "not a tree of kxbook" in str(e)
    else:
        tree.predict(np.zeros((3, tree.n_features)))
        tree.rules()


def test_something_else_than_text_is_refused():
    with pytest.raises(ValueError, match="read from text"):
        Tree.from_json(None)


def test_a_tree_cannot_be_changed():
    tree = Tree.from_json(GOOD)
    with pytest.raises(ValueError):
        tree.lo[0] = 3
    with pytest.raises(AttributeError):
        tree.lo = np.zeros(5)


@pytest.mark.parametrize("clusterer", [SpectralClustering(3, random_state=0), DBSCAN(eps=0.8)])
def test_labels_from_elsewhere(clusterer):
    X, _ = load_iris(return_X_y=True)
    labels = clusterer.fit(X).labels_
    if labels.min() < 0:
        with pytest.raises(ValueError, match="clusterers use -1 for noise"):
            KernelExpand(base="empty").fit(X, reference_labels=labels)
        labels = np.where(labels < 0, labels.max() + 1, labels)
    model = KernelExpand(base="empty").fit(X, reference_labels=labels)
    assert (model.reference_labels_ == labels).all() and (model.labels_ == labels).mean() > 0.9


BAD = {
    "no leaves": (dict(max_leaves=0), {}, "'max_leaves' parameter of KernelExKMC must be"),
    "unknown cuts": (dict(cuts="oblique"), {}, "'cuts' parameter of KernelExKMC must be"),
    "unknown base": (dict(base="cart"), {}, "'base' parameter of KernelExKMC must be"),
    "precomputed": (dict(kernel="precomputed"), {}, "'kernel' parameter of KernelExKMC must be"),
    "one bin": (dict(bins=1), {}, "'bins' parameter of KernelExKMC must be"),
    "too few labels": ({}, dict(reference_labels=[0, 1]), "one per sample"),
    "gaps": ({}, dict(reference_labels=np.repeat([0, 2], 75)), "There is no 1"),
    "words": ({}, dict(reference_labels=["a"] * 150), "must be integers"),
    "numbers": ({}, dict(reference_labels=np.full(150, 0.5)), "must be integers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    X, _ = load_iris(return_X_y=True)
    options, given_, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        KernelExKMC(**{"base": "empty"} | options).fit(X, **given_)


def test_predict_needs_a_fit_and_the_right_columns():
    X, _ = load_iris(return_X_y=True)
    with pytest.raises(NotFittedError):
        KernelExKMC(base="empty").predict(X)
    model = KernelExKMC(3, base="empty", random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but KernelExKMC is expecting 4"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.explain([1.0, 2.0])


def chain(kind, n):
    "A tree of n questions, each below the last one."
    steps, m = np.arange(n), 2 * n + 1
    axis, lo, hi, left, right = (
        np.zeros(m, int),
        np.full(m, -np.inf),
        np.zeros(m),
        np.full(m, -1),
        np.full(m, -1),
    )
    left[2 * steps], right[2 * steps] = (
        (2 * steps + 2, 2 * steps + 1) if kind == "inside" else (2 * steps + 1, 2 * steps + 2)
    )
    hi[2 * steps] = n - steps if kind == "inside" else steps
    if kind == "holes":
        lo[2 * steps], hi[2 * steps] = 2.0 * steps, 2.0 * steps + 1
    return Tree(axis, lo, hi, left, right, np.arange(m) % 3, 2)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "kind, n",
    [
        ("inside", 5_000),
        *(pytest.param(kind, 20_000, marks=SLOW) for kind in ("inside", "beside", "holes")),
    ],
)
def test_a_deep_tree_is_shown_in_time(kind, n):
    "What is shown grows with the tree, not with its depth times its nodes."
    tree = Tree.from_json(chain(kind, n).to_json())
    start = time.process_time()
    text, html, dot, rules = repr(tree), tree._repr_html_(), tree.to_dot(), tree.rules()
    tree.cluster_rules()
    assert time.process_time() - start < 30 * n / 20_000  # seconds of the processor
    assert (
        len(text) < 200 * n
        and text.count("cluster") == n + 1
        and f"|   × {n - 1} |-- no: cluster" in text
    )
    assert html.startswith("<pre>") and dot.count("->") == 2 * n and len(rules) == n + 1
    smaller = chain(kind, 4000)
    tracemalloc.start()
    smaller.rules()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (
        most < 20e6
    )  # a copy of the region for every level would take 8 bytes for each pair of levels
    if kind == "holes":
        assert rules[1].conditions == ("2 ≤ x0 ≤ 3",) and rules[-1].conditions[0].endswith(
            f" or x0 in {n + 1 - 100} more intervals"
        )
    if kind == "inside":
        assert {rule.conditions for rule in rules} == {
            ("x0 ≤ 1",),
            *((f"{i} < x0 ≤ {i + 1}",) for i in range(1, n)),
            (f"x0 > {n}",),
        }


def test_many_conditions_are_counted():
    n = 300
    deep = chain("beside", n)
    axis = np.zeros(2 * n + 1, int)
    axis[0::2] = np.minimum(np.arange(n + 1), n - 1)
    last = Tree(axis, deep.lo, deep.hi, deep.left, deep.right, deep.label, n).rules()[-1]
    assert last.conditions[:2] == ("x0 > 0", "x1 > 1") and last.conditions[100:] == (
        "200 more conditions",
    )
    lines = deep.to_text().splitlines()
    assert lines[2 * 199 + 2].startswith("|   " * 199 + "|-- no") and lines[2 * 200 + 2].startswith(
        "|   × 200 |-- no: x0 ≤ 201?"
    )
