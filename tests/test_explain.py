"""`kxbook.explain`: one call for every kind of table, and the same result as the command."""

import inspect
import json
import os
import sqlite3
from decimal import Decimal

import duckdb
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import DBSCAN, KMeans

import kxbook
from kxbook import Explanation, explain
from kxbook.cli import main
from kxbook.data import load_iris
from kxbook.report import METHODS, scale_columns
from kxbook.report.table import Reading, Table, UserError, cells_of, read_table

NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


@pytest.fixture(scope="module")
def frame():
    X, y = load_iris(return_X_y=True)
    table = pd.DataFrame(X, columns=NAMES)
    table.loc[3, "sepal width"] = None
    table["size"] = np.where(X[:, 2] > 4.5, "large", "small")
    table["species"] = np.array(["setosa", "versicolor", "virginica"])[y]
    return table


@pytest.fixture(scope="module")
def files(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    frame.to_csv(folder / "iris.csv", index=False)
    frame.to_parquet(folder / "iris.parquet")
    return folder


OPTIONS = dict(truth="species", one_hot=True, impute="median", leaves=5)
WORDS = ["--truth", "species", "--one-hot", "--impute", "median", "--leaves", "5"]


def content(explanation):
    "What a document says, but for how it was asked for."
    document = json.loads(explanation.to_json())
    document["settings"].pop("command", None)
    return document


def test_every_kind_of_table_gives_what_the_command_gives(frame, files, capsys):
    path = files / "iris.csv"
    assert main(["explain", str(path), "-k", "3", *WORDS, "--json", "-", "-q"]) == 0
    command = json.loads(capsys.readouterr().out)
    command["settings"].pop("command")
    kinds = {
        "path": path,
        "text": str(path),
        "parquet": files / "iris.parquet",
        "pandas": frame,
        "nullable": frame.convert_dtypes(),
        "polars": pl.read_csv(path),
        "lazy": pl.scan_csv(path),
        "pyarrow": pa.Table.from_pandas(frame),
        "table": read_table(frame, Reading(one_hot=True, impute="median"), ["species"]),
    }
    for kind, table in kinds.items():
        read = {"one_hot": False, "impute": None} if kind == "table" else {}
        explanation = explain(table, 3, **OPTIONS | read)
        assert content(explanation) == command, kind
        assert explanation.left_out == {} and explanation.truth[0] == "species"
        assert [f.name for f in explanation.features][-1] == "size: small"


def test_an_array_has_numbered_columns_and_is_not_changed():
    X, _ = load_iris(return_X_y=True)
    before = X.copy()
    X.flags.writeable = False
    explanation = explain(X, 3, leaves=4)
    assert [f.name for f in explanation.features] == ["x0", "x1", "x2", "x3"]
    assert (explanation.assign(X) == explanation.labels).all() and (X == before).all()
    assert content(explain(X.tolist(), 3, leaves=4)) == content(explanation)


def test_labels_are_an_array_a_column_or_a_clusterer(frame, capsys):
    numbers = frame[NAMES].fillna(3.0)
    by_column = explain(frame, labels="species", impute="mean", leaves=4)
    assert by_column.clusters == ["setosa", "versicolor", "virginica"]
    by_array = explain(frame, labels=frame["species"], impute="mean", leaves=4, drop="species")
    assert content(by_column) == content(by_array)
    model = KMeans(3, n_init=2, random_state=0).fit(numbers)
    explanation = explain(numbers, labels=model)
    assert (explanation.reference_labels == model.labels_).all() and explanation.clusters is None
    assert explanation.labels.shape == (150,) and explanation.wrong < 10
    noisy = DBSCAN(eps=0.4).fit(numbers)
    assert explain(numbers, labels=noisy).clusters[0] == "-1"


@pytest.mark.parametrize("method", METHODS)
def test_given_clusters_are_explained_by_every_method(method, files, capsys):
    "Even where they are no clusters of the kernel: here a column decides that k-means would ignore."
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(200, 2)) + 20 * rng.integers(0, 2, (200, 1)), rng.random(200)]
    labels = (X[:, 2] > 0.5).astype(int)
    explanation = explain(X, labels=labels, method=method, leaves=2)
    assert (explanation.reference_labels == labels).all()
    assert explanation.wrong <= (70 if method in ("imm", "exkmc") else 0)
    table = pd.DataFrame(X).assign(label=labels)
    table.to_csv(files / "labels.csv", index=False)
    words = ["--labels", "label", "--method", method, "--leaves", "2", "--json", "-", "-q"]
    assert main(["explain", str(files / "labels.csv"), *words]) == 0
    assert json.loads(capsys.readouterr().out)["tree"] == json.loads(explanation.tree.to_json())


def test_the_search_agrees_at_least_as_well_as_growth():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(1)
    for labels in (y, np.where(rng.random(150) < 0.1, rng.integers(0, 3, 150), y)):
        for leaves in (3, 5, 8):
            wrong = {
                m: explain(X, labels=labels, method=m, leaves=leaves).wrong
                for m in ("expand", "tree")
            }
            assert wrong["tree"] <= wrong["expand"]


@pytest.mark.parametrize(
    "options, problem",
    [
        ({}, "Say how many clusters there are, for instance k=3, or give the labels"),
        ({"k": 3, "labels": "species"}, "one of the two"),
        ({"labels": "kind"}, "There is no column 'kind'"),
        ({"labels": [0, 1]}, "labels must have a value for each of 150 rows, not 2"),
        ({"labels": [0.5, None] * 75}, "labels has no label in row 2"),
        ({"labels": np.arange(150)}, "labels has 150 different values: too many clusters"),
        ({"k": 3, "drop": "weight"}, "There is no column 'weight'"),
        ({"k": 3, "impute": None}, "impute='median', or leave the column out with drop"),
        ({"k": 3, "impute": "zero"}, "impute must be median or mean. Got 'zero'"),
        ({"k": 400}, "k must be a whole number, at least 1 and at most the number of rows, 150"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"k": 3, "leaves": 0}, "leaves must be a whole number, at least 1. Got 0"),
        ({"k": 3, "seed": np.random.default_rng(0)}, "seed must be a whole number"),
        ({"labels": 2}, "the name of a column, or a fitted clusterer with labels_. Got int"),
        ({"labels": KMeans(3)}, "Got KMeans"),
        ({"labels": np.zeros((150, 2))}, "one value for each row"),
        (
            {"labels": pd.Series(range(150), index=range(150, 0, -1)) % 3},
            "labels has another index",
        ),
        ({"k": 3, "method": "guess"}, "method must be one of"),
        ({"k": 3, "scale": "log"}, "scale must be one of"),
    ],
)
def test_mistakes_have_a_sentence(frame, options, problem):
    with pytest.raises(ValueError, match=problem):
        explain(frame, **({"impute": "median"} | options))


def test_values_of_frames_and_their_gaps():
    column = pd.Series(["x", None, "y"], dtype="string")
    assert cells_of("a", column) == ["x", "", "y"]
    for values in (
        pd.Series([1, None, 3], dtype="Int64").astype(object),
        pd.Series([True, None, False], dtype="boolean"),
        pl.Series([True, None, False]),
        pa.array([Decimal("1.5"), None, Decimal(3)]),
    ):
        x = cells_of("a", values)
        assert x.dtype == float and np.isnan(x[1]) and x[0] in (1, 1.5)
    dates = pd.Series(pd.to_datetime(["2020-01-01", None]))
    assert cells_of("a", dates) == ["2020-01-01 00:00:00", ""]


def test_texts_do_not_depend_on_the_rows_beside_them(tmp_path):
    "A column of texts and other values, of which new rows may hold only the others."
    labels = [0, 1] * 20
    for one, other in ((True, "maybe"), (1.0, "x"), (1, "x"), (True, False)):
        table = pd.DataFrame({"c": pd.Series([one, other] * 20, dtype=object), "n": range(40)})
        table["c"] = table["c"].map(str) if other is False else table["c"]  # a CSV file has texts
        explanation = explain(table, labels=labels, one_hot=True, columns="c", leaves=2)
        assert explanation.wrong == 0
        rows = pd.DataFrame({"c": [one] * 5})  # numbers, or booleans
        space = {}
        exec(explanation.to_python(), space)
        assert explanation.assign(rows).tolist() == [0] * 5
        assert explanation.assign(pl.from_pandas(rows)).tolist() == [0] * 5
        assert [space["cluster"](row) for row in rows.to_dict("records")] == [0] * 5
        rows.to_parquet(tmp_path / "rows.parquet")
        assert explanation.assign(tmp_path / "rows.parquet").tolist() == [0] * 5


def test_booleans_in_databases():
    table = pd.DataFrame({"c": ["True", "False"] * 10})
    query = explain(table, labels=[0, 1] * 10, one_hot=True).to_sql()
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE data (c)")
        base.executemany("INSERT INTO data VALUES (?)", [(1,), (0,), ("True",), ("False",)])
        assert [row[-1] for row in base.execute(query)] == [0, 1, 0, 1]
    with duckdb.connect() as base:
        base.execute("CREATE TABLE data AS SELECT * FROM (VALUES (true), (false)) AS t(c)")
        assert [row[-1] for row in base.execute(query).fetchall()] == [0, 1]


def test_odd_frames_and_arrays(frame):
    X = np.array([[1.0, 5], [1.2, -999], [8, 6], [9, 4]])
    masked = np.ma.masked_values(X, -999)
    assert explain(masked, 2, impute="mean").features[1].fill == 5
    labels = np.ma.masked_array([0, 0, 1, 1], [0, 1, 0, 0])
    with pytest.raises(UserError, match="labels has no label in row 2"):
        explain(X, labels=labels)
    large = np.repeat([2**53, 2**53 + 1], 2)
    assert explain(X, labels=large).clusters == [str(2**53), str(2**53 + 1)]
    assert explain(X, labels=large[:, None]).clusters == [str(2**53), str(2**53 + 1)]
    assert explain(X, labels=[False, False, True, True]).clusters == ["False", "True"]
    named = pd.DataFrame(X, columns=["collect", "column_names"])
    assert [f.name for f in explain(named, 2).features] == list(named.columns)
    numbered = pd.DataFrame(X)
    assert len(explain(numbered, 2, columns=[0]).features) == 1
    assert len(explain(numbered, 2, drop=pd.Index([1])).features) == 1
    struct = pl.DataFrame({"a": X[:, 0], "s": pl.Series([{"v": i} for i in range(4)])})
    assert "s" in explain(struct, 2).left_out
    with pytest.raises(UserError, match="Two features would be called 'c: u'"):
        explain(pd.DataFrame({"c": ["u", "v"] * 2, "c: u": X[:, 0]}), 2, one_hot=True)
    with pytest.raises(UserError, match="The table has 3 columns, but the tree was made from 2"):
        explain(X, 2).assign(np.c_[np.arange(4), X])
    with pytest.raises(UserError, match="The table has no columns"):
        explain(pd.DataFrame(index=range(3)), 2)


def test_columns_in_tiny_units():
    X = np.array([[1.0, 3], [1.2, 1], [8, 2], [9, 4]])
    for scale in ("standard", "minmax"):
        tiny = scale_columns(X * [1e-170, 1], scale)
        assert np.allclose(tiny, scale_columns(X, scale))


def test_numbers_of_numpy_are_numbers():
    X, _ = load_iris(return_X_y=True)
    one = explain(X, np.int64(3), leaves=np.int32(4), seed=np.uint8(0), gamma=np.float64(0.5))
    assert one.again == "kxbook.explain(..., 3, leaves=4, gamma=0.5)"
    assert content(one) == content(explain(X, 3, leaves=4, gamma=0.5))
    kept = json.loads(one.to_json()) | {"importances": [None] * 4}
    assert Explanation.from_json(Explanation.from_json(json.dumps(kept)).to_json()).rules


def test_a_table_that_has_been_read(frame):
    table = read_table(frame, Reading(impute="median"))
    with pytest.raises(UserError, match="come too late"):
        explain(table, 3, drop="size")
    with pytest.raises(UserError, match="was read without the column 'species'"):
        explain(table, labels="species")


def test_options_may_be_repeated(files, capsys):
    words = ["-k", "3", "--drop", "size", "--drop", "species,sepal length", "--impute", "mean"]
    assert main(["explain", str(files / "iris.csv"), *words, "--json", "-", "-q"]) == 0
    features = json.loads(capsys.readouterr().out)["features"]
    assert [f["name"] for f in features] == NAMES[1:]


def test_notes_are_kept_and_exports_know_gaps():
    table = pd.DataFrame({"id": [1, 2, 3, 4], "a": [1.0, 1.5, 8.0, 9.0]})
    explanation = explain(table, 2, leaves=2)
    assert explanation.notes == ["Column 'id' counts the rows. Drop it if it has no meaning."]
    space = {}
    exec(explain(table, 2, leaves=2, drop="id").to_python(), space)
    assert space["cluster"]({"a": " NA "}) is None is space["cluster"]({"a": float("nan")})
    assert space["cluster"]({"a": "8.5"}) == space["cluster"]({"a": 8.5}) is not None


def test_tables_that_are_none(tmp_path):
    for table, problem in (
        (np.arange(5), "an array with two dimensions, or a path. Got ndarray"),
        ({"a": [1, 2]}, "Got dict"),
        (pd.DataFrame({"a": []}), "The table has no rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "Two columns are called 'a'"),
        (pd.DataFrame({"a": ["x", "y"]}), "There is no column of numbers"),
        ("nowhere.csv", "Cannot read nowhere.csv: No such file or directory"),
    ):
        with pytest.raises(UserError, match=problem):
            explain(table, 2)
    with pytest.raises(UserError, match="encoding='latin-1'"):
        (tmp_path / "x.csv").write_bytes("größe\n1\n2\n".encode("latin-1"))
        explain(tmp_path / "x.csv", 2)


def test_every_option_of_the_command_is_a_parameter():
    from kxbook.cli import make_parser

    parameters = inspect.signature(explain).parameters
    given = set(vars(make_parser().parse_args(["explain", "a.csv"])))
    files = {"output", "rules", "json", "sql", "python", "table"}
    assert given - files - {"what", "data", "quiet", "debug"} <= set(parameters)


def test_a_headline_names_no_more_clusters_than_the_tree():
    X = np.r_[0.0, 0.1, 5.0, 5.1, 9.0, 9.1][:, None]
    assert explain(X, 3, leaves=2).headline().startswith("two of three clusters, told apart by one")
    assert explain(X, 3, leaves=3).headline().startswith("three clusters, told apart by two")


def test_an_explanation_is_kept_and_applied(frame, tmp_path):
    explanation = explain(frame, labels="species", one_hot=True, impute="median", leaves=4)
    kept = Explanation.from_json(explanation.to_json(tmp_path / "tree.json"))
    assert kept.tree == explanation.tree and kept.rules == explanation.rules
    assert np.isclose(kept.price, explanation.price)
    assert np.allclose(kept.importances, explanation.importances)
    assert kept.to_sql() == explanation.to_sql() and kept.to_python() == explanation.to_python()
    assert (tmp_path / "tree.json").read_text() == explanation.to_json()
    names = np.array(explanation.clusters, dtype=object)[explanation.labels]
    shuffled = frame[frame.columns[::-1]].sample(frac=1, random_state=0)
    for table in (shuffled, pl.from_pandas(shuffled), pa.Table.from_pandas(shuffled)):
        assert (kept.assign(table) == names[shuffled.index]).all()
    space = {}
    exec(kept.to_python(), space)
    rows = [space["cluster"](row) for row in frame.to_dict("records")]
    assert rows == names.tolist()
    for need in ("X", "series", "certificate", "labels", "profiles", "wrong"):
        with pytest.raises(UserError, match="holds the tree but not the table"):
            getattr(kept, need)
    assert "told apart by three questions" in repr(kept)
    with pytest.raises(ValueError, match="not JSON"):
        Explanation.from_json("{")


def test_gaps_that_decide():
    table = pd.DataFrame({"a": [1.0, 2.0, 8.0, 9.0], "b": [1.0, 1.0, 1.0, 1.0]})
    explanation = explain(table, 2, leaves=2)
    with pytest.raises(UserError, match="Row 2 lacks a value that decides its cluster"):
        explanation.assign(pd.DataFrame({"a": [1.0, None]}))
    with_gap = explanation.assign(pd.DataFrame({"a": [1.0, None]}), allow_missing=True)
    assert with_gap.tolist() == [explanation.labels[0], -1]
    named = explain(table, labels=["x", "x", "y", "y"], leaves=2)
    assert named.assign(pd.DataFrame({"a": ["NA", 9]}), allow_missing=True).tolist() == [None, "y"]
    with pytest.raises(UserError, match="The tree asks about the column 'a', which the table"):
        explanation.assign(pd.DataFrame({"b": [1]}))


def test_profiles_and_pictures(frame):
    explanation = explain(frame, 3, one_hot=True, impute="median")
    assert sum(p.rows for p in explanation.profiles) == 150
    for c, profile in enumerate(explanation.profiles):
        mine = explanation.X[explanation.labels == c]
        assert profile.typical["petal width"] == np.median(mine[:, 3])
        assert np.isclose(profile.typical["size: large"], mine[:, 4].mean())
    away = [sum(p.rows * p.contrast[n] for p in explanation.profiles) for n in NAMES]
    assert np.allclose(away, 0)  # the contrasts of all rows cancel
    assert isinstance(explanation.plot(), plt.Axes)
    plt.close("all")
    assert "<li>" in explanation._repr_html_() and "three clusters" in repr(explanation)
    steps = [explanation.headline(step) for step in explanation.series]
    assert steps[0].endswith("a tree without a question.") and len(set(steps)) == len(steps)


def test_the_call_is_on_the_page(files):
    explanation = explain(files / "iris.csv", 3, impute="mean", drop=["species"])
    call = f"kxbook.explain({str(files / 'iris.csv')!r}, 3, drop=['species'], impute='mean')"
    assert explanation.again == call and explanation.source == "iris.csv"
    assert content(eval(call)) == content(explanation)
    assert "kxbook.explain(" in explanation.to_html()


def test_progress_is_told(frame):
    told = []
    explain(frame, 3, impute="mean", progress=told.append)
    assert told[0] == "left out: column 'size' (text: use one-hot to use it)"
    assert "150 rows, 4 columns" in told and "computing the certificate" in told


def test_a_table_is_read_once(frame):
    table = read_table(frame, Reading(impute="median"), ["species"])
    assert isinstance(table, Table)
    assert explain(table, 3).tree == explain(frame, 3, impute="median").tree


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that takes no files")
def test_a_place_that_cannot_be_written_fails_before_the_work(files, capsys, monkeypatch):
    monkeypatch.setattr("kxbook.cli.read_table", lambda *args: pytest.fail("too late"))
    for option in ("-o", "--json"):
        words = ["explain", str(files / "iris.csv"), "-k", "3", option, "/proc/report.html"]
        assert main(words) == 2
        assert "Cannot write /proc/report.html: " in capsys.readouterr().err


def test_messages_have_no_private_names(files, capsys):
    for gamma in ("0", "-1", "wide", "nan", "inf"):
        assert main(["explain", str(files / "iris.csv"), "-k", "3", f"--gamma={gamma}"]) == 2
        message = capsys.readouterr().err.strip().splitlines()[-1]
        assert f"must be a positive number or scale. Got '{gamma}'" in message
        assert "_gamma" not in message


def test_importing_the_package_is_quick():
    assert "explain" in dir(kxbook) and kxbook.report.rules_text is not None
    assert {"table", "words", "export", "page", "explanation"} <= set(dir(kxbook.report))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(kxbook.report, "nothing")  # noqa: B009
