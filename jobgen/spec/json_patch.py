"""Apply RFC 6902 operations to an object. A `[name=x]` step selects a list item by a field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.model.budget import Budget, BudgetExceededError, Work, charge
from jobgen.model.data import Node, TracedList, TracedMapping, ValidFields, count_nodes, override, untraced, value_of
from jobgen.model.finding import Problem, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_COPIED_NODES, MAX_DEPTH
from jobgen.model.path import InvalidPathError, NamedItem, Step, parse_pointer
from jobgen.model.sentence import Sentence

_INDEX = lazy_pattern(r"(?:0|[1-9][0-9]{0,8})\Z", re.ASCII)
_NODES_OF_STEP = 4
"""So many values are copied or compared in a step of the budget."""


class _FailedError(Exception):
    """The operation failed; its text says why."""

    def __init__(self, message: str, missing: str = "") -> None:
        super().__init__(message)
        self.missing = missing
        """The path that does not exist."""


def apply_json_patch(
    target: Mapping[str, Node],
    operations: Sequence[ValidFields],
    problems: list[Problem],
    *,
    replaces_missing: bool = False,
) -> Mapping[str, Node]:
    """Apply all operations to a copy. If one fails, report it and return the object unchanged.

    With `replaces_missing`, `replace` adds a field that does not exist, as in kustomize.
    """
    changed: dict[str, Any] = copy_containers(target)
    budget = Budget(MAX_COPIED_NODES, Work.PATCHES)
    charge(Work.PATCHES, 10 * len(operations) + count_nodes(target) // _NODES_OF_STEP)
    for operation in operations:
        try:
            _apply(changed, operation, budget, replaces_missing=replaces_missing)
        except BudgetExceededError:
            message = Sentence(
                "the operations copy more than `{}` values; write what is needed as `value`", MAX_COPIED_NODES
            )
            problems.append(Problem("json-patch-failed", message, operation["path"]))
            return target
        except (_FailedError, InvalidPathError) as failed:
            missing = failed.missing if isinstance(failed, _FailedError) else ""
            problems.append(Problem("json-patch-failed", str(failed), operation["path"], about=missing))
            return target
    return changed


def step_through(target: Mapping[str, Node], operations: Sequence[ValidFields]) -> Iterator[Mapping[str, Node]]:
    """Yield the object before each operation, and the result: one object that changes. A failure ends it."""
    changed: dict[str, Any] = copy_containers(target)
    budget = Budget(MAX_COPIED_NODES, Work.PATCHES)
    yield changed
    for operation in operations:
        try:
            _apply(changed, operation, budget)
        except (BudgetExceededError, _FailedError, InvalidPathError):
            return
        yield changed


def resolve_pointer(target: Node, operation: ValidFields, field: str = "path") -> tuple[str | int, ...] | None:
    """Return the keys and indexes of the pointer of an operation in an object; None if it leads nowhere."""
    steps: list[str | int] = []
    node: Any = target
    try:
        for step in _parse_path(operation, field):
            if isinstance(node, dict):
                steps.append(str(step))
                node = node.get(str(step))
            elif isinstance(node, list):
                index = len(node) if step == "-" else _find_index(node, step)
                if index is None:
                    return None
                steps.append(index)
                node = node[index] if index < len(node) else None
            else:
                return None
    except (_FailedError, InvalidPathError):
        return None
    return tuple(steps)


def copy_containers(tree: Any) -> Any:
    """Copy mappings and lists; share the leaves."""
    if isinstance(tree, dict):
        copied = {key: copy_containers(value) for key, value in tree.items()}
        return copied or (TracedMapping(tree.location, tree.layer) if type(tree) is TracedMapping else copied)
    if type(tree) is TracedList:
        return TracedList([copy_containers(value) for value in tree], tree.location, tree.layer, tree.overridden)
    if isinstance(tree, list):
        return [copy_containers(value) for value in tree]
    return tree


def _apply(target: Any, operation: ValidFields, budget: Budget, *, replaces_missing: bool = False) -> None:
    match value_of(operation["op"]):
        case "replace" if not (replaces_missing and isinstance(_walk(target, _parse_path(operation)[:-1]), dict)):
            parent, key = _find_parent(target, _parse_path(operation))
            parent[key] = override(copy_containers(_require_value(operation)), parent[key])
        case "add" | "replace":
            _insert_value(target, _parse_path(operation), copy_containers(_require_value(operation)))
        case "remove":
            parent, key = _find_parent(target, _parse_path(operation))
            del parent[key]
        case "move":
            source, path = _parse_path(operation, "from"), _parse_path(operation)
            if path[: len(source)] == source and path != source:
                raise _FailedError(f"`{_pointer_text(operation)}` is inside the value that it moves")
            parent, key = _find_parent(target, source)
            _insert_value(target, path, parent.pop(key))
        case "copy":
            parent, key = _find_parent(target, _parse_path(operation, "from"))
            _count_copied(parent[key], budget)
            _insert_value(target, _parse_path(operation), copy_containers(parent[key]))
        case "test":
            parent, key = _find_parent(target, _parse_path(operation))
            charge(Work.PATCHES, count_nodes(parent[key]) // _NODES_OF_STEP)
            found, wanted = untraced(parent[key]), untraced(_require_value(operation))
            if not _is_equal(found, wanted):
                shown = f"`{_format_value(found)}`, not `{_format_value(wanted)}`"
                raise _FailedError(f"`{_pointer_text(operation)}` is {shown}")


def _count_copied(tree: Any, budget: Budget) -> None:
    """Count the nodes of a value that is copied; its text counts too, because each copy is written out."""
    found = value_of(tree)
    budget.spend(1 + len(found) // 20 if isinstance(found, str) else 1)
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        _count_copied(child, budget)


def _is_equal(one: Node, other: Node) -> bool:
    """Equality of JSON: `1` equals `1.0`, but `true` does not equal `1`."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _pointer_text(operation: ValidFields, field: str = "path") -> str:
    return str(value_of(operation[field]))


def _parse_path(operation: ValidFields, field: str = "path") -> tuple[Step, ...]:
    if field not in operation:
        raise _FailedError(f"`{value_of(operation['op'])}` needs `{field}`")
    path = parse_pointer(_pointer_text(operation, field))
    if not path:
        raise _FailedError("the whole object cannot be patched; name a field")
    if len(path) > MAX_DEPTH:
        raise _FailedError(f"`{_pointer_text(operation, field)}` is more than {MAX_DEPTH} levels deep")
    return path


def _require_value(operation: ValidFields) -> Any:
    if "value" not in operation:
        raise _FailedError(f"`{value_of(operation['op'])}` needs `value`")
    return operation["value"]


def _find_parent(target: Any, path: tuple[Step, ...]) -> tuple[Any, Any]:
    """The container and the key of an existing value."""
    node = _walk(target, path[:-1], path[-1])
    return node, _require_key(node, path[-1], path)


def _walk(target: Any, path: tuple[Step, ...], last: Step | None = None) -> Any:
    """Return the value at a path; `last` is the step behind it."""
    node = target
    for depth, step in enumerate(path):
        rest = path[depth + 1] if depth + 1 < len(path) else last
        node = node[_require_key(node, step, path[: depth + 1], rest)]
    return node


def _require_key(node: Any, step: Step, path: tuple[Step, ...], rest: Step | None = None) -> Any:
    if isinstance(node, dict):
        if str(step) in node:
            return str(step)
        if "." in str(step) and rest is not None:
            # The domain of a label or a resource.
            advice = f"a `/` inside of a name is written `~1`, so write `{step}~1{rest}`"
            raise _FailedError(f"`{_shown(path)}` does not exist; {advice}", _shown(path))
        hint = _suggest_step(str(step), list(map(str, node)))
        if rest == "-" and not hint.endswith("?"):
            hint = f"; to create the list, write `path: {_shown(path)}`, and the value as an item of a list"
        raise _FailedError(f"`{_shown(path)}` does not exist{hint}", _shown(path))
    if not isinstance(node, list):
        raise _FailedError(f"`{_shown(path)}` does not exist: its parent is a scalar")
    index = _find_index(node, step)
    if index is None or index >= len(node):
        raise _FailedError(f"`{_shown(path)}` does not exist{_suggest_item(node, step)}")
    return index


def _suggest_step(step: str, known: list[str]) -> str:
    """`; did you mean …?` for a key that a mapping does not have, or its keys if they are few."""
    # Imported late: most patches apply.
    from jobgen.model.suggest import suggest_name

    return suggest_name(step, known)


def _suggest_item(items: list[Node], step: Step) -> str:
    """The item of a list that was meant; the field that items have by another name, or how many there are."""
    if isinstance(step, NamedItem):
        named = [item[step.field] for item in items if isinstance(item, dict) and step.field in item]
        return _suggest_step(step.value, [_format_value(untraced(each)) for each in named])
    names = [str(value_of(item["name"])) for item in items if isinstance(item, dict) and "name" in item]
    if not _INDEX.match(str(step)):
        shown = f"`[name={step}]`" if str(step) in names else "a number, or `[name=…]`"
        return f"; an item of a list is {shown}"
    return f"; the list has {pluralize(len(items), 'item')}"


def _shown(path: tuple[Step, ...]) -> str:
    return "/" + "/".join(str(part) for part in path)


def _find_index(items: list[Node], step: Step) -> int | None:
    if isinstance(step, NamedItem):
        named = [
            index
            for index, item in enumerate(items)
            if isinstance(item, dict) and step.field in item and _format_value(untraced(item[step.field])) == step.value
        ]
        if len(named) > 1:
            raise _FailedError(f"`{step}` matches {len(named)} items; use an index")
        return named[0] if named else None
    return int(step) if _INDEX.match(str(step)) else None


def _format_value(value: Node) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _insert_value(target: Any, path: tuple[Step, ...], value: Node) -> None:
    node, step = _walk(target, path[:-1], path[-1]), path[-1]
    if isinstance(node, dict) and not isinstance(step, NamedItem):
        key = str(step)
        node[key] = override(value, node[key]) if key in node else value
        return
    if not isinstance(node, list):
        raise _FailedError(f"`{_shown(path)}` cannot be added: its parent is a scalar")
    at = len(node) if step == "-" else _find_index(node, step)
    if isinstance(step, NamedItem) and at is not None:
        node[at] = value
    elif at is not None and at <= len(node):
        node.insert(at, value)
    else:
        raise _FailedError(f"`{_shown(path)}` does not exist")
