"""Whatever holds the numbers, wherever the model runs: the estimators say the same.

Of an input only its values count, as float64: float32, integers and booleans give what their copy in float64 gives, to the last digit, and so do frames, lists and arrays of any
layout. A fitted model can be copied, stored and sent to other threads and processes.
"""

import copy
import json
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import test_estimators
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from kxbook import IMM, KernelExKMC, KernelExpand, KernelIMM, KernelKMeans, KernelTree

MODELS = {
    "KernelKMeans": KernelKMeans(3, gamma=1.0, n_init=2, random_state=0),
    "KernelKMeans linear": KernelKMeans(3, kernel="linear", n_init=2, random_state=0),
    "KernelKMeans streamed": KernelKMeans(3, gamma=1.0, gram="streamed", n_init=1, random_state=0),
    "KernelKMeans nystroem": KernelKMeans(
        3, gamma=1.0, gram="nystroem", rank=15, n_init=2, random_state=0
    ),
    "IMM": IMM(3, random_state=0),
    "KernelIMM": KernelIMM(3, gamma=1.0, random_state=0),
    "KernelExKMC": KernelExKMC(3, kernel="laplace", random_state=0),
    "KernelExpand": KernelExpand(3, gamma=1.0, random_state=0),
    "KernelTree": KernelTree(3, gamma=1.0, random_state=0),
}
CLASSES = {type(model) for model in MODELS.values()}
SIX = [
    kind.__name__ for kind in (KernelKMeans, IMM, KernelIMM, KernelExKMC, KernelExpand, KernelTree)
]
every_model = pytest.mark.parametrize("name", MODELS)
every_estimator = pytest.mark.parametrize("name", SIX)


def points(n=30, seed=0):
    "Three groups in three columns; some rows are copies."
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + np.repeat([[0, 0, 0], [4, 0, 2], [0, 5, 1]], n // 3, axis=0)
    X[7], X[-3] = X[5], X[1]
    return X


def fit(name, X, **more):
    return clone(MODELS[name]).fit(X, **more)


def said(model, X):
    "All that a fitted model says about data: labels, predictions, cost, width, tree."
    cost = model.inertia_ if isinstance(model, KernelKMeans) else model.cost_
    tree = (
        model.transform(X).tolist()
        if isinstance(model, KernelKMeans)
        else [
            model.tree_.to_json(),
            model.price_,
            model.feature_importances_.tolist(),
            model.apply(X).tolist(),
        ]
    )
    return {
        "labels": model.labels_.tolist(),
        "predictions": model.predict(X).tolist(),
        "cost": cost,
        "gamma": model.gamma_,
        "tree": tree,
    }


def on_disk(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def strided(X, step):
    "A view on every step-th number of a larger array."
    wide = np.full((step * len(X), step * X.shape[1]), np.nan)
    wide[::step, ::step] = X
    return wide[::step, ::step]


NAMES = ["a", "b", "c"]
HOLDERS = {
    "pandas": lambda X, _: pd.DataFrame(X, columns=NAMES),
    "pandas with an odd index": lambda X, _: pd.DataFrame(
        X, columns=NAMES, index=np.arange(len(X))[::-1] * 2
    ),
    "pandas with nullable numbers": lambda X, _: pd.DataFrame(X, columns=NAMES).astype("Float64"),
    "polars": lambda X, _: pl.DataFrame(X, schema=NAMES),
    "lists": lambda X, _: X.tolist(),
    "tuples of arrays": lambda X, _: tuple(X),
    "objects": lambda X, _: X.astype(object),
    "read-only": lambda X, _: read_only(X),
    "on disk": on_disk,
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "every other row": lambda X, _: np.repeat(X, 2, axis=0)[::2],
    "columns backwards": lambda X, _: X[:, ::-1].copy()[:, ::-1],
    "rows backwards": lambda X, _: X[::-1].copy()[::-1],
    "every third number": lambda X, _: strided(X, 3),
    "not aligned": lambda X, _: (
        np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(X.shape)
    ),
    "other byte order": lambda X, _: X.astype(X.dtype.newbyteorder()),
    "long doubles": lambda X, _: X.astype(np.longdouble),
}


@pytest.fixture(scope="module")
def expected():
    "What each model says on the plain array."
    X = points()
    return X, {name: (model := fit(name, X), said(model, X)) for name in MODELS}


@every_model
@pytest.mark.parametrize("holder", HOLDERS)
def test_what_holds_the_numbers_does_not_matter(name, holder, expected, tmp_path):
    X, models = expected
    held = HOLDERS[holder](X, tmp_path)
    model, (plain, wanted) = fit(name, held), models[name]
    assert said(model, held) == wanted
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X (does not have|has) .*feature names")
        assert said(plain, held) == wanted and said(model, X) == wanted


@every_estimator
@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float16, np.int64, np.int8, np.uint16, np.bool_],
    ids=lambda t: t.__name__,
)
def test_other_numbers_are_as_good_as_their_copy_in_float64(name, dtype):
    X = points() > 1.0 if dtype is np.bool_ else (points() + 10).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few different rows
        few, wide = fit(name, X), fit(name, X.astype(np.float64))
    assert said(few, X) == said(wide, X.astype(np.float64)) == said(few, X.astype(np.float64))


@every_estimator
def test_the_input_is_not_changed(name):
    X = points()
    before, labels = X.copy(), fit(name, X).labels_
    model = fit(name, X)
    for use in ("predict", "transform", "score", "apply", "decision_path"):
        getattr(model, use, model.predict)(X)
    assert X.tobytes() == before.tobytes()
    X[:] = 1e6  # and the model has no need of it any more
    assert (model.predict(before) == labels).all() and (model.labels_ == labels).all()
    if isinstance(model, KernelKMeans):
        weights = read_only(np.linspace(0, 2, len(before)))
        assert (fit(name, before, sample_weight=weights).labels_ >= 0).all()
    else:
        assert fit(
            name, before, reference_labels=read_only(model.reference_labels_)
        ).certificate().price == pytest.approx(model.price_)


@every_estimator
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_columns(name, frame):
    X = points()
    table = frame(dict(zip(NAMES, X.T)))
    model = fit(name, table)
    assert model.feature_names_in_.tolist() == NAMES and model.n_features_in_ == 3
    for use in ("predict", "transform", "apply", "decision_path"):
        if not hasattr(model, use):
            continue
        call = getattr(model, use)
        with pytest.raises(ValueError, match="feature names should match"):
            call(frame(dict(zip(["a", "b", "z"], X.T))))
        with pytest.raises(ValueError, match="feature names should match|same order"):
            call(table[["b", "a", "c"]])
        with pytest.raises(ValueError, match="2 features|feature names should match"):
            call(table[["a", "b"]])
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            call(X)
    if hasattr(model, "export_text"):
        assert set(model.export_text()) & set("abc") and any(
            n in " ".join(model.explain(X[0])) for n in NAMES
        )
    assert not hasattr(model.fit(X), "feature_names_in_")


@pytest.mark.parametrize("name", [name for name in SIX if name != "KernelKMeans"])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_one_row(name, frame):
    X = points()
    table = frame(dict(zip(NAMES, X.T)))
    model = fit(name, table)
    right = model.explain(X[0])
    assert model.explain(table[:1]) == model.explain(X[:1]) == model.explain(X[0].tolist()) == right
    with pytest.raises(ValueError, match="feature names should match|same order"):
        model.explain(table[["b", "a", "c"]][:1])
    with pytest.raises(ValueError, match="explain takes one point"):
        model.explain(table[:2])
    if frame is pd.DataFrame:
        assert model.explain(table.iloc[0]) == model.explain(pd.Series(X[0])) == right
        with pytest.raises(ValueError, match="feature names should match|same order"):
            model.explain(table[["b", "a", "c"]].iloc[0])
        assert fit(name, X).explain(table.iloc[0]) == fit(name, X).explain(X[0])


@every_estimator
@pytest.mark.parametrize(
    "column", ["pieces", "toarray", "chunks", "columns", "index", "__dask_graph__", "to_frame"]
)
def test_a_column_may_have_any_name(name, column):
    X = points()
    table = pd.DataFrame(dict(zip(["a", column, "c"], X.T)))
    model, plain = fit(name, table), fit(name, X)
    assert (model.labels_ == plain.labels_).all() and (model.predict(table) == plain.labels_).all()
    if name != "KernelKMeans":
        assert (
            model.tree_.predict(table) == plain.labels_
        ).all()  # the tree checks its points itself
        assert [len(model.explain(row)) for row in (table[:1], table.iloc[0])] == 2 * [
            len(plain.explain(X[0]))
        ]


@pytest.mark.parametrize(
    "output, frame", [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("default", np.ndarray)]
)
def test_distances_come_as_is_asked(output, frame):
    X, plain = points(), fit("KernelKMeans", points())
    model = clone(MODELS["KernelKMeans"]).set_output(transform=output)
    found = model.fit_transform(pd.DataFrame(X, columns=NAMES, index=range(100, 130)))
    names = [f"kernelkmeans{c}" for c in range(3)]
    assert isinstance(found, frame) and model.get_feature_names_out().tolist() == names
    np.testing.assert_array_equal(np.asarray(found), plain.transform(X))
    if output != "default":
        assert list(found.columns) == names
    if output == "pandas":
        assert found.index.tolist() == list(range(100, 130))
        scaled = make_pipeline(StandardScaler(), clone(model)).set_output(transform="pandas").fit(X)
        assert (
            scaled.get_feature_names_out().tolist() == names
            and list(scaled.transform(X).columns) == names
        )
    assert {
        hasattr(m, "transform") for m in map(MODELS.get, MODELS) if not isinstance(m, KernelKMeans)
    } == {False}


def through_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib", compress=3)
    return joblib.load(folder / "model.joblib")


def from_disk(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib", mmap_mode="r")  # its arrays are read-only


COPIES = {
    "pickle": lambda m, _: pickle.loads(pickle.dumps(m)),
    "copy": lambda m, _: copy.copy(m),
    "deepcopy": lambda m, _: copy.deepcopy(m),
    "joblib": through_joblib,
    "joblib from disk": from_disk,
}


@every_model
@pytest.mark.parametrize("way", COPIES)
def test_fitted_models_can_be_copied(name, way, expected, tmp_path):
    X, models = expected
    model, wanted = models[name]
    again, new = COPIES[way](model, tmp_path), points(seed=9)
    assert (
        said(again, X) == wanted
        and (again.predict(new) == model.predict(new)).all()
        and repr(again) == repr(model)
    )
    if not isinstance(model, KernelKMeans):
        assert (
            str(again.certificate()) == str(model.certificate())
            and again.export_text() == model.export_text()
        )
    if way in ("copy", "joblib from disk"):
        assert (
            said(again.fit(X), X) == wanted and said(model, X) == wanted
        )  # a copy can be fitted again


@pytest.mark.slow
def test_models_are_read_by_another_process(expected, tmp_path):
    X, models = expected
    joblib.dump(([model for model, _ in models.values()], X), tmp_path / "models.joblib")
    code = f"import joblib, json; models, X = joblib.load({str(tmp_path / 'models.joblib')!r}); print(json.dumps([m.predict(X).tolist() for m in models]))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(found) == [wanted["predictions"] for _, wanted in models.values()]


@every_estimator
def test_clones(name, expected):
    X, models = expected
    model, wanted = models[name]
    for source in (MODELS[name], model):
        fresh = clone(source)
        assert fresh.get_params() == source.get_params() and type(fresh) is type(source)
        assert not [attribute for attribute in vars(fresh) if attribute.endswith("_")]
        with pytest.raises(NotFittedError):
            check_is_fitted(fresh)
        with pytest.raises(NotFittedError):
            fresh.predict(X)
        assert said(fresh.fit(X), X) == wanted
    again = clone(model).set_params(n_clusters=2)
    assert again.n_clusters == 2 and model.n_clusters == 3
    assert len(set(again.fit(X).labels_)) == 2 and said(model, X) == wanted


@every_estimator
def test_a_second_fit_forgets_the_first(name, expected):
    X, models = expected
    assert (
        said(fit(name, pd.DataFrame(points(45, seed=3)[:, :2]).add_prefix("x")).fit(X), X)
        == models[name][1]
    )


# Pipelines and searches


@every_estimator
def test_in_a_pipeline(name):
    X = points() * [1, 1e3, 1e-3]
    pipe = make_pipeline(StandardScaler(), clone(MODELS[name])).fit(X)
    step, Z = pipe.steps[-1][0], StandardScaler().fit_transform(X)
    direct = fit(name, Z)
    assert (
        said(pipe[-1], Z) == said(direct, Z)
        and (pipe.predict(X) == direct.labels_).all()
        and (clone(pipe).fit_predict(X) == direct.labels_).all()
    )
    pipe.set_params(**{f"{step}__n_clusters": 2})
    assert pipe.get_params()[f"{step}__n_clusters"] == 2
    assert (
        pipe.fit(X).predict(X) == clone(MODELS[name]).set_params(n_clusters=2).fit(Z).predict(Z)
    ).all()
    with pytest.raises(ValueError, match="Invalid parameter 'no_such'"):
        pipe.set_params(**{f"{step}__no_such": 1})


@every_estimator
@pytest.mark.parametrize("routing", [False, True])
def test_what_belongs_to_rows_goes_through_a_pipeline(name, routing):
    X, rng = points(), np.random.default_rng(1)
    given = (
        {"sample_weight": rng.integers(0, 4, size=30).astype(float)}
        if isinstance(MODELS[name], KernelKMeans)
        else {"reference_labels": np.r_[0, 1, 2, rng.integers(3, size=27)]}
    )
    Z = StandardScaler().fit_transform(X)
    wanted = said(fit(name, Z, **given), Z)
    assert wanted != said(fit(name, Z), Z)
    with sklearn.config_context(enable_metadata_routing=routing):
        model = clone(MODELS[name])
        if routing:
            model.set_fit_request(**dict.fromkeys(given, True))
            scaler = StandardScaler()
            pipe = make_pipeline(scaler.set_fit_request(sample_weight=False), model).fit(X, **given)
        else:
            pipe = make_pipeline(StandardScaler(), model)
            pipe.fit(X, **{f"{pipe.steps[-1][0]}__{key}": value for key, value in given.items()})
        assert said(pipe[-1], Z) == wanted


GRIDS = {
    "KernelKMeans": {"gamma": [1e-4, 1.0, 300.0]},
    "IMM": {"n_clusters": [2, 3, 5]},
    "KernelIMM": {"gamma": [1e-4, 1.0, 300.0]},
    "KernelExKMC": {"gamma": [1e-4, 1.0], "max_leaves": [3, 6]},
    "KernelExpand": {"max_leaves": [3, 6], "gamma": [1e-4, 1.0]},
    "KernelTree": {"gamma": [1e-4, 1.0]},
}


@pytest.mark.parametrize("name", GRIDS)
def test_grid_search_picks_the_best_and_refits(name):
    X, y = points(), np.repeat(range(3), 10)
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(
        clone(MODELS[name]), GRIDS[name], scoring="adjusted_rand_score", cv=folds
    ).fit(X, y)
    for setting, mean in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
        scores = [
            adjusted_rand_score(
                y[test], clone(MODELS[name]).set_params(**setting).fit(X[train]).predict(X[test])
            )
            for train, test in folds.split(X)
        ]
        assert np.isclose(np.mean(scores), mean)
    assert (
        search.best_score_ == search.cv_results_["mean_test_score"].max()
        and len(set(search.cv_results_["mean_test_score"])) > 1
    )
    assert said(search.best_estimator_, X) == said(
        clone(MODELS[name]).set_params(**search.best_params_).fit(X), X
    )
    assert (search.predict(X) == search.best_estimator_.predict(X)).all()


def test_grid_search_by_the_score_of_kernel_k_means():
    X = points()
    search = GridSearchCV(
        clone(MODELS["KernelKMeans linear"]), {"n_clusters": [1, 2, 3]}, cv=3
    ).fit(X[np.random.default_rng(0).permutation(30)])
    means = search.cv_results_["mean_test_score"]
    assert search.best_params_ == {"n_clusters": 3} and means[0] < means[1] < means[2] < 0


def test_trees_have_no_score_of_their_own():
    for name in GRIDS:
        assert hasattr(MODELS[name], "score") == (name == "KernelKMeans")
    with pytest.raises(TypeError, match="scoring"):
        GridSearchCV(clone(MODELS["KernelTree"]), GRIDS["KernelTree"]).fit(points())


# Threads and processes


def told(name, seed):
    "What a model says, as a task for others."
    return said(fit(name, points(seed=seed)), points(seed=seed))


TASKS = [(name, seed) for seed in (0, 4) for name in SIX]


@pytest.fixture(scope="module")
def alone():
    return [told(*task) for task in TASKS]


def test_in_threads(alone):
    filters, show = list(warnings.filters), warnings.showwarning
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda task: told(*task), TASKS)) == alone
        trees = [
            TASKS.index(("KernelTree", seed)) for seed in (0, 4)
        ] * 4  # several of the longest at once
        assert list(pool.map(lambda i: told(*TASKS[i]), trees)) == [alone[i] for i in trees]
    assert warnings.filters == filters and warnings.showwarning is show


def test_one_model_predicts_in_many_threads(expected):
    X, models = expected
    with ThreadPoolExecutor(6) as pool:
        for name, (model, wanted) in models.items():
            assert all(
                found == wanted["predictions"]
                for found in pool.map(lambda _: model.predict(X).tolist(), range(12))
            ), name


@pytest.mark.slow
def test_in_processes(alone):
    assert (
        joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(told)(*task) for task in TASKS)
        == alone
    )


@pytest.mark.slow
def test_in_spawned_processes_and_threads_at_once(alone):
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as others,
        ThreadPoolExecutor(3) as pool,
    ):
        there = [others.submit(told, *task) for task in TASKS]
        here = [pool.submit(told, *task) for task in TASKS]
        assert [f.result() for f in there] == alone and [f.result() for f in here] == alone


def test_with_the_threads_of_joblib(alone):
    assert (
        joblib.Parallel(n_jobs=3, backend="threading")(
            joblib.delayed(told)(*task) for task in TASKS
        )
        == alone
    )


# scikit-learn's own checks


def test_scikit_learn_checks_every_estimator_and_excuses_none():
    for test in (
        test_estimators.test_scikit_learn_checks,
        test_estimators.test_scikit_learn_checks_of_other_settings,
    ):
        (mark,) = [m for m in test.pytestmark if m.name == "parametrize"]
        marks = [m for case in mark.args[1] for m in getattr(case, "marks", ())]
        assert not [m for m in marks if m.name == "xfail"]
    seen = {}
    for estimator in [*test_estimators.USUAL, *test_estimators.OTHER]:
        seen.setdefault(type(estimator), set()).add(repr(estimator))
    assert set(seen) == CLASSES
    for kind, settings in seen.items():
        assert repr(kind()) in settings and len(settings) >= 2, kind
