"""The types that expressions of admission policies and webhooks see in the API server, and checks with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

from jobgen.check.cel import checks, engine, fields
from jobgen.check.cel.fields import ObjectTypes
from jobgen.check.cel.patch_literals import list_patch_functions, replace_literals
from jobgen.check.cel.tree import Checked, read
from jobgen.check.cel.values import DYNAMIC_OPTIONAL, OFFLINE, CompileError
from jobgen.engine.store import keep

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
# Types that cannot be declared; the checker treats values of other types as dynamic.
_DECLARABLE = frozenset("bool int uint double string bytes timestamp duration dyn".split())


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
        self._policy_variables[name] = kind if _is_declarable(kind) else "dyn"
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
        """The type of an expression, or the error in it; neither if it is not known offline."""
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
            fault = checks.literal_fault(checked, edited)
            if fault is None:
                return checked.types.get(checked.root.id, "dyn"), ""
        else:
            fault = checked
    if OFFLINE in fault.message or DYNAMIC_OPTIONAL.fullmatch(fault.message):
        return "", ""
    where = f" (line {fault.line}, column {fault.column})" if "\n" in text.strip() and not has_patches else ""
    return "", f"{_HINTS.get(fault.message, fault.message)}{where}"


def _check_optionals(text: str, types: ObjectTypes, typed: Checked | CompileError) -> Checked | CompileError:
    """Check an expression with optionals without types, too: those of dynamic data are optionals of dynamic data."""
    serialized = engine.check(text, tuple(name for name, _ in types.variables), ())
    if isinstance(serialized, CompileError):
        return typed if isinstance(typed, CompileError) else serialized
    untyped = read(serialized)
    if isinstance(typed, CompileError):
        return untyped if "optional" in typed.message else typed
    return typed if _TYPED.intersection(types.names) else untyped


def _is_declarable(kind: str) -> bool:
    """Whether the notation of signatures has a type."""
    words = kind.replace("<", " ").replace(">", " ").replace(",", " ").split()
    known = {*_DECLARABLE, "list", "map", "optional_type"}
    return bool(words) and all(word in known or word.startswith((f"{_GROUP}.", "net.")) for word in words)
