"""Does it run elsewhere? Every Python from 3.11 to 3.13 that is there, with the oldest and with the newest libraries that pyproject.toml allows.

    make test-matrix                                                              # some minutes for each environment
    .venv/bin/python tests/matrix.py --only 3.13-oldest tests/test_tree.py        # one of them, other tests; what follows goes to pytest

Interpreters are looked for on the path and among pyenv's. Environments are kept in .matrix/, so that a second run installs little. Printed are the versions
and the outcome of each; the exit code is 0 if all that could be run passed. The tests are those in which versions could show: scikit-learn's checks, other containers,
threads and processes, arithmetic, trees, files and Dask; others may be named. Of the oldest allowed release (2.0 of NumPy, say) the last correction is taken (2.0.2).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
# Of these the first releases with wheels for the new Python are younger than what pyproject.toml allows.
FIRST = {
    "3.13": {
        "numpy": "2.1",
        "scipy": "1.14.1",
        "numba": "0.61",
        "pyarrow": "18",
        "contourpy": "1.3",
    }
}
SHOWN = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "matplotlib",
    "pandas",
    "pyarrow",
    "polars",
    "dask",
)
TESTS = [
    f"tests/test_{name}.py"
    for name in "compatibility determinism estimators gram imm package price properties scale search surrogate tree".split()
]


def interpreter(version):
    "A command that starts this Python, or None."
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for command in (
        shutil.which(f"python{version}"),
        *sorted(map(str, kept.glob(f"{version}.*/bin/python")), reverse=True),
    ):
        if command:
            told = subprocess.run(
                [command, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True,
                text=True,
            )
            if told.stdout.strip() == version:
                return command
    return None


def oldest(version):
    "The lower ends of pyproject.toml as constraints, as far as this Python has them."
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = project["dependencies"] + [
        part
        for extra in ("table", "dask", "nb", "test")
        for part in project["optional-dependencies"][extra]
    ]
    floors = {
        name.lower(): floor
        for part in listed
        for name, floor in re.findall(r"^([\w-]+)(?:\[.*\])?>=([\d.]+)$", part)
    }
    floors |= FIRST.get(version, {})
    return {
        name: floor for name, floor in floors.items() if name in (*SHOWN, "threadpoolctl", "tqdm")
    }


def run(*command, **variables):
    return subprocess.run(list(map(str, command)), cwd=ROOT, env=os.environ | variables).returncode


def prepare(command, name, constraints):
    "The environment's Python, with the package and what its tests need."
    folder = ROOT / ".matrix" / name
    python = folder / "bin" / "python"
    if not python.exists() and run(command, "-m", "venv", folder):
        return None
    limits = folder / "constraints.txt"
    limits.write_text("".join(f"{name}=={floor}.*\n" for name, floor in constraints.items()))
    install = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--upgrade",
        "--upgrade-strategy",
        "eager",
    ]
    failed = run(*install, "pip>=24") or run(
        *install,
        "--prefer-binary",
        "--constraint",
        limits,
        "--editable",
        ".[test]",
        PYTHONWARNINGS="ignore",
    )
    return None if failed else python


def versions(python):
    source = f"from importlib.metadata import version; print(*('%s %s' % (n, version(n)) for n in {SHOWN}), sep=', ')"
    return subprocess.run([python, "-c", source], capture_output=True, text=True).stdout.strip()


def test(python, args):
    "What pytest says in its last line, and whether it passed."
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    last = ""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"MPLBACKEND": "agg"},
    ) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return last.strip("= "), process.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="environments, with commas: 3.12-newest,3.13-oldest")
    parser.add_argument("--outcome", type=Path, help="a file for the results, as JSON")
    args, rest = parser.parse_known_args()
    rest = rest or TESTS
    rows = []
    for version in PYTHONS:
        command = interpreter(version)
        for which in ("oldest", "newest"):
            name = f"{version}-{which}"
            if args.only and name not in args.only.split(","):
                continue
            if not command:
                print(f"{name}: there is no Python {version} here", flush=True)
                continue
            print(f"== {name}", flush=True)
            python = prepare(command, name, oldest(version) if which == "oldest" else {})
            said, passed = test(python, rest) if python else ("could not be installed", False)
            rows.append(
                {
                    "environment": name,
                    "versions": versions(python) if python else "",
                    "outcome": said,
                    "passed": passed,
                }
            )
    for row in rows:
        print(f"{row['environment']}: {row['outcome']}   [{row['versions']}]")
    if args.outcome:
        args.outcome.write_text(json.dumps(rows), encoding="utf-8")
    return not rows or not all(row["passed"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
