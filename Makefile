# Every target works alone on a fresh clone: the environment is made on first use and reused afterwards.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Policies whose kernels take the longest to compile again: with bounds checks by `make test-bounds` only.
CHECKED_ELSEWHERE := --ignore=tests/paper/test_faster_cucb.py --ignore=tests/policies/test_cts.py

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-bounds bench bench-quick docs lint format clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP)  ## CUCB on a large instance of every matroid class: a table and demo.png
	@$(BIN)/semibandit demo

test: $(STAMP)  ## lint and the test suite (under 12 minutes on 2 cores)
	@$(BIN)/ruff check src tests docs
	@$(BIN)/ruff format --check src tests docs
	@$(BIN)/mypy
	@$(BIN)/pytest -q -n 2 --dist loadfile -m 'not slow'
	@NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 $(BIN)/pytest -q -n 2 --dist loadfile -m 'bounds and not slow' $(CHECKED_ELSEWHERE)

test-slow: $(STAMP)  ## long runs and statistics
	@$(BIN)/pytest -q -n 2 --dist loadfile -m slow

test-bounds: $(STAMP)  ## stress tests with compiled bounds checks only
	@NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 $(BIN)/pytest -q -n 2 --dist loadfile -m 'bounds and not slow'

bench: $(STAMP)  ## the whole benchmark (a quarter of an hour, idle machine); writes docs/performance.*
	@$(BIN)/semibandit bench --suite --json docs/performance.json
	@$(BIN)/semibandit bench --from docs/performance.json --report docs/performance.md --plot docs/performance.png

bench-quick: $(STAMP)  ## a short benchmark on the terminal
	@$(BIN)/semibandit bench --suite --quick

docs: $(STAMP)  ## build the documentation, warnings are errors
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

lint: $(STAMP)  ## ruff and mypy --strict
	@$(BIN)/ruff check src tests docs
	@$(BIN)/ruff format --check src tests docs
	@$(BIN)/mypy

format: $(STAMP)  ## rewrite the sources in the project's format
	@$(BIN)/ruff check --fix src tests docs
	@$(BIN)/ruff format src tests docs

clean:  ## remove the environment and everything built
	rm -rf $(VENV) docs/_build build dist .pytest_cache .mypy_cache .ruff_cache
