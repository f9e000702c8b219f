# make test       set up .venv (first time) and run every test: notebooks and tests/
# make test-all   the same, and the slow cells
# make book       render the book
# make lab        JupyterLab on the notebooks
# make sync       export the notebooks into kxbook/ and clean them: after every edit
# make picture    redraw the README's picture from the README's example

PYTHON ?= python3
BIN    := .venv/bin
export MPLBACKEND := agg

.PHONY: test test-all book lab sync picture clean
test: .venv/ready
	$(BIN)/python -m pytest

test-all: .venv/ready
	$(BIN)/python -m pytest -m ""

# Nothing has changed: nothing to do but to say where the book is.
book: _book/index.html
	@echo "The book is at _book/index.html: open file://$(CURDIR)/_book/index.html"

_book/index.html: .venv/ready _quarto.yml index.md $(wildcard nbs/*.ipynb kxbook/*.py kxbook/datasets/* site/*.* site/matplotlibrc site/static/*)
	$(BIN)/python site/build.py

lab: .venv/ready
	$(BIN)/jupyter lab --notebook-dir=nbs --ContentsManager.pre_save_hook=nbdev.clean.clean_jupyter

sync: .venv/ready
	$(BIN)/nbdev_export
	$(BIN)/nbdev_clean

picture: .venv/ready
	$(BIN)/python tests/test_readme.py site/readme.png

# One environment for all of it. The stamp is written last: an interrupted installation is repeated.
.venv/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kxbook needs Python 3.11 or newer: run make PYTHON=python3.11")'
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

clean:
	rm -rf .venv _book .book build dist *.egg-info .pytest_cache .hypothesis
