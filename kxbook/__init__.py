"""Explaining kernel clustering by small decision trees."""

from importlib import import_module
from importlib.util import find_spec

__version__ = "0.1.0"

# Where each public name is defined. Modules are imported on first use, so that `import kxbook` is quick.
_HOME = {"Kernel": "kernel"}
__all__ = [*_HOME]


def __getattr__(name: str):
    home = _HOME.get(name, name)
    if name.startswith("_") or find_spec(f"{__name__}.{home}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{home}")
    return getattr(module, name) if name in _HOME else module


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
