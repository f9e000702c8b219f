"""How far is it tested? What takes too long for every change, with the counts it ends in: `make trust`, or one part of it, `make trust ONLY=fuzz`.

    checks      scikit-learn's own checks of all estimators                    seconds
    claims      changes that make statements false, and that claims notice     half an hour
    certificates  an adversary that looks for a false certificate              half an hour
    properties  the long profile of test_properties.py                        an hour
    fuzz        a million changed inputs for what reads                       minutes
    mutants     changes of the code that some test should notice              hours
    strangers   ten more of each module, drawn anew each day                  half an hour
    coverage    lines of the package that notebooks and tests together run    half an hour
    matrix      other Pythons, the oldest and the newest libraries            an hour

The counts go to trust.json with date, command, machine and a fingerprint of every module, and the book shows them, and which modules have changed since. A part whose tests
fail is not recorded.
"""

import ast
import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

from mutants import MEMORY, reason

ROOT = Path(__file__).parent.parent
INPUTS = 150_000  # for each of the seven readers


def run(command, **variables):
    "What the command prints, which is shown too; it must succeed. `python` is the one that runs this."
    print(f"$ {' '.join(f'{k}={v}' for k, v in variables.items())} {command}", flush=True)
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    lines = []
    with subprocess.Popen(
        words,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | variables,
    ) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        sys.exit(f"{command} failed")
    return "".join(lines)


def shape(node):
    "A syntax tree as lists, which neither comments nor formatting change."
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
        return [type(node).__name__, *((name, shape(value)) for name, value in fields)]
    return [shape(part) for part in node] if isinstance(node, list) else repr(node)


def fingerprint(source):
    "A few letters that change with what a module does."
    return hashlib.sha256(json.dumps(shape(ast.parse(source))).encode()).hexdigest()[:12]


def fingerprints():
    "What the modules are now, so that a reader sees which have changed since."
    paths = sorted(
        path for path in (ROOT / "kxbook").rglob("*.py") if not path.name.startswith("_")
    )
    return {
        ".".join(path.relative_to(ROOT / "kxbook").with_suffix("").parts): fingerprint(
            path.read_text(encoding="utf-8")
        )
        for path in paths
    }


def checks():
    text = run("python -m pytest -m '' -v tests/test_estimators.py -k scikit_learn_checks")
    names = re.findall(
        r"PASSED tests/test_estimators.py::test_scikit_learn_checks\w*\[(\w+)\(", text
    )
    return [
        {"estimator": name, "checks passed": names.count(name)}
        for name in dict.fromkeys(sorted(names))
    ]


def claims():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "claims.json"
        run(f"python tools/claims.py --outcome {path}")
        rows = json.loads(path.read_text(encoding="utf-8"))
    books = {
        row["notebook"]: [other for other in rows if other["notebook"] == row["notebook"]]
        for row in rows
    }
    return [
        {
            "chapter": name,
            "statements": len({r["id"] for r in some}),
            "changes": len(some),
            "noticed": sum(not r["why not"] for r in some),
        }
        for name, some in books.items()
    ]


def certificates():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificates.json"
        run(
            f"python tools/adversary.py --certificates 100000 --seed {date.today():%Y%m%d} --outcome {path}"
        )
        return json.loads(path.read_text(encoding="utf-8"))


def properties():
    text = run(
        "python -m pytest -m '' --timeout=0 --hypothesis-show-statistics tests/test_properties.py",
        HYPOTHESIS_PROFILE="long",
    )
    tried = re.findall(
        r"(\d+) passing(?: examples)?, (\d+) failing(?: examples)?, (?:and )?\d+ invalid", text
    )
    return [
        {
            "properties": len(tried),
            "examples": sum(int(good) for good, _ in tried),
            "failures": sum(int(bad) for _, bad in tried),
        }
    ]


def fuzz():
    text = run(
        "python -m pytest -m '' --timeout=0 -v tests/test_fuzz.py -k changed_inputs",
        FUZZ=str(INPUTS),
    )
    names = re.findall(r"PASSED tests/test_fuzz.py::test_changed_inputs\[(\w+)\]", text)
    return [{"reader": name, "inputs": INPUTS} for name in sorted(names)]


def mutants():
    run("python tools/mutants.py")
    return outcome(MEMORY)


def strangers():
    "Tests were written for mutants that survived, so others are needed to judge them: a draw of today, whatever its share."
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutants.json"
        run(
            f"python tools/mutants.py --seed {date.today():%Y%m%d} --each 10 --least 0 --memory {path}"
        )
        return outcome(path)


def outcome(memory):
    "What became of the mutants that a file remembers, module by module."
    rows = []
    for module, found in json.loads(memory.read_text(encoding="utf-8")).items():
        tried = found["tried"].values()
        missed = [
            {"change": one["change"], "why": reason(module, one["change"])}
            for one in tried
            if not one["by"]
        ]
        spent = sum(one["seconds"] for one in tried) / 60  # of this run and those it goes on from
        late = sum("takes too long" in (one["by"] or "") for one in tried)
        row = {
            "module": module,
            "possible changes": found["possible"],
            "made": len(tried),
            "noticed": len(tried) - len(missed),
            "of these by taking too long": late,
        }
        rows.append(row | {"not noticed": missed, "minutes": spent})
    return sorted(rows, key=lambda row: row["module"])


def coverage():
    run("make coverage")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        run(f"python -m coverage json -q -o {path}")
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
    rows = [
        {
            "module": Path(name).stem,
            "lines": f["summary"]["num_statements"],
            "run": f["summary"]["covered_lines"],
        }
        for name, f in sorted(files.items())
    ]
    return [row for row in rows if row["lines"]]


def matrix():
    "An environment begins with `Running session package-3.11(libraries='oldest')`; then come its versions and pytest's last line."
    parts = re.split(r"Running session package-([\d.]+)\(libraries='(\w+)'\)", run("python -m nox"))
    rows = []
    for python, libraries, text in zip(parts[1::3], parts[2::3], parts[3::3]):
        versions = re.search(r"^versions: (.*)$", text, re.M)[1]
        outcome = re.findall(r"^=* ?(\d+ .*passed.*?) ?=*$", text, re.M)[-1]
        rows.append({"environment": f"{python}-{libraries}", "versions": versions, "outcome": outcome, "passed": True})  # fmt: skip
    return rows


PARTS = {
    part.__name__: part
    for part in (
        checks,
        claims,
        certificates,
        properties,
        fuzz,
        mutants,
        strangers,
        coverage,
        matrix,
    )
}


def main(names):
    unknown = set(names) - set(PARTS)
    if unknown:
        sys.exit(f"No such part: {', '.join(sorted(unknown))}. There are {', '.join(PARTS)}.")
    path = ROOT / "tools" / "trust.json"
    for name in names or PARTS:
        start = time.monotonic()
        rows = PARTS[name]()
        minutes = sum(row.pop("minutes", 0) for row in rows) or (time.monotonic() - start) / 60
        results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        about = f"{os.cpu_count()} cores, Python {platform.python_version()}, hypothesis {version('hypothesis')}, scikit-learn {version('scikit-learn')}"
        results[name] = {
            "date": date.today().isoformat(),
            "command": f"make trust ONLY={name}",
            "minutes": round(minutes, 1),
            "with": about,
            "code": fingerprints(),
            "rows": rows,
        }
        path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(*rows, sep="\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
