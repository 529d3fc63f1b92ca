"""Compiles the expressions of mutating policies: their patches are evaluated as mappings and lists of mappings."""

from __future__ import annotations

from functools import lru_cache

from jobgen.check.cel import Expression, checks, engine, fields, rewrite
from jobgen.check.cel.fields import ObjectTypes
from jobgen.check.cel.functions import TABLE
from jobgen.check.cel.patch_literals import list_patch_functions, replace_literals
from jobgen.check.cel.protobuf import written
from jobgen.check.cel.tree import Call, Checked, Const, MapEntry, Node, Sequence, Struct, map_children, walk, write
from jobgen.check.cel.values import CompileError
from jobgen.model.named_tuple import NamedTuple

_NEW, _SET, _SET_PATCH, _MAYBE = "jobgen_new_", "jobgen_set_", "jobgen_set_patch_", "jobgen_maybe_"


class CompiledMutation(NamedTuple):
    """The expression of a patch."""

    expression: Expression
    mismatch: str
    """The first literal whose type is not that of its field, such as `Object.x{}` in `spec`; evaluating it fails."""


@lru_cache(maxsize=512)
def compile_mutation(text: str, names: tuple[str, ...]) -> CompiledMutation | CompileError:
    """Compile an expression whose value is `Object{…}`, or a list of `JSONPatch{…}`; all names have dynamic values."""
    edited = replace_literals(text)
    types = ObjectTypes(tuple((name, "dyn") for name in names), (), tuple(sorted(fields.find_names(edited))))
    checked = fields.check(edited, types, list_patch_functions(edited))
    if isinstance(checked, CompileError):
        return checked
    converter = _Converter(checked)
    plain = rewrite.rewrite(checked._replace(root=converter.convert(checked.root)), ())
    serialized = write(plain)
    is_interpreted = checks.needs_interpreter(checked)
    expression = Expression(text, None if is_interpreted else engine.program(serialized, TABLE), serialized)
    return CompiledMutation(expression, converter.mismatch)


class _Converter:
    """Rebuilds a tree with mappings in the place of the functions that were checked."""

    def __init__(self, checked: Checked) -> None:
        self.last = max(node.id for node in walk(checked.root)) + 10_000_000
        self.mismatch = ""

    def convert(self, node: Node) -> Node:
        if isinstance(node, Call) and node.name.startswith(_NEW) and isinstance(node.args[0], Sequence):
            return Struct(node.id, "", tuple(self._to_entry(each, node.name) for each in node.args[0].items))
        return map_children(node, self.convert)

    def _to_entry(self, node: Node, owner: str) -> MapEntry:
        assert isinstance(node, Call), "each field of a literal is a call"
        prefix = next(each for each in (_SET_PATCH, _SET, _MAYBE) if node.name.startswith(each))
        name = node.name.removeprefix(prefix)
        if prefix != _SET_PATCH:
            self._check_type(node.args[0], f"{owner}_{name}")
        self.last += 2
        return MapEntry(
            self.last, "", Const(self.last + 1, written(6, name)), self.convert(node.args[0]), optional=prefix == _MAYBE
        )

    def _check_type(self, value: Node, expected: str) -> None:
        """Note a literal, or an item of a list, whose type is not that of its field."""
        for each in value.items if isinstance(value, Sequence) else (value,):
            if isinstance(each, Call) and each.name.startswith(_NEW) and each.name != expected:
                found, wanted = (name.removeprefix(_NEW).replace("_", ".") for name in (each.name, expected))
                self.mismatch = self.mismatch or f"`{found}` is not the type of this field; use `{wanted}`"
