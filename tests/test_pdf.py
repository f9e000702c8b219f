"""The book as one PDF: links across chapters, table of contents, outline."""

import os
import sys
from pathlib import Path

import pikepdf
import pytest
from conftest import BINARY, DRIVER
from test_browser import BOOK, OBSTACLE, REQUIRED

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import pdf  # noqa: E402

HEAD = "<head><title>A page — Book</title></head>"
CHAPTER = (
    "<!DOCTYPE html><html>{head}<body><article class='bd-article'><section id='{id}'>"
    "<h1>{title}<a class='headerlink' href='#{id}'>#</a></h1>{text}</section></article></body></html>"
)


def site(folder, **texts):
    "A site of a front page and chapters, as Sphinx would write it."
    (folder / "nbs").mkdir()
    items = "".join(
        f"<li class='toctree-l1'><a href='nbs/{name}.html'>{name}</a></li>" for name in texts
    )
    sidebar = f"<nav class='bd-links'><p class='caption'>Part</p>{items}<li class='toctree-l1'><a href='api/x.html'>x</a></li></nav>"
    front = CHAPTER.format(
        head=HEAD, id="top", title="Front", text="<a href='nbs/a.html#one'>a</a>"
    )
    (folder / "index.html").write_text(front.replace("<body>", f"<body>{sidebar}"))
    for name, text in texts.items():
        page = CHAPTER.format(head=HEAD, id="one", title=name, text=text)
        (folder / "nbs" / f"{name}.html").write_text(page)
    return folder


def test_ids_and_links_fit_into_one_document(tmp_path):
    a = "<a href='b.html#one'>b</a> <a href='../api/x.html#y'>x</a> <a href='#one'>a</a> <img src='p.svg'>"
    b = "<section id='two'><h2>Two</h2><a href='a.html'>a</a> <a href='https://x.example/'>out</a></section><script>1</script>"
    html = pdf.join(site(tmp_path, a=a, b=b))
    for link in (
        'href="#b.one"',
        'href="#a.one"',
        'href="#a"',
        'href="https://x.example/"',
        "<a>x</a>",
    ):
        assert link in html
    assert 'id="a.one"' in html and 'id="b.one"' in html and "<script" not in html
    assert (tmp_path / "nbs" / "p.svg").as_uri() in html
    assert 'data-to="b.two"' in html and html.index("Contents") < html.index('id="b.two"')
    assert '<h2 class="h1">a</h2>' in html and "headerlink" not in html


def test_a_link_that_leads_nowhere_is_refused(tmp_path):
    with pytest.raises(pdf.PrintError, match="b.gone"):
        pdf.join(site(tmp_path, a="<a href='b.html#gone'>b</a>", b=""))


def test_without_a_book_the_first_step_is_named(tmp_path):
    (tmp_path / "index.html").write_text("<title>x</title>")
    with pytest.raises(pdf.PrintError, match="make book"):
        pdf.parts(tmp_path)


def test_without_a_browser_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    pdf.main()
    assert "chromium-driver" in capsys.readouterr().out


def need_browser():
    if not (BINARY and DRIVER):
        required = os.environ.get("KXBOOK_BROWSER") == "required"
        (pytest.fail if required else pytest.skip)("no browser")


def inspected(path):
    "Pages, titles of the outline, and how many links lead to a page, to an address, and nowhere."

    def titles(items):
        for item in items:
            yield item.title
            yield from titles(item.children)

    inside, outside, lost = 0, 0, []
    with pikepdf.open(path) as book:
        known = set(book.Root.Dests.keys())
        for note in (note for page in book.pages for note in page.get("/Annots", [])):
            if note.Subtype == "/Link" and "/Dest" in note:
                inside += str(note.Dest) in known
                lost += [str(note.Dest)] if str(note.Dest) not in known else []
            else:
                outside += "/URI" in note.get("/A", {})
        with book.open_outline() as outline:
            return len(book.pages), list(titles(outline.root)), inside, outside, lost


def two_chapters(folder):
    out = "<a href='https://x.example/'>out</a>"
    section = f"<section id='two'><h2>Two</h2>{out}</section>"
    return site(folder, a="<a href='b.html#two'>b</a>", b=section)


def test_small_pdf(tmp_path):
    need_browser()
    output = tmp_path / "book.pdf"
    pages = pdf.make(two_chapters(tmp_path), output, BINARY, DRIVER)
    count, outline, inside, outside, lost = inspected(output)
    assert pages == count == 6 and not lost  # title, contents, front page, part, two chapters
    assert [t for t in outline if t in ("Part", "a", "b", "Two")] == ["Part", "a", "b", "Two"]
    assert inside == 6  # four lines of the contents, a link of the front page and one of a chapter
    assert outside == 1
    data = output.read_bytes()
    assert pdf.pages_of(data, ["b.two"]) == {"b.two": 6}
    with pytest.raises(pdf.PrintError, match="gone"):
        pdf.pages_of(data, ["gone"])


def test_the_table_of_contents_has_page_numbers(tmp_path):
    need_browser()
    page = tmp_path / "book.html"
    page.write_text(pdf.join(two_chapters(tmp_path)), encoding="utf-8")
    with pdf.chromium(BINARY, DRIVER) as browser:
        browser.get(page.as_uri())
        pdf.printed(browser)
        shown = "return [...document.querySelectorAll('.book-toc .at')].map(e => e.textContent)"
        assert browser.execute_script(shown) == ["3", "5", "6", "6"]


def test_a_missing_picture_stops_the_printing(tmp_path):
    need_browser()
    made = site(tmp_path, a="<img src='gone.svg'>")
    with pytest.raises(pdf.PrintError, match=r"gone\.svg"):
        pdf.make(made, tmp_path / "book.pdf", BINARY, DRIVER)
    assert not (tmp_path / "book.pdf").exists()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(bool(OBSTACLE) and not REQUIRED, reason=OBSTACLE or "-")
def test_the_whole_book(tmp_path):
    need_browser()
    output = tmp_path / "book.pdf"
    pdf.make(BOOK, output, BINARY, DRIVER)
    pages, outline, inside, _, lost = inspected(output)
    _, found = pdf.parts(BOOK)
    chapters = [page for _, some in found for page in some]
    assert pages > 5 * len(chapters) and inside > 1000 and not lost
    assert len(outline) > 5 * len(chapters)
