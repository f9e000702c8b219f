"""Every notebook is a test: it runs from top to bottom in a process of its own, by nbdev's rules.

Cells marked `#| eval: false` never run; those marked `#| slow` run in a second test of the notebook, which has the marker
`slow` and is left out unless asked for (`pytest -m slow`, `make test-all`).
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys
from pathlib import Path
from nbdev.test import test_nb
passed, seconds = test_nb(Path(sys.argv[1]), skip_flags=sys.argv[2:])
if passed and seconds: print("every cell ran")
sys.exit(not passed)
"""


def pytest_collect_file(file_path: Path, parent):
    if file_path.suffix == ".ipynb" and ".ipynb_checkpoints" not in file_path.parts:
        return Notebook.from_parent(parent, path=file_path)


class Notebook(pytest.File):
    def collect(self):
        yield Run.from_parent(self, name="run", skip=["slow"])
        if re.search(r'"#\| *slow\b', self.path.read_text(encoding="utf-8")):
            slow = Run.from_parent(self, name="run-with-slow-cells", skip=[])
            slow.add_marker("slow")
            yield slow


class Run(pytest.Item):
    def __init__(self, *, skip: list[str], **kwargs):
        super().__init__(**kwargs)
        self.skip = skip

    def runtest(self):
        command = [sys.executable, "-c", RUN, str(self.path), *self.skip]
        done = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | {"MPLBACKEND": "agg"}
        )
        if done.returncode or "every cell ran" not in done.stdout:
            raise NotebookFailed(self.summary(done.stderr + done.stdout))
        if "nbdev_export(" in self.path.read_text(encoding="utf-8"):
            raise NotebookFailed(
                f"{self.path.name}: nbdev passes over a cell that contains nbdev_export(; use `make sync`"
            )

    def summary(self, text):
        "Notebook, cell, line and error first; then the traceback from the cell on."
        cell = re.search(r"While Executing Cell #(\d+)", text)
        frames = re.search(r' *File "<ipython-input.*', text, re.S)
        if not cell or not frames:
            return f"{self.path.name} did not run to its end.\n{text}"
        line = re.findall(r'File "<ipython-input[^"]*", line (\d+), in <module>', frames[0])
        error = frames[0].strip().splitlines()[-1]
        return f"{self.path.name}, cell {cell[1]}, line {line[0] if line else '?'}: {error}\n\n{frames[0].rstrip()}"

    def repr_failure(self, excinfo):
        return (
            str(excinfo.value)
            if isinstance(excinfo.value, NotebookFailed)
            else super().repr_failure(excinfo)
        )

    def reportinfo(self):
        return self.path, None, self.path.name


class NotebookFailed(Exception):
    "A cell raised; the text names notebook, cell and line."
