# make test       set up .venv (first time) and run every notebook and every module's tests
# make test-all   everything: slow cells, long profiles, every page of the book in a browser
# make quick      what a change touches: its notebooks, their modules' tests, ledger, sync; since a commit: make quick SINCE=main
# make coverage   every test, and the share of the package's lines that they run, which must be 95% or more
# make test-matrix  the tests of the package with other Pythons, the oldest and the newest libraries
# make trust      all that takes hours, with its counts, into tools/trust.json; one part: make trust ONLY=fuzz
# make book       render the book
# make pdf        the whole book as one file, _book/book.pdf; needs Chromium and its driver
# make lab        JupyterLab on the notebooks, with statements as the book shows them; options: make lab LAB="--no-browser --allow-root"
# make bench      measure speed, memory and quality beside others, into benchmarks/results.json; one suite: make bench ONLY=sums
# make field      all rules against each other at the same number of leaves, into benchmarks/field.json; some of them: make field ONLY=kauri,KernelTree
# make sync       export the notebooks into kxbook/ and clean them: after every edit
# make format     ruff's format for code, oxfmt's for the page of a report, one sentence a line for prose
# make lint       what `make format` and the tests would complain about, in seconds
# make hooks      git runs format and sync before a commit, and merges notebooks cell by cell
# make dist       wheel and source archive, into dist/; see RELEASING.md
# make picture    redraw the README's pictures from the README's examples; needs Chromium and its driver
# make clean      remove all of it, for instance after the folder has moved

PYTHON ?= python3
BIN    := .venv/bin
SINCE  ?= HEAD
# Every process would compile everything again, tests above all: what it writes stays in .venv and in __pycache__.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: test test-all quick coverage test-matrix trust book pdf lab bench field sync format lint hooks dist picture clean
test: .venv/ready
	$(BIN)/python -m $(COVERED)pytest

test-all: test
	$(BIN)/python -m $(COVERED)pytest -m slow

quick: .venv/ready
	$(BIN)/python tools/quick.py $(SINCE)

# Compiled functions cannot be watched, so the properties of their modules run once more without compilation.
coverage: .venv/ready
	$(BIN)/python -m coverage erase
	$(MAKE) test-all COVERED="coverage run -m "
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -m pytest tests/test_properties.py -k "imm or codes or sweep or growth or monotone or two_leaves"
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --show-missing --skip-covered --fail-under=95

test-matrix: .venv/ready
	$(BIN)/python -m nox

trust: .venv/ready
	$(BIN)/python tools/trust.py $(ONLY)

# Nothing has changed: nothing to do but to say where the book is.
book: _book/index.html
	@$(BIN)/python -c 'from pathlib import Path; print("The book is at _book/index.html: open", Path("_book/index.html").resolve().as_uri())'

_book/index.html: .venv/ready _quarto.yml index.md $(wildcard nbs/*.ipynb kxbook/*.py kxbook/report/*.* kxbook/datasets/* benchmarks/results.json benchmarks/gap.json tools/trust.json site/*.* site/matplotlibrc site/static/*)
	$(BIN)/python site/build.py

pdf: book
	$(BIN)/python tools/pdf.py

lab: .venv/ready
	cd nbs && ../$(BIN)/python -m jupyter lab --ContentsManager.pre_save_hook=nbdev.clean.clean_jupyter --LabApp.extra_labextensions_path="$(CURDIR)/site/lab" $(LAB)

bench: .venv/bench
	$(BIN)/python benchmarks/run.py $(ONLY)

field: .venv/ready .venv-field/ready
	$(BIN)/python benchmarks/field.py $(if $(ONLY),--only "$(ONLY)")

sync: .venv/ready
	$(BIN)/python tools/sync.py

format: .venv/ready
	$(BIN)/python tools/prose.py
	$(BIN)/ruff check --quiet --fix
	$(BIN)/ruff format --quiet
	$(BIN)/oxfmt kxbook/report/page.js kxbook/report/page.css

lint: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/oxlint kxbook/report
	$(BIN)/oxfmt --check kxbook/report/page.js kxbook/report/page.css
	$(BIN)/python tools/prose.py --check
	$(BIN)/python -m mypy
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

hooks: .venv/ready
	git config --local include.path ../.gitconfig
	$(BIN)/pre-commit install

dist: .venv/ready
	$(BIN)/python tools/release.py $(TAG) $(REPOSITORY)

picture: .venv/ready
	$(BIN)/python tests/test_readme.py

# One environment for all of it. The stamp is written last: an interrupted installation is repeated. Modules are compiled afterwards, by all cores.
.venv/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kxbook needs Python 3.11 or newer: run make PYTHON=python3.11")'
	@echo "Setting up .venv: about 1 GB, a minute or two."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-compile --editable ".[test]"
	@$(BIN)/python -m compileall -qq -j 0 .venv/lib || true
	@touch $@

# The rivals that only the benchmarks need.
.venv/bench: .venv/ready
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable ".[test,bench]"
	@touch $@

# Packages of others may want other versions of the libraries. One that cannot be installed is left out: its recorded rows are kept.
.venv-field/ready:
	@$(PYTHON) -m venv --clear .venv-field
	@echo '*' > .venv-field/.gitignore
	@for package in gemclus pystreed; do \
		PYTHONWARNINGS=ignore .venv-field/bin/python -m pip install --quiet $$package || echo "$$package cannot be installed here: its rows are kept."; \
	done
	@touch $@

clean:
	rm -rf .venv .venv-field .nox .coverage* .mutants.json _book .book _book_quarto .quarto *.quarto_ipynb nbs/*.quarto_ipynb build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
