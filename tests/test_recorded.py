"""Two hundred fits, recorded: a change that is meant to change nothing changes none of them.

    .venv/bin/python tests/test_recorded.py     # records them anew, in tests/fits.json; the differences are printed

Trees and labels must be the same; numbers may differ as far as sums in another order do.
"""

import hashlib
import json
import math
import warnings
from itertools import product
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from sklearn.datasets import make_blobs

from kxbook import IMM, KernelExKMC, KernelExpand, KernelIMM, KernelKMeans, KernelTree
from kxbook.data import load_iris
from kxbook.kernel import distance, epsilon
from kxbook.tables import partition_array

RECORD = Path(__file__).parent / "fits.json"
SURROGATES = {
    "gaussian": ("root", "taylor", "landmark"),
    "laplace": ("exact", "landmark"),
    "linear": ("auto",),
    "hellinger": ("auto",),
    "intersection": ("auto",),
    "chi2": ("quadrature", "riemann"),
}


def cauchy(t):
    return 1 / (1 + t**2)


def data():
    "Points without ties, points with ties and copies, flowers; each with clusters that somebody else has found."
    rng = np.random.default_rng(0)
    X, y = make_blobs(150, 3, centers=4, cluster_std=2.5, random_state=0)
    X = X - X.min(0)
    Z = rng.integers(0, 6, size=(90, 2)).astype(float)
    iris, species = load_iris(return_X_y=True)
    return {"blobs": (X, y), "ties": (Z, (Z.sum(1) % 3).astype(int)), "iris": (iris, species)}


def cases():
    "Name, estimator, name of the data, whether it is told the clusters, and the form of the data."
    for kernel, gram, name in product(
        ("gaussian", "laplace", "linear", "chi2", "quadratic"),
        ("auto", "dense", "streamed", "nystroem"),
        ("blobs", "ties"),
    ):
        rank = {"rank": 20} if gram == "nystroem" else {}
        yield KernelKMeans(3, kernel=kernel, gram=gram, random_state=0, **rank), name, False, ""
    for candidates, bins, name, told in product(
        ("all", "midpoints"), (None, 8), ("blobs", "ties", "iris"), (False, True)
    ):
        yield IMM(3, candidates=candidates, bins=bins, random_state=0), name, told, ""
    for kernel, names in SURROGATES.items():
        for surrogate, candidates, name in product(names, ("all", "midpoints"), ("blobs", "iris")):
            options = dict(kernel=kernel, surrogate=surrogate, candidates=candidates)
            yield KernelIMM(3, random_state=0, **options), name, candidates == "all", ""
    for Model, base, cuts, kernel, name in product(
        (KernelExKMC, KernelExpand),
        ("imm", "empty"),
        ("interval", "threshold"),
        ("gaussian", "laplace", "linear"),
        ("blobs", "ties"),
    ):
        options = dict(max_leaves=6, base=base, cuts=cuts, kernel=kernel, random_state=0)
        yield Model(3, **options), name, kernel == "laplace", ""
    for Model, form, kernel in product(
        (IMM, KernelIMM, KernelExKMC, KernelExpand, KernelKMeans),
        ("pieces", "dask"),
        ("gaussian", "linear"),
    ):
        options = {} if Model is IMM else dict(kernel=kernel, rank=20)
        if Model is not IMM or kernel == "linear":
            yield Model(3, random_state=0, **options), "blobs", False, form
    for kernel, leaves in product(("gaussian", "laplace", "quadratic"), (3, 5)):
        yield KernelTree(3, max_leaves=leaves, kernel=kernel, random_state=0), "ties", True, ""
    for kernel in (epsilon(1.5), distance(cauchy)):
        yield KernelExKMC(3, kernel=kernel, base="empty", random_state=0), "ties", False, ""
        yield KernelKMeans(3, kernel=kernel, random_state=0), "blobs", False, ""
    for gram, bins, gamma in product(("streamed", "nystroem"), (None, 8), (0.05, 1.0)):
        options = dict(gram=gram, bins=bins, gamma=gamma, rank=30, random_state=0)
        yield KernelExKMC(4, **options), "blobs", True, ""
    for Model, bins, leaves in product((KernelExKMC, KernelExpand), (None, 8), (3, 4, 9)):
        yield Model(3, bins=bins, max_leaves=leaves, random_state=0), "iris", False, ""
    for init, dtype in product(("random", "k-means++"), ("float32", "float64")):
        yield KernelKMeans(4, init=init, dtype=dtype, random_state=0), "iris", False, ""


def title(model, name, told, form):
    usual, given = type(model)().get_params(), model.get_params()
    changed = {k: getattr(v, "name", v) for k, v in given.items() if v is not usual[k]}
    words = ", ".join(f"{k}={v}" for k, v in changed.items() if k != "random_state")
    return f"{type(model).__name__}({words}) on {name}{', told' * told}{', ' * bool(form)}{form}"


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def outcome(model, name, told, form):
    "Tree and labels, as digests, and the numbers of a fit and its certificate."
    X, y = data()[name]
    given = {
        "pieces": lambda: partition_array(X, 40),
        "dask": lambda: da.from_array(X, chunks=(40, -1)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"reference_labels": y} if told else {}
        model.fit(given[form]() if form else X, **options)
        labels = np.asarray(model.labels_).astype("<i8")
        if isinstance(model, KernelKMeans):
            return {"labels": digest(labels.tobytes()), "numbers": [model.inertia_]}
        c = model.certificate()
    numbers = [model.cost_, model.reference_cost_, c.lower_bound, c.price_upper, c.worst_case]
    numbers += [c.one_cluster_price, *(line.value for line in c.proof)]
    tree = digest(model.tree_.to_json().encode())
    return {
        "tree": tree,
        "labels": digest(labels.tobytes()),
        "numbers": [float(v) for v in numbers],
    }


CASES = {title(*case): case for case in cases()}


@pytest.fixture(scope="module")
def recorded():
    return json.loads(RECORD.read_text(encoding="utf-8"))


def test_there_are_two_hundred(recorded):
    assert set(recorded) == set(CASES) and len(CASES) >= 200


def differences(found, wanted):
    "What is not as it was recorded."
    wrong = [key for key in wanted if key != "numbers" and found[key] != wanted[key]]
    pairs = list(zip(found["numbers"], wanted["numbers"]))
    same = len(found["numbers"]) == len(wanted["numbers"]) and all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or a == b or a != a and b != b
        for a, b in pairs
    )
    return wrong if same else [*wrong, f"numbers {pairs}"]


@pytest.mark.parametrize("name", CASES)
def test_a_fit_is_as_it_was(name, recorded):
    assert not differences(outcome(*CASES[name]), recorded[name])


if __name__ == "__main__":
    before = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    now = {name: outcome(*case) for name, case in CASES.items()}
    for name in now:
        if name in before and (changed := differences(now[name], before[name])):
            print(name, changed)
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(now[name])}" for name in sorted(now))
    RECORD.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    print(len(now), "fits recorded")
