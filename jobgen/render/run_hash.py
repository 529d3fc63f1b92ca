"""The hash of a run: equal for objects that create the same pods, however they are written.

Names of running jobs contain it. No change here, or to the kind descriptions it reads, may change the hash of any
object. A different algorithm would be `h2`, beside this one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jobgen.k8s.workloads import find_workload
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.quantity import to_milli
from jobgen.spec.kinds import Kind

VERSION = "h1"
LENGTH = 8

# Fields that no pod depends on: admission, deadlines, cleanup.
_WITHOUT_EFFECT = frozenset(("runPolicy", "suspend", "queue", "priority", "tensorboard", "description"))
_RESOURCE_FIELDS = frozenset(("limits", "requests"))
_QUANTITY_FIELDS = frozenset(("sizeLimit", "divisor"))


def run_hash(made: Mapping[str, Node], kind: Kind, attempt: int, salt: str = "") -> str:
    """Hash the fields that the pods of an object depend on, and the attempt, to eight characters."""
    projection = [VERSION, _api_group(made), kind.name, attempt, salt, project_pods(made, kind)]
    text = json.dumps(projection, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    # Imported late: it loads OpenSSL.
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()[:LENGTH]


def project_pods(made: Mapping[str, Node], kind: Kind) -> Any:
    """The part of an object that its pods depend on, in canonical form; metadata is not part of it."""
    spec: Any = untraced(made.get("spec", {}))
    workload = find_workload(_api_group(made), kind.name)
    own_paths = workload.lifecycle_paths if workload else []
    for path in (("runPolicy",), *_paths_without_effect(kind), *own_paths):
        spec = _remove_path(spec, path)
    return _canonicalize(spec)


def _api_group(made: Mapping[str, Node]) -> str:
    return str(value_of(made.get("apiVersion", ""))).rpartition("/")[0]


def _paths_without_effect(kind: Kind) -> list[tuple[str, ...]]:
    """The paths in a kind's spec that no pod depends on."""
    fields = ((name.partition(".")[0], tuple(map(str, field.at))) for name, field in kind.fields.items())
    return [at[1:] for name, at in fields if name in _WITHOUT_EFFECT and at[0] == "spec"]


def _remove_path(tree: Any, path: tuple[str, ...]) -> Any:
    """The tree without the value at a path, and without mappings that are then empty."""
    if not isinstance(tree, dict) or path[0] not in tree:
        return tree
    rest = {key: value for key, value in tree.items() if key != path[0]}
    below = _remove_path(tree[path[0]], path[1:]) if len(path) > 1 else None
    return rest if below is None or below == {} else {**rest, path[0]: below}


def _canonicalize(tree: Any, key: str = "") -> Any:
    """The tree with quantities as numbers and without nulls."""
    if isinstance(tree, dict):
        if key in _RESOURCE_FIELDS:
            return {name: _to_thousandths(value) for name, value in tree.items() if value is not None}
        return {name: _canonicalize(value, name) for name, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_canonicalize(value) for value in tree]
    return _to_thousandths(tree) if key in _QUANTITY_FIELDS else tree


def _to_thousandths(value: Any) -> Any:
    """A quantity in thousandths, so that `1024Mi`, `1Gi` and `1073741824` are equal."""
    found = to_milli(str(value)) if isinstance(value, float) else to_milli(value)
    return value if found is None else f"{found}m"
