# Every target works alone on a fresh clone: the environment is made on first use and reused afterwards.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
TOOLS := $(VENV)/.tools
STAMP := $(VENV)/.installed
# Tests and the build start hundreds of processes: what Python makes of the sources is kept, in one place.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(abspath $(VENV))/bytecode

CODE := src tests docs benchmarks hatch_build.py

# The interpreters that `make test-pythons` tries; those that are not found are passed over.
PYTHONS := 3.11 3.12 3.13

# What `make test` checks the bounds of; `make test-bounds` does so for everything.
CHECKED := tests/compiled tests/matroids tests/engines/test_answer.py tests/policies/test_cucb.py

# What tests load besides the package: read once while kernels are compiled, and not by every process that tests.
LOADED := hypothesis, matplotlib.pyplot, networkx, numba, pandas, polars, psycopg, pytest, ray, scipy.integrate, scipy.stats, sphinx.application, starlette.applications, uvicorn, xdist

# Processes test side by side: threads of linear algebra in each of them would only wait for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -p no:schemathesis -n 2

.DEFAULT_GOAL := help
.PHONY: help native read demo test test-fast test-jit test-slow test-bounds test-pythons test-oldest postgres coverage bench bench-quick kernels docs lint format clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

# What the build needs, first: kernels are then compiled while the rest is installed, if make may do two things at once.
$(TOOLS): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) 'hatchling>=1.27' editables 'numba>=0.60' 'numpy>=1.26'
	@touch $@

$(STAMP): $(TOOLS) hatch_build.py
	@SEMIBANDIT_KERNELS=apart $(PIP) --no-build-isolation -e '.[dev]'
	@touch $@

native: $(TOOLS)
	@PYTHONPATH=src $(BIN)/python -m semibandit.compiled.ahead --if-needed

# Only to be early: what is missing here is read by whoever needs it.
read: $(STAMP)
	@-$(BIN)/python -c 'import $(LOADED)' 2>/dev/null
	@-$(BIN)/python -m compileall -q src tests benchmarks

kernels: native $(STAMP)  ## compile the kernels ahead of time again, if their sources changed

demo: kernels  ## CUCB on a large instance of every matroid class: a table and demo.png
	@$(BIN)/semibandit demo

# Bounds are checked beside the rest, by one process.
test:  ## lint and the test suite (3.5 minutes on 2 fast cores in a fresh clone, a third of it install, kernels and lint; some three times that on slow ones)
	@$(MAKE) --no-print-directory -j 2 kernels read lint postgres
	@$(MAKE) --no-print-directory test-jit >$(VENV)/bounds.log 2>&1 & bounds=$$!; \
	  $(MAKE) --no-print-directory test-fast; fast=$$?; \
	  wait $$bounds; bounds=$$?; cat $(VENV)/bounds.log; exit $$((fast + bounds))

# Some tests start a PostgreSQL server of their own; without one they are skipped and say so.
postgres:  ## install the PostgreSQL server that tests start, if it is missing (Debian, Ubuntu; as root)
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null 2>&1 || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && apt-get update -qq >/dev/null 2>&1; \
	    [ "$$(id -u)" = 0 ] && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null 2>&1; } || \
	  echo "PostgreSQL is missing (apt-get install postgresql): the tests that need it will be skipped"

# Some tests wait for servers and clocks, so three processes keep two cores busy. Kernels that are not compiled ahead
# are few here: most of their time is the compiler's. Asserts are as Python has them, which spares each process the
# rewriting of all test files; what fails is run once more and says what was compared.
test-fast: kernels postgres
	@NUMBA_OPT=1 $(PYTEST) -n 3 --dist loadfile -m 'not slow' --assert=plain || \
	  { echo "what failed, once more:"; NUMBA_OPT=1 $(PYTEST) -n 0 --lf --lfnf none -m 'not slow'; exit 1; }

# A subset by the compiler and with bounds checks: what all engines share, and decisions of those that compile fastest.
# One process, as two would compile the same kernels.
test-jit: kernels
	@NUMBA_BOUNDSCHECK=1 NUMBA_OPT=0 $(PYTEST) -n 0 -p no:cacheprovider -m 'bounds and not slow' \
	  -k 'not graphic and not transversal and not laminar and not contract' $(CHECKED)

test-slow: kernels postgres  ## long runs and statistics
	@$(PYTEST) --dist loadfile -m slow

test-bounds: kernels  ## all stress tests with compiled bounds checks
	@NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 $(PYTEST) --dist loadfile -m 'bounds and not slow'

test-pythons:  ## the fast tests under every Python that is found
	@for v in $(PYTHONS); do \
	  python=$$(command -v python$$v || ls -d $$HOME/.pyenv/versions/$$v.*/bin/python 2>/dev/null | head -n 1); \
	  if [ -z "$$python" ]; then echo "Python $$v: not found, passed over"; continue; fi; \
	  echo "Python $$v: $$python"; \
	  $(MAKE) --no-print-directory test-fast VENV=.venv-$$v PYTHON=$$python || exit 1; \
	done

test-oldest:  ## the fast tests with the oldest dependencies that pyproject.toml allows
	@test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	@.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check 'numpy==1.26.*' 'numba==0.60.*' 'click==8.1.*' 'tqdm==4.66.*' -e '.[dev]'
	@touch .venv-oldest/.tools .venv-oldest/.installed
	@$(MAKE) --no-print-directory test-fast VENV=.venv-oldest

coverage: kernels postgres  ## lines that the fast tests run, without those inside kernels
	@$(PYTEST) --dist loadfile -m 'not slow' --cov=semibandit --cov-report=term --cov-report=html

bench: kernels  ## the whole benchmark (tens of minutes, idle machine); writes docs/performance.* and README's table
	@$(BIN)/python -m benchmarks suite --json docs/performance.json
	@$(BIN)/python -m benchmarks report docs/performance.json --page docs/performance.md --plot docs/performance.png --readme README.md

bench-quick: kernels  ## a short benchmark on the terminal
	@$(BIN)/python -m benchmarks suite --quick

docs: $(STAMP)  ## build the documentation, warnings are errors
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

lint: $(STAMP)  ## ruff and mypy --strict
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/mypy

format: $(STAMP)  ## rewrite the sources in the project's format
	@$(BIN)/ruff check --fix $(CODE)
	@$(BIN)/ruff format $(CODE)

clean:  ## remove the environment and everything built
	rm -rf $(VENV) .venv-* docs/_build build dist htmlcov .pytest_cache .mypy_cache .ruff_cache src/semibandit/compiled/_native*.so
