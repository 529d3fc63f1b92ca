"""Permissions in CEL: what `authorizer` answers, which is the same for every question.

The permissions of who applies the objects are known only in the cluster, so an environment states the answer.
"""

from __future__ import annotations

from typing import Any

from jobgen.check.cel.values import NO_OVERLOAD, strings, tagged, untagged
from jobgen.model.lazy_re import lazy_pattern

_GROUP, _RESOURCE, _PATH, _DECISION = "groupcheck", "resourcecheck", "pathcheck", "decision"
_ALLOW, _DENY = "allow", "deny"
_REQUEST = "requestResource"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMESPACE = lazy_pattern(_LABEL)
_ACCOUNT = lazy_pattern(rf"{_LABEL}(\.{_LABEL})*")
_MAX_NAMESPACE, _MAX_ACCOUNT = 63, 253


def make_authorizer(*, allows: bool) -> dict[str, Any]:
    """The value of `authorizer`; its one field is the resource of the request."""
    return {_REQUEST: tagged(_RESOURCE, _ALLOW if allows else _DENY)}


def ask_path(authorizer: object, path: object) -> bytes:
    """`authorizer.path(string)`."""
    answer = _answer_of(authorizer)
    if not strings(path)[0].strip():
        raise ValueError("path must not be empty")
    return tagged(_PATH, answer)


def ask_group(authorizer: object, group: object) -> bytes:
    """`authorizer.group(string)`."""
    answer = _answer_of(authorizer)
    strings(group)
    return tagged(_GROUP, answer)


def ask_account(authorizer: object, namespace: object, name: object) -> object:
    """`authorizer.serviceAccount(string, string)`."""
    _answer_of(authorizer)
    namespace_text, name_text = strings(namespace, name)
    if len(name_text) > _MAX_ACCOUNT or not _ACCOUNT.fullmatch(name_text):
        raise ValueError("Invalid service account name")
    if len(namespace_text) > _MAX_NAMESPACE or not _NAMESPACE.fullmatch(namespace_text):
        raise ValueError("Invalid service account namespace")
    return authorizer


def ask_resource(group: object, resource: object) -> bytes:
    """`group.resource(string)`."""
    answer = untagged(group, _GROUP)
    if not strings(resource)[0].strip():
        raise ValueError("resource must not be empty")
    return tagged(_RESOURCE, answer)


def narrow(resource: object, text: object) -> bytes:
    """`resource.subresource(string)`, and the same for a namespace, a name and selectors."""
    strings(text)
    return tagged(_RESOURCE, untagged(resource, _RESOURCE))


def check(asked: object, verb: object) -> bytes:
    """`resource.check(string)` and `path.check(string)`."""
    strings(verb)
    try:
        return tagged(_DECISION, untagged(asked, _RESOURCE))
    except TypeError:
        return tagged(_DECISION, untagged(asked, _PATH))


def is_allowed(decision: object) -> bool:
    """`decision.allowed()`."""
    return untagged(decision, _DECISION) == _ALLOW


def has_failed(decision: object) -> bool:
    """`decision.errored()`."""
    return not untagged(decision, _DECISION)


def explain(decision: object) -> str:
    """`decision.reason()` and `decision.error()`: no reason is known, and nothing failed."""
    untagged(decision, _DECISION)
    return ""


def _answer_of(authorizer: object) -> str:
    if not isinstance(authorizer, dict) or _REQUEST not in authorizer:
        raise TypeError(NO_OVERLOAD)
    return untagged(authorizer[_REQUEST], _RESOURCE)
