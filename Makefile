# Everything runs from the virtual environment in .venv, which `make setup` builds; nothing needs
# to be activated. On a fresh machine `make test` is enough.

PYTHON ?= python3
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
PEERS := $(CURDIR)/.venv-peers
KERNELS := $(shell find src/slackwater/kernels -name '*.py' 2>/dev/null)

PYTEST := "$(BIN)/python" -m pytest -q
OTHERS := $(addprefix lab/src/slackwater_lab/peers/,flink.py pathway.py) # run in environments of their own

# Each step says what it needs; the caller's settings must not change what it means.
unexport PYTHONPATH NUMBA_DISABLE_JIT SLACKWATER_PROFILE

.DEFAULT_GOAL := help
ifndef BESIDE
.NOTPARALLEL: # the steps share the machine and the compile cache
endif
.PHONY: help setup lint lint-types lint-rest site docs test test-main test-nojit test-all test-all-main test-all-nojit demo bench peers trust mutants audit release clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.stale ## Build .venv with the pinned packages, find Java and a browser, compile the kernels
	@$(MAKE) --silent -j 2 BESIDE=1 "$(VENV)/.installed" "$(VENV)/.warm" # one waits for packages, one computes

# What users need; the demonstration does not wait for the tools of developers.
$(VENV)/.runtime: pyproject.toml constraints.txt tools/ensure_java.py
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "setup: $(PYTHON) is older than 3.11; try: make PYTHON=python3.12" >&2; exit 1; }
	@echo "setup: installing the packages of constraints.txt into .venv"
	@test -x "$(BIN)/python" || "$(PYTHON)" -m venv "$(VENV)"
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[spark]"
	@"$(BIN)/python" tools/ensure_java.py
	@touch "$@"

$(VENV)/.installed: $(VENV)/.runtime lab/pyproject.toml tools/ensure_chromium.py
	@echo "setup: installing the tools of developers"
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[spark,dev]" -e lab
	@"$(BIN)/python" tools/ensure_chromium.py
	@touch "$@"

# numba recompiles a kernel when its own file changes, but not when a kernel it calls in another
# file does: drop every compiled kernel when any source of theirs changed.
$(VENV)/.stale: $(VENV)/.runtime $(KERNELS)
	@find src -name '*.nb[ci]' -delete
	@touch "$@"

$(VENV)/.warm-joins: $(VENV)/.stale
	@echo "setup: compiling the kernels of joins"
	@"$(BIN)/python" -m slackwater.engine.warm joins
	@touch "$@"

# On two cores. Joins come last: by then the other process has compiled what both need. The last line finds what one took from the
# other's hands.
$(VENV)/.warm: $(VENV)/.stale
	@echo "setup: compiling the kernels"
	@"$(BIN)/python" -m slackwater.engine.warm shedding & \
	  "$(BIN)/python" -m slackwater.engine.warm windows aggregates joins && wait
	@"$(BIN)/python" -m slackwater.engine.warm
	@touch "$@"

# mypy takes longest: all the rest runs beside it.
lint: setup ## Check style, formatting, types, the direction of imports, workflows and the documentation site
	@echo "lint: ruff, ruff format, mypy, import-linter, actionlint"
	@$(MAKE) --silent -j 2 BESIDE=1 lint-types lint-rest site

lint-types:
	@"$(BIN)/mypy" --no-error-summary

lint-rest:
	@"$(BIN)/ruff" check --quiet
	@report=$$("$(BIN)/ruff" format --check 2>&1) || { echo "$$report"; exit 1; }
	@report=$$("$(BIN)/lint-imports" 2>&1) || { echo "$$report"; exit 1; }
	@"$(BIN)/python" tools/check_workflows.py

docs: setup site ## Build the documentation site into build/site; a warning is an error

# The variable: Material for MkDocs prints news about itself otherwise. With --quiet, --strict would not see warnings.
site:
	@echo "docs: building build/site"
	@report=$$(NO_MKDOCS_2_WARNING=1 "$(BIN)/python" -m mkdocs build --strict 2>&1) || { echo "$$report"; exit 1; }
	@"$(BIN)/python" tools/docs_site.py build/site

# Two suites. `make test` is for every change; `make test-all` also runs the tests marked `full`, and more examples of each property.
test: lint test-main test-nojit ## Set up, lint, and run the tests of every change; all that a fresh machine needs

test-all: lint test-all-main test-all-nojit ## The same, with the tests marked `full` and more examples of each property

# tests, the examples in docstrings; kernels compiled
SUITE := $(PYTEST) -n 2 --dist loadgroup --doctest-modules $(OTHERS:%=--ignore=%)
CODE := tests tools src/slackwater lab/src

test-main: setup
	@echo "test: kernels compiled"
	@$(SUITE) -m "not full" $(CODE)

test-all-main: setup
	@echo "test: every test, kernels compiled"
	@SLACKWATER_PROFILE=all $(SUITE) $(CODE)

# The kernels as plain Python: only so does coverage see them. What uses the engine is not measured: see pyproject.toml.
PLAIN := NUMBA_DISABLE_JIT=1 SLACKWATER_PROFILE=nojit $(PYTEST) -n 2 --cov --cov-report=term --cov-fail-under=95
FAR := cli spark faults lab project test_docs.py unit/test_words.py dashboard/test_page.py dashboard/test_real_runs.py

test-nojit: setup
	@echo "test: kernels as plain Python, with coverage"
	@$(PLAIN) -m "not full and not compiled" $(FAR:%=--ignore=tests/%) tests

test-all-nojit: setup
	@echo "test: kernels as plain Python, with coverage, every test"
	@$(PLAIN) $(FAR:%=--ignore=tests/%) tests

demo: $(VENV)/.warm-joins ## Run the demonstration
	@"$(BIN)/slackwater" demo
	@echo && echo "To have the command slackwater in this shell: . $(patsubst $(CURDIR)/%,%,$(BIN))/activate"

bench: setup ## Measure the core
	@"$(BIN)/slackwater" bench core

# Both need other versions of our packages, so each has an environment of its own; together 2 GB.
peers: $(PEERS)/flink/.installed $(PEERS)/pathway/.installed ## Install Flink and Pathway for `slackwater bench peers`

$(PEERS)/flink/.installed: PACKAGE := apache-flink==2.3.0
$(PEERS)/pathway/.installed: PACKAGE := pathway==0.33.0
$(PEERS)/%/.installed:
	@echo "peers: installing $(PACKAGE) into .venv-peers/$*"
	@test -x "$(PEERS)/$*/bin/python" || "$(PYTHON)" -m venv "$(PEERS)/$*"
	@"$(PEERS)/$*/bin/python" -m pip install --quiet --disable-pip-version-check "$(PACKAGE)"
	@touch "$@"

# New cases every day; `make trust SEED=...` repeats those of another.
trust: SEED ?= $(shell date +%Y%m%d)
trust: setup ## Every property many times over, 200 faults on Spark, a cluster, all of tests/spark on Connect (long)
	@echo "trust: every property, up to 20,000 examples each, seed $(SEED)"
	@SLACKWATER_PROFILE=trust $(PYTEST) -n 2 -m "trust or determinism" --hypothesis-seed=$(SEED) tests
	@echo "trust: queries of every kind under 200 faults"
	@cd tests && "$(BIN)/python" -m faults --faults 200 --seed $(SEED)
	@echo "trust: a cluster whose driver, executor and worker are killed"
	@SLACKWATER_PROFILE=trust $(PYTEST) tests/spark/test_cluster.py
	@echo "trust: the Spark suite on Spark Connect"
	@SLACKWATER_CONNECT=1 $(PYTEST) tests/spark

# cosmic-ray only lends its operators: it stays out of .venv, and its own runner's packages out of both.
MUTANT_TOOLS := build/mutants/tools

$(MUTANT_TOOLS)/.installed: Makefile
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target $(MUTANT_TOOLS) cosmic-ray==8.7.0 parso==0.8.7
	@touch "$@"

mutants: SEED ?= 0
mutants: SAMPLE ?= 100
mutants: setup $(MUTANT_TOOLS)/.installed ## Change the engine in SAMPLE places, by SEED, and see what no test of `make test` notices (long)
	@"$(BIN)/python" tools/mutants.py --seed $(SEED) --sample $(SAMPLE) $(MUTANTS)

# Not part of `make test`: it needs advisories from PyPI, which not every mirror has. Its packages stay out of .venv.
AUDIT_TOOLS := build/audit

$(AUDIT_TOOLS)/.installed: Makefile
	@"$(PYTHON)" -m venv $(AUDIT_TOOLS)
	@$(AUDIT_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	@touch "$@"

audit: $(AUDIT_TOOLS)/.installed ## Look up known vulnerabilities of the pinned packages (AUDIT=--if-reachable: if advisories can be reached)
	@$(AUDIT_TOOLS)/bin/python tools/audit.py $(AUDIT)

# As with the audit, the tools have an environment of their own.
RELEASE_TOOLS := build/release/tools

$(RELEASE_TOOLS)/.installed: Makefile
	@"$(PYTHON)" -m venv $(RELEASE_TOOLS)
	@$(RELEASE_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check build==1.6.1 twine==7.0.0 cffconvert==2.0.0
	@touch "$@"

release: $(RELEASE_TOOLS)/.installed ## Build wheels and sdists into dist, check them, and try the wheel in a fresh environment
	@$(RELEASE_TOOLS)/bin/python tools/release.py

clean: ## Remove what was built, .venv included
	@rm -rf "$(VENV)" "$(PEERS)" build dist lab/build .coverage .coverage.* htmlcov .hypothesis .mypy_cache .pytest_cache \
	  .ruff_cache .import_linter_cache src/*.egg-info lab/src/*.egg-info
	@find src lab tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
