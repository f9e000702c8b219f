"""The README keeps its word: its example runs and makes its picture, its commands and links exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURE = "pathbased.png"  # what the example writes


def run_example(folder):
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", README, re.M | re.S))
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, env=os.environ | {"MPLBACKEND": "agg"})
    return Path(folder) / PICTURE


def test_example_makes_the_picture(tmp_path):
    from matplotlib.testing.compare import compare_images

    difference = compare_images(str(ROOT / "site" / "readme.png"), str(run_example(tmp_path)), tol=5)
    assert difference is None, f"run `make picture`: {difference}"


def test_commands_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    commands = set(re.findall(r"\bmake ([\w-]+)", README))
    assert {"test", "book"} <= commands <= targets


def test_links_exist():
    for link in re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", README):
        target = "".join(link)
        assert (ROOT / target).exists(), target


if __name__ == "__main__":
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(run_example(folder), sys.argv[1])
