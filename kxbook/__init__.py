"""Explaining kernel clustering by small decision trees."""

from importlib import import_module as _import_module
from pathlib import Path as _Path

__version__ = "0.2.0.dev0"

# Where each public name is defined. Modules are imported on first use, so that `import kxbook` is quick.
_HOME = {
    "Kernel": "kernel",
    "KernelKMeans": "estimators",
    "IMM": "estimators",
    "KernelIMM": "estimators",
    "KernelExKMC": "estimators",
    "KernelExpand": "estimators",
    "KernelTree": "search",
    "Tree": "tree",
    "Cut": "tree",
    "Certificate": "certificate",
    "explain": "report.explanation",
    "Explanation": "report.explanation",
}
_MODULES = sorted(["report", *(p.stem for p in _Path(__file__).parent.glob("[a-z]*.py"))])
__all__ = [*_HOME]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(_import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}; its modules are {', '.join(_MODULES)}"
    )


def __dir__() -> list[str]:
    return sorted({"__version__", *_HOME, *_MODULES})
