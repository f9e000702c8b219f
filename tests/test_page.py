"""The program of a report in a browser: what it computes, what follows the slider, what can be taken along."""

import json
import math
import re
import time
from importlib.resources import files

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import kxbook
from kxbook.cli import main
from kxbook.data import load_iris
from kxbook.plot import PALETTE
from kxbook.report import explain_table, page_data, report_html, rules_text
from kxbook.report.words import percent
from kxbook.tree import escape_invisible

SCRIPT = "<script>alert(1)</script>"
COLUMNS = [SCRIPT, 'it\'s \\ "quoted"', "עברית\u202eright", "]]>--></script><b>"]
CLUSTERS = ["<img src=x onerror=alert(1)>", "'a' or \"b\"", "שלום\u202e"]


@pytest.fixture(scope="module")
def iris():
    "Irises in three clusters."
    X, _ = load_iris(return_X_y=True)
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    return explain_table(X, names, 3)


@pytest.fixture(scope="module")
def hostile():
    "The same irises with names that somebody has made up to do harm."
    X, y = load_iris(return_X_y=True)
    found = explain_table(X, COLUMNS, labels=y, clusters=CLUSTERS, leaves=4)
    object.__setattr__(found, "source", f'../"{SCRIPT}\u202e.csv')
    return found


@pytest.fixture(scope="module")
def pages(iris, hostile, tmp_path_factory):
    "The address of each report."
    folder, found = tmp_path_factory.mktemp("pages"), {}
    for name, explanation in {"iris": iris, "hostile": hostile}.items():
        (folder / f"{name}.html").write_text(report_html(explanation), encoding="utf-8")
        found[name] = (folder / f"{name}.html").as_uri()
    return found


@pytest.fixture
def page(browser, pages):
    "A browser that shows the report on irises."
    browser.look(pages["iris"])
    return browser


def run(browser, expression, *values):
    "The value of an expression in which `given` is a list of values."
    return browser.execute_script(f"const given = [...arguments]; return {expression}", *values)


def move(browser, step):
    "Move the slider."
    browser.execute_script(
        "const s = document.getElementById('slider');"
        "s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
        step,
    )


def text_of(browser, id_):
    return browser.find_element(By.ID, id_).text


def quiet(browser):
    "Nothing on the console, and no dialogue."
    assert browser.get_log("browser") == []
    browser.asked()


def test_numbers(page):
    shares = [0, 1, 1e-9, 0.00004, 0.0004, 1 / 3, 0.5, 0.972, 0.9996, 0.99996, 1 - 1e-9]
    shares += np.random.default_rng(0).uniform(size=200).tolist()
    assert run(page, "given.map(percent)", *shares) == [percent(s) for s in shares]
    assert run(page, "given.map(number)", 0, 1234.5, 0.25, 2e6, -2e-5) == [
        "0",
        "1,234.5",
        "0.25",
        "2.0e+6",
        "-2.0e-5",
    ]
    assert run(page, "given.map((n) => count(n, 'row'))", 0, 1, 1234) == [
        "0 rows",
        "1 row",
        "1,234 rows",
    ]
    assert run(page, "given.map((v) => clamp(v, 2, 3))", 1, 2.5, 9) == [2, 2.5, 3]
    assert run(page, "sum([])") == 0 and run(page, "sum(given)", 1, 2, 3.5) == 6.5
    assert run(page, "[shorten('unicorns', 5), shorten('🦄🦄🦄', 3), shorten('🦄🦄🦄', 2)]") == [
        "unic…",
        "🦄🦄🦄",
        "🦄…",
    ]


def test_ticks_and_scales(page):
    for low, high in [(0, 1), (-3.2, 17), (4.3, 7.9), (1e-9, 3e-9), (-5e8, 1e9), (0.1, 0.1001)]:
        ticks = run(page, "ticks(...given)", low, high)
        assert 3 <= len(ticks) <= 8 and low <= ticks[0] and ticks[-1] <= high * (1 + 1e-12)
        steps = np.diff(ticks)
        assert np.allclose(steps, steps[0]) and float(f"{steps[0]:.3g}") > 0
        leading = f"{steps[0]:.6e}"[0]
        assert leading in "125"
    assert run(page, "widened([2, 2])") == [1, 3] and run(page, "widened([0, 100])") == [-4, 104]
    plain, far = run(page, "[scale(0, 10, 'a'), scale(1.7e9, 1.7e9 + 3, 'time')].map(s => s.name)")
    assert plain == "a" and far.startswith("time, from 17")
    words = run(
        page, "(() => { const s = scale(1.7e9, 1.7e9 + 3, 't'); return s.at.map(s.text) })()"
    )
    assert words[0] == "+0" and len(set(words)) == len(words)


def test_frame_and_boxes(page):
    ends = run(
        page,
        "(() => { const f = frameOf([0, 100], [0, 100], 500, 400);"
        " return [f.X(-4), f.X(104), f.Y(-4), f.Y(104), f.left, f.right, f.bottom, f.top] })()",
    )
    assert ends[:4] == pytest.approx(ends[4:])
    boxes = run(
        page,
        "boxesOf({box: {3: [[null, 48], [100, null]], 5: [[null, null]]}}, 3, 7,"
        " frameOf([0, 100], [0, 100], 466, 450))",
    )
    assert [b["x"] for b in boxes] == pytest.approx([58, 58 + 400 * 104 / 108])
    assert boxes[0]["width"] == pytest.approx(400 * 52 / 108)
    assert all(b["y"] == 8 and b["height"] == 400 for b in boxes)
    outside = run(
        page, "boxesOf({box: {0: [[200, 300]]}}, 0, 1, frameOf([0, 100], [0, 1], 466, 450))"
    )
    assert [b["width"] for b in outside] == [0]
    leaves = "[{box: {1: []}}, {box: {1: [], 2: []}}]"
    assert run(page, f"isFlat({leaves}, 2, 1)") and not run(page, f"isFlat({leaves}, 1, 3)")


def test_shapes_are_around_their_point(page):
    "Every cluster has a closed path whose box has the point in the middle; neighbours differ."
    found = run(
        page,
        """(() => { const svg = make("svg", {}); document.body.append(svg);
        const boxes = SHAPES.map((_, c) => { const path = make("path", {d: shape(c, 50, 60, 8)});
          svg.append(path); const b = path.getBBox(); return [b.x, b.y, b.width, b.height]; });
        svg.remove(); return boxes; })()""",
    )
    assert len(found) >= 6 and len({tuple(b) for b in found}) >= 4
    for x, y, width, height in found:
        assert x + width / 2 == pytest.approx(50, abs=0.01)
        assert y + height / 2 == pytest.approx(60, abs=2) and 12 <= width <= 22
    paths = run(page, "given.map((c) => shape(c, 0, 0, 4))", *range(12))
    assert len(set(paths[:6])) == 6 and paths[6:] == paths[:6]


def test_layout_has_yes_on_the_left_and_nothing_overlaps(page, iris):
    placed = run(page, "data.steps.map((s) => layout(s.nodes))")
    nodes = run(page, "data.steps.map((s) => s.nodes)")
    for layout, each, step in zip(placed, nodes, iris.series, strict=True):
        place = {int(i): (p["x"], p["y"]) for i, p in layout["place"].items()}
        assert len(place) == len(set(place.values())) == len(each)
        assert layout["across"] == step.tree.n_leaves and layout["deepest"] == step.tree.depth
        for i, node in enumerate(each):
            if "ask" in node:
                (x0, y0), (x1, y1) = place[node["yes"]], place[node["no"]]
                assert x0 < place[i][0] < x1 and y0 == y1 == place[i][1] + 1


def test_leaves_and_wrong_rows(page, iris):
    leaves = run(page, "data.steps.map((s) => leavesOf(s.nodes))")
    wrong = run(page, "data.steps.map((s) => wrongRows(s, data.labels))")
    for each, rows, step in zip(leaves, wrong, iris.series, strict=True):
        assert [leaf["i"] for leaf in each] == list(step.tree.leaves)
        assert sum(leaf["wrong"] for leaf in each) == step.wrong == len(rows)
        assert sum(leaf["total"] for leaf in each) == 150
        assert rows == np.flatnonzero(step.tree.predict(iris.X) != iris.reference_labels).tolist()


def test_a_leaf_that_nothing_reaches(page):
    conditions = [["a", "is at most 1", 0, [[None, 1]]]]
    nodes = [
        {"ask": 0, "yes": 1, "no": 2},
        {"label": 0, "when": [0], "counts": [1]},
        {"label": 1, "when": None, "counts": [0, 0]},
    ]
    nodes = run(page, "given[0].map((n) => unpacked(n, given[1]))", nodes, conditions)
    assert nodes[0]["ask"] == ["a", "is at most 1?"]
    assert (nodes[0]["axis"], nodes[0]["lo"], nodes[0]["hi"]) == (0, None, 1)
    assert nodes[1]["box"] == {"0": [[None, 1]]} and nodes[2]["when"] is None
    assert run(page, "rulesText(given[0], ['A', 'B'])", nodes) == "A if\n     a is at most 1"
    assert run(page, "sentence(null)") == ["never"] and run(page, "sentence([])") == ["in any case"]


def top(browser):
    "What stands at the top of the page, and which sections say that they are about another tree."
    ids = ("lead", "tile-leaves", "tile-right", "tile-price", "now")
    notes = browser.find_elements(By.CLASS_NAME, "whose")
    headline = browser.find_element(By.TAG_NAME, "h1").text
    return [headline, *(text_of(browser, i) for i in ids), [n.is_displayed() for n in notes]]


def test_the_headline_follows_the_slider(page, iris):
    first, chosen = top(page), run(page, "data.chosen")
    assert iris.series[chosen].tree == iris.tree and not any(first[-1])
    static = re.search(r"<h1>(.*?)</h1>\n<p id=\"lead\">(.*?)</p>", report_html(iris), re.S)
    assert first[:2] == [kxbook.report.words.capital(iris.headline()), first[1]]
    assert static[1] == first[0] and static[2].replace("&#39;", "'") == first[1]
    place = page.find_element(By.ID, "slider").rect
    for i, step in enumerate(iris.series):
        move(page, i)
        headline, lead, leaves, right, price, now, notes = top(page)
        assert headline.lower() == iris.headline(step).lower()
        assert lead.startswith(f"The tree puts {150 - step.wrong} of 150 rows")
        assert leaves == str(step.tree.n_leaves) and right == percent(1 - step.wrong / 150)
        assert math.isclose(float(price), step.price, abs_tol=6e-4) and price in now
        assert all(notes) == any(notes) == (i != chosen)
        assert page.find_element(By.ID, "slider").rect == place  # it does not run away
    move(page, chosen)
    assert top(page) == first
    quiet(page)


def test_what_is_read_aloud_is_not_chatty(page):
    "The slider has its value in words; a part that is read aloud changes only if its words do."
    live = "[...document.querySelectorAll('[aria-live=polite], [role=status]')].map(e => e.id)"
    assert run(page, live) == ["leaf", "told"]
    assert page.find_element(By.ID, "now").get_attribute("aria-live") == "off"
    page.execute_script(
        "window.changes = 0; new MutationObserver((all) => { window.changes += all.length })"
        ".observe(document.getElementById('leaf'), {childList: true, subtree: true})"
    )
    page.find_element(By.ID, "slider").send_keys(Keys.HOME, Keys.ARROW_RIGHT)
    words = page.find_element(By.ID, "slider").get_attribute("aria-valuetext")
    assert re.fullmatch(r"2 leaves · price \d\.\d{3} · \d+ wrong rows", words)
    assert run(page, "window.changes") == 0


def documents(browser):
    "The document of every position of the slider, as the button would write it."
    return run(
        browser,
        "data.steps.map((s, i) => JSON.stringify(documentOf(data.document, s, i === data.chosen)))",
    )


@pytest.mark.parametrize("name", ["iris", "hostile"])
def test_documents_are_those_of_python(browser, pages, request, name):
    explanation = request.getfixturevalue(name)
    browser.look(pages[name])
    chosen = run(browser, "data.chosen")
    for i, (text, step) in enumerate(zip(documents(browser), explanation.series, strict=True)):
        again = kxbook.Explanation.from_json(text)
        assert again.tree == step.tree and again.features == explanation.features
        assert again.clusters == explanation.clusters
        assert (again.tree.predict(explanation.X) == step.tree.predict(explanation.X)).all()
        assert math.isclose(again.price, step.price)
        if i == chosen:
            assert json.loads(text) == json.loads(explanation.to_json())
        else:
            assert again.settings["leaves_on_page"] == step.tree.n_leaves
            assert np.isnan(again.importances).all()


@pytest.mark.parametrize("name", ["iris", "hostile"])
def test_rules_are_those_of_python(browser, pages, request, name):
    explanation = request.getfixturevalue(name)
    browser.look(pages[name])
    found = run(browser, "data.steps.map((s) => rulesText(s.nodes, data.clusters))")
    trees = [step.tree for step in explanation.series]
    assert found == [rules_text(t, explanation.features, explanation.clusters) for t in trees]


def saved(browser, folder):
    "What the button saves, by file name."
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
    )
    browser.find_element(By.ID, "save").click()
    end = time.monotonic() + 20
    while not (found := list(folder.glob("*.json"))) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(found) == 1 and len(list(folder.iterdir())) == 1
    return found[0]


def test_the_tree_is_saved(browser, pages, iris, hostile, tmp_path):
    "From a file, under the policy of the page; the name of the file is made of letters and dashes."
    browser.look(pages["iris"])
    move(browser, 1)
    path = saved(browser, tmp_path)
    assert path.name == "a-table-2-leaves.json" and path.name in text_of(browser, "told")
    assert kxbook.Explanation.from_json(path.read_text("utf-8")).tree == iris.series[1].tree
    quiet(browser)
    path.unlink()
    browser.look(pages["hostile"])
    path = saved(browser, tmp_path)
    assert path.name == f"script-alert-1-script-{hostile.tree.n_leaves}-leaves.json"
    assert kxbook.Explanation.from_json(path.read_text("utf-8")).clusters == CLUSTERS
    quiet(browser)


def test_the_command_reads_what_was_saved(browser, pages, iris, tmp_path):
    browser.look(pages["iris"])
    move(browser, len(iris.series) - 1)
    path, new, labels = saved(browser, tmp_path), tmp_path / "new.csv", tmp_path / "labels.csv"
    names = ",".join(f.name for f in iris.features)
    np.savetxt(new, iris.X, "%.17g", ",", header=names, comments="")
    main(["assign", str(path), str(new), "-o", str(labels)])
    found = [int(line.split(",")[-1]) for line in labels.read_text().splitlines()[1:]]
    assert found == iris.series[-1].tree.predict(iris.X).tolist()


def test_rules_are_copied(browser, pages, hostile):
    browser.look(pages["hostile"])
    browser.execute_script(
        "Object.defineProperty(navigator, 'clipboard',"
        " {value: {writeText: (text) => { window.copied = text; return Promise.resolve(); }}})"
    )
    browser.find_element(By.ID, "copy").click()
    assert run(browser, "window.copied") == hostile.rules
    assert text_of(browser, "told") == "The rules have been copied."
    assert not browser.find_element(By.ID, "rulestext").is_displayed()
    quiet(browser)


def test_rules_are_selected_where_copying_is_not_allowed(browser, pages, hostile):
    browser.look(pages["hostile"])
    browser.execute_script(
        "Object.defineProperty(navigator, 'clipboard',"
        " {value: {writeText: () => Promise.reject(new Error('no'))}})"
    )
    browser.find_element(By.ID, "copy").click()
    assert run(browser, "getSelection().toString()").split() == hostile.rules.split()
    assert run(browser, "byId('rulestext').textContent") == hostile.rules
    assert "Ctrl+C" in text_of(browser, "told")
    assert run(browser, "byId('rulestext').childElementCount") == 0
    move(browser, 0)  # they were the rules of another tree
    assert not browser.find_element(By.ID, "rulestext").is_displayed()
    assert text_of(browser, "told") == ""
    quiet(browser)


def table_of(browser, css):
    rows = browser.find_elements(By.CSS_SELECTOR, f"{css} tr")
    cells = [r.find_elements(By.CSS_SELECTOR, "th, td") for r in rows]
    return [[c.get_attribute("textContent").strip() for c in row] for row in cells]


def test_profiles(page, iris):
    head, *rows = table_of(page, ".profiles")
    assert head == ["column", *(f"{p.cluster} {p.rows} rows" for p in iris.profiles)]
    contrast = {f.name: [p.contrast[f.name] for p in iris.profiles] for f in iris.features}
    order = sorted(contrast, key=lambda name: -max(map(abs, contrast[name])))
    assert [row[0] for row in rows] == order
    for name, *cells in rows:
        for cell, p in zip(cells, iris.profiles, strict=True):
            c = p.contrast[name]
            sign, word = ("▲", "(high)") if c >= 1 else ("▼", "(low)") if c <= -1 else ("", "")
            assert cell.startswith(sign) and cell.endswith(word)
            value = cell.strip("▲▼ ").split()[0]
            assert math.isclose(float(value), p.typical[name], rel_tol=1e-4)
    assert "tree of this report" in page.find_element(By.CSS_SELECTOR, "#h-profiles + p").text
    strong = page.find_elements(By.CSS_SELECTOR, ".profiles td b")
    assert strong and all(int(e.value_of_css_property("font-weight")) >= 600 for e in strong)


def test_profiles_of_many_columns_are_folded_and_shares_are_per_cent():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 20)) + np.outer(labels, np.arange(20) / 4)
    X[:, 3] = labels
    names = [f"c{i}" for i in range(20)]
    features = [
        kxbook.report.Feature("kind: x", "kind", "x") if i == 3 else name
        for i, name in enumerate(names)
    ]
    text = report_html(explain_table(X, features, labels=labels, leaves=2))
    section = text[text.index('id="h-profiles"') : text.index('id="h-pic"')]
    first, rest = section.split("<details>")
    assert first.count('<th scope="row">') == 12 and rest.count('<th scope="row">') == 8
    assert "Eight more columns" in rest and "share of rows that have the value" in first
    assert re.search(r"<bdi>kind: x</bdi></th><td>.*?0%.*?</td><td>.*?100%", first)


def test_hostile_names_are_text(browser, pages):
    browser.look(pages["hostile"])
    for step in range(run(browser, "data.steps.length")):
        move(browser, step)
        for leaf in run(browser, "leavesOf(now().nodes).map((leaf) => leaf.i)"):
            browser.execute_script("pick(arguments[0])", leaf)
            name = run(browser, "data.clusters[now().nodes[arguments[0]].label]", leaf)
            assert name in text_of(browser, "leaf")
    assert run(browser, "document.querySelectorAll('img, body script ~ b').length") == 0
    assert run(browser, "document.querySelectorAll('script').length") == 2
    section = browser.find_element(By.CSS_SELECTOR, ".profiles").text
    for name in [*COLUMNS, *CLUSTERS]:
        assert escape_invisible(name) in section.replace("\n", "") and "\u202e" not in section
    quiet(browser)


@pytest.mark.parametrize("name", [pytest.param("iris", marks=pytest.mark.slow), "hostile"])
@pytest.mark.parametrize(
    "width, theme",
    [pytest.param(1280, "light", marks=pytest.mark.slow), (390, "dark")],
)
def test_accessible_at_every_position(browser, pages, name, width, theme):
    "With a leaf chosen, the rules selected and everything unfolded."
    browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})  # axe is a foreign program
    try:
        browser.look(pages[name], width, theme)
        browser.execute_script(
            "document.querySelectorAll('details').forEach((d) => { d.open = true });"
            "Object.defineProperty(navigator, 'clipboard', {value: undefined});"
        )
        move(browser, 1)
        browser.execute_script("pick(leavesOf(now().nodes)[0].i); byId('copy').click()")
        assert browser.overflow() <= 0 and browser.axe() == []
    finally:
        browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})


def test_one_palette_and_nothing_from_elsewhere(iris):
    data, text = page_data(iris), report_html(iris)
    assert data["colours"] == PALETTE[:3] and len(text.encode()) < 60_000
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"\b(?:src|href)=\"", text)


@pytest.mark.slow
def test_the_page_of_a_large_table_is_small():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 8, 100_000)
    X = rng.normal(size=(100_000, 20)) + 1.5 * rng.normal(size=(8, 20))[labels]
    found = explain_table(X, None, labels=labels, leaves=60, kernel="linear", base="empty")
    assert len(report_html(found).encode()) < 3_000_000


@pytest.mark.parametrize("name", ["page.js", "page.css"])
def test_files_can_be_packed(name):
    "Comments end in their line, and no text goes on in the next: indentation means nothing."
    lines = files("kxbook.report").joinpath(name).read_text(encoding="utf-8").splitlines()
    assert all(line.endswith("*/") for line in lines if line.strip().startswith("/*"))
    assert all(line.count("/*") == line.count("*/") for line in lines)
    assert not [line for line in lines if line.count("`") % 2 or line.endswith("\\")]
