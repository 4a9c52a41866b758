# Two commands for a newcomer: `make demo` and `make test`. Each sets up its own environment once.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint bench clean

$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once; a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) torch numpy hatchling editables
	@$(PIP) --no-build-isolation --editable '.[recipes,test,bench]'
	@$(PIP) --no-deps dante-corpora
	@touch $@

demo: $(READY)
	@$(BIN)/python -m recipes.demo

test: $(READY) lint
	@$(BIN)/python -m pytest --numprocesses auto

lint: $(READY)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(READY)
	@$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) demo runs build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
