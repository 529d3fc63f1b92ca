"""Times in typed data: what is a time or a duration for the type checker is a string there, so it is converted."""

from __future__ import annotations

from jobgen.check.cel import tree
from jobgen.check.cel.type_checker import Scope, check
from jobgen.check.cel.values import CompileError

_TIMES = ("timestamp", "duration")
_DATA_NAMES = frozenset(("self", "oldSelf"))
_TRUE = tree.written(2, 1)


def check_with_times(text: str, scope: Scope) -> tree.Checked | CompileError:
    """Check an expression with typed variables; return its tree, in which times are converted from strings."""
    checked = check(text, scope)
    if isinstance(checked, CompileError):
        return checked
    converter = _TimeConverter(checked)
    return checked._replace(root=converter.convert(checked.root), types=converter.types, places=converter.places)


class _TimeConverter:
    """Rebuilds a tree with conversions around the fields that are times."""

    def __init__(self, checked: tree.Checked) -> None:
        self.types = dict(checked.types)
        self.places = dict(checked.places)
        self.last = max(node.id for node in tree.walk(checked.root)) + 1_000

    def convert(self, node: tree.Node) -> tree.Node:
        made = tree.map_children(node, self.convert)
        is_data = isinstance(node, tree.Ident) and node.name in _DATA_NAMES
        is_field = isinstance(node, tree.Select) and not node.test
        if is_data or is_field or (isinstance(node, tree.Call) and node.name == "_?._"):
            return self._to_times(made, self.types.get(node.id, "dyn"))
        return made

    def _to_times(self, node: tree.Node, kind: str) -> tree.Node:
        if kind in _TIMES:
            return tree.Call(self._new(node, kind), None, kind, (node,))
        if not any(name in kind for name in _TIMES):
            return node
        name, _, inner = kind.partition("<")
        if name == "list":
            item = tree.Ident(self._new(node, "dyn"), "@item")
            result = tree.Ident(self._new(node, "dyn"), "@result")
            added = tree.Sequence(self._new(node, kind), (self._to_times(item, inner[:-1]),))
            step = tree.Call(self._new(node, kind), None, "_+_", (result, added))
            start, always = tree.Sequence(self._new(node, kind), ()), tree.Const(self._new(node, "bool"), _TRUE)
            return tree.Fold(self._new(node, kind), "@item", node, "@result", start, always, step, result)
        if name == "optional_type":
            value = self._to_times(tree.Call(self._new(node, "dyn"), node, "value", ()), inner[:-1])
            wrapped = tree.Call(self._new(node, kind), None, "optional.of", (value,))
            has_value = tree.Call(self._new(node, "bool"), node, "hasValue", ())
            nothing = tree.Call(self._new(node, kind), None, "optional.none", ())
            return tree.Call(self._new(node, kind), None, "_?_:_", (has_value, wrapped, nothing))
        return node

    def _new(self, like: tree.Node, kind: str) -> int:
        """An unused id, with the position of a node."""
        self.last += 1
        self.types[self.last] = kind
        self.places[self.last] = self.places.get(like.id, 0)
        return self.last
