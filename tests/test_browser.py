"""The built site in a real browser: opened from file://, at the width of a desktop, a tablet and a phone, in light and dark.

Skipped, with the reason, where there is no Chromium or no built book; `KXBOOK_BROWSER=required` turns that into a failure.
"""

import os
import re
from html import escape
from pathlib import Path
from urllib.parse import quote, unquote, urlparse

import build
import nbformat
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from kxbook.claim import ERRATUM, read_ledger

ROOT = Path(__file__).parent.parent
BOOK = ROOT / "_book"
PAGES = sorted(
    p.relative_to(BOOK).as_posix()
    for p in BOOK.rglob("*.html")
    if "_static" not in p.parts and "_sources" not in p.parts
)


def obstacle():
    "Why the site cannot be looked at, or an empty string."
    if not PAGES:
        return "the book is not built: run `make book` first"
    sources = [
        *ROOT.glob("nbs/*.ipynb"),
        *ROOT.glob("kxbook/**/*.py"),
        *ROOT.glob("kxbook/report/page.*"),
        *ROOT.glob("site/*.*"),
        *ROOT.glob("site/static/**/*"),
        *ROOT.glob("site/templates/*"),
        ROOT / "index.md",
        ROOT / "_quarto.yml",
    ]
    if max(p.stat().st_mtime for p in sources) > (BOOK / "index.html").stat().st_mtime:
        return "the book is older than its sources: run `make book` first"
    return ""


OBSTACLE = obstacle()
KERNEL = "nbs/130_kernel.ipynb"
REQUIRED = os.environ.get("KXBOOK_BROWSER") == "required"
pytestmark = pytest.mark.skipif(bool(OBSTACLE) and not REQUIRED, reason=OBSTACLE or "-")
SOME = (
    "index.html",
    "nbs/350_exact.html",
    "nbs/740_blueprint.html",
    "api/kernel.html",
)  # in every run of the tests
each_page = pytest.mark.parametrize(
    "page", [pytest.param(p, marks=() if p in SOME else pytest.mark.slow) for p in PAGES]
)  # small tests, which processes can share


@pytest.fixture(scope="module")
def browser(browser):
    assert not OBSTACLE, OBSTACLE
    return browser


WIDTHS = (1280, 768, 390)
PICTURES = (".png", ".svg", ".jpg", ".gif", ".webp")
SETTLED = "const done = arguments[0]; document.fonts.ready.then(() => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
BADLY_SET = r"""
const scrolls = (e) => e.scrollWidth > e.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
const silent = (e) => !(e.tabIndex === 0 && e.getAttribute("aria-label") && e.matches(".more-left, .more-right") && getComputedStyle(e).maskImage !== "none");
const about = (e) => (e.querySelector("annotation") || e).textContent.slice(0, 80);
const cut = [], unsaid = [];
for (const formula of document.querySelectorAll("article .math, article table")) {
  let block = formula.matches("span") ? formula.parentElement : formula, around;
  while (getComputedStyle(block).display === "inline") block = block.parentElement;
  for (around = formula; around && !scrolls(around); around = around.parentElement);
  if (around && around.closest("article")) { if (silent(around)) unsaid.push(about(formula)); continue; }
  const edge = Math.min(block.getBoundingClientRect().right, innerWidth) + 1;
  const parts = formula.matches("table") ? [formula] : [...formula.querySelectorAll(".katex-html .base")];
  if (parts.some((part) => part.getBoundingClientRect().right > edge)) cut.push(about(formula));
}
return [[...document.querySelectorAll(".math:not(:has(.katex-html))")].map(about), cut, unsaid];
"""  # formulas with a mistake, formulas and tables that are cut, and those that scroll without a cue


def visit(browser, page, *, width=1280, theme="light"):
    "Open a page and wait until its formulas are set; returns console errors and the addresses asked for."
    browser.look(f"{BOOK.as_uri()}/{page}", width, theme)
    settle(browser)
    return [
        entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"
    ], browser.asked()


def open_folds(browser):
    "Open what is folded, but for code: solutions have formulas too."
    browser.execute_script(
        "for (const fold of document.querySelectorAll('article details:not(.code-fold)')) fold.open = true"
    )


def settle(browser):
    "Wait until the page has its fonts, and its place for everything."
    WebDriverWait(browser, 30).until(
        lambda b: b.execute_script("return document.readyState === 'complete'")
    )
    browser.execute_async_script(SETTLED)


def weight(asked):
    "Bytes of the files that a page has asked for, without its pictures."
    paths = {unquote(urlparse(url).path) for url in asked if url.startswith("file:")}
    return sum(Path(path).stat().st_size for path in paths if not path.endswith(PICTURES))


@each_page
def test_every_page(browser, page):
    "One visit: quiet, offline, light; at three widths nothing is cut; and axe finds nothing, in either theme."
    errors, asked = visit(browser, page)
    assert not errors
    assert asked and all(url.startswith((BOOK.as_uri(), "data:", "blob:")) for url in asked)
    assert weight(asked) <= 2.5e6
    loaded = browser.execute_script(
        "return [...document.querySelectorAll('[src], link[href]')].map(e => e.src || e.href)"
    )
    assert all(url.startswith(("file:", "data:")) for url in loaded), (
        f"another host is named: {loaded}"
    )
    open_folds(browser)
    for width in WIDTHS:
        browser.turn(width)
        settle(browser)
        assert browser.overflow() <= 0, f"{width} px"
        wrong, cut, unsaid = browser.execute_script(BADLY_SET)
        assert not wrong and not cut and not unsaid, f"{width} px"
        # colours are those of the widest
        found = browser.axe(without=() if width == WIDTHS[0] else ("color-contrast",))
        assert not found, f"{width} px\n" + "\n".join(found[:40])
    for width in reversed(WIDTHS):
        browser.turn(width, "dark")
        settle(browser)
        assert browser.overflow() <= 0, f"{width} px, dark"
        assert browser.execute_script(BADLY_SET) == [[], [], []], f"{width} px, dark"
    assert browser.execute_script("return document.documentElement.dataset.theme") == "dark"
    found = browser.axe("color-contrast")
    assert not found, "dark\n" + "\n".join(found[:40])


LONG = r"\sqrt{" + "a + " * 40 + "a}"


def test_what_every_page_is_looked_at_for_is_found(browser):
    "A formula with a mistake, one that is cut, and one that scrolls without a cue."
    visit(browser, "nbs/310_price.html", width=390)
    assert browser.execute_script(BADLY_SET) == [[], [], []]
    browser.execute_script(
        "window.planted = document.createElement('span'); planted.className = 'math';"
        " document.querySelector('article p').append(planted); katex.render(arguments[0], planted)",
        LONG,
    )
    assert [len(found) for found in browser.execute_script(BADLY_SET)] == [0, 1, 0]
    browser.execute_script("planted.className = 'math wide'")
    assert [len(found) for found in browser.execute_script(BADLY_SET)] == [0, 0, 1]
    browser.execute_script("planted.textContent = arguments[0]", r"\(\nosuch\)")
    assert len(browser.execute_script(BADLY_SET)[0]) == 1


def test_a_formula_that_cannot_break_scrolls_within_its_line(browser):
    visit(browser, "nbs/310_price.html", width=390)
    browser.execute_script(
        "window.planted = document.querySelector('article p span.math'); katex.render(arguments[0], planted)",
        LONG,
    )
    browser.turn(400)
    settle(browser)
    assert browser.execute_script("return planted.matches('.wide.scrolls.more-right')")
    assert browser.execute_script(BADLY_SET) == [[], [], []] and browser.overflow() <= 0
    browser.execute_script("planted.scrollLeft = planted.scrollWidth")
    settle(browser)
    assert browser.execute_script("return planted.matches('.more-left:not(.more-right)')")
    browser.execute_script("katex.render('a', planted)")
    browser.turn(390)
    settle(browser)
    assert not browser.execute_script("return planted.matches('.wide, .scrolls, [tabindex]')")


def test_a_formula_in_a_fold_scrolls_once_it_is_opened(browser):
    "In some browsers a folded solution has no width, so its formulas are looked at when it opens."
    visit(browser, "nbs/310_price.html", width=390)
    browser.execute_script(
        "window.planted = document.querySelector('article details.admonition span.math'); katex.render(arguments[0], planted)",
        LONG,
    )
    open_folds(browser)
    settle(browser)
    assert browser.execute_script("return planted.matches('.wide.scrolls.more-right')")
    assert browser.execute_script(BADLY_SET) == [[], [], []] and browser.overflow() <= 0


FOLLOWS = r"""
return [...document.querySelectorAll('article .together > .math')].map((formula) => {
  const next = document.createRange(), last = [...formula.querySelectorAll('.base')].pop().getBoundingClientRect();
  next.setStart(formula.nextSibling, 0); next.setEnd(formula.nextSibling, 1);
  return [formula.nextSibling.data, next.getBoundingClientRect().left - last.right];
});
"""  # what follows each formula without a space, and how far it is to the right of it


def test_no_line_begins_with_what_closes_a_formula(browser):
    "Not with a comma, not with the rest of a word; and a formula of several parts still breaks."
    visit(browser, "nbs/310_price.html", width=390)
    found = browser.execute_script(FOLLOWS)
    assert len(found) > 100 and {","} < {text for text, _ in found}
    assert all(gap > -3 for _, gap in found)
    lines = "return [...document.querySelectorAll('article .together > .math')].map(e => new Set([...e.querySelectorAll('.base')].map(b => b.offsetTop)).size)"
    assert max(browser.execute_script(lines)) > 1


def test_no_term_is_a_link_within_a_link():
    "Such as in the titles of the errata, which a cell has written as links."
    for page in PAGES:
        parts = re.split(r"(<a\b|</a>)", (BOOK / page).read_text(encoding="utf-8"))
        tags = [part for part in parts if part in ("<a", "</a>")]
        assert tags[::2] == ["<a"] * (len(tags) // 2) and tags[1::2] == ["</a>"] * (
            len(tags) // 2
        ), page


def test_copied_formulas_are_their_source(browser):
    visit(browser, "nbs/310_price.html")
    copied = browser.execute_script(
        "const formula = document.querySelector('article p span.math'); getSelection().selectAllChildren(formula.closest('p'));"
        " const event = new ClipboardEvent('copy', {clipboardData: new DataTransfer(), cancelable: true, bubbles: true}); formula.dispatchEvent(event);"
        " return [event.clipboardData.getData('text/plain'), formula.querySelector('annotation').textContent, formula.closest('p').querySelectorAll('.katex').length]"
    )
    text, source, count = copied
    assert f"${source}$" in text and text.count("$") == 2 * count


def test_the_fonts_are_the_books(browser):
    "Two fonts with their licences; a glyph is asked for, so that they are loaded."
    visit(browser, "nbs/310_price.html")
    fonts = browser.execute_script(
        "return [...document.fonts].filter(f => f.status === 'loaded').map(f => f.family.replaceAll('\"', ''))"
    )
    assert {"Book Text", "Book Code", "KaTeX_Main"} <= set(fonts)
    licences = {p.stem: p.read_text(encoding="utf-8") for p in BOOK.glob("_static/licences/*.txt")}
    assert "SIL Open Font License" in licences["fontpkg-literata"]
    assert "SIL Open Font License" in licences["fontpkg-jetbrains-mono"]
    assert "Khan Academy" in licences["katex"]
    assert not [*BOOK.rglob("*.map"), *BOOK.rglob("fontawesome.js")]


def test_columns_of_numbers_stand_to_the_right(browser):
    "With their heads, also where one name stands for many rows."
    visit(browser, "nbs/610_experiments.html")
    cells = browser.execute_script(
        "return [...document.querySelectorAll('article td, article th')].map(c => [c.textContent.trim(), getComputedStyle(c).textAlign])"
    )
    assert {side for text, side in cells if re.fullmatch(r"-?\d+\.\d+", text)} == {"right"}
    assert {side for text, side in cells if re.fullmatch(r"[A-Z][a-z]+", text)} >= {"left"}
    heads = browser.execute_script(
        "return [...document.querySelectorAll('article table')].flatMap(t => t.tBodies[0].rows[0].cells.length !== t.tHead.rows[0].cells.length ? [] :"
        " [...t.tHead.rows[0].cells].map((head, i) => [head, t.tBodies[0].rows[0].cells[i]].map(c => getComputedStyle(c).textAlign)))"
    )
    assert len(heads) > 50 and all(head == cell for head, cell in heads)


def test_search_finds_a_theorem_by_its_name(browser):
    browser.get(f"{BOOK.as_uri()}/search.html?q={quote('mean best centre')}")
    link = WebDriverWait(browser, 20).until(
        lambda b: b.find_elements(By.CSS_SELECTOR, "#search-results a[href*='#lem-mean']")
    )[0]
    link.click()
    WebDriverWait(browser, 20).until(
        lambda b: "/nbs/120_data.html" in b.current_url and b.current_url.endswith("#lem-mean")
    )
    assert "The mean is the best centre" in browser.find_element(By.ID, "lem-mean").text


def test_reference_across_chapters_leads_to_its_statement(browser):
    visit(browser, "nbs/150_kkmeans.html")
    link = browser.find_element(By.CSS_SELECTOR, "article a[href='120_data.html#lem-pairs']")
    number = link.text
    assert re.fullmatch(r"Lemma \d+\.2", number)
    link.click()
    assert browser.current_url == f"{BOOK.as_uri()}/nbs/120_data.html#lem-pairs"
    target = browser.find_element(By.ID, "lem-pairs")
    assert target.text.startswith(number) and "Spread without a centre" in target.text
    top = browser.execute_script("return arguments[0].getBoundingClientRect().top", target)
    assert 0 <= top < 900


@pytest.mark.slow
def test_every_link_within_the_book_has_a_target(browser):
    anchors, links = {}, []
    for page in PAGES:
        visit(browser, page)
        anchors[page] = set(
            browser.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
        )
        links += [
            (page, url)
            for url in browser.execute_script(
                "return [...document.querySelectorAll('article a[href], .blueprint a')].map(e => e.href.baseVal ? new URL(e.href.baseVal, document.URL).href : e.href)"
            )
        ]
    for page, url in links:
        literature = page == "references.html" and url.startswith("https://")
        if literature or url.startswith(("https://arxiv.org/abs/", "https://doi.org/")):
            continue  # such links are not followed here
        assert url.startswith(BOOK.as_uri()), f"{page} leaves the book: {url}"
        path, _, anchor = url.removeprefix(BOOK.as_uri() + "/").partition("#")
        assert (BOOK / path).exists(), f"{page}: {path} does not exist"
        assert not anchor or path not in anchors or anchor in anchors[path], (
            f"{page}: no {anchor} in {path}"
        )


def test_preview_of_a_statement(browser):
    visit(browser, "nbs/150_kkmeans.html")
    link = browser.find_element(By.CSS_SELECTOR, "article a[href='120_data.html#lem-mean']")
    ActionChains(browser).scroll_to_element(link).move_to_element(link).perform()
    box = WebDriverWait(browser, 10).until(
        lambda b: [e for e in b.find_elements(By.CLASS_NAME, "preview") if e.is_displayed()]
    )[0]
    assert "The mean is the best centre" in box.text and box.get_attribute("role") == "tooltip"
    assert box.find_elements(By.CLASS_NAME, "katex")
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert not box.is_displayed()


def test_links_in_a_preview_work_from_any_page(browser):
    visit(browser, "index.html")
    links = browser.execute_async_script(
        "const done = arguments[0]; const root = document.documentElement.dataset.content_root; const box = document.createElement('div');"
        " document.head.append(Object.assign(document.createElement('script'), {src: root + '_static/previews.js', onload: () => { box.innerHTML = bookStatements['lem-min'];"
        " done([...box.querySelectorAll('a')].map(a => new URL(root + a.getAttribute('href'), document.URL).href)) }}))"
    )
    assert f"{BOOK.as_uri()}/nbs/130_kernel.html#def-kernel" in links


def test_api_and_chapter_lead_to_each_other(browser):
    visit(browser, "nbs/130_kernel.html")
    browser.find_element(By.CSS_SELECTOR, "button.all-exported").click()
    browser.find_element(
        By.CSS_SELECTOR, "p.exported a[href$='api/kernel.html#kxbook.kernel.gaussian']"
    ).click()
    entry = browser.find_element(By.ID, "kxbook.kernel.gaussian").find_element(By.XPATH, "..")
    assert "width: larger means more local" in entry.text
    entry.find_element(By.LINK_TEXT, "Where it is derived").click()
    assert "nbs/130_kernel.html#exported-kernel-gaussian" in browser.current_url
    anchor = browser.find_element(By.ID, "exported-kernel-gaussian")
    WebDriverWait(browser, 10).until(lambda b: anchor.is_displayed())  # its fold is open, alone
    assert (
        sum(folds(browser)) == 1
        and 0 <= anchor.rect["y"] - browser.execute_script("return scrollY") < 900
    )


def badges(browser, id):
    "Badges of a statement, and what their link says."
    link = browser.find_element(By.ID, id).find_elements(By.CSS_SELECTOR, "a.evidence")
    texts = [e.text for a in link for e in a.find_elements(By.TAG_NAME, "span")]
    return texts, link and link[0].get_attribute("title")


def test_badges_say_what_is_proved_and_what_is_checked(browser):
    visit(browser, "nbs/120_data.html")
    texts, title = badges(browser, "lem-mean")
    assert texts == ["proved", "sampled check"]
    assert "a complete proof follows" in title and "evidence, not proof" in title
    assert badges(browser, "exm-sizes")[0] == ["exact check"]
    visit(browser, "nbs/280_oblivious.html")
    assert badges(browser, "thm-cited-oblivious")[0] == ["cited"]
    visit(browser, "nbs/160_obstacles.html")
    assert badges(browser, "def-interpretable-map")[0] == []
    assert badges(browser, "rem-erratum-cuts")[0] == ["paper refuted"]
    assert badges(browser, "thm-gaussian-no-map")[0][0] == "proved"
    browser.find_element(By.CSS_SELECTOR, "#rem-erratum-cuts a.evidence").send_keys(Keys.ENTER)
    WebDriverWait(browser, 10).until(
        lambda b: b.current_url.endswith("nbs/705_claim.html#sec-claim-badges")
    )
    assert browser.find_element(By.ID, "sec-claim-badges").is_displayed()


def test_legend_of_badges_appears_when_they_are_focused(browser):
    visit(browser, "nbs/120_data.html")
    legend = (
        "return getComputedStyle(document.querySelector('#lem-mean a.evidence'), '::after').content"
    )
    assert browser.execute_script(legend) == "none"
    browser.find_element(By.CSS_SELECTOR, "#lem-mean .statement-number").send_keys(Keys.TAB)
    assert "a complete proof follows" in browser.execute_script(legend)


def test_outcomes_of_claims(browser):
    "A tick for what holds; a refuted sentence of the paper has none, and another colour."
    visit(browser, "nbs/160_obstacles.html")
    lines = browser.execute_script(
        "return ['checked', 'refuted'].map(c => [...document.querySelectorAll(`pre .${c}`)].map(e => [e.textContent.trim(), getComputedStyle(e).color]))"
    )
    (checked, green), (refuted, red) = ([*zip(*found)] for found in lines)
    assert all(text.startswith("✓ ") and "refuted" not in text for text in checked)
    assert "✗ rem-erratum-cuts: the paper's sentence is refuted by a witness" in refuted
    assert len(set(green)) == len(set(red)) == 1 and set(green) != set(red)


class Blueprint:
    "The page of the blueprint, as a reader uses it."

    def __init__(self, browser, address="", width=1280):
        self.browser = browser
        browser.get("about:blank")  # a page that differs by its anchor alone would stay
        self.errors, _ = visit(browser, f"nbs/740_blueprint.html{address}", width=width)

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, f".blueprint {selector}")

    def shown(self):
        "Ids of the boxes that are seen."
        return self.browser.execute_script(
            "return [...document.querySelectorAll('.blueprint .canvas a')].filter(e => e.getClientRects().length).map(e => e.getAttribute('href').split('#')[1])"
        )

    def box(self, id):
        return self.find(f".canvas a[href$='#{id}']")[0]

    def choose(self, chapter):
        Select(self.find("select")[0]).select_by_value(chapter)

    def search(self, text):
        field = self.find("input")[0]
        field.clear()
        field.send_keys(text)

    def status(self):
        return self.find("[role=status]")[0].text


LEDGER = read_ledger(ROOT / "nbs")


def below(id):
    "All that a statement rests on, by the ledger."
    needs = LEDGER.statements[id].needs
    return needs.union(*map(below, needs))


def test_blueprint_filters_by_chapter(browser):
    page = Blueprint(browser)
    assert set(page.shown()) == set(LEDGER.statements)
    page.choose("130_kernel")
    expected = {s.id for s in LEDGER.statements.values() if s.chapter == "130_kernel.ipynb"}
    assert set(page.shown()) == expected and page.status().startswith(f"{len(expected)} of ")
    assert [e.text for e in page.find(".chapters g:not([hidden])")] == ["3 · Kernels"]
    page.find("button[type=reset]")[0].click()
    WebDriverWait(browser, 5).until(lambda b: len(page.shown()) == len(LEDGER.statements))
    assert not page.errors


def test_blueprint_searches_names_and_numbers(browser):
    page = Blueprint(browser)
    page.search("best centre")
    assert set(page.shown()) == {"lem-mean", "exm-median"}
    page.search("no such name")
    assert page.shown() == [] and "Show all" in page.status()
    page.search(f"{LEDGER.numbers()['lem-pairs']} spread" + Keys.ENTER)  # the only one: selected
    WebDriverWait(browser, 5).until(lambda b: b.current_url.endswith("#lem-pairs"))
    assert set(page.shown()) == {"lem-pairs", "lem-mean"}


def test_blueprint_shows_all_that_a_theorem_rests_on(browser):
    page = Blueprint(browser)
    page.box("prp-combine").send_keys(Keys.ENTER)  # by keyboard
    expected = below("prp-combine")
    WebDriverWait(browser, 5).until(lambda b: set(page.shown()) == expected | {"prp-combine"})
    links = [e.get_attribute("href").split("#")[1] for e in page.find(".path li a")]
    assert set(links) == expected and len(links) == len(expected)
    assert page.find(".arrows path.lit[data-to='prp-combine']")
    assert f"rests on: {len(expected)} of" in page.status()
    browser.back()
    WebDriverWait(browser, 5).until(lambda b: len(page.shown()) == len(LEDGER.statements))
    assert not page.find(".path *")
    page = Blueprint(browser, "#thm-price-taylor")  # a link to the path of a theorem
    assert set(page.shown()) == below("thm-price-taylor") | {"thm-price-taylor"}
    page.find(".path a.go")[0].click()
    WebDriverWait(browser, 10).until(
        lambda b: b.current_url.endswith("nbs/320_theorems.html#thm-price-taylor")
    )


def test_blueprint_zooms_and_fits_a_phone(browser):
    page = Blueprint(browser, width=390)
    canvas, svg = page.find(".canvas")[0], page.find(".canvas svg")[0]
    wide = svg.rect["width"]
    assert 0 < len(page.shown()) < 50 and wide <= canvas.rect["width"]  # one chapter, whole
    page.find("[name=in]")[0].click()
    assert svg.rect["width"] == pytest.approx(1.25 * wide, rel=0.01)
    canvas.send_keys("-")
    canvas.send_keys("-")
    assert (
        svg.rect["width"] == pytest.approx(0.8 * wide, rel=0.01)
        and page.find("[name=whole]")[0].text == "80%"
    )
    canvas.send_keys("0")
    browser.execute_script(
        "arguments[0].dispatchEvent(new WheelEvent('wheel', {ctrlKey: true, deltaY: -300, cancelable: true}))",
        canvas,
    )
    assert svg.rect["width"] == pytest.approx(2.718 * wide, rel=0.01)
    canvas.send_keys("0")
    pinch(browser, canvas)
    assert svg.rect["width"] == pytest.approx(2 * wide, rel=0.05)
    assert browser.overflow() <= 0 and not page.errors


def pinch(browser, element):
    "Two fingers on an element move apart, to twice their distance."
    middle = browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center'}); const r = arguments[0].getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]",
        element,
    )

    def touch(type, *gaps):
        points = [
            {"x": middle[0] + s * gap, "y": middle[1], "id": i}
            for gap in gaps
            for i, s in enumerate((-1, 1))
        ]
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": type, "touchPoints": points})

    touch("touchStart", 30)
    for gap in range(30, 61, 3):
        touch("touchMove", gap)
    touch("touchEnd")


def test_blueprint_without_scripts_and_on_paper(browser):
    "The whole graph as a picture whose boxes are links, and no control that does nothing."
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.look(f"{BOOK.as_uri()}/nbs/740_blueprint.html")
        boxes = browser.find_elements(By.CSS_SELECTOR, ".blueprint .canvas a")
        assert len(boxes) == len(LEDGER.statements) and all(e.is_displayed() for e in boxes[::40])
        assert not browser.find_element(By.CSS_SELECTOR, ".blueprint form").is_displayed()
        boxes[0].click()
        WebDriverWait(browser, 10).until(lambda b: "740_blueprint" not in b.current_url)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_numbers_in_the_blueprint_are_those_of_the_pages():
    pages = {
        chapter: (BOOK / "nbs" / chapter).with_suffix(".html").read_text(encoding="utf-8")
        for chapter in LEDGER.chapters
    }
    for id, number in LEDGER.numbers().items():
        assert f'href="#{id}">{number}</a>' in pages[LEDGER.statements[id].chapter], id
    for i, (chapter, title) in enumerate(LEDGER.chapters.items(), 1):
        assert (
            f'<h1><span class="section-number">{i}. </span>{escape(title, quote=False)}<'
            in pages[chapter]
        )


def test_errata_have_numbers_and_anchors(browser):
    visit(browser, "nbs/750_errata.html")
    rows = browser.execute_script(
        "return [...document.querySelectorAll('tbody tr')].filter(r => /^E[0-9]+$/.test(r.cells[0].textContent.trim())).map(r => [...r.cells].map(c => [c.textContent.trim(), c.querySelector('a')?.href]))"
    )
    errata = [id for id in LEDGER.statements if id.startswith(ERRATUM)]
    assert [row[0][0] for row in rows] == [f"E{i}" for i in range(1, len(errata) + 1)]
    assert {row[4][1].split("#")[1] for row in rows} == set(errata)
    for row in rows:
        assert all(text for text, _ in row) and row[2][0] in ("error", "wording", "sharpening")
        anchor = row[0][1].split("#")[1]
        assert browser.find_element(By.ID, anchor).text.startswith(row[0][0] + ".")
    (signs,) = [row for row in rows if row[4][1].endswith("#rem-erratum-signs")]
    assert signs[1][1].endswith("nbs/320_theorems.html#thm-price-taylor")  # Theorem 4 of the paper


def test_notebook_can_be_downloaded(browser):
    visit(browser, "nbs/130_kernel.html")
    links = browser.execute_script(
        "return [...document.querySelectorAll('a[href$=\".ipynb\"]')].map(e => e.href)"
    )
    assert links and all(url == f"{BOOK.as_uri()}/_sources/{KERNEL}" for url in links)
    nb = nbformat.read(BOOK / "_sources" / KERNEL, 4)
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    numbers = [e.text for e in browser.find_elements(By.CLASS_NAME, "statement-number")]
    assert len(numbers) > 10 and all(f"> **{number}**" in text for number in numbers)
    assert ":::" not in text and "@lem" not in text and "{#" not in text
    outputs = [cell.outputs for cell in nb.cells if cell.cell_type == "code"]
    shown = browser.find_elements(By.CSS_SELECTOR, "div.cell_output")
    assert sum(map(bool, outputs)) == len(shown) > 10


@pytest.mark.slow
def test_a_downloaded_notebook_runs_elsewhere(tmp_path):
    assert not OBSTACLE, OBSTACLE
    build.execute(nbformat.read(BOOK / "_sources" / KERNEL, 4), KERNEL, tmp_path)


def folds(browser):
    "Which of the exported cells are open."
    return [
        fold.get_attribute("open") is not None
        for fold in browser.find_elements(By.CSS_SELECTOR, ".tag_exported details.code-fold")
    ]


def test_exported_cells_are_folded_and_open_at_once(browser):
    visit(browser, "nbs/130_kernel.html")
    assert len(folds(browser)) > 5 and not any(folds(browser))
    line = browser.find_element(By.CSS_SELECTOR, ".tag_exported summary")
    assert re.fullmatch(r"kernel · .+ · \d+ lines?", line.text) and line.rect["height"] < 40
    browser.execute_script("arguments[0].focus()", line)
    ActionChains(browser).send_keys(Keys.ENTER).perform()  # by the keyboard
    assert folds(browser)[0] and not any(folds(browser)[1:])
    button = browser.find_element(By.CSS_SELECTOR, "button.all-exported")
    assert button.text.startswith("Open all exported code")
    browser.execute_script("arguments[0].focus()", button)
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert all(folds(browser)) and button.text.startswith("Fold all")
    assert button.get_attribute("aria-expanded") == "true"
    button.click()
    assert not any(folds(browser))


def test_print_shows_no_exported_code(browser):
    visit(browser, "nbs/130_kernel.html")
    browser.find_element(By.CSS_SELECTOR, "button.all-exported").click()
    heights = "return [...document.querySelectorAll(arguments[0])].map(e => e.offsetHeight)"
    code, lesson = ".tag_exported pre", ".cell:not(.tag_exported) .cell_input pre"
    assert all(browser.execute_script(heights, code))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not any(browser.execute_script(heights, code))
    assert all(browser.execute_script(heights, lesson))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
