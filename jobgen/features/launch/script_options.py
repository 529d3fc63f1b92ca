"""The options of a Python script, if its text is in the repository and says all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jobgen.features.launch.python_calls import parse_python
from jobgen.features.launch.values import Program

_HELP = ("--help", "-h")
# What can add options, or read them in another way.
_OPEN = ("sys.argv", "parse_known_", "ignore_unknown_options", "UNPROCESSED", "REMAINDER", "parents=", "add_subparsers")


def find_script_options(program: Program) -> frozenset[str] | None:
    """Return the names of all options of a script; None if the text is not known, or can have others."""
    text = program.files(program.path) if program.path.endswith(".py") else None
    if text is None or any(sign in text for sign in _OPEN):
        return None
    tree = parse_python(text)
    if tree is None:
        return None
    try:
        return _read_argparse(tree) if "argparse" in text else _read_click(tree) if "click" in text else None
    except RecursionError:
        return None


def _read_argparse(tree: ast.Module) -> frozenset[str] | None:
    """Return the options of the one parser of a script, which only its own methods use."""
    parsers = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and _makes_parser(node.value)]
    calls = sum(1 for node in ast.walk(tree) if isinstance(node, ast.Call) and _makes_parser(node))
    if len(parsers) != 1 or calls != 1 or not isinstance(parsers[0].targets[0], ast.Name):
        return None
    name = parsers[0].targets[0].id
    names = {name, *_list_groups(tree, name)}
    owners = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    uses = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    if any(node.id in names and id(node) not in owners for node in uses):
        # Another function can add options to it.
        return None
    options: set[str] = set(_HELP)
    is_parsed = False
    for node in ast.walk(tree):
        method = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        if method == "parse_args" and isinstance(node, ast.Call):
            if node.args or node.keywords:
                return None
            is_parsed = True
        elif method == "add_argument" and isinstance(node, ast.Call):
            texts = list(_list_texts(node))
            if len(texts) != len(node.args):
                return None
            options.update(texts)
    return frozenset(options) if is_parsed else None


def _makes_parser(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    return name == "ArgumentParser"


def _list_groups(tree: ast.Module, parser: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            function, target = node.value.func, node.targets[0]
            if (
                isinstance(function, ast.Attribute)
                and function.attr in ("add_argument_group", "add_mutually_exclusive_group")
                and isinstance(function.value, ast.Name)
                and function.value.id == parser
                and isinstance(target, ast.Name)
            ):
                yield target.id


def _read_click(tree: ast.Module) -> frozenset[str] | None:
    """Return the options of the one command of a script."""
    decorated = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.decorator_list]
    if len(decorated) != 1:
        return None
    options: set[str] = {"--help"}
    has_command = False
    for node in decorated[0].decorator_list:
        function = node.func if isinstance(node, ast.Call) else node
        if not isinstance(function, ast.Attribute) or ast.unparse(function.value) != "click":
            return None
        has_command = has_command or function.attr == "command"
        if function.attr == "option" and isinstance(node, ast.Call):
            texts = list(_list_texts(node))
            if len(texts) != len(node.args):
                return None
            # `--yes/--no` are two options.
            options.update(part.strip() for text in texts for part in text.split("/"))
        elif function.attr not in ("command", "argument", "pass_context"):
            return None
    return frozenset(options) if has_command else None


def _list_texts(call: ast.Call) -> Iterator[str]:
    yield from (each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str))
