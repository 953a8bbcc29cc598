# `make demo` and `make test` need git, make and Python 3.11 or later, nothing else: they make .venv and install what the
# locks name. Say PYTHON=/path/to/python to choose another interpreter than the newest that is found.

VENV := .venv
BIN := $(VENV)/bin
# One more than the cores of a small machine: some tests wait for a process that they started or killed.
WORKERS ?= 3
PYTEST_ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export PIP_ROOT_USER_ACTION := ignore
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export UV_SYSTEM_CERTS := 1
export NO_MKDOCS_2_WARNING := 1
# The tests start many processes, each of which would compile everything that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test install check format external fuzz mutate benchmarks screenshots docs dist image sbom chart lock clean
.DEFAULT_GOAL := help

help: ## say what each target does
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile | expand -t 16

demo: $(VENV)/.runtime ## start the bot on the sample company, and print the address of its page
	@echo "Starting the demonstration."
	@trap : INT; $(BIN)/plumbline demo || { code=$$?; test $$code -eq 130 || exit $$code; }

test: $(VENV)/.dev ## run the tests that need nothing but Python
	@echo "Running the tests in $(WORKERS) processes."
	@$(BIN)/python -m pytest -q -p no:schemathesis -p tests.forks --forks $(WORKERS) $(PYTEST_ARGS)

install: $(VENV)/.runtime ## install into .venv what the bot needs

check: $(VENV)/.dev ## lint, formatting, layers, types, and the budget
	@echo "Linting with ruff."
	@$(BIN)/ruff check
	@echo "Checking the formatting with ruff."
	@$(BIN)/ruff format --check
	@echo "Checking the layers with import-linter."
	@$(BIN)/lint-imports --no-logo
	@echo "Checking the types with pyright."
	@$(BIN)/pyright
	@echo "Comparing the size of the product, and the walks through it, with tests/benchmarks/budget.toml."
	@$(BIN)/python -m tests.benchmarks size --quiet
	@$(BIN)/python -m tests.benchmarks walk --quiet

format: $(VENV)/.dev ## format, and mend what ruff can mend
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

external: $(VENV)/.dev ## run the tests against real servers, emulators and a browser (.ci/run installs them)
	@echo "Running the external tests."
	@$(BIN)/python -m pytest -q -m external -p tests.forks --forks 2 $(PYTEST_ARGS)

fuzz: $(VENV)/.dev ## send every door 100 000 requests that make little sense, draw 2 000 audiences, and 1 000 examples of every property
	@PLUMBLINE_FUZZ_EXAMPLES=100000 $(BIN)/python -m pytest -q -rP -m external -o faulthandler_timeout=3600 \
		tests/external/test_fuzzing.py $(PYTEST_ARGS)
	@PLUMBLINE_FUZZ_EXAMPLES=100000 $(BIN)/python -m pytest -q tests/contract/test_sender_fuzz.py \
		tests/contract/test_odd_values.py $(PYTEST_ARGS)
	@$(BIN)/python -m pytest -q -m "hypothesis and not external" --hypothesis-profile thorough \
		-o faulthandler_timeout=3600 $(PYTEST_ARGS)
	@PLUMBLINE_AUDIENCE_WORLDS=2000 $(BIN)/python -m pytest -q -m external -o faulthandler_timeout=3600 \
		tests/scenario/test_audiences.py $(PYTEST_ARGS)

# ONLY="paging incidents" are its subjects, SAMPLE=50 the changes of each that are tried: all of them take hours.
mutate: $(VENV)/.dev ## say which small changes of what decides about pages, incidents, certainty and confidence no test notices
	@$(BIN)/python -c "import cosmic_ray" 2>/dev/null || \
		VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes -r requirements-mutate.lock
	@$(BIN)/python -m tests.benchmarks mutate $(ONLY) $(if $(SAMPLE),--sample $(SAMPLE))

# DATA=DIR is the folder of the data; ONLY="answers rca" runs these two, ONLY=all every one. Without DATA only the pages
# are written, from the figures that were measured last. LLM=URL instead measures what the model at that address adds:
# answers (of DATA), causes, owners and checkers, with its calls and tokens.
benchmarks: $(VENV)/.dev ## measure on the public data in DATA, and write BENCHMARKS.md and the table in README.md
	@$(BIN)/python -m tests.benchmarks $(if $(LLM),with-model $(LLM),report) $(if $(DATA),--data $(DATA)) $(ONLY)

screenshots: $(VENV)/.dev ## make the pictures of the README in the chat emulators (.ci/run installs them)
	@$(BIN)/python -m tests.external.screenshots

docs: $(VENV)/.dev ## write what of docs/ follows from the code, and make a site of it with MkDocs in site/
	@$(BIN)/plumbline schema >docs/plumbline.schema.json
	@$(BIN)/python -m tests.documentation.architecture
	@$(BIN)/python -m tests.documentation.messages
	@$(BIN)/python -m tests.documentation.vectors
	@$(BIN)/python -c "import material" 2>/dev/null || VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --group docs
	@$(BIN)/python -m mkdocs build --quiet --strict
	@echo "The documentation is in site/index.html."

# VERSION=0.2.0 is compared with core/__init__.py, so that a tag cannot name another release than it publishes.
dist: $(VENV)/.dev ## build the wheel and the sdist into dist/
	@version=$$(sed -n 's/^VERSION = "\([^"]*\)".*/\1/p' core/__init__.py); test "$(or $(VERSION),$$version)" = "$$version" || \
		{ echo "core/__init__.py is of version $$version, not of $(VERSION)." >&2; exit 1; }
	@rm -rf dist
	@$(BIN)/uv build --quiet --build-constraints requirements-bootstrap.lock --out-dir dist
	@ls dist

# IMAGE=NAME:TAG is its name; PUSH=1 pushes it to its registry, to which buildah has to be logged in.
IMAGE ?= plumbline
PYTHON_IMAGE ?= python:3.11-slim-bookworm
image: ## build the image with buildah, and push it with PUSH=1
	@buildah build --file deploy/Dockerfile --ignorefile deploy/Dockerfile.dockerignore \
		--build-arg PYTHON_IMAGE=$(PYTHON_IMAGE) --tag $(IMAGE) .
	@$(if $(PUSH),buildah push $(IMAGE))

# Also of an image that was built here: SBOM_OF=NAME:TAG lists its own and Debian's packages.
sbom: $(VENV)/.dev ## write the list of contents (CycloneDX) of the wheel, or of an image, into dist/
	@mkdir -p dist
ifdef SBOM_OF
	@container=$$(buildah from --pull-never $(SBOM_OF)); \
		buildah run $$container -- /opt/plumbline/bin/python -m pip freeze --exclude plumbline-bot >dist/image.txt; \
		buildah run $$container -- dpkg-query -W >dist/debian.txt; buildah rm $$container >/dev/null
	@$(BIN)/python .ci/sbom.py dist/image.txt dist/debian.txt >dist/plumbline-image.cdx.json
	@rm dist/image.txt dist/debian.txt
else
	@$(BIN)/python .ci/sbom.py >dist/plumbline.cdx.json
endif
	@ls dist/*.cdx.json

# The chart of the release, as a file for a registry or a web server; HELM is the program.
HELM ?= helm
chart: ## package the chart into dist/
	@$(HELM) package deploy/helm/plumbline --destination dist

# Pins that are still allowed stay; `make lock UPGRADE=--upgrade` takes the newest of everything.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(UPGRADE)

lock: $(VENV)/.bootstrap ## write the locks anew from pyproject.toml
	@echo "Resolving the dependencies for Python 3.11 and later."
	@printf 'setuptools>=77\nuv\n' | $(COMPILE) --output-file requirements-bootstrap.lock -
	@$(COMPILE) --output-file requirements.lock --extra learning pyproject.toml
	@$(COMPILE) --output-file requirements-dev.lock --group dev --extra learning --extra qdrant --extra botbuilder --extra otel \
		--constraint requirements.lock pyproject.toml
	@$(COMPILE) --output-file requirements-mutate.lock --constraint requirements-dev.lock --group mutate
	@$(COMPILE) --output-file requirements-release.lock --group release

clean: ## remove .venv and everything that was built
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf tests/external/node_modules tests/external/helm
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One line of shell that prints the newest Python with which the locks install: 3.14 to 3.11 by name, else whatever
# `python3` is. A candidate must run, be 3.11 or later, and be able to make a virtual environment.
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	$$name -c '$(USABLE)' >/dev/null 2>&1 && { command -v $$name; break; }; done)

$(VENV)/.bootstrap:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or later that can make a virtual environment was found: install" \
		"one (on Debian and Ubuntu: python3 and python3-venv), or say make PYTHON=/path/to/python." >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements-bootstrap.lock \
		|| echo "uv is not to be had here; pip installs instead, which takes longer."
	@touch $@

UV = VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --build-constraints requirements-bootstrap.lock
PIP = $(BIN)/python -m pip install --quiet --use-pep517

# uv where it is there and works, else pip: a machine may be set up for pip only (a mirror in pip.conf, say).
define install
	@echo "Installing the $$(grep -c == $(1)) packages of $(1) (a minute or so, the first time)."
	@{ test -x $(BIN)/uv \
		&& $(UV) --require-hashes -r $(1) \
		&& $(UV) --no-deps --editable . ; } 2>$(VENV)/uv.log \
	|| { echo "uv could not ($(VENV)/uv.log says why); installing with pip, which takes longer." \
		&& $(PIP) --require-hashes -r $(1) \
		&& $(PIP) --no-deps --editable . ; }
endef

$(VENV)/.runtime: requirements.lock pyproject.toml | $(VENV)/.bootstrap
	$(call install,requirements.lock)
	@touch $@

$(VENV)/.dev: requirements-dev.lock requirements.lock pyproject.toml | $(VENV)/.bootstrap
	$(call install,requirements-dev.lock)
	@touch $(VENV)/.runtime $@
