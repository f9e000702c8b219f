"""Render the book: translate the notebooks, run those that changed, hand all of it to Sphinx, and only then replace the old site.

python site/build.py            # into _book/, from _quarto.yml
"""

import ast
import copy
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path

sys.modules["rfc3987_syntax"] = None  # jsonschema goes without: its grammars take seconds to load

import assets  # noqa: E402
import nbformat  # noqa: E402
import reference  # noqa: E402
import yaml  # noqa: E402
from fold_exports import EXPORTED  # noqa: E402
from kernels import Kernels  # noqa: E402
from nbclient import NotebookClient  # noqa: E402
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError  # noqa: E402
from quarto import BookError, Names, markdown, notebook, parse  # noqa: E402

import kxbook  # noqa: E402
from kxbook.claim import read_ledger  # noqa: E402

SITE = Path(__file__).resolve().parent
LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "matplotlib",
    "matplotlib-inline",
    "ipython",
    "ipykernel",
)  # can change what a cell shows
LOOKS = ("remove-input", "hide-input", EXPORTED)  # tags that change no output
RENDERERS = (
    "sphinx",
    "myst-nb",
    "sphinx-book-theme",
    "pydata-sphinx-theme",
    "sphinxcontrib-bibtex",
    *assets.PACKAGES,
)


def contents(root):
    "Title, author, parts and bibliography from _quarto.yml: [(part, [path, ...]), ...]; chapters before the first part have part None."
    config = yaml.safe_load((root / "_quarto.yml").read_text(encoding="utf-8"))
    parts = [(None, [])]
    for item in config["book"]["chapters"]:
        if isinstance(item, str):
            parts[-1][1].append(item)
        else:
            parts.append((item["part"], list(item["chapters"])))
    for _, paths in parts:
        for path in paths:
            if not (root / path).exists():
                raise BookError(f"_quarto.yml: the chapter {path} does not exist")
    return config, parts


def package_imports(tree, package=""):
    "Modules of kxbook that some code in one of its packages imports; a bare `import kxbook` means all of them."
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            if node.level:  # one dot is the package itself, two are the one around it
                around = package.split(".")[: len(package.split(".")) - node.level + 1]
                module = ".".join(part for part in [*around, node.module] if part)
            elif (node.module or "").split(".")[0] == "kxbook":
                module = node.module.removeprefix("kxbook").strip(".")
            else:
                continue
            yield from (
                [module] if module else [kxbook._HOME.get(a.name, a.name) for a in node.names]
            )
        elif isinstance(node, ast.Import):
            yield from (
                a.name.removeprefix("kxbook").strip(".") or "*"
                for a in node.names
                if a.name.split(".")[0] == "kxbook"
            )


@cache
def imports_of(text, package):
    "The same, of the text of a module; many chapters ask for one."
    return tuple(package_imports(ast.parse(text), package))


def module_files(root, module):
    "The file of a module of kxbook, or those of a package; a pattern may stand for many."
    path, package = module.replace(".", "/"), root / "kxbook"
    files = [*package.glob(f"{path}.*"), *package.glob(f"{path}/*.*")]  # page.py, page.css, ...
    return sorted(f for f in files if f.parent.name not in ("datasets", "__pycache__"))


def fingerprint(nb, name, root):
    "What the outputs of a notebook depend on: its code, the modules it imports, directly or not, their data, and the libraries."
    cells = [(i, c) for i, c in enumerate(nb["cells"], 1) if c["cell_type"] == "code"]
    todo, seen = (
        [m for i, c in cells for m in package_imports(parse(c["source"], f"{name}, cell {i}"))],
        {},
    )
    while todo:
        for path in module_files(root, todo.pop()):
            name = str(path.relative_to(root / "kxbook"))
            if name not in seen:
                seen[name] = path.read_text(encoding="utf-8")
                if path.suffix == ".py":
                    package = ".".join(path.relative_to(root / "kxbook").parts[:-1])
                    todo += imports_of(seen[name], package)
    paths = [
        SITE / "matplotlibrc",
        SITE / "ipython_kernel_config.py",
        *(root / "kxbook").glob("__init__.py"),
    ]
    if "data.py" in seen:
        paths += [
            *(root / "kxbook" / "datasets").glob("*.csv"),
            root / "kxbook" / "datasets" / "README.md",
        ]
    if any("read_ledger" in c["source"] for _, c in cells):  # these read the other notebooks
        paths += (root / "nbs").glob("[0-9]*.ipynb")
    named = [root / "benchmarks" / name for name in ("results.json", "gap.json")]
    named.append(root / "tools" / "trust.json")
    named += (SITE / "static").glob("blueprint.*")
    paths += [
        path for path in named if path.exists() and any(path.name in c["source"] for _, c in cells)
    ]
    if any(
        "fingerprints()" in c["source"] for _, c in cells
    ):  # these say which modules have changed
        paths += [*(root / "kxbook").rglob("*.py"), root / "tools" / "trust.py"]
    parts = [platform.python_version(), *(f"{name} {version(name)}" for name in LIBRARIES)]
    parts += [
        [c["source"], [tag for tag in c["metadata"].get("tags", []) if tag not in LOOKS]]
        for _, c in cells
    ]
    parts += [*sorted(seen.items()), *(p.read_text(encoding="utf-8") for p in sorted(set(paths)))]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def execute(nb, name, folder):
    "Run a notebook; a cell that fails, or that leaves a warning on the page, stops the build."
    started = []
    client = NotebookClient(
        nb,
        timeout=1800,
        kernel_name="python3",
        kernel_manager_class=Kernels,
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    client.on_cell_start = lambda cell, cell_index: started.append(cell_index + 1)
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as e:
        raise BookError(
            f"{name}, cell {started[-1]}: the cell fails\n{type(e).__name__}: {e}"
        ) from None
    for i, cell in enumerate(nb.cells, 1):
        shown = not {"remove-cell", "remove-output"} & set(cell.metadata.get("tags", []))
        for output in cell.get("outputs", []):
            if shown and output.output_type == "stream" and output.name == "stderr":
                raise BookError(
                    f"{name}, cell {i}: the cell writes to standard error\n{output.text}"
                )
    return [cell.outputs for cell in nb.cells if cell.cell_type == "code"]


def run(nb, name, root, cached):
    "The notebook with its outputs, from a file if nothing that they depend on has changed; the file; and the seconds it ran."
    seconds = 0.0
    if not cached.exists():
        print(f"  running {name}", flush=True)
        start = time.monotonic()
        outputs = execute(copy.deepcopy(nb), name, (root / name).parent)
        seconds = time.monotonic() - start
        cached.parent.mkdir(parents=True, exist_ok=True)
        temporary = cached.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(outputs), encoding="utf-8")
        temporary.replace(cached)
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    for cell, outputs in zip(cells, json.loads(cached.read_text(encoding="utf-8")), strict=True):
        cell.outputs = [nbformat.from_dict(o) for o in outputs]
    nb.metadata = nbformat.from_dict(
        {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    )
    return nb, cached, seconds


def longest_first(texts, work):
    "The notebooks by the seconds of their last run; before them those that have not run, by their slow cells and claims."
    times = work / "seconds.json"
    took = json.loads(times.read_text()) if times.exists() else {}

    def key(path):
        return (
            -took.get(path, 1e9),
            -texts[path].count("#| slow"),
            -texts[path].count("with claim("),
        )

    return sorted(texts, key=key)


def run_all(notebooks, order, root, work):
    """Run as many notebooks at a time as there are cores, in a given order; what they took is printed.

    Each runs in a kernel of its own, which ends with this process. What has run is kept: an interrupted build goes on where it was.
    """

    # Python 3.11 may fail to parse in two threads at a time (its issue 106905)
    kept = {p: work / "outputs" / f"{fingerprint(notebooks[p], p, root)}.json" for p in order}
    times_file = work / "seconds.json"
    took = json.loads(times_file.read_text()) if times_file.exists() else {}
    now: dict[str, float] = {}

    def kept_or_run(path):
        *made, seconds = run(notebooks[path], path, root, kept[path])
        if seconds:
            now[path] = round(seconds, 1)
        return made

    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        done = dict(zip(order, pool.map(kept_or_run, order)))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        took |= now  # of an interrupted build too: the next one begins with the longest
        took = {path: took[path] for path in sorted(took) if path in notebooks}
        write(times_file, json.dumps(took))
    for path in sorted(now, key=now.get, reverse=True):
        print(f"  {now[path]:6.1f} s  {path}")
    for forgotten in set((work / "outputs").glob("*")) - {cached for _, cached in done.values()}:
        forgotten.unlink()
    return {path: nb for path, (nb, _) in done.items()}


def write(path, text):
    "Write a file only if its content changes, so that Sphinx reads again only what it must; returns the path."
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path


def front_page(text, config, parts, modules):
    "The first page, followed by the table of contents that Sphinx builds the sidebar from."
    trees = [
        (part, [Path(p).with_suffix("") for p in paths if p != "index.md"]) for part, paths in parts
    ]
    trees += [("Reference", [*(f"api/{m}" for m in modules), "references"])]
    for caption, pages in trees:
        if pages:
            numbered = [] if caption == "Reference" else [":numbered:"]
            text += "\n\n" + "\n".join(
                [
                    "```{toctree}",
                    ":hidden:",
                    *numbered,
                    f":caption: {caption or config['book']['title']}",
                    "",
                    *map(str, pages),
                    "```",
                ]
            )
    return text + "\n"


def stage(root, work):
    "Translate and run everything into `work/src`, a plain MyST project; returns what _quarto.yml says."
    config, parts = contents(root)
    paths = [path for _, paths in parts for path in paths]
    kinds = {s.id: " ".join(s.badges) for s in read_ledger(root / "nbs").statements.values()}
    texts = {path: (root / path).read_text(encoding="utf-8") for path in paths}
    notebooks = {
        path: nbformat.reads(text, 4) for path, text in texts.items() if path.endswith(".ipynb")
    }
    headings = [
        re.match(r"# .*\{#(sec-[\w-]+)", nb.cells[0].source if nb.cells else "")
        for nb in notebooks.values()
    ]
    names, pages, pictures = Names(chapters={h[1] for h in headings if h}), {}, set()
    modules = []
    for path, text in texts.items():
        if path in notebooks:
            modules.append(notebook(notebooks[path], path, names, kinds))
        else:
            pages[path] = markdown(text, path, names, kinds)
            for picture in re.findall(r"^!\[.*\]\((\S+)\)", text, re.M):
                if not (root / picture).exists():
                    raise BookError(f"{path}: the picture {picture} does not exist")
                pictures.add(picture)
    bibliography = (root / config["bibliography"]).read_text(encoding="utf-8")
    names.check(set(re.findall(r"^@\w+\{([^,\s]+),", bibliography, re.M)))

    order = longest_first({path: texts[path] for path in notebooks}, work)
    done = run_all(notebooks, order, root, work)
    pages |= {path: nbformat.writes(nb) for path, nb in done.items()}
    modules = [m for m in modules if m]
    pages |= {f"api/{m}.md": reference.page(m) for m in modules}
    pages["references.md"] = "# References\n\n```{bibliography}\n```\n"
    pages["index.md"] = front_page(pages["index.md"], config, parts, modules)
    kept = {write(work / "src" / path, text) for path, text in pages.items()}
    for picture in pictures:
        (work / "src" / picture).parent.mkdir(parents=True, exist_ok=True)
        kept.add(Path(shutil.copy2(root / picture, work / "src" / picture)))
    for stale in (work / "src").rglob("*.*"):
        if stale.is_file() and stale not in kept:
            stale.unlink()
    return config


def sphinx(config, root, work):
    "Run Sphinx on the staged project, warnings as errors."
    book = {
        "title": config["book"]["title"],
        "author": config["book"]["author"],
        "bibliography": str(root / config["bibliography"]),
    }
    # Sphinx starts afresh unless its last run was clean and made by the same code from the same list of pages.
    pages = sorted(str(p.relative_to(work / "src")) for p in (work / "src").rglob("*.*"))
    code = [p.read_text(encoding="utf-8") for p in sorted(SITE.glob("*.py"))]
    made_by = hashlib.sha256(
        json.dumps([code, pages, [version(name) for name in RENDERERS]]).encode()
    ).hexdigest()
    stamp = work / "made_by"
    if not stamp.exists() or stamp.read_text() != made_by:
        for folder in ("doctrees", "html"):
            shutil.rmtree(work / folder, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-j",
        "auto",
        "-W",
        "--keep-going",
        "-n",
        "-q",
        "-c",
        SITE,
        "-d",
        work / "doctrees",
        work / "src",
        work / "html",
    ]
    done = subprocess.run(
        command, env=os.environ | {"BOOK": json.dumps(book)}, capture_output=True, text=True
    )
    sys.stdout.write(done.stdout)
    if done.returncode:
        # MyST-NB counts 10 000 lines to a cell
        place = re.compile(r"\S*?/src/(\S+?\.ipynb):(\d+)")
        text = place.sub(
            lambda m: f"{m[1]}, cell {int(m[2]) // 10000}, line {int(m[2]) % 10000}", done.stderr
        )
        raise BookError(text.replace(str(work / "src") + "/", ""))
    stamp.write_text(made_by)


def publish(work, target):
    "Replace the site by the new one in a single step."
    new, old = target.with_name(f"{target.name}.new"), target.with_name(f"{target.name}.old")
    if (
        old.exists() and not target.exists()
    ):  # an earlier run was killed between the two renames below
        old.rename(target)
    for folder in (new, old):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        work / "html",
        new,
        ignore=shutil.ignore_patterns(
            ".buildinfo*", "jupyter_execute", "reports", "*.map", "fontawesome.js"
        ),
    )
    text = "".join(p.read_text(encoding="utf-8") for p in new.rglob("*.html"))
    for picture in new.glob("_images/*"):  # figures of earlier builds
        if picture.name not in text:
            picture.unlink()
    if target.exists():
        target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def build(root, work, target):
    os.environ |= {
        "MATPLOTLIBRC": str(SITE / "matplotlibrc"),
        "IPYTHONDIR": str(work / "ipython"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
    # a notebook for each core: more threads would only wait for each other
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    profile = work / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    shutil.copy(SITE / "ipython_kernel_config.py", profile)
    with (work / "lock").open("w") as lock:  # one build at a time; no child inherits such a lock
        fcntl.lockf(lock, fcntl.LOCK_EX)
        sphinx(stage(root, work), root, work)
        publish(work, target)
    return target / "index.html"


if __name__ == "__main__":
    root, start, said = SITE.parent, time.time(), ""
    try:
        page = build(root, root / ".book", root / "_book")
        os.utime(page, (start, start))  # whatever was edited since then is not in it
        print(f"  {time.time() - start:6.1f} s  in all", flush=True)
    except BookError as e:
        said = "The book was not built.\n" + re.sub(r"\x1b\[[0-9;]*m", "", str(e))
    except KeyboardInterrupt:
        said = (
            "Interrupted; the book is as it was, and what has run is kept. Run `make book` again."
        )
    if said:
        print(said, file=sys.stderr, flush=True)
        os._exit(1)  # without waiting for the notebooks that are still running
