"""Export the notebooks into kxbook/ and clean them: `make sync`. A file that stays as it was keeps its time, so that nothing is compiled or built again for it."""

import os
from pathlib import Path

from nbdev.clean import nbdev_clean
from nbdev.config import get_config
from nbdev.doclinks import nbdev_export


def files(root):
    return [*root.glob("nbs/*.ipynb"), *root.glob("kxbook/**/*.py")]


root = Path(get_config().config_path)
before = {path: (path.read_bytes(), path.stat()) for path in files(root)}
nbdev_export()
nbdev_clean()
for path, (content, was) in before.items():
    if path.exists() and path.read_bytes() == content:
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
