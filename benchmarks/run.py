"""Measure speed, memory and quality beside others, in one run: `make bench`, or `make bench ONLY=sums`.

Each suite is a module of this folder with a function `measure(say)` that returns rows: dictionaries that all have the same keys. Figures
of one suite are measured one after the other on one machine, so their ratios mean something; figures of different suites may not be
compared. The rows go to results.json with date and machine, and the book shows them.
"""

import json
import os
import platform
import sys
import time
from datetime import date
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITES = ("sums", "kkmeans", "moons", "trees", "imm", "search", "scale", "report")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "tslearn")


def machine():
    "What the figures were measured on."
    cpu = (
        next(
            (
                line.split(":")[1].strip()
                for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")
            ),
            "",
        )
        if Path("/proc/cpuinfo").exists()
        else ""
    )
    memory = (
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        if hasattr(os, "sysconf")
        else 0
    )
    return (
        f"{cpu or platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB; Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    )


def table(rows):
    "Rows as aligned text."
    cells = [list(rows[0]), *([show(v) for v in row.values()] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return "\n".join(
        "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths)))
        for row in cells
    )


def show(value):
    return (
        "–"
        if value is None
        else f"{value:.3g}"
        if isinstance(value, float) and abs(value) < 1000
        else f"{value:,.0f}".replace(",", " ")
        if isinstance(value, float)
        else str(value)
    )


def main(names):
    unknown = set(names) - set(SUITES)
    if unknown:
        sys.exit(f"No such suite: {', '.join(sorted(unknown))}. There are {', '.join(SUITES)}.")
    path = HERE / "results.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in names or SUITES:
        start, module = time.perf_counter(), import_module(name)
        print(f"== {name}: {module.__doc__.splitlines()[0]}", flush=True)
        rows = module.measure(lambda text: print(f"   {text}", flush=True))
        results[name] = {"date": date.today().isoformat(), "machine": machine(), "rows": rows}
        path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(table(rows), f"   {time.perf_counter() - start:.0f} s", sep="\n", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main(sys.argv[1:])
