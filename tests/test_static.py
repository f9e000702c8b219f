"""The package agrees with its annotations, and no file has what a linter finds: mypy and ruff, with the settings in pyproject.toml; oxlint and oxfmt for the page of a report, with those in .oxlintrc.json and .oxfmtrc.json."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "kxbook" / "report"


def complaints(*command):
    "What a program has to say, run from the root of the repository; nothing if it is content."
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr or "failed silently"


def findings(tool, *words):
    "What a tool that is a module has to say."
    return complaints(sys.executable, "-m", tool, *words)


def page_findings(tool, *words):
    "What a tool for JavaScript has to say; it is a program beside the interpreter."
    return complaints(str(Path(sysconfig.get_path("scripts")) / tool), *words)


@pytest.mark.slow  # most of a minute where it has not run before; `make quick` and `make lint` do it too
def test_types():
    assert not (found := findings("mypy")), found


def test_lint():
    assert not (found := findings("ruff", "check", "--output-format", "concise")), found


def test_lint_of_the_page():
    assert not (found := page_findings("oxlint", str(PAGE / "page.js"))), found
    files = [str(PAGE / name) for name in ("page.js", "page.css")]
    assert not (found := page_findings("oxfmt", "--check", *files)), found


def test_faults_of_the_page_are_found(tmp_path):
    "A name that nobody has defined, one that nobody uses, a loose comparison, and no format."
    text = (PAGE / "page.js").read_text(encoding="utf-8")
    bad = tmp_path / "page.js"
    bad.write_text(f"{text}\nfunction planted(a) {{ let b = 1; return a == missing }}\n", "utf-8")
    found = page_findings("oxlint", "--config", ".oxlintrc.json", str(bad))
    assert all(rule in found for rule in ("no-undef", "no-unused-vars", "eqeqeq")), found
    assert "page.js" in page_findings("oxfmt", "--check", "--config", ".oxfmtrc.json", str(bad))


def test_wrong_types_are_found(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        'one: int = "one"\ntwo: int = "two"  # type: ignore\ndef f(x):\n    return len(3)\n'
    )
    found = findings("mypy", "--cache-dir", str(tmp_path), str(bad))
    assert (
        "[assignment]" in found
        and "[ignore-without-code]" in found
        and "[arg-type]" in found
        and "Found 3 errors" in found
    )


def test_lint_is_found(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("import sys\nimport os\nprint(dict([(1, missing)]))\n")
    found = findings(
        "ruff",
        "check",
        "--no-cache",
        "--config",
        "pyproject.toml",
        "--output-format",
        "concise",
        str(bad),
    )
    assert all(rule in found for rule in ("F401", "F821", "I001", "C406"))
