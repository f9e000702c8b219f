"""The whole book as one PDF: every page of the built site in one document, printed by a headless Chromium.

python tools/pdf.py            # from _book/ into _book/book.pdf

Links between chapters lead to pages of the PDF. The reference of the package is not printed, and links to it are plain text.
"""

import base64
import io
import json
import posixpath
import re
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pikepdf
from bs4 import BeautifulSoup
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).resolve().parent.parent
NO_BROWSER = (
    "No PDF was made: it needs Chromium and its driver (Debian: chromium, chromium-driver).\n"
    "Every page of the book can be printed by a browser; open _book/index.html."
)
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-background-networking --no-first-run --disable-sync --disable-component-update"
PAGE = {  # A4, in inches
    "paperWidth": 8.27,
    "paperHeight": 11.69,
    "marginTop": 0.75,
    "marginBottom": 0.85,
    "marginLeft": 0.8,
    "marginRight": 0.8,
}
FOOTER = '<div style="font-size:8pt;width:100%;text-align:center;font-family:sans-serif"><span class="pageNumber"></span></div>'
STYLE = """
.bd-content { display: block; }
.book-title { height: 22cm; display: flex; flex-direction: column; justify-content: center; }
.book-title h1 { font-size: 2.6rem; }
.book-toc { break-before: page; }
.book-toc ul { list-style: none; padding: 0; margin: 0; }
.book-toc ul ul { padding-left: 1.6em; font-size: 0.88em; }
.book-toc li.part { font-family: var(--book-sans); font-weight: 700; margin-top: 0.9em; break-after: avoid; }
.book-toc a { display: flex; gap: 0.5em; }
.book-toc a::after { order: 1; content: ""; flex: 1; border-bottom: 1px dotted #999; margin-bottom: 0.3em; }
.book-toc .at { order: 2; min-width: 2.2em; text-align: right; font-variant-numeric: tabular-nums; }
.book-part { break-before: page; padding-top: 8cm; }
.book-chapter { break-before: page; }
.bd-article h2.h1 { font-size: 2rem; margin-top: 0; }
.bd-article h3.h2 { font-size: 1.42rem; margin-top: 2rem; }
.bd-article h4.h3 { font-size: 1.12rem; margin-top: 1.5rem; }
.bd-article h2.h1 + blockquote { background: none; border: 0; padding: 0; margin: 0 0 1.6rem; color: #444; font-size: 1.12rem; font-style: italic; }
"""
# Formulas, fonts and pictures are there; folded text is open; a long statement may break, a short one may not.
READY = """
const done = arguments[0];
(async () => {
  await document.fonts.ready;
  await window.MathJax?.startup?.promise;
  const broken = [];
  for (const picture of document.images) await picture.decode().catch(() => broken.push(picture.src.slice(0, 200)));
  for (const fold of document.querySelectorAll("details:not(.exported)")) fold.open = true;
  for (const box of document.querySelectorAll(".statement, .admonition, figure")) box.style.breakInside = box.offsetHeight > 450 ? "auto" : "avoid";
  for (const figure of document.querySelectorAll("figure:has(img)")) figure.style.breakInside = "avoid";
  const errors = document.querySelectorAll('mjx-merror, [data-mml-node="merror"], .katex-error').length;
  done({broken, errors});
})();
"""
NUMBERS = "for (const [id, page] of Object.entries(arguments[0])) document.querySelector(`.book-toc [data-to='${id}']`).textContent = page;"


class PrintError(Exception):
    "What keeps the book from being printed."


def parts(site):
    "Title, and the pages of each part, by the sidebar of the first page: title, [(part, [path, ...]), ...]."
    soup = BeautifulSoup((site / "index.html").read_text(encoding="utf-8"), "html.parser")
    found, sidebar = [("", ["index.html"])], soup.select_one("nav.bd-links")
    if sidebar is None:
        raise PrintError(f"{site / 'index.html'} has no table of contents: run `make book` first")
    for node in sidebar.select("p.caption, li.toctree-l1 > a"):
        if node.name == "p":
            found.append((node.get_text(strip=True), []))
        elif not urlsplit(node["href"]).path.startswith("api/") and urlsplit(node["href"]).path:
            found[-1][1].append(node["href"])
    found = [("" if pages == ["references.html"] else part, pages) for part, pages in found]
    title = soup.select_one(".navbar-brand .title") or soup.title
    return title.get_text(strip=True), [(part, pages) for part, pages in found if pages]


def anchor(page, name=""):
    "The id in the PDF of an id on a page; of the page itself without one."
    return f"{Path(page).stem}.{name}" if name else Path(page).stem


def destination(href, page, pages):
    "Where a link of a page leads in the PDF: an anchor, an address outside, or None."
    url = urlsplit(href)
    if url.scheme in ("http", "https", "mailto"):
        return href
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), url.path))
    path = path if url.path else page
    return f"#{anchor(path, unquote(url.fragment))}" if path in pages else None


def chapter(site, page, pages):
    "The article of a page, with ids, links and headings that fit into one document, and its stylesheets and scripts."
    soup = BeautifulSoup((site / page).read_text(encoding="utf-8"), "html.parser")
    article = soup.select_one("article.bd-article")
    for script in article.find_all("script"):
        script.decompose()
    for level in (5, 4, 3, 2, 1):  # a part is above its chapters in the outline
        for heading in article.find_all(f"h{level}"):
            heading.name = f"h{level + 1}"
            heading["class"] = [*heading.get("class", []), f"h{level}"]
    for link in article.select("a.headerlink"):
        link.decompose()
    for tag in article.find_all(True):
        _adapt(tag, site, page, pages)
    return article, soup.head


def _adapt(tag, site, page, pages):
    "Give the attributes of a tag the meaning that they had on its page."
    for key, value in list(tag.attrs.items()):
        if key == "id":
            tag[key] = anchor(page, value)
        elif key in ("aria-labelledby", "aria-describedby", "for", "headers"):
            words = value if isinstance(value, list) else value.split()
            tag[key] = " ".join(anchor(page, word) for word in words)
        elif key == "href" and tag.name == "a":
            to = destination(value, page, pages)
            if to is None:
                del tag[key]
            else:
                tag[key] = to
        elif key in ("href", "xlink:href") and value.startswith("#"):
            tag[key] = f"#{anchor(page, value[1:])}"
        elif key == "src" and not urlsplit(value).scheme:
            tag[key] = ((site / page).parent / unquote(value)).resolve().as_uri()
        elif key == "loading":
            del tag[key]
        elif isinstance(value, str) and "url(#" in value:
            tag[key] = re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{anchor(page, m[1])})", value)


def _entry(to, text, inner=""):
    "A line of the table of contents."
    number = f'<span class="at" data-to="{escape(to)}"></span>'
    return f'<li><a href="#{escape(to)}"><span>{escape(text)}</span>{number}</a>{inner}</li>'


def _contents_of(page, article):
    "The chapter and its sections, as lines of the table of contents."
    sections = [
        _entry(heading.find_parent("section")["id"], heading.get_text(" ", strip=True))
        for heading in article.select("h3.h2")
        if heading.find_parent("section")
    ]
    title = article.select_one("h2.h1").get_text(" ", strip=True)
    return _entry(anchor(page), title, f"<ul>{''.join(sections)}</ul>" if sections else "")


def join(site):
    "All pages as one document; a link that leads nowhere is an error."
    title, found = parts(site)
    pages = [page for _, some in found for page in some]
    toc, body, head, number = [], [], None, 0
    for part, some in found:
        if part:
            number += 1
            toc.append(f'<li class="part">{escape(part)}</li>')
            body.append(f'<div class="book-part"><h1 id="part-{number}">{escape(part)}</h1></div>')
        for page in some:
            article, head_of_page = chapter(site, page, pages)
            head = head_of_page if page.startswith("nbs/") else head
            toc.append(_contents_of(page, article))
            body.append(f'<div class="book-chapter" id="{anchor(page)}">{article}</div>')
    html = "\n".join(body)
    ids = set(re.findall(r'\sid="([^"]+)"', html))
    links = re.findall(r'\shref="#([^"]*)"', html)
    if lost := sorted({to for to in links if to not in ids}):
        raise PrintError(f"links that lead nowhere: {', '.join(lost[:9])}")
    front = f'<div class="book-title"><h1>{escape(title)}</h1></div>'
    contents = f'<nav class="book-toc"><h1>Contents</h1><ul>{"".join(toc)}</ul></nav>'
    return (
        f'<!DOCTYPE html><html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>{_head(site, head)}<style>{STYLE}</style></head>"
        f'<body><main class="bd-content"><div class="bd-article">{front}{contents}{html}</div></main></body></html>'
    )


def _head(site, head):
    "Styles of a chapter, and what sets its formulas."
    for tag in head.find_all(["link", "script"]):
        key = "href" if tag.name == "link" else "src"
        if tag.get(key) and not urlsplit(tag[key]).scheme:
            path = ((site / "nbs") / unquote(urlsplit(tag[key]).path)).resolve()
            tag[key] = path.as_uri()
    styles = head.select("link[rel=stylesheet], style")
    scripts = [s for s in head.find_all("script") if re.search("mathjax|katex|tex-", str(s), re.I)]
    return "".join(map(str, styles + scripts))


@contextmanager
def chromium(binary, driver):
    "A browser with an empty profile, as wide as the text on paper."
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            browser.command_executor.client_config.timeout = 3600  # a book takes its time
            browser.set_page_load_timeout(3600)
            browser.set_script_timeout(3600)
            width = round(96 * (PAGE["paperWidth"] - PAGE["marginLeft"] - PAGE["marginRight"]))
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
            yield browser
        finally:
            browser.quit()


def pages_of(data, names):
    "The page of each named place of a PDF, from 1."
    with pikepdf.open(io.BytesIO(data)) as book:
        number = {page.obj.objgen: i for i, page in enumerate(book.pages, 1)}
        places = book.Root.get("/Dests", {})
        if lost := [name for name in names if f"/{name}" not in places]:
            raise PrintError(f"places that the PDF does not have: {', '.join(lost[:9])}")
        return {name: number[places[f"/{name}"][0].objgen] for name in names}


def printed(browser):
    "The open document as a PDF, with the page numbers of its table of contents: it is printed until they are right."
    options = PAGE | {
        "printBackground": True,
        "displayHeaderFooter": True,
        "headerTemplate": "<span></span>",
        "footerTemplate": FOOTER,
        "generateDocumentOutline": True,
    }
    names = browser.execute_script(
        "return [...document.querySelectorAll('.book-toc [data-to]')].map(e => e.dataset.to)"
    )
    known = {}
    for _ in range(4):
        data = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", options)["data"])
        before, known = known, pages_of(data, names)
        if known == before:
            return data
        browser.execute_script(NUMBERS, known)
    raise PrintError("the page numbers of the table of contents do not settle")


def make(site, output, binary, driver):
    "Print the book into a file."
    html = join(site)
    with tempfile.TemporaryDirectory() as folder, chromium(binary, driver) as browser:
        page = Path(folder) / "book.html"
        page.write_text(html, encoding="utf-8")
        browser.get(page.as_uri())
        state = browser.execute_async_script(READY)
        if state["errors"] or state["broken"]:
            raise PrintError(
                f"{state['errors']} formulas have errors, pictures are missing: {json.dumps(state['broken'][:9])}"
            )
        data = printed(browser)
    temporary = output.with_suffix(".tmp")
    with pikepdf.open(io.BytesIO(data)) as book:  # less than half the size
        book.save(temporary, object_stream_mode=pikepdf.ObjectStreamMode.generate)
        pages = len(book.pages)
    temporary.replace(output)
    return pages


def main():
    start, site = time.monotonic(), ROOT / "_book"
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not (binary and driver):
        print(NO_BROWSER)
        return
    if not (site / "index.html").exists():
        sys.exit("There is no book to print: run `make book` first.")
    output = site / "book.pdf"
    try:
        pages = make(site, output, binary, driver)
    except PrintError as e:
        sys.exit(f"The book was not printed: {e}.")
    took = time.monotonic() - start
    print(
        f"{output.relative_to(ROOT)}: {pages} pages, {output.stat().st_size / 1e6:.1f} MB, {took:.0f} s"
    )


if __name__ == "__main__":
    main()
