# Two commands do everything on a fresh machine with Python 3.11 and git: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test bench docs clean

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: .venv/ready
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

test: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest

bench: .venv/ready
	$(BIN)/python benchmarks/render.py

docs: .venv/ready
	$(BIN)/python docs/build_rules.py

clean:
	rm -rf .venv rendered dist build
