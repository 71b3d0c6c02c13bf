# make demo   installs Outbid into .venv, tracks and scores the bundled sample
# make test   installs what the tests need as well, lints, checks types and import laws, runs the tests
# make bench  prints the benchmark tables (minutes to hours; see tests/benchmarks)
# make clean  removes all that these made
#
# Nothing is assumed but Python 3.11 or newer with venv. PYTHON=python3.12 make test picks another one.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV ?= .venv
# A regular install, not an editable one: what is tested is what a wheel holds.
SOURCES := pyproject.toml README.md LICENSE \
  $(shell find tracker simulate data -type f -not -path '*/__pycache__/*' -not -name '.*')
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
OUT ?= demo

.PHONY: demo test lint bench clean

demo: $(VENV)/installed
	@mkdir -p $(OUT)
	@echo "Removing the identities from the sample, linking it again, scoring against the truth:"
	sample=$$($(VENV)/bin/python -c 'import outbid.data; print(outbid.data.sample("walks"))'); \
	  $(VENV)/bin/outbid track "$$sample" --max-distance 2 --max-gap 2 -o $(OUT)/tracks.csv --overwrite; \
	  $(VENV)/bin/outbid score $(OUT)/tracks.csv "$$sample"

test: lint
	PATH="$(abspath $(VENV))/bin:$$PATH" pytest $(PYTEST)

lint: $(VENV)/installed-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy -p outbid.tracker -p outbid.simulate -p outbid.data
	$(VENV)/bin/lint-imports --no-cache

bench: $(VENV)/installed-bench
	for program in tests/benchmarks/bench_*.py; do echo; echo "== $$program"; $(VENV)/bin/python "$$program"; done

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Outbid needs Python 3.11 or newer; this is " \
	  + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)

# setuptools first and no build isolation: the project is built as often as a source changes.
$(VENV)/built: pyproject.toml | $(VENV)/bin/python
	$(PIP) install 'setuptools>=77'
	@touch $@

$(VENV)/installed: $(VENV)/built $(SOURCES)
	@echo "Installing Outbid into $(VENV) …"
	$(PIP) install --no-build-isolation --force-reinstall --no-deps .
	$(PIP) install --no-build-isolation .
	@rm -rf build
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(PIP) install --no-build-isolation '.[test,lint]'
	@touch $@

$(VENV)/installed-bench: $(VENV)/installed
	$(PIP) install --no-build-isolation '.[bench]'
	@touch $@

clean:
	rm -rf $(VENV) $(OUT) build *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
