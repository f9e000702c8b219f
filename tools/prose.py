"""Prose of the notebooks, one sentence a line, so that a diff shows which sentence has changed.

    .venv/bin/python tools/prose.py            # rewrites the notebooks
    .venv/bin/python tools/prose.py --check    # names the cells that it would rewrite

Only line ends of paragraphs and list items move; tables, formulas, code, headings and divs stay as they are, and so does the rendered page.
"""

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ABBREVIATIONS = (" e.g.", " i.e.", " cf.", " vs.", " al.", " resp.", "(e.g.", "(i.e.", "(cf.")
VERBATIM = re.compile(  # code, formulas, comments, addresses: a full stop in them ends no sentence
    r"(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)|\$(?![\s$])(?:\\.|[^$\\])*?(?<!\s)\$|<!--.*?-->|\]\([^)]*\)"
)
END = re.compile(r"(?<=[.!?])([\"'”’)*_\]]*) (?=[\"'“‘(*_\[]*[A-Z$`@\d\\\x00])(?!\d+[.)] )")
BLOCK = re.compile(r"(#|\||:{3,}|: |<|\$\$|\*\*\*|!\[|>)")  # lines that are no part of a paragraph
ITEM = re.compile(r"( *(?:[-*+]|\d+[.)]) +)(.*)")
FENCE = re.compile(r"[\s>]*(`{3,}|~{3,})")
LEAST = 20  # characters of a line: "Two lessons." stands with what follows


def sentences(text):
    "The sentences of a paragraph."
    kept = []

    def keep(match):
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    masked, lines, start = VERBATIM.sub(keep, " ".join(text.split())), [], 0
    for end in [*(end.end() for end in END.finditer(masked)), len(masked)]:
        part = re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], masked[start:end].strip())
        heading = len(part) < LEAST or re.fullmatch(r"\*[^*]+\*", part)
        if end == len(masked) or not heading and not part.endswith(ABBREVIATIONS):
            lines.append(part)
            start = end
    return lines


def reflow(text):
    "Markdown with each sentence of a paragraph or list item in a line of its own."
    out, paragraph, indent, first = [], [], "", ""
    fence, formula = None, False

    def flush():
        nonlocal paragraph, indent, first
        lines = sentences(" ".join(paragraph)) if paragraph else []
        out.extend((indent if i else first) + line for i, line in enumerate(lines))
        paragraph, indent, first = [], "", ""

    for line in text.split("\n"):
        mark = FENCE.match(line)
        if fence or mark:
            flush()
            closes = fence and mark and mark[1].startswith(fence)
            fence = None if closes else fence or mark[1]
            out.append(line)
        elif line.startswith("$$") or formula:
            flush()
            formula = formula != line.startswith("$$")
            out.append(line)
        elif not line.strip() or BLOCK.match(line):
            flush()
            out.append(line)
        elif item := ITEM.match(line):
            flush()
            first, indent = item[1], " " * len(item[1])
            paragraph = [item[2]]
        elif line.endswith(("  ", "\\")):  # a line break that is meant
            flush()
            out.append(line)
        else:
            paragraph.append(line)
            if not first and len(paragraph) == 1:
                first = indent = line[: len(line) - len(line.lstrip())]
    flush()
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of them by default")
    parser.add_argument(
        "--check", action="store_true", help="rewrite nothing; exit code 1 if something would be"
    )
    args = parser.parse_args()
    wrong = []
    for path in args.notebooks or sorted((ROOT / "nbs").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for number, cell in enumerate(notebook["cells"], 1):
            before = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and (after := reflow(before)) != before:
                wrong.append(f"{path.name}, cell {number}: one sentence a line: run `make format`")
                cell["source"] = after.splitlines(keepends=True)
        if not args.check and any(w.startswith(path.name) for w in wrong):
            path.write_text(
                json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
    print(*wrong, sep="\n") if args.check and wrong else None
    return bool(args.check and wrong)


if __name__ == "__main__":
    sys.exit(main())
