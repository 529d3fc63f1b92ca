"""A function of a lint has few parameters, and a type few fields: what belongs together is one value."""

import ast
from pathlib import Path

import pytest
from moduletrees import parse_module

ROOT = Path(__file__).parent.parent / "jobgen"
MOST_PARAMETERS, MOST_FIELDS = 8, 20
PUBLIC = {"api/lint.py: lint", "api/render.py: render", "api/diff.py: diff"}
"""Functions of the library, whose parameters are the options of a command."""
MODULES = [
    *(
        path
        for package in ("api", "engine", "model", "pipeline", "rendering", "reports")
        for path in (ROOT / package).rglob("*.py")
    ),
    *(ROOT / "check/checker.py", ROOT / "check/rule_runner.py", ROOT / "cli/run_lint.py", ROOT / "repo/layout.py"),
]


def list_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    named = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    named += [each.arg for each in (given.vararg, given.kwarg) if each]
    return [name for name in named if name not in ("self", "cls")]


def list_fields(type_: ast.ClassDef) -> set[str]:
    """Return the fields that a class declares, and the attributes that its methods set."""
    found = {
        each.target.id for each in type_.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    for node in ast.walk(type_):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            found |= {node.attr} if node.value.id == "self" else set()
    return found


def describe_too_large(tree: ast.Module, name: str) -> list[str]:
    """Return the functions with too many parameters, and the types with too many fields."""
    found = list[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and f"{name}: {node.name}" not in PUBLIC:
            found += (
                [f"{node.name}: {count} parameters"] if (count := len(list_parameters(node))) > MOST_PARAMETERS else []
            )
        elif isinstance(node, ast.ClassDef):
            found += [f"{node.name}: {count} fields"] if (count := len(list_fields(node))) > MOST_FIELDS else []
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_and_types_of_a_lint_are_small(path):
    assert describe_too_large(parse_module(path), path.relative_to(ROOT).as_posix()) == []


def test_what_is_too_large_is_found():
    parameters = ", ".join(f"each{number}: int" for number in range(MOST_PARAMETERS))
    fields = "; ".join(f"each{number}: int" for number in range(MOST_FIELDS))
    text = f"""
def large({parameters}, *, last: int) -> None: ...
def small({parameters}) -> None: ...
class Small: {fields}
class Large(Small):
    {fields}
    def __init__(self, {parameters}) -> None:
        self.last = 1
"""
    assert describe_too_large(ast.parse(text), "module.py") == ["large: 9 parameters", "Large: 21 fields"]


def test_the_public_functions_exist():
    functions = {
        f"{path.relative_to(ROOT).as_posix()}: {node.name}"
        for path in (ROOT / "api").glob("*.py")
        for node in parse_module(path).body
        if isinstance(node, ast.FunctionDef)
    }
    assert functions >= PUBLIC
