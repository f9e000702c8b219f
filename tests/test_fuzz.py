"""Whatever is read is understood or refused in words, at once and in little memory: trees, documents, tables, cells of notebooks.

Inputs are made from those in `corpus/`, one folder per reader, by a small mutator. Quick: as part of `make test`. Long, 10^6 inputs in all:
`FUZZ=200000 .venv/bin/python -m pytest -n 2 tests/test_fuzz.py`. An input that was once mistaken for another is kept in the corpus.
"""

import argparse
import json
import os
import random
import resource
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import quarto

from kxbook import report
from kxbook.cli import UserError, assign_piece, read_table
from kxbook.tree import Tree

CORPUS = Path(__file__).parent / "corpus"
TRIES = int(os.environ.get("FUZZ", 1500))  # inputs for each reader
SECONDS, MEGABYTES = 5, 300  # that one input may take, and that all of them may leave
NUMBERS = ["0", "-1", "1", "2", "0.5", "-0.0", "5e-324", "1e308", "1e999", "-1e999", "NaN", "Infinity", "null", "true", "9" * 20, "9" * 400, "2147483648", "1_0", "٣", "0x1", "1e-400"]
WORDS = [*NUMBERS, "", '""', "[]", "{}", "[[", "]]", "{", "}", ",", ":", ";", "\t", "|", '"', "'", "\\", "\\ud800", "\ud800", "\x00", "\r", "\n", "\r\n", "\ufeff", "\u202e", "é", "🦄", " ", "    "]
MARKS = ["#", "# ", "## A", ":::", "::: {#lem-a}", "::: {.proof}", "::: {.callout-note}", "{#sec-a}", "{#eq-a}", "{#tbl-a}", "$$", "$", "```", "~~~", "`", "@lem-a", "[@key]", "[@a; @b", "|---|", ": T", "<!--", "-->", "](", "{{<", "^[", "%", "+++", "(a)=", "#| ", "#| label: fig-a", '#| fig-cap: "', "#| export", "#| eval: false", "%%time", "!ls", "def f(", "lambda", "(" * 50]


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
            text = text[:i] + chr(rng.choice((rng.randrange(128), rng.randrange(0x110000)))) + text[j:]
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


@contextmanager
def at_once(text):
    "Fail if something takes longer than it may."

    def late(*_):
        raise TimeoutError(f"more than {SECONDS} s for {text[:2000]!r}")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
    except ValueError:
        return False
    use(tree)
    again = report.from_document(report.to_document(tree, features, clusters))
    assert again == (tree, features, clusters)
    names = {}
    exec(report.to_python(tree, features, clusters), names)
    row = {f.column: None if f.value is None else "" for f in features}
    names["cluster"](row)
    columns = {f.column: ["", "1", f.value or "2"] for f in features}
    labels, missing = assign_piece(tree, features, columns)
    assert len(labels) == len(missing) == 3
    said = report.rules_text(tree, features, clusters) + "".join(map(str, clusters or []))
    assert said.encode("utf-8")
    if "\0" not in "".join(f.column + (f.value or "") for f in features) + "".join(clusters or []):
        report.to_sql(tree, features, clusters)
    return True


def read_csv(text, folder):
    path = folder / "table.csv"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    plain = dict(data=str(path), encoding="utf-8-sig", delimiter=None, columns=None, drop=None, labels=None, truth=None, decimal=".", one_hot=False, impute=None)
    rng = random.Random(len(text))
    odd = dict(one_hot=True, impute=rng.choice(["median", "mean"]), decimal=rng.choice(".,"), encoding=rng.choice(["utf-8", "latin-1", "utf-16"]), delimiter=rng.choice([None, ";"]))
    return [as_table(plain | more) for more in ({}, odd)][0]


def as_table(asked):
    try:
        table = read_table(argparse.Namespace(**asked))
    except UserError as e:
        assert str(e)
        return False
    assert table.X.ndim == 2 and table.X.shape[1] == len(table.features) and np.isfinite(table.X).all()
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
        quarto.notebook({"cells": [{"cell_type": "code", "source": text}]}, "here", quarto.Names())
    except quarto.BookError as e:
        assert str(e).startswith("here, cell 1: ")
        return False
    return True


READERS = {"tree": (read_tree, WORDS), "document": (read_document, WORDS), "table": (read_csv, WORDS), "markdown": (read_markdown, WORDS + MARKS), "cell": (read_cell, WORDS + MARKS)}


def corpus(name):
    return {path.name: path.read_bytes().decode("utf-8", "surrogatepass") for path in sorted((CORPUS / name).iterdir())}


@pytest.mark.parametrize("name", READERS)
def test_the_corpus(name, tmp_path):
    read = READERS[name][0]
    for file, text in corpus(name).items():
        with at_once(text):
            assert read(text, tmp_path) == file.startswith("good"), file


@pytest.mark.parametrize("name", READERS)
def test_changed_inputs(name, tmp_path):
    (read, words), seeds = READERS[name], list(corpus(name).values())
    rng = random.Random(0 if TRIES == 1500 else time.time_ns())
    before, accepted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    for _ in range(TRIES):
        text = mutated(rng, seeds, words)
        try:
            with at_once(text):
                accepted += read(text, tmp_path)
        except BaseException as e:
            e.add_note(f"for the input {json.dumps(text)}")
            raise
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1024
    assert 0.01 * TRIES < accepted < 0.99 * TRIES  # a mutator that is always, or never, refused finds nothing
