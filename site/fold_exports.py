"""Exported cells, folded to one line: "imm · Column, encode · 52 lines".

The translator to MyST calls `summary`; Quarto runs this file over each notebook (`ipynb-filters` in _quarto.yml), before nbdev's filter, which takes the word
`export` away. The notebooks themselves say nothing of it: nbdev would copy their options into the modules.
"""

import ast
import json
import re
import sys

EXPORTED = (
    "exported"  # the tag of such a cell; on the pages of both renderers its class is tag_exported
)

MOST = 5  # names in a line


def defined(tree):
    "Names of the functions, classes and constants that a cell defines, in their order."
    names = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    return names


def public(tree):
    "Those of them that are public."
    return [name for name in defined(tree) if not name.startswith("_")]


def summary(module, source, tree):
    "The line that stands for an exported cell: its module, its names and its length."
    names = public(tree) or defined(tree) or ["imports"]
    words = ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if names[MOST:] else "")
    count = len(source.strip("\n").split("\n"))
    return f"{module} · {words} · {count} {'line' if count == 1 else 'lines'}"


def fold(cells):
    "Add to the options of each exported cell those by which Quarto folds it."
    module = None
    for cell in cells:
        text = "".join(cell["source"])
        options = re.match(r"(#\|.*\n?)*", text)[0]
        if name := re.search(r"^#\| *default_exp +(\S+)", options, re.M):
            module = name[1]
        if cell["cell_type"] == "code" and re.search(r"^#\| *exporti? *$", options, re.M):
            source = text[len(options) :]
            line = json.dumps(summary(module, source, ast.parse(source)), ensure_ascii=False)
            added = f"#| code-fold: true\n#| code-summary: {line}\n#| classes: tag_{EXPORTED}\n"
            cell["source"] = (options + added + source).splitlines(keepends=True)


if __name__ == "__main__":
    notebook = json.load(sys.stdin.buffer)
    fold(notebook["cells"])
    sys.stdout.buffer.write(json.dumps(notebook, ensure_ascii=False).encode())
