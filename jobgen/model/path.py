"""Paths into an object: dotted (`spec.a['b.c'][0]`, `containers.[name=x]`) and JSON pointers (`/spec/a`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from jobgen.model.data import Location, Node, TracedKey, location_of, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_PATH_LENGTH
from jobgen.model.named_tuple import NamedTuple


class NamedItem(NamedTuple):
    """A step to the list item whose field has a value: `[name=main]`."""

    field: str
    value: str

    def __str__(self) -> str:
        return f"[{self.field}={self.value}]"


_NAMING_FIELDS = ("name", "type", "mountPath", "key", "containerPort", "manager")
"""Fields by which the items of a list are known, the best first."""
Step = str | int | NamedItem

# In brackets: a quoted key, an index or a named item. Otherwise names, separated by dots.
_DOTTED = lazy_pattern(
    r"""\.?\[(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([0-9]{1,18})|([^=\[\]\s"']+)=(?:"((?:[^"\\]|\\.)*)"|([^\]"]*)))\]
    |(?:\A|\.)([^.\[\]]+)""",
    re.DOTALL | re.VERBOSE,
)
_POINTER = lazy_pattern(r"/(?:\[([^=\[\]/]+)=(.*?)\](?=/|\Z)|([^/]*))", re.DOTALL)
_BARE_VALUE = lazy_pattern(r'[^\]"]*')
_SIMPLE = lazy_pattern(r"[^.\[\]\"'/]+")
_INDEX = lazy_pattern("[0-9]{1,18}")
_ESCAPE = lazy_pattern(r"\\(.)", re.DOTALL)


class InvalidPathError(ValueError):
    """A path is malformed; the message gives the reason."""


def parse_path(text: str) -> tuple[Step, ...]:
    """Parse a dotted path or a JSON pointer."""
    return parse_pointer(text) if text.startswith("/") or not text else parse_dotted(text)


def parse_dotted(text: str) -> tuple[Step, ...]:
    """Parse a dotted path such as `spec.roles[0].env.[name=X]`."""
    _check_length(text)
    if "[" not in text and "]" not in text and all(names := text.split(".")):
        return tuple(map(_to_name, names))
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _DOTTED.match(text, at)
        if match is None or text.startswith("."):
            raise InvalidPathError(f"`{text}` is not a path: cannot be parsed from `{text[at:]}`")
        double, single, index, field, quoted, value, word = match.groups()
        if index is not None:
            steps.append(int(index))
        elif field is not None:
            steps.append(NamedItem(field, value if quoted is None else _unquote(quoted)))
        elif double is not None:
            steps.append(_unquote(double))
        else:
            steps.append(_to_name(word) if single is None else str(single))
        at = match.end()
    return tuple(steps)


def _check_length(text: str) -> None:
    if len(text) > MAX_PATH_LENGTH:
        start = text[:40]
        raise InvalidPathError(f"`{start}…` is not a path: it has more than {MAX_PATH_LENGTH} characters")


def _to_name(word: str) -> str | int:
    # Python limits the digits that it converts; no list has as many items.
    return int(word) if word.isdigit() and _INDEX.fullmatch(word) else str(word)


def parse_pointer(text: str) -> tuple[Step, ...]:
    """Parse an RFC 6901 pointer, which may have `[name=x]` for named items; a slash in brackets separates nothing."""
    _check_length(text)
    if text and not text.startswith("/"):
        meant = text if "/" in text else text.replace(".", "/")
        raise InvalidPathError(f"`{text}` is not a JSON pointer: it must start with `/`; write `/{meant}`")
    wrong = re.search("~(?![01])", text)
    if wrong:
        raise InvalidPathError(f"`{text}` is not a JSON pointer: `{text[wrong.start() :][:2]}` must be `~0` or `~1`")
    steps: list[Step] = []
    for field, value, word in (match.groups() for match in _POINTER.finditer(text)):
        steps.append(_unescape(word) if field is None else NamedItem(_unescape(field), _unescape(value)))
    return tuple(steps)


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def format_dotted(steps: Iterable[Step]) -> str:
    """Format steps as a dotted path."""
    parts: list[str] = []
    for step in steps:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif isinstance(step, NamedItem):
            bare = _BARE_VALUE.fullmatch(step.value)
            parts.append(str(step) if bare else f"[{step.field}={_quote(step.value)}]")
        elif _SIMPLE.fullmatch(step) and not _INDEX.fullmatch(step):
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{_quote(step)}]")
    return "".join(parts)


def format_pointer(steps: Iterable[Step]) -> str:
    """Format steps as an RFC 6901 pointer."""
    parts = [str(step) for step in steps]
    text = "".join([f"/{part}" for part in parts])
    if "~" not in text and text.count("/") == len(parts):
        return text
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)


def list_item_names(items: Iterable[Any]) -> list[Step]:
    """Return a step for each item of a list that stays the same if items are added before.

    An item is known by its name, its type or a similar field, and numbered only if others before it have the same one;
    any other item is `*`.
    """
    seen: Counter[NamedItem | None] = Counter()
    steps: list[Step] = []
    for item in items:
        found = _name_item(item)
        repeated = seen[found]
        seen[found] += 1
        steps.append(found._replace(value=f"{found.value}#{repeated}") if found and repeated else found or "*")
    return steps


def _name_item(item: Any) -> NamedItem | None:
    """Return the field by which an item of a list is known; None if it has none."""
    for field in _NAMING_FIELDS if isinstance(item, dict) else ():
        if field in item and isinstance(name := value_of(item[field]), (str, int)):
            return NamedItem(field, str(name))
    return None


def name_items(steps: Iterable[Step], tree: Any) -> list[Step]:
    """Return the steps of a path with names instead of numbers."""
    named: list[Step] = []
    for step in steps:
        if type(step) is int and isinstance(tree, list) and step < len(tree):
            # The first item needs none of the others.
            name = list_item_names(tree[: step + 1])[step] if step else _name_item(tree[0]) or "*"
            named.append(name)
            tree = tree[step]
        else:
            named.append(step)
            tree = tree[step] if isinstance(tree, dict) and step in tree else None
    return named


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unquote(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)


def find_path(node: Node, tree: Node) -> tuple[Step, ...]:
    """The path to a node of an object, found by identity; empty if it is not part of the object."""
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(tree, dict):
        entries = tree.items()
    elif isinstance(tree, list):
        entries = enumerate(tree)
    for key, child in entries:
        if child is node or key is node:
            return (key,)
        # Most values are scalars.
        if isinstance(child, (dict, list)) and (below := find_path(node, child)):
            return (key, *below)
    return ()


def list_keys_around(tree: Node, place: Location) -> tuple[TracedKey, ...]:
    """Return the keys around a location in a tree, the outermost first; none if neither a key nor a value is there."""
    found: tuple[TracedKey, ...] = ()
    pending: list[tuple[Any, tuple[TracedKey, ...]]] = [(tree, ())]
    while pending:
        node, above = pending.pop()
        if _is_at(location_of(node), place) and len(above) >= len(found):
            found = above
        if isinstance(node, dict):
            for key, child in node.items():
                own = (*above, key) if isinstance(key, TracedKey) else above
                if isinstance(key, TracedKey) and _is_at(key.location, place):
                    found = own
                pending.append((child, own))
        elif isinstance(node, list):
            pending += ((child, above) for child in node)
    return found


def _is_at(location: Location | None, place: Location) -> bool:
    return location is not None and location[1:3] == place[1:3]
