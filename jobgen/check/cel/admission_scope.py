"""The types that expressions of admission policies and webhooks see in the API server, and checks with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

from jobgen.check.cel import Expression, checks, engine, find_cheap_size, rewrite, tree
from jobgen.check.cel.rewrite import TABLE
from jobgen.check.cel.signatures import Type, type_named
from jobgen.check.cel.steps import estimate_steps
from jobgen.check.cel.type_checker import PATCH, Scope, check
from jobgen.check.cel.values import CompileError
from jobgen.engine.store import keep
from jobgen.k8s.kinds import NEWEST_RELEASE, Release

_PATCH_FUNCTIONS = (("jsonpatch.escapeKey", "(string) string"),)

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
"""
_AUTHORIZER = (
    ("authorizer", f"{_GROUP}.authorization.Authorizer"),
    ("authorizer.requestResource", f"{_GROUP}.authorization.ResourceCheck"),
)
_HINTS = {
    "undeclared reference to `params`": "there is no `params` without a `paramKind`",
    "undeclared reference to `variables`": "there are no `variables` here; match conditions are evaluated before them",
}
_VARIABLES_TYPE = "variables"
_VARIABLE_TYPES = frozenset("any bool bytes double duration dyn int null string timestamp uint".split())


class AdmissionScope:
    """The variables that an expression can read, with their types; those of the policy are added one by one."""

    def __init__(
        self, *, has_params: bool, has_variables: bool, has_authorizer: bool = True, server: Release = NEWEST_RELEASE
    ) -> None:
        self._has_params = has_params
        self._has_variables = has_variables
        self._has_authorizer = has_authorizer
        self._server = server
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
            server=self._server,
        )
        scope._policy_variables = self._policy_variables
        return scope

    def add_variable(self, name: str, text: str) -> str:
        """Declare a variable of the policy; return why the API server refuses its expression."""
        kind, error = self._check(text, has_patches=False)
        self._policy_variables[name] = str(_declare_variable(type_named(kind))) if kind else "dyn"
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
        return _check_cached(text, self._declare(has_patches=has_patches))

    def _declare(self, *, has_patches: bool) -> Scope:
        variables = [(name, self._data_types.get(name, "dyn")) for name in ("object", "oldObject")]
        variables += [("namespaceObject", f"{_GROUP}.Namespace"), ("request", f"{_GROUP}.AdmissionRequest")]
        variables += [("params", self._data_types.get("params", "dyn"))] if self._has_params else []
        variables += _AUTHORIZER if self._has_authorizer else ()
        own = [(_VARIABLES_TYPE, *item) for item in self._policy_variables.items()]
        variables += [("variables", _VARIABLES_TYPE)] if self._has_variables else []
        return Scope(
            tuple(variables),
            (*list_typed_fields(), *own, *self._data_fields),
            functions=_PATCH_FUNCTIONS if has_patches else (),
            has_patches=has_patches,
            server=self._server,
        )


def _declare_variable(kind: Type) -> Type:
    """The type that a variable of a policy has where it is read: other types than these are dynamic there."""
    if kind.name in ("list", "map"):
        return Type(kind.name, tuple(map(_declare_variable, kind.params)))
    return kind if kind.name in _VARIABLE_TYPES else Type("dyn")


@lru_cache(maxsize=1)
def list_typed_fields() -> tuple[tuple[str, str, str], ...]:
    """The fields of the types: the type, the name of the field, its type."""
    found = []
    for line in _TEXT_OF_TYPES.strip().replace("\n ", " ").splitlines():
        owner, _, listed = line.partition(": ")
        found += [(f"{_GROUP}.{owner}", *field.split(" ", 1)) for field in listed.split("; ")]
    return tuple((owner, name, kind) for owner, name, kind in found)


@lru_cache(maxsize=4096)
def _check_cached(text: str, scope: Scope) -> tuple[str, str]:
    known = keep("admission-cel", (text, repr(scope)), lambda: json.dumps(_check_text(text, scope)).encode())
    kind, error = json.loads(known or b"[]")
    return kind, error


def _check_text(text: str, scope: Scope) -> tuple[str, str]:
    fault = checks.refused(text)
    if fault is None:
        checked = check(text, scope)
        fault = checked if isinstance(checked, CompileError) else checks.fault(checked, text)
        if not isinstance(checked, CompileError) and fault is None:
            return checked.types.get(checked.root.id, "dyn"), ""
    assert fault is not None, "an expression without an error has a type"
    if fault.is_offline:
        return "", ""
    where = f" (line {fault.line}, column {fault.column})" if "\n" in text.strip() else ""
    return "", f"{_HINTS.get(fault.message, fault.message)}{where}"


_DEVICE = "kubernetes.DRADevice"
_DEVICE_FIELDS = (
    (_DEVICE, "driver", "string"),
    (_DEVICE, "attributes", "map<string, map<string, any>>"),
    (_DEVICE, "capacity", "map<string, map<string, kubernetes.Quantity>>"),
    (_DEVICE, "allowMultipleAllocations", "bool"),
)


@lru_cache(maxsize=1024)
def find_selector_fault(text: str, *, has_allow_multiple: bool = True) -> CompileError | None:
    """Return why the API server refuses the expression of a selector; None also if CEL is not available here."""
    if engine.missing():
        return None
    fault = checks.refused(text)
    if fault is not None:
        return None if fault.is_offline else fault
    fields = _DEVICE_FIELDS if has_allow_multiple else _DEVICE_FIELDS[:-1]
    checked = check(text, Scope((("device", _DEVICE),), fields, extensions=("bindings",)))
    if isinstance(checked, CompileError):
        return None if checked.is_offline else checked
    fault = checks.fault(checked, text)
    kind = checked.types.get(checked.root.id, "dyn")
    if fault is None and kind not in ("bool", "any"):
        return CompileError(f"must evaluate to bool but got {kind}")
    return fault


TYPE_FIELD = "@type"
"""The field of a mapping that was written as `Object.spec{…}`: the name of its type."""
LITERAL = "literal"
"""The type of a literal in another one that is the value of a field; the API server cannot convert it."""


@lru_cache(maxsize=512)
def compile_mutation(text: str, names: tuple[str, ...]) -> Expression | CompileError:
    """Compile an expression whose value is `Object{…}`, or a list of `JSONPatch{…}`; all names have dynamic values."""
    variables = tuple((name, "dyn") for name in names)
    checked = check(text, Scope(variables, functions=_PATCH_FUNCTIONS, has_patches=True))
    if isinstance(checked, CompileError):
        return checked
    checked = checks.find_optionals(checked)
    root = _Converter(checked).convert(checked.root)
    rewritten = rewrite.rewrite(checked._replace(root=root), ())
    serialized = tree.write(rewritten)
    is_interpreted = checks.needs_interpreter(checked)
    program = None if is_interpreted else engine.program(serialized, TABLE)
    steps = estimate_steps(text, rewritten.root, is_interpreted=is_interpreted)
    return Expression(text, program, serialized, steps, find_cheap_size(text, serialized))


def _is_map(node: tree.Node) -> bool:
    return isinstance(node, tree.Struct) and not node.name


class _Converter:
    """Rebuilds a tree with mappings in the place of messages."""

    def __init__(self, checked: tree.Checked) -> None:
        self.last = max(node.id for node in tree.walk(checked.root)) + 10_000_000

    def convert(self, node: tree.Node) -> tree.Node:
        made = tree.map_children(node, self.convert)
        if not isinstance(node, tree.Struct) or not isinstance(made, tree.Struct) or not node.name:
            return made
        values = [entry.value for entry in made.entries]
        if node.name != PATCH:
            values = [self._mark(before.value, value) for before, value in zip(node.entries, values, strict=True)]
        entries = tuple(
            entry._replace(field="", key=self._text(entry.field), value=value)
            for entry, value in zip(made.entries, values, strict=True)
        )
        kind = tree.MapEntry(self._new(), "", self._text(TYPE_FIELD), self._text(made.name), optional=False)
        return made._replace(name="", entries=(kind, *entries))

    def _mark(self, node: tree.Node, made: tree.Node) -> tree.Node:
        """A value of a field in which literals are marked."""
        inner = [child for child in tree.children(node) if isinstance(child, tree.Sequence) or _is_map(child)]
        if not inner or not (isinstance(node, tree.Sequence) or _is_map(node)):
            return made
        kind = tree.MapEntry(self._new(), "", self._text(TYPE_FIELD), self._text(LITERAL), optional=False)
        return tree.Struct(self._new(), "", (kind,))

    def _text(self, text: str) -> tree.Const:
        return tree.Const(self._new(), tree.written(6, text))

    def _new(self) -> int:
        self.last += 1
        return self.last
