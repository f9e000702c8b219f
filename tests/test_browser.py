"""The built site in a real browser: opened from file://, at desktop and phone width, in light and dark.

Skipped, with the reason, where there is no Chromium or no built book; `KXBOOK_BROWSER=required` turns that into a failure.
"""

import os
import re
from pathlib import Path
from urllib.parse import quote

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
        *ROOT.glob("site/static/*"),
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


def visit(browser, page, *, width=1280, theme="light"):
    "Open a page and wait until its formulas are set; returns console errors and the addresses asked for."
    browser.look(f"{BOOK.as_uri()}/{page}", width, theme)
    ready = "return document.readyState === 'complete' && (!document.querySelector('.math') || (window.MathJax && MathJax.startup && MathJax.startup.promise && document.querySelector('mjx-container') !== null))"
    WebDriverWait(browser, 30).until(lambda b: b.execute_script(ready))
    browser.execute_async_script(
        "const done = arguments[0]; (window.MathJax && MathJax.startup ? MathJax.startup.promise : Promise.resolve()).then(() => setTimeout(done, 50))"
    )
    return [
        entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"
    ], browser.asked()


@each_page
@pytest.mark.parametrize("width", [1280, 380])
def test_every_page_is_quiet_offline_and_fits(browser, width, page):
    errors, asked = visit(browser, page, width=width)
    assert not errors
    assert asked and all(url.startswith((BOOK.as_uri(), "data:", "blob:")) for url in asked)
    assert browser.overflow() <= 0
    loaded = browser.execute_script(
        "return [...document.querySelectorAll('[src], link[href]')].map(e => e.src || e.href)"
    )
    assert all(url.startswith(("file:", "data:")) for url in loaded), (
        f"another host is named: {loaded}"
    )
    plain, wrong, count = formulas(browser)
    assert not plain and not wrong and (count > 100 or page != "nbs/310_price.html")


def formulas(browser):
    "Formulas that are still text, those with a mistake, and how many are set."
    return browser.execute_script(
        "return [[...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container')).map(e => e.textContent),"
        " [...document.querySelectorAll('mjx-merror, [data-mml-node=merror]')].map(e => e.textContent), document.querySelectorAll('mjx-container').length]"
    )


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
    number = link.text
    assert re.fullmatch(r"Lemma \d+\.2", number)
    link.click()
    assert browser.current_url == f"{BOOK.as_uri()}/nbs/110_claim.html#lem-pairs"
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
    WebDriverWait(browser, 10).until(lambda b: box.find_elements(By.CSS_SELECTOR, "mjx-container"))
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert not box.is_displayed()


def test_links_in_a_preview_work_from_any_page(browser):
    visit(browser, "index.html")
    links = browser.execute_script(
        "const root = document.documentElement.dataset.content_root; const box = document.createElement('div'); box.innerHTML = bookStatements['lem-min'];"
        " return [...box.querySelectorAll('a')].map(a => new URL(root + a.getAttribute('href'), document.URL).href)"
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


@each_page
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessibility(browser, theme, page):
    visit(browser, page, theme=theme)
    assert browser.execute_script("return document.documentElement.dataset.theme") == theme
    found = (
        browser.axe() if theme == "light" else browser.axe("color-contrast")
    )  # in the dark only colours are others
    assert not found, "\n".join(found[:40])
