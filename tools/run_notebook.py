"""A notebook as a test, by nbdev's rules."""

import os
import sys
from pathlib import Path

DONE = "every cell ran"
LOADED = [  # by most notebooks: each process begins as a copy of one that has loaded them
    *("matplotlib.pyplot", "nbdev.test", "pandas"),
    *("kxbook.plot", "kxbook.search"),
    "tools.warm",
]


def run(path: str, skip: list[str], output: str) -> None:
    "Run the cells but those with a flag of `skip`; what they print, and DONE at the end, goes to the file `output`."
    with open(output, "w", encoding="utf-8", buffering=1) as text:
        for number in (1, 2):
            os.dup2(text.fileno(), number)
        sys.stdout = sys.stderr = text
        from nbdev.test import test_nb

        passed, seconds = test_nb(Path(path), skip_flags=skip)
        if passed and seconds:
            print(DONE)
        text.flush()
        os._exit(not passed)
