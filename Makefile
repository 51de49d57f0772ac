# weft. `make serve` starts the server, `make test` tests it. Needs only Python 3.11 or newer.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Tests wait for servers and timers more than they compute; the long ones compute more of the time.
WORKERS ?= 5
LONG_WORKERS ?= 3
ARGS ?=
SOAK_SECONDS ?= 600

# The first of these that is 3.11 or newer. Asked for by running it: a name on the PATH may be a shim that leads nowhere.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$name; break; fi; done)

REQUIRED := $(VENV)/.weft-required
INSTALLED := $(VENV)/.weft-installed
INSTALLED_DEV := $(VENV)/.weft-installed-dev
# The systems that benchmarks compare with have a folder of their own: they bring much that weft does not need.
PEERS := .venv-peers
PEERS_PIP := $(PEERS)/bin/python -m pip --disable-pip-version-check
INSTALLED_PEERS := $(PEERS)/.weft-installed-peers
# What the interface is built from: an edit there builds it again.
WEB := hatch_build.py $(shell find web -type f -not -path '*/node_modules/*' -not -path 'web/test/*' -not -path 'web/lint/*' 2>/dev/null)
# An installation with WEFT_WEB=skip left it out: without that it is installed again.
ifneq ($(WEFT_WEB),skip)
NOT_BUILT := $(if $(wildcard server/_web/index.html),,$(if $(wildcard web/package.json),not-built))
endif

.PHONY: not-built help serve install quick test check browser lint format docs sbom release lock soak mutants faults bench bench-peers peers compare clean

help:
	@echo "make serve    start weft at http://127.0.0.1:8765 and print a link that signs in (first time: about a minute to install)"
	@echo "make quick    run the tests of what you changed (a minute)"
	@echo "make test     run what nearly every change can break (six minutes on two cores); a Chromium is fetched where there is none"
	@echo "make check    run all other tests: PostgreSQL, the whole editor, 10 kills, every kind of fault, fuzzing, load (three quarters of an hour);"
	@echo "              then those of the database again on PostgreSQL 15, which is fetched where there is none"
	@echo "make browser  run all tests of the editor in a real browser"
	@echo "make lint     ruff, mypy --strict and pyright (also of the code in the documentation), import rules, bounds of size; biome for the editor"
	@echo "make format   lay the code out"
	@echo "make docs     build the site of the documentation in build/docs/site"
	@echo "make release  build everything that is published with a version, in build/release (ARGS=--dry-run: also of a tree that is not ready)"
	@echo "make sbom     list what weft installs, with versions, hashes and licenses: build/sbom.cdx.json, build/third-party-licenses.md"
	@echo "make soak     random plans, crashes and faults for SOAK_SECONDS (600)"
	@echo "make mutants  plant bugs, one at a time; the simulations and the tests named for each must find it (twenty minutes)"
	@echo "make bench    measure everything beside its floor, and write docs/reference/performance.md (make bench-peers: other systems)"
	@echo "make peers    install the other systems that benchmarks and examples compare with (LangGraph, DBOS, ...), in $(PEERS)"
	@echo "make compare  run the workflows of examples/compare in weft, DBOS, Prefect, LangGraph and Hamilton, with kills (ten minutes)"
	@echo "make lock     pin the newest versions that pyproject.toml allows"
	@echo "make clean    remove what was built; databases stay"

serve: $(INSTALLED)
	@exec $(BIN)/weft serve --dev-model --build-python $(ARGS)

install: $(INSTALLED)

# One that fails is run again, at most five in all, and what failed is printed: beside other load a wait may end too early.
# Not those that look for what fails rarely: there, once is a finding.
RERUN := --reruns 1 --max-suite-reruns 5 --rerun-show-tracebacks \
	$(foreach folder,simulation faults e2e/crash,--rerun-exclude-path tests/$(folder))

# Tests start some hundred processes: where Python writes no bytecode, each would compile all of weft again (1.5 s).
quick test check browser: export PYTHONDONTWRITEBYTECODE :=

quick: $(INSTALLED_DEV)
	$(BIN)/python -m tests.quick $(ARGS)

# A Chromium of the machine, else one from npm: without any it ends here, and says what to install.
# `near` is what tests/conftest.py lists; `make check` runs the rest.
test: $(INSTALLED_DEV)
	$(BIN)/python -m tests.browser.get_chromium
	$(BIN)/weft python build
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --whole-files $(RERUN) -m near $(ARGS)

# Where MariaDB cannot be fetched, its tests are skipped.
# On a disk, as servers are; `make test` makes its databases in memory where it can (tests/conftest.py).
check: export PYTEST_DEBUG_TEMPROOT := $(or $(TMPDIR),/tmp)
check: export WEFT_CRASH_KILLS ?= 10
check: $(INSTALLED_DEV)
	$(BIN)/python -m tests.browser.get_chromium
	$(BIN)/weft python build
	-$(BIN)/python -m tests.support.mariadb
	$(BIN)/python -m pytest -n $(LONG_WORKERS) --dist loadgroup $(RERUN) -m "not near and not install" $(ARGS)
	$(BIN)/python -m tests.support.get_postgres
	WEFT_TEST_POSTGRES=15 WEFT_CRASH_KILLS=10 $(BIN)/python -m pytest -n $(LONG_WORKERS) --dist loadgroup $(RERUN) $(OLDEST_POSTGRES)

# On the oldest PostgreSQL that weft supports: the contract, cases, crashes and faults; races and meetings as in `make test`.
OLDEST_POSTGRES := -m "not install" tests/conformance tests/e2e tests/faults/test_points.py \
	-k "(postgres or two_sessions or every_commit) and not many_times and not all_others"

browser: $(INSTALLED_DEV)
	$(BIN)/python -m tests.browser.get_chromium
	$(BIN)/python -m pytest tests/browser -m "not install" $(ARGS)

lint: $(INSTALLED_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/python -m tests.typing.docs
	$(BIN)/python -m basedpyright
	$(BIN)/lint-imports
	$(BIN)/python -m tests.code_size --check
	$(BIN)/python -m tests.walk
	$(BIN)/python -m tests.web.lint

format: $(INSTALLED_DEV)
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	$(BIN)/python -m tests.web.lint --write

docs: $(INSTALLED_DEV)
	$(BIN)/python -m docs.site
	@echo "To read it: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs/site 8780"

release: $(INSTALLED_DEV)
	$(BIN)/python -m docs.release $(ARGS)

sbom: $(INSTALLED_DEV)
	$(BIN)/python -m docs.sbom

soak: $(INSTALLED_DEV)
	WEFT_SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest -m "soak or install" --timeout 0 $(ARGS)

mutants: $(INSTALLED_DEV)
	$(BIN)/python -m tests.simulation.mutants
	$(BIN)/python -m tests.simulation.world.mutants
	$(BIN)/python -m tests.simulation.direct

# What clients see of each fault, for docs/reference/reliability.md.
faults: $(INSTALLED_DEV)
	$(BIN)/python -m tests.promises.faults

# For a machine that does nothing else: samples with other load are thrown away, and figures without any are left out.
bench: $(INSTALLED_DEV)
	$(BIN)/weft python build
	$(BIN)/python -m benchmarks --json $(ARGS) > benchmarks/results/figures.json.new
	mv benchmarks/results/figures.json.new benchmarks/results/figures.json
	$(BIN)/python -m benchmarks.page

bench-peers: $(INSTALLED_DEV) $(INSTALLED_PEERS)
	$(BIN)/python -m benchmarks --only chain,fan,loop,runs,resume --compare peers --json $(ARGS) > benchmarks/results/peers.json.new
	mv benchmarks/results/peers.json.new benchmarks/results/peers.json
	$(BIN)/python -m benchmarks.page

peers: $(INSTALLED_PEERS)

# The five workflows of examples/compare in each system, with a kill -9 in three of them; nothing leaves the machine.
compare: $(INSTALLED) $(INSTALLED_PEERS)
	$(BIN)/python -m examples.compare.check weft
	$(PEERS)/bin/python -m examples.compare.check dbos prefect langgraph hamilton

# Everything that is installed has its hash here: what runs, what tests and builds, and the Node that builds the editor.
COMPILE := $(BIN)/python -m uv pip compile -q -U --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate
# All that people install; `demo` is part of `dev`.
EXTRAS := server llm mcp postgres mysql redis sftp python oidc otel kubernetes dask pdf html excel
lock: $(INSTALLED_DEV)
	$(COMPILE) pyproject.toml --extra server --extra llm -o requirements.lock
	$(COMPILE) pyproject.toml -c requirements.lock --extra server --extra dev -o requirements-dev.lock
	$(COMPILE) pyproject.toml -c requirements-dev.lock $(EXTRAS:%=--extra %) -o requirements-extras.lock
	$(COMPILE) pyproject.toml -c requirements.lock --extra server --extra peers -o requirements-peers.lock
	grep '^python = ' pyproject.toml | sed 's/.*\["\(.*\)"\]/\1/' | $(COMPILE) - -c requirements-dev.lock -o requirements-python.lock
	$(BIN)/python hatch_build.py requirements | $(COMPILE) - -c requirements-dev.lock -o requirements-build.lock
	$(BIN)/python hatch_build.py node | $(COMPILE) - -o requirements-node.lock

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -not -path './$(PEERS)/*' -prune -exec rm -rf {} +
	rm -rf server/_web web/node_modules web/lint/node_modules
	rm -f $(REQUIRED) $(INSTALLED) $(INSTALLED_DEV) $(INSTALLED_PEERS)

# Versions and their hashes come from the lock; the package itself is linked, so edits need no new install.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "weft needs Python 3.11 or newer; none was found on the PATH. Set PYTHON=/path/to/python3." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(REQUIRED): requirements.lock | $(BIN)/python
	$(PIP) install -q --require-hashes -r requirements.lock
	@touch $@

# Without build isolation: pip would fetch the build tools, and a Node where there is none, in whatever version is newest.
$(INSTALLED): pyproject.toml requirements-build.lock requirements-node.lock requirements-python.lock $(WEB) $(REQUIRED) $(NOT_BUILT)
	$(PIP) install -q --require-hashes -r requirements-build.lock
	@if $(BIN)/python hatch_build.py needs-node; then \
		echo "$(PIP) install -q --require-hashes -r requirements-node.lock"; \
		$(PIP) install -q --require-hashes -r requirements-node.lock; fi
	$(PIP) install -q --no-deps --no-build-isolation -e .
	@$(PIP) install -q --require-hashes -r requirements-python.lock || \
		echo "weft works without this package, which is not available here: function blocks cannot be in Python" >&2
	@touch $@

$(INSTALLED_DEV): requirements-dev.lock $(INSTALLED)
	$(PIP) install -q --require-hashes -r requirements-dev.lock
	@touch $@

$(INSTALLED_PEERS): requirements-peers.lock | $(BIN)/python
	$(BIN)/python -m venv $(PEERS)
	$(PEERS_PIP) install -q --require-hashes -r requirements-peers.lock
	@touch $@
