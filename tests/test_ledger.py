"""The claim ledger of the book as it stands; its rules are explained, and broken one by one, in 00_claim."""

import json
from pathlib import Path

from kxbook.claim import audit, read_ledger

NBS = Path(__file__).parent.parent / "nbs"


def test_ledger_is_honest():
    problems = audit(read_ledger(NBS))
    assert not problems, "\n".join(problems)


def test_unclaimed_theorem_is_found(tmp_path):
    for path in NBS.glob("*.ipynb"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"))
    theorem = {"cell_type": "markdown", "source": ["::: {#thm-new}\nBy @lem-mean, all is well.\n:::\n::: {.proof}\nSee @lem-mean.\n:::"]}
    (tmp_path / "89_new.ipynb").write_text(json.dumps({"cells": [theorem]}))
    assert audit(read_ledger(tmp_path)) == ["89_new.ipynb, cell 1: thm-new has no claim"]
