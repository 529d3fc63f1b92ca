"""Permissions in CEL: what `authorizer` answers, which is the same for every question.

The permissions of who applies the objects are known only in the cluster, so an environment states the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobgen.check.cel.values import NO_OVERLOAD, strings, tag_of, tagged, untagged
from jobgen.model.lazy_re import lazy_pattern

_GROUP, _RESOURCE, _PATH, _DECISION = "groupcheck", "resourcecheck", "pathcheck", "decision"
_ALLOW, _DENY = "allow", "deny"
_REQUEST = "requestResource"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMESPACE = lazy_pattern(_LABEL)
_ACCOUNT = lazy_pattern(rf"{_LABEL}(\.{_LABEL})*")


def make_authorizer(*, allows: bool) -> dict[str, Any]:
    """The value of `authorizer`; its one field is the resource of the request."""
    return {_REQUEST: tagged(_RESOURCE, _ALLOW if allows else _DENY)}


def _answer_of(authorizer: object) -> str:
    if not isinstance(authorizer, dict) or _REQUEST not in authorizer:
        raise TypeError(NO_OVERLOAD)
    return untagged(authorizer[_REQUEST], _RESOURCE)


def _ask(read: Callable[[object], str], tag: str, what: str = "") -> Callable[[object, object], bytes]:
    """A function that passes an answer on, given a text that may not be empty if it has a name."""

    def ask(asked: object, text: object) -> bytes:
        answer = read(asked)
        (found,) = strings(text)
        if what and not found.strip():
            raise ValueError(f"{what} must not be empty")
        return tagged(tag, answer)

    return ask


def _ask_account(authorizer: object, namespace: object, name: object) -> object:
    _answer_of(authorizer)
    namespace_text, name_text = strings(namespace, name)
    if len(name_text) > 253 or not _ACCOUNT.fullmatch(name_text):
        raise ValueError("Invalid service account name")
    if len(namespace_text) > 63 or not _NAMESPACE.fullmatch(namespace_text):
        raise ValueError("Invalid service account namespace")
    return authorizer


def _explain(decision: object) -> str:
    """No reason is known, and nothing failed."""
    untagged(decision, _DECISION)
    return ""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "path": _ask(_answer_of, _PATH, "path"),
    "group": _ask(_answer_of, _GROUP),
    "serviceAccount": _ask_account,
    "resource": _ask(lambda group: untagged(group, _GROUP), _RESOURCE, "resource"),
    **dict.fromkeys(
        "subresource namespace name fieldSelector labelSelector".split(),
        _ask(lambda resource: untagged(resource, _RESOURCE), _RESOURCE),
    ),
    "check": _ask(lambda asked: untagged(asked, _PATH if tag_of(asked) == _PATH else _RESOURCE), _DECISION),
    "allowed": lambda decision: untagged(decision, _DECISION) == _ALLOW,
    "errored": lambda decision: not untagged(decision, _DECISION),
    **dict.fromkeys(("reason", "error"), _explain),
}
