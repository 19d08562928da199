# Every target sets up what it needs: an interpreter, .venv and the pinned packages.
# `make PYTHON=/path/to/python3` names the interpreter instead of having it searched for.

# Without the bytecode that Python and pytest keep, every process would compile 600 files anew.
unexport PYTHONDONTWRITEBYTECODE

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test test-long exactness architecture coverage bounds check format benchmarks notebooks build clean

BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Items of a family go to one process, see tests/conftest.py: no kernel is compiled by two at once.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 \
    --dist loadscope --no-loadscope-reorder
PLAIN_PYTEST := NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal
# Whatever runs as plain Python; tests of whole models need the compiler.
COVERING := -m 'plain and not slow' tests/unit tests/property tests/estimates
BOUNDED := $(addprefix tests/unit/test_,families.py kernels.py multinomial.py sampler_parts.py)

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: .venv/.installed  ## fit real data and write a trace and figures to a folder
	$(BIN)/python -m pymc_dpsplit demo

test: .venv/.installed  ## the quick tests
	@status=0; \
	$(PLAIN_PYTEST) --durations 15 -m 'plain and not slow' \
	    tests/unit tests/property tests/estimates tests/integration tests/docs || status=$$?; \
	$(PYTEST) --durations 25 -m 'not plain and not slow' || status=$$?; \
	exit $$status

# What LLVM compiles stays in memory until a process ends: two runs take half as much at a time.
test-long: .venv/.installed  ## what `make test` leaves out: the long statistical runs
	@status=0; \
	$(PYTEST) -m slow tests/exact || status=$$?; \
	$(PYTEST) -m slow --ignore tests/exact || status=$$?; \
	$(PLAIN_PYTEST) -m 'plain and slow' tests/unit/test_uncompiled.py || status=$$?; \
	$(PYTEST) --hypothesis-profile long -m 'not slow' tests/property || status=$$?; \
	exit $$status

exactness: .venv/.installed  ## compare whole draws with the truth and write docs/exactness.md
	$(BIN)/python -m tests.exactness

architecture: .venv/.installed  ## write docs/modules.md from the docstrings
	$(BIN)/python -m tests.modules_page

coverage: .venv/.installed-dev  ## list what no test enters of kernels, run as plain Python
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest --quiet $(COVERING)
	$(BIN)/coverage report

bounds: .venv/.installed  ## the kernel tests with every index checked, compiled anew
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.numba_boundscheck $(PYTEST) -m 'not slow' $(BOUNDED)

check: .venv/.installed-dev  ## lint, format, types, dead code, layering and style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/vulture
	$(BIN)/python -m pytest --quiet tests/docs

format: .venv/.installed-dev  ## format the code and mend what lint can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmarks: .venv/.installed  ## time the sampler and write docs/performance.md
	$(BIN)/python -m benchmarks.run

notebooks: .venv/.installed-dev  ## execute the notebooks
	$(BIN)/python -m pytest --nbmake notebooks

build: .venv/.installed-dev  ## make the wheel and the sdist
	$(BIN)/python -m build

clean:  ## remove the environment and everything that was built
	rm -rf .venv build dist .coverage .numba_boundscheck .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A candidate counts only if it runs: a version manager's shim may be there and fail.
define FIND_PYTHON
suits() { "$$@" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; }
$(BIN)/python -m pip --version >/dev/null 2>&1 && suits $(BIN)/python && exit 0
managed=$${PYENV_ROOT:-$$HOME/.pyenv}/versions
for python in $(or $(PYTHON),python3.13 python3.12 python3.14 \
        "$$managed"/3.13*/bin/python "$$managed"/3.1[24]*/bin/python \
        python3 python "$$(uv python find '>=3.12' 2>/dev/null)"); do
    if suits "$$python"; then
        echo "making .venv with $$("$$python" --version)"
        exec "$$python" -m venv --clear .venv
    fi
done
echo "$(if $(PYTHON),PYTHON=$(PYTHON) is not,There is no) Python >= 3.12 with venv:" \
    "install one, or name it by make PYTHON=/path/to/python3." >&2
exit 1
endef
export FIND_PYTHON

.venv/.installed: pyproject.toml constraints.txt
	@bash -euc "$$FIND_PYTHON"
	@echo "installing the pinned packages into .venv"
	@$(INSTALL) --constraint constraints.txt --upgrade pip
	@$(INSTALL) --constraint constraints.txt --build-constraint constraints.txt \
	    --editable . --group test
	@touch $@

.venv/.installed-dev: .venv/.installed
	@echo "installing the development tools into .venv"
	@$(INSTALL) --constraint constraints.txt --group dev
	@touch $@
