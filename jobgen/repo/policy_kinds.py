"""What the objects of a file of policies are. Only what is parsed decides: YAML has many ways to write a kind."""

from __future__ import annotations

from functools import lru_cache

_VALIDATING = frozenset(("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"))
_MUTATING = frozenset(("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"))


def only_validates(content: bytes) -> bool:
    """Return True if a file has nothing but validating policies and their bindings, so that it can only refuse more."""
    kinds = _list_kinds(content)
    return bool(kinds) and kinds <= _VALIDATING


def may_mutate(content: bytes) -> bool:
    """Return True if a file has a mutating policy or its binding, or something that cannot be read."""
    kinds = _list_kinds(content)
    return "" in kinds or not kinds.isdisjoint(_MUTATING)


@lru_cache(maxsize=256)
def _list_kinds(content: bytes) -> frozenset[str]:
    """Return the kinds of all objects of a file; the empty name is that of what is not known to be an object."""
    # Imported late: most runs decide about no file.
    from jobgen.yamlio.read import read

    source = read(content, "")
    unknown = ("",) if source.findings or source.repaired else ()
    return frozenset((*unknown, *(_name_kind(document.data.get("kind")) for document in source.documents)))


def _name_kind(kind: object) -> str:
    """The kind of an object; empty for a list of objects, and for what is no kind."""
    return kind if isinstance(kind, str) and not kind.endswith("List") else ""
