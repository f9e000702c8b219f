"""Whatever is read is understood or refused in words, at once and in little memory: trees, documents, tables, notebooks and their cells.

Inputs are made from those in `corpus/`, one folder per reader, by a small mutator; all are different and none is in the corpus. Quick: as part of `make test`. Long, more than
10^6 inputs in all: `FUZZ=150000 .venv/bin/python -m pytest -n 2 tests/test_fuzz.py`; others with `FUZZ_SEED=1`. An input that was once mistaken for another is kept in the corpus.
"""

import json
import os
import random
import signal
import sqlite3
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import quarto

from kxbook import report
from kxbook.claim import audit, read_ledger
from kxbook.report.export import assign_rows
from kxbook.report.table import Reading, UserError, partitions, read_table
from kxbook.tree import Tree

CORPUS = Path(__file__).parent / "corpus"
TRIES, SEED = (
    int(os.environ.get("FUZZ", 1500)),
    os.environ.get("FUZZ_SEED", "0"),
)  # inputs for each reader
SECONDS, MEGABYTES = (
    5,
    300,
)  # of the processor that one input may take, and of memory that all of them may
NUMBERS = [
    "0",
    "-1",
    "1",
    "2",
    "0.5",
    "-0.0",
    "5e-324",
    "1e308",
    "1e999",
    "-1e999",
    "NaN",
    "Infinity",
    "null",
    "true",
    "9" * 20,
    "9" * 400,
    "2147483648",
    "1_0",
    "٣",
    "0x1",
    "1e-400",
]
WORDS = [
    *NUMBERS,
    "",
    '""',
    "[]",
    "{}",
    "[[",
    "]]",
    "{",
    "}",
    ",",
    ":",
    ";",
    "\t",
    "|",
    '"',
    "'",
    "\\",
    "\\ud800",
    "\ud800",
    "\x00",
    "\r",
    "\n",
    "\r\n",
    "\ufeff",
    "\u202e",
    "é",
    "🦄",
    " ",
    "    ",
]
MARKS = [
    "#",
    "# ",
    "## A",
    ":::",
    "::: {#lem-a}",
    "::: {.proof}",
    "::: {.callout-note}",
    "{#sec-a}",
    "{#eq-a}",
    "{#tbl-a}",
    "$$",
    "$",
    "```",
    "~~~",
    "`",
    "@lem-a",
    "[@key]",
    "[@a; @b",
    "|---|",
    ": T",
    "<!--",
    "-->",
    "](",
    "{{<",
    "^[",
    "%",
    "+++",
    "(a)=",
    "#| ",
    "#| label: fig-a",
    '#| fig-cap: "',
    "#| export",
    "#| eval: false",
    "%%time",
    "!ls",
    "def f(",
    "lambda",
    "(" * 50,
]


def mutated(rng, seeds, words):
    "A text of the corpus after a few changes."
    text = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        i = rng.randint(0, len(text))
        j = min(len(text), i + rng.choice((0, 1, 1, 2, 5, 20, 200)))
        other = rng.choice(seeds)
        a = rng.randint(0, len(other))
        change = rng.randrange(7)
        if change == 0:
            text = text[:i] + text[j:]
        elif change == 1:
            text = text[:j] + text[i:j] * rng.choice((1, 2, 30)) + text[j:]
        elif change == 2:
            text = text[:i] + other[a : a + rng.choice((1, 10, 100))] + text[j:]
        elif change == 3:
            text = (
                text[:i] + chr(rng.choice((rng.randrange(128), rng.randrange(0x110000)))) + text[j:]
            )
        elif change == 4:
            text = swapped_number(rng, text)
        else:
            text = text[:i] + rng.choice(words) + text[j:]
    return text[:20_000]


def swapped_number(rng, text):
    "The text with one of its numbers replaced."
    starts = [i for i, c in enumerate(text) if c.isdigit() and not (i and text[i - 1].isdigit())]
    if not starts:
        return text
    i = j = rng.choice(starts)
    while j < len(text) and (text[j].isdigit() or text[j] in ".e"):
        j += 1
    return text[:i] + rng.choice(NUMBERS) + text[j:]


class Late(BaseException):
    "Nothing that is read may take this for an error of its own and go on."


@contextmanager
def at_once(text):
    "Fail if something takes more of the processor's time than it may."

    def late(*_):
        raise Late(f"more than {SECONDS} s for {text[:2000]!r}")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def in_little_memory():
    "Fail if the process has needed more memory meanwhile. Linux forgets the peak of what was before."
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    yield
    assert status("VmHWM") - before < MEGABYTES * 1024


def status(name):
    (line,) = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith(f"{name}:")
    ]
    return int(line.split()[1])


def use(tree):
    "What a tree that was read is used for."
    if tree.n_features <= 100:
        labels = tree.predict(np.zeros((2, tree.n_features)))
        assert len(labels) == 2 and labels.min() >= 0
        tree.explain(np.ones(tree.n_features))
    assert Tree.from_json(tree.to_json()) == tree and len(tree.rules()) == tree.n_leaves
    tree.to_text(), tree.to_dot(), tree._repr_html_()


def read_tree(text, folder):
    try:
        tree = Tree.from_json(text)
    except ValueError as e:
        assert "not a tree of kxbook" in str(e)
        return False
    use(tree)
    return True


def read_document(text, folder):
    try:
        tree, features, clusters = report.from_document(text)
    except ValueError as e:
        assert any(
            words in str(e)
            for words in (
                "This is not JSON",
                "document",
                "not a tree of kxbook",
                "features",
                "column",
            )
        ), e
        return False
    use(tree)
    again = report.from_document(report.to_document(tree, features, clusters))
    assert again == (tree, features, clusters)
    names = {}
    exec(report.to_python(tree, features, clusters), names)
    row = {f.column: None if f.value is None else "" for f in features}
    names["cluster"](row)
    columns = {f.column: ["", "1", f.value or "2"] for f in features}
    labels, missing = assign_rows(tree, features, columns)
    assert len(labels) == len(missing) == 3
    said = report.rules_text(tree, features, clusters) + "".join(map(str, clusters or []))
    assert said.encode("utf-8")
    if "\0" not in "".join(f.column + (f.value or "") for f in features) + "".join(clusters or []):
        run_sql(report.to_sql(tree, features, clusters), {f.column for f in features})
    return True


def run_sql(query, columns):
    "A database must understand it."
    if len({c.casefold() for c in columns}) == len(columns) and all(
        columns
    ):  # or no table has these columns
        with sqlite3.connect(":memory:") as base:
            quoted = ", ".join('"' + c.replace('"', '""') + '"' for c in columns)
            base.execute(f"CREATE TABLE data ({quoted})")
            base.execute(query).fetchall()
        base.close()


def read_csv(text, folder):
    path = folder / "table.csv"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    rng = random.Random(len(text))
    odd = dict(
        one_hot=True,
        impute=rng.choice(["median", "mean"]),
        decimal=rng.choice(".,"),
        encoding=rng.choice(["utf-8", "latin-1", "utf-16"]),
        delimiter=rng.choice([None, ";"]),
    )
    return [as_table(path, Reading(**more)) for more in ({}, odd)][0]


def as_table(path, reading):
    try:
        table = read_table(path, reading)
    except UserError as e:
        assert str(e)
        return False
    assert (
        table.X.ndim == 2 and table.X.shape[1] == len(table.features) and np.isfinite(table.X).all()
    )
    return True


def read_markdown(text, folder):
    try:
        quarto.markdown(text, "here", quarto.Names())
    except quarto.BookError as e:
        assert str(e).startswith("here: ")
        return False
    return True


def read_cell(text, folder):
    try:
        cells = [{"cell_type": "code", "source": part} for part in ("#| default_exp m", text)]
        quarto.notebook({"cells": cells}, "here", quarto.Names())
    except quarto.BookError as e:
        assert str(e).startswith("here, cell 2: ")
        return False
    return True


def read_notebook(text, folder):
    (folder / "00_one.ipynb").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        problems = audit(read_ledger(folder))
    except ValueError as e:
        assert str(e).startswith("00_one.ipynb is not a notebook: ")
        return False
    assert all(isinstance(problem, str) for problem in problems)
    return True


def read_parquet(text, folder):
    path = folder / "table.parquet"
    path.write_bytes(text.encode("latin-1", "ignore"))
    try:
        names, *columns = partitions(str(path))
    except UserError as e:
        assert str(e)
        return False
    assert all(len(piece) == len(names) for piece in columns)
    return True


READERS = {
    "tree": (read_tree, WORDS),
    "document": (read_document, WORDS),
    "table": (read_csv, WORDS),
    "parquet": (read_parquet, [chr(byte) for byte in range(256)]),
    "markdown": (read_markdown, WORDS + MARKS),
    "cell": (read_cell, WORDS + MARKS),
    "notebook": (read_notebook, WORDS + MARKS),
}


def corpus(name):
    coded = (
        ("latin-1", "strict") if name == "parquet" else ("utf-8", "surrogatepass")
    )  # a byte is a character
    return {
        path.name: path.read_bytes().decode(*coded) for path in sorted((CORPUS / name).iterdir())
    }


@pytest.mark.parametrize("name", READERS)
def test_the_corpus(name, tmp_path):
    read = READERS[name][0]
    for file, text in corpus(name).items():
        with at_once(text):
            assert read(text, tmp_path) == file.startswith("good"), file


@pytest.mark.parametrize("name", READERS)
def test_changed_inputs(name, tmp_path):
    (read, words), seeds = READERS[name], list(corpus(name).values())
    rng, accepted, seen = random.Random(f"{SEED} {name}"), 0, {hash(text) for text in seeds}
    with in_little_memory():
        while len(seen) < TRIES + len(seeds):
            text = mutated(rng, seeds, words)
            if hash(text) in seen:
                continue
            seen.add(hash(text))
            try:
                with at_once(text):
                    accepted += read(text, tmp_path)
            except BaseException as e:
                e.add_note(f"for the input {json.dumps(text)}")
                raise
    assert (
        0.01 * TRIES < accepted < 0.99 * TRIES
    )  # a mutator that is always, or never, refused finds nothing


def test_a_reader_that_hangs_is_noticed(tmp_path, monkeypatch):
    def hang(*_):
        while True:
            pass

    monkeypatch.setattr("kxbook.report.table._csv_partitions", hang)
    monkeypatch.setattr("test_fuzz.SECONDS", 0.2)
    with pytest.raises(Late), at_once("a\n1\n"):
        read_csv("a\n1\n", tmp_path)


def test_a_reader_that_wastes_memory_is_noticed():
    with pytest.raises(AssertionError), in_little_memory():
        np.ones(MEGABYTES << 18).sum()
    with in_little_memory():  # and forgotten
        pass
