"""Sphinx configuration. Title, chapters and bibliography come from _quarto.yml, through build.py."""

import json
import os
import sys
from pathlib import Path

sys.modules["rfc3987_syntax"] = None  # jsonschema goes without: its grammars take seconds to load
SITE = Path(__file__).parent
sys.path.insert(0, str(SITE))
from assets import file_of  # noqa: E402
from quarto import STATEMENTS  # noqa: E402

BOOK = json.loads(os.environ["BOOK"])
KATEX = [str(file_of("md-viewer-py", f"katex.min.{kind}")) for kind in ("js", "css")]

project, author = BOOK["title"], BOOK["author"]
copyright = author
html_title = project
language = "en"

extensions = [
    "myst_nb",
    "assets",
    "statements",
    "glossary",
    "exported",
    "takeaway",
    "sphinxcontrib.bibtex",
    "sphinx_multitoc_numbering",
    "sphinx_copybutton",
    "sphinx.ext.mathjax",
]
nb_execution_mode = "off"  # build.py has run the notebooks
nb_merge_streams = True
nb_render_markdown_format = "myst"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 0
myst_dmath_allow_space = myst_dmath_allow_digits = False  # pandoc's rule for $
suppress_warnings = ["mystnb.mime_priority"]

bibtex_bibfiles = [BOOK["bibliography"]]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"

numfig = True
math_numfig = True
numfig_secnum_depth = 1
math_eqref_format = "({number})"
numfig_format = {"section": "Section %s", "figure": "Figure %s", "table": "Table %s"} | {
    k: f"{word} %s" for k, word in STATEMENTS.items()
}

html_theme = "sphinx_book_theme"
html_theme_options = {
    "navbar_persistent": [],
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "use_download_button": True,
    "use_fullscreen_button": False,
    "home_page_in_toc": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
templates_path = [str(SITE / "templates")]
html_static_path = [str(SITE / "static"), *KATEX]
html_css_files = [
    "katex.min.css",
    "book.css",
    "statements.css",
    "figures.css",
    "exported.css",
    "print.css",
]
html_js_files = [(name, {"defer": "defer"}) for name in ("book.js", "exported.js")]
html_domain_indices = False  # the list of modules is in the sidebar
html_show_search_summary = False  # would fetch pages, which file:// forbids
html_copy_source = True
html_show_copyright = False
html_show_sphinx = False
html_last_updated_fmt = None
# Sphinx's extension for MathJax writes the formulas into the pages; KaTeX, a tenth of its size, and book.js set them there
mathjax_path = "katex.min.js"
myst_update_mathjax = False
copybutton_selector = "div.cell_input pre, div.highlight-sh pre, div.highlight-python pre"
