"""Sphinx extension: the tab that joins an exported cell to its page in the reference."""

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform


class ExportTabs(SphinxTransform):
    "A line above each exported cell that names what it exports and leads to the reference."

    default_priority = 400

    def apply(self):
        for cell in list(
            self.document.findall(
                lambda n: isinstance(n, nodes.container) and n.get("nb_element") == "cell_code"
            )
        ):
            exported = cell.get("cell_metadata", {}).get("exported")
            if not exported:
                continue
            module = exported["module"]
            tab = nodes.paragraph(classes=["exported"])
            tab += nodes.Text("exported: ")
            for i, name in enumerate(exported["names"]):
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
                tab += [nodes.Text(", " if i else ""), anchor]
            if not exported["names"]:
                tab += nodes.literal("", f"kxbook.{module}")
            cell.insert(0, tab)


def setup(app):
    app.add_transform(ExportTabs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
