"""ARCHITECTURE.md lists the types that a lint passes through, in their order; the list is that of the code."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from moduletrees import parse_module

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
[SECTION] = re.findall(r"^## Glossary\n(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)
ROWS = re.findall(r"^\| (?!where|-)(?:`([\w/]+)` )?\| (.+?) \| (.+) \|$", SECTION, re.MULTILINE)
TYPES = {word.strip("`"): module for module, word, _ in ROWS if word.startswith("`")}
MOST = 67
"""How many words a reader has to learn at most."""


def read_module(name: str) -> ast.Module:
    path = ROOT / "jobgen" / name
    return parse_module(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


def list_types(module: ast.Module) -> dict[str, ast.AST]:
    """The classes and aliases of a module, by name."""
    aliases = (node for node in module.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name))
    unions = (node for node in module.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name))
    classes = (node for node in module.body if isinstance(node, ast.ClassDef))
    found: dict[str, ast.AST] = {node.targets[0].id: node for node in unions}  # type: ignore[attr-defined]
    found |= {node.target.id: node for node in aliases}  # type: ignore[union-attr]
    return found | {node.name: node for node in classes}


@pytest.mark.parametrize(("name", "module"), TYPES.items())
def test_types_are_where_the_glossary_says(name, module):
    assert name in list_types(read_module(module))


def test_types_that_several_carry_are_in_the_glossary():
    """A type of jobgen that is a field of two types of a lint is one that a reader meets."""
    carried: Counter[str] = Counter()
    for name, module in TYPES.items():
        tree = read_module(module)
        node = list_types(tree)[name]
        imported = {
            alias.asname or alias.name
            for each in ast.walk(tree)
            if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("jobgen.")
            for alias in each.names
        }
        fields = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.AnnAssign)]
        names = {each.id for field in fields for each in ast.walk(field.annotation) if isinstance(each, ast.Name)}
        carried.update(each for each in names & (imported | {*list_types(tree)}) if each[0].isupper())
    assert {name for name, count in carried.items() if count > 1} - TYPES.keys() == set()


def test_the_glossary_is_short():
    assert len({word for _, word, _ in ROWS}) == len(ROWS) <= MOST
    assert max(len(meaning) for _, _, meaning in ROWS) <= 110


def test_how_a_lint_runs_is_the_code():
    section = TEXT.partition("## How a lint runs")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    code = "".join((ROOT / "jobgen" / name).read_text("utf-8") for name in ("api/lint_run.py", "rendering/run.py"))
    assert len(blocks) == 2
    assert [block for block in blocks if block not in code] == []
