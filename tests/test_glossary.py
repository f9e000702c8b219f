"""The glossary: every definition has its place there, every first use of a term leads there, and what appears over the link is what it says."""

import json
import re
from pathlib import Path

import glossary
import pytest
from bs4 import BeautifulSoup
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from test_browser import BOOK, OBSTACLE, REQUIRED

from kxbook.claim import read_ledger

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / f"{glossary.PAGE}.ipynb"
needs_book = pytest.mark.skipif(bool(OBSTACLE) and not REQUIRED, reason=OBSTACLE or "-")


def source():
    return "\n\n".join(
        "".join(cell["source"]) for cell in json.loads(SOURCE.read_text(encoding="utf-8"))["cells"]
    )


def test_every_definition_of_the_book_is_there():
    definitions = {id for id in read_ledger(ROOT / "nbs").statements if id.startswith("def-")}
    assert len(definitions) > 15
    assert not definitions - set(re.findall(r"@(def-[\w-]+)", source()))


def test_terms_are_in_order_and_explained_in_a_sentence():
    entries = re.findall(r"^(\S[^\n]*)\n: ([^\n]*)$", source(), re.M)
    names = [name for name, _ in entries]
    assert names == sorted(names, key=str.lower) and len(set(names)) == len(names) > 35
    for name, said in entries:
        assert said.endswith((".", "?")) and "@" in said and len(said.split()) < 45, name


def test_words_of_the_text_are_found():
    names, pattern = glossary.terms(str(SOURCE), SOURCE.stat().st_mtime_ns)
    text = (
        "Surrogate features of kernel k-means, a Kernel, kernelised, sub-kernel, prices; a mistake"
    )
    found = [names[m[1].lower()] for m in pattern.finditer(text)]
    assert found == ["Surrogate feature", "Kernel k-means", "Kernel", "Price"]


@needs_book
def test_links_are_few_and_lead_to_the_terms():
    page = BeautifulSoup((BOOK / f"{glossary.PAGE}.html").read_text(encoding="utf-8"), "lxml")
    places = {tag["id"] for tag in page.select("dt[id^=gls-]")}
    text = (BOOK / "_static" / "previews.js").read_text(encoding="utf-8")
    previews = json.loads(text.removeprefix("window.bookStatements = ").rstrip(";\n"))
    assert places == {id for id in previews if id.startswith("gls-")}
    seen, texts = 0, {p.name: p.read_text(encoding="utf-8") for p in BOOK.glob("nbs/*.html")}
    for name, text in sorted(texts.items()):
        targets = re.findall(r'<a class="term [^>]*href="[^"#]*#([^"]+)"', text)
        assert len(set(targets)) == len(targets) and set(targets) <= places, name
        for heading in re.findall(r"<h[1-3]>.*?</h[1-3]>|<code.*?</code>", text, re.S):
            assert 'class="term' not in heading, name
        seen += len(targets)
    assert seen > 200
    for link in page.select(".term-uses a"):
        other, anchor = link["href"].split("#")
        assert f'id="{anchor}"' in texts[other]


@needs_book
def test_pointing_at_a_term_says_what_it_means(browser):
    browser.look((BOOK / "nbs" / "310_price.html").as_uri(), width=1280, height=900)
    link = browser.find_element(By.CSS_SELECTOR, "a.term[href$='#gls-price']")
    ActionChains(browser).move_to_element(link).perform()
    box = WebDriverWait(browser, 20).until(lambda b: b.find_element(By.ID, "statement-preview"))
    assert box.text.startswith("Price: The cost of the clusters")
    assert link.get_attribute("aria-describedby") == box.get_attribute("id")
