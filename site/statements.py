"""Sphinx extension: numbered statements and proofs.

Statements are enumerable nodes like figures and tables, so that Sphinx numbers them by chapter and `numref` refers to them; and
objects of a domain, so that search finds them by name.
"""

import json
import re
from functools import cache
from html import escape
from posixpath import dirname, join, normpath

import glossary
from bs4 import BeautifulSoup
from docutils import nodes
from quarto import STATEMENTS
from sphinx.domains import Domain, ObjType
from sphinx.util.docutils import SphinxDirective

from kxbook.claim import BADGES

# One node class per kind of statement: Sphinx counts each class by itself.
KINDS = {
    prefix: type(f"statement_{prefix}", (nodes.General, nodes.Element), {"__module__": __name__})
    for prefix in STATEMENTS
}
globals().update({c.__name__: c for c in KINDS.values()})


class statement_number(nodes.Inline, nodes.TextElement):
    "Where the number of the enclosing statement goes."


class badges(nodes.Inline, nodes.TextElement):
    "What the ledger knows of the enclosing statement: a link to what badges mean."


class Statement(SphinxDirective):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = {"name": str, "evidence": str}

    def run(self):
        id = self.options["name"]
        prefix = id.split("-")[0]
        node = KINDS[prefix](classes=["statement", f"statement-{prefix}"], label=STATEMENTS[prefix])
        head = nodes.paragraph(classes=["statement-title"])
        head += statement_number(prefix=prefix, statement=id)
        title = self.arguments[0] if self.arguments else ""
        if title:
            name = nodes.inline(classes=["statement-name"])
            name.extend(self.parse_inline(title)[0])
            head += [nodes.Text(" "), name]
        if evidence := self.options.get("evidence"):
            head += [nodes.Text(" "), badges(badges=evidence.split())]
        node["title"] = title or STATEMENTS[prefix]
        node += head
        node.extend(self.parse_content_to_nodes())
        self.add_name(node)
        self.env.get_domain("book").data["objects"].append(
            (id, node["title"], prefix, self.env.docname)
        )
        return [node]


class Proof(SphinxDirective):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        node = nodes.container(classes=["proof"])
        node.extend(self.parse_content_to_nodes())
        word = f"Proof ({self.arguments[0]})." if self.arguments else "Proof."
        first = node[0] if node.children and isinstance(node[0], nodes.paragraph) else None
        if first is None:
            first = nodes.paragraph()
            node.insert(0, first)
        first.insert(0, nodes.emphasis("", word, classes=["proof-word"]))
        first.insert(1, nodes.Text(" "))
        return [node]


class BookDomain(Domain):
    "The statements of the book, for search."

    name, label = "book", "Book"
    object_types = {prefix: ObjType(word) for prefix, word in STATEMENTS.items()}
    initial_data = {"objects": []}

    def clear_doc(self, docname):
        self.data["objects"] = [o for o in self.data["objects"] if o[3] != docname]

    def merge_domaindata(self, docnames, otherdata):
        self.data["objects"] += [o for o in otherdata["objects"] if o[3] in docnames]

    def get_objects(self):
        for id, title, prefix, docname in self.data["objects"]:
            yield f"statement {id}", title.replace(".", ""), prefix, docname, id, 1

    def resolve_any_xref(self, env, fromdocname, builder, target, node, contnode):
        return []  # references go by number, through the standard domain

    def get_type_name(self, type, primary=False):
        return type.lname  # "Lemma", not "Book Lemma"


def visit_statement(self, node):
    self.body.append(self.starttag(node, "div", ""))


def depart_statement(self, node):
    self.body.append(f"</div>\n<!-- end of {node['ids'][0]} -->\n")


def visit_number(self, node):
    prefix, id = node["prefix"], node["statement"]
    number = ".".join(map(str, self.builder.fignumbers.get(prefix, {}).get(id, ())))
    self.body.append(f'<a class="statement-number" href="#{id}">{STATEMENTS[prefix]} {number}</a>')
    raise nodes.SkipNode


def visit_badges(self, node):
    "A link to the legend, which also stands in its title; a book without the legend has no link."
    shown = [(name, *BADGES[name]) for name in node["badges"]]
    spans = " ".join(f'<span class="badge-{name}">{text}</span>' for name, text, _ in shown)
    title = escape("; ".join(f"{text}: {legend}" for _, text, legend in shown))
    std = self.builder.env.domains.standard_domain
    page, anchor = std.anonlabels.get("sec-claim-badges", ("", ""))
    href = page and f"{self.builder.get_relative_uri(self.docnames[-1], page)}#{anchor}"
    tag, link = ("a", f' href="{href}"') if page else ("span", "")
    self.body.append(f'<{tag} class="evidence"{link} title="{title}">{spans}</{tag}>')
    raise nodes.SkipNode


def preview(tag, docname):
    "The content of a part of a page, with links as seen from the root of the site, since it may appear on any page."
    for link in tag.select("a[href]"):
        path, _, anchor = link["href"].partition("#")
        link["href"] = (
            normpath(join(dirname(docname), path)) if path else f"{docname}.html"
        ) + f"#{anchor}"
    for inner in tag.find_all(True):
        inner.attrs.pop("id", None)
    return tag.decode_contents()


def write_previews(app, exception):
    "All statements and terms as a script, for the previews that appear over references; a script, so that it loads from file:// too."
    if exception or app.builder.format != "html":
        return
    pages = cache(lambda name: (app.outdir / f"{name}.html").read_text(encoding="utf-8"))
    previews = {}
    for id, _, _, docname in app.env.get_domain("book").data["objects"]:
        part = re.search(rf'<div [^>]*\bid="{id}".*?<!-- end of {id} -->', pages(docname), re.S)
        previews[id] = preview(BeautifulSoup(part[0], "html.parser").div, docname)
    if glossary.PAGE in app.env.all_docs:
        for entry in BeautifulSoup(pages(glossary.PAGE), "html.parser").select("dt[id^=gls-]"):
            said = entry.find_next_sibling("dd").p
            said.insert(0, BeautifulSoup(f"<strong>{entry.contents[0]}</strong>: ", "html.parser"))
            previews[entry["id"]] = f"<p>{preview(said, glossary.PAGE)}</p>"
    text = f"window.bookStatements = {json.dumps(previews, ensure_ascii=False, sort_keys=True)};\n"
    (app.outdir / "_static" / "previews.js").write_text(text, encoding="utf-8")


def finish_page(app, pagename, templatename, context, doctree):
    "Repair the bibliography, which docutils calls a list without items."
    context["body"] = context.get("body", "").replace(
        '<div role="list" class="citation-list">', '<div class="citation-list">'
    )


def allow_parallel(app, config):
    "The extension that numbers chapters through all parts only reads what others have written; it does not say so."
    app.extensions["sphinx_multitoc_numbering"].parallel_read_safe = True


class Doctrees:
    "An environment that reads each page once; Sphinx reads the whole target page for every reference by number."

    def __init__(self, env):
        self.env, self.get_doctree = env, cache(env.get_doctree)

    def __getattr__(self, name):
        return getattr(self.env, name)


def keep_doctrees(app, env):
    "Let references by number look at pages that are kept in memory."
    domain, kept = env.domains.standard_domain, Doctrees(env)
    resolve = type(domain)._resolve_numref_xref.__get__(domain)
    domain._resolve_numref_xref = lambda env, *rest: resolve(kept, *rest)


def setup(app):
    app.add_domain(BookDomain)
    app.add_directive("statement", Statement)
    app.add_directive("proof", Proof)
    app.add_node(statement_number, html=(visit_number, None))
    app.add_node(badges, html=(visit_badges, None))
    for prefix, node in KINDS.items():
        app.add_enumerable_node(
            node, prefix, lambda node: node["title"], html=(visit_statement, depart_statement)
        )
    app.connect("config-inited", allow_parallel)
    app.connect("env-updated", keep_doctrees)
    app.connect("html-page-context", finish_page)
    app.connect("build-finished", write_previews)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
