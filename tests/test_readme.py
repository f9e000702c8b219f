"""The README keeps its word: its commands and its example run and make its pictures, its links exist."""

import html
import os
import re
import shlex
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from kxbook.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURE = "pathbased.png"  # what the example writes


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def run_commands(folder):
    "Run the commands beside the picture of the report; returns the report."
    lines = [
        line for block in blocks("sh") for line in block.splitlines() if line.startswith("kxbook ")
    ]
    with chdir(folder):
        for line in lines:
            assert not main(shlex.split(line)[1:])
    words = shlex.split(lines[-1])
    return Path(folder) / words[words.index("-o") + 1]


def run_example(folder):
    subprocess.run(
        [sys.executable, "-c", blocks("python")[1]],
        cwd=folder,
        check=True,
        env=os.environ | {"MPLBACKEND": "agg"},
    )
    return Path(folder) / PICTURE


def draw_report(browser, report, picture):
    "The report from its top to the tree, as a picture with two pixels for one."
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    browser.look(report.as_uri(), width=1000, height=1600, scale=2)
    bottom = browser.execute_script(
        "return document.querySelector('.tree').getBoundingClientRect().bottom + 24"
    )
    browser.look(report.as_uri(), width=1000, height=int(bottom), scale=2)
    browser.save_screenshot(str(picture))


def test_commands_make_the_report_that_is_shown(tmp_path):
    page = run_commands(tmp_path).read_text(encoding="utf-8")
    headline = html.unescape(re.search(r"<h1[^>]*>(.*?)</h1>", page, re.S)[1])
    shown = re.search(r'<img src="site/readme-report.png"[^>]*alt="([^"]*)"', README)[1]
    assert headline in shown, f"run `make picture` and describe it: {headline}"
    assert README.index("site/readme-report.png") < README.index("## ")  # on the first screen


def test_three_lines_make_the_same_report(tmp_path):
    "All of it but the section that says how to do it again, where a call stands for the command."
    by_command = run_commands(tmp_path).read_text(encoding="utf-8")
    program = blocks("python")[0]
    assert len([line for line in program.splitlines() if line]) == 3
    with chdir(tmp_path):
        exec(program, {})
    by_call = (tmp_path / "report.html").read_text(encoding="utf-8")
    again = re.compile(r"<pre>.*?</pre>|\"command\":\"[^\"]*\"", re.S)
    assert again.sub("", by_call) == again.sub("", by_command) and by_call != by_command


@pytest.mark.slow
def test_report_can_be_drawn(browser, tmp_path):
    from matplotlib.image import imread

    draw_report(browser, run_commands(tmp_path), tmp_path / "report.png")
    found, shown = imread(tmp_path / "report.png"), imread(ROOT / "site" / "readme-report.png")
    assert (
        found.shape[1] == shown.shape[1] == 2000
    )  # fonts differ between machines, the width does not


def test_example_makes_the_picture(tmp_path):
    compare = pytest.importorskip("matplotlib.testing.compare")
    difference = compare.compare_images(
        str(ROOT / "site" / "readme.png"), str(run_example(tmp_path)), tol=5
    )
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

    from conftest import chromium

    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        shutil.copy(run_example(folder), ROOT / "site" / "readme.png")
        draw_report(browser, run_commands(folder), ROOT / "site" / "readme-report.png")
