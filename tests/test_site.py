"""The renderer: what the subset of Quarto's markdown becomes, and what stops a build."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import build
import fold_exports
import nbformat
import pytest
import quarto
import yaml
from bs4 import BeautifulSoup
from nbdev.cli import nbdev_filter
from quarto import BookError, Names, markdown

import kxbook.claim

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "nbs").glob("[0-9]*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)


def translate(text, **kwargs):
    return markdown(text, "here", Names(**kwargs))


@pytest.mark.parametrize(
    "given, expected",
    [
        ("# A {#sec-a}", "(sec-a)=\n# A"),
        ("see @lem-a.", "see {numref}`lem-a`."),
        ("by @eq-a and @fig-b", "by {eq}`eq-a` and {numref}`fig-b`"),
        ("as in [@knuth1984; @lamport]", "as in {cite:p}`knuth1984,lamport`"),
        ("as @knuth1984 says", "as {cite:t}`knuth1984` says"),
        ("$$\nx @ y\n$$ {#eq-a}", "$$\nx @ y\n$$ (eq-a)"),
        ("so\n$$\nx\n$$\nand", "so\n\n$$\nx\n$$\n\nand"),
        ("Kernel\n: Says @def-a.", "Kernel\n: Says {numref}`def-a`."),
        ("`@lem-a` and $a@b$ and me@home", "`@lem-a` and $a@b$ and me@home"),
        ("```\n::: {.odd}\n@lem-a\n```", "```\n::: {.odd}\n@lem-a\n```"),
        (
            "- a\n  ```\n  @lem-a\n  ```\n> ~~~\n> @lem-a\n> ~~~",
            "- a\n  ```\n  @lem-a\n  ```\n> ~~~\n> @lem-a\n> ~~~",
        ),
        ("`x\n@lem-a y` ``a ` @lem-a``", "`x\n@lem-a y` ``a ` @lem-a``"),
        ("\\$5 @lem-a \\$6 _@lem-b_", "\\$5 {numref}`lem-a` \\$6 _{numref}`lem-b`_"),
        (
            "[u](https://m.example/@lem-a) \\@lem-b <!-- @lem-c -->",
            "[u](https://m.example/@lem-a) \\@lem-b <!-- @lem-c -->",
        ),
        ("as in [@knuth;\n@lamport]", "as in {cite:p}`knuth,lamport`"),
        (
            "![alt](a.png)\\\n\nand ![alt](a.png)",
            "![alt](a.png)\n\nand ![alt](a.png)",
        ),
        (
            "| a |\n|---|\n| b |\n\n: C {#tbl-c}",
            ":::{table} C\n:name: tbl-c\n\n| a |\n|---|\n| b |\n:::",
        ),
    ],
)
def test_inline_and_blocks(given, expected):
    assert translate(given) == expected


def test_statement_proof_and_callout():
    text = translate(
        '::: {#lem-a}\n## Name\nText.\n:::\n::: {.proof name="sketch"}\nBy @lem-b.\n:::\n::: {.callout-note}\nHm.\n:::'
    )
    lines = [line for line in text.split("\n") if line]
    assert lines[:3] == [":::::::::{statement} Name", ":name: lem-a", "Text."]
    assert (
        ":::::::::{proof} sketch" in lines
        and "By {numref}`lem-b`." in lines
        and ":::::::::{note}" in lines
    )


def test_exercises_and_their_solutions():
    text = translate(
        '::: {#exr-a}\n## Name\nShow it.\n:::\n::: {.callout-tip collapse="true"}\n## Solution\nSee @exr-a.\n:::\n::: {.callout-note collapse="false"}\nHm.\n:::'
    )
    lines = [line for line in text.split("\n") if line]
    assert lines[:2] == [":::::::::{statement} Name", ":name: exr-a"]
    folded = [":::::::::{admonition} Solution", ":class: tip", ":collapsible: closed"]
    at = lines.index(folded[0])
    assert lines[at : at + 4] == [*folded, "See {numref}`exr-a`."]
    assert lines[-4:-1] == [":::::::::{note}", ":collapsible: open", "Hm."]


def test_nested_divs_have_shorter_fences():
    lines = translate("::: {.proof}\na\n::: {.callout-tip}\n## T\nb\n:::\nc\n:::").split("\n")
    outer, inner = (
        next(line for line in lines if word in line) for word in ("{proof}", "{admonition}")
    )
    assert outer.index("{") > inner.index("{")


def test_whole_chapters_are_called_so():
    assert translate("see @sec-a", chapters={"sec-a"}) == "see {numref}`Chapter %s <sec-a>`"


@pytest.mark.parametrize(
    "text, message",
    [
        ("::: {.odd}\nx\n:::", "unknown div"),
        ("::: {#foo-x}\nx\n:::", "unknown div"),
        ("::: {#lem-a}\nx", "not closed"),
        ("x\n:::", "closes nothing"),
        ("{{< include x >}}", "shortcodes"),
        ("[see @knuth, p. 3]", "must be of the form"),
        ("[-@knuth]", "must be of the form"),
        ("half of\n% all", "must not begin with %"),
        ("(x)=\n# A", "must not begin with"),
        ("- a\n  $$\n  x\n  $$", "first column"),
        ("| a |\n|---|\n\n: C", "a caption ends"),
        ("- [ ] do", "task lists"),
        ("Title\n===", "headings begin with #"),
        ("[t]{.smallcaps}", "attributes of words"),
        ("see^[a note]", "inline notes"),
        ("~~no~~", "~ is not"),
        ("{numref}`lem-a`", "roles of MyST"),
        ("```{raw} html\nx\n```", "directives of MyST"),
        ("<div>\n@lem-a\n</div>", "no references in HTML"),
        ("::: {.proof name=sketch}\nx\n:::", "cannot read the attributes"),
        ("::: {.callout-note}\n::: {#lem-a}\nx\n:::\n:::", "must not stand inside"),
        ("::: {.proof}\nx\n## H\n:::", "stands first"),
        ("::: {#lem-kMeans}\nx\n:::", "lower-case"),
        ("$$ x $$", "line of its own"),
        ("# A {.odd}", "a heading may have"),
        (": C {#tbl-c}", "under no table"),
        ("::: {#lem-a}\nx\n:::\n::: {#lem-a}\nx\n:::", "a second time"),
        ('::: {.callout-tip collapse="yes"}\nx\n:::', "unknown div"),
        ("![alt](a.png)", "end the line with"),
    ],
)
def test_what_is_outside_the_subset_is_refused(text, message):
    with pytest.raises(BookError, match=f"^here: .*{message}"):
        translate(text)


def test_cell_options():
    cell = {
        "source": '#| label: fig-a\n#| fig-cap: "Cap: @lem-a"\n#| fig-alt: "Alt"\n#| code-fold: true\nplot()',
        "metadata": {},
    }
    quarto.code(cell, "here", Names(), None)
    assert cell["source"] == "plot()" and cell["metadata"]["tags"] == ["hide-input"]
    assert cell["metadata"]["mystnb"] == {
        "figure": {"name": "fig-a", "caption": "Cap: {numref}`lem-a`"},
        "image": {"alt": "Alt"},
        "code_prompt_show": "Code",
        "code_prompt_hide": "Code",
    }


def test_exported_cells_are_folded_to_a_line():
    cell = {"source": "#| export\nX = 1\n\n\ndef f():\n    pass", "metadata": {}}
    quarto.code(cell, "here", Names(), "imm")
    assert cell["metadata"]["tags"] == ["hide-input", "exported"]
    assert cell["metadata"]["exported"] == {"module": "imm", "names": ["X", "f"]}
    assert cell["metadata"]["mystnb"]["code_prompt_show"] == "imm · X, f · 5 lines"


@pytest.mark.parametrize(
    "source, line",
    [
        ("import ast", "m · imports · 1 line"),
        ("def _f(): pass\n_x = 1", "m · _f, _x · 2 lines"),
        ("a = b = 1\nc: int = 2\nd, e = 3, 4\nf = 5", "m · a, b, c, d, e and 1 more · 4 lines"),
        ("class A:\n    x = 1\n_y = 2", "m · A · 3 lines"),
    ],
)
def test_the_line_of_an_exported_cell(source, line):
    assert fold_exports.summary("m", source, ast.parse(source)) == line


@pytest.mark.parametrize(
    "source, message",
    [
        ("#| warning: false\n1", "unknown cell option"),
        ("#| echo: False\n1", "must be false or true"),
        ("#| hide: true\n1", "unknown cell option"),
        ("#| slow\n#| label: fig-a\n1", "must not stand beside"),
        ("#| slow\n1", "a slow cell says `#. slow: true`"),
        ("#| export\n#| code-fold: true\n1", "must not stand beside"),
        ("#| hide\n#| echo: false\n1", "must not stand beside"),
        ("#| slow: false\n1", "slow must be true"),
        ("#| eval: true\n#| eval: true\n1", "stands once"),
        ("#| eval: {a: b}\n1", "stands once"),
        ("#| eval: true\x85echo: true\n1", "stands once"),
        ("#| label: a: b\n1", "cannot read the cell options"),
        ("# | hide\n1", "begin with #"),
        ('#| code-summary: "x"\n1', "needs code-fold"),
        ("#| export\nx = 1", "names a module"),
        ("1\n#| hide", "at the top"),
        ("#| label: fig-a\n1", "needs a label"),
        ('#| fig-cap: "x"\n1', "need a label"),
        ('#| fig-cap: "x\n1', "cannot read the cell options"),
        ("#| default_exp m\n#| export\nx = = 1", "invalid syntax"),
    ],
)
def test_unknown_cell_options_are_refused(source, message):
    module = "m" if "default_exp" in source else None
    with pytest.raises(BookError, match=f"^here: .*{message}"):
        quarto.code({"source": source, "metadata": {}}, "here", Names(), module)


# A whole book, small.

CELLS = [
    (
        "markdown",
        "# One {#sec-one}\n\n::: {#lem-a}\n## First\nSo it is.\n:::\n::: {.proof}\nClear.\n:::\n\nSee @lem-a and [@knuth].",
    ),
    ("code", "print('out ' * 2)"),
]


@pytest.fixture
def book(tmp_path):
    "A function that builds a book of one chapter, with the given cells in place of its own."

    def make(*cells, chapters=("index.md", "nbs/1_one.ipynb")):
        root = tmp_path / "root"
        (root / "nbs").mkdir(parents=True, exist_ok=True)
        config = {
            "book": {"title": "T", "author": "A", "chapters": list(chapters)},
            "bibliography": "r.bib",
        }
        (root / "_quarto.yml").write_text(json.dumps(config))
        (root / "index.md").write_text("# Hello {.unnumbered}\n\nText.\n")
        (root / "r.bib").write_text(
            "@book{knuth,\n author = {Knuth, Donald}, title = {Book}, publisher = {AW}, year = {1984}}\n"
        )
        new = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
        nb = nbformat.v4.new_notebook(
            cells=[new[kind](source) for kind, source in [*CELLS, *cells]]
        )
        nbformat.write(nb, root / "nbs" / "1_one.ipynb")
        return build.build(root, tmp_path / "work", tmp_path / "site")

    return make


@pytest.fixture(autouse=True)
def environment():
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.slow
def test_a_book_is_built_and_a_bad_one_does_not_replace_it(book, tmp_path):
    text = (book().parent / "nbs" / "1_one.html").read_text()
    assert "out out" in text and 'id="lem-a"' in text and "Lemma 1.1" in text and "Knuth" in text
    before = {p: p.read_bytes() for p in (tmp_path / "site").rglob("*") if p.is_file()}
    bad = {
        ("markdown", "::: {.odd}\nx\n:::"): "unknown div",
        ("markdown", "{{< video x >}}"): "shortcodes",
        ("code", "#| tidy: true\n1"): "unknown cell option",
        ("markdown", "See @lem-b."): "@lem-b refers to nothing",
        ("markdown", "See [@lamport]."): r"\[@lamport\] is not in the bibliography",
        ("code", "x = 1\nx / 0"): "the cell fails(.|\n)*ZeroDivisionError",
        ("code", "import sys; print('careful', file=sys.stderr)"): "standard error",
        ("code", "import os; os._exit(1)"): "the cell fails",
        ("code", "x = = 1"): "invalid syntax",
        ("markdown", "[nowhere](nowhere.md)"): "nowhere.md",  # found by Sphinx
    }
    for cell, message in bad.items():
        for _ in range(2 if "nowhere" in message else 1):  # Sphinx must not forget what it refused
            with pytest.raises(BookError, match=f"nbs/1_one.ipynb, cell 3(.|\n)*{message}"):
                book(cell)
    with pytest.raises(BookError, match="_quarto.yml: the chapter nbs/2_two.ipynb does not exist"):
        book(chapters=("index.md", "nbs/2_two.ipynb"))
    assert {p: p.read_bytes() for p in (tmp_path / "site").rglob("*") if p.is_file()} == before


MORE = [
    (
        "markdown",
        "## Two {#sec-two}\n\n$$\nx\n$$ {#eq-x}\n\n| a |\n|---|\n| b |\n\n: Letters {#tbl-a}\n\n"
        "```\n::: {#lem-shown}\n@lem-a\n```",
    ),
    (
        "markdown",
        "::: {#exr-a}\n## Try it\nBy @lem-a show\n\n$$\na\nb\n$$\n\n- one\n:::\n\n"
        '::: {.callout-tip collapse="true"}\n## Solution\nUse @exr-a and @eq-x of @sec-one.\n:::\n\n'
        "::: {.callout-note}\nWell.\n:::",
    ),
    ("code", '#| code-fold: true\n#| code-summary: "Solution: a program"\nprint(2)'),
    (
        "code",
        '#| label: fig-w\n#| fig-cap: "Moves, see @tbl-a"\n#| fig-alt: "A button"\n'
        "from IPython.display import HTML\nHTML('<button>go</button>')",
    ),
    (
        "markdown",
        "See @exr-a, @fig-w, @sec-two, @sec-one, @tbl-a, @eq-x; as @knuth says, `@lem-a`.",
    ),
    ("code", "#| hide\nhidden = print('not seen')"),
    ("code", "#| hide\n#| default_exp claim"),
    ("code", "#| export\n" + "\n".join(f"{name} = 1" for name in kxbook.claim.__all__)),
]


@pytest.mark.slow
def test_exercises_solutions_and_widgets_are_shown(book):
    page = BeautifulSoup((book(*MORE).parent / "nbs" / "1_one.html").read_text(), "html.parser")
    assert page.find(id="exr-a").find(class_="statement-number").text == "Exercise 1.1"
    words = [a.text for a in page.select("article a.reference.internal") if "#" in a["href"]]
    for word in ("Exercise 1.1", "Fig. 1.1", "Figure 1.1", "Section 1.1", "Table 1.1", "(1.1)"):
        assert (word in words) == (word != "Fig. 1.1")
    boxes = page.select("details.admonition")
    assert [box.summary.text for box in boxes] == ["Solution"] and not boxes[0].has_attr("open")
    assert [box.find("p", class_="admonition-title").text for box in page.select("div.admonition")]
    folds = page.select("details.code-fold")
    assert folds[0].summary.text == "Solution: a program" and len(folds) == 2
    assert folds[1].summary.text.startswith("claim · KINDS, ERRATUM, PREFIXES, BADGES, claim")
    assert folds[0].find_next(class_="output").text.strip() == "2"
    assert page.find("figure", id="fig-w").button.text == "go"
    assert "not seen" not in page.text and page.select(".tag_exported p.exported a")


@pytest.mark.slow
def test_the_notebook_to_take_away_is_readable(book, tmp_path):
    book(*MORE)
    nb = nbformat.read(tmp_path / "site" / "_sources" / "nbs" / "1_one.ipynb", 4)
    nbformat.validate(nb)
    texts = [cell.source for cell in nb.cells if cell.cell_type == "markdown"]
    text = "\n\n".join(texts)
    for part in (
        "# 1 One\n\n> **Lemma 1.1** · First\n>\n> So it is.\n\n*Proof.*\nClear.\n∎",
        "See Lemma 1.1 and (Knuth, 1984).",
        "## 1.1 Two\n\n$$\nx\n\\tag{1.1}\n$$",
        "| b |\n\n**Table 1.1.** Letters",
        "```\n::: {#lem-shown}\n@lem-a\n```",
        "> **Exercise 1.1** · Try it\n>\n> By Lemma 1.1 show\n>\n> $$a b$$\n>\n> - one",
        "<details><summary>Solution</summary>\n\nUse Exercise 1.1 and (1.1) of Chapter 1.\n\n</details>",
        "> **Note**\n>\n> Well.",
        "**Figure 1.1.** Moves, see Table 1.1",
        "See Exercise 1.1, Figure 1.1, Section 1.1, Chapter 1, Table 1.1, (1.1); as Knuth (1984) says, `@lem-a`.",
    ):
        assert part in text, text
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    assert code[0].outputs[0].text == "out out \n" and not any("#|" in c.source for c in code)
    hidden = [c.metadata for c in code if c.source.startswith("hidden")]
    assert hidden == [{"jupyter": {"source_hidden": True}}]
    build.execute(nb, "nbs/1_one.ipynb", tmp_path)  # it runs elsewhere


@pytest.mark.slow
def test_the_same_book_again_is_the_same_and_a_removed_chapter_is_gone(book, tmp_path):
    def pages():
        found = {
            p.relative_to(tmp_path): p.read_text() for p in (tmp_path / "site").rglob("*.html")
        }
        return {
            p: re.sub(r"\?v=\w+", "", text) for p, text in found.items()
        }  # MyST-NB stamps its style sheet from the second time on

    book()
    before = pages()
    book()
    assert pages() == before
    text = (
        book(("markdown", "More words."), ("code", "print('final words')")).parent
        / "nbs"
        / "1_one.html"
    ).read_text()
    assert text.index("out out") < text.index("More words.") < text.index("final words\n")
    book(chapters=("index.md",))
    assert not list((tmp_path / "site").rglob("1_one*"))


def test_kernels_have_loaded_what_most_chapters_need(tmp_path):
    "They are copies of one process, and know nothing of each other."
    code = "import os, sys\nprint('kxbook.search' in sys.modules, 'mine' in globals())\nmine = 1"
    for _ in range(2):
        nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
        ((output,),) = build.execute(nb, "n", tmp_path)
        assert output.text == "True False\n"
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import os; os._exit(3)")])
    with pytest.raises(build.BookError, match="DeadKernelError"):
        build.execute(nb, "n", tmp_path)


def test_a_markdown_cell_more_does_not_move_the_outputs(tmp_path, capsys):
    code = nbformat.v4.new_code_cell("print('out')")
    for cells in ([code], [nbformat.v4.new_markdown_cell("Words."), code]):
        (tmp_path / "nbs").mkdir(exist_ok=True)
        name = "nbs/1_one.ipynb"
        done = build.run_all(
            {name: nbformat.v4.new_notebook(cells=cells)}, [name], tmp_path, tmp_path
        )
        assert ("running" in capsys.readouterr().out) == (cells[0] is code)  # the second time not
        assert done[name].cells[-1].outputs[0].text == "out\n"
    assert len(list((tmp_path / "outputs").iterdir())) == 1


def test_an_interrupted_build_goes_on_where_it_was(tmp_path, capsys):
    def notebooks(second):
        made = {"1": "print('one')", "2": second}
        cells = {name: [nbformat.v4.new_code_cell(source)] for name, source in made.items()}
        return {f"nbs/{name}.ipynb": nbformat.v4.new_notebook(cells=c) for name, c in cells.items()}

    (tmp_path / "nbs").mkdir()
    order = ["nbs/1.ipynb", "nbs/2.ipynb"]
    with pytest.raises(BookError, match="2.ipynb, cell 1"):
        build.run_all(notebooks("1 / 0"), order, tmp_path, tmp_path)
    capsys.readouterr()
    done = build.run_all(notebooks("print('two')"), order, tmp_path, tmp_path)
    assert list(done) == order and done[order[1]].cells[0].outputs[0].text == "two\n"
    said = capsys.readouterr().out
    assert "running nbs/2.ipynb" in said and "running nbs/1.ipynb" not in said
    assert re.search(r"\d\.\d s  nbs/2\.ipynb", said)


def test_outputs_are_kept_until_something_they_depend_on_changes(tmp_path):
    root = tmp_path
    (root / "kxbook").mkdir()
    (root / "kxbook" / "a.py").write_text("x = 1\n")
    (root / "kxbook" / "b.py").write_text("from .a import x\n")
    (root / "kxbook" / "c.py").write_text("")
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("from kxbook.b import x")])
    first = build.fingerprint(nb, "n", root)
    (root / "kxbook" / "c.py").write_text("y = 2\n")
    nb.cells.append(nbformat.v4.new_markdown_cell("More words."))
    assert build.fingerprint(nb, "n", root) == first
    (root / "kxbook" / "a.py").write_text("x = 2\n")
    second = build.fingerprint(nb, "n", root)
    nb.cells[0].metadata["tags"] = ["skip-execution"]
    assert len({first, second, build.fingerprint(nb, "n", root)}) == 3


@pytest.mark.parametrize(
    "source, expected",
    [
        ("from kxbook import Kernel", ["kernel"]),
        ("import kxbook", ["*"]),
        ("import kxbook.data as d", ["data"]),
        ("from kxbook import plot", ["plot"]),
        ("import numpy", []),
    ],
)
def test_imports_of_the_package_are_seen(source, expected):
    assert list(build.package_imports(build.parse(source, "here"))) == expected


@pytest.mark.slow
def test_an_interrupted_publication_is_repaired(book, tmp_path):
    book()
    (tmp_path / "site").rename(tmp_path / "site.old")  # killed between the two renames
    with pytest.raises(BookError):
        book(("markdown", "::: {.odd}\nx\n:::"))
    book()
    assert (tmp_path / "site" / "index.html").exists() and not (tmp_path / "site.old").exists()


def read_by_quarto(source):
    "The options of a cell as Quarto reads them: the lines at its top that begin with #|, joined, as YAML."
    lines = [re.match(r"#\s*\| ?(.*)", line) for line in source.split("\n")]
    top = lines[: lines.index(None)] if None in lines else lines
    return yaml.safe_load("\n".join(line[1] for line in top)) if top else {}


@each_notebook
def test_quarto_can_read_the_options_of_every_cell(path):
    "A mapping; or words of nbdev alone, which Quarto passes over."
    for i, cell in enumerate(nbformat.read(path, 4).cells, 1):
        if cell.cell_type == "code":
            try:
                found = read_by_quarto(cell.source)
            except yaml.YAMLError as e:
                raise AssertionError(f"{path.name}, cell {i}: {e}") from None
            words = set(found.split()) if isinstance(found, str) else set()
            assert isinstance(found, dict) or words & {"export", "exporti", "hide"}, f"cell {i}"


@pytest.mark.parametrize(
    "options",
    [
        "#| slow\n#| label: fig-a",  # seven cells of the first version
        "#| export\n#| code-fold: true",
        "#| hide\n#| echo: false",
        "#| fig-cap: One: two\n#| label: fig-a",
        '#| fig-cap: "One',
    ],
)
def test_the_test_above_refuses_what_quarto_refuses(options):
    with pytest.raises(yaml.YAMLError):
        read_by_quarto(f"{options}\nplot()")
    with pytest.raises(BookError):
        quarto.options(f"{options}\nplot()", "here")


@each_notebook
def test_no_command_of_a_formula_has_lost_its_backslash(path):
    "As it happens where \\frac or \\boldsymbol goes through a string of Python."
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "markdown":
            lost = re.search(
                r"[\0-\t\v-\x1f]|(?<![\\\w])(rac|oldsymbol|inom|ar|op|ext)[{\d]", cell.source
            )
            assert not lost, cell.source[max(lost.start() - 40, 0) : lost.end() + 20]


@each_notebook
def test_quarto_sees_what_sphinx_sees(path, monkeypatch):
    "The filter that Quarto runs over each notebook drops hidden cells and nothing else, as our translation does."
    text = path.read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT / "nbs")
    filters = yaml.safe_load((ROOT / "_quarto.yml").read_text())["ipynb-filters"]
    assert filters == ["../site/fold_exports.py", "../site/show_badges.py", "nbdev_filter"]
    assert all(Path(own).exists() for own in filters[:2])
    folded = json.loads(text)
    fold_exports.fold(folded["cells"])
    filtered = nbdev_filter(json.dumps(folded), printit=False)

    def shown(notebook):
        sources = ["".join(c["source"]) for c in json.loads(notebook)["cells"]]
        return [
            "\n".join(line for line in s.split("\n") if not line.startswith("#|")).strip()
            for s in sources
            if not s.startswith("#| hide")
        ]

    assert shown(filtered) == shown(text)
    assert not [
        c for c in json.loads(filtered)["cells"] if "".join(c["source"]).startswith("#| hide")
    ]
    nb = nbformat.reads(text, 4)
    quarto.notebook(nb, path.name, Names())
    lines = [c.metadata.get("mystnb", {}).get("code_prompt_show") for c in nb.cells]
    cells = [c for c in json.loads(filtered)["cells"] if c["cell_type"] == "code"]
    options = [read_by_quarto("".join(c["source"])) for c in cells]
    assert [o.get("code-summary", "Code") for o in options if o.get("code-fold")] == (
        [line for line in lines if line]
    )
    assert [o["classes"] for o in options if "classes" in o] == (
        ["tag_exported"] * sum("exported" in c.metadata for c in nb.cells)
    )
    removed = [i for i, c in enumerate(nb.cells) if "remove-cell" in c.metadata.get("tags", [])]
    assert removed == [
        i
        for i, c in enumerate(json.loads(text)["cells"])
        if "".join(c["source"]).startswith("#| hide")
    ]


def test_the_filter_runs_as_quarto_runs_it():
    path = ROOT / "nbs" / "705_claim.ipynb"
    command = [sys.executable, "../site/fold_exports.py"]
    done = subprocess.run(command, cwd=path.parent, input=path.read_bytes(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert "claim · claim ·" in done.stdout.decode() and json.loads(done.stdout)["cells"]


def test_the_two_renderers_do_not_meet():
    "Each has a folder of its own, which git does not keep and `make clean` removes."
    config = yaml.safe_load((ROOT / "_quarto.yml").read_text())
    folder = config["project"]["output-dir"]
    ignored = (ROOT / ".gitignore").read_text().split()
    clean = (ROOT / "Makefile").read_text().rpartition("clean:")[2].split()
    assert folder != "_book" and {f"{folder}/", ".quarto/", "**/*.quarto_ipynb"} <= set(ignored)
    assert {folder, ".quarto", "_book", "nbs/*.quarto_ipynb"} <= set(clean)
    assert config["project"]["post-render"] == "nbdev_clean"
    rc = re.search(r"^MATPLOTLIBRC=(.*)$", (ROOT / "_environment").read_text(), re.M)[1]
    assert (ROOT / "nbs" / rc).exists() and (ROOT / config["format"]["html"]["css"]).exists()


def test_one_list_of_kinds():
    from kxbook.claim import PREFIXES

    assert set(quarto.STATEMENTS) == {*PREFIXES, "exr"}  # an exercise claims nothing
    lab = (ROOT / "site" / "lab" / "kxbook" / "static" / "divs.js").read_text(encoding="utf-8")
    assert dict(re.findall(r'(\w+): "(\w+)"', re.search(r"WORDS = \{(.*?)\}", lab, re.S)[1])) == (
        quarto.STATEMENTS
    )


def test_every_chapter_is_in_the_book():
    _, parts = build.contents(ROOT)
    assert {p.name for p in (ROOT / "nbs").glob("*.ipynb")} == {
        Path(p).name for _, paths in parts for p in paths
    } - {"index.md"}
