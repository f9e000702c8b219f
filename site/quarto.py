"""From the book's Quarto markdown to MyST, cell by cell.

The notebooks are written in a strict subset of Quarto's markdown, so that `quarto render` works on them as they are. This
module turns that subset into what MyST-NB and `statements.py` understand, and refuses everything outside of it:

    ::: {#lem-x}  ## Title ... :::     a statement; also #thm- #prp- #cor- #def- #exm- #rem- #alg-, and #exr-, an exercise
    ::: {.proof}  ... :::              a proof; {.proof name="sketch"} an honest sketch
    ::: {.callout-note} ... :::        a box; also -tip, -warning, -important, -caution
    ::: {.callout-tip collapse="true"} a box that is folded, such as the solution of an exercise; "false": one that can be
    $$ ... $$ {#eq-x}                  a numbered formula
    # Heading {#sec-x}                 a section that can be referred to
    : Caption {#tbl-x}                 under a table
    ![text](picture.png)\\              a picture; without the \\ Quarto would take its text for a caption
    @lem-x @eq-x @fig-x [@key; @key2]  references and citations
    #| key: value                      options of a code cell, which together are YAML
    #| export                          a word of nbdev; also hide, exporti, default_exp, and then no option beside them
"""

import ast
import re
from dataclasses import dataclass, field
from difflib import get_close_matches

import yaml
from fold_exports import EXPORTED, public, summary
from IPython.core.inputtransformer2 import TransformerManager

STATEMENTS = {
    "thm": "Theorem", "lem": "Lemma", "prp": "Proposition", "cor": "Corollary",
    "def": "Definition", "exm": "Example", "rem": "Remark", "alg": "Algorithm",
    "exr": "Exercise",
}  # fmt: skip
NUMBERED = (*STATEMENTS, "sec", "fig", "tbl", "eq")
CALLOUTS = {"note", "tip", "warning", "important", "caution"}
COLLAPSE = {"true": "closed", "false": "open"}  # Quarto's words for a fold, and Sphinx's
TAGS = {  # cell options that change what is shown
    ("include", "false"): "remove-cell",
    ("echo", "false"): "remove-input", ("output", "false"): "remove-output", ("code-fold", "true"): "hide-input",
    ("eval", "false"): "skip-execution",
}  # fmt: skip
SWITCH = {"true", "false"}
OPTIONS = {  # options of a code cell and the values they may have; None: any
    "slow": {"true"}, "eval": SWITCH, "echo": SWITCH, "output": SWITCH, "include": SWITCH, "code-fold": SWITCH,
    "code-summary": None, "label": None, "fig-cap": None, "fig-alt": None,
}  # fmt: skip
WORDS = {  # of nbdev, and what follows them; Quarto passes over a cell that has nothing else
    "export": "", "exporti": "", "hide": "", "default_exp": r"[\w.]+",
}  # fmt: skip
REFUSED_LINES = {  # what one of the two renderers would understand and the other would not
    r"%|\+\+\+|\([\w-]+\)=\s*$": "a line must not begin with %, +++ or (label)=, which mean something to MyST",
    r"[\s>]+(:::|\$\$)": "divs and displayed formulas begin in the first column",
    r": ": "a caption ends with {#tbl-...} on the same line",
    r"\s*[-*] \[[ xX]\] ": "task lists are not part of the book's markdown",
    r"(=+|-+)\s*$": "headings begin with #; a rule is ***",
}
REFUSED_TEXT = {
    r"\{\{<": "shortcodes are not part of the book's markdown",
    r"\]\{": "attributes of words and links are not part of the book's markdown",
    r"\^\[": "inline notes are not part of the book's markdown",
    r"~~|(?<=\w)~\w+~": "~ is not part of the book's markdown",
    r"\{[\w:-]+\}(?=`|$)": "roles of MyST are not part of the book's markdown",
    r"\{#[\w-]+\}": "an id stands at the end of a heading, a formula or a caption",
}

_FENCE = re.compile(r"^[\s>]*(`{3,}|~{3,})([^`]*)$")
_DIV = re.compile(r"^:{3,}\s*(?:\{(?P<attrs>.*)\})?\s*$")
_HEADING = re.compile(r"^(?P<marks>#+) (?P<text>.*?)\s*(?:\{(?P<attrs>[^}]*)\})?$")
_CAPTION = re.compile(r"^: (?P<text>.*?)\s*\{#(?P<id>tbl-[\w-]+)\}$")
VERBATIM = re.compile(  # code, formulas, comments, addresses: nothing in them is ours to change
    r"(?<![\\`])(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"
    r"|(?<![\\$])\$(?![\s$])(?:\\.|[^$\\])*?(?<!\s)\$(?![\d$])"
    r"|<!--.*?-->|\]\([^)\s]*\)|<[a-z]+:[^>\s]*>",
    re.S,
)
_CITES = re.compile(r"\[(@[\w:-]+(?:;\s*@[\w:-]+)*)\]")
_REF = re.compile(r"(?<![A-Za-z0-9\[\\])@([A-Za-z](?:[\w:-]*[A-Za-z0-9])?)")


class BookError(Exception):
    "Something outside the subset; the text names file and cell."


def hint(name, known):
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


@dataclass
class Names:
    "What the cells of the book define and what they refer to, each with its place."

    chapters: set[str] = field(default_factory=set)  # ids of whole chapters, known beforehand
    defined: dict[str, str] = field(default_factory=dict)
    used: list[tuple[str, str]] = field(default_factory=list)  # (name, place)
    cited: list[tuple[str, str]] = field(default_factory=list)

    def define(self, name, where):
        if not re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", name):
            raise BookError(
                f"{where}: {name}: an id consists of lower-case letters, digits and single hyphens"
            )
        if name in self.defined:
            raise BookError(
                f"{where}: {name} is defined a second time; first in {self.defined[name]}"
            )
        self.defined[name] = where

    def check(self, keys):
        "Every reference has a target and every citation an entry in the bibliography."
        problems = [
            f"{where}: @{name} refers to nothing in the book{hint(name, self.defined)}"
            for name, where in self.used
            if name not in self.defined
        ]
        problems += [
            f"{where}: [@{key}] is not in the bibliography{hint(key, keys)}"
            for key, where in self.cited
            if key not in keys
        ]
        if problems:
            raise BookError("\n".join(problems))


def inline(text, where, names):
    "References and citations in a paragraph, outside code, formulas and addresses."

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

    def change(part):
        for pattern, why in REFUSED_TEXT.items():
            if re.search(pattern, part):
                raise BookError(f"{where}: {why}: {part.strip()}")
        if re.search(r"\[[^\]]*(?<!\w)@\w", _CITES.sub("", part)):
            raise BookError(
                f"{where}: a citation must be of the form [@key] or [@key; @key2]: {part.strip()}"
            )
        return _REF.sub(refer, _CITES.sub(cite, part))

    if text.lstrip().startswith("<") and _REF.search(VERBATIM.sub("", text)):
        raise BookError(f"{where}: there are no references in HTML: {text.strip()}")
    out, end = [], 0
    for match in VERBATIM.finditer(text):
        out += [change(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*out, change(text[end:])])


def attributes(text, where):
    "Id, classes and key-value pairs of an attribute list."
    pairs = dict(re.findall(r'([\w-]+)="([^"]*)"', text))
    words = re.sub(r'[\w-]+="[^"]*"', "", text).split()
    if any(w[0] not in "#." for w in words):
        raise BookError(f"{where}: cannot read the attributes {{{text}}}")
    return [w[1:] for w in words if w[0] == "#"], [w[1:] for w in words if w[0] == "."], pairs


def opening(attrs, depth, title, where, names, kinds):
    "The first lines of a MyST directive for a Quarto div."
    ids, classes, pairs = attributes(attrs, where)
    fence = ":" * (9 - depth)
    if (
        len(ids) == 1
        and not classes
        and not pairs
        and ids[0].split("-")[0] in STATEMENTS
        and "-" in ids[0]
    ):
        names.define(ids[0], where)
        lines = [f"{fence}{{statement}} {title}".rstrip(), f":name: {ids[0]}"]
        return [*lines, *([f":evidence: {kinds[ids[0]]}"] if kinds.get(ids[0]) else []), ""]
    if classes == ["proof"] and not ids and set(pairs) <= {"name"}:
        return [f"{fence}{{proof}} {pairs.get('name', title)}".rstrip(), ""]
    kind = classes[0].removeprefix("callout-") if len(classes) == 1 else ""
    folded = pairs.get("collapse", "")
    if (
        classes == [f"callout-{kind}"]
        and kind in CALLOUTS
        and not ids
        and set(pairs) <= {"collapse"}
        and folded in {"", *COLLAPSE}
    ):
        first = [f"{fence}{{admonition}} {title}", f":class: {kind}"]
        lines = first if title else [f"{fence}{{{kind}}}"]
        return [*lines, *([f":collapsible: {COLLAPSE[folded]}"] if folded else []), ""]
    raise BookError(f"{where}: unknown div {{{attrs}}}")


def markdown(text, where, names, kinds=None):
    "A markdown cell of the subset, as MyST."
    out, paragraph, lines, divs, code, maths = [], [], text.split("\n"), [], None, False

    def flush():
        if paragraph:
            if re.fullmatch(r"!\[[^\]]*\]\(\S+\)\\?", "\n".join(paragraph)):
                if not paragraph[-1].endswith("\\"):
                    raise BookError(
                        f"{where}: Quarto shows the text of a picture that stands alone as its caption; end the line with \\"
                    )
                paragraph[-1] = paragraph[-1][:-1]
            out.extend(inline("\n".join(paragraph), where, names).split("\n"))
            paragraph.clear()

    i = -1
    while (i := i + 1) < len(lines):
        line = lines[i]
        fence = None if maths else _FENCE.match(line)
        if code or fence:
            flush()
            if not code and fence[2].strip().startswith("{"):
                raise BookError(
                    f"{where}: directives of MyST are not part of the book's markdown: {line}"
                )
            closes = code and fence and fence[1].startswith(code) and not fence[2].strip()
            code = None if closes else code or fence[1]
            out.append(line)
        elif line.startswith("$$"):
            flush()
            label = re.fullmatch(r"\$\$\s*\{#(eq-[\w-]+)\}\s*", line)
            if maths and label:
                names.define(label[1], where)
                out.append(f"$$ ({label[1]})")
            elif line.strip() == "$$":  # MyST wants it apart from the text, Quarto does not mind
                out += [line, ""] if maths else ["", line] if out and out[-1] else [line]
            else:
                raise BookError(
                    f"{where}: a displayed formula begins and ends with $$ on a line of its own: {line}"
                )
            maths = not maths
        elif maths:
            out.append(line)
        elif div := _DIV.match(line):
            flush()
            if div["attrs"] is None:
                if not divs:
                    raise BookError(f"{where}: ::: closes nothing")
                out += [":" * (9 - divs.pop()), ""]
                continue
            divs.append(len(divs))
            following = next((j for j in range(i + 1, len(lines)) if lines[j].strip()), len(lines))
            title = re.match(r"#+ (.*)", lines[following]) if following < len(lines) else None
            if len(divs) > 1 and re.search(rf"#({'|'.join(STATEMENTS)})-", div["attrs"]):
                raise BookError(f"{where}: a statement must not stand inside another div: {line}")
            out += [
                "",
                *opening(
                    div["attrs"],
                    divs[-1],
                    inline(title[1], where, names) if title else "",
                    where,
                    names,
                    kinds or {},
                ),
            ]
            i = following if title else i
        elif heading := _HEADING.match(line):
            flush()
            if divs:
                raise BookError(
                    f"{where}: a heading inside a div is its title and stands first: {line}"
                )
            ids, classes, pairs = attributes(heading["attrs"] or "", where)
            if (
                pairs
                or set(classes) - {"unnumbered"}
                or len(ids) > 1
                or any(not d.startswith("sec-") for d in ids)
            ):
                raise BookError(
                    f"{where}: a heading may have an id {{#sec-...}} and the class .unnumbered: {line}"
                )
            for name in ids:
                names.define(name, where)
                out.append(f"({name})=")
            out.append(f"{heading['marks']} {inline(heading['text'], where, names)}")
        elif caption := _CAPTION.match(line):
            flush()
            names.define(caption["id"], where)
            while out and not out[-1].strip():
                out.pop()
            first = next(
                (j + 1 for j in range(len(out) - 1, -1, -1) if not out[j].startswith("|")), 0
            )
            if first == len(out):
                raise BookError(f"{where}: the caption {caption['id']} stands under no table")
            out[first:] = [
                f":::{{table}} {inline(caption['text'], where, names)}",
                f":name: {caption['id']}",
                "",
                *out[first:],
                ":::",
            ]
        elif not line.strip():
            flush()
            out.append(line)
        else:
            for pattern, why in REFUSED_LINES.items():
                defined = pattern == ": " and len(paragraph) == 1  # below a term
                if re.match(pattern, line) and not defined:
                    raise BookError(f"{where}: {why}: {line}")
            paragraph.append(line)
    flush()
    if divs or code or maths:
        raise BookError(
            f"{where}: {'a div' if divs else 'a code block' if code else 'a formula'} is not closed"
        )
    return "\n".join(out)


def options(source, where):
    "Options of a code cell and the code without them."
    lines = source.split("\n")
    count = next((i for i, line in enumerate(lines) if not line.startswith("#|")), len(lines))
    if any(re.match(r"#\s*\|", line) for line in lines[count:]):
        raise BookError(f"{where}: cell options stand at the top of the cell and begin with #|")
    given = [line[2:].strip() for line in lines[:count]]
    words = [line.partition(" ") for line in given]
    if all(word in WORDS and re.fullmatch(WORDS[word], rest) for word, _, rest in words):
        found = {word: rest for word, _, rest in words}
    else:
        found = mapping(given, where)
    return found, "\n".join(lines[count:]).strip("\n")


def mapping(lines, where):
    "Options that are `key: value`; Quarto reads all lines of a cell as one piece of YAML, and stops where it cannot."
    keys = []
    for line in lines:
        key = re.match(r"([\w-]+):(?= |$)", line)
        if not key and line.partition(" ")[0] in {*WORDS, "slow"}:
            raise BookError(
                f"{where}: {line!r} must not stand beside options of the form `key: value`, since Quarto reads all of them as YAML; "
                "a slow cell says `#| slow: true`, and one that is exported or hidden has no other option"
            )
        if not key or key[1] not in OPTIONS:
            known = ", ".join([*sorted(OPTIONS), *WORDS])
            raise BookError(f"{where}: unknown cell option {line!r}; known are {known}")
        keys.append(key[1])
    try:
        found = yaml.load("\n".join(lines), yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as e:
        raise BookError(f"{where}: cannot read the cell options {lines!r}: {e}") from None
    if list(found) != keys or not all(isinstance(value, str) for value in found.values()):
        raise BookError(f"{where}: each cell option stands once and has a text: {lines!r}")
    for key, value in found.items():
        if OPTIONS[key] and value not in OPTIONS[key]:
            allowed = " or ".join(sorted(OPTIONS[key]))
            raise BookError(f"{where}: the cell option {key} must be {allowed}: {value!r}")
    return found


def parse(source, where):
    "The syntax tree of a cell, with IPython's magics taken out."
    try:
        return ast.parse(TransformerManager().transform_cell(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:  # what the parser raises
        raise BookError(f"{where}: {e or 'the code is nested too deeply'}") from None


def figure(found, where, names):
    "What MyST-NB is told about a figure: its name, its caption and, for a picture, the text that stands for it."
    if (
        not found["label"].startswith("fig-")
        or not found.get("fig-cap")
        or not found.get("fig-alt")
    ):
        raise BookError(f"{where}: a figure needs a label fig-..., a fig-cap and a fig-alt")
    names.define(found["label"], where)
    caption = inline(found["fig-cap"], where, names)
    return {
        "figure": {"name": found["label"], "caption": caption},
        "image": {"alt": found["fig-alt"]},
    }


def code(cell, where, names, module):
    "A code cell: options become MyST-NB's metadata; returns the module that it, or a cell before it, exports to."
    found, cell["source"] = options(cell["source"], where)
    tags = [tag for (key, value), tag in TAGS.items() if found.get(key) == value]
    about = {}
    if "label" in found:
        about = figure(found, where, names)
    elif {"fig-cap", "fig-alt"} & set(found):
        raise BookError(f"{where}: fig-cap and fig-alt need a label: fig-...")
    if "code-summary" in found and found.get("code-fold") != "true":
        raise BookError(f"{where}: a code-summary needs code-fold: true")
    line = found.get("code-summary", "Code") if "hide-input" in tags else ""
    cell["metadata"] = {}
    if {"export", "exporti"} & set(found) and "hide" not in found:
        if not module:
            raise BookError(f"{where}: no cell before it names a module, `#| default_exp ...`")
        tree = parse(cell["source"], where)
        line, tags = summary(module, cell["source"], tree), [*tags, "hide-input", EXPORTED]
        cell["metadata"]["exported"] = {
            "module": module,
            "names": public(tree) if "export" in found else [],
        }
    if line:
        about |= {"code_prompt_show": line, "code_prompt_hide": line}
    tags += ["remove-cell"] if "hide" in found else []
    cell["metadata"] |= ({"tags": tags} if tags else {}) | ({"mystnb": about} if about else {})
    return found.get("default_exp", module)


def notebook(nb, name, names, kinds=None):
    "Translate a notebook in place, cells keeping their numbers so that messages can name them; returns the module it exports to."
    module = None
    for i, cell in enumerate(nb["cells"], 1):
        where = f"{name}, cell {i}"
        if cell["cell_type"] == "markdown":
            cell["source"] = markdown(cell["source"], where, names, kinds)
        elif cell["cell_type"] == "code":
            module = code(cell, where, names, module)
    return module
