"""The recipes of CONTRIBUTING.md, followed word for word in a copy of the repository; and that the other papers of the project are true."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).parent.parent
SYNC = "tools/sync.py"


def recipe(title):
    "The code blocks of a section, as (language, text)."
    found, section, block = [], None, None
    for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines():
        if block is not None and line == "```":
            found += [(block[0], "\n".join(block[1:]))] if section == title else []
            block = None
        elif block is not None:
            block.append(line)
        elif line.startswith("```"):
            block = [line[3:]]
        elif line.startswith("## "):
            section = line[3:]
    return found


@pytest.fixture
def copy(tmp_path):
    for name in ("nbs", "kxbook", "tests", "site", "tools"):
        shutil.copytree(
            ROOT / name,
            tmp_path / name,
            ignore=shutil.ignore_patterns("__pycache__", ".*", "static"),
        )
    for name in ("pyproject.toml", "settings.ini", "_quarto.yml", "README.md", "index.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def follow(commands, copy):
    "Run the lines of a shell block in the copy, with this environment in place of its own."
    assert commands.splitlines()[0] == "make sync" and SYNC in (ROOT / "Makefile").read_text()
    for line in commands.splitlines():
        command = (
            f"{sys.executable} {SYNC}"
            if line == "make sync"
            else line.replace(".venv/bin/python", sys.executable)
        )
        command = command.replace("-m pytest", "-m pytest -n 0 -p no:cacheprovider")
        done = subprocess.run(
            command,
            shell=True,
            cwd=copy,
            env=os.environ | {"PWD": str(copy), "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cell(language, text):
    return (nbformat.v4.new_markdown_cell if language == "markdown" else nbformat.v4.new_code_cell)(
        text
    )


def edit(path, change):
    notebook = nbformat.read(path, 4)
    change(notebook.cells)
    nbformat.write(notebook, path)


@pytest.mark.slow
def test_a_chapter(copy):
    *cells, (kind, line), (_, commands) = recipe("A chapter")
    nbformat.write(
        nbformat.v4.new_notebook(
            cells=[cell(*c) for c in cells],
            metadata=nbformat.read(copy / "nbs" / "705_claim.ipynb", 4).metadata,
        ),
        copy / "nbs" / "570_parity.ipynb",
    )
    book = copy / "_quarto.yml"
    assert kind == "yaml" and "- nbs/560_cli.ipynb\n" in book.read_text()
    book.write_text(
        book.read_text().replace(
            "        - nbs/560_cli.ipynb\n", f"        - nbs/560_cli.ipynb\n{line}\n"
        )
    )
    follow(commands, copy)
    parts = yaml.safe_load(book.read_text())["book"]["chapters"]
    assert any(
        "nbs/570_parity.ipynb" in part["chapters"] for part in parts if isinstance(part, dict)
    )
    assert "def is_even" in (copy / "kxbook" / "parity.py").read_text()


def insert_line(cells, start, line):
    "Put a line after the one that begins with `start`."
    (found,) = [
        c
        for c in cells
        if c.cell_type == "code" and re.search(rf"^{re.escape(start)}", c.source, re.M)
    ]
    found.source = re.sub(
        rf"^({re.escape(start)}.*)$", lambda m: f"{m[1]}\n{line}", found.source, count=1, flags=re.M
    )
    return cells.index(found)


@pytest.mark.slow
def test_a_kernel(copy):
    (_, make), (_, name), (_, surrogates), (_, lesson), (_, commands) = recipe("A kernel")

    def change(cells):
        at = insert_line(cells, "KERNELS: ", name)
        cells.insert(at, cell("python", make))
        cells.insert(at + 2, cell("python", lesson))

    edit(copy / "nbs" / "130_kernel.ipynb", change)
    edit(
        copy / "nbs" / "220_surrogate.ipynb",
        lambda cells: insert_line(cells, "SURROGATES = {", surrogates),
    )
    assert "The tree's clusters cost" in follow(commands, copy)


@pytest.mark.slow
def test_a_claim(copy):
    *cells, (_, commands) = recipe("A claim")
    edit(copy / "nbs" / "130_kernel.ipynb", lambda before: before.extend(cell(*c) for c in cells))
    follow(commands, copy)
    edit(copy / "nbs" / "130_kernel.ipynb", lambda before: before.pop())
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "0",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/test_ledger.py",
        ],
        cwd=copy,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "lem-gram-part has no claim" in done.stdout


def test_the_long_runs_exist():
    ((_, text),) = [block for block in recipe("A defect") if block[0] == "text"]
    for path in re.findall(r"t\w+/\w+\.py", text):
        assert (ROOT / path).exists()
    for name, variable in (("properties", "HYPOTHESIS_PROFILE"), ("fuzz", "FUZZ")):
        source = (ROOT / "tests" / f"test_{name}.py").read_text()
        assert re.search(rf'os\.environ\.get\(\s*"{variable}"', source)


def test_the_citation_is_of_this_project():
    cited, project = (
        yaml.safe_load((ROOT / "CITATION.cff").read_text()),
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"],
    )
    assert (
        "version" not in cited  # which stands in one place
        and cited["license"] == project["license"]
        and [a["name"] for a in cited["authors"]] == [a["name"] for a in project["authors"]]
    )
    paper, bib = cited["references"][0], (ROOT / "site" / "references.bib").read_text()
    assert (
        f"{{{paper['title']}}}" in bib
        and " and ".join(f"{a['family-names']}, {a['given-names']}" for a in paper["authors"])
        in bib
    )


def test_files_that_are_spoken_of_exist():
    for name in ("SECURITY.md", "CONTRIBUTING.md", "RELEASING.md"):
        for path in re.findall(
            r"`((?:tests|tools|nbs|benchmarks)/[\w./]*)`", (ROOT / name).read_text()
        ):
            assert (ROOT / path).exists() or path == "nbs/570_parity.ipynb", (
                f"{name} speaks of {path}"
            )
