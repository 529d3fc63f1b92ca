"""What overlays set for a job only while it has its old kind or platform: it must be written into the migrated job."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.comments import KeyPath
from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.migrate.draft import MigrationNote, iter_leaves, put_at
from jobgen.model.data import Location, location_of, untraced
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering import config
from jobgen.rendering.build import is_spec, job_attributes
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.trace import Job
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import merge
from jobgen.spec.overlay import JobAttributes

_LIMIT: KeyPath = ("runPolicy", "backoffLimit")
_COMMON_ONLY = frozenset(("framework", "platform", "run", "manifest"))
"""Fields that are not about what a job runs, or not of a spec of another kind."""


class BoundLayer(NamedTuple):
    """A default or a patch of an overlay that applies to a job of the old kind, and not to one of the new kind."""

    env: str
    block: Fields
    """The fields that it sets; empty for a patch of the object."""
    location: Location
    is_patch: bool
    selects: str
    """The key of its selector that leaves the new kind out."""


class Absorbed(NamedTuple):
    """The fields that all environments set for the old kind alone: those below the job's own, and those above."""

    defaults: Mapping[KeyPath, Any]
    patches: Mapping[KeyPath, Any]
    places: Mapping[KeyPath, Location]

    def apply(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document with these fields."""
        spec: Any = copy.deepcopy(untraced(document["spec"]))
        for path, value in self.defaults.items():
            if not _has(spec, path):
                put_at(spec, path, copy.deepcopy(value))
        for path, value in self.patches.items():
            if _is_open(spec, path):
                put_at(spec, path, copy.deepcopy(value))
        return {**document, "spec": spec}

    def list_notes(self, document: Mapping[str, Any], kind: Kind) -> Iterator[MigrationNote]:
        """Yield a note for each of these fields."""
        after: Any = self.apply(document)["spec"]
        before: Any = dict(iter_leaves(untraced(document["spec"])))
        for path, value in iter_leaves(after):
            if path in self.places and before.get(path) != value:
                where = self.places[path]
                reason = f"{where.file}:{where.line} sets it for {kind.name} only; it is written out now"
                yield MigrationNote(path, "changed", reason)


NOTHING_ABSORBED = Absorbed({}, {}, {})


def list_bound_layers(job: Job, project: ProjectConfig, source: Kind, target: Kind) -> list[BoundLayer]:
    """Return the layers of all environments that a migration would detach from a job.

    An environment that renders the job to another kind is none of them.
    """
    if not is_spec(job.document.data):
        return []
    traced = config.load(project.layers, traced=True)
    found: list[BoundLayer] = []
    for env in project.environments():
        runner = EnvironmentRunner(traced, env)
        attributes = job_attributes(job.document, runner.expander)
        if runner.expander.environment.matches(attributes) and attributes.kind == source.name:
            found += _list_of_environment(runner, attributes, target)
    return found


def _list_of_environment(runner: EnvironmentRunner, old: JobAttributes, target: Kind) -> Iterator[BoundLayer]:
    new = old._replace(kind=target.name, platform=target.platform)
    environment = runner.expander.environment
    for each in environment.defaults:
        if each.matches(old) and not each.matches(new):
            block: Any = untraced(each.block)
            yield BoundLayer(runner.name, block, _find_place(each.block), False, _name_key(each.match, new))
    for patch in environment.patches:
        if patch.matches(old) and not patch.matches(new):
            node: Any = patch.node
            block = untraced(node.get("merge", {}))
            yield BoundLayer(runner.name, block, _find_place(node), True, _name_key(patch.match, new))


def _name_key(match: Any, new: JobAttributes) -> str:
    by_kind = any(name == "kind" for name, _ in match.patterns) if match else False
    return "kinds" if by_kind else "platforms"


def _find_place(block: Any) -> Location:
    keys = list(block) if isinstance(block, dict) else []
    found = (location_of(key) for key in keys)
    return next((each for each in found if each is not None), Location("overlays"))


def absorb(layers: Sequence[BoundLayer], envs: Sequence[str], target: Kind) -> Absorbed:
    """Return what all environments that render a job of the old kind set alike."""
    sides: list[dict[KeyPath, Any]] = []
    for is_patch in (False, True):
        trees: list[dict[KeyPath, Any]] = []
        for env in envs:
            merged: Fields = {}
            for each in layers:
                if (each.env, each.is_patch) == (env, is_patch):
                    merged = merge(merged, each.block, [])
            trees.append(dict(iter_leaves(merged)) if merged else {})
        first = trees[0] if trees else {}
        sides.append(
            {
                path: value
                for path, value in first.items()
                if _can_be_absorbed(path, value, target)
                and all(path in tree and tree[path] == value for tree in trees[1:])
            }
        )
    places = {path: each.location for each in layers for path, _ in iter_leaves(each.block)}
    return Absorbed(sides[0], sides[1], places)


def _can_be_absorbed(path: KeyPath, value: Any, target: Kind) -> bool:
    """Return True if a field of an overlay matters for what runs, and may be one of the job."""
    if not path or value is None or path[0] in _COMMON_ONLY:
        return False
    return path[0] != "runPolicy" or path == _LIMIT or ".".join(path) in target.fields


def _has(spec: Fields, path: KeyPath) -> bool:
    """Return True if a spec sets a field, or something that is not a map above it."""
    node: Any = spec
    for step in path:
        if not isinstance(node, dict):
            return True
        if step not in node:
            return False
        node = node[step]
    return True


def _is_open(spec: Fields, path: KeyPath) -> bool:
    """Return True if there are only maps above a field."""
    node: Any = spec
    for step in path[:-1]:
        node = node.get(step, {})
        if not isinstance(node, dict):
            return False
    return True


def explain_layers(layers: Sequence[BoundLayer], absorbed: Absorbed, target: Kind) -> Iterator[str]:
    """Yield what must change in each overlay whose fields are not part of the migrated job, with its line."""
    names = {"kinds": target.name, "platforms": target.platform}
    taken = {**absorbed.defaults, **absorbed.patches}
    for each in layers:
        left = [
            path
            for path, value in iter_leaves(each.block)
            if path and (path[0] != "runPolicy" or path == _LIMIT) and taken.get(path) != value
        ]
        if left or not each.block:
            fields = ", ".join(f"`{'.'.join(path)}`" for path in left) or "its patch of the object"
            advice = f"add `{names[each.selects]}` to `match.{each.selects}`, or set it in the job"
            if not each.block:
                advice = f"write one for {target.name}"
            yield f"{each.location.file}:{each.location.line}: {fields} would not apply to a {target.name}; {advice}"
