"""Pictures that follow a control: what is in the page, and what the page does, alone and in the book."""

import json
import re

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from test_browser import BOOK, OBSTACLE, PAGES, REQUIRED, visit

from kxbook.grow import grow
from kxbook.widget import LIMIT, Panel, tree_panel, widget

NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&"


def frames(picture):
    "The data of a picture: parts, frames and values."
    return json.loads(re.search(r'json">(.*?)</script>', picture.html, re.S)[1])


def square(at, kind="a"):
    panel = Panel((0, 9), (0, 9), alt="A square.").area(0, at, 0, at, 1 if kind == "b" else 0)
    return panel, f"{kind}: side {at:g}"


def example(title="Squares"):
    return widget(
        lambda kind, at: square(at, kind), {"kind": ["a", "b"], "side": [1, 2.5, 4]}, title
    )


def test_every_position_has_its_frame():
    data = frames(example())
    assert [words for _, words in data["frames"]] == [
        f"{kind}: side {at}" for kind in "ab" for at in ("1", "2.5", "4")
    ]
    assert data["values"] == [["a", "b"], ["1", "2.5", "4"]]
    for (pieces, _), (kind, at) in zip(
        data["frames"], [(k, at) for k in "ab" for at in (1, 2.5, 4)]
    ):
        assert "".join(data["parts"][i] for i in pieces) == "".join(square(at, kind)[0].markup())


def test_pieces_are_stored_once():
    data = frames(example())
    assert len(set(data["parts"])) == len(data["parts"])
    different = {i for pieces, _ in data["frames"] for i in pieces}
    assert different == set(range(len(data["parts"])))


@pytest.mark.parametrize("start", [0, (1, 2)])
def test_the_first_frame_is_in_the_page(start):
    picture = widget(
        lambda k, at: square(at, k), {"k": ["a", "b"], "s": [1, 2, 3]}, "S", start=start
    )
    before = picture.html.split("<script")[0]
    shown = square(1) if start == 0 else square(3, "b")
    assert "".join(shown[0].markup()) in before and f"<output>{shown[1]}</output>" in before


def test_jupyterlab_leaves_the_keys_to_every_control():
    controls = re.findall(r"<(?:input|select)[^>]*>", example().html)
    assert len(controls) == 2 and all("data-lm-suppress-shortcuts" in c for c in controls)


def test_no_ids_and_no_other_host():
    page = example().html
    assert not re.search(r"""\bid\s*=|https?:|\burl\(|@import""", page)


def test_words_are_never_html():
    def draw(*values):
        panel = Panel((0, 1), (0, 1), xlabel=NASTY, ylabel=NASTY, xticks={0.5: NASTY}, alt=NASTY)
        return panel.text(0.5, 0.5, NASTY), NASTY

    picture = widget(draw, {NASTY: [NASTY, "other"], "n": [1]}, NASTY)
    assert picture.html.count("<script") == picture.html.count("</script>") == 1
    assert "<img" not in picture.html and "alert(1)" in picture.html
    assert frames(picture)["frames"][0][1] == NASTY  # and nothing of them is lost


@pytest.mark.parametrize(
    "controls, start, message",
    [
        ({}, 0, "needs a control"),
        ({"a": []}, 0, "every control a value"),
        ({"a": [1, 2]}, 2, "within each of the 1 controls"),
        ({"a": [1, 2]}, -1, "within each of the 1 controls"),
        ({"a": [1, 2], "b": [1]}, (0,), "within each of the 2 controls"),
    ],
)
def test_what_is_refused(controls, start, message):
    with pytest.raises(ValueError, match=message):
        widget(lambda *values: square(1), controls, "S", start=start)


def test_a_picture_may_not_grow_without_limit():
    points = np.random.default_rng(0).uniform(0, 9, size=(200, 40, 2))

    def draw(i):
        return Panel((0, 9), (0, 9), alt="Points.").points(points[i]), ""

    assert len(widget(draw, {"i": range(20)}, "Few").html) < LIMIT
    with pytest.raises(ValueError, match=r"'Many' takes \d+ characters.*take fewer points"):
        widget(draw, {"i": range(200)}, "Many")


def rectangles(markup):
    found = re.findall(r"<rect[^>]*>", markup)
    return [dict(re.findall(r"(\w+)='([^']*)'", rect)) for rect in found]


def test_areas_on_axes_of_either_direction():
    for ends in ((0, 8), (8, 0)):
        panel = Panel((0, 8), ends, alt="").area(2, 4, 2, np.inf).area(-9, 99, -9, 99)
        part, whole = rectangles("".join(panel.markup()))
        size = {side: float(whole[side]) for side in ("width", "height")}
        assert np.isclose(float(part["width"]), size["width"] / 4, atol=0.1)
        assert np.isclose(float(part["height"]), size["height"] * 6 / 8, atol=0.1)
        at_top = np.isclose(float(part["y"]), float(whole["y"]))
        assert at_top == (ends == (0, 8))


def test_regions_of_a_tree_are_its_predictions():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 2))
    tree = grow(X, rng.uniform(size=(80, 3)), 7)
    panel = Panel((0, 1), (0, 1), alt="").regions(tree)
    found = rectangles("".join(panel.markup()))
    for point, cluster in zip(X, tree.predict(X)):
        x, y = float(panel._px(point[0])), float(panel._py(point[1]))
        inside = [
            r["class"]
            for r in found
            if float(r["x"]) - 0.1 <= x <= float(r["x"]) + float(r["width"]) + 0.1
            and float(r["y"]) - 0.1 <= y <= float(r["y"]) + float(r["height"]) + 0.1
        ]
        assert f"k-area k-{cluster}" in inside and len(inside) <= 2  # two on a common border


def test_a_tree_is_a_list_of_its_nodes():
    X = np.arange(8.0)[:, None]
    tree = grow(X, (np.arange(8)[:, None] // 3 != np.arange(3)).astype(float), 3)
    words = re.findall(r"<text[^>]*>(.*?)</text>", "".join(tree_panel(tree, ["a"]).markup()))
    questions = [tree.question(u, ["a"]) for u in range(len(tree.left)) if tree.left[u] >= 0]
    assert len(words) == len(tree.left) and words[0] == questions[0].replace("<", "&lt;")
    assert sorted(w.split(": ")[1] for w in words[1:] if "cluster" in w) == [
        f"cluster {c}" for c in range(3)
    ]


# in a browser


@pytest.fixture
def page(tmp_path):
    "A page with the same picture twice, and an empty place."
    html = f"<!doctype html><html lang=en><meta charset=utf-8><title>T</title><main><h1>T</h1>{example('One').html}{example('Two').html}<section></section></main>"
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    return path.as_uri()


def pictures(browser):
    return browser.find_elements(By.CSS_SELECTOR, "figure.kxw")


def state(figure):
    "The sentence and the pictures that are shown."
    shown = figure.find_element(By.TAG_NAME, "div").get_attribute("innerHTML")
    return figure.find_element(By.TAG_NAME, "output").text, shown


def reacts(figure):
    "Whether each control has a name and, moved by keys, changes sentence and picture, and back."
    for control in figure.find_elements(By.CSS_SELECTOR, "input, select"):
        shown = control.get_attribute("aria-valuetext") or ""
        assert control.accessible_name.removesuffix(shown).strip()  # more than its value
        before, at = state(figure), int(control.get_attribute("value"))
        last = int(
            control.get_attribute("max") or len(control.find_elements(By.TAG_NAME, "option")) - 1
        )
        there, back = (
            (Keys.ARROW_DOWN, Keys.ARROW_UP)
            if control.tag_name == "select"
            else (Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
        )
        if at == last:
            there, back = back, there
        control.send_keys(there)
        assert state(figure)[0] != before[0] and state(figure)[1] != before[1]
        if control.tag_name == "input":
            assert (
                control.get_attribute("aria-valuetext") in control.find_element(By.XPATH, "..").text
            )
        control.send_keys(back)
        assert state(figure) == before
    return True


def severe(browser):
    return [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"]


def test_keys_move_one_picture_and_no_other(browser, page):
    browser.look(page)
    one, two = pictures(browser)
    other = state(two)
    one.find_element(By.TAG_NAME, "input").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert state(one)[0] == "a: side 4" and state(two) == other
    one.find_element(By.TAG_NAME, "select").send_keys(Keys.ARROW_DOWN)
    assert state(one)[0] == "b: side 4" and "k-1" in state(one)[1]
    assert reacts(one) and reacts(two)
    assert not severe(browser) and browser.asked() == [page]


def test_tab_reaches_every_control(browser, page):
    browser.look(page)
    reached = []
    for _ in range(4):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.switch_to.active_element.tag_name)
    assert reached == ["select", "input"] * 2


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_can_be_read_by_all(browser, page, theme):
    browser.look(page, theme=theme)
    assert not browser.axe()


def test_a_picture_that_is_put_into_a_page_later_works(browser, page):
    "A notebook puts outputs into its page after it was loaded, without a parser that runs scripts."
    browser.look(page)
    browser.execute_script(
        "document.querySelector('section').innerHTML = arguments[0]", example("Three").html
    )
    assert reacts(pictures(browser)[2]) and not severe(browser)


def test_without_scripts_there_is_a_picture_and_nothing_to_move(browser, page):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.look(page)
        figure = pictures(browser)[0]
        assert figure.find_element(By.TAG_NAME, "svg").is_displayed()
        assert not figure.find_element(By.TAG_NAME, "input").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_on_paper_there_is_a_picture_and_nothing_to_move(browser, page):
    browser.look(page)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        figure = pictures(browser)[0]
        assert figure.find_element(By.TAG_NAME, "svg").is_displayed()
        assert not figure.find_element(By.TAG_NAME, "input").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


WITH_PICTURES = [
    page for page in PAGES if 'class="kxw"' in (BOOK / page).read_text(encoding="utf-8")
]
in_the_book = pytest.mark.skipif(bool(OBSTACLE) and not REQUIRED, reason=OBSTACLE or "-")


@in_the_book
def test_the_book_has_ten_things_to_touch():
    texts = [(BOOK / page).read_text(encoding="utf-8") for page in WITH_PICTURES]
    found = [
        f for text in texts for f in re.findall(r'<figure class="kxw".*?</figure>', text, re.S)
    ]
    assert len(found) >= 10 and max(map(len, found)) <= LIMIT
    titles = [re.search(r'aria-label="(.*?)"', f)[1] for f in found]
    assert len(set(titles)) == len(titles)


@in_the_book
@pytest.mark.parametrize("page", WITH_PICTURES)
@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.slow), 390])
def test_pictures_of_the_book(browser, page, width):
    errors, _ = visit(browser, page, width=width)
    figures = pictures(browser)
    assert figures and all(reacts(figure) for figure in figures)
    assert not errors and not severe(browser) and browser.overflow() <= 0
    for figure in figures:  # nothing is wider than its frame
        assert browser.execute_script(
            "return arguments[0].scrollWidth <= arguments[0].clientWidth", figure
        )
