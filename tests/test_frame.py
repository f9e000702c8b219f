"""Every chapter has the same frame: what it needs, what one learns, a picture on the first screen, what to remember, errata, exercises.

The chapters of the account need none, and so does the tour.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
LATER = {  # chapters that are still to get their frame
    "460_search",
}  # fmt: skip


def chapters():
    "The notebooks of all parts but the last, in the order of the book."
    book = yaml.safe_load((ROOT / "_quarto.yml").read_text(encoding="utf-8"))["book"]["chapters"]
    parts = [item for item in book if not isinstance(item, str)]
    assert parts[-1]["part"] == "Account"
    return [Path(path).stem for part in parts[:-1] for path in part["chapters"]]


FRAMED = [name for name in chapters() if name not in LATER and not name.endswith("_tour")]


def cells(name):
    nb = json.loads((ROOT / "nbs" / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in nb["cells"]]


def section(text, title):
    "The text of a section; None if there is none."
    found = re.search(
        rf"^## {title} \{{#sec-[\w-]+\}}\n(.*?)(?=^## [^\n]*\{{#sec-|\Z)", text, re.S | re.M
    )
    return found and found[1]


def test_no_chapter_is_left_out_for_nothing():
    assert set(LATER) <= set(chapters()) and len(FRAMED) >= 20


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


@pytest.mark.parametrize("name", chapters())
def test_what_is_shown_runs_when_copied(name):
    "No code is hidden: imports and the code of pictures are folded; the notebook runs in the order that is seen."
    for kind, source in cells(name):
        if kind == "code" and "default_exp" not in source:
            assert not re.search(r"^#\| (hide|include: false|echo: false)", source, re.M), source
