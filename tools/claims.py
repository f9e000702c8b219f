"""Can the claims of the book fail? Change the constant, sign or hypothesis that is the point of a statement, and see whether its check notices.

    .venv/bin/python tools/claims.py [310_price 360_unbounded] [--id lem-imm] [--jobs 2] [--outcome claims.json]

The changes stand beside the claims, in the notebooks: `claim("lem-imm", ..., breaks={"4 * (m - 1)": "3 * (m - 1)"})`. The text is looked for in the claim's own cell, then in the other code
cells of its notebook; "imm.py: text" means the module. It must stand there exactly once. Each notebook runs once; before each claim the process divides: the child makes one change, runs
the changed cell and then the claim. A change is noticed if an assertion inside the claim fails, and by nothing else: a check that crashes has not understood what it looked at.
"""

import __future__

import argparse
import ast
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SECONDS = 600  # for one change
MODULE = re.compile(r"(\w+)\.py: ")
FLAGS = 0  # what "from __future__ import annotations" in an earlier cell means for later ones


def compiled(source, name):
    "Source as code. Later cells keep the __future__ imports of earlier ones; numba keeps nothing on disk, least of all changed code."
    global FLAGS
    if re.search(r"^from __future__ import annotations", source, re.M):
        FLAGS |= __future__.annotations.compiler_flag
    source = re.sub(r"^@compiled$", "@__import__('numba').njit(nogil=True)", source, flags=re.M)
    return compile(source, name, "exec", flags=FLAGS)


def code_cells(path):
    "Number and source of the code cells that run."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = [
        (i, "".join(cell["source"]))
        for i, cell in enumerate(cells, 1)
        if cell["cell_type"] == "code"
    ]
    return [(i, s) for i, s in sources if not re.search(r"^#\| *eval: *false", s, re.M)]


@cache
def claims_in(source):
    "Id and changes of each claim of a cell, and the cell with the changes blanked: a change is not looked for in itself."
    if "claim(" not in source:
        return [], source
    found, blank = [], source
    for node in ast.walk(ast.parse(source)):
        if not (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") == "claim"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            continue
        breaks = next((k.value for k in node.keywords if k.arg == "breaks"), None)
        found.append((node.args[0].value, ast.literal_eval(breaks) if breaks else {}))
        if breaks:
            text = ast.get_source_segment(source, breaks)
            blank = blank.replace(text, re.sub(r"[^\n]", " ", text), 1).replace(
                "breaks=" + " " * len(text.split("\n")[0]),
                "breaks={" + " " * (len(text.split("\n")[0]) - 1),
                1,
            )
    return found, blank


def place_of(text, cells, at):
    "Where a text stands that is to be changed: the index of a cell or the name of a module, and the text itself; or an error."
    module = MODULE.match(text)
    if module:
        text = text[module.end() :]
        times = (ROOT / "kxbook" / f"{module[1]}.py").read_text(encoding="utf-8").count(text)
        where = [module[1]] * times
    else:
        plain = [claims_in(source)[1] for _, source in cells]
        where = [at] * plain[at].count(text) or [
            i for i in range(len(cells)) for _ in range(plain[i].count(text)) if i != at
        ]
    if len(where) != 1:
        raise ValueError(f"{text!r} stands {len(where)} times where it was looked for, not once")
    return where[0], text


def changed(cells, place, old, new):
    "A cell with the change, its `breaks` untouched."
    source = cells[place][1]
    start = claims_in(source)[1].index(old)
    return source[:start] + new + source[start + len(old) :]


def apply(cells, at, old, new, names):
    "Make a change in the notebook's names, and run the claim."
    place, old = place_of(old, cells, at)
    if isinstance(place, str):
        module = importlib.import_module(f"kxbook.{place}")
        before = dict(vars(module))
        source = Path(module.__file__).read_text(encoding="utf-8").replace(old, new)
        exec(compiled(source, module.__file__), vars(module))
        for scope in (
            names,
            *(vars(m) for name, m in sys.modules.items() if name.startswith("kxbook.")),
        ):
            for name, value in list(scope.items()):
                if name in before and value is before[name] and not name.startswith("__"):
                    scope[name] = vars(module)[name]
    else:
        exec(compiled(changed(cells, place, old, new), f"changed cell {cells[place][0]}"), names)
    if place != at:
        exec(compiled(cells[at][1], f"cell {cells[at][0]}"), names)


def outcome_of(id, cells, at, old, new, names):
    "What becomes of a claim after a change: '' if it was noticed, else why not."
    try:
        apply(cells, at, old, new, names)
    except AssertionError as e:
        return (
            ""
            if any(f"The check of {id} " in note for note in getattr(e, "__notes__", []))
            else "an assertion outside the claim failed"
        )
    except BaseException as e:
        return f"{type(e).__name__}: {str(e)[:200]}"
    return "the claim passed"


def in_a_child(*given):
    "The same, in a copy of this process that ends after it."
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        signal.alarm(SECONDS)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
        said = outcome_of(*given)
        os.write(write, (said or "noticed").encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return "" if said == "noticed" else said or "it took too long, or died"


def run(path, only=()):
    "Run a notebook, and each change of its claims in passing; rows with notebook, id, change and why it was not noticed."
    import __main__

    names = vars(__main__)
    os.chdir(path.parent)
    cells, rows = code_cells(path), []
    names["display"] = print
    slow = [bool(re.search(r"^#\| slow: true", source, re.M)) for _, source in cells]
    last = max((at for at, (_, source) in enumerate(cells) if claims_in(source)[0]), default=-1)
    for at, (number, source) in enumerate(cells[: last + 1]):
        for id, breaks in claims_in(source)[0]:
            for old, new in breaks.items() if not only or id in only else ():
                start = time.monotonic()
                why = in_a_child(id, cells, at, old, new, names)
                rows.append(
                    {
                        "notebook": path.stem,
                        "id": id,
                        "old": old,
                        "new": new,
                        "why not": why,
                        "seconds": round(time.monotonic() - start, 1),
                    }
                )
                print(
                    f"{'noticed' if not why else 'MISSED '} {path.stem} {id}: {old!r} -> {new!r}{f' ({why})' if why else ''}",
                    file=sys.stderr,
                    flush=True,
                )
        if not slow[at] or claims_in(source)[0]:
            try:
                exec(compiled(source, f"{path.name}, cell {number}"), names)
            except Exception as e:
                raise RuntimeError(f"{path.name}, cell {number} fails without any change") from e
    return rows


def in_a_process(path, only):
    "A notebook in a process of its own."
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / "rows.json"
        code = f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import claims, json, pathlib\nrows = claims.run(pathlib.Path({str(path)!r}), {only!r})\npathlib.Path({str(to)!r}).write_text(json.dumps(rows))"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env=os.environ | {"MPLBACKEND": "agg"},
            stdout=subprocess.DEVNULL,
        )
        if done.returncode:
            sys.exit(f"{path.name} did not run to its last claim")
        return json.loads(to.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "notebooks", nargs="*", help="their names, such as 310_price; all by default"
    )
    parser.add_argument("--id", nargs="*", default=[], help="only these statements")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--outcome", type=Path, help="where to write the rows, as JSON")
    args = parser.parse_args()
    paths = [ROOT / "nbs" / f"{Path(name).stem}.ipynb" for name in args.notebooks] or sorted(
        (ROOT / "nbs").glob("[0-9]*.ipynb")
    )
    with ThreadPoolExecutor(args.jobs) as pool:
        rows = [
            row
            for rows in pool.map(lambda path: in_a_process(path, args.id), paths)
            for row in rows
        ]
    if args.outcome:
        args.outcome.write_text(
            json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    missed = [row for row in rows if row["why not"]]
    print(
        f"{len(rows) - len(missed)} of {len(rows)} changes noticed, in the claims of {len({row['id'] for row in rows})} statements"
    )
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
