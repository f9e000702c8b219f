"""The tools beside the tests: prose one sentence a line, and what a change touches."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import quick
from markdown_it import MarkdownIt
from prose import reflow, sentences

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "text, lines",
    [
        ("One sentence stands here. Another one\nfollows it.", ["One sentence stands here.", "Another one follows it."]),
        ("This is so, cf. Lemma 2, and e.g. Anna said it. Is it? Yes, it is so.", ["This is so, cf. Lemma 2, and e.g. Anna said it.", "Is it? Yes, it is so."]),
        ("A formula $a. B$ and `code. Here` end no sentence. $x$ begins one.", ["A formula $a. B$ and `code. Here` end no sentence.", "$x$ begins one."]),
        ("Two lessons. The first one is short.", ["Two lessons. The first one is short."]),
        ("*A heading of its own.* What it is about.", ["*A heading of its own.* What it is about."]),
        ("It costs 3.5 times as much (see there). (So it is.) Then more.", ["It costs 3.5 times as much (see there).", "(So it is.) Then more."]),
    ],
)  # fmt: skip
def test_sentences(text, lines):
    assert sentences(text) == lines


def test_only_paragraphs_and_items_move():
    text = """## Heading. One more

::: {#lem-x}
| a. B | c |
|---|---|

$$
a. B
$$ {#eq-x}

1. First item goes on here. It has
   a second sentence.
- Other item.

```sh
make test. Then more.
```
:::"""
    moved = reflow(text)
    assert moved == text.replace("here. It has\n   a second", "here.\n   It has a second")
    assert reflow(moved) == moved


def test_the_page_stays_as_it_is():
    def page(text):
        return re.sub(r"\s+", " ", MarkdownIt().enable("table").render(text))

    for path in sorted((ROOT / "nbs").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                joined = re.sub(r"(?<=[a-z.?!])\n(?=[A-Za-z])", " ", "".join(cell["source"]))
                assert page(reflow(joined)) == page(joined)


def test_notebooks_are_one_sentence_a_line(tmp_path):
    tool = [sys.executable, ROOT / "tools" / "prose.py"]
    done = subprocess.run([*tool, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    source = ["The first sentence is here. The second one is here."]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": source}]}))
    done = subprocess.run([*tool, "--check", path], capture_output=True, text=True)
    assert done.returncode == 1 and "a.ipynb, cell 1" in done.stdout
    subprocess.run([*tool, path], check=True)
    assert subprocess.run([*tool, "--check", path]).returncode == 0


def test_what_a_change_touches():
    chosen = quick.touched(
        ["nbs/310_price.ipynb", "tests/test_tree.py", "README.md", "nbs/none.ipynb"]
    )
    assert chosen[:2] == ["nbs/310_price.ipynb", "tests/test_tree.py"]
    assert {"tests/test_price.py", "tests/test_certificates.py", "tests/test_readme.py"} <= set(
        chosen
    )
    assert set(quick.ALWAYS) <= set(chosen) and "nbs/none.ipynb" not in chosen
    for tests in quick.BESIDE.values():
        assert all((ROOT / "tests" / f"test_{name}.py").exists() for name in tests)
