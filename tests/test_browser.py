"""The built site in a real browser: opened from file://, at the width of a desktop, a tablet and a phone, in light and dark.

Skipped, with the reason, where there is no Chromium or no built book; `KXBOOK_BROWSER=required` turns that into a failure.
"""

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote, urlparse

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

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
    for width in WIDTHS:
        browser.turn(width)
        settle(browser)
        assert browser.overflow() <= 0, f"{width} px"
        wrong, cut, unsaid = browser.execute_script(BADLY_SET)
        assert not wrong and not cut and not unsaid, f"{width} px"
        # colours are those of the widest
        found = browser.axe(without=() if width == WIDTHS[0] else ("color-contrast",))
        assert not found, f"{width} px\n" + "\n".join(found[:40])
    browser.turn(theme="dark")
    settle(browser)
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
        lambda b: "/nbs/110_claim.html" in b.current_url and b.current_url.endswith("#lem-mean")
    )
    assert "The mean is the best centre" in browser.find_element(By.ID, "lem-mean").text


def test_reference_across_chapters_leads_to_its_statement(browser):
    visit(browser, "nbs/120_data.html")
    link = browser.find_element(By.CSS_SELECTOR, "article a[href='110_claim.html#lem-pairs']")
    assert link.text == "Lemma 1.2"
    link.click()
    assert browser.current_url == f"{BOOK.as_uri()}/nbs/110_claim.html#lem-pairs"
    target = browser.find_element(By.ID, "lem-pairs")
    assert target.text.startswith("Lemma 1.2") and "Spread without a centre" in target.text
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
        assert url.startswith(BOOK.as_uri()), f"{page} leaves the book: {url}"
        path, _, anchor = url.removeprefix(BOOK.as_uri() + "/").partition("#")
        assert (BOOK / path).exists(), f"{page}: {path} does not exist"
        assert not anchor or path not in anchors or anchor in anchors[path], (
            f"{page}: no {anchor} in {path}"
        )


def test_preview_of_a_statement(browser):
    visit(browser, "nbs/120_data.html")
    link = browser.find_element(By.CSS_SELECTOR, "article a[href='110_claim.html#lem-mean']")
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
    browser.find_element(
        By.CSS_SELECTOR, "p.exported a[href$='api/kernel.html#kxbook.kernel.gaussian']"
    ).click()
    entry = browser.find_element(By.ID, "kxbook.kernel.gaussian").find_element(By.XPATH, "..")
    assert "width: larger means more local" in entry.text
    entry.find_element(By.LINK_TEXT, "Where it is derived").click()
    assert "nbs/130_kernel.html#exported-kernel-gaussian" in browser.current_url


def test_blueprint(browser):
    visit(browser, "nbs/740_blueprint.html")
    node = browser.find_element(By.CSS_SELECTOR, ".blueprint a[data-id='prp-combine']")
    ActionChains(browser).scroll_to_element(node).move_to_element(node).perform()
    assert browser.find_elements(By.CSS_SELECTOR, ".blueprint path.lit[data-to='prp-combine']")
    node.click()
    WebDriverWait(browser, 10).until(
        lambda b: b.current_url.endswith("nbs/130_kernel.html#prp-combine")
    )


def test_notebook_can_be_downloaded(browser):
    visit(browser, "nbs/130_kernel.html")
    links = browser.execute_script(
        "return [...document.querySelectorAll('a[href$=\".ipynb\"]')].map(e => e.href)"
    )
    assert (
        links
        and (BOOK / "_sources/nbs/130_kernel.ipynb").read_bytes()
        == (ROOT / "nbs/130_kernel.ipynb").read_bytes()
    )
    assert all(url == f"{BOOK.as_uri()}/_sources/nbs/130_kernel.ipynb" for url in links)
