# Two commands do everything on a fresh machine with Python 3.11 and git: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo dev compile test test-fast rule stress bench guard docs conformance dist sbom record-release vscode clean

.venv/pyvenv.cfg:
	$(PYTHON) -m venv .venv

# jobgen and what it needs to run.
.venv/installed: pyproject.toml | .venv/pyvenv.cfg
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

# The same with the tools of developers, at once.
.venv/ready: pyproject.toml | .venv/pyvenv.cfg
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch .venv/installed $@

dev: compile
	@echo 'run `. .venv/bin/activate`: it puts jobgen, pytest and ruff on PATH'

demo: .venv/installed
	@echo '$$ jobgen render pytorch-simple -e prod'
	@$(BIN)/jobgen render pytorch-simple -e prod
	@echo
	@echo '$$ jobgen explain pytorch-simple spec.pytorchReplicaSpecs.Worker.replicas -e prod'
	@$(BIN)/jobgen explain pytorch-simple spec.pytorchReplicaSpecs.Worker.replicas -e prod
	@echo
	@echo '$$ jobgen lint'
	@$(BIN)/jobgen lint
	@echo
	@echo '$$ jobgen render -e prod -o rendered'
	@$(BIN)/jobgen render -e prod -o rendered
	@find rendered -name '*.yaml' | sort
	@echo
	@echo '$$ jobgen report -o site'
	@$(BIN)/jobgen report -o site
	@echo 'open $(CURDIR)/site/index.html in a browser'

# The tests start thousands of processes. Compiled modules save each of them up to half a second of CPU, even where
# PYTHONDONTWRITEBYTECODE is set. The tables of tools/build_ready.py save a quarter of a second.
compile: .venv/ready
	@$(BIN)/python -m compileall -q jobgen
	@$(BIN)/python tools/build_ready.py

# Modules whose assertions pytest rewrites are kept, or each of its processes would rewrite a hundred of them.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest

# mypy uses one core, so it runs beside the tests; what it finds is printed behind them.
test: compile
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@echo '$(BIN)/mypy & $(BIN)/pytest'
	@$(BIN)/mypy > .venv/mypy.txt 2>&1 & mypy=$$!; $(PYTEST); tests=$$?; \
	wait $$mypy; types=$$?; cat .venv/mypy.txt; [ $$tests$$types = 00 ]

# The inner loop: everything but mypy and the tests that tests/slow.txt lists.
test-fast: compile
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(PYTEST) -m 'not slow'

# Everything about one rule: its examples, without each of their fields, its page, its consequence and its translation.
RULE ?= $(error name the rule, such as `make rule RULE=mutable-image-tag`)
rule: compile
	$(PYTEST) -n 0 --stress tests/test_rules.py tests/test_missing_fields.py -k '$(RULE)'
	$(PYTEST) tests/test_rule_docs.py tests/test_rule_names.py tests/test_rule_pages.py tests/test_severities.py tests/test_translations.py

# What the suite tries a few times, tried for an hour with new random data: laws, damaged files, killed runs, runs that
# meet. And what takes long: large conformance suites, an installation by pip, a build that is repeated.
stress: compile
	$(PYTEST) --stress

bench: .venv/ready
	$(BIN)/python benchmarks/table.py --json bench.json
	$(BIN)/python benchmarks/page.py bench.json

# Instructions of this checkout compared with the last release, or with `make guard BASE=<revision>`.
BASE ?=
LIMIT ?= 1.05
guard: .venv/ready
	$(BIN)/python benchmarks/guard.py --limit $(LIMIT) $(if $(BASE),--base $(BASE))

# The generated pages, and all pages as a site in build/site.
docs: .venv/ready
	$(BIN)/python docs/build_rules.py
	$(BIN)/python docs/build_defects.py
	$(BIN)/python docs/build_jobs.py
	$(BIN)/python docs/build_fields.py
	$(BIN)/python docs/build_incidents.py
	$(BIN)/python docs/build_commands.py
	$(BIN)/python docs/build_api.py
	$(BIN)/python docs/build_zh.py
	$(BIN)/mkdocs build --strict

# Needs the suites in ../shared, and is skipped without them.
conformance: .venv/ready
	$(BIN)/python docs/build_conformance.py
	$(BIN)/python docs/build_incidents.py

# Wheel, source distribution, and jobgen.pyz for this Python and system: the same bytes from the same commit.
dist: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
dist: .venv/ready
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/build_pyz.py dist/*.whl

# dist/jobgen.cdx.json: jobgen and the packages that pip installs with it, in the format of CycloneDX.
sbom: dist
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[release]'
	rm -rf build/sbom
	$(PYTHON) -m venv --without-pip build/sbom
	$(BIN)/pip --python build/sbom/bin/python install --quiet --disable-pip-version-check dist/*.whl
	$(BIN)/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --output-file dist/jobgen.cdx.json build/sbom/bin/python

# The examples of this version and what it renders, with which later versions are compared.
record-release: .venv/ready
	$(BIN)/python tools/record_release.py

# The extension for VS Code, as editors/vscode/dist/jobgen.vsix. Needs Node.js 20 or newer.
vscode: .venv/ready
	cd editors/vscode && npm ci
	cd editors/vscode && JOBGEN_COMMAND='$(CURDIR)/$(BIN)/jobgen' npm test
	cd editors/vscode && npm run package

clean:
	rm -rf .venv rendered site dist build
