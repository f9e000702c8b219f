"""Pages of the reference: one per module, from signatures and the comments on their parameters."""

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
import types

from fastcore.docments import docments


def plain(text):
    "Text in which markdown sees nothing but text, except `code`."
    parts = re.split(r"(`[^`]*`)", " ".join(str(text).split()))
    parts[::2] = [re.sub(r"([\\*_{}\[\]<>$@~^#])", r"\\\1", p) for p in parts[::2]]
    return "".join(parts).replace("|", "\\|")


def code(text):
    "A code span that may stand in a table."
    return "`" + " ".join(str(text).split()).replace("|", "\\|") + "`"


def constant(module, name):
    "What the comment on the first or last line of a constant says about it."
    source = inspect.getsource(module)
    for node in ast.parse(source).body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        if any(getattr(t, "id", None) == name for t in targets):
            ends = (
                source.split("\n")[i - 1].rpartition("  # ") for i in (node.lineno, node.end_lineno)
            )
            return next((text.strip() for _, mark, text in ends if mark), "")
    return ""


def numpydoc(obj):
    "The documentation of an estimator or of its method, which is in NumPy's form, as Markdown; nothing for other forms."
    summary, *rest = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(obj) or "", flags=re.M)
    if not rest:
        return []
    lines = [line for text in summary.strip().split("\n\n") for line in (plain(text), "")]
    for title, body in zip(rest[::2], rest[1::2]):
        lines += [f"**{title}**", ""]
        if title == "Examples":
            lines += ["```pycon", body.strip(), "```", ""]
        elif title == "Notes":
            lines += [plain(body), ""]
        else:  # name : type, and what it means, indented
            entries = re.findall(
                r"^(\w+)(?: : (.*))?\n((?:    .*\n?|\n)*)", body.strip() + "\n", flags=re.M
            )
            rows = [f"| `{name}` | {plain(kind)} | {plain(text)} |" for name, kind, text in entries]
            lines += ["| | | |", "|---|---|---|", *rows, ""]
    return lines


def described(obj):
    "What carries the comments on parameters: a function, a dataclass with its fields, or the `__init__` of another class."
    obj = inspect.unwrap(
        getattr(obj, "py_func", obj)
    )  # a compiled or cached function keeps the one that it was made from
    if numpydoc(obj):
        return None
    if not inspect.isclass(obj) or dataclasses.is_dataclass(obj):
        return obj
    return vars(obj).get("__init__")


def annotations(obj):
    "Types as they are written in the source: `ArrayLike`, not what it stands for."
    node = ast.parse(textwrap.dedent(inspect.getsource(obj))).body[0]
    if isinstance(node, ast.ClassDef):
        return {
            n.target.id: ast.unparse(n.annotation)
            for n in node.body
            if isinstance(n, ast.AnnAssign)
        }
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    found = {a.arg: ast.unparse(a.annotation) for a in arguments if a.annotation}
    return found | ({"return": ast.unparse(node.returns)} if node.returns else {})


def parameters(obj):
    "A table of parameters (of a function or class) or fields (of a dataclass)."
    obj = described(obj)
    if obj is None:
        return []
    rows, types = [], annotations(obj)
    for name, found in docments(obj, full=True).items():
        if name == "self" or (name == "return" and types.get("return", "None") == "None"):
            continue
        default = (
            ""
            if found.default is inspect.Parameter.empty or name == "return"
            else f" = {code(repr(found.default))}"
        )
        if "<" in default:  # the repr of a function or factory says nothing
            default = ""
        label = "*returns*" if name == "return" else f"`{name}`"
        kind = code(types[name]) if name in types else ""
        rows.append(f"| {label} | {kind}{default} | {plain(found.docment or '')} |")
    return ["| | | |", "|---|---|---|", *rows, ""] if rows else []


def signature(obj):
    "Names and defaults, without annotations: those stand in the table."
    if inspect.isclass(obj) and issubclass(obj, Exception):
        return ""
    given = inspect.signature(obj)
    bare = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in given.parameters.values()
        if p.name != "self"
    ]
    text = str(given.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return "(...)" if "<" in text else text


def about(obj):
    "What the documentation says."
    return numpydoc(obj) or [plain(inspect.getdoc(obj))]


def members(obj):
    "Public methods and properties of a class."
    for name, member in vars(obj).items():
        if isinstance(member, property):
            yield [
                f"````{{py:property}} {name}",
                "",
                plain(inspect.getdoc(member) or ""),
                "````",
                "",
            ]
        elif (
            inspect.isfunction(member)
            and (not name.startswith("_") or name == "__call__")
            and member.__doc__
            and member.__module__ == obj.__module__
        ):
            yield [f"````{{py:method}} {name}{signature(member)}", "", *about(member), "````", ""]


def entry(module, name):
    "One public name."
    obj = getattr(module, name)
    obj = inspect.unwrap(getattr(obj, "py_func", obj))
    short = module.__name__.removeprefix("kxbook.")
    derived = f"{{ref}}`Where it is derived <exported-{short}-{name.lower()}>`"
    if not callable(obj) or isinstance(obj, types.GenericAlias):  # a name for a type is a value
        says = constant(module, name)
        return [
            f"`````{{py:data}} {name}",
            "",
            plain(says[:1].upper() + says[1:]) + ".",
            "",
            derived,
            "`````",
            "",
        ]
    kind = "class" if inspect.isclass(obj) else "function"
    lines = [f"`````{{py:{kind}}} {name}{signature(obj)}", "", *about(obj), "", *parameters(obj)]
    if kind == "class":
        lines += [line for member in members(obj) for line in member]
    return [*lines, derived, "`````", ""]


def page(name):
    "The reference page of one module."
    module = importlib.import_module(f"kxbook.{name}")
    lines = [
        f"# kxbook.{name}",
        "",
        plain(module.__doc__),
        "",
        f"```{{py:module}} kxbook.{name}",
        "```",
        "",
    ]
    for public in module.__all__:
        lines += entry(module, public)
    return "\n".join(lines)
