"""The fingerprint of a run: equal for objects that make the same pods, however they are spelt.

Names of running jobs hang on it. Whatever is changed here, or in what it reads of kind descriptions, must not change
the fingerprint of any object; a new law would be `h2`, beside this one.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from jobgen.model.amounts import amount
from jobgen.model.data import Data, untraced, value_of
from jobgen.spec.kinds import Kind

VERSION = "h1"
LENGTH = 8

# What is said around the pods: who admits them, when they end, what is left of them.
_AROUND = frozenset(("runPolicy", "suspend", "queue", "priority", "tensorboard", "description"))
_AMOUNTS = frozenset(("limits", "requests"))
_ONE_AMOUNT = frozenset(("sizeLimit", "divisor"))


def run_hash(made: Data, kind: Kind, attempt: int, salt: str = "") -> str:
    """Eight letters that stand for all that reaches the pods of an object, and for the attempt."""
    projection = [VERSION, _group(made), kind.name, attempt, salt, project_pods(made, kind)]
    text = json.dumps(projection, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:LENGTH]


def project_pods(made: Data, kind: Kind) -> Any:
    """What reaches the pods of an object, in one spelling; its metadata does not."""
    spec: Any = untraced(made.get("spec", {}))
    for path in (("runPolicy",), *_around(kind)):
        spec = _without(spec, path)
    return _alike(spec)


def _group(made: Data) -> str:
    return str(value_of(made.get("apiVersion", ""))).rpartition("/")[0]


def _around(kind: Kind) -> list[tuple[str, ...]]:
    """Where in a kind's spec the fields stand that no pod sees."""
    fields = ((name.partition(".")[0], tuple(map(str, field.at))) for name, field in kind.fields.items())
    return [at[1:] for name, at in fields if name in _AROUND and at[0] == "spec"]


def _without(tree: Any, path: tuple[str, ...]) -> Any:
    """The tree less what stands at a path, and less what held nothing else."""
    if not isinstance(tree, dict) or path[0] not in tree:
        return tree
    rest = {key: value for key, value in tree.items() if key != path[0]}
    below = _without(tree[path[0]], path[1:]) if len(path) > 1 else None
    return rest if below is None or below == {} else {**rest, path[0]: below}


def _alike(tree: Any, key: str = "") -> Any:
    """The tree with amounts as numbers, and without what is null."""
    if isinstance(tree, dict):
        if key in _AMOUNTS:
            return {name: _amount(value) for name, value in tree.items() if value is not None}
        return {name: _alike(value, name) for name, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_alike(value) for value in tree]
    return _amount(tree) if key in _ONE_AMOUNT else tree


def _amount(value: Any) -> Any:
    """Thousandths: `1024Mi`, `1Gi` and `1073741824` are one amount."""
    found = amount(str(value)) if isinstance(value, float) else amount(value)
    return value if found is None else f"{found}m"
