"""Chapter order is import order: a module imports only from chapters before its own."""

import ast
import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAY_USE_SKLEARN = {"data", "kkmeans"}  # and every chapter from `fit` on
MAY_USE_NUMBA = {"gram", "columns"}  # others compile with `compile_loops`, `compiled`


def chapters(nbs):
    "Module of each notebook that exports one, in the order of the book."
    order = {}
    for path in sorted(nbs.glob("[0-9]*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if m := re.search(r"^#\| *default_exp +(\S+)", "".join(cell["source"]), re.M):
                order[m[1]] = path.name
    return order


def imports(path):
    "Modules that a file of the package imports, anywhere in it: those of the package by their own name, others by their top one. What only types need is not imported."
    tree, inside = ast.parse(path.read_text(encoding="utf-8")), path.parent.name == "report"
    for_types = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            around = ".report." if inside and node.level == 1 else "."
            names = [node.module] if node.module else [a.name for a in node.names]
            yield from (around + name for name in names)
        elif isinstance(node, ast.ImportFrom):
            yield (
                re.sub(r"^kxbook\.", ".", node.module)
                if node.module.startswith("kxbook.")
                else node.module.split(".")[0]
            )
        elif isinstance(node, ast.Import):
            yield from (
                re.sub(r"^kxbook\.", ".", a.name)
                if a.name.startswith("kxbook.")
                else a.name.split(".")[0]
                for a in node.names
            )


def violations(nbs, package):
    order = list(chapters(nbs))
    for module in order:
        for name in imports(package / f"{module.replace('.', '/')}.py"):
            if name == "kxbook":
                yield f"{module} imports the package itself"
            if name.startswith("."):
                other = name[1:]
                if (
                    module == "plot"
                    or other not in order
                    or order.index(other) >= order.index(module)
                ):
                    yield f"{module} imports {other}, which is not below it"
            late = "fit" in order and order.index(module) >= order.index("fit")
            if name == "sklearn" and module not in MAY_USE_SKLEARN and not late:
                yield f"{module} imports scikit-learn"
            if name == "numba" and module not in MAY_USE_NUMBA:
                yield f"{module} imports numba"


def test_layers():
    assert list(violations(ROOT / "nbs", ROOT / "kxbook")) == []


def test_every_module_has_a_chapter():
    paths = [p.relative_to(ROOT / "kxbook") for p in (ROOT / "kxbook").rglob("[a-z]*.py")]
    assert {".".join(p.with_suffix("").parts) for p in paths} == set(chapters(ROOT / "nbs"))


def test_violations_are_found(tmp_path):
    for i, module in enumerate(("data", "kernel", "plot")):
        cell = {"cell_type": "code", "source": [f"#| default_exp {module}"]}
        (tmp_path / f"{i}_{module}.ipynb").write_text(json.dumps({"cells": [cell]}))
    (tmp_path / "data.py").write_text("def f():\n    from .kernel import x\n")
    (tmp_path / "kernel.py").write_text("from kxbook.data import x\nimport sklearn.tree, numba\n")
    (tmp_path / "plot.py").write_text("from . import data\n")
    found = list(violations(tmp_path, tmp_path))
    assert found == [
        "data imports kernel, which is not below it",
        "kernel imports scikit-learn",
        "kernel imports numba",
        "plot imports data, which is not below it",
    ]


def test_names_of_chapters():
    "Three digits, of which the first is the part and the rest leave room between two chapters."
    names = sorted(path.stem for path in (ROOT / "nbs").glob("*.ipynb"))
    assert all(re.fullmatch(r"[1-9]\d[05]_[a-z]+", name) for name in names)
    listed = re.findall(r"nbs/(\w+)\.ipynb", (ROOT / "_quarto.yml").read_text(encoding="utf-8"))
    assert listed == names


def private_imports(package):
    "Private names that one module of the package takes from another."
    for path in sorted(package.rglob("*.py")):
        if path.name.startswith("_"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.level or "kxbook" in str(node.module)):
                yield from (
                    f"{path.stem} imports {a.name}" for a in node.names if a.name.startswith("_")
                )


def test_no_private_name_crosses_a_module(tmp_path):
    assert list(private_imports(ROOT / "kxbook")) == []
    (tmp_path / "a.py").write_text("from kxbook.gram import _secret, known\nfrom .b import _c\n")
    assert list(private_imports(tmp_path)) == ["a imports _secret", "a imports _c"]
