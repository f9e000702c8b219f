"""From the book's Quarto markdown to MyST, cell by cell.

The notebooks are written in a strict subset of Quarto's markdown, so that `quarto render` works on them as they are. This
module turns that subset into what MyST-NB and `statements.py` understand, and refuses everything outside of it:

    ::: {#lem-x}  ## Title ... :::     a statement; also #thm- #prp- #cor- #def- #exm- #rem- #alg-
    ::: {.proof}  ... :::              a proof; {.proof name="sketch"} an honest sketch
    ::: {.callout-note} ... :::        a box; also -tip, -warning, -important, -caution
    $$ ... $$ {#eq-x}                  a numbered formula
    # Heading {#sec-x}                 a section that can be referred to
    : Caption {#tbl-x}                 under a table
    @lem-x @eq-x @fig-x [@key; @key2]  references and citations
    #| key: value                      options of a code cell
"""

import ast
import json
import re
from dataclasses import dataclass, field

STATEMENTS = {
    "thm": "Theorem", "lem": "Lemma", "prp": "Proposition", "cor": "Corollary",
    "def": "Definition", "exm": "Example", "rem": "Remark", "alg": "Algorithm",
}  # fmt: skip
NUMBERED = (*STATEMENTS, "sec", "fig", "tbl", "eq")
CALLOUTS = {"note": "note", "tip": "tip", "warning": "warning", "important": "important", "caution": "caution"}
TAGS = {  # cell options that change what is shown
    ("hide", ""): "remove-cell", ("include", "false"): "remove-cell",
    ("echo", "false"): "remove-input", ("output", "false"): "remove-output", ("code-fold", "true"): "hide-input",
    ("eval", "false"): "skip-execution",
}  # fmt: skip
OPTIONS = {"export", "hide", "default_exp", "slow", "eval", "echo", "output", "include", "code-fold", "label", "fig-cap", "fig-alt"}

_FENCE = re.compile(r"^(`{3,}|~{3,})")
_DIV = re.compile(r"^:{3,}\s*(?:\{(?P<attrs>.*)\})?\s*$")
_HEADING = re.compile(r"^(?P<marks>#+) (?P<text>.*?)\s*(?:\{(?P<attrs>[^}]*)\})?$")
_CAPTION = re.compile(r"^: (?P<text>.*?)\s*\{#(?P<id>tbl-[\w-]+)\}$")
_VERBATIM = re.compile(r"(`+[^`]*`+|\$[^$]+\$)")
_CITES = re.compile(r"\[(@[\w:-]+(?:; *@[\w:-]+)*)\]")
_REF = re.compile(r"(?<![\w\[`])@([A-Za-z][\w:-]*\w)")


class BookError(Exception):
    "Something outside the subset; the text names file and cell."


@dataclass
class Names:
    "What the cells of the book define and what they refer to, each with its place."

    chapters: set[str] = field(default_factory=set)  # ids of whole chapters, known beforehand
    defined: dict[str, str] = field(default_factory=dict)
    used: list[tuple[str, str]] = field(default_factory=list)  # (name, place)
    cited: list[tuple[str, str]] = field(default_factory=list)

    def define(self, name, where):
        if name in self.defined:
            raise BookError(f"{where}: {name} is defined a second time; first in {self.defined[name]}")
        self.defined[name] = where

    def check(self, keys):
        "Every reference has a target and every citation an entry in the bibliography."
        for name, where in self.used:
            if name not in self.defined:
                raise BookError(f"{where}: @{name} refers to nothing in the book")
        for key, where in self.cited:
            if key not in keys:
                raise BookError(f"{where}: [@{key}] is not in the bibliography")


def inline(text, where, names):
    "References and citations in a line of text, outside code and formulas."

    def cite(match):
        keys = [k.strip()[1:] for k in match[1].split(";")]
        names.cited.extend((k, where) for k in keys)
        return f"{{cite:p}}`{','.join(keys)}`"

    def refer(match):
        name = match[1]
        if name.split("-")[0] not in NUMBERED:
            names.cited.append((name, where))
            return f"{{cite:t}}`{name}`"
        names.used.append((name, where))
        if name in names.chapters:
            return f"{{numref}}`Chapter %s <{name}>`"
        return f"{{eq}}`{name}`" if name.startswith("eq-") else f"{{numref}}`{name}`"

    parts = _VERBATIM.split(text)
    for i in range(0, len(parts), 2):
        if "{{<" in parts[i]:
            raise BookError(f"{where}: shortcodes are not part of the book's markdown: {text.strip()}")
        parts[i] = _REF.sub(refer, _CITES.sub(cite, parts[i]))
        if re.search(r"\[[^\]]*(?<!\w)@\w", parts[i]):
            raise BookError(f"{where}: a citation must be of the form [@key] or [@key; @key2]: {text.strip()}")
    return "".join(parts)


def attributes(text):
    "Id, classes and key-value pairs of an attribute list."
    pairs = dict(re.findall(r'([\w-]+)="([^"]*)"', text))
    words = re.sub(r'[\w-]+="[^"]*"', "", text).split()
    return [w[1:] for w in words if w[0] == "#"], [w[1:] for w in words if w[0] == "."], pairs


def opening(attrs, depth, title, where, names, kinds):
    "The first lines of a MyST directive for a Quarto div."
    ids, classes, pairs = attributes(attrs)
    fence = ":" * (9 - depth)
    if len(ids) == 1 and not classes and not pairs and ids[0].split("-")[0] in STATEMENTS and "-" in ids[0]:
        names.define(ids[0], where)
        lines = [f"{fence}{{statement}} {title}".rstrip(), f":name: {ids[0]}"]
        return [*lines, *([f":evidence: {kinds[ids[0]]}"] if kinds.get(ids[0]) else []), ""]
    if classes == ["proof"] and not ids and set(pairs) <= {"name"}:
        return [f"{fence}{{proof}} {pairs.get('name', title)}".rstrip(), ""]
    if len(classes) == 1 and not ids and not pairs and classes[0].removeprefix("callout-") in CALLOUTS and classes[0].startswith("callout-"):
        kind = CALLOUTS[classes[0].removeprefix("callout-")]
        return [f"{fence}{{admonition}} {title}", f":class: {kind}", ""] if title else [f"{fence}{{{kind}}}", ""]
    raise BookError(f"{where}: unknown div {{{attrs}}}")


def markdown(text, where, names, kinds=None):
    "A markdown cell of the subset, as MyST."
    out, lines, divs, code, maths = [], text.split("\n"), [], None, False
    i = -1
    while (i := i + 1) < len(lines):
        line = lines[i]
        if code or (_FENCE.match(line) and not maths):
            fence = _FENCE.match(line)
            code = None if code and fence and fence[1].startswith(code) else code or fence[1]
            out.append(line)
        elif line.startswith("$$"):
            label = re.fullmatch(r"\$\$\s*\{#(eq-[\w-]+)\}\s*", line)
            if maths and label:
                names.define(label[1], where)
                out.append(f"$$ ({label[1]})")
            elif line.strip() == "$$":
                out.append(line)
            else:
                raise BookError(f"{where}: a displayed formula begins and ends with $$ on a line of its own: {line}")
            maths = not maths
        elif maths:
            out.append(line)
        elif div := _DIV.match(line):
            if div["attrs"] is None:
                if not divs:
                    raise BookError(f"{where}: ::: closes nothing")
                out += [":" * (9 - divs.pop()), ""]
                continue
            divs.append(len(divs))
            following = next((j for j in range(i + 1, len(lines)) if lines[j].strip()), len(lines))
            title = re.match(r"#+ (.*)", lines[following]) if following < len(lines) else None
            out += ["", *opening(div["attrs"], divs[-1], inline(title[1], where, names) if title else "", where, names, kinds or {})]
            i = following if title else i
        elif heading := _HEADING.match(line):
            ids, classes, pairs = attributes(heading["attrs"] or "")
            if pairs or set(classes) - {"unnumbered"} or len(ids) > 1 or any(not d.startswith("sec-") for d in ids):
                raise BookError(f"{where}: a heading may have an id {{#sec-...}} and the class .unnumbered: {line}")
            for name in ids:
                names.define(name, where)
                out.append(f"({name})=")
            out.append(f"{heading['marks']} {inline(heading['text'], where, names)}")
        elif caption := _CAPTION.match(line):
            names.define(caption["id"], where)
            while out and not out[-1].strip():
                out.pop()
            first = next((j + 1 for j in range(len(out) - 1, -1, -1) if not out[j].startswith("|")), 0)
            if first == len(out):
                raise BookError(f"{where}: the caption {caption['id']} stands under no table")
            out[first:] = [f":::{{table}} {inline(caption['text'], where, names)}", f":name: {caption['id']}", "", *out[first:], ":::"]
        else:
            out.append(inline(line, where, names))
    if divs or code or maths:
        raise BookError(f"{where}: {'a div' if divs else 'a code block' if code else 'a formula'} is not closed")
    return "\n".join(out)


def options(source, where):
    "Options of a code cell and the code without them."
    found, lines = {}, source.split("\n")
    while lines and lines[0].startswith("#|"):
        match = re.fullmatch(r"#\|\s*([\w-]+)(?:(?::\s*|\s+)(.*))?", lines.pop(0))
        if not match or match[1] not in OPTIONS:
            raise BookError(f"{where}: unknown cell option {match[1] if match else ''!r}; known are {', '.join(sorted(OPTIONS))}")
        value = match[2] or ""
        found[match[1]] = json.loads(value) if value.startswith('"') else value
    if any(line.startswith("#|") for line in lines):
        raise BookError(f"{where}: cell options stand at the top of the cell")
    return found, "\n".join(lines).strip("\n")


def code(cell, where, names, module):
    "A code cell: options become MyST-NB's metadata; returns the module that it, or a cell before it, exports to."
    found, cell["source"] = options(cell["source"], where)
    tags = [tag for (key, value), tag in TAGS.items() if key in found and value == found[key]]
    cell["metadata"] = {"tags": tags} if tags else {}
    if "label" in found:
        if not found["label"].startswith("fig-") or not found.get("fig-cap") or not found.get("fig-alt"):
            raise BookError(f"{where}: a figure needs a label fig-..., a fig-cap and a fig-alt")
        names.define(found["label"], where)
        figure = {"name": found["label"], "caption": inline(found["fig-cap"], where, names)}
        cell["metadata"]["mystnb"] = {"figure": figure, "image": {"alt": found["fig-alt"]}}
    elif {"fig-cap", "fig-alt"} & set(found):
        raise BookError(f"{where}: fig-cap and fig-alt need a label: fig-...")
    if "export" in found:
        defined = [n.name for n in ast.parse(cell["source"]).body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        cell["metadata"]["exported"] = {"module": module, "names": [n for n in defined if not n.startswith("_")]}
    return found.get("default_exp", module)


def notebook(nb, name, names, kinds=None):
    "Translate a notebook in place; cells keep their numbers, so that messages can name them."
    module = None
    for i, cell in enumerate(nb["cells"], 1):
        where = f"{name}, cell {i}"
        if cell["cell_type"] == "markdown":
            cell["source"] = markdown(cell["source"], where, names, kinds)
        elif cell["cell_type"] == "code":
            module = code(cell, where, names, module)
    return nb
