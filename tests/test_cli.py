"""The command as a stranger uses it: tables of all kinds, mistakes, hostile names, and a plug that is pulled."""

import csv
import io
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

from kxbook import cli, report
from kxbook.cli import main
from kxbook.data import BENCHMARKS, load_iris
from kxbook.report import Feature, export, table
from kxbook.report.explanation import label_codes
from kxbook.tree import build_tree

IRIS = ["sepal length", "sepal width", "petal length", "petal width"]
HOSTILE = [
    "<script>alert(1)</script>",
    '"; DROP TABLE x; --',
    "=1+1",
    "two\nlines",
    'it\'s \x1b[2J "quoted"',
    "🦄",
    "עברית\u202e",
]
RUN = "import sys; from kxbook.cli import main; sys.exit(main())"


def write(path, names, rows, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([names, *rows])
    return str(path)


@pytest.fixture
def iris(tmp_path):
    X, y = load_iris(return_X_y=True)
    rows = [[*x, ["setosa", "versicolor", "virginica"][c]] for x, c in zip(X.tolist(), y)]
    return write(tmp_path / "iris.csv", [*IRIS, "species"], rows)


def test_every_form_agrees(iris, tmp_path, capsys):
    paths = {form: str(tmp_path / f"out.{form}") for form in ("json", "rules", "sql", "python")}
    words = [w for form, path in paths.items() for w in (f"--{form}", path)]
    assert (
        main(["explain", iris, "-k", "3", "--leaves", "5", "-o", str(tmp_path / "r.html"), *words])
        == 0
    )
    out, err = capsys.readouterr()
    assert out == "" and "left out: column 'species' (text" in err and "150 rows, 4 columns" in err
    X = load_iris(return_X_y=True)[0]
    tree, features, clusters = report.from_document((tmp_path / "out.json").read_text())
    labels = tree.predict(X).tolist()
    assert 3 <= tree.n_leaves <= 5 and clusters is None and [f.column for f in features] == IRIS
    ends = np.r_[tree.lo, tree.hi][np.tile(tree.left >= 0, 2)]
    assert all(
        X.min() <= e <= X.max() for e in ends[np.isfinite(ends)]
    )  # in the units of the table
    space = {}
    exec((tmp_path / "out.python").read_text(), space)
    assert [space["cluster"](dict(zip(IRIS, x))) for x in X.tolist()] == labels
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE TABLE data ({', '.join(f'{chr(34)}{n}{chr(34)} REAL' for n in IRIS)})")
    db.executemany("INSERT INTO data VALUES (?, ?, ?, ?)", X.tolist())
    assert [row[-1] for row in db.execute((tmp_path / "out.sql").read_text())] == labels
    assert main(["assign", paths["json"], iris, "-q"]) == 0
    assert capsys.readouterr().out.split() == ["cluster", *map(str, labels)]
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert not list(tmp_path.glob(".*"))


def test_units_do_not_depend_on_scaling(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = np.c_[np.r_[rng.normal(0, 1, 50), rng.normal(9, 1, 50)] * 1e6, rng.normal(size=100) * 1e-6]
    path = write(tmp_path / "a.csv", ["metres", "noise"], X.tolist())
    gap = np.sort(X[:, 0])[49:51]
    for scale in ("standard", "minmax", "none"):
        assert (
            main(
                ["explain", path, "-k", "2", "--leaves", "2", "--scale", scale, "--json", "-", "-q"]
            )
            == 0
        )
        tree, _, _ = report.from_document(capsys.readouterr().out)
        assert tree.n_leaves == 2 and tree.axis[0] == 0
        end = tree.hi[0] if np.isfinite(tree.hi[0]) else tree.lo[0]
        assert gap[0] <= end <= gap[1]


def test_labels_and_truth(iris, tmp_path, capsys):
    out = str(tmp_path / "r.html")
    assert (
        main(
            [
                "explain",
                iris,
                "--labels",
                "species",
                "--truth",
                "species",
                "-o",
                out,
                "--json",
                str(tmp_path / "t.json"),
                "-q",
            ]
        )
        == 0
    )
    page = (tmp_path / "r.html").read_text()
    assert "Compared with a known column" in page and "1.000 for the clustering" in page
    assert main(["assign", str(tmp_path / "t.json"), iris]) == 0
    out = capsys.readouterr().out.split()
    assert out[0] == "cluster" and set(out[1:]) == {"setosa", "versicolor", "virginica"}
    y = np.repeat(["setosa", "versicolor", "virginica"], 50)
    assert (np.array(out[1:]) == y).mean() > 0.95


def test_other_dialects(tmp_path, capsys):
    rows = [
        [f"{v:.1f}".replace(".", ","), w]
        for v, w in [(1.5, "1"), (1.7, "2"), (8.5, "3"), (8.9, "1")]
    ]
    path = write(tmp_path / "a.csv", ["größe", "b"], rows, delimiter=";")
    assert main(["explain", path, "-k", "2", "--leaves", "2", "--decimal", ",", "-q"]) == 0
    assert "größe is" in capsys.readouterr().out
    data = (tmp_path / "a.csv").read_bytes().decode().encode("latin-1")
    (tmp_path / "l.csv").write_bytes(data)
    assert main(["explain", str(tmp_path / "l.csv"), "-k", "2"]) == 2
    assert "--encoding latin-1" in capsys.readouterr().err
    assert (
        main(
            [
                "explain",
                str(tmp_path / "l.csv"),
                "-k",
                "2",
                "--leaves",
                "2",
                "--decimal",
                ",",
                "--encoding",
                "latin-1",
                "-q",
            ]
        )
        == 0
    )
    assert "größe" in capsys.readouterr().out
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbfa\r\n1\r\n2\r\n9\r\n")
    assert main(["explain", str(tmp_path / "b.csv"), "-k", "2", "-q"]) == 0
    assert capsys.readouterr().out.startswith("Cluster 0 if\n     a is")


def test_decimal_commas_are_recognised(tmp_path, capsys):
    path = write(
        tmp_path / "a.csv",
        ["size", "n"],
        [["1,5", 1], ["1,6", 2], ["8,5", 1], ["8,7", 4]],
        delimiter=";",
    )
    assert main(["explain", path, "-k", "2", "--leaves", "2"]) == 0
    assert (
        """'size' (its numbers have a decimal comma: use decimal ",")""" in capsys.readouterr().err
    )
    assert main(["explain", path, "-k", "2", "--columns", "size"]) == 2
    assert "decimal" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name.lower() for name in BENCHMARKS])
def test_examples_are_the_data_sets_of_the_book(name, tmp_path, capsys):
    path = tmp_path / "a.csv"
    assert main(["example", name, "-o", str(path)]) == 0 and capsys.readouterr().out == ""
    X, y = BENCHMARKS[name.capitalize()](return_X_y=True)
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header[-1] == "group" and len(set(header)) == X.shape[1] + 1
    assert (np.array([row[:-1] for row in rows], dtype=float) == X).all()
    groups = [row[-1] for row in rows]
    assert len(set(zip(groups, y.tolist()))) == len(set(groups)) == len(set(y.tolist()))
    assert main(["example", name]) == 0 and capsys.readouterr().out == path.read_text()
    assert main(["example", name, "-o", str(tmp_path)]) == 2 and main(["example", "nothing"]) == 2


def test_parquet(iris, tmp_path, capsys):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y = load_iris(return_X_y=True)
    table = arrow.table(
        dict(zip(IRIS, X.T))
        | {"small": arrow.array((y == 0).tolist()), "kind": ["abc"[c] for c in y]}
    )
    parquet.write_table(table, tmp_path / "iris.parquet")
    words = ["-k", "3", "--columns", ",".join(IRIS), "--json"]
    assert (
        main(["explain", str(tmp_path / "iris.parquet"), *words, str(tmp_path / "p.json"), "-q"])
        == 0
    )
    assert main(["explain", iris, *words, str(tmp_path / "c.json"), "-q"]) == 0
    trees = [json.loads((tmp_path / f"{x}.json").read_text())["tree"] for x in "pc"]
    assert trees[0] == trees[1]
    assert main(["assign", str(tmp_path / "c.json"), str(tmp_path / "iris.parquet"), "-q"]) == 0
    one = capsys.readouterr().out
    assert main(["assign", str(tmp_path / "c.json"), iris, "-q"]) == 0
    assert capsys.readouterr().out == one
    assert main(["explain", str(tmp_path / "iris.parquet"), "--labels", "kind", "-q"]) == 0
    assert "c if" in capsys.readouterr().out
    (tmp_path / "no.parquet").write_text("not parquet")
    assert main(["explain", str(tmp_path / "no.parquet"), "-k", "2"]) == 2


def test_missing_values_and_one_hot(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [
        [*np.round(rng.normal(size=2) + 5 * (i % 2), 3), "red" if i % 2 else "b,lue"]
        for i in range(40)
    ]
    rows[3][1], rows[5][2] = "NA", ""
    path = write(tmp_path / "a.csv", ["a", "b", "colour"], rows)
    assert main(["explain", path, "-k", "2"]) == 2
    assert "Column 'b' lacks a value in row 4. Use --impute median" in capsys.readouterr().err
    assert main(["explain", path, "-k", "2", "--drop", "b", "--one-hot"]) == 2
    assert "Column 'colour' lacks a value in row 6" in capsys.readouterr().err
    words = [
        "--impute",
        "median",
        "--one-hot",
        "--json",
        str(tmp_path / "t.json"),
        "-o",
        str(tmp_path / "r.html"),
        "-q",
    ]
    assert main(["explain", path, "-k", "2", *words]) == 0
    tree, features, _ = report.from_document((tmp_path / "t.json").read_text())
    median = np.median([row[1] for row in rows if row[1] != "NA"])
    assert features[1].fill == median and [f.value for f in features[2:]] == ["b,lue", "red"]
    assert main(["assign", str(tmp_path / "t.json"), path, "-q"]) == 0
    x = np.array(
        [[a, median if b == "NA" else b, c == "b,lue", c == "red"] for a, b, c in rows], dtype=float
    )
    assert capsys.readouterr().out.split()[1:] == [str(c) for c in tree.predict(x)]


def test_assign_by_name_in_any_order_and_only_what_is_asked(iris, tmp_path, capsys):
    assert (
        main(
            [
                "explain",
                iris,
                "-k",
                "3",
                "--drop",
                "species",
                "--json",
                str(tmp_path / "t.json"),
                "-q",
            ]
        )
        == 0
    )
    tree, features, _ = report.from_document((tmp_path / "t.json").read_text())
    used = sorted({features[a].column for a in tree.axis[tree.left >= 0]}, reverse=True)
    X = load_iris(return_X_y=True)[0]
    rows = [["junk", *(x[IRIS.index(n)] for n in used)] for x in X.tolist()]
    path = write(tmp_path / "new.csv", ["other", *used], rows)
    assert (
        main(["assign", str(tmp_path / "t.json"), path, "-o", str(tmp_path / "out.csv"), "-q"]) == 0
    )
    assert (tmp_path / "out.csv").read_text().split()[1:] == [str(c) for c in tree.predict(X)]
    write(tmp_path / "inf.csv", used, [["inf"] * len(used), ["-inf"] * len(used)])
    assert main(["assign", str(tmp_path / "t.json"), str(tmp_path / "inf.csv"), "-q"]) == 0
    far = tree.predict(np.array([[1e300] * 4, [-1e300] * 4]))
    assert capsys.readouterr().out.split()[1:] == [str(c) for c in far]
    gap = write(tmp_path / "gap.csv", used, [["1"] * len(used), ["?"] * len(used)])
    assert main(["assign", str(tmp_path / "t.json"), gap, "-o", str(tmp_path / "no.csv")]) == 2
    assert "Row 2 lacks a value" in capsys.readouterr().err and not (tmp_path / "no.csv").exists()
    assert main(["assign", str(tmp_path / "t.json"), gap, "--allow-missing", "-q"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] in ("", '""')
    bad = write(tmp_path / "bad.csv", used, [["1"] * len(used), ["one"] * len(used)])
    assert main(["assign", str(tmp_path / "t.json"), bad, "-o", str(tmp_path / "no.csv")]) == 2
    assert "is not a number in row 2" in capsys.readouterr().err
    absent = write(tmp_path / "absent.csv", ["a"], [["1"]])
    assert main(["assign", str(tmp_path / "t.json"), absent]) == 2
    assert f"asks about the column '{sorted(used)[0]}'" in capsys.readouterr().err
    assert not list(tmp_path.glob(".*"))


def test_assign_streams(iris, tmp_path, monkeypatch, capsys):
    "Pieces are written before the next ones are read."
    assert (
        main(
            [
                "explain",
                iris,
                "-k",
                "3",
                "--drop",
                "species",
                "--json",
                str(tmp_path / "t.json"),
                "-q",
            ]
        )
        == 0
    )
    seen, real = [], export.assign_rows

    def spy(tree, features, columns, decimal, start):
        seen.append((start, len(next(iter(columns.values())))))
        return real(tree, features, columns, decimal, start)

    monkeypatch.setattr(export, "assign_rows", spy)
    monkeypatch.setitem(table.partitions.__kwdefaults__, "size", 64)
    assert main(["assign", str(tmp_path / "t.json"), iris, "-q"]) == 0
    assert seen == [(0, 64), (64, 64), (128, 22)]
    assert len(capsys.readouterr().out.split()) == 151


@pytest.fixture
def hostile(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        [*np.round(rng.normal(size=len(HOSTILE)) + 4 * (i % 2), 4), HOSTILE[i % 3]]
        for i in range(60)
    ]
    return write(tmp_path / "h.csv", [*HOSTILE, "kind"], rows)


def test_hostile_names(hostile, tmp_path, capsys):
    words = [
        w
        for form in ("json", "sql", "python", "rules")
        for w in (f"--{form}", str(tmp_path / form))
    ]
    assert (
        main(
            [
                "explain",
                hostile,
                "-k",
                "2",
                "--one-hot",
                "-o",
                str(tmp_path / "r.html"),
                "--truth",
                "kind",
                *words,
            ]
        )
        == 0
    )
    out, err = capsys.readouterr()
    assert out == "" and all(line.isprintable() for line in err.splitlines())
    with open(hostile, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    tree, features, _ = report.from_document((tmp_path / "json").read_text())
    X = np.array([row[:-1] for row in rows], dtype=float)
    assert [f.column for f in features] == HOSTILE
    space = {"__builtins__": {"float": float, "str": str}}
    exec((tmp_path / "python").read_text(), space)
    assert [space["cluster"](dict(zip(HOSTILE, x))) for x in X.tolist()] == tree.predict(X).tolist()
    assert all(line.isprintable() for line in (tmp_path / "rules").read_text().splitlines())
    assert (
        main(
            [
                "explain",
                hostile,
                "--labels",
                "kind",
                "--drop",
                '"' + HOSTILE[1].replace('"', '""') + '"',
            ]
        )
        == 0
    )
    out, err = capsys.readouterr()
    assert (
        all(line.isprintable() for line in (out + err).splitlines())
        and "<script>alert(1)</script> if" in out
    )
    for words in (
        ["explain", hostile, "-k", "2", "--columns", "\x1b[2Jno"],
        ["explain", "\x1b[31mno.csv", "-k", "2"],
        ["\x1b[2J"],
        ["explain", hostile, "\x1b[2J", "-k", "2"],
    ):
        assert main(words) == 2
        err = capsys.readouterr().err
        assert err and all(line.isprintable() for line in err.splitlines())


MISTAKES = [
    ([], "Say how many clusters"),
    (["-k", "0"], "k must be a whole number, at least 1"),
    (["-k", "1000"], "at most the number of rows, 150. Got 1000"),
    (["-k", "3", "--labels", "species"], "use one of them"),
    (["-k", "3", "--leaves", "2", "--base", "imm"], "max_leaves"),
    (["-k", "3", "--gamma", "-1"], "gamma"),
    (["-k", "3", "--kernel", "chi2", "--scale", "standard"], "Negative values"),
    (["-k", "3", "--columns", "species"], "no column of numbers"),
    (["-k", "3", "--truth", "nothing"], "There is no column 'nothing'"),
    (["--labels", "sepal length", "--seed", "x"], "seed"),
    (["-k", "3", "--method", "imm", "--leaves", "9"], "one leaf per cluster"),
]


@pytest.mark.parametrize("words, said", MISTAKES)
def test_mistakes_leave_nothing_behind(iris, tmp_path, capsys, words, said):
    outputs = ["-o", str(tmp_path / "r.html"), "--json", str(tmp_path / "t.json")]
    assert main(["explain", iris, *words, *outputs]) == 2
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["iris.csv"]


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "names of the columns"),
        ("a,b\n", "no rows"),
        ("a,a\n1,2\n", "Two columns are called 'a'"),
        ("a,b\n1\n", "Row 1 has 1 cells"),
        ("a,b\n1,inf\n2,3\n", "infinite in row 1"),
        ("a,b\n1,2\n2,-1e151\n", "beyond ±1e+150 in row 2"),
        ("a\nx\ny\n", "no column of numbers"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, capsys, text, said):
    (tmp_path / "a.csv").write_text(text)
    assert (
        main(["explain", str(tmp_path / "a.csv"), "-k", "1", "-o", str(tmp_path / "r.html")]) == 2
    )
    assert said in capsys.readouterr().err and not (tmp_path / "r.html").exists()


def test_outputs_are_checked_before_the_work(iris, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cli, "read_table", lambda *args: pytest.fail("too late"))
    for words in (
        ["-o", str(tmp_path / "no" / "r.html")],
        ["-o", str(tmp_path)],
        ["-o", iris],
        ["-o", "x", "--json", "./x"],
        ["--sql", "-", "--json", "-"],
    ):
        assert main(["explain", iris, "-k", "3", *words]) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_internal_errors_have_their_own_code(iris, tmp_path, capsys, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("unforeseen \x1b[2J")

    monkeypatch.setattr("kxbook.report.explanation.explain_table", broken)
    assert main(["explain", iris, "-k", "3", "-o", str(tmp_path / "r.html")]) == 1
    err = capsys.readouterr().err
    assert (
        "internal error: RuntimeError" in err
        and "Traceback" not in err
        and all(line.isprintable() for line in err.splitlines())
    )
    monkeypatch.undo()
    monkeypatch.setattr(
        cli.os, "fsync", lambda f: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    assert main(["explain", iris, "-k", "3", "-o", str(tmp_path / "r.html")]) == 2
    assert "No space left" in capsys.readouterr().err and sorted(
        p.name for p in tmp_path.iterdir()
    ) == ["iris.csv"]


@pytest.mark.parametrize("moment", [pytest.param("os.fsync", marks=pytest.mark.slow), "os.replace"])
def test_a_killed_run_leaves_the_old_file(iris, tmp_path, moment):
    target = tmp_path / "r.html"
    target.write_text("old")
    stop = (
        f"import os, sys, time; {moment} = lambda *a: (print('now', flush=True), time.sleep(60)); "
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            stop + RUN,
            "explain",
            iris,
            "-k",
            "3",
            "-q",
            "-o",
            str(target),
            "--json",
            str(tmp_path / "t.json"),
        ],
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"now\n"
    assert [p for p in tmp_path.glob(".*.part") if p.stat().st_size]  # it was writing
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert target.read_text() == "old" and not (tmp_path / "t.json").exists()


def test_without_optional_packages_and_from_standard_input(iris, tmp_path):
    alone = "import sys\nclass No:\n    def find_spec(self, name, *_):\n        if name.split('.')[0] in ('pandas', 'pyarrow', 'dtreeviz', 'IPython'):\n            raise ImportError(name)\nsys.meta_path.insert(0, No())\n"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            alone + RUN,
            "explain",
            "-",
            "-k",
            "3",
            "--columns",
            "petal width",
            "-q",
        ],
        input=(tmp_path / "iris.csv").read_text(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count(" if\n") == 3
    done = subprocess.run(
        [sys.executable, "-c", alone + RUN, "explain", str(tmp_path / "x.parquet"), "-k", "3"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and 'pip install "kxbook[table]"' in done.stderr


LEAF = [-1, 0, 0, -1, -1]


def document(tmp_path, tree, features, clusters=None):
    (tmp_path / "t.json").write_text(report.to_document(tree, features, clusters))
    return str(tmp_path / "t.json")


def two(name="a", d=1, at=2.5):
    "A tree that asks one question about its last feature."
    tree = build_tree([[d - 1, -np.inf, at, 1, 2], LEAF, LEAF], {1: 0, 2: 1}, d)
    return tree, [*(f"x{i}" for i in range(d - 1)), name]


@pytest.mark.parametrize("seed", range(6))
def test_assign_agrees_with_the_exports_about_gaps(seed, tmp_path, capsys):
    "A missing value is missing only where it decides."
    rng = np.random.default_rng(seed)
    nodes, label, todo = [LEAF], {}, [(0, 0)]
    while todo:
        node, depth = todo.pop()
        if depth == 4:
            label[node] = int(rng.integers(3))
            continue
        lo, hi = sorted(rng.normal(size=2))
        lo = lo if rng.random() < 0.5 else -np.inf
        hi = np.inf if rng.random() < 0.1 else hi
        nodes[node] = [int(rng.integers(3)), lo, hi, len(nodes), len(nodes) + 1]
        todo += [(len(nodes), depth + 1), (len(nodes) + 1, depth + 1)]
        nodes += [LEAF, LEAF]
    tree, names = build_tree(nodes, label, 3), ["a", "b", "c"]
    features = ["a", "b", Feature("c", "c", None, 0.25)]
    table = rng.choice(
        [*rng.normal(size=9), np.inf, -np.inf, np.nan, np.nan, np.nan], (200, 3)
    ).tolist()
    space = {}
    exec(report.to_python(tree, features), space)
    want = [space["cluster"](dict(zip(names, row))) for row in table]
    assert None in want and any(
        w is not None and np.isnan(row[:2]).any() for w, row in zip(want, table)
    )
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE data (a REAL, b REAL, c REAL)")
    db.executemany("INSERT INTO data VALUES (?, ?, ?)", table)
    assert [row[-1] for row in db.execute(report.to_sql(tree, features))] == want
    path = write(tmp_path / "a.csv", names, table)
    assert main(["assign", document(tmp_path, tree, features), path, "--allow-missing", "-q"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))[1:]
    assert [int(row[0]) if row and row[0] else None for row in rows] == want


def test_assign_needs_memory_for_what_is_asked():
    tree, names = two("a", 20_000)
    tracemalloc.start()
    labels, missing = cli.assign_piece(
        tree, report.as_features(names, 20_000), {"a": ["1", "3", ""] * 1000}
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert labels[:2].tolist() == [0, 1] and missing.tolist() == [False, False, True] * 1000
    assert peak < 50e6


def test_assign_rounds_large_integers_like_the_exports(tmp_path, capsys):
    tree, names = two("a", 1, 2.0**53)
    path = write(tmp_path / "a.csv", ["a"], [[2**53], [2**53 + 1], [2**53 + 2]])
    assert main(["assign", document(tmp_path, tree, names), path, "-q"]) == 0
    assert capsys.readouterr().out.split()[1:] == ["0", "0", "1"]


@pytest.mark.parametrize(
    "text, line",
    [('a,b\n1,2\n3,"4\n5,6\n7,8\n', 3), ('a,"b\n1,2\n3,4\n', 1), ('a,b\n"1\n",2\n3,"4', 4)],
)
def test_a_quotation_mark_that_is_never_closed(tmp_path, capsys, text, line):
    (tmp_path / "a.csv").write_text(text)
    assert main(["explain", str(tmp_path / "a.csv"), "-k", "1"]) == 2
    assert (
        f"begins in line {line}, a quotation mark is opened and never closed"
        in capsys.readouterr().err
    )


def run(words, **options):
    return subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, **options)


@pytest.mark.slow
def test_standard_input_has_an_encoding(tmp_path):
    text = "größe,b\r\n1,1\r\n2,1\r\n8,1\r\n9,1\r\n"
    for data, words in (
        (b"\xef\xbb\xbf" + text.encode(), []),
        (text.encode("latin-1"), ["--encoding", "latin-1"]),
        (text.encode("utf-16"), ["--encoding", "utf-16"]),
    ):
        done = run(
            ["explain", "-", "-k", "2", "--leaves", "2", "--columns", "größe", "-q", *words],
            input=data,
        )
        assert done.returncode == 0 and "größe is" in done.stdout.decode(), done.stderr
    done = run(["explain", "-", "-k", "2", "-q"], input=text.encode("latin-1"))
    assert done.returncode == 2 and b"--encoding latin-1" in done.stderr


def test_standard_input_stays_open(monkeypatch, capsys):
    stdin = io.TextIOWrapper(io.BytesIO(b"a\n1\n9\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["explain", "-", "-k", "2", "-q"]) == 0 and not stdin.buffer.closed
    monkeypatch.setattr(sys, "stdin", io.StringIO("a\n1\n9\n"))
    assert main(["explain", "-", "-k", "2", "-q"]) == 0
    assert capsys.readouterr().out.count("Cluster 0 if") == 2


def test_order_of_labels_is_fixed():
    for values in (["1", "1.0", "01", "1e0", "0"], ["01", "1e0", "1.0", "0", "1"]):
        codes, names = label_codes(values * 3)
        assert names == ["0", "01", "1", "1.0", "1e0"] and [names[c] for c in codes[:5]] == values
    assert label_codes(["1_0", "9"] * 2)[1] == ["1_0", "9"]


def test_labels_are_stripped_and_short(tmp_path, capsys):
    path = write(tmp_path / "a.csv", ["a", "g"], [[1, "x"], [2, " x "], [8, "y"], [9, "y "]])
    assert main(["explain", path, "--labels", "g", "-q"]) == 0
    assert capsys.readouterr().out.count(" if\n") == 2
    assert cli.texts(np.array([0.1, 1e300, -3.0, 2.0**70, np.inf])) == [
        "0.1",
        "1e+300",
        "-3",
        "1.1805916207174113e+21",
        "inf",
    ]


def test_texts_that_python_would_take_for_numbers(tmp_path, capsys):
    path = write(tmp_path / "a.csv", ["a", "code"], [[1, "1_0"], [2, "2_0"], [9, "3_0"]])
    assert main(["explain", path, "-k", "2"]) == 0
    assert "left out: column 'code' (text" in capsys.readouterr().err
    path = write(
        tmp_path / "b.csv",
        ["a", "price"],
        [["1,5", "1.250"], ["2", "3.500"], ["9", "."]],
        delimiter=";",
    )
    assert main(["explain", path, "-k", "2", "--decimal", ","]) == 0
    assert (
        """left out: column 'price' (its numbers have points: use decimal "." if"""
        in capsys.readouterr().err
    )
    assert cli.numbers(["1,5", "."], ",")[0] == 1.5
    tree, names = two("price")
    assert main(["assign", document(tmp_path, tree, names), path, "--decimal", ","]) == 2
    assert "'price' is not a number in row 1" in capsys.readouterr().err


def test_names_that_a_database_mistakes(tmp_path, capsys):
    path = write(tmp_path / "a.csv", ["size", "Size", "b"], [[1, 2, 3], [4, 5, 6], [9, 9, 9]])
    assert main(["explain", path, "-k", "2", "--sql", "-"]) == 2
    assert "'size', 'Size' differ in case only" in capsys.readouterr().err
    assert main(["explain", path, "-k", "2", "--sql", "-", "--columns", "b", "-q"]) == 0
    assert main(["explain", path, "-k", "2", "-q"]) == 0
    assert (
        main(["explain", path, "-k", "2", "--columns", "b", "--sql", "-", "--table", "a\udcff"])
        == 2
    )
    assert (
        "--table must be text that the terminal can say. Got 'a\\udcff'" in capsys.readouterr().err
    )
    path = write(tmp_path / "n.csv", ["a\0b"], [[1], [9]])
    assert main(["explain", path, "-k", "2", "--sql", str(tmp_path / "q.sql")]) == 2
    assert (
        "SQL cannot contain the character 0" in capsys.readouterr().err
        and not (tmp_path / "q.sql").exists()
    )


@pytest.fixture
def strange(tmp_path):
    "A Parquet file of which some columns cannot be converted."
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    far = arrow.array([2**62, 0, 0, 0], arrow.timestamp("us"))
    zone = arrow.array([0, 1, 2, 3], arrow.timestamp("us", tz="Mars/Phobos"))
    table = arrow.table(
        {
            "a": [1.0, 2.0, 8.0, 9.0],
            "large": [2**53 + 1, 2, 3, 4],
            "far": far,
            "zone": zone,
            "half": [0.1, 0.1, 0.5, 0.5],
        }
    )
    parquet.write_table(table, tmp_path / "s.parquet")
    return str(tmp_path / "s.parquet")


def test_only_the_columns_that_are_needed_are_converted(strange, tmp_path, capsys):
    assert (
        main(
            [
                "explain",
                strange,
                "-k",
                "2",
                "--drop",
                "far,zone",
                "--json",
                str(tmp_path / "t.json"),
                "-q",
            ]
        )
        == 0
    )
    assert main(["explain", strange, "-k", "2", "--columns", "a,large", "-q"]) == 0
    assert main(["explain", strange, "--labels", "half", "--columns", "a", "-q"]) == 0
    assert "0.1 if" in capsys.readouterr().out
    for name, others in (("far", "zone"), ("zone", "far")):
        assert main(["explain", strange, "-k", "2", "--drop", others]) == 2
        assert f"Column '{name}' cannot be read: " in capsys.readouterr().err
    assert main(["explain", strange, "-k", "2", "--drop", "nothing"]) == 2
    assert "no column 'nothing'" in capsys.readouterr().err
    tree, names = two("large")
    assert main(["assign", document(tmp_path, tree, names), strange, "-q"]) == 0
    assert capsys.readouterr().out.split()[1:] == ["1", "0", "1", "1"]
    lone = build_tree([LEAF], {0: 0}, 1)
    assert main(["assign", document(tmp_path, lone, ["large"]), strange, "-q"]) == 0
    assert capsys.readouterr().out.split()[1:] == ["0"] * 4


def test_assign_does_not_overwrite_its_tree(iris, tmp_path, capsys):
    tree, names = two("petal width")
    path = document(tmp_path, tree, names)
    before = (tmp_path / "t.json").read_text()
    assert main(["assign", path, iris, "-o", str(tmp_path / "." / "t.json")]) == 2
    assert (
        "it would overwrite the tree" in capsys.readouterr().err
        and (tmp_path / "t.json").read_text() == before
    )


def test_a_long_header_takes_no_time():
    names = [f"c{i}" for i in range(100_000)]
    start = time.process_time()
    assert table._header(names) == names
    assert time.process_time() - start < 5
    with pytest.raises(cli.UserError, match="'c7'"):
        table._header([*names, " c7"])


def test_delimiters(tmp_path, capsys):
    path = write(tmp_path / "a.csv", ["p, q", "b"], [[1, 1], [9, 1]], delimiter=";")
    (tmp_path / "a.csv").write_text('"p, q";b\n1;1\n9;1\n')
    assert main(["explain", path, "-k", "2", "-q"]) == 0
    assert "p, q is" in capsys.readouterr().out
    for header, want in (
        ('"a;b",c', ","),
        ('"a,b"\t"c;d"', "\t"),
        ('a "x,y', ","),
        ('"two', ","),
        ('"a ""b"", c";d', ";"),
    ):
        assert table._delimiter(None, header) == want, header
    (tmp_path / "t.csv").write_text("a;x\tb\n1\t2\n9\t2\n")
    assert main(["explain", str(tmp_path / "t.csv"), "-k", "2", "--delimiter", r"\t", "-q"]) == 0
    assert "a;x is" in capsys.readouterr().out
    for bad in ("ab", '"', "\n", "::"):
        assert main(["explain", str(tmp_path / "t.csv"), "-k", "2", "--delimiter", bad]) == 2
        assert "The delimiter must be one character, or \\t for a tab" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--drop", "a\nb"], ["--columns", '"a'], ["--columns", '"a"b']])
def test_lists_that_are_none(iris, capsys, words):
    assert main(["explain", iris, "-k", "3", *words]) == 2
    assert "is not a list of names: " in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.slow
def test_a_full_disk(iris, tmp_path):
    tree, names = two("petal width")
    path = document(tmp_path, tree, names)
    for words in (
        ["explain", iris, "-k", "3", "-o", "/dev/full"],
        ["assign", path, iris, "-o", "/dev/full"],
        ["example", "iris", "-o", "/dev/full"],
    ):
        done = run([*words, "-q"])
        assert (
            done.returncode == 2
            and b"No space left on device" in done.stderr
            and done.stderr.count(b"\n") == 1
        ), done.stderr
    with open("/dev/full", "w") as full:
        for words in (["assign", path, iris], ["example", "cancer"]):
            done = subprocess.run(
                [sys.executable, "-c", RUN, *words, "-q"], stdout=full, stderr=subprocess.PIPE
            )
            assert (
                done.returncode == 2
                and done.stderr == b"kxbook: Cannot write: No space left on device.\n"
            ), done.stderr


@pytest.mark.slow
def test_a_terminal_that_lacks_a_character(tmp_path):
    path = write(tmp_path / "a.csv", ["größe 🦄"], [[1], [9]])
    words = [sys.executable, "-c", RUN, "explain", path, "-k", "2", "-q"]
    ascii_ = os.environ | {"PYTHONIOENCODING": "ascii"}
    ours, theirs = pty.openpty()
    done = subprocess.run(words, stdout=theirs, stderr=subprocess.PIPE, env=ascii_)
    assert (
        done.returncode == 0
        and done.stderr == b""
        and b"gr??e ? is" in os.read(ours, 10_000).replace(b"\r", b"")
    )
    os.close(ours), os.close(theirs)
    done = subprocess.run(words, capture_output=True, env=ascii_)  # data for somebody
    assert (
        done.returncode == 2
        and b"Standard output is ascii text, which lacks the character" in done.stderr
    )


@pytest.mark.parametrize(
    "closed, words, code, said",
    [
        ("<&-", "explain - -k 2", 2, "Standard input is closed"),
        (">&-", "explain a.csv -k 2", 2, "Standard output is closed"),
        (">&-", "explain a.csv -k 2 --rules r.txt -q", 0, ""),
        ("2>&-", "explain a.csv -k 2", 0, "Cluster 0 if"),
        ("2>&-", "explain a.csv -k 9", 2, ""),
        ("<&- >&- 2>&-", "explain a.csv -k 2 --rules r.txt", 0, ""),
    ],
)
@pytest.mark.slow
def test_closed_streams(tmp_path, closed, words, code, said):
    write(tmp_path / "a.csv", ["a"], [[1], [2], [9]])
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" {words} {closed}', sys.executable, RUN],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    both = done.stdout + done.stderr
    assert done.returncode == code and "internal" not in both and "Traceback" not in both
    assert both.startswith(said) if code == 0 and said else said in both
    assert said or both == ""
    assert (tmp_path / "r.txt").exists() == ("r.txt" in words)


def test_help_teaches_by_example(capsys):
    for words in (["--help"], ["explain", "--help"], ["assign", "--help"]):
        assert main(words) == 0
        out = capsys.readouterr().out
        assert (
            "kxbook explain data.csv -k 3 -o report.html" in out
            and "kxbook assign tree.json new.csv" in out
        )
    assert main(["--version"]) == 0 and capsys.readouterr().out.startswith("kxbook ")
    assert main([]) == 2


def test_examples_of_the_help_parse():
    import shlex

    lines = [line.strip() for line in cli._EXAMPLES.splitlines() if line.startswith("  kxbook")]
    assert len(lines) >= 6
    for line in lines:
        cli.make_parser().parse_args(shlex.split(line)[1:])


def test_same_seed_same_report(iris, tmp_path):
    for name in ("a", "b"):
        assert (
            main(
                [
                    "explain",
                    iris,
                    "-k",
                    "3",
                    "--json",
                    str(tmp_path / f"{name}.json"),
                    "--rules",
                    str(tmp_path / f"{name}.txt"),
                    "-q",
                    "--seed",
                    "3",
                ]
            )
            == 0
        )
    assert (tmp_path / "a.txt").read_text() == (tmp_path / "b.txt").read_text()
    assert os.stat(tmp_path / "a.txt").st_mode & 0o777 == 0o666 & ~umask()


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
