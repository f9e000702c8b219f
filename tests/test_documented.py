"""Every public name says what it is, and every parameter what it means."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from fastcore.docments import docments
from reference import constant, described, numpydoc

PACKAGE = Path(__file__).parent.parent / "kxbook"
MODULES = sorted(
    ".".join(p.relative_to(PACKAGE).with_suffix("").parts) for p in PACKAGE.rglob("[a-z]*.py")
)


def undocumented(module):
    "Public names, parameters and fields of a module that nothing is said about."
    if not module.__doc__:
        yield module.__name__
    for name in module.__all__:
        obj = getattr(module, name)
        if getattr(obj, "_is_protocol", False):  # what others must have, not something to call
            yield from (
                f"{name}.{m}" for m in vars(obj) if m[0] != "_" and not vars(obj)[m].__doc__
            )
            continue
        if not callable(obj):
            if not constant(module, name):
                yield name
            continue
        if not inspect.getdoc(obj):
            yield name
        if inspect.isclass(obj):
            public = [
                m
                for m in vars(obj)
                if not m.startswith("_")
                and (callable(getattr(obj, m)) or isinstance(vars(obj)[m], property))
            ]
            yield from (f"{name}.{m}" for m in public if not inspect.getdoc(getattr(obj, m)))
        if numpydoc(obj):
            methods = [
                m
                for m in vars(obj).values()
                if inspect.isfunction(m) and not m.__name__.startswith("_")
            ]
            for f in (obj, *methods):
                names = [p for p in inspect.signature(f).parameters if p != "self"]
                yield from (
                    f"{f.__qualname__}({p})"
                    for p in names
                    if not re.search(rf"^ *{p} : ", f.__doc__, re.M)
                )
        for parameter, text in (
            docments(described(obj), returns=False).items() if described(obj) else ()
        ):
            if not text and parameter != "self":
                yield f"{name}({parameter})"


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_documented(name):
    module = importlib.import_module(f"kxbook.{name}")
    assert list(undocumented(module)) == []


def test_gaps_are_found(tmp_path, monkeypatch):
    source = '"A module."\n__all__ = ["f", "g", "C", "K"]\nK = 1\ndef f(x, # a number\n  y): "Add."\ndef g(): pass\nclass C:\n    "A class."\n    def __init__(self, z): pass\n    def m(self): pass\n'
    (tmp_path / "gappy.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert list(undocumented(importlib.import_module("gappy"))) == ["f(y)", "g", "C.m", "C(z)", "K"]
