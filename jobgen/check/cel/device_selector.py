"""Check the CEL expressions that select devices, in the environment that DeviceClasses and ResourceClaims have."""

from __future__ import annotations

from functools import lru_cache

from jobgen.check.cel import checks, engine, tree
from jobgen.check.cel.tree import Call, Checked, Ident, Select, walk
from jobgen.check.cel.values import OFFLINE, CompileError, blank_strings, line_and_column
from jobgen.model.lazy_re import lazy_pattern

_VARIABLE = "device"
# The checker has no types with fields, so each field of the device is a variable with a dot in its name.
_FIELDS = (
    ("driver", "string"),
    ("attributes", "map<string, map<string, any>>"),
    ("capacity", "map<string, map<string, kubernetes.Quantity>>"),
    ("allowMultipleAllocations", "bool"),
)
_has_field = lazy_pattern(rf"\bhas\(\s*{_VARIABLE}\s*\.\s*({'|'.join(name for name, _ in _FIELDS)})\s*\)")
_RESULTS = ("bool", "any")


@lru_cache(maxsize=1024)
def find_selector_fault(text: str, *, has_allow_multiple: bool = True) -> CompileError | None:
    """Return why the API server refuses the expression of a selector; None also if CEL is not available here."""
    if engine.missing():
        return None
    fault = checks.refused(text)
    if fault is not None:
        return None if OFFLINE in fault.message else fault
    bare = blank_strings(text)
    for found in reversed(list(_has_field.finditer(bare))):
        # A device has all its fields; the checker would take the field's type for that of `has`.
        text = text[: found.start()] + "true".ljust(found.end() - found.start()) + text[found.end() :]
    fields = _FIELDS if has_allow_multiple else _FIELDS[:-1]
    typed = ((_VARIABLE, "dyn"), *((f"{_VARIABLE}.{name}", kind) for name, kind in fields))
    serialized = engine.check_typed(text, typed, ("bindings",))
    if isinstance(serialized, CompileError):
        return serialized
    checked = tree.read(serialized)
    return (
        _find_unknown_field(checked, text, [name for name, _ in fields])
        or checks.literal_fault(checked, text)
        or _find_wrong_result(checked)
    )


def _find_unknown_field(checked: Checked, text: str, fields: list[str]) -> CompileError | None:
    for node in walk(checked.root):
        parts = node.args if isinstance(node, Call) and node.name == "_[_]" else ()
        operand = node.operand if isinstance(node, Select) else parts[0] if parts else None
        if not (isinstance(operand, Ident) and operand.name == _VARIABLE):
            continue
        place = line_and_column(text, checked.places.get(node.id, 0))
        if isinstance(node, Select) and node.field not in fields:
            return CompileError(f"`{_VARIABLE}` has no field `{node.field}`", *place)
        if parts:
            return CompileError(f"`{_VARIABLE}` has fields, such as `{_VARIABLE}.driver`, and no keys", *place)
    return None


def _find_wrong_result(checked: Checked) -> CompileError | None:
    kind = checked.types.get(checked.root.id, "dyn")
    return None if kind in _RESULTS else CompileError(f"must evaluate to bool but got {kind}")
