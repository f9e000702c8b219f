"""A clustering of a table, explained: reading it, words, exports, the page, and one call for all of it."""

from importlib import import_module as _import_module

# Where each public name is defined. Modules are imported on first use, so that `kxbook --help` is quick.
_HOME = {
    name: module
    for module, names in {
        "table": "MISSING Feature Reading Table UserError as_features read_table",
        "words": "cluster_name interval_phrase leaf_conditions rules_text tree_in_words",
        "export": "SCHEMA assign_rows from_document shadow_tree to_document to_python to_sql",
        "page": "page_data report_html versions",
        "explanation": "Explanation METHODS NYSTROEM_FROM POSITIVE SCALES Step cheapest_pruning "
        "explain explain_table group_cost group_table in_units leaf_series plain_number prune "
        "scale_columns",
    }.items()
    for name in names.split()
}
_MOVED = {  # names of version 0.1 that live elsewhere, or have another name
    "PALETTE": ("kxbook.plot", "PALETTE"),
    "shown": ("kxbook.tree", "escape_invisible"),
    "say": ("kxbook.report.words", "interval_phrase"),
    "tree_html": ("kxbook.report.words", "tree_in_words"),
}
_MODULES = ("table", "words", "export", "page", "explanation")
__all__ = [*_HOME]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(_import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _MOVED:
        module, now = _MOVED[name]
        return getattr(_import_module(module), now)
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*_HOME, *_MODULES})
