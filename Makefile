# Two commands are the whole set-up: `make demo` and `make test`. Each makes its own .venv first.

BIN := .venv/bin
READY := .venv/ready
BENCH_READY := .venv/bench-ready
# Models in tests are small: one thread each and two tests at a time beat two threads on two cores. Bytecode is kept,
# also where the environment forbids it: without it every process that a test starts compiles the package. `quick` keeps
# the folders of tests in memory where there are 4 GB: a ledger waits for the disk after every row.
MEMORY := $(shell [ "$$(df -k --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 4000000 ] 2>/dev/null && echo TMPDIR=/dev/shm)
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help demo test quick test-all docs mutants check format bench bench-test bench-check bench-run-tests bench-quick clean

help: ## list these targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml constraints.txt scripts/set-up.sh
	@scripts/set-up.sh

demo: $(READY) ## synthetic households with a certificate, in understudy-demo/
	@$(BIN)/understudy demo --out understudy-demo

test: $(READY) ## `check`, and meanwhile every test that takes seconds
	@scripts/ensure-chromium.sh
	@scripts/ensure-postgresql.sh
	@$(MAKE) --no-print-directory --jobs 2 check quick

quick: $(READY) # the tests of `make test` alone; DURATIONS=1 also writes durations.csv
	$(MEMORY) $(PYTEST) $(if $(DURATIONS),-p scripts.durations) -m "not slow" -n 2 --dist worksteal --ignore tests/site

test-all: check ## `check`, then every test, also those that take minutes, with annotated shapes checked at every call
	@scripts/ensure-chromium.sh
	@scripts/ensure-postgresql.sh
	THOROUGH=1 $(PYTEST) -n 2 --dist worksteal --ignore tests/site/test_site.py

docs: $(READY) ## the documentation site, in build/site: notebooks run, links and pages checked in a browser
	@scripts/ensure-chromium.sh
	OMP_NUM_THREADS=1 $(BIN)/python scripts/site.py
	$(PYTEST) -m "not slow" -n 2 --dist worksteal tests/site

mutants: $(READY) ## plant privacy defects in a copy, one at a time; every one has to fail a test named for it
	$(BIN)/python scripts/mutants.py

check: $(READY) ## lint, format, types, import layers, secrets, advisories
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --package understudy
	$(BIN)/lint-imports
	$(BIN)/python scripts/find_secrets.py
	$(BIN)/python scripts/advisories.py

format: $(READY) ## let ruff rewrite what `check` would refuse
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BENCH_READY): $(READY) bench/pyproject.toml
	@scripts/set-up.sh bench

bench: $(BENCH_READY) ## install `understudy-bench` and list the benchmarks
	@$(BIN)/understudy-bench list

bench-test: $(BENCH_READY) ## types, secrets and every test of the benchmarks and baselines that takes seconds
	@$(MAKE) --no-print-directory --jobs 2 bench-check bench-run-tests

bench-check: $(BENCH_READY)
	$(BIN)/mypy --package understudy_bench
	$(BIN)/python scripts/find_secrets.py bench

bench-run-tests: $(BENCH_READY)
	$(PYTEST) -m "not slow" -n 2 --dist worksteal bench/tests

bench-quick: $(BENCH_READY) ## every benchmark, quick, into understudy-results/: a night on two cores; goes on where it was
	@OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/understudy-bench all --into understudy-results

clean: ## remove everything that these targets made
	rm -rf .venv build dist understudy-demo understudy-results src/*.egg-info bench/src/*.egg-info
	rm -rf .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
