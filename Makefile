# `make help` lists the targets. PORT=8502 make run starts on another port; PYTHON=python3.12 picks a Python.

PORT ?= 8501
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
ifeq ($(strip $(PYTHON)),)
PYTHON := python3
endif

PY := .venv/bin/python
# Every process would compile all modules and tests anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install install-office install-ocr install-postgres install-bulk install-dev run test model-server lint format demo eval bench bench-scale lock pin-images clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-12s %s\n", $$1, $$2}'

install: ## make .venv with what the app needs (run, demo do this by themselves)
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py

install-office: ## also what reads .xls, .ods, .odp, .rtf and .msg: 64 MB more
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py --office

install-ocr: ## also text recognition for pictures and scans: 115 MB more
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py --ocr

install-postgres: ## also what several apps need to share a Postgres database: 5 MB more
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py --postgres

install-bulk: ## also web archives, and imports on several machines: 250 MB more
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py --bulk

install-dev: ## the same with what tests and checks need (test, lint do this by themselves)
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py --dev

run: install ## start the app on http://127.0.0.1:8501
	@$(PY) -m streamlit run main.py --server.address 127.0.0.1 --server.port $(PORT) --server.showEmailPrompt false

test: install-dev ## run the whole test suite
	@$(PY) -m pytest -n 4 --dist loadfile --no-loadscope-reorder

model-server: ## serve a real, small chat model on loopback, for pytest -m model and benchmarks.local_model
	@$(PYTHON) scripts/model_server.py

lint: install-dev ## ruff, ruff format, mypy --strict, licences and texts, as CI runs them
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) scripts/notice.py --check
	$(PY) scripts/prose.py

format: install-dev ## put the code into the house format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

demo: install ## load the sample pages and ask eight questions, in the terminal; needs no network
	@PYTHONPATH=. $(PY) scripts/demo.py

eval: install ## each mechanism of quality beside its simplest rival, written into docs/quality.md; see benchmarks/README.md
	@$(PY) -W ignore -m benchmarks.gate --publish

bench: install ## measure speed beside what people would otherwise use; see benchmarks/README.md
	@$(PY) -m benchmarks.bench

bench-scale: install ## how a library grows to a million chunks; a quarter of an hour, 15 GB of disk; SIZES=10000,100000 for less
	@$(PY) -m benchmarks.scale $(if $(SIZES),--sizes $(SIZES))

lock: install-dev ## write locks/ and constraints.txt anew after a change of requirements.txt, and NOTICE
	$(PY) scripts/lock.py
	@$(PYTHON) scripts/install.py --dev
	$(PY) scripts/notice.py

pin-images: ## write the digests of the images of Docker into Dockerfile and docker-compose.yml; needs docker
	@$(PYTHON) scripts/pin_images.py

clean: ## remove .venv and caches; the library in data/ stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis benchmarks/out
	find . -name __pycache__ -type d -not -path './data/*' -prune -exec rm -rf {} +
