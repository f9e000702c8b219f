"""Does it run elsewhere? Every Python from 3.11 to 3.13 that is there, with the oldest and with the newest libraries that pyproject.toml allows.

    make test-matrix                                                    # some minutes for each environment
    .venv/bin/nox -s "package-3.13(libraries='oldest')" -- tests/test_tree.py    # one of them, other tests

The tests are those in which versions could show: scikit-learn's checks, other containers, threads and processes, arithmetic, trees, files and Dask.
Of the oldest allowed release (2.0 of NumPy, say) the last correction is taken (2.0.2).
"""

import os
import re
from pathlib import Path

import nox

PYTHONS = ("3.11", "3.12", "3.13")
# Of these the first releases with wheels for the new Python are younger than what pyproject.toml allows.
FIRST = {"3.13": {"numpy": "2.1", "scipy": "1.14.1", "numba": "0.61", "pyarrow": "18", "contourpy": "1.3"}}  # fmt: skip
SHOWN = ("numpy", "scipy", "scikit-learn", "numba", "matplotlib", "pandas", "pyarrow", "polars", "dask")  # fmt: skip
TESTS = "compatibility determinism estimators gram imm package price properties scale search surrogate tree"
VERSIONS = f"from importlib.metadata import version; print('versions:', ', '.join(f'{{n}} {{version(n)}}' for n in {SHOWN}))"

nox.options.sessions = ["package"]
nox.options.reuse_venv = "yes"
pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
os.environ["PATH"] += "".join(f"{os.pathsep}{path}" for path in sorted(pyenv.glob("3.*/bin")))


def oldest(python):
    "The lower ends of pyproject.toml as constraints, as far as this Python has them."
    project = nox.project.load_toml("pyproject.toml")["project"]
    extras = project["optional-dependencies"]
    listed = [
        *project["dependencies"],
        *extras["table"],
        *extras["dask"],
        *extras["nb"],
        *extras["test"],
    ]
    floors = dict(
        m.groups() for p in listed if (m := re.match(r"([\w-]+)(?:\[.*\])?>=([\d.]+)$", p))
    )
    floors = {
        name: floors[name] for name in (*SHOWN, "joblib", "threadpoolctl", "tqdm")
    } | FIRST.get(python, {})
    return [f"{name}=={floor}.*\n" for name, floor in floors.items()]


@nox.session(python=PYTHONS)
@nox.parametrize("libraries", ["oldest", "newest"])
def package(session, libraries):
    "The tests of the package."
    limits = Path(session.create_tmp()) / "constraints.txt"
    limits.write_text("".join(oldest(session.python) if libraries == "oldest" else []))
    session.install("--upgrade", "--upgrade-strategy", "eager", "--prefer-binary", "--constraint", str(limits), "--editable", ".[test]")  # fmt: skip
    session.run("python", "-c", VERSIONS)
    tests = session.posargs or [f"tests/test_{name}.py" for name in TESTS.split()]
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", *tests, env={"MPLBACKEND": "agg"})  # fmt: skip
