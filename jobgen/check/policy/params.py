"""What a policy may read beside the object: its params, and the namespace of the object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobgen.check.policy.match import NAME_LABEL, Request
from jobgen.check.policy.parse import Binding, Policy
from jobgen.model.data import Data

OPERATORS = "jobgen-operators"
"""The ConfigMap that holds the versions of a cluster's operators; offline, an environment's declared ones."""


class Missing(NamedTuple):
    """Params that a binding cannot do without, and why they are not there."""

    message: str


class ParamStore(NamedTuple):
    """The objects beside the policies: params by apiVersion and kind, namespaces by name."""

    params: Mapping[tuple[str, str], tuple[Data, ...]]
    namespaces: Mapping[str, Data]

    def namespace(self, name: str) -> Data:
        """The namespace as the API server would show it, or the least that every namespace has."""
        known = self.namespaces.get(name, {})
        metadata = known.get("metadata") or {}
        labels = {NAME_LABEL: name, **(metadata.get("labels") or {})}
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            **known,
            "metadata": {**metadata, "name": name, "labels": labels},
        }

    def labels(self, name: str) -> Mapping[str, str] | None:
        """The labels of a namespace; None if nobody has said them."""
        return self.namespace(name)["metadata"]["labels"] if name in self.namespaces else None

    def plus(self, documents: Iterable[Data]) -> ParamStore:
        """The shelf with more on it, which is found first."""
        more = store_params(documents)
        kinds = {**self.params, **more.params}
        params = {kind: (*more.params.get(kind, ()), *self.params.get(kind, ())) for kind in kinds}
        return ParamStore(params, {**self.namespaces, **more.namespaces})

    def params_of(
        self, policy: Policy, binding: Binding, request: Request, operators: Mapping[str, str]
    ) -> list[Data] | Missing:
        """The params that a binding hands to its policy, each to be satisfied; `None` where it hands none."""
        if policy.param_kind is None or binding.params is None:
            return [None]
        wanted = binding.params
        namespace = wanted.namespace or request.namespace
        found = [
            param
            for param in _with_operators(self.params.get(policy.param_kind, ()), policy.param_kind, operators)
            if _namespace(param) in ("", namespace)
            and (not wanted.name or _name(param) == wanted.name)
            and all(requirement.holds(_labels(param)) for requirement in wanted.selector)
        ]
        if not found and wanted.denies:
            called = f" named `{wanted.name}`" if wanted.name else ""
            return Missing(f"binding `{binding.name}` finds no {policy.param_kind[1]}{called}, and may not do without")
        return found


def store_params(documents: Iterable[Data]) -> ParamStore:
    """Plain documents that are no policies, where they can be found."""
    params: dict[tuple[str, str], tuple[Data, ...]] = {}
    namespaces: dict[str, Data] = {}
    for document in documents:
        kind = (str(document.get("apiVersion")), str(document.get("kind")))
        params[kind] = (*params.get(kind, ()), document)
        if kind == ("v1", "Namespace"):
            namespaces[_name(document)] = document
    return ParamStore(params, namespaces)


def _with_operators(params: tuple[Data, ...], kind: tuple[str, str], operators: Mapping[str, str]) -> list[Data]:
    """The params with what the environment declares of its operators, over what a file says of them."""
    if kind != ("v1", "ConfigMap") or not operators:
        return list(params)
    given: Data = next((param for param in params if _name(param) == OPERATORS), {})
    declared = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": OPERATORS, **(given.get("metadata") or {})},
        "data": {**(given.get("data") or {}), **operators},
    }
    return [declared, *(param for param in params if _name(param) != OPERATORS)]


def _metadata(param: Data) -> Mapping[str, Data]:
    metadata = param.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _name(param: Data) -> str:
    return str(_metadata(param).get("name", ""))


def _namespace(param: Data) -> str:
    """A file that names no namespace is good for any."""
    return str(_metadata(param).get("namespace", ""))


def _labels(param: Data) -> Mapping[str, str]:
    labels = _metadata(param).get("labels")
    return labels if isinstance(labels, dict) else {}
