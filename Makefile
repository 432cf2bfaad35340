# Two commands for a fresh clone: `make demo` and `make test`. Each sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo/$(shell date +%Y%m%d-%H%M%S)

.PHONY: demo test test-slow lint format bench docs pictures clean help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/.train  ## train agents with and without a curriculum, and write a report to open
	$(BIN)/mastery train obstructed-maze --preset light --program mr,uniform --seeds 2 \
		--frames 3M --minutes 2.7 --evaluate-every 500k --out $(DEMO) \
		--report $(DEMO)/report.html --clips

test: $(VENV)/.test $(VENV)/.browser lint  ## lint, types and every test that is not slow
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test-slow: $(VENV)/.test  ## the checks that take long
	$(BIN)/python -m pytest -m slow -n auto -rP

lint: $(VENV)/.test  ## ruff and mypy
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.test  ## let ruff tidy the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.test  ## speed and memory, as tables (peers are measured if they are installed)
	$(BIN)/python benchmarks/teacher.py
	$(BIN)/python benchmarks/environments.py
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/addition.py
	$(BIN)/python benchmarks/adapters.py
	$(BIN)/python benchmarks/ray_teacher.py
	$(BIN)/python benchmarks/page.py

docs: $(VENV)/.docs  ## build the site into site/, without the network; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

pictures: $(VENV)/.test  ## draw docs/img anew; the page's own pictures are of the last make demo
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/program_pictures.py
	$(BIN)/python docs/page_pictures.py

clean:  ## remove everything that was set up
	rm -rf $(VENV) demo site .pytest_cache .hypothesis .mypy_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# a stamp for each set of requirements, so that a second run installs nothing
$(VENV)/.train: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[train]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

# a browser for the tests of the page: one that is there, or one that can be installed
$(VENV)/.browser: | $(VENV)/.test
	$(BIN)/python tests/support/browser.py
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.train
