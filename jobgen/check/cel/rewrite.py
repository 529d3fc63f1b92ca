"""Functions of Kubernetes in CEL: the table of those in Python, and checked trees that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobgen.check.cel import formats, lists, networks, permissions, quantities, text_format
from jobgen.check.cel.engine import PREFIX
from jobgen.check.cel.signatures import FORMATS, TYPE_CONSTANTS
from jobgen.check.cel.tree import Call, Checked, Const, Fold, Ident, Node, Select, Sequence, map_children, walk, written
from jobgen.check.cel.values import tagged

TABLE: dict[str, Callable[..., Any]] = {
    name: function
    for module in (quantities, lists, text_format, networks, formats, permissions)
    for name, function in module.FUNCTIONS.items()
}


_QUANTITY = "kubernetes.Quantity"
# Values of these types are bytes at run time.
_TAGGED = ("net.", "kubernetes.")
_FIRST = b"\x18\x00"
# Their results are optional, which Python cannot return: ours return lists, of which the first item is taken.
_OPTIONAL = frozenset(("validate", "format.named"))
_CONVERSIONS = frozenset("bool bytes double duration int string timestamp uint".split())
_SCALARS = frozenset("bool int uint double string".split())
_INFERRED = frozenset(("orValue", "value", "_[_]", "_?_:_"))


def rewrite(checked: Checked, absent: tuple[str, ...], *, is_ordered: bool = False) -> Checked:
    """Rewrite an expression with functions that exist at run time; absent names become `optional.none()`.

    If it is ordered, loops over mappings go through their keys in order; the engine's order differs between runs.
    """
    return checked._replace(root=_Rewriter(checked, absent, is_ordered=is_ordered).node(checked.root))


class _Rewriter:
    """Rebuilds a tree from its leaves; new nodes get unused ids."""

    def __init__(self, checked: Checked, absent: tuple[str, ...], *, is_ordered: bool) -> None:
        self.is_ordered = is_ordered
        self.types = checked.types
        self.absent = absent
        self.last = max(node.id for node in walk(checked.root)) + 1_000_000

    def node(self, node: Node) -> Node:
        if isinstance(node, Ident):
            if node.name in self.absent:
                return Call(self._new(), None, "optional.none", ())
            return self._text(node.name) if node.name in TYPE_CONSTANTS else node
        if isinstance(node, Call) and node.name == "type" and self.types.get(node.args[0].id, "").startswith(_TAGGED):
            # These values are bytes at run time, so their types are compared by name.
            return self._text(self.types[node.args[0].id])
        rewritten = map_children(node, self.node)
        if self.is_ordered and isinstance(rewritten, Fold) and not rewritten.second_variable:
            return rewritten._replace(range=self._ours("@inOrder", (rewritten.range,)))
        return self._call(node, rewritten) if isinstance(node, Call) and isinstance(rewritten, Call) else rewritten

    def _text(self, text: str) -> Const:
        return Const(self._new(), written(6, text))

    def _call(self, before: Call, call: Call) -> Node:
        name = call.name
        kinds = [self.types.get(arg.id, "") for arg in (before.target, *before.args) if arg is not None]
        if name in ("_==_", "_!=_") and _QUANTITY in kinds:
            equal = self._plain("_==_", self._ours("compareTo", call.args), Const(self._new(), _FIRST))
            return equal if name == "_==_" else self._plain("!_", equal)
        if name.removeprefix("format.") in FORMATS and name.startswith("format."):
            return Const(self._new(), written(7, tagged(formats.TAG, name.removeprefix("format."))))
        if name in _CONVERSIONS and call.target is None and len(call.args) == 1 and kinds[0] in _SCALARS:
            # A conversion of a value whose type is known to the checker, but may differ in the data.
            operand = before.args[0]
            if not (isinstance(operand, (Ident, Select)) or (isinstance(operand, Call) and operand.name in _INFERRED)):
                return call
            checked = self._ours("@withType", (self._text(kinds[0]), self._text(call.name), call.args[0]))
            return call._replace(args=(checked,))
        if name not in TABLE or _is_native(name, kinds[0] if kinds else ""):
            return call
        kind = self.types.get(before.id, "")
        if name in ("min", "max", "sum") and kind in ("timestamp", "duration") and call.target is not None:
            return self._plain(kind, self._ours(f"{name}@text", (call.target,)))
        ours = self._ours(name, call.args if call.target is None else (call.target, *call.args))
        return self._plain("_[?_]", ours, Const(self._new(), _FIRST)) if name in _OPTIONAL else ours

    def _ours(self, name: str, args: tuple[Node, ...]) -> Call:
        return self._plain(f"{PREFIX}{name}", Sequence(self._new(), args))

    def _plain(self, name: str, *args: Node) -> Call:
        return Call(self._new(), None, name, args)

    def _new(self) -> int:
        self.last += 1
        return self.last


def _is_native(name: str, kind: str) -> bool:
    if name == "getMilliseconds":
        return kind != "duration"
    return name == "string" and kind not in ("net.IP", "net.CIDR")
