"""The package as others install it: light to import, complete as a wheel, honest about what it needs."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

import kxbook

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
IMPORT_NAME = {"scikit-learn": "sklearn"}


def python(code, *args, **kwargs):
    command = [sys.executable, "-c", code, *args]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "check": True}
    return subprocess.run(command, **options | kwargs).stdout


def test_import_loads_nothing_heavy():
    loaded = python("import sys, kxbook; print(*{m.split('.')[0] for m in sys.modules})").split()
    assert not {"numpy", "scipy", "sklearn", "numba", "matplotlib", "pandas", "IPython"} & set(
        loaded
    )


def test_public_names_resolve():
    for name in kxbook.__all__:
        assert getattr(kxbook, name).__module__ == f"kxbook.{kxbook._HOME[name]}"
        assert name in dir(kxbook)
    assert kxbook.data.load_flame
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = kxbook.no_such_thing


NAMES = json.loads((ROOT / "tests" / "names.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("module", NAMES)
def test_names_of_the_first_version_are_where_they_were(module):
    found = import_module(f"kxbook.{module}")
    assert not [name for name in NAMES[module] if not hasattr(found, name)]


def test_imports_are_declared():
    names = {re.match(r"[\w-]+", d)[0] for d in PROJECT["dependencies"]}
    needed = {IMPORT_NAME.get(d, d) for d in names} | sys.stdlib_module_names | {"kxbook"}
    optional = {
        re.match(r"[\w-]+", d)[0]
        for e in ("table", "dask", "rigorous")
        for d in PROJECT["optional-dependencies"][e]
    } | {"distributed", "flint"}
    for path in (ROOT / "kxbook").rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
            for name in names:
                allowed = (
                    needed if node in tree.body else needed | optional
                )  # an extra is imported when it is used
                assert name.split(".")[0] in allowed, (
                    f"{path.name} imports {name}, which pyproject.toml does not declare"
                )


def test_wheel_works_alone(tmp_path):
    source = tmp_path / "source"  # building leaves files behind: not in the tree
    shutil.copytree(
        ROOT / "kxbook", source / "kxbook", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            tmp_path,
            source,
        ],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {n.split("/")[0] for n in names} == {"kxbook", f"kxbook-{kxbook.__version__}.dist-info"}
    zipfile.ZipFile(wheel).extractall(tmp_path / "there")
    code = "import sys; sys.path.insert(0, sys.argv[1]); from kxbook import data; print(data.__file__); print([len(f(return_X_y=True)[0]) for f in data.BENCHMARKS.values()])"
    where, sizes = python(code, str(tmp_path / "there"), cwd=tmp_path).splitlines()
    assert Path(where).is_relative_to(tmp_path) and sizes == "[300, 788, 240, 150, 569]"
    metadata = (
        zipfile.ZipFile(wheel).read(f"kxbook-{kxbook.__version__}.dist-info/METADATA").decode()
    )
    needed = [
        r for r in re.findall(r"^Requires-Dist: (.*)$", metadata, re.M) if "extra ==" not in r
    ]
    assert len(needed) == len(PROJECT["dependencies"])
    assert [re.match(r"[\w-]+", r)[0] for r in BUILD["requires"]] == ["setuptools"]


def test_one_version():
    settings = (ROOT / "settings.ini").read_text()
    assert re.search(r"^version = (.*)$", settings, re.M)[1] == kxbook.__version__
    assert PROJECT["dynamic"] == ["version"]


def test_help_and_version_load_nothing_heavy():
    for words in (
        ["--version"],
        ["--help"],
        ["explain", "--help"],
        ["explain", "--no-such-option"],
    ):
        code = "import sys; from kxbook.cli import main; main(sys.argv[1:]); print(*{m.split('.')[0] for m in sys.modules})"
        loaded = python(code, *words, stderr=subprocess.DEVNULL).split()
        assert not {"scipy", "sklearn", "numba", "matplotlib", "pandas"} & set(loaded)


FIT = """
import sys
import numpy as np
from kxbook import KernelExKMC, imm
from kxbook.data import load_flame
X, _ = load_flame(return_X_y=True)
print(imm.__file__, KernelExKMC(2, max_leaves=4, random_state=0).fit(X).n_leaves_, imm._interval._cache.__class__.__name__)
"""


@pytest.mark.slow
def test_import_and_fit_where_nothing_can_be_written(tmp_path):
    "Not even by root: a file stands where each folder would be."
    shutil.copytree(
        ROOT / "kxbook", tmp_path / "kxbook", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "kxbook" / "__pycache__").write_text("no folder")
    (tmp_path / "home").write_text("no folder")
    home = {
        name: str(tmp_path / "home" / "x")
        for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE")
    }
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | home
    done = subprocess.run(
        [sys.executable, "-c", FIT], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    where, leaves, cache = done.stdout.split()
    assert Path(where).is_relative_to(tmp_path) and leaves == "4" and cache == "NullCache"
    assert done.stderr.count("compiling, once") == 1


@pytest.mark.slow
def test_compiling_is_announced_once_and_only_once(tmp_path):
    "The first process compiles and says so, the second reads what the first has kept."
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", FIT], env=env, capture_output=True, text=True, check=True
        ).stderr
        for _ in range(2)
    ]
    assert said[0].count("compiling, once") == 1 and "compiling" not in said[1]
