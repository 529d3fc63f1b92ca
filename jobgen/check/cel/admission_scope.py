"""The types that expressions of admission policies and webhooks see in the API server, and checks with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from jobgen.check.cel import Expression, checks, engine, fields, rewrite, tree
from jobgen.check.cel.fields import ObjectTypes
from jobgen.check.cel.rewrite import TABLE
from jobgen.check.cel.values import DYNAMIC_OPTIONAL, OFFLINE, CompileError, blank_strings, line_and_column
from jobgen.engine.store import keep
from jobgen.model.lazy_re import lazy_pattern

_NEW, _SET, _SET_PATCH, _MAYBE = "jobgen_new_", "jobgen_set_", "jobgen_set_patch_", "jobgen_maybe_"
_TOKEN = lazy_pattern(r"(?<![\w.])(JSONPatch|Object(?:\s*\.\s*[A-Za-z_]\w*)*)\s*\{|[()\[\]{},]", re.ASCII)
_FIELD = lazy_pattern(r"\s*+(\??)\s*+([A-Za-z_]\w*+)\s*+:", re.ASCII)
_PATCH_FIELDS = {"op": "string", "path": "string", "from": "string", "value": "dyn"}


def replace_literals(text: str) -> str:
    """The text with a function call in the place of each literal."""
    blank = blank_strings(text)
    pieces: list[str] = []
    opened: list[str] = []
    last = 0

    def add(until: int, piece: str, after: int) -> int:
        pieces.extend((text[last:until], piece))
        return after

    for token in _TOKEN.finditer(blank):
        if token.start() < last:
            continue
        if token[1]:
            name = re.sub(r"\s", "", token[1])
            opened.append(name)
            last = add(token.start(), f"{_NEW}{name.replace('.', '_')}([", token.end())
        elif token[0] in "([{":
            opened.append("")
            continue
        elif token[0] == ",":
            if not (opened and opened[-1]):
                continue
            last = add(token.start(), "),", token.end())
        else:
            if opened and opened.pop():
                has_field = bool(text[last : token.start()].strip()) or not pieces[-1].endswith(("([", "),"))
                last = add(token.start(), ")])" if has_field else "])", token.end())
            continue
        field = _FIELD.match(blank, last)
        if field and opened[-1]:
            owner = _SET_PATCH if opened[-1] == "JSONPatch" else _MAYBE if field[1] else _SET
            last = add(field.start(), f"{owner}{field[2]}(", field.end())
    return "".join(pieces) + text[last:]


def list_patch_functions(text: str) -> tuple[tuple[str, str], ...]:
    """The functions in a text without literals, with their signatures."""
    found = [(f"{_SET_PATCH}{name}", f"({kind}) dyn") for name, kind in _PATCH_FIELDS.items()]
    for name in sorted(set(re.findall(rf"(?:{_SET}(?!patch_)|{_MAYBE})\w+", text))):
        found.append((name, "(dyn) dyn"))
    for name in sorted(set(re.findall(rf"{_NEW}\w+", text))):
        kind = name.removeprefix(_NEW).replace("_", ".")
        found.append((name, f"(list<dyn>) {kind}"))
    return (*found, ("jsonpatch.escapeKey", "(string) string"))


_GROUP = "kubernetes"
_TEXT_OF_TYPES = f"""
AdmissionRequest: kind {_GROUP}.GroupVersionKind; resource {_GROUP}.GroupVersionResource; subResource string;
 requestKind {_GROUP}.GroupVersionKind; requestResource {_GROUP}.GroupVersionResource; requestSubResource string;
 name string; namespace string; operation string; userInfo {_GROUP}.UserInfo; dryRun bool; options dyn
GroupVersionKind: group string; version string; kind string
GroupVersionResource: group string; version string; resource string
UserInfo: username string; uid string; groups list<string>; extra map<string, list<string>>
Namespace: metadata {_GROUP}.NamespaceMetadata; spec {_GROUP}.NamespaceSpec; status {_GROUP}.NamespaceStatus
NamespaceSpec: finalizers list<string>
NamespaceStatus: conditions list<{_GROUP}.NamespaceCondition>; phase string
NamespaceCondition: status string; type string; lastTransitionTime timestamp; message string; reason string
NamespaceMetadata: name string; generateName string; namespace string; labels map<string, string>;
 annotations map<string, string>; UID string; creationTimestamp timestamp; deletionGracePeriodSeconds int;
 deletionTimestamp timestamp; generation int; resourceVersion string; finalizers list<string>
authorization.Authorizer: requestResource {_GROUP}.authorization.ResourceCheck
"""
_AUTHORIZER = f"{_GROUP}.authorization.Authorizer"
_HINTS = {
    "undeclared reference to `params`": "there is no `params` without a `paramKind`",
    "undeclared reference to `variables`": "there are no `variables` here; match conditions are evaluated before them",
}
_TYPED = frozenset(("request", "namespaceObject", "variables", "authorizer"))
_VARIABLES_TYPE = f"{_GROUP}.variables"
# Types that the notation of signatures has; the checker treats values of other types as dynamic.
_DECLARABLE = frozenset("bool int uint double string bytes timestamp duration dyn list map optional_type".split())


class AdmissionScope:
    """The variables that an expression can read, with their types; those of the policy are added one by one."""

    def __init__(self, *, has_params: bool, has_variables: bool, has_authorizer: bool = True) -> None:
        self._has_params = has_params
        self._has_variables = has_variables
        self._has_authorizer = has_authorizer
        self._policy_variables: dict[str, str] = {}
        self._data_types: dict[str, str] = {}
        self._data_fields: tuple[tuple[str, str, str], ...] = ()

    def declare_data(self, types: Mapping[str, str], fields_of_types: Iterable[tuple[str, str, str]]) -> None:
        """Give `object`, `oldObject` or `params` a type, as the API server does to warn about mistakes."""
        self._data_types |= types
        self._data_fields += tuple(fields_of_types)

    def without(self, *, authorizer: bool = False, variables: bool = False) -> AdmissionScope:
        """A scope for expressions that cannot read the authorizer, or the variables of the policy."""
        scope = AdmissionScope(
            has_params=self._has_params,
            has_variables=self._has_variables and not variables,
            has_authorizer=self._has_authorizer and not authorizer,
        )
        scope._policy_variables = self._policy_variables
        return scope

    def add_variable(self, name: str, text: str) -> str:
        """Declare a variable of the policy; return why the API server refuses its expression."""
        kind, error = self._check(text, has_patches=False)
        words = kind.replace("<", " ").replace(">", " ").replace(",", " ").split()
        is_declarable = all(word in _DECLARABLE or word.startswith((f"{_GROUP}.", "net.")) for word in words)
        self._policy_variables[name] = kind if words and is_declarable else "dyn"
        return error

    def find_error(self, text: str, *results: str) -> str:
        """Return why the API server refuses an expression that must have one of some types; empty if it does not."""
        has_patches = any("JSONPatch" in result or result == "Object" for result in results)
        kind, error = self._check(text, has_patches=has_patches)
        if error or kind in results or not kind or kind in (f"wrapper<{result}>" for result in results):
            return error
        expected = results[0] if len(results) == 1 else f"one of {', '.join(results)}"
        return f"must evaluate to {expected} but got {kind}"

    def find_type_error(self, text: str) -> str:
        """Return why an expression does not fit the types of what it reads, whatever its own type; or nothing."""
        return self._check(text, has_patches=False)[1]

    def _check(self, text: str, *, has_patches: bool) -> tuple[str, str]:
        if engine.missing():
            return "", ""
        return _check_cached(text, self._declare(text), has_patches)

    def _declare(self, text: str) -> ObjectTypes:
        variables = [(name, self._data_types.get(name, "dyn")) for name in ("object", "oldObject")]
        variables += [("namespaceObject", f"{_GROUP}.Namespace"), ("request", f"{_GROUP}.AdmissionRequest")]
        variables += [("params", self._data_types.get("params", "dyn"))] if self._has_params else []
        variables += [("authorizer", _AUTHORIZER)] if self._has_authorizer else []
        variables += [("variables", _VARIABLES_TYPE)] if self._has_variables else []
        own = [(_VARIABLES_TYPE, name, kind) for name, kind in self._policy_variables.items()]
        names = fields.find_names(text)
        known = [entry for entry in (*list_typed_fields(), *own, *self._data_fields) if f".{entry[1]}" in names]
        return ObjectTypes(tuple(variables), tuple(known), tuple(sorted(names)))


@lru_cache(maxsize=1)
def list_typed_fields() -> tuple[tuple[str, str, str], ...]:
    """The fields of the types: the type, the name of the field, its type."""
    found = []
    for line in _TEXT_OF_TYPES.strip().replace("\n ", " ").splitlines():
        owner, _, listed = line.partition(": ")
        found += [(f"{_GROUP}.{owner}", *field.split(" ", 1)) for field in listed.split("; ")]
    return tuple((owner, name, kind) for owner, name, kind in found)


@lru_cache(maxsize=4096)
def _check_cached(text: str, types: ObjectTypes, has_patches: bool) -> tuple[str, str]:
    parts = (text, repr(types), str(has_patches))
    known = keep("admission-cel", parts, lambda: json.dumps(_check_text(text, types, has_patches=has_patches)).encode())
    kind, error = json.loads(known or b"[]")
    return kind, error


def _check_text(text: str, types: ObjectTypes, *, has_patches: bool) -> tuple[str, str]:
    fault = checks.refused(text)
    if fault is None:
        edited = replace_literals(text) if has_patches else text
        checked = fields.check(edited, types, list_patch_functions(edited) if has_patches else ())
        if "?" in types.names and not has_patches:
            checked = _check_optionals(text, types, checked)
        if not isinstance(checked, CompileError):
            fault = checks.fault(checked, edited)
            if fault is None:
                return checked.types.get(checked.root.id, "dyn"), ""
        else:
            fault = checked
    if OFFLINE in fault.message or DYNAMIC_OPTIONAL.fullmatch(fault.message):
        return "", ""
    where = f" (line {fault.line}, column {fault.column})" if "\n" in text.strip() and not has_patches else ""
    return "", f"{_HINTS.get(fault.message, fault.message)}{where}"


def _check_optionals(text: str, types: ObjectTypes, typed: tree.Checked | CompileError) -> tree.Checked | CompileError:
    """Check an expression with optionals without types, too: those of dynamic data are optionals of dynamic data."""
    serialized = engine.check(text, tuple((name, "dyn") for name, _ in types.variables))
    if isinstance(serialized, CompileError):
        return typed if isinstance(typed, CompileError) else serialized
    untyped = tree.read(serialized)
    if isinstance(typed, CompileError):
        return untyped if "optional" in typed.message else typed
    return typed if _TYPED.intersection(types.names) else untyped


_VARIABLE = "device"
# The checker has no types with fields, so each field of the device is a variable with a dot in its name.
_FIELDS = (
    ("driver", "string"),
    ("attributes", "map<string, map<string, any>>"),
    ("capacity", "map<string, map<string, kubernetes.Quantity>>"),
    ("allowMultipleAllocations", "bool"),
)
_has_field = lazy_pattern(rf"\bhas\(\s*{_VARIABLE}\s*\.\s*({'|'.join(name for name, _ in _FIELDS)})\s*\)")


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
    serialized = engine.check(text, typed, ("bindings",))
    if isinstance(serialized, CompileError):
        return serialized
    checked = tree.read(serialized)
    fault = _find_unknown_field(checked, text, [name for name, _ in fields]) or checks.fault(checked, text)
    kind = checked.types.get(checked.root.id, "dyn")
    if fault is None and kind not in ("bool", "any"):
        return CompileError(f"must evaluate to bool but got {kind}")
    return fault


def _find_unknown_field(checked: tree.Checked, text: str, fields: list[str]) -> CompileError | None:
    for node in tree.walk(checked.root):
        parts = node.args if isinstance(node, tree.Call) and node.name == "_[_]" else ()
        operand = node.operand if isinstance(node, tree.Select) else parts[0] if parts else None
        if not (isinstance(operand, tree.Ident) and operand.name == _VARIABLE):
            continue
        place = line_and_column(text, checked.places.get(node.id, 0))
        if isinstance(node, tree.Select) and node.field not in fields:
            return CompileError(f"`{_VARIABLE}` has no field `{node.field}`", *place)
        if parts:
            return CompileError(f"`{_VARIABLE}` has fields, such as `{_VARIABLE}.driver`, and no keys", *place)
    return None


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
    serialized = tree.write(plain)
    is_interpreted = checks.needs_interpreter(checked)
    expression = Expression(text, None if is_interpreted else engine.program(serialized, TABLE), serialized)
    return CompiledMutation(expression, converter.mismatch)


class _Converter:
    """Rebuilds a tree with mappings in the place of the functions that were checked."""

    def __init__(self, checked: tree.Checked) -> None:
        self.last = max(node.id for node in tree.walk(checked.root)) + 10_000_000
        self.mismatch = ""

    def convert(self, node: tree.Node) -> tree.Node:
        if isinstance(node, tree.Call) and node.name.startswith(_NEW) and isinstance(node.args[0], tree.Sequence):
            return tree.Struct(node.id, "", tuple(self._to_entry(each, node.name) for each in node.args[0].items))
        return tree.map_children(node, self.convert)

    def _to_entry(self, node: tree.Node, owner: str) -> tree.MapEntry:
        assert isinstance(node, tree.Call), "each field of a literal is a call"
        prefix = next(each for each in (_SET_PATCH, _SET, _MAYBE) if node.name.startswith(each))
        name, value = node.name.removeprefix(prefix), node.args[0]
        expected = f"{owner}_{name}"
        for each in value.items if isinstance(value, tree.Sequence) else (value,):
            literal = each.name if isinstance(each, tree.Call) and each.name.startswith(_NEW) else expected
            if prefix != _SET_PATCH and literal != expected and not self.mismatch:
                found, wanted = (kind.removeprefix(_NEW).replace("_", ".") for kind in (literal, expected))
                self.mismatch = f"`{found}` is not the type of this field; use `{wanted}`"
        self.last += 2
        key = tree.Const(self.last + 1, tree.written(6, name))
        return tree.MapEntry(self.last, "", key, self.convert(value), optional=prefix == _MAYBE)
