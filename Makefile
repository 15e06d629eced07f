# `make` lists the targets. Each one builds .venv from the pins in constraints/dev.txt the first time it is needed.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
ARGS ?=

.PHONY: help demo test test-all check format bench figures docs pins clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 16

$(READY): pyproject.toml constraints/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "The pins need Python 3.11 or newer; this is " + sys.version.split()[0] + ". Say which: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints/dev.txt $(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY) ## the first thing to run: four poolings trained, then tested under outliers
	$(BIN)/python examples/demo.py $(ARGS)

test: $(READY) ## the tests that take seconds, four at a time (ARGS="-k name" for some of them)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 $(ARGS)

test-all: $(READY) ## every test, the slow ones too
	$(BIN)/python -m pytest -m "" $(ARGS)

check: $(READY) docs ## style, types, rooms, house rules, and that the pages build
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/house

format: $(READY) ## mend what can be mended by machine
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) ## every benchmark, one after the other; docs/results/speed is what the pages show
	@shopt -s nullglob; for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script --out docs/results/speed/$$(basename $$script .py) $(ARGS); done

figures: $(READY) ## run every example anew; docs/figures is what the pages show
	@for script in $$(grep -l 'present(study' examples/*.py); do echo "== $$script"; $(BIN)/python $$script --out docs/figures $(ARGS); done

docs: $(READY) ## the site, in site/; opens from disk, needs no network; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # with --quiet it would not count its warnings
	@echo "site/index.html"

pins: $(READY) ## write constraints/dev.txt anew from what .venv holds
	@{ sed -n '/^#/p' constraints/dev.txt; $(BIN)/python -m pip freeze --exclude-editable | sed -E 's/\+cpu$$//'; } > constraints/dev.tmp
	@mv constraints/dev.tmp constraints/dev.txt

clean: ## remove what was built; keeps .venv and runs
	rm -rf build dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
