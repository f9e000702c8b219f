"""The claim ledger of the book as it stands; its rules are explained, and broken one by one, in 110_claim."""

import json
from pathlib import Path

import pytest
from claims import changed, claims_in, code_cells, in_a_child, place_of

from kxbook.claim import audit, read_ledger

NBS = Path(__file__).parent.parent / "nbs"


def test_ledger_is_honest():
    problems = audit(read_ledger(NBS))
    assert not problems, "\n".join(problems)


def test_unclaimed_theorem_is_found(tmp_path):
    for path in NBS.glob("*.ipynb"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"))
    theorem = {
        "cell_type": "markdown",
        "source": [
            "::: {#thm-new}\nBy @lem-mean, all is well.\n:::\n::: {.proof}\nSee @lem-mean.\n:::"
        ],
    }
    (tmp_path / "89_new.ipynb").write_text(json.dumps({"cells": [theorem]}))
    assert audit(read_ledger(tmp_path)) == ["89_new.ipynb, cell 1: thm-new has no claim"]


@pytest.mark.parametrize("path", sorted(NBS.glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_changes_that_claims_must_notice_can_be_made(path):
    cells = code_cells(path)
    for at, (_, source) in enumerate(cells):
        for id, breaks in claims_in(source)[0]:
            for old, new in breaks.items():
                place, text = place_of(old, cells, at)
                assert text != new, f"{id}: {old!r} changes nothing"
                if not isinstance(place, str):
                    compile(changed(cells, place, text, new), id, "exec")


def outcome(claim, *others):
    "What becomes of the first change of a claim, after some other cells."
    cells = [(i, source) for i, source in enumerate([*others, claim], 1)]
    names = {}
    exec("from kxbook.claim import claim", names)
    for _, source in cells:
        exec(source, names)
    ((id, breaks),) = claims_in(claim)[0]
    ((old, new),) = breaks.items()
    return in_a_child(id, cells, len(cells) - 1, old, new, names)


def test_changes_are_noticed_by_assertions_of_the_claim_alone():
    check = 'with claim("lem-a", kind="exact", breaks={"b = 2": "b = %s"}):\n    b = 2\n    assert 1 < b\n    c = 1 / b'
    assert outcome(check % "1") == ""  # noticed
    assert outcome(check % "3") == "the claim passed"
    assert "ZeroDivisionError" in outcome(
        'with claim("lem-a", kind="exact", breaks={"b = 2": "b = 0"}):\n    b = 2\n    assert 1 / b'
    )
    elsewhere = (
        'with claim("lem-a", kind="exact", breaks={"return 2": "return 0"}):\n    assert 1 < f()'
    )
    assert outcome(elsewhere, "def f():\n    return 2") == ""
    assert (
        outcome(elsewhere.replace("    assert", "    pass\nassert"), "def f():\n    return 2")
        == "an assertion outside the claim failed"
    )
    assert "stands 0 times" in outcome(
        elsewhere.replace("return 2", "return 5"), "def f():\n    return 2"
    )
    assert "stands 2 times" in outcome(
        elsewhere, "def f():\n    return 2", "def f():\n    return 2"
    )
    module = 'import kxbook.kernel as kernel\nwith claim("lem-a", kind="exact", breaks={"kernel.py: return np.exp(-gamma * np.abs(s - t))": "return 0 * s"}):\n    assert kernel.laplace()([[0.0]])[0, 0] == 1'
    assert outcome(module) == ""
