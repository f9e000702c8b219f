"""The notebooks are the source: exporting and cleaning them again changes nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def content(root):
    paths = [*(root / "nbs").glob("*.ipynb"), *(root / "kxbook").rglob("*.py")]
    return {str(p.relative_to(root)): p.read_text(encoding="utf-8") for p in paths}


def out_of_sync(root, tmp_path):
    "Files that exporting and cleaning a copy of `root` changes."
    copy = tmp_path / "copy"
    for name in ("nbs", "kxbook"):
        shutil.copytree(
            root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
    shutil.copy(root / "settings.ini", copy)
    before = content(copy)
    subprocess.run(
        [sys.executable, ROOT / "tools" / "sync.py"],
        cwd=copy,
        check=True,
        capture_output=True,
        env=os.environ | {"PWD": str(copy)},
    )
    after = content(copy)
    return sorted(name for name in before | after if before.get(name) != after.get(name))


def test_in_sync(tmp_path):
    assert out_of_sync(ROOT, tmp_path) == [], "run `make sync` and commit the result"


def test_stale_module_and_dirty_notebook_are_found(tmp_path):
    for name in ("nbs", "kxbook", "settings.ini"):
        source, target = ROOT / name, tmp_path / "book" / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    module = tmp_path / "book" / "kxbook" / "kernel.py"
    module.write_text(module.read_text() + "\nx = 1\n")
    notebook = tmp_path / "book" / "nbs" / "120_data.ipynb"
    nb = json.loads(notebook.read_text())
    next(c for c in nb["cells"] if c["cell_type"] == "code")["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": ["hi"]}
    ]
    notebook.write_text(json.dumps(nb))
    assert out_of_sync(tmp_path / "book", tmp_path) == ["kxbook/kernel.py", "nbs/120_data.ipynb"]


def test_files_that_stay_keep_their_times(tmp_path):
    for name in ("nbs", "kxbook", "settings.ini"):
        source, target = ROOT / name, tmp_path / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    module, other = tmp_path / "kxbook" / "kernel.py", tmp_path / "kxbook" / "tree.py"
    other.write_text(other.read_text() + "\nx = 1\n")
    for path in (module, other):
        os.utime(path, (1e9, 1e9))
    command = [sys.executable, ROOT / "tools" / "sync.py"]
    subprocess.run(command, cwd=tmp_path, check=True, env=os.environ | {"PWD": str(tmp_path)})
    assert module.stat().st_mtime == 1e9 < other.stat().st_mtime
