"""The claim ledger of the book as it stands; its rules are explained, and broken one by one, in 705_claim."""

import json
import re
import subprocess
import sys
from pathlib import Path

import build
import pytest
import show_badges
from claims import changed, claims_in, code_cells, in_a_child, place_of

from kxbook.claim import BADGES, KINDS, audit, claim, read_cells, read_ledger

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


def test_chapters_are_numbered_in_the_order_of_their_names():
    "So the ledger, which reads the folder, counts as the renderers do, which read _quarto.yml."
    _, parts = build.contents(NBS.parent)
    chapters = [Path(p).name for _, paths in parts for p in paths if p.endswith(".ipynb")]
    assert chapters == list(read_ledger(NBS).chapters)


PROOFS = {"": [], "::: {.proof}\nClear.\n:::": ["proved"]}
PROOFS['::: {.proof name="sketch"}\nClear.\n:::'] = ["sketch"]


@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("kind", ["", *KINDS])
@pytest.mark.parametrize("id", ["thm-a", "exm-a", "def-a", "rem-erratum-a"])
def test_badges_follow_from_what_is_written(id, kind, proof):
    "Of each channel at most one, and each named in BADGES."
    cells = [("markdown", f"::: {{#{id}}}\nSo it is.\n:::\n{proof}")]
    if kind:
        cells.append(("code", f"with claim({id!r}, kind={kind!r}): assert 1 < 2"))
    badges = read_cells(cells).statements[id].badges
    check = "paper" if kind == "refuted" and id == "rem-erratum-a" else kind
    assert badges == PROOFS[proof] + [check] * bool(kind) and set(badges) <= set(BADGES)


def test_every_badge_of_the_book_is_explained_and_none_is_typed():
    texts = {p: p.read_text(encoding="utf-8") for p in NBS.glob("*.ipynb")}
    explained = texts[NBS / "705_claim.ipynb"]
    assert all(f"| {text} |" in explained for text, _ in BADGES.values())
    used = {name for s in read_ledger(NBS).statements.values() for name in s.badges}
    assert {"proved", "cited", "exact", "sampled", "paper"} <= used
    assert not [p.name for p, text in texts.items() if "badge-" in text]


@pytest.mark.parametrize("id, kind, line", [
    ("lem-a", "exact", "✓ lem-a: decided exactly"),
    ("lem-a", "sampled", "✓ lem-a: held in every case tried"),
    ("thm-a", "cited", "– thm-a: taken from the literature, not checked here"),
    ("lem-a", "refuted", "✗ lem-a: refuted by a witness"),
    ("rem-erratum-a", "refuted", "✗ rem-erratum-a: the paper's sentence is refuted by a witness"),
    ("rem-erratum-a", "exact", "✓ rem-erratum-a: decided exactly"),
])  # fmt: skip
def test_outcomes(capsys, id, kind, line):
    with claim(id, kind=kind):
        pass
    assert capsys.readouterr().out == line + "\n"


def test_proofs_that_say_they_are_sketches_are_named_so():
    "A proof whose own words call it a sketch, or that omits something, must not carry the badge of a complete one."
    for path in sorted(NBS.glob("[0-9]*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for text in ("".join(c["source"]) for c in cells if c["cell_type"] == "markdown"):
            for attrs, body in re.findall(
                r"^::: \{(\.proof[^}]*)\}\n(.*?)^:::$", text, re.S | re.M
            ):
                admits = re.search(r"\b(sketch|we omit|omitted|left to the reader)\b", body, re.I)
                assert not admits or "sketch" in attrs, f"{path.name}: {admits[0]}"


def test_quarto_shows_badges():
    "The filter adds a line to each statement that has badges, and changes nothing else."
    ledger, lines = read_ledger(NBS), 0
    for path in sorted(NBS.glob("[0-9]*.ipynb")):
        before = json.loads(path.read_text(encoding="utf-8"))["cells"]
        after = json.loads(json.dumps(before))
        show_badges.show_badges(after)
        for old, new in zip(before, after, strict=True):
            old, new = "".join(old["source"]).split("\n"), "".join(new["source"]).split("\n")
            added = [row for row in new if row.startswith("[") and "]{.badge-" in row]
            lines += len(added)
            assert [row for row in new if row and row not in added] == [row for row in old if row]
    assert lines == sum(bool(s.badges) for s in ledger.statements.values())
    text = '```\n::: {#lem-b}\n:::\n```\n::: {#lem-a}\n## T\nSo.\n:::\n::: {.proof name="sketch"}\nx\n:::'
    cells = [{"cell_type": "markdown", "source": [text]}]
    done = subprocess.run(
        [sys.executable, show_badges.__file__],
        input=json.dumps({"cells": cells}).encode(),
        capture_output=True,
        check=True,
    )
    (cell,) = json.loads(done.stdout)["cells"]
    badge = '\n[sketch]{.badge-sketch title="the proof that follows leaves out steps"}'
    assert "".join(cell["source"]) == text.replace("So.\n", f"So.\n{badge}\n")
