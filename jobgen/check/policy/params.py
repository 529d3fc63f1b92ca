"""The objects that a policy may read besides the checked one: its params, and the namespace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jobgen.check.policy.match import NAME_LABEL, Request
from jobgen.check.policy.parse import Binding, Policy
from jobgen.check.schema.admitted import CREATION, UID, admit_metadata
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple

_NAMESPACE_METADATA = frozenset("name generateName labels annotations finalizers".split())
OPERATORS = "jobgen-operators"
"""The ConfigMap with the versions of a cluster's operators; offline, those that the environment declares."""


_Object = Mapping[str, Plain]


class MissingParams(NamedTuple):
    """Params that a binding requires and that do not exist, with the reason."""

    message: str


class ParamStore(NamedTuple):
    """Objects that policies may read: params by apiVersion and kind, namespaces by name."""

    params: Mapping[tuple[str, str], tuple[_Object, ...]]
    namespaces: Mapping[str, _Object]

    def namespace(self, name: str) -> _Object:
        """The namespace as the API server would return it; one that is not declared has a name and its label only."""
        known = self.namespaces.get(name, {})
        metadata = admit_metadata({**_metadata(known), "name": name, "labels": {NAME_LABEL: name, **_labels(known)}})
        kept = {field: value for field, value in metadata.items() if field in _NAMESPACE_METADATA}
        return {
            "metadata": {**kept, "uid": UID, "creationTimestamp": CREATION},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }

    def labels(self, name: str) -> Mapping[str, Plain] | None:
        """The labels of a namespace; None if it is not declared."""
        return {NAME_LABEL: name, **_labels(self.namespaces[name])} if name in self.namespaces else None

    def plus(self, documents: Iterable[_Object]) -> ParamStore:
        """A store with more objects, which replace those of the same name and namespace."""
        more = store_params(documents)
        params = {**self.params, **more.params}
        for kind, added in more.params.items():
            names = {(_name(param), _namespace(param)) for param in added}
            kept = (param for param in self.params.get(kind, ()) if (_name(param), _namespace(param)) not in names)
            params[kind] = (*added, *kept)
        return ParamStore(params, {**self.namespaces, **more.namespaces})

    def find_params(
        self, policy: Policy, binding: Binding, request: Request, operators: Mapping[str, str]
    ) -> Sequence[_Object | None] | MissingParams:
        """The params that a binding passes to its policy, which must pass for each; `None` if it passes none."""
        if policy.param_kind is None or binding.params is None:
            return [None]
        wanted = binding.params
        namespace = wanted.namespace or request.namespace
        found = [
            param
            for param in _with_operators(self.params.get(policy.param_kind, ()), policy.param_kind, operators)
            if _namespace(param) in ("", namespace)
            and (not wanted.name or _name(param) == wanted.name)
            and all(requirement.matches(_labels(param)) for requirement in wanted.selector)
        ]
        if not found and wanted.denies:
            named = f" named `{wanted.name}`" if wanted.name else ""
            where = f" in namespace `{namespace}`" if namespace else ""
            return MissingParams(
                f"binding `{binding.name}` requires a {policy.param_kind[1]}{named}, which does not exist{where}; "
                "add it to policies/params/"
            )
        return found


def store_params(documents: Iterable[_Object]) -> ParamStore:
    """A store of objects that are neither policies nor bindings."""
    params: dict[tuple[str, str], tuple[_Object, ...]] = {}
    namespaces: dict[str, _Object] = {}
    for document in documents:
        kind = (str(document.get("apiVersion")), str(document.get("kind")))
        params[kind] = (*params.get(kind, ()), document)
        if kind == ("v1", "Namespace"):
            namespaces[_name(document)] = document
    return ParamStore(params, namespaces)


def _with_operators(params: tuple[_Object, ...], kind: tuple[str, str], operators: Mapping[str, str]) -> list[_Object]:
    """The params with the operator versions that the environment declares, which override those of a file."""
    if kind != ("v1", "ConfigMap") or not operators:
        return list(params)
    given: _Object = next((param for param in params if _name(param) == OPERATORS), {})
    declared: _Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": OPERATORS, **_metadata(given)},
        "data": {**_get_mapping(given, "data"), **operators},
    }
    return [declared, *(param for param in params if _name(param) != OPERATORS)]


def _get_mapping(obj: _Object, field: str) -> Mapping[str, Plain]:
    found = obj.get(field)
    return found if isinstance(found, dict) else {}


def _metadata(obj: _Object) -> Mapping[str, Plain]:
    return _get_mapping(obj, "metadata")


def _name(obj: _Object) -> str:
    return str(_metadata(obj).get("name", ""))


def _namespace(obj: _Object) -> str:
    """The namespace of a param; one without a namespace is found in all of them."""
    return str(_metadata(obj).get("namespace", ""))


def _labels(obj: _Object) -> Mapping[str, Plain]:
    return _get_mapping(_metadata(obj), "labels")
