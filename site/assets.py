"""What the pages need beside our own files: KaTeX, which sets the formulas, and two fonts. All come from packages of Python."""

import shutil
from importlib.metadata import files

from fontTools.subset import Options, Subsetter, parse_unicodes
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

PACKAGES = ("md-viewer-py", "fontpkg-literata", "fontpkg-jetbrains-mono")
FONTS = {  # name on our pages: package, file, layout features, axes; ligatures would hide what is typed in code
    "text": ("fontpkg-literata", "Literata[opsz,wght].ttf", "kern liga lnum tnum ccmp locl mark", {"opsz": 14}),
    "text-italic": ("fontpkg-literata", "Literata-Italic[opsz,wght].ttf", "kern liga lnum tnum ccmp locl mark", {"opsz": 14}),
    "code": ("fontpkg-jetbrains-mono", "JetBrainsMono[wght].ttf", "ccmp locl mark", {}),
}  # fmt: skip
LETTERS = "20-7E,A0-17F,2B0-2FF,300-36F,370-3FF,2000-206F,2070-209F,20AC,2100-218F,2190-22FF,2500-25FF,2713,2717"


def file_of(package, name):
    "Where a file of an installed package is."
    return next(f.locate() for f in files(package) if f.name == name)


def small_font(package, name, features, axes, target):
    "A font with the letters and weights that a book needs, a tenth of its size."
    options = Options(flavor="woff2", layout_features=features.split())
    font = TTFont(file_of(package, name), recalcTimestamp=False)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=parse_unicodes(LETTERS))
    subsetter.subset(font)
    font = instantiateVariableFont(font, axes | {"wght": (400, 700)})
    font.flavor = "woff2"
    font.save(target)


def write_assets(app):
    "Put fonts and licences beside the style sheets; the folder is emptied when a package changes, and until then they stay."
    static = app.outdir / "_static"
    for folder in ("fonts", "licences"):
        (static / folder).mkdir(parents=True, exist_ok=True)
    for font in file_of("md-viewer-py", "katex.min.css").parent.glob("fonts/*.woff2"):
        shutil.copy(font, static / "fonts")
    for name, (package, file, features, axes) in FONTS.items():
        target = static / "fonts" / f"{name}.woff2"
        if not target.exists():
            small_font(package, file, features, axes, target)
        shutil.copy(file_of(package, "LICENSE"), static / "licences" / f"{package}.txt")


def setup(app):
    app.connect("builder-inited", write_assets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
