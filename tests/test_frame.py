"""Every chapter has the same frame: what it needs, what one learns, a picture on the first screen, what to remember, errata, exercises.

The chapters of the account need none, and so does the tour.
"""

import json
import re
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from test_browser import BOOK, OBSTACLE, REQUIRED

ROOT = Path(__file__).parent.parent
PAGES = {
    "740_blueprint",
    "750_errata",
}  # made by code from end to end: nothing there is to be copied
RAW = re.compile(
    r"\bnp\.(?:float|int|uint|bool|str)\w*\(|\bnp\.(?:True|False)_|\barray\(\[|\bdtype=|<[\w.]+ object at 0x|\d\.\d{9,}"
)
DIGITS = {"340_rigorous"}  # digits are what this chapter is about
PACE = 130  # words a minute


def chapters():
    "The notebooks of all parts but the last, in the order of the book."
    book = yaml.safe_load((ROOT / "_quarto.yml").read_text(encoding="utf-8"))["book"]["chapters"]
    parts = [item for item in book if not isinstance(item, str)]
    assert parts[-1]["part"] == "Account"
    return [Path(path).stem for part in parts[:-1] for path in part["chapters"]]


FRAMED = [name for name in chapters() if not name.endswith("_tour")]
ALL = sorted(path.stem for path in ROOT.glob("nbs/*.ipynb"))
needs_book = pytest.mark.skipif(bool(OBSTACLE) and not REQUIRED, reason=OBSTACLE or "-")


def cells(name):
    nb = json.loads((ROOT / "nbs" / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in nb["cells"]]


def section(text, title):
    "The text of a section; None if there is none."
    found = re.search(
        rf"^## {title} \{{#sec-[\w-]+\}}\n(.*?)(?=^## [^\n]*\{{#sec-|\Z)", text, re.S | re.M
    )
    return found and found[1]


def exercises():
    "Ids of the exercises of all chapters."
    return [id for name in FRAMED for _, s in cells(name) for id in re.findall(r"#(exr-[\w-]+)", s)]


def test_the_book_has_exercises_enough():
    assert len(FRAMED) >= 20 and len(set(exercises())) == len(exercises()) >= 60


@pytest.mark.parametrize("name", FRAMED)
def test_frame(name):
    found = cells(name)
    prose = "\n\n".join(source for kind, source in found if kind == "markdown")
    opening = prose.split("\n## ")[0]
    assert "\n**You need** " in opening and "\n**You will learn** " in opening
    seen = 0  # words before the first picture
    for kind, source in found:
        if kind == "code" and ("#| label: fig-" in source or "widget(" in source):
            break
        seen += len(source.split()) if kind == "markdown" else 0
    assert seen <= 250, f"{seen} words before the first picture"
    bullets = re.findall(r"^- ", section(prose, "What to remember") or "", re.M)
    assert 3 <= len(bullets) <= 5
    titles = re.findall(r"^## (.*?) \{#sec-", prose, re.M)
    last = [t for t in titles if t in ("Errata", "What to remember", "Exercises")]
    assert (
        titles[-len(last) :]
        == last
        == sorted(last, key=["Errata", "What to remember", "Exercises"].index)
    )
    errata = "::: {#rem-erratum-"
    assert prose.count(errata) == (section(prose, "Errata") or "").count(errata)


@pytest.mark.parametrize("name", FRAMED)
def test_exercises_have_solutions(name):
    found = cells(name)
    solved, open_, ids = 0, 0, []
    for i, (kind, source) in enumerate(found):
        if kind != "markdown":
            continue
        parts = re.split(r"^::: \{#(exr-[\w-]+)\}\n## (.*)\n", source, flags=re.M)
        for id, title, text in zip(parts[1::3], parts[2::3], parts[3::3]):
            after = found[i + 1] if i + 1 < len(found) and id == parts[-3] else ("", "")
            in_text = '::: {.callout-tip collapse="true"}' in text
            in_code = after[0] == "code" and '#| code-summary: "Solution"' in after[1]
            if in_code:
                assert "#| code-fold: true" in after[1] and "assert" in after[1], id
            assert in_text or in_code or re.search(r"\((open|project)", title), f"{id}: no solution"
            solved, open_ = solved + (in_text or in_code), open_ + (not (in_text or in_code))
            ids.append(id)
    assert 3 <= len(ids) <= 6 and open_ <= 1, ids
    assert solved >= 2


@pytest.mark.parametrize("name", sorted(set(ALL) - PAGES))
def test_what_is_shown_runs_when_copied(name):
    "No code is hidden: imports and the code of pictures are folded. So to run a notebook, as its own test does, is to run what is shown, in the order that is seen."
    for kind, source in cells(name):
        if kind == "code" and "default_exp" not in source:
            assert not re.search(r"^#\| (hide|include: false|echo: false)", source, re.M), source


def prose(id):
    "Words of a chapter or a section, by its label, without exercises."
    for name in ALL:
        text = "\n\n".join(source for kind, source in cells(name) if kind == "markdown")
        text = text.split("\n## Exercises {#")[0]
        if re.match(rf"# .*\{{#{id}\}}", text):
            return len(text.split())
        if found := re.search(
            rf"^## [^\n]*\{{#{id}\}}\n(.*?)(?=^## [^\n]*\{{#sec-|\Z)", text, re.S | re.M
        ):
            return len(found[1].split())
    raise ValueError(id)


def test_the_ways_through_the_book_take_as_long_as_the_index_says():
    index = (ROOT / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| an? .*\| (.*@sec.*) \| (\d+) \|$", index, re.M)
    assert len(rows) == 3
    for ways, minutes in rows:
        words = sum(map(prose, re.findall(r"@(sec-[\w-]*\w)", ways)))
        assert abs(words / PACE - int(minutes)) <= 10, f"{words / PACE:.0f} minutes: {ways}"
    assert prose("sec-tour") / PACE <= 20


def raw(page):
    "What looks like Python, and not like a result, in the text outputs of a page."
    outputs = BeautifulSoup(page, "lxml").select(".output.stream, .output.text_plain")
    return [m[0] for output in outputs for m in RAW.finditer(output.get_text())]


@needs_book
@pytest.mark.parametrize("name", sorted(set(ALL) - DIGITS))
def test_outputs_are_written_for_readers(name):
    assert not raw((BOOK / "nbs" / f"{name}.html").read_text(encoding="utf-8"))


def test_raw_outputs_are_found():
    for text in ("(np.float64(1.0), 2)", "array([1, 2])", "0.96466745372097", "dtype=int32"):
        assert raw(f'<div class="output text_plain"><pre>{text}</pre></div>')
    assert not raw('<div class="output stream"><pre>price 1.0375, 8796093022208</pre></div>')
