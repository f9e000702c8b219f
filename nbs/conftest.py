"""Every notebook is a test: it runs from top to bottom in a process of its own, by nbdev's rules.

Cells marked `#| eval: false` never run. Those marked `#| slow: true` run in `make test-all` (`pytest -m ""`) only; a notebook that has some is there a second test, with
the marker `slow`, which runs all of it.
"""

import multiprocessing
import os
import re
import sys
import tempfile
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # a process for each core
    os.environ.setdefault(name, "1")
sys.modules["rfc3987_syntax"] = None  # jsonschema goes without: its grammars take seconds to load

import pytest  # noqa: E402
from run_notebook import DONE, LOADED, run  # noqa: E402

os.environ["MPLBACKEND"] = "agg"
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
PROCESSES = multiprocessing.get_context(METHOD)
PROCESSES.set_forkserver_preload(LOADED)
SLOW = "slow:"  # the key of the option, as nbdev sees it: `#| slow: true`


def pytest_collect_file(file_path: Path, parent):
    if file_path.suffix == ".ipynb" and ".ipynb_checkpoints" not in file_path.parts:
        return Notebook.from_parent(parent, path=file_path)


class Notebook(pytest.File):
    def collect(self):
        yield Run.from_parent(self, name="run", skip=[SLOW])
        if f'"#| {SLOW}' in self.path.read_text(encoding="utf-8"):
            slow = Run.from_parent(self, name="run-with-slow-cells", skip=[])
            slow.add_marker("slow")
            yield slow


class Run(pytest.Item):
    def __init__(self, *, skip: list[str], **kwargs):
        super().__init__(**kwargs)
        self.skip = skip

    def runtest(self):
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "output"
            process = PROCESSES.Process(target=run, args=(str(self.path), self.skip, str(output)))
            process.start()
            try:
                process.join()
            finally:
                process.kill()
            text = output.read_text(encoding="utf-8") if output.exists() else ""
        if process.exitcode or DONE not in text:
            raise NotebookFailed(self.summary(text))
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
        where = f"{self.path.name}, cell {cell[1]}, line {line[0] if line else '?'}"
        return f"{where}: {error}\n\n{frames[0].rstrip()}"

    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, NotebookFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, self.path.name


class NotebookFailed(Exception):
    "A cell raised; the text names notebook, cell and line."
