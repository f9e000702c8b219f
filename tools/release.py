"""Wheel and source archive of the last commit, in dist/.

    make dist                                                          # to try it
    make dist TAG=v0.2.0 REPOSITORY=https://example.com/owner/kxbook   # as the release workflow does

With a tag, version and changelog must agree with it. With a repository, its address takes the place of https://example.org/kxbook in what is built.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACEHOLDER = "https://example.org/kxbook"


def check(version, tag, changelog):
    "Raise ValueError unless a tag is that of the version, and the changelog tells what is new in it."
    if tag != f"v{version}":
        raise ValueError(f"The tag is {tag}, but settings.ini says version = {version}.")
    heading = re.search(rf"^## {re.escape(version)} \((.*)\)$", changelog, re.M)
    if not heading or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", heading[1]):
        raise ValueError(f"CHANGELOG.md must have a heading: ## {version} (year-month-day)")


def main(tag="", repository=""):
    version = re.search(
        r"^version = (.*)$", (ROOT / "settings.ini").read_text(encoding="utf-8"), re.M
    )[1]
    if tag:
        check(version, tag, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True
        ).stdout
        subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
        for name in ("pyproject.toml", "CITATION.cff") if repository else ():
            path = Path(folder) / name
            path.write_text(
                path.read_text(encoding="utf-8").replace(PLACEHOLDER, repository.rstrip("/")),
                encoding="utf-8",
            )
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", ROOT / "dist", folder],
            check=True,
        )


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ValueError as e:
        sys.exit(str(e))
