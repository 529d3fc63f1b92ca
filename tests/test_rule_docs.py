"""Every name that a finding can have is documented, and every documented name can be found.

A rule's name is a literal that goes to a parameter or a field called `rule`; so calls of what has one are looked at.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from moduletrees import Node, find_nodes, list_nodes, parse_module

from jobgen.check.rule_docs import all_docs, all_rule_docs, rule_example
from jobgen.model.builtin_rules import BUILTIN_RULES, POD_RULES
from jobgen.model.finding import Severity

ROOT = Path(__file__).parent.parent / "jobgen"
MODULES = [path for path in ROOT.rglob("*.py") if path.parent.parent != ROOT / "rules"]
NAME = re.compile(r"[a-z]+(-[a-z]+)+")
CATEGORIES = set(
    "yaml schema pod operator policy gitops resources image security scheduling spec fleet team meta launch".split()
)


def takers() -> dict[str, set[int]]:
    """Functions and classes with a parameter or a field `rule`, by name: the places where calls give it."""
    found: dict[str, set[int]] = {}
    for node in (
        node for tree in map(parse_module, MODULES) for node in find_nodes(tree, ast.FunctionDef, ast.ClassDef)
    ):
        if isinstance(node, ast.FunctionDef):
            names = [argument.arg for argument in node.args.args if argument.arg not in ("self", "cls")]
            names += [argument.arg for argument in node.args.kwonlyargs]
        else:
            names = [part.target.id for part in node.body if isinstance(part, ast.AnnAssign)]
        if "rule" in names:
            found.setdefault(node.name, set()).add(names.index("rule"))
    return found


def given(call: ast.Call, places: set[int]) -> Iterator[ast.expr]:
    """What a call gives as `rule`."""
    yield from (call.args[place] for place in places if place < len(call.args))
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "rule")


def literals(node: ast.AST) -> Iterator[str]:
    for part in list_nodes(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and NAME.fullmatch(part.value):
            yield part.value


def variables(node: ast.AST) -> set[str]:
    names = (part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in ast.walk(node))
    return {name for name in names if name}


def rules_in(tree: ast.AST, places: dict[str, set[int]]) -> Iterator[ast.expr]:
    """What is given as `rule`, or is its default, anywhere in a module."""
    for part in find_nodes(tree, ast.Call, ast.arguments):
        if isinstance(part, ast.Call):
            name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
            yield from given(part, places.get(name, set()))
        else:
            defaults = zip(part.args[::-1], part.defaults[::-1], strict=False)
            keyword_only = zip(part.kwonlyargs, part.kw_defaults, strict=True)
            pairs = (*defaults, *keyword_only)
            yield from (default for argument, default in pairs if argument.arg == "rule" and default is not None)


def select_inside(scope: ast.FunctionDef, nodes: list[Node]) -> list[Node]:
    """Those of some nodes that are in a function, or in one inside of it."""
    return [node for node in nodes if scope.lineno <= node.lineno <= (scope.end_lineno or 0)]


def emitted() -> set[str]:
    """Literals that are given as `rule`, or are assigned to what is: in the same function, or as a constant."""
    places = takers()
    asked = {"rule"}
    found: set[str] = set()
    for tree in map(parse_module, MODULES):
        values, assignments = list(rules_in(tree, places)), find_nodes(tree, ast.Assign)
        found.update(name for value in values for name in literals(value))
        asked.update(*map(variables, values))
        for scope in find_nodes(tree, ast.FunctionDef):
            own = select_inside(scope, assignments)
            if own:
                found.update(assigned(own, {"rule"}.union(*map(variables, select_inside(scope, values)))))
    constants = [node for tree in map(parse_module, MODULES) for node in tree.body]
    keywords = [part for node in constants for part in ast.walk(node) if isinstance(part, ast.keyword)]
    found.update(name for keyword in keywords if keyword.arg in asked for name in literals(keyword.value))
    return found | set(assigned(constants, asked))


def assigned(nodes: Iterable[ast.AST], names: set[str]) -> Iterator[str]:
    """Literals that are assigned to one of these names."""
    for node in nodes:
        if isinstance(node, ast.Assign) and any(variables(target) & names for target in node.targets):
            yield from literals(node.value)


def test_every_rule_name_in_the_code_is_documented_and_every_documented_one_is_there():
    names = emitted()

    assert sorted(names - set(all_docs(None))) == []
    assert sorted({*POD_RULES, *(name for name, *_ in BUILTIN_RULES)} - names) == []


def test_rule_names_are_documented_once():
    names = [*POD_RULES, *(name for name, *_ in BUILTIN_RULES)]

    assert sorted(names) == sorted(set(names))


def test_rule_summaries_are_one_sentence():
    for doc in all_rule_docs().values():
        assert doc.category in CATEGORIES, doc.name
        assert doc.severity in Severity, doc.name
        assert doc.summary.endswith("."), doc.name
        assert doc.summary[0].isupper() or doc.summary[0] == "`", doc.name
        assert len(doc.summary) <= 110, doc.name


def test_examples_are_shown_without_expectations():
    bad, good = rule_example("mutable-image-tag")

    assert "image: registry.example.com/bert:latest\n" in bad
    assert "expect" not in bad + good
    assert "# case" not in bad + good


@pytest.mark.parametrize("tool", ["jsonschema", "kubeconform"])
def test_a_disagreement_says_when_to_report_a_bug_and_when_to_correct_the_schema(tool):
    text = " ".join(all_rule_docs()[f"{tool}-disagrees"].text.split())
    assert "report a bug in jobgen" in text
    assert "`jobgen schema import`" in text
