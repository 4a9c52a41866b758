# Two commands for a newcomer: `make demo` and `make test`. Each sets up its own environment once.
# Another Python or torch than the pinned ones: make test PYTHON=python3.10 TORCH=2.6.0 VENV=.venv-oldest
PYTHON ?= python3
VENV   ?= .venv
TORCH  ?=
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Without the pins of torch and of what torch pins itself, where another torch was asked for.
PINS   := $(if $(TORCH),$(VENV)/constraints.txt,constraints.txt)
PIP    := $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint $(PINS)
PYTEST := $(BIN)/python -m pytest --numprocesses auto

.PHONY: demo test quick integrations lint format bench docs clean native

$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once; a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(if $(TORCH),grep -vE '^(torch|sympy)==' constraints.txt > $(PINS))
	@$(PIP) 'torch$(if $(filter-out newest,$(TORCH)),==$(TORCH))' numpy hatchling editables
	@$(PIP) --no-build-isolation --editable '.[recipes,test,bench]'
	@$(PIP) --no-deps dante-corpora allennlp
	@touch $@

# The loops in C++, compiled again when they have changed; without a compiler torch computes everything.
native: $(READY)
	@$(BIN)/python native/build.py > /dev/null

demo: $(READY) native
	@$(BIN)/python -m recipes.demo

# Everything that is checked: the linters, all tests, and how much of the package they reach (98 %; without a compiler
# what calls the native library is not reached). What cannot be imported here is not counted.
test: $(READY) native lint
	@UNREACHED=$$($(BIN)/python -c 'import transformers' 2> /dev/null && echo nothing || echo '*/integrations/huggingface.py') \
	$(PYTEST) --cov --cov-report=term --cov-fail-under=$$(test -e torch_multiclass/_native/library.json && echo 98 || echo 95)

# What does not start processes, capture graphs or train a recipe: a few minutes.
quick: $(READY) native
	@$(PYTEST) -m 'not slow'

# The libraries of the extra "integrations" in the same environment, and their tests; from then on `make test` runs them.
integrations: $(READY) native
	@$(BIN)/python -c 'import transformers, onnxruntime' 2> /dev/null || $(PIP) --no-build-isolation --editable '.[integrations]'
	@$(PYTEST) tests/integrations tests/heads/test_saving.py

lint: $(READY)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY)
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .

bench: $(READY) native
	@$(BIN)/python -m benchmarks

# The site, into docs/_build/html; its pages run, and a warning ends it. From Python 3.11 on.
docs: $(READY) native
	@$(BIN)/python -c 'import furo, myst_nb; __import__("sphinx-mathjax-offline")' 2> /dev/null || $(PIP) --no-build-isolation --editable '.[docs]'
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf $(VENV) torch_multiclass/_native demo runs build dist docs/_build docs/api docs/results .coverage .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache .grimp_cache
