"""Sphinx extension: folds of code, and the line in an exported cell that leads to its page in the reference."""

from html import escape

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx import addnodes
from sphinx.transforms import SphinxTransform


class References(SphinxTransform):
    "A line above the code of each exported cell that leads to what the reference says of its names; each name is an anchor."

    default_priority = 400

    def apply(self):
        for cell in self.document.findall(nodes.container):
            exported = cell.get("cell_metadata", {}).get("exported")
            if exported and exported["names"] and cell.get("nb_element") == "cell_code":
                cell[0].insert(0, self.line(exported["module"], exported["names"]))

    def line(self, module, names):
        "The line, for one cell."
        line = nodes.paragraph(classes=["exported"])
        line += nodes.Text("reference: ")
        for i, name in enumerate(names):
            ref = addnodes.pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=f"kxbook.{module}.{name}",
                refexplicit=True,
                refdoc=self.env.docname,
            )
            ref += nodes.literal("", name)
            anchor = nodes.inline(names=[f"exported-{module}-{name.lower()}"])
            self.document.note_explicit_target(anchor)
            anchor += ref
            line += [nodes.Text(", " if i else ""), anchor]
        return line


def open_fold(self, node):
    "As Quarto writes it; MyST-NB's own gives all folds the same name."
    self.body.append(f'<details class="code-fold"><summary>{escape(node["prompt_show"])}</summary>')


def close_fold(self, node):
    self.body.append("</details>\n")


def setup(app):
    app.add_transform(References)
    app.add_node(HideCodeCellNode, override=True, html=(open_fold, close_fold))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
