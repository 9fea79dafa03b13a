# The two commands of the README. Each makes .venv, installs what it needs, and runs; the second time is quick.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check

# Tests start Python again and again: what it has read once, it keeps beside the source, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs test test-quick test-slow fuzz lint style types warm clean paper-smoke paper-docs
demo: $(VENV)/.installed
	@$(VENV)/bin/tessella demo

# Tests run in as many processes as there are cores, at most 8. One that has run out of tests takes some from another.
PYTEST := $(VENV)/bin/python -m pytest -q --numprocesses auto --maxprocesses 8 --dist worksteal

# lint, and every test that is not marked slow: less than five minutes on two cores, once compiled code is on disk.
# Types are checked while tests run.
test: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory --jobs 2 style warm
	@$(MAKE) --no-print-directory --jobs 2 types test-quick

test-quick: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow"

# the tests marked slow: rates over thousands of runs, further seeds, the paper's experiment, long counts
test-slow: $(VENV)/.installed-dev
	$(PYTEST) -m slow

# networks that are meant to break claims, every verb against rational arithmetic: make fuzz SECONDS=600, or make fuzz SEED=1234 for one of them
SECONDS ?= 60
fuzz: $(VENV)/.installed-dev
	PYTHONPATH=src:tests $(VENV)/bin/python -m fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(NOTES),--notes $(NOTES))

# the paper's experiment, every step, on small images: a few minutes
paper-smoke: $(VENV)/.installed-dev
	$(VENV)/bin/python -m experiments.paper smoke

# the page of the docs, from the committed results
paper-docs: $(VENV)/.installed-dev
	$(VENV)/bin/python -m experiments.paper report --results experiments/paper/results -o report.html \
		--figures docs/paper --formats png --markdown docs/paper.md

# the pages: build/docs/index.html, which needs no server. Warnings are errors, and links inside are followed.
docs: $(VENV)/.installed-dev
	$(VENV)/bin/sphinx-build -q -E -W --keep-going -b html -d build/doctrees docs build/docs
	@echo "build/docs/index.html"

lint: style types

style: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports

# Sources that were found right are not looked at again until one of them, or a package, changes.
types: $(VENV)/.types-right

$(VENV)/.types-right: $(VENV)/.installed-dev pyproject.toml $(shell find src -name '*.py')
	$(VENV)/bin/basedpyright
	@touch $@

# all compiled code, at once and on all cores; otherwise every process of tests compiles what it needs, and others wait or do the same
warm: $(VENV)/.installed-dev
	$(VENV)/bin/tessella warm

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing Tessella into $(VENV) (once, about a minute) ..."
	@$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing Tessella and what its tests need into $(VENV) (once, a few minutes) ..."
	@$(PIP) install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	@touch $(VENV)/.installed $@

clean:
	rm -rf $(VENV) build smoke .pytest_cache .ruff_cache .hypothesis
