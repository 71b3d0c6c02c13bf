# make demo   installs Outbid into .venv, tracks and scores the bundled sample
# make test   installs what the tests need as well, lints, checks types and import laws, runs the smoke part of
#             all tests, and all tests of the layers that have changed (tests/layers.py)
# make test-all  runs all tests but the longer ones, renews tests/whole_run.json
# make dev    makes the installation editable: an edited source is the one that runs, at once
# make nightly  runs all tests, the longer ones too, on other instructions and with other versions of the
#             dependencies as well; renews tests/bench/nightly_record.json
# make certify  checks a million random assignments (some twenty minutes), renews tests/bench/certify_record.json
# make accuracy  links some 1,700 movies, compares with the frozen baseline (minutes on many cores)
# make ablation  halves and doubles options of learning over some movies, renews tests/bench/accuracy/sensitivity.json
# make detection-accuracy  measures detection beside frozen scores of tuned peers (hours of one core),
#             renews tests/bench/detection_record.json
# make fuzz     reads damaged files of every format for an hour, divided among the cores, renews tests/bench/fuzz_record.json;
#               FUZZ='--processes 8 --seconds 3600' are the processes (one of them measures what is reached) and the time of each
# make torture  kills and disturbs the commands that write for an hour, divided as well, renews tests/bench/torture_record.json
# make wheel  builds the wheel of this Python and platform into dist/, with compiled kernels (two minutes)
# make docs   builds the documentation into docs/_build; a warning is an error
# make bench  prints the benchmark tables (bench_scale.py has a record instead)
# make gpu-test  runs the GPU tests and benchmark with the Python that has CuPy, and renews tests/bench/gpu_record.json
# make gpu-bench  runs the longer benchmarks of the GPU (about eight minutes), and renews tests/bench/gpu_long_record.json
# make gpu-scaling  divides one matrix over all GPUs there are (ten minutes), for tests/bench/gpu_long_record.json
# make gpu-sanitize  runs every kernel at small n under compute-sanitizer's memcheck and racecheck
# make clean  removes all that these made
#
# Nothing is assumed but Python 3.11 or newer with venv. PYTHON=python3.12 make test picks another one.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
# Recipes are not echoed; make V=1 shows them.
ifndef V
.SILENT:
endif

PYTHON ?= python3
VENV ?= .venv
# A regular install: what is tested is what a wheel holds. After `make dev` a tree of links to the sources, which
# mypy and import-linter read as they read a regular one; it is made anew when files come or go.
FILES := $(shell find tracker simulate viewers data -type f -not -path '*/__pycache__/*' -not -name '.*' | LC_ALL=C sort)
EDITABLE := $(wildcard $(VENV)/editable)
SOURCES := pyproject.toml $(if $(EDITABLE),$(VENV)/files $(if $(wildcard build/__editable__.*),,FORCE),README.md LICENSE $(FILES))
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
OUT ?= demo

.PHONY: demo test test-all dev kernels wheel lint nightly certify fuzz torture accuracy ablation docs bench gpu-test gpu-bench gpu-scaling gpu-sanitize clean detection-accuracy checked FORCE

demo: $(VENV)/installed
	@mkdir -p $(OUT)
	$(VENV)/bin/outbid warm-up
	@echo "Removing the identities from the sample, linking it with no option set, scoring against the truth:"
	sample=$$($(VENV)/bin/python -c 'import outbid.data; print(outbid.data.sample("walks"))'); \
	  $(VENV)/bin/outbid track "$$sample" -o $(OUT)/tracks.csv --overwrite; \
	  $(VENV)/bin/outbid score $(OUT)/tracks.csv "$$sample"

# Kernels are compiled once, beside the lint. Then a process a core, each with whole files and one with all windows;
# each with one thread of BLAS, for several would wait for one another on the same cores.
# make test PYTEST="tests/test_track.py -k gap" runs a part.
TESTS := OPENBLAS_NUM_THREADS=1 .ci/on_a_screen $(VENV)/bin/pytest -n logical --dist loadgroup --compiled
test: checked
	$(TESTS) $(or $(PYTEST),--push)

test-all: checked
	@mkdir -p build
	$(TESTS) --junitxml=build/whole.xml
	$(VENV)/bin/python tests/layers.py build/whole.xml

checked:
	begun=$$SECONDS; $(MAKE) --no-print-directory -j 2 --output-sync=target lint kernels; \
	  echo "stage lint and kernels: $$((SECONDS - begun)) s"

kernels: $(VENV)/installed $(VENV)/extra-test
	$(VENV)/bin/python tests/kernels.py

dev: $(VENV)/built
	@touch $(VENV)/editable
	$(MAKE) --no-print-directory $(VENV)/installed $(VENV)/extra-test $(VENV)/extra-lint
	$(MAKE) --no-print-directory kernels
	@echo "Edit a source, then for example: $(VENV)/bin/pytest tests/test_track.py -k gap"

# In an environment of its own, with the dependencies as a new user gets them: the kernels serve their Numba alone.
WHEELS ?= dist
WHEEL_VENV ?= .venv-wheel
WHEEL_PYTHON ?= $(WHEEL_VENV)/bin/python
wheel: $(WHEEL_PYTHON)
	$(WHEEL_PYTHON) .ci/build_wheel.py $(WHEELS)

$(WHEEL_VENV)/bin/python: pyproject.toml
	$(PYTHON) -m venv --clear $(WHEEL_VENV)
	$@ -c 'import tomllib; print("setuptools>=77", *tomllib.load(open("pyproject.toml", "rb"))["project"] \
	  ["dependencies"], sep="\n")' | $@ -m pip --disable-pip-version-check --quiet install -r /dev/stdin
	@touch $@

# A million random assignments, each checked by an exact rational solver or SciPy.
certify: $(VENV)/installed $(VENV)/extra-test
	$(VENV)/bin/python tests/bench/certify.py
	$(VENV)/bin/python docs/renew.py

# Damaged files of every format, beside a second reader; the files of a find stand in build/fuzz.
fuzz: $(VENV)/installed $(VENV)/extra-test
	cd tests/bench; $(abspath $(VENV))/bin/python -m fuzz.long $(FUZZ)

# Commands that write are killed, interrupted, without room, or run two at a time.
torture: $(VENV)/installed $(VENV)/extra-test
	cd tests/bench; n=$$(nproc); $(abspath $(VENV))/bin/python -m torture --jobs $$n --seconds $$((3600 / n + 1)) \
	  --record torture_record.json

# First the demo from an empty cache of kernels, and all tests of a push. A longer test that fails stands in the
# record, which the tests then refuse. Then all tests as other machines run them. Ends with exit code 1 if a record
# is older than the code, and names the command that renews it.
nightly: $(VENV)/installed $(VENV)/extra-test
	@rm -rf build/empty
	NUMBA_CACHE_DIR=$(abspath build/empty) $(MAKE) --no-print-directory demo OUT=build/demo
	$(MAKE) --no-print-directory test-all
	-.ci/on_a_screen $(VENV)/bin/pytest -m nightly --junitxml=build/nightly.xml
	OUTBID_EXAMPLES=night .ci/on_a_screen $(VENV)/bin/pytest -n logical -m "(slow or hypothesis) and not nightly"
	OUTBID_EXAMPLES=night $(VENV)/bin/pytest tests/test_fuzz.py tests/test_torture.py
	$(VENV)/bin/python tests/bench/nightly.py build/nightly.xml
	$(VENV)/bin/python docs/renew.py
	OUTBID_EXAMPLES=night $(VENV)/bin/pytest tests/test_size.py
	for machine in instructions lowest newest; do $(VENV)/bin/python tests/other_machines.py $$machine -- tests; done
	$(VENV)/bin/python tests/bench/records.py

# LINKER=posterior measures another one of tests/bench/accuracy/linkers.py; MOVIES=developed part of the list.
LINKER ?= learned
MOVIES ?= all
accuracy: $(VENV)/installed $(VENV)/extra-test
	PYTHONPATH=tests/bench $(VENV)/bin/python -m accuracy.run --linker $(LINKER) --movies $(MOVIES) \
	  --record tests/bench/accuracy/$(LINKER).npz

ablation: $(VENV)/installed $(VENV)/extra-test
	PYTHONPATH=tests/bench $(VENV)/bin/python -m accuracy.ablation --sensitivity lineage --movies "quick developed"

# What falls short stands in the record; after an interruption it goes on behind the log. Where the peers' record
# lacks something, `python -m detection_accuracy.run peers` measures them; that takes scikit-image, trackpy and
# laptrack.
detection-accuracy: $(VENV)/installed
	@mkdir -p build
	PYTHONPATH=tests/bench $(VENV)/bin/python -m detection_accuracy.run --log build/detection.jsonl

lint: $(VENV)/installed $(VENV)/extra-test $(VENV)/extra-lint
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy --cache-dir $(VENV)/mypy -p outbid
	$(VENV)/bin/lint-imports --no-cache

# Afresh, for a page holds what its commands print.
docs: $(VENV)/installed $(VENV)/extra-docs
	$(VENV)/bin/sphinx-build -EW --keep-going -q docs docs/_build

# With the machine's own Python, for CuPy and its CUDA are no part of .venv. Eight at a time, for most of the time
# kernels are compiled. A test that fails stands in the record, which the tests then
# refuse; a benchmark that is ended after its time leaves the rows it has.
GPU_TESTS := $(patsubst tests/%.py,%,$(filter-out tests/test_gpu_record.py,$(wildcard tests/test_gpu*.py))) \
  test_scipy_cases
gpu-test:
	$(PYTHON) -m pip install --quiet --no-deps --no-build-isolation .
	@rm -rf build/gpu
	-printf '%s\n' $(GPU_TESTS) | xargs -P 8 -I{} $(PYTHON) -m pytest -q -m gpu tests/{}.py --junitxml=build/gpu/{}.xml
	$(PYTHON) tests/bench/benchmarks/bench_gpu.py --record build/gpu
	timeout 150 $(PYTHON) tests/bench/benchmarks/bench_gpu_dense.py --record || test $$? = 124
	@! grep '"failed": [1-9]' tests/bench/gpu_record.json

gpu-bench:
	$(PYTHON) -m pip install --quiet --no-deps --no-build-isolation .
	$(PYTHON) tests/bench/benchmarks/bench_gpu_scaling.py --record
	$(PYTHON) tests/bench/benchmarks/bench_gpu_movie.py --record
	$(PYTHON) tests/bench/benchmarks/bench_gpu_solvers.py --record
	$(PYTHON) tests/bench/benchmarks/bench_gpu_huge.py --record

gpu-scaling:
	$(PYTHON) -m pip install --quiet --no-deps --no-build-isolation .
	$(PYTHON) tests/bench/benchmarks/bench_gpu_shards.py --record --least 10000 113137 \
	  --sizes 10000 14142 20000 60000 160000 --movie 100 1000000

# CuPy's own kernels are left out, as its nonzero, in which racecheck sees hazards. PARTS="gated movie" picks some.
SANITIZER ?= $(or $(shell command -v compute-sanitizer),/usr/local/cuda/bin/compute-sanitizer)
gpu-sanitize:
	$(PYTHON) -m pip install --quiet --no-deps --no-build-isolation .
	for tool in memcheck racecheck; do \
	  $(SANITIZER) --tool $$tool --error-exitcode 1 --kernel-name-exclude kernel_substring=cupy \
	    $(PYTHON) tests/bench/benchmarks/sanitize_gpu.py $(PARTS); done

bench: $(VENV)/installed $(VENV)/extra-bench
	for program in $(filter-out $(wildcard tests/bench/benchmarks/bench_gpu*.py) tests/bench/benchmarks/bench_scale.py, \
	    $(wildcard tests/bench/benchmarks/bench_*.py)); do echo; echo "== $$program"; \
	  $(VENV)/bin/python "$$program"; done

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo >&2 "Outbid needs Python 3.11 \
	or newer. Name one, for example: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# setuptools first and no build isolation: the project is built as often as a source changes.
$(VENV)/built: | $(VENV)/bin/python
	$(PIP) install 'setuptools>=77'
	@touch $@

$(VENV)/installed: $(VENV)/built $(SOURCES)
	@echo "Installing Outbid into $(VENV) …"
	@rm -rf build/lib build/bdist.* build/__editable__.* outbid.egg-info
	$(PIP) install --no-build-isolation $(if $(wildcard $(VENV)/editable),--config-settings editable_mode=strict --editable ).
	@rm -rf build/lib build/bdist.* outbid.egg-info
	@touch $@

# The names of all sources; newer when one comes or goes.
$(VENV)/files: $(VENV)/built FORCE
	@echo '$(FILES)' | cmp --silent - $@ || echo '$(FILES)' > $@
FORCE:

# An extra by itself, so that the installed project and its compiled kernels stay as they are.
$(VENV)/extra-%: pyproject.toml | $(VENV)/built
	$(VENV)/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"] \
	  ["optional-dependencies"]["$*"], sep="\n")' | $(PIP) install -r /dev/stdin
	@touch $@

clean:
	rm -rf $(VENV) $(WHEEL_VENV) $(OUT) docs/_build docs/_run build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
