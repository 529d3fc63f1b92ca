"""The delta format, for Python: what DeepDiff's `Delta` applies to each old object to get the new one, as JSON."""

from __future__ import annotations

from typing import Any

from deepdiff import DeepDiff, Delta
from deepdiff.delta import DeltaError

from jobgen.compare.changes import ChangeSet
from jobgen.compare.formats.json import describe_left_out
from jobgen.compare.impact import Impact
from jobgen.k8s.redaction import redact_tree
from jobgen.k8s.secrets import find_secrets
from jobgen.model.data import Plain
from jobgen.reports import to_plain_identity
from jobgen.reports.escape import dump_json, dump_json_list
from jobgen.yamlio.write import to_json


def render(changes: ChangeSet) -> str:
    """Write a delta for every object that is added, removed or changed."""
    document = {
        "version": "1",
        "base": dump_json(changes.old.name),
        "head": dump_json(changes.new.name),
        "objects": dump_json_list(map(_describe_impact, changes.impacts), "    "),
    }
    if changes.not_compared:
        document["leftOut"] = dump_json_list(map(describe_left_out, changes.not_compared), "    ")
    return "{\n" + ",\n".join(f'  "{key}": {value}' for key, value in document.items()) + "\n}\n"


def _describe_impact(one: Impact) -> dict[str, Plain]:
    old, new = (made.object if made else {} for made in (one.old, one.new))
    secrets = find_secrets(old) | find_secrets(new)
    if secrets:
        old, new = (redact_tree(obj, secrets) for obj in (old, new))
    return {
        "happening": one.action,
        "env": one.current.env,
        "object": to_plain_identity(one.new and one.new.identity),
        "was": to_plain_identity(one.old and one.old.identity),
        "redacted": bool(secrets),
        "delta": make_delta(old, new),
    }


def make_delta(old: Any, new: Any) -> dict[str, Any]:
    """Return what `Delta` takes, so that `old + Delta(...)` is `new`: plain data, without the types of Python.

    List items are compared by their positions. DeepDiff cannot express the paths of some keys, such as those with both
    kinds of quotes; then the delta replaces the whole object.
    """
    found = DeepDiff(old, new, zip_ordered_iterables=True, threshold_to_diff_deeper=0)
    parts = {word: dict(changes) for word, changes in Delta(found, always_include_values=True).diff.items()}
    # A change of the type names Python's types, which are not JSON; the new value says the same.
    retyped = {path: {"new_value": change["new_value"]} for path, change in parts.pop("type_changes", {}).items()}
    if retyped:
        parts["values_changed"] = {**parts.get("values_changed", {}), **retyped}
    try:
        made = old + Delta(parts, raise_errors=True, log_errors=False)
        # `True` equals 1 in Python, so texts are compared.
        is_right = to_json(made) == to_json(new)
    except (DeltaError, LookupError, TypeError, ValueError):
        is_right = False
    return parts if is_right else {"values_changed": {"root": {"new_value": new}}}
