"""Check expressions beyond their types: what the API server refuses, and what cannot be evaluated offline."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.cel import engine, text_format
from jobgen.check.cel.cost import grows_too_much
from jobgen.check.cel.tree import Call, Checked, Const, Ident, Node, Select, Sequence, Struct, children, walk, write
from jobgen.check.cel.values import AS_RESULT, OFFLINE, CompileError, Failed, blank_strings, line_and_column
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.times import parse_duration

_OPTIONAL = "optional_type<"
_INTERPRETED = frozenset(("check", "first", "last"))
_ASKS_OPTIONALS = frozenset(("hasValue", "value", "orValue", "_==_", "_!=_"))
# The parser repeats their operand, so a chain of them doubles the tree each time.
_DOUBLES = lazy_pattern(r"\bopt(?:Flat)?Map\b")
_MOST_DOUBLED = 10
# The first byte of the literals null and bytes.
_NO_KEYS = (b"\x08", b"\x3a")
# Conversions of literals, which the API server evaluates when it reads an expression.
_CONVERSIONS = frozenset("bool bytes double duration int string timestamp uint".split())
# The API server does not know the types of their fields before it evaluates them.
_UNTYPED = frozenset(("object", "oldObject", "params"))
# It does know those of these.
_TYPED = ("request", "namespaceObject", "variables", "authorizer")


def refused(text: str) -> CompileError | None:
    """Report syntax that the parser of the API server does not know."""
    bare = blank_strings(text)
    if len(_DOUBLES.findall(bare)) > _MOST_DOUBLED:
        return CompileError(f"more than {_MOST_DOUBLED} `optMap` and `optFlatMap` in one expression {OFFLINE}")
    offset = bare.find("`")
    if offset < 0:
        return None
    return CompileError("identifiers in backticks are not supported", *line_and_column(text, offset))


def mentions(text: str, name: str) -> bool:
    """Return True if an expression uses a name outside strings and comments."""
    return re.search(rf"(?<![\w.]){name}\b", blank_strings(text)) is not None


def fault(checked: Checked, text: str, returns: str = "") -> CompileError | None:
    """The first error of a checked expression: of its literals, and of the type of its result if one is expected."""
    found = next(_faults(checked, returns), None)
    return None if found is None else CompileError(found[1], *line_and_column(text, checked.places.get(found[0], 0)))


def needs_interpreter(checked: Checked) -> bool:
    """Return True if the engine cannot run an expression: it may take too much memory, or has optionals as values.

    Nor can it count what permissions cost: the API server allows two checks of them in one evaluation. It has no
    functions for the first and the last item.
    """
    if any(isinstance(node, Call) and node.name in _INTERPRETED for node in walk(checked.root)):
        return True
    return grows_too_much(checked.root) or has_optional_values(checked)


def _faults(checked: Checked, returns: str) -> Iterator[tuple[int, str]]:
    names = {node.name: node.id for node in walk(checked.root) if isinstance(node, Ident)}
    # Items of a literal seem to differ if the type of one is not declared here.
    if not any(checked.types.get(names.get(name, -1)) == "dyn" for name in _TYPED):
        yield from _mixed(checked.root, checked.types)
    yield from _literals(checked)
    yield from _misused(checked.root)
    if not returns:
        return
    kind = checked.types.get(checked.root.id, "dyn").replace(f"wrapper<{returns}>", returns)
    if kind.startswith(_OPTIONAL):
        yield checked.root.id, f"{AS_RESULT}; ask it for its value"
    # A result that is dynamic here may have a type in the API server, as a variable has.
    if returns not in ("any", "unordered", kind) and (kind != "dyn" or names.keys() <= _UNTYPED):
        yield checked.root.id, f"must evaluate to {returns} but got {kind}"


def _misused(root: Node) -> Iterator[tuple[int, str]]:
    """Report literal keys of a type that no map has, which Go refuses."""
    for node in walk(root):
        if isinstance(node, Call) and node.name == "_[_]":
            key = node.args[1]
            while isinstance(key, Call) and key.name == "dyn":
                key = key.args[0]
            if isinstance(key, Const) and key.raw[:1] in _NO_KEYS:
                yield node.id, "invalid qualifier type"


def _mixed(node: Node, types: dict[int, str]) -> Iterator[tuple[int, str]]:
    """Report literals whose items differ in type; arguments of `format` may differ."""
    if isinstance(node, Sequence):
        unwrapped = [(item, index in node.optional) for index, item in enumerate(node.items)]
        yield from _differing(unwrapped, types)
    if isinstance(node, Struct) and not node.name:
        yield from _differing([(entry.key, False) for entry in node.entries if entry.key is not None], types)
        yield from _differing([(entry.value, entry.optional) for entry in node.entries], types)
    if not (isinstance(node, Call) and node.name == "format"):
        for child in children(node):
            yield from _mixed(child, types)


def _differing(items: list[tuple[Node, bool]], types: dict[int, str]) -> Iterator[tuple[int, str]]:
    expected = ""
    for item, optional in items:
        kind = types.get(item.id, "dyn")
        kind = kind.removeprefix(_OPTIONAL).removesuffix(">") if optional else kind
        if expected and kind != expected:
            yield item.id, f"expected type `{expected}` but found `{kind}`"
        expected = expected or kind


def _literals(checked: Checked) -> Iterator[tuple[int, str]]:
    """Report literal patterns that are invalid, and literals that cannot be converted."""
    for node in walk(checked.root):
        if not isinstance(node, Call) or not node.args:
            continue
        if node.name == "format":
            yield from _format_faults(node, checked)
        literal = node.args[1 if node.target is None and len(node.args) > 1 else 0]
        if not isinstance(literal, Const):
            continue
        if node.name in ("matches", "find", "findAll") and literal.text is not None:
            wrong = text_format.fault(literal.text)
            if wrong:
                yield literal.id, wrong
        elif node.name in _CONVERSIONS and node.target is None and (failed := _find_failure(node, literal, checked)):
            written = literal.text
            is_time = node.name in ("duration", "timestamp") and written is not None
            yield literal.id, f"`{written}` is not a {node.name}" if is_time else failed


def _format_faults(call: Call, checked: Checked) -> Iterator[tuple[int, str]]:
    """Report a literal format that does not fit the arguments in a literal list."""
    form, arguments = call.target, call.args[0]
    if isinstance(form, Const) and form.text is not None and isinstance(arguments, Sequence):
        wrong = text_format.find_fault(form.text, [_type_to_format(item, checked.types) for item in arguments.items])
        if wrong:
            yield call.id, wrong


def _type_to_format(node: Node, types: dict[int, str]) -> str:
    """The type of an argument; that of a part of a literal, if it cannot be text."""
    parts = children(node) if isinstance(node, (Sequence, Struct)) else ()
    inner = (_type_to_format(part, types) for part in parts)
    return next((kind for kind in inner if not text_format.can_be_text(kind)), types.get(node.id, "dyn"))


def _find_failure(call: Call, literal: Const, checked: Checked) -> str:
    if call.name == "duration" and literal.text is not None and parse_duration(literal.text) is None:
        return "it is not a duration"
    if call.name in ("int", "uint") and literal.text is not None and literal.text != literal.text.strip():
        return f"cannot convert string to {call.name}"
    result = engine.run(engine.program(write(checked._replace(root=call)), {}), engine.asked_of({}))
    return result.message if isinstance(result, Failed) else ""


def find_optionals(checked: Checked) -> Checked:
    """The expression with the type of optionals for what is dynamic to the API server but an optional at run time."""
    types = dict(checked.types)

    def visit(node: Node) -> bool:
        found = [visit(child) for child in children(node)]
        name = node.name if isinstance(node, Call) else ""
        passes = name in ("_[_]", "_?_:_", "dyn") or (isinstance(node, Select) and not node.test)
        if types.get(node.id) in ("dyn", "any") and (name == "_[?_]" or (passes and any(found))):
            types[node.id] = f"{_OPTIONAL}dyn>"
        return types.get(node.id, "").startswith(_OPTIONAL)

    visit(checked.root)
    return checked._replace(types=types)


def has_optional_values(checked: Checked) -> bool:
    """Return True if optionals are used as values, as in a list: the library crashes when it passes them to Python."""
    has_optionals = any(_OPTIONAL in known for known in checked.types.values())
    return has_optionals and _hides_optionals(checked.root, checked.types)


def _hides_optionals(node: Node, types: dict[int, str]) -> bool:
    kind = types.get(node.id, "")
    inner = kind
    while inner.startswith(_OPTIONAL):
        inner = inner.removeprefix(_OPTIONAL)
    if _OPTIONAL in inner:
        return True
    asks = kind.startswith(_OPTIONAL) or (isinstance(node, Call) and node.name in _ASKS_OPTIONALS)
    # Optional items and entries of literals.
    unwrapped: set[int] = set()
    if isinstance(node, Sequence):
        unwrapped = {node.items[index].id for index in node.optional}
    elif isinstance(node, Struct):
        unwrapped = {entry.value.id for entry in node.entries if entry.optional}
    return any(
        (not asks and child.id not in unwrapped and types.get(child.id, "").startswith(_OPTIONAL))
        or _hides_optionals(child, types)
        for child in children(node)
    )
