"""What a package reaches by its imports, also by those inside functions and for type checkers.

`jobgen/__init__.py` is left out: every module has it as a parent, and it imports names only when they are asked for.
"""

from __future__ import annotations

import ast
import functools
import itertools
from pathlib import Path

import pytest
from moduletrees import find_nodes, parse_module

ROOT = Path(__file__).parent.parent
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "jobgen").rglob("*.py")
    if path != ROOT / "jobgen" / "__init__.py"
}
MOST_LINES = 32_900
"""Lines of code that the render command reaches. Most of the last 800 say what to write in place of a wrong form."""


@functools.cache
def list_imported(name):
    """The modules that a module imports, with the packages that they are in."""
    found = set()
    for node in find_nodes(parse_module(MODULES[name]), ast.Import, ast.ImportFrom):
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        names = [f"{prefix}{alias.name}" for alias in node.names]
        for each in names:
            parts = each.split(".")
            found |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)} & MODULES.keys()
    return sorted(found - {name})


def find_chains(starts):
    """The shortest chain of imports from some modules to each module that they reach."""
    chains = {start: (start,) for start in starts}
    waiting = sorted(starts)
    for name in waiting:
        for other in list_imported(name):
            if other not in chains:
                chains[other] = (*chains[name], other)
                waiting.append(other)
    return chains


def is_in(module, *packages):
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("package", ["jobgen.rendering", "jobgen.explanation", "jobgen.cli.commands.render"])
def test_neither_checks_nor_features_are_reached(package):
    chains = find_chains(name for name in MODULES if is_in(name, package))
    reached = [chain for name, chain in chains.items() if is_in(name, "jobgen.check", "jobgen.features")]

    assert " imports ".join(min(reached, key=len, default=())) == ""


def test_a_chain_leads_from_one_module_to_the_next():
    chain = find_chains(["jobgen.api.lint"])["jobgen.check.checker"]

    assert chain[0] == "jobgen.api.lint"
    assert all(after in list_imported(before) for before, after in itertools.pairwise(chain))


def test_packages_of_a_module_are_reached_too():
    assert "jobgen.check.rules" in find_chains(["jobgen.check.rules.fleet.shared"])
    assert "jobgen.reports" in find_chains(["jobgen.rendering.read_jobs"])


def test_the_render_command_reaches_little():
    chains = find_chains(["jobgen.cli.commands.render"])
    # `render --enforce` checks what it renders.
    reached = [name for name, chain in chains.items() if "jobgen.api.enforce" not in chain]

    assert sum(len(MODULES[name].read_text("utf-8").splitlines()) for name in reached) <= MOST_LINES
