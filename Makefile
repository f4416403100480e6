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
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-16s %s\n", $$1, $$2}'

install: ## create .venv with the app's packages (run and demo do it too)
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py

install-office: ## add readers for .xls, .ods, .odp, .rtf and .msg: 64 MB to download
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py --office

install-ocr: ## add text recognition for pictures and scans: 115 MB to download
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py --ocr

install-postgres: ## add the driver for a Postgres database that several apps share: 5 MB to download
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py --postgres

install-bulk: ## add web archives, and imports on several machines: 80 MB to download
	@command -v $(PYTHON) >/dev/null || { echo "No Python found: 3.11 or newer is needed."; exit 1; }
	@$(PYTHON) scripts/install.py --bulk

install-dev: ## install and add the packages of tests and checks (test and lint do it too)
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

format: install-dev ## format the code
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

demo: install ## load the sample pages and ask eight questions, in the terminal; needs no network
	@PYTHONPATH=. $(PY) scripts/demo.py

eval: install ## compare each quality mechanism with its simplest rival; writes docs/quality.md; see benchmarks/README.md
	@$(PY) -W ignore -m benchmarks.gate --publish

bench: install ## compare speed with common alternatives; writes docs/performance.md; see benchmarks/README.md
	@$(PY) -m benchmarks.bench

bench-scale: install ## measure a library up to a million chunks; 15 minutes, 15 GB of disk; SIZES=10000,100000 for less
	@$(PY) -m benchmarks.scale $(if $(SIZES),--sizes $(SIZES))

lock: install-dev ## update locks/, constraints.txt and NOTICE after a change of requirements.txt
	$(PY) scripts/lock.py
	@$(PYTHON) scripts/install.py --dev
	$(PY) scripts/notice.py

pin-images: ## write the digests of Docker images into Dockerfile and docker-compose.yml; needs docker
	@$(PYTHON) scripts/pin_images.py

clean: ## remove .venv and caches; the library in data/ stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis benchmarks/out
	find . -name __pycache__ -type d -not -path './data/*' -prune -exec rm -rf {} +
