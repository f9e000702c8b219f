"""Sphinx extension: the first time that a page uses a term of the glossary, a link to what it means; and the glossary says which chapters use a term most.

The glossary is a chapter, a list of definitions; it alone says what terms there are. Over the links appear previews, as over references to statements.
"""

import json
import re
from collections import Counter
from functools import cache
from itertools import takewhile
from pathlib import Path
from unicodedata import normalize

from docutils import nodes
from sphinx.transforms import SphinxTransform

PAGE = "nbs/760_glossary"
EVERYDAY = {
    "Claim",
    "Mistake",
}  # words that mean something else as well: in the list, but without links
ACCOUNT = "nbs/7"  # chapters about the book itself, named only where no other uses a term
MOST = 6  # chapters under a term


def anchor(term):
    "Where a term stands on the page of the glossary."
    plain = normalize("NFKD", term.lower()).encode("ascii", "ignore").decode()
    return "gls-" + re.sub(r"\W+", "-", plain).strip("-")


@cache
def terms(path, changed):
    "The terms of the glossary by the words for them, the longest first, and what finds them in a text."
    cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells)
    found = {t.lower(): t for t in re.findall(r"^(\S[^\n]*)\n: ", text, re.M) if t not in EVERYDAY}
    words = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
    return found, re.compile(rf"(?<![\w-])({words})(?:e?s)?(?![\w-])", re.I)


def in_anchor(node):
    "Whether a link that a cell has written as HTML is open before a node; a link within a link would end it."
    before = takewhile(lambda sibling: sibling is not node, node.parent.children)
    html = "".join(raw.astext() for raw in before if isinstance(raw, nodes.raw))
    return html.count("<a ") > html.count("</a>")


class Terms(SphinxTransform):
    "Links to the glossary from a page, or anchors on the page of the glossary itself."

    default_priority = 850  # when references and formulas are nodes

    def apply(self):
        path = Path(self.env.doc2path(PAGE))
        if not path.exists() or not self.env.docname.startswith(("nbs/", "index")):
            return
        if self.env.docname == PAGE:
            for term in self.document.findall(nodes.term):
                term["ids"].append(anchor(term.astext()))
            return
        self.env.note_dependency(str(path))
        names, pattern = terms(str(path), path.stat().st_mtime_ns)
        counts = self.env.glossary_uses[self.env.docname] = Counter()
        for text in list(self.document.findall(nodes.Text)):
            if self.in_prose(text):
                self.link(text, names, pattern, counts)

    def in_prose(self, text):
        "Whether a text stands in a paragraph, and in nothing there that is no prose, but for emphasis."
        node = text.parent
        if in_anchor(text):
            return False
        while isinstance(node, nodes.emphasis | nodes.strong):
            if in_anchor(node):
                return False
            node = node.parent
        beside = isinstance(node.parent, nodes.block_quote) or "statement-title" in node["classes"]
        return isinstance(node, nodes.paragraph) and not beside

    def link(self, text, names, pattern, counts):
        "Make the first use of each term a link."
        pieces, done = [], 0
        for match in pattern.finditer(text):
            term = names[match[1].lower()]
            counts[term] += 1
            if counts[term] == 1:
                link = nodes.reference(
                    "", match[0], internal=True, classes=["term"], refuri=self.address(term)
                )
                link["ids"].append(f"uses-{anchor(term)}")
                pieces += [nodes.Text(text[done : match.start()]), link]
                done = match.end()
        if pieces:
            parent, at = text.parent, text.parent.index(text)
            parent[at : at + 1] = [*pieces, nodes.Text(text[done:])]

    def address(self, term):
        "The place of a term, seen from this page."
        return self.app.builder.get_relative_uri(self.env.docname, PAGE) + "#" + anchor(term)


def begin(app, env, docnames):
    "Uses of earlier builds stay."
    if not hasattr(env, "glossary_uses"):
        env.glossary_uses = {}


def purge(app, env, docname):
    getattr(env, "glossary_uses", {}).pop(docname, None)


def merge(app, env, docnames, other):
    env.glossary_uses |= {d: u for d, u in other.glossary_uses.items() if d in docnames}


def updated(app, env):
    "The glossary names chapters, so it is written whenever one has changed."
    return [PAGE] if PAGE in env.all_docs else []


def write_index(app, doctree, docname):
    "The chapters that use a term most, under its definition."
    if docname != PAGE:
        return
    env = app.env
    numbers = {d: n.get("", ()) for d, n in env.toc_secnumbers.items()}
    for item in doctree.findall(nodes.definition_list_item):
        term = next(item.findall(nodes.term)).astext()
        uses = {d: u[term] for d, u in env.glossary_uses.items() if u.get(term) and numbers.get(d)}
        told = {d for d in uses if not d.startswith(ACCOUNT)} or uses
        most = sorted(told, key=lambda d: (-uses[d], numbers[d]))[:MOST]
        line = nodes.paragraph(classes=["term-uses"])
        for d in sorted(most, key=numbers.get):
            address = app.builder.get_relative_uri(PAGE, d) + f"#uses-{anchor(term)}"
            name = f"{'.'.join(map(str, numbers[d]))} {env.titles[d].astext()}"
            line += [nodes.Text(" · " if len(line) else "In "), link_to(address, name)]
        if most:
            next(item.findall(nodes.definition)).append(line)


def link_to(address, name):
    return nodes.reference("", name, internal=True, refuri=address)


def setup(app):
    app.add_transform(Terms)
    app.connect("env-before-read-docs", begin)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", updated)
    app.connect("doctree-resolved", write_index)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
