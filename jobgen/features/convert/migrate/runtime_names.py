"""Name the runtimes of a repository: equal ones once, and each after what its jobs share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.invert import to_spec_name
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple

_PREFIX = "torch"
_QUEUE = "kueue.x-k8s.io/queue-name"
_MAX_NAME = 63


class RuntimeUser(NamedTuple):
    """A job that needs a runtime: the runtime's spec by environment, `""` for the job alone."""

    name: str
    path: str
    object: Mapping[str, Any]
    specs: Mapping[str, Plain]


def name_runtimes(users: Sequence[RuntimeUser], existing: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The name of the runtime of each job; jobs with equal runtimes in all environments share one.

    A runtime that the repository has already keeps its name.
    """
    groups: dict[str, list[RuntimeUser]] = {}
    for user in users:
        groups.setdefault(_digest(user.specs), []).append(user)
    names: dict[str, str] = {}
    for digest, group in groups.items():
        taken = {*existing, *names.values()}
        spec = group[0].specs[""]
        known = (name for name, found in existing.items() if found.get("spec") == spec and name not in names.values())
        free = (name for name in _list_candidates(group, digest) if name and name not in taken)
        names[digest] = next(known, None) or next(free)
    return [names[_digest(user.specs)] for user in users]


def _list_candidates(group: Sequence[RuntimeUser], digest: str) -> Iterator[str]:
    if len(group) == 1:
        yield _shorten(group[0].name)
    for shared in _list_shared(group):
        yield _shorten(f"{_PREFIX}-{shared}") if shared else ""
    yield _PREFIX
    yield f"{_PREFIX}-{digest[:8]}"


def _list_shared(group: Sequence[RuntimeUser]) -> Iterator[str]:
    """What all jobs of a group share: their team, their queue, their folder."""
    labels = [(user.object.get("metadata") or {}).get("labels") or {} for user in group]
    for name in ("team", _QUEUE):
        values = {str(each.get(name, "")) for each in labels}
        yield values.pop() if len(values) == 1 else ""
    folders = {user.path.rpartition("/")[0].removeprefix("jobs").strip("/") for user in group}
    yield folders.pop().replace("/", "-") if len(folders) == 1 else ""


def _shorten(name: str) -> str:
    return to_spec_name(name)[:_MAX_NAME].rstrip("-.")


def _digest(specs: Mapping[str, Plain]) -> str:
    return hashlib.sha256(json.dumps(specs, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
