# Every target says what it does: `make help`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help gate-all gpu-test adversary setup setup-run demo test test-fast test-beside test-serial test-postgres lint types \
  imports settings run worker migrate clean

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.requirements
PORT ?= 8000
PG_URL ?= postgres://root@127.0.0.1:5432/test
ARGS ?=

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv and install everything into it (quick when nothing changed)

$(STAMP): requirements.txt requirements-dev.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing (torch is large: 2 to 5 minutes, about 6 GB of disk with CUDA libraries) …"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

setup-run: $(VENV)/.requirements-run ## The same for a host that serves or judges: no tools for tests

$(VENV)/.requirements-run: requirements.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

demo: setup ## Set up, start web and one evaluator, submit the samples, print results, keep serving
	$(BIN)/python manage.py demo --port $(PORT) $(ARGS)

migrate: setup ## Bring the database and the catalogue in it up to date
	$(BIN)/python manage.py migrate
	$(BIN)/python manage.py sync_catalog

run: migrate ## Serve the site on PORT (8000)
	DEBUG=1 $(BIN)/python manage.py runserver $(PORT)

worker: migrate ## Judge for cpu4 on this machine
	$(BIN)/python manage.py evaluator_worker --target cpu4 $(ARGS)

adversary: setup ## Every attack and odd file against the judge, as a table (ARGS="--only s0")
	$(BIN)/python -m tests.adversary $(ARGS)

lint: setup ## Style of Python and templates
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/djlint templates --lint --quiet

types: setup ## mypy
	$(BIN)/mypy

imports: setup ## Who may import whom
	$(BIN)/lint-imports

settings: setup ## Migrations are complete, production settings and the API's schema are sound
	$(BIN)/python manage.py makemigrations --check --dry-run
	SECRET_KEY=$$(printf 'only-for-the-check-%.0s' 1 2 3 4) ALLOWED_HOSTS=example.org CELERY_BROKER_URL=redis:// \
	  DJANGO_SETTINGS_MODULE=portal.settings.prod $(BIN)/python manage.py check --deploy --fail-level WARNING
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null

TIMES = var/test-times.jsonl
PASS = $(MAKE) --no-print-directory PKB_TEST_TIMES=$(TIMES) PKB_TEST_PASS

test: setup ## Everything that must hold: lint, types, imports, settings, all tests; says where the time went
	@mkdir -p $(dir $(TIMES)) && rm -f $(TIMES)
	$(MAKE) --no-print-directory -j2 --output-sync=target lint types imports settings
	$(PASS)=beside test-beside
	$(PASS)=postgres test-postgres
	$(PASS)=serial test-serial
	@$(BIN)/python -m tests.times $(TIMES)

TWO = -n 2 --dist loadfile --no-loadscope-reorder

test-fast: setup ## Tests without ranks, workers or browser, two at a time
	$(BIN)/pytest $(TWO) -m "not serial and not browser and not gpu and not postgres and not processes" $(ARGS)

test-beside: setup ## test-fast, and those with real ranks or processes that time nothing: two files at a time
	$(BIN)/pytest $(TWO) -m "not serial and not browser and not gpu and not postgres" $(ARGS)

test-postgres: setup ## The tests that touch the database, once more on PostgreSQL
	@if $(BIN)/python tests/postgres_answers.py "$(PG_URL)"; then \
	  DATABASE_URL="$(PG_URL)" $(BIN)/pytest $(TWO) -m "not serial and not browser and not gpu and not processes" \
	    --database-only tests/portal tests/accounts tests/submissions tests/problems tests/evaluator tests/leaderboard $(ARGS); \
	elif [ -n "$$CI" ]; then echo "PostgreSQL must answer at $(PG_URL) under CI" >&2; exit 1; \
	else echo "SKIPPED: the database tests on PostgreSQL, since none answers at $(PG_URL)"; fi

test-serial: setup ## Tests that time something or load the machine, and the browser: one at a time
	$(BIN)/pytest -p no:xdist -m "(serial or browser) and not gpu" $(ARGS)

gate-all: setup ## The mutation gate over the whole catalogue at 2, 4 and 8 ranks (SEEDS=20)
	for ranks in 2 4 8; do $(BIN)/python -m evaluator.harness gate --world $$ranks --seeds $(SEEDS) $(ARGS) || exit 1; done

SEEDS ?= 20
GPU_TARGET ?= h200x1
GPU_PYTHON ?= $(if $(wildcard $(BIN)/python),$(BIN)/python,python3)
GPU_LEFT_OUT ?= gnn_sparse_feature_fetch_projection
GPU_TIMED = $(filter-out h200x1,$(GPU_TARGET))
GPU_HARNESS = $(GPU_PYTHON) -m evaluator.harness

gpu-test: ## On a machine with cards (GPU_TARGET, GPU_PYTHON; needs no .venv): self-test, samples, cheats, references
	@$(GPU_PYTHON) -c 'import torch' || { echo "$(GPU_PYTHON) has no torch: make setup, or name another by GPU_PYTHON=" >&2; exit 1; }
	$(GPU_HARNESS) selftest --target $(GPU_TARGET)
	$(GPU_HARNESS) score-many --target $(GPU_TARGET) --workers 4 --manifest problems/samples/samples.toml
	$(GPU_HARNESS) score-many --target $(GPU_TARGET) --workers 4 --manifest tests/adversary/cuda/manifest.toml
	$(GPU_HARNESS) score-many --target $(GPU_TARGET) --workers 5 --limit 150 --leave-out $(GPU_LEFT_OUT) $(ARGS)
	$(if $(GPU_TIMED),$(GPU_HARNESS) score-many --target $(GPU_TARGET) --protocol quick --limit 60 --manifest problems/samples/samples.toml)
	$(if $(GPU_TIMED),$(GPU_HARNESS) score-many --target $(GPU_TARGET) --protocol quick --limit 60 --manifest tests/adversary/cuda/manifest.toml)

clean: ## Remove caches and what the demo made; keeps .venv
	rm -rf var staticfiles .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache tests/artifacts
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
