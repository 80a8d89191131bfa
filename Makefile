# Every target sets up `.venv` from a plain python3 when it is missing or out of date.
# Paths stay relative, so a checkout in a folder with spaces works too.

PYTHON ?= python3
PORT ?= 2024
ARGS ?=
NAME ?= window
MODEL ?= openai:gpt-5-mini
PICTURES ?=
SCALE ?= 20

# A shell that forbids it would let every process of a test compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PY := $(BIN)/python
BENCH_PY := .venv-bench/bin/python
PIP_INSTALL := $(PY) -m pip install --disable-pip-version-check -qq -c constraints.txt

# Nothing leaves this machine: no usage report, no look for newer versions, no traces.
# Export LANGSMITH_TRACING=true to trace to an account of your own.
LANGSMITH_TRACING ?= false
LANGSMITH_TRACING_V2 ?= $(LANGSMITH_TRACING)
LANGSMITH_CONTROL_PLANE_API_KEY ?=
EVERTHREAD_DATABASE ?= sqlite:///everthread.db
STUDIO_ENV := EVERTHREAD_DATABASE='$(EVERTHREAD_DATABASE)' LANGGRAPH_CLI_NO_ANALYTICS=1 LANGGRAPH_NO_VERSION_CHECK=true \
	LANGSMITH_TRACING='$(LANGSMITH_TRACING)' LANGSMITH_TRACING_V2='$(LANGSMITH_TRACING_V2)' \
	LANGSMITH_CONTROL_PLANE_API_KEY='$(LANGSMITH_CONTROL_PLANE_API_KEY)'

# An environment whose Python is gone is made again, whatever its stamps say.
MISSING := $(shell test -x $(PY) || echo FORCE)

define CHECK_PYTHON
command -v '$(PYTHON)' >/dev/null 2>&1 || { \
	echo "There is no '$(PYTHON)' here; install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3 ..." >&2; \
	exit 1; }; \
'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "'$(PYTHON)' is $$('$(PYTHON)' --version 2>&1), but Everthread needs Python 3.11 or newer;" \
		"name another one: make PYTHON=/path/to/python3 ..." >&2; \
	exit 1; }; \
'$(PYTHON)' -c 'import ensurepip, venv' >/dev/null 2>&1 || { \
	echo "'$(PYTHON)' cannot make virtual environments: its module \`venv\` or \`ensurepip\` is missing;" \
		"install it (on Debian and Ubuntu: the package python3-venv)." >&2; \
	exit 1; }
endef

# Repairs an environment that was interrupted before it had pip.
define VENV
$(PY) -m pip --version >/dev/null 2>&1 || { \
	$(CHECK_PYTHON); \
	'$(PYTHON)' -m venv $(if $(MISSING),--clear) .venv; }
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: FORCE help demo test test-all test-web attack eval-live chat studio lint bench pin clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' Makefile

demo: .venv/.core ## Play two sessions of the travel agent, offline
	@$(BIN)/everthread demo $(ARGS)

test: .venv/.dev ## Run the tests but the slow ones; ARGS="-k name" picks some
	@$(PY) -m pytest -n auto --dist worksteal $(ARGS)

test-all: .venv/.dev ## Run every test that needs no key
	@$(PY) -m pytest -n auto --dist worksteal -m 'not live and not web' $(ARGS)

test-web: .venv/.dev ## Drive the dashboard in Chromium; PICTURES=1 draws those of docs/dashboard.md anew
	@DASHBOARD_PICTURES='$(PICTURES)' $(PY) -m pytest -n auto -m web $(ARGS) tests/web/test_browser.py

attack: .venv/.dev ## Attack cancellation, kills, storage, notes … at length; a table at the end, red where something failed
	@EVERTHREAD_ATTACK=$(SCALE) $(PY) -m pytest -n auto --dist worksteal -m 'not live' $(ARGS) tests/attack

eval-live: .venv/.dev ## Measure what MODEL adds to the rules of guard and distiller; needs a key, or ARGS="--replay FILE"
	@$(PY) -m benchmarks.live --model '$(MODEL)' $(ARGS)

chat: .venv/.core ## Talk to an agent; ARGS="--agent support --user me"
	@$(BIN)/everthread chat $(ARGS)

# Nobody signs in to it, so it listens on this machine only, whatever ARGS says. A thread's lock is a system call of
# microseconds, made on the event loop: the server's check for such calls is off.
studio: .venv/.dev ## Serve the graphs for LangGraph Studio on PORT, to this machine only, with the dashboard beside it
	@$(STUDIO_ENV) $(PY) -m langgraph_cli dev --allow-blocking --no-browser --port $(PORT) $(ARGS) --host 127.0.0.1

lint: .venv/.dev ## Check style, types, imports, names that nobody promised and the code in README and docs
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(BIN)/lint-imports --no-logo
	@$(PY) scripts/private_names.py src
	@$(PY) scripts/snippets.py README.md docs/*.md

bench: .venv-bench/.done ## Compare with peers; NAME=threads, crash, concurrency, stores … runs another one
	@$(BENCH_PY) benchmarks/$(NAME).py $(ARGS)

pin: ## Write constraints.txt anew from the newest versions that fit
	@$(CHECK_PYTHON)
	@'$(PYTHON)' scripts/pin.py

clean: ## Remove .venv, caches and build output; databases stay
	rm -rf .venv .venv-bench .langgraph_api .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: a second run installs nothing. Tests and lint need more than the demo, which stays quick to set up.
.venv/.core: pyproject.toml constraints.txt $(MISSING)
	@$(VENV)
	@echo "Installing Everthread into .venv (once; takes about half a minute) ..."
	@$(PIP_INSTALL) -e .
	@touch $@

# The peers ask for other versions of shared packages than ours are tested with.
.venv-bench/.done: pyproject.toml
	@$(CHECK_PYTHON)
	@'$(PYTHON)' -m venv --clear .venv-bench
	@echo "Installing Everthread and the peers it is compared with into .venv-bench (once; a minute or two) ..."
	@$(BENCH_PY) -m pip install --disable-pip-version-check -qq -e '.[bench]'
	@touch $@

.venv/.dev: pyproject.toml constraints.txt $(MISSING)
	@$(VENV)
	@echo "Installing Everthread with its development tools into .venv (once; takes about a minute) ..."
	@$(PIP_INSTALL) -e '.[dev,studio]'
	@touch .venv/.core $@
