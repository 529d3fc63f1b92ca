"""Which edits change nothing: those that write out, or delete, what the API server or a webhook fills in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobgen.k8s.compare import FieldChange, FieldPath, compare_objects
from jobgen.model.data import Plain
from jobgen.model.path import NamedItem, format_pointer

_UNSET: tuple[Plain, ...] = (None, "", 0, [], {})
"""What Go leaves out of an object, also `false`."""
_POD = "spec/replicatedJobs/*/template/spec/template/spec"

_OF_WEBHOOKS: Mapping[tuple[str, str], Mapping[str, Plain]] = {
    ("jobset.x-k8s.io", "JobSet"): {
        "spec/network/enableDNSHostnames": True,
        "spec/network/publishNotReadyAddresses": True,
        "spec/replicatedJobs/*/groupName": "default",
        "spec/replicatedJobs/*/replicas": 1,
        "spec/replicatedJobs/*/template/spec/completionMode": "Indexed",
        f"{_POD}/restartPolicy": "OnFailure",
        "spec/startupPolicy/startupPolicyOrder": "AnyOrder",
        "spec/successPolicy/operator": "All",
    },
    ("batch.volcano.sh", "Job"): {
        "spec/maxRetry": 3,
        "spec/queue": "default",
        "spec/schedulerName": "volcano",
        "spec/tasks/*/maxRetry": 3,
    },
}
"""What the webhooks of operators fill in, by group and kind."""


def drop_defaults(
    changes: Iterable[FieldChange], kind: tuple[str, str], old: dict[str, Plain], new: dict[str, Plain]
) -> Iterator[FieldChange]:
    """Yield the changes that are left when both objects of a kind have their defaults; `old` and `new` have them."""
    filled = _OF_WEBHOOKS.get(kind, {})
    for change in changes:
        yield from _narrow(change, _find(old, change.path), _find(new, change.path), filled)


def _narrow(change: FieldChange, before: Plain, after: Plain, filled: Mapping[str, Plain]) -> Iterator[FieldChange]:
    """Yield what a change changes; an added or a removed mapping without the fields that are defaults."""
    path, op, old, new = change
    value = new if op == "added" else old if op == "removed" else None
    if isinstance(value, dict) and value:
        was, is_now = (side if isinstance(side, dict) else {} for side in (before, after))
        inner = [
            found
            for key, child in value.items()
            for found in _narrow(_make_change(path, op, key, child), was.get(key), is_now.get(key), filled)
        ]
        is_whole = [found.path for found in inner] == [(*path, key) for key in value]
        yield from (change,) if is_whole else inner
    elif not _is_default(change, filled) and not _is_same(change, before, after):
        yield change


def _make_change(path: FieldPath, op: str, key: str, child: Plain) -> FieldChange:
    is_added = op == "added"
    return FieldChange(
        (*path, key), "added" if is_added else "removed", *((None, child) if is_added else (child, None))
    )


def _is_same(change: FieldChange, before: Plain, after: Plain) -> bool:
    """Return True if the values are equal with defaults; a field that the API server drops is shown as it is edited."""
    if before is None and after is None:
        return change.old in _UNSET and change.new in _UNSET
    return not any(compare_objects(before, after, change.path))


def _is_default(change: FieldChange, filled: Mapping[str, Plain]) -> bool:
    default = filled.get(format_steps(change.path)) if filled else None
    return default is not None and all(
        (default if side is None else side) == default for side in (change.old, change.new)
    )


def format_steps(steps: FieldPath) -> str:
    """Return a path as tables of fields have it: `*` stands for any item that has a name."""
    return format_pointer("*" if isinstance(step, NamedItem) else step for step in steps)[1:]


def _find(node: Plain, path: FieldPath) -> Plain:
    """The value at a path; None if there is none."""
    for step in path:
        if isinstance(step, NamedItem):
            items = [item for item in node if isinstance(item, dict)] if isinstance(node, list) else []
            node = next((item for item in items if str(item.get(step.field)) == step.value), None)
        else:
            node = node.get(str(step)) if isinstance(node, dict) else None
    return node
