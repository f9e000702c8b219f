"""A filter for Quarto (`ipynb-filters` in _quarto.yml): under each statement its badges, as words with their meaning in a tooltip.

The pages that Sphinx makes have them from `statements.py`; both read them off the ledger. It runs before nbdev's filter, which drops hidden cells, and with them claims.
"""

import json
import re
import sys

from kxbook.claim import BADGES, read_cells


def line(names):
    "Badges as a line of Quarto's markdown."
    shown = ((name, *BADGES[name]) for name in names)
    return " · ".join(f'[{text}]{{.badge-{name} title="{legend}"}}' for name, text, legend in shown)


def with_badges(text, statements):
    "A markdown cell in which each statement ends with its badges."
    out, depth, fence, id = [], 0, "", None
    for row in text.split("\n"):
        code, div = re.match(r"(`{3,}|~{3,})", row), re.fullmatch(r":{3,}\s*(\{.*\})?\s*", row)
        if code and (not fence or code[1] == fence):
            fence = "" if fence else code[1]
        elif div and not fence:
            depth += 1 if div[1] else -1
            if depth == 1 and div[1]:
                found = re.match(r"\{#([\w-]+)", div[1])
                id = found and found[1]
            if depth == 0 and id in statements and statements[id].badges:
                out += ["", line(statements[id].badges)]
        out.append(row)
    return "\n".join(out)


def show_badges(cells):
    "Change the markdown cells of a notebook in place."
    sources = [(c["cell_type"], "".join(c["source"])) for c in cells]
    statements = read_cells(sources).statements
    for cell, (kind, source) in zip(cells, sources, strict=True):
        if kind == "markdown":
            cell["source"] = with_badges(source, statements).splitlines(keepends=True)


if __name__ == "__main__":
    notebook = json.load(sys.stdin.buffer)
    show_badges(notebook["cells"])
    sys.stdout.buffer.write(json.dumps(notebook, ensure_ascii=False).encode())
