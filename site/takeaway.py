"""Sphinx extension: the notebooks that readers download, in the place of the sources that Sphinx copies.

They have their outputs, and markdown that every viewer shows: statements with number and name, references as words, captions below figures. They are made
from the translated notebooks, after the pages, when Sphinx knows all numbers.
"""

import re

import nbformat
from quarto import STATEMENTS, VERBATIM

WORDS = STATEMENTS | {"figure": "Figure", "table": "Table"}
ROLE = re.compile(rf"\{{(?P<role>numref|eq|cite:[pt])\}}`(?P<of>[^`]*)`|{VERBATIM.pattern}", re.S)
NOTE = """> From the book *{title}*, with the outputs that its pages show.
> It runs where the package `kxbook` is installed with all that its chapters use: `pip install "kxbook[nb]"`.
> Chapters about the book itself also read its other files, and run in its folder `nbs` only."""


def numbers(env):
    "How each id is referred to, such as Lemma 1.2, Chapter 3 or (4.5)."
    found = {}
    for kinds in env.toc_fignumbers.values():
        for kind, ids in kinds.items():
            for id, number in ids.items():
                dotted = ".".join(map(str, number))
                found[id.removeprefix("equation-")] = (
                    f"{WORDS[kind]} {dotted}" if kind in WORDS else f"({dotted})"
                )
    for name, (docname, id) in env.domains.standard_domain.anonlabels.items():
        sections = env.toc_secnumbers.get(docname, {})
        if number := name.startswith("sec-") and sections.get(f"#{id}", sections.get("")):
            word = "Chapter" if len(number) == 1 else "Section"
            found[name] = f"{word} {'.'.join(map(str, number))}"
    return found


def authors(citation):
    "Authors and year of a work."
    people = [
        " ".join(map(str, p.rich_last_names)) for p in citation.entry.persons.get("author", [])
    ]
    names = f"{people[0]} et al." if len(people) > 2 else " and ".join(people)
    return names, citation.entry.fields["year"]


def words(text, names, works):
    "A piece of MyST in which references and citations have become words."

    def say(match):
        if not match["role"]:
            return match[0]
        if match["role"] in ("numref", "eq"):
            return names[re.search(r"([\w-]+)>?$", match["of"])[1]]
        said = [authors(works[key]) for key in match["of"].split(",")]
        if match["role"] == "cite:t":
            return f"{said[0][0]} ({said[0][1]})"
        return f"({'; '.join(f'{who}, {year}' for who, year in said)})"

    return "".join(ROLE.sub(say, part) for part in re.split(r"(\n\s*\n)", text))


class Plain:
    "A markdown cell, from the MyST that `quarto.py` writes to markdown without directives."

    def __init__(self, names, sections):
        self.names, self.sections = names, sections  # sections: numbers of the headings to come
        self.out, self.divs, self.formula, self.code = [], [], None, ""

    def add(self, *lines):
        "Lines of the result; within statements and boxes they are quoted."
        quote = "> " * sum(end == ">" for end, _ in self.divs)
        self.out += [(quote + line).rstrip() for line in lines]

    def begin(self, kind, title, options):
        "The first line of a statement, a proof, a box or a table."
        name = self.names.get(options.get("name"))
        if kind == "table":
            self.divs.append(("", f"**{name}.** {title}"))
        elif kind == "proof":
            self.add("", f"*Proof{f' ({title})' if title else ''}.*")
            self.divs.append(("", "∎"))
        elif "collapsible" in options:
            self.add("", f"<details><summary>{title or kind.capitalize()}</summary>", "")
            self.divs.append(("", "\n</details>"))
        else:
            self.add("")
            self.divs.append((">", ""))
            head = f"**{name or title or kind.capitalize()}**"
            self.add(f"{head} · {title}" if name and title else head, "")

    def end(self):
        "Its last."
        quoted, last = self.divs.pop()
        self.add(*([""] if last.startswith("**") else []), *([last] if last else []), "")

    def finish_formula(self, line):
        "A formula; within a quotation on one line, since viewers take the marks of the quotation for a part of it."
        label = re.fullmatch(r"\$\$ \((.*)\)", line)
        if label:
            self.formula.append(f"\\tag{{{self.names[label[1]].strip('()')}}}")
        if any(end == ">" for end, _ in self.divs):
            self.add(f"$${' '.join(self.formula)}$$")
        else:
            self.add("$$", *self.formula, "$$")
        self.formula = None

    def cell(self, text):
        "The whole cell."
        lines = text.split("\n")
        while lines:
            line = lines.pop(0)
            directive = re.fullmatch(r":{3,}\{(\w+)\} ?(.*)", line)
            fence = re.match(r"\s*(`{3,}|~{3,})", line)
            if self.code or fence:
                closes = self.code and fence and fence[1].startswith(self.code)
                self.code = "" if closes else self.code or fence[1]
                self.add(line)
            elif self.formula is not None and line.startswith("$$"):
                self.finish_formula(line)
            elif self.formula is not None:
                self.formula.append(line)
            elif line == "$$":
                self.formula = []
            elif directive:
                options = {}
                while lines and (option := re.fullmatch(r":([\w-]+): (.*)", lines[0])):
                    options[option[1]] = option[2]
                    lines.pop(0)
                lines[:1] = [] if not lines[0] else lines[:1]
                self.begin(directive[1], directive[2], options)
            elif re.fullmatch(r":{3,}", line):
                self.end()
            elif heading := re.fullmatch(r"(#+) (.*)", line):
                self.add(f"{heading[1]} {next(self.sections, '')} {heading[2]}")
            elif not re.fullmatch(r"\([\w-]+\)=", line):
                self.add(line)
        text = re.sub(r"^>\n(>\n)+", ">\n", "\n".join(self.out), flags=re.M)
        return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


def takeaway(nb, title, names, works, sections):
    "The notebook for readers, made from the translated one."
    cells = [nbformat.v4.new_markdown_cell(NOTE.format(title=title), id="note")]
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = Plain(names, sections).cell(words(cell.source, names, works))
        tags = set(cell.metadata.get("tags", []))
        figure = cell.metadata.get("mystnb", {}).get("figure")
        cell.metadata = (
            {"jupyter": {"source_hidden": True}} if {"remove-cell", "remove-input"} & tags else {}
        )
        if cell.cell_type == "code" and {"remove-cell", "remove-output"} & tags:
            cell.outputs = []
        cells.append(cell)
        if figure:
            caption = f"**{names[figure['name']]}.** {words(figure['caption'], names, works)}"
            cells.append(nbformat.v4.new_markdown_cell(caption, id=f"{cell.id}-caption"))
    nb.cells = cells
    nb.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nb


def write_notebooks(app, exception):
    "All of them, since the numbers of one may change with another."
    if exception or app.builder.format != "html":
        return
    names = numbers(app.env)
    works = {c.key: c for c in app.env.get_domain("cite").citations}
    for docname in sorted(app.env.found_docs):
        if (source := app.srcdir / f"{docname}.ipynb").exists():
            sections = app.env.toc_secnumbers.get(docname, {}).values()
            dotted = iter([".".join(map(str, number)) for number in sections])
            nb = takeaway(nbformat.read(source, 4), app.config.project, names, works, dotted)
            target = app.outdir / "_sources" / source.relative_to(app.srcdir)
            target.write_text(nbformat.writes(nb), encoding="utf-8")


def setup(app):
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
