"""The book as one PDF: links across chapters, table of contents, outline."""

import io
import os
import sys
from pathlib import Path

import pytest
from conftest import BINARY, DRIVER
from pypdf import PdfReader
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


def inspected(reader):
    "Pages, titles of the outline, and how many links lead to a page, to an address, and nowhere."

    def titles(items):
        for item in items:
            yield from titles(item) if isinstance(item, list) else [item.title]

    known, inside, outside, lost = reader.named_destinations, 0, 0, []
    for page in reader.pages:
        for note in page.get("/Annots") or []:
            link = note.get_object()
            if link.get("/Subtype") != "/Link":
                continue
            action = link.get("/A", {})
            to = link.get("/Dest", action.get("/D"))
            if to is None:
                outside += "/URI" in action
            elif isinstance(to, str) and to not in known:
                lost.append(to)
            else:
                inside += 1
    return len(reader.pages), list(titles(reader.outline)), inside, outside, lost


def test_small_pdf(tmp_path):
    need_browser()
    made = site(
        tmp_path, a="<a href='b.html#two'>b</a>", b="<section id='two'><h2>Two</h2></section>"
    )
    pages = pdf.make(made, tmp_path / "book.pdf", BINARY, DRIVER)
    reader = PdfReader(tmp_path / "book.pdf")
    count, outline, inside, _, lost = inspected(reader)
    assert pages == count == 6 and not lost  # title, contents, front page, part, two chapters
    assert [t for t in outline if t in ("Part", "a", "b", "Two")] == ["Part", "a", "b", "Two"]
    assert inside == 6  # four lines of the contents, a link of the front page and one of a chapter
    data = (tmp_path / "book.pdf").read_bytes()
    assert pdf.pages_of(data, ["b.two"]) == {"b.two": 6}
    contents = reader.pages[1].extract_text().split()
    assert contents[contents.index("Two") + 1] == "6"
    with pytest.raises(pdf.PrintError, match="gone"):
        pdf.pages_of(data, ["gone"])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(bool(OBSTACLE) and not REQUIRED, reason=OBSTACLE or "-")
def test_the_whole_book(tmp_path):
    need_browser()
    output = tmp_path / "book.pdf"
    pdf.make(BOOK, output, BINARY, DRIVER)
    reader = PdfReader(io.BytesIO(output.read_bytes()))
    pages, outline, inside, _, lost = inspected(reader)
    _, found = pdf.parts(BOOK)
    chapters = [page for _, some in found for page in some]
    assert pages > 5 * len(chapters) and inside > 1000 and not lost
    assert len(outline) > 5 * len(chapters)
