"""What a change touches, in about a minute: its notebooks, the tests of their modules, the ledger, and whether everything is exported: `make quick`, `make quick SINCE=main`.

A changed notebook brings the test file of its module, a changed test file itself; files whose tests are not called after them are listed below.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ALWAYS = [
    "tests/test_ledger.py",
    "tests/test_sync.py",
    "tests/test_static.py",
    "tests/test_layering.py",
]
BESIDE = {  # test files beside test_<module>.py
    "README.md": ["readme"], "CONTRIBUTING.md": ["contributing"], "Makefile": ["readme", "project"], "pyproject.toml": ["package", "project"], ".github": ["project"],
    "site": ["site"], "index.md": ["site"], "_quarto.yml": ["site"], "tools": ["tools"], "nbs/conftest.py": ["notebooks"],
    "kkmeans": ["estimators"], "rigorous": ["certificates"], "price": ["price", "certificates"], "certificate": ["price", "certificates"], "exact": ["price"], "imm": ["imm", "grow"], "columns": ["imm", "grow"], "codetree": ["search"], "sweep": ["grow", "tree"], "kernel": ["gram"], "nodes": ["imm", "grow"], "fit": ["fit", "estimators"], "memory": ["fit"], "tables": ["scale"], "partitioned": ["fit", "scale"],
    **dict.fromkeys(("report.table", "report.words", "report.export", "report.page", "report.explanation", "kxbook/report"), ["report", "page", "explain", "cli"]),
}  # fmt: skip


def changed(since):
    "Paths that differ from a commit, and new ones; the last commit's if nothing does."

    def git(*words):
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()

    paths = git("diff", "--name-only", "--relative", since) + git(
        "ls-files", "--others", "--exclude-standard"
    )
    return paths or git("diff", "--name-only", "--relative", "HEAD~1")


def module_of(notebook):
    "The module that a notebook exports to, or ''."
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    found = re.search(r"^#\| default_exp ([\w.]+)", text, re.M)
    return found[1] if found else ""


def touched(paths):
    "What pytest should run."
    names, tests = [], []
    for path in paths:
        if path.startswith("nbs/") and path.endswith(".ipynb") and (ROOT / path).exists():
            tests.append(path)
            names.append(module_of(ROOT / path))
        elif path.startswith("tests/test_") and (ROOT / path).exists():
            tests.append(path)
        names += [key for key in BESIDE if path == key or path.startswith(f"{key}/")]
    files = [f"tests/test_{test}.py" for name in names for test in BESIDE.get(name, [name])]
    return list(dict.fromkeys([*tests, *(f for f in files if (ROOT / f).exists()), *ALWAYS]))


if __name__ == "__main__":
    tests = touched(changed(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))
    print("pytest", *tests, flush=True)
    commands = ["mypy"], ["pytest", "-q", *tests]
    codes = [
        subprocess.run([sys.executable, "-m", *words], cwd=ROOT).returncode for words in commands
    ]
    sys.exit(max(codes))
