"""Find calls in Python scripts that are in the repository, with arguments that are constants or known variables."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from jobgen.features.launch.values import Program


class Call(NamedTuple):
    """A call: its arguments by name or position, without those that are not known, and its line."""

    arguments: Mapping[str | int, Any]
    names: frozenset[str | int]
    """The names and positions of all arguments; `*` for those that `*` and `**` add."""
    line: int

    def get(self, name: str, position: int, default: Any) -> Any:
        """Return an argument, its default if it is not given, or None if it is not known."""
        if name in self.names or position in self.names:
            return self.arguments.get(name, self.arguments.get(position))
        return None if "*" in self.names else default


_CONDITIONS = (ast.If, ast.Try, ast.While, ast.For, ast.IfExp, ast.Lambda, ast.Match, ast.comprehension, ast.BoolOp)
_MAX_TEXT = 200_000


@lru_cache(maxsize=64)
def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text) if len(text) <= _MAX_TEXT else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def find_call(program: Program, function: str) -> Call | None:
    """Return the call of a function, such as `jax.distributed.initialize`, if a script has one that certainly runs."""
    text = program.files(program.path) if program.path.endswith(".py") else None
    if text is None or function.rpartition(".")[2] not in text or (tree := _parse(text)) is None:
        return None
    try:
        names = _read_imports(tree)
        found = list(_find_calls(tree, function, names))
        if len(found) != 1 or found[0] is None:
            return None
        return _read_call(found[0], _read_constants(tree, program), program)
    except RecursionError:
        return None


def _read_imports(tree: ast.Module) -> dict[str, str]:
    """Return what names of the script stand for: `ScalingConfig` for `ray.train.ScalingConfig`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                names[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
    return names


def _find_calls(tree: ast.AST, function: str, names: Mapping[str, str]) -> Iterator[ast.Call | None]:
    """Yield the calls of a function; None for one that a condition decides on."""
    stack: list[tuple[ast.AST, bool]] = [(tree, True)]
    while stack:
        node, is_certain = stack.pop()
        if isinstance(node, ast.Call) and _full_name(node.func, names) == function:
            yield node if is_certain else None
        if isinstance(node, _CONDITIONS) and not _is_main(node):
            is_certain = False
        stack += [(child, is_certain) for child in ast.iter_child_nodes(node)]


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)


def _full_name(node: ast.expr, names: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((names.get(node.id, node.id), *reversed(parts)))


def _read_constants(tree: ast.Module, program: Program) -> dict[str, Any]:
    """Return the names that are assigned once, at the top of the script, to a value that is known."""
    written: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            written.setdefault(node.id, []).append(None)
        elif isinstance(node, ast.arg):
            written.setdefault(node.arg, []).append(None)
    constants: dict[str, Any] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and len(written.get(target.id, ())) == 1:
                value = _evaluate(statement.value, constants, program)
                if value is not None:
                    constants[target.id] = value
    return constants


def _read_call(node: ast.Call, constants: Mapping[str, Any], program: Program) -> Call:
    given: dict[str | int, ast.expr] = {}
    names: set[str | int] = set()
    for at, argument in enumerate(node.args):
        if isinstance(argument, ast.Starred):
            names.add("*")
        else:
            given[at] = argument
    for keyword in node.keywords:
        if keyword.arg is None:
            names.add("*")
        else:
            given[keyword.arg] = keyword.value
    values = {name: _evaluate(value, constants, program) for name, value in given.items()}
    known = {name: value for name, value in values.items() if value is not None}
    return Call(known, frozenset(names | given.keys()), node.lineno)


def _evaluate(node: ast.expr, constants: Mapping[str, Any], program: Program) -> Any:
    """Return the value of an expression: a constant, a name or variable that is known, or `int(…)`; else None."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.Dict):
        keys = [_evaluate(key, constants, program) if key else None for key in node.keys]
        values = [_evaluate(value, constants, program) for value in node.values]
        return None if None in (*keys, *values) else dict(zip(keys, values, strict=True))
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
        return _read_variable(_evaluate(node.slice, constants, program), None, program)
    if isinstance(node, ast.Call) and not node.keywords:
        name = ast.unparse(node.func)
        arguments = [_evaluate(each, constants, program) for each in node.args]
        if name == "int" and len(arguments) == 1 and isinstance(arguments[0], str | int):
            text = str(arguments[0])
            return int(text) if text.lstrip("-").isdecimal() and len(text) < 10 else None
        if name in ("os.environ.get", "os.getenv") and arguments:
            return _read_variable(arguments[0], arguments[1] if len(arguments) > 1 else None, program)
        return None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    if isinstance(value, int):
        return value if abs(value) < 10**15 else None
    return value if isinstance(value, str | float | dict | list | tuple) else None


def _read_variable(name: Any, default: Any, program: Program) -> Any:
    word = program.variable(name) if isinstance(name, str) else None
    # The image can set variables that the manifest does not.
    return None if word is None and default is None else word.text if word else default
