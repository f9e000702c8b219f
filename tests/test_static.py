"""The package agrees with its annotations, and no file has what a linter finds: mypy and ruff, with the settings in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def findings(tool, *words):
    "What a tool has to say, run from the root of the repository; nothing if it is content."
    done = subprocess.run(
        [sys.executable, "-m", tool, *words], cwd=ROOT, capture_output=True, text=True
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_types():
    assert not (found := findings("mypy")), found


def test_lint():
    assert not (found := findings("ruff", "check", "--output-format", "concise")), found


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
