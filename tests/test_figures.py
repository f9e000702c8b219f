"""The figures of the built book: without a ground, light, readable in the column, and with one colour for a cluster."""

import re
from collections import Counter
from pathlib import Path

import nbformat
import numpy as np
import pytest
from matplotlib.image import imread
from test_browser import BOOK, OBSTACLE, REQUIRED

COLUMN = 752  # pixels, on a wide screen
ROOT = Path(__file__).parent.parent
ORANGE = "#d55e00"
needs_book = pytest.mark.skipif(bool(OBSTACLE) and not REQUIRED, reason=OBSTACLE or "-")


def figures():
    "The drawings of the chapters, by name."
    found = {}
    for page in sorted(BOOK.glob("nbs/*.html")):
        text = page.read_text(encoding="utf-8")
        for name, body in re.findall(r'<figure[^>]*id="(fig-[^"]+)"(.*?)</figure>', text, re.S):
            for source in re.findall(r'<img[^>]*src="([^"]+\.svg)"', body):
                found[name] = page.parent / source
    assert len(found) > 50
    return found


def smallest_text(svg):
    "Height in pixels of the smallest text, in the width that the column leaves."
    width = float(re.search(r'<svg[^>]* width="([\d.]+)pt"', svg)[1]) * 96 / 72
    sizes = [float(s) for s in re.findall(r"scale\(([\d.]+) -\1\)", svg) if float(s) < 1]
    return 100 * min(sizes) * 96 / 72 * min(1, COLUMN / width) if sizes else float("inf")


def clusters(svg):
    "Of every panel: the points that `scatter` has drawn, as (height, colour)."
    for panel in re.split(r'<g id="axes_\d+">', svg)[1:]:
        groups = re.findall(r'<g id="PathCollection_\d+">(.*?)</g>\s*</g>', panel, re.S)
        uses = [u for g in groups for u in re.findall(r' y="([-\d.]+)" style="fill: (#\w+)', g)]
        yield [(float(y), colour) for y, colour in uses]


@needs_book
def test_figures_are_light_and_have_no_ground():
    for name, path in figures().items():
        svg = path.read_text(encoding="utf-8")
        ground = re.search(r'<g id="patch_1">\s*<path d="[^"]*" style="([^"]*)"', svg)
        assert ground and ground[1] == "fill: none", f"{name} brings its own ground"
        assert len(svg) < 300_000, f"{name} has {len(svg)} bytes"
        assert "<dc:date>" not in svg, f"{name} has a date, so that no two builds are equal"


@needs_book
def test_no_text_of_a_figure_is_too_small_to_read():
    small = {
        name: round(size, 1)
        for name, path in figures().items()
        if (size := smallest_text(path.read_text(encoding="utf-8"))) < 9
    }
    assert not small


@needs_book
def test_the_ring_of_pathbased_has_one_colour():
    "Pathbased has 300 points in three clusters, and the highest of them is in the ring."
    seen = Counter()
    for name, path in figures().items():
        for points in clusters(path.read_text(encoding="utf-8")):
            if len(points) == 300 and len({colour for _, colour in points}) == 3:
                assert min(points)[1] == ORANGE, f"{name}: the ring is {min(points)[1]}"
                seen[name] += 1
    assert len(seen) >= 8, seen


def test_the_ring_is_orange_in_the_first_picture_of_the_book_too():
    "It is README's; of its regions, that of the ring is the largest."
    picture = (255 * imread(ROOT / "site" / "readme.png")[..., :3]).round()
    colours, counts = np.unique(picture.reshape(-1, 3), axis=0, return_counts=True)
    (red, green, blue) = max((n, tuple(c)) for n, c in zip(counts, colours) if c.min() < 255)[1]
    assert red > green > blue


def test_legends_stand_beside_the_data():
    for path in sorted(ROOT.glob("nbs/*.ipynb")):
        for cell in nbformat.read(path, 4).cells:
            if "#| label: fig-" in cell.source:
                for call in re.findall(r"legend\([^\n]*", cell.source):
                    beside = "outside" in call or "bbox_to_anchor" in call
                    assert beside or '.axis("off")' in cell.source, f"{path.name}: {call}"


def test_the_checks_see_what_they_look_for():
    text = '<svg width="1128pt"><g transform="translate(1 2) scale(0.1 -0.1)">'
    assert smallest_text(text) == pytest.approx(100 * 0.1 * 96 / 72 / 2)
    uses = '<use x="1" y="9" style="fill: #0072b2"/><use x="1" y="2" style="fill: #d55e00"/>'
    panel = f'<g id="axes_1"><g id="PathCollection_1"><defs/><g>{uses}</g>\n</g></g>'
    assert list(clusters(panel)) == [[(9.0, "#0072b2"), (2.0, ORANGE)]]
