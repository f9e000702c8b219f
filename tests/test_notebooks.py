"""The runner of notebooks itself: what fails is named, what should not run does not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def run(tmp_path):
    "Run pytest on a folder with one notebook of the given cells, and one beside it if there are cells for it."
    shutil.copy(ROOT / "nbs" / "conftest.py", tmp_path)
    shutil.copy(ROOT / "settings.ini", tmp_path)

    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tools"), str(ROOT)])}

    def run(*cells, mark="not slow", front="# A chapter", beside=()):
        first = (
            nbformat.v4.new_raw_cell(front)
            if front.startswith("---")
            else nbformat.v4.new_markdown_cell(front)
        )
        for name, sources in {"07_broken": cells, "08_beside": beside}.items():
            code = list(map(nbformat.v4.new_code_cell, sources))
            if code:
                nbformat.write(
                    nbformat.v4.new_notebook(cells=[first, *code]), tmp_path / f"{name}.ipynb"
                )
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-o",
            "markers=slow",
            "-m",
            mark,
            str(tmp_path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
        return done.returncode, done.stdout

    return run


def test_failure_names_notebook_cell_and_line(run):
    "The notebook beside it passes: its cells share a namespace and run in order."
    code, text = run(
        "x = 0", "y = 1\nassert x == y, 'not equal'", beside=("x = 1", "assert x == 1")
    )
    assert code == 1 and "1 failed, 1 passed" in text
    assert "07_broken.ipynb, cell 3, line 2: AssertionError: not equal" in text
    assert "site-packages" not in text


@pytest.mark.slow
def test_cells_share_a_namespace_and_run_in_order(run):
    assert run("x = 1", "assert x == 1")[0] == 0


@pytest.mark.slow
def test_cells_not_to_be_run_are_not(run):
    assert run("#| eval: false\n1 / 0")[0] == 0


@pytest.mark.parametrize("cell", ["import os; os._exit(0)", "nbdev_export()\n1 / 0"])
@pytest.mark.slow
def test_a_notebook_that_stops_early_or_passes_over_cells_fails(run, cell):
    code, text = run("x = 1", cell)
    assert code == 1 and "07_broken.ipynb" in text


@pytest.mark.slow
def test_a_notebook_that_is_not_run_at_all_fails(run):
    code, text = run("x = 1", front="---\nskip_exec: true\n---")
    assert code == 1 and "did not run to its end" in text


@pytest.mark.slow
def test_slow_cells_run_on_request_only(run):
    assert run("#| slow: true\n1 / 0")[0] == 0
    code, text = run("#| slow: true\n1 / 0", mark="slow")
    assert code == 1 and "ZeroDivisionError" in text
