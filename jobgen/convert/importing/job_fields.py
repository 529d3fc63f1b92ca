"""The fields of a custom resource that have a name in the job spec, found by the paths of its kind description."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from jobgen.convert.importing.pod_fields import fits
from jobgen.model.data import Data, untraced
from jobgen.model.path import Step
from jobgen.render.set_path import set_path
from jobgen.spec.frameworks import Frameworks, collect_frameworks
from jobgen.spec.kinds import FieldMapping, Kind

_MISSING = object()


def framework_of(manifest: dict[str, Data], kind: Kind) -> str:
    """The framework of a job; where its kind serves several, what it runs on says which."""
    runtime = str(_at(manifest, ("spec", "runtimeRef", "name")))
    known = kind.requirements.runtimes.get(runtime)
    policy = {"torch": "pytorch"}.get(known.policy, known.policy) if known else ""
    if policy in kind.frameworks:
        return policy
    hinted = [name for name in kind.frameworks if name in runtime]
    return [*hinted, *kind.frameworks][0]


def field_words(manifest: dict[str, Data], kind: Kind, framework: str) -> tuple[dict[str, Data], dict[str, Data]]:
    """What the custom resource says in fields of ours, and the manifest without it."""
    left = copy.deepcopy(manifest)
    spec: dict[str, Data] = {}
    frameworks = collect_frameworks([kind])
    for path, field in _fields(kind, framework):
        value = _at(left, field.at)
        if value is _MISSING or field.at[0] == "template":
            continue
        if path in kind.branches and isinstance(value, dict) and value:
            for key in list(value):
                if _say(spec, (*path.split("."), key), value[key], frameworks):
                    _remove(left, (*field.at, key))
            continue
        said = _said(value, field)
        if said is not _MISSING and _say(spec, tuple(path.split(".")), said, frameworks):
            _remove(left, field.at)
    return spec, left


def _fields(kind: Kind, framework: str) -> Iterator[tuple[str, FieldMapping]]:
    """The fields that this framework has: the deepest places first, and of two names for one place the shorter."""
    others = set(kind.frameworks) - {framework}
    mine = [(path, field) for path, field in kind.fields.items() if path.split(".")[0] not in others]
    return iter(sorted(mine, key=lambda pair: (-len(pair[1].at), len(pair[0]))))


def _said(value: Data, field: FieldMapping) -> Data:
    """A value as we spell it, if rendering it gives that value again."""
    if field.values is not None:
        return next((ours for ours, theirs in field.values.items() if theirs == value), _MISSING)
    if field.as_type == "string" and not isinstance(value, str):
        return _MISSING
    if field.as_type == "int" and (isinstance(value, bool) or not isinstance(value, int)):
        return _MISSING
    return value


def _say(spec: dict[str, Data], path: tuple[str, ...], value: Data, frameworks: Frameworks) -> bool:
    nested = value
    for step in reversed(path[1:]):
        nested = {step: nested}
    if not fits(path[0], nested, frameworks):
        return False
    set_path(spec, path, value)
    return True


def settle_defaults(spec: dict[str, Data], defaults: Data) -> None:
    """Leave out what the kind says anyway, and unsay what it says and the manifest does not."""
    for key, value in untraced(defaults).items():
        if key == "restartPolicy":
            continue
        if isinstance(value, dict):
            below = spec.setdefault(key, {})
            settle_defaults(below, value)
            if not below:
                del spec[key]
        elif key not in spec:
            spec[key] = None
        elif spec[key] == value:
            del spec[key]


def _at(tree: Data, path: tuple[Step, ...]) -> Data:
    for step in path:
        if not isinstance(tree, dict) or step not in tree:
            return _MISSING
        tree = tree[step]
    return tree


def _remove(tree: dict[str, Data], path: tuple[Step, ...]) -> None:
    """Take a value out, and the maps that held nothing else."""
    holders = [tree]
    for step in path[:-1]:
        holders.append(holders[-1][str(step)])
    del holders[-1][str(path[-1])]
    for holder, step in reversed(list(zip(holders, path[:-1], strict=False))):
        if not holder[str(step)]:
            del holder[str(step)]
