# Needs Python 3.11-3.13, make and a shell. Everything made here lives in .venv and .demo.
#
#   PYTHON=/path/to/python3.12   the interpreter of the virtual environment (default: the first that works)
#   JAVA_HOME=/path/to/jdk       a Java 17 or 21 (default: the one on the PATH, else one from a wheel)
#   PORT=3000                    the web server's port
#   ARGS="-k name"               further arguments of pytest

SHELL := /bin/sh
.DEFAULT_GOAL := help

STAMP := .venv/.complete
CLASSES := .venv/spark.jsa
RUN := sh scripts/run.sh
# A file's tests stay in one process, which has one Spark session.
TWO := -n 2 --dist loadfile
PORT ?= 3000
ARGS ?=

.PHONY: help setup demo test test-full check format ui bench clean

help:
	@echo "make demo       run the example pipeline and say what was published, held and rejected"
	@echo "make ui         open the same project in the Dagster web server"
	@echo "make test       run the tests"
	@echo "make test-full  run the tests, the slow ones too, and the engine's on other Sparks"
	@echo "make check      lint, formatting and types"
	@echo "make format     put formatting right"
	@echo "make bench      measure the figures that the README names"
	@echo "make setup      make the virtual environment (every target does it when needed)"
	@echo "make clean      remove what was made here"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt scripts/setup.sh scripts/java_home.py
	@sh scripts/setup.sh
	@touch $@

demo: $(STAMP)
	@$(RUN) python examples/run_demo.py

# Only the tests start so many Java processes that this pays.
$(CLASSES): $(STAMP) scripts/class_archive.py
	@echo "Keeping Spark's classes for the Java processes of the tests"
	@rm -f $@
	@$(RUN) python scripts/class_archive.py $@

test: $(CLASSES)
	@$(RUN) python -m pytest $(TWO) $(ARGS)

test-full: $(CLASSES)
	@$(RUN) python -m pytest $(TWO) -m "full or not full" $(ARGS)
	@$(RUN) sh scripts/lanes.sh

check: $(STAMP)
	@$(RUN) python -m ruff check .
	@$(RUN) python -m ruff format --check .
	@$(RUN) python -m mypy

format: $(STAMP)
	@$(RUN) python -m ruff check --fix .
	@$(RUN) python -m ruff format .

ui: $(STAMP)
	@$(RUN) sh scripts/ui.sh $(PORT)

bench: $(STAMP)
	@$(RUN) python benchmarks/run.py

clean:
	@sh scripts/clean.sh
