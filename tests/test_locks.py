"""Locked fields: no layer but the overlay that locks a field and its ancestors can set it, in whatever form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sampling import sample

from jobgen.model.path import parse_dotted
from jobgen.rendering import config
from jobgen.rendering.build import build_objects, job_attributes
from jobgen.rendering.expand import Expander, JobDocument
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import LIST_KEYS
from jobgen.spec.normalize import ROLE_FIELDS
from jobgen.spec.overlay import Overlay, add_teams, compose_environment
from jobgen.spec.teams import Teams, parse_team

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "schemas/jobgen.dev/trainingjob_v1.json").read_text("utf-8"))
EXAMPLES = {
    name: field["examples"][0] for name, field in SCHEMA["$defs"]["fields"]["properties"].items() if "examples" in field
}
# Fields that are no value of the object, and blocks that are merged into it. The name of a container identifies it.
WITHOUT_PLACE = {"platform", "replicas", "roles", "run", "matrix", "containerName", "podTemplate", "manifest"}
WORDS = {"string": "text", "integer": 3, "boolean": True, "object": {"a": "b"}, "array": ["a"], "number": 1}


@cache
def load_kinds() -> list[Kind]:
    """All kinds that jobs are rendered to."""
    return list(config.load_own(ROOT).kinds)


JOB_KINDS = [kind for kind in load_kinds() if kind.frameworks]
# Kinds that differ in where pod templates are; the others render fields of pods to the same places.
DISTINCT_KINDS = {repr((kind.replicas._replace(at=()), kind.template, kind.code)): kind for kind in JOB_KINDS}.values()


class Field(NamedTuple):
    """A short field, and a value for it."""

    path: str
    spec: dict[str, Any]

    @property
    def is_of_role(self) -> bool:
        return parse_dotted(self.path)[0] in ROLE_FIELDS


def nest(steps, value):
    for step in reversed(steps):
        value = {step: value}
    return value


def list_fields(kind: Kind) -> Iterator[Field]:
    """The short fields of a kind, and the parts of those that are mappings."""
    values = {name: value for name, value in EXAMPLES.items() if name not in WITHOUT_PLACE}
    for name in sorted(ROLE_FIELDS & values.keys()) if kind in DISTINCT_KINDS else ():
        yield Field(name, {name: values[name]})
        if isinstance(values[name], dict):
            for key, value in values[name].items():
                yield Field(f"{name}[{json.dumps(key)}]", {name: {key: value}})
    for name, mapping in kind.fields.items():
        example = mapping.example if mapping.example is not None else _find_example(name, mapping)
        yield Field(name, nest(name.split("."), example))


def _find_example(name, mapping):
    value = EXAMPLES
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if value is None and mapping.values:
        return next(iter(mapping.values))
    return WORDS[mapping.types[0]] if value is None and mapping.types else 3 if value is None else value


def make_job(kind: Kind, spec=(), metadata=()):
    framework = next(iter(kind.frameworks))
    own = {"framework": framework, "platform": kind.platform, **dict(spec)}
    data = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "bert", **dict(metadata)}}
    return {**data, "spec": own}


def build(document, expander: Expander):
    """Build a document; return its object and its problems."""
    job = JobDocument(document, "jobs/bert.yaml")
    problems: list[Any] = []
    patches = expander.environment.patches_for(job_attributes(job, expander))
    made = build_objects(job, expander, patches, problems, [])
    return (made[0] if made else None), problems


def compose(*locked, base=(), team=(), **child):
    overlays = {
        "base": Overlay("base", ({"locked": locked, **dict(base)},)),
        "prod": Overlay("prod", ({"extends": ["base"], **child},)),
    }
    environment = compose_environment("prod", overlays, [])
    teams = Teams((parse_team("nlp", {"folders": ["jobs"], **dict(team)}, "teams/nlp.yaml"),) if team else ())
    return Expander(add_teams(environment, teams, []), load_kinds())


def is_refused(document, expander) -> bool:
    return any(problem.rule == "locked-field" for problem in build(document, expander)[1])


def find_changes(before: Any, after: Any, path=()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The outermost values that differ, with their paths in the object after the change."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in after:
            yield from find_changes(before.get(key), after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and _list_key(path):
        known = {_name(item, path): item for item in before}
        for index, item in enumerate(after):
            yield from find_changes(known.get(_name(item, path)), item, (*path, index))
    elif before != after:
        yield path, after


def _list_key(path):
    return LIST_KEYS.get(next((step for step in reversed(path) if isinstance(step, str)), ""))


def _name(item, path):
    return tuple(item.get(key) for key in _list_key(path))


def make_block(path, value, tree):
    """A block that is merged into an object, and sets the value at a path."""
    if not path:
        return value
    step, *rest = path
    below = make_block(rest, value, tree[step])
    if isinstance(step, int):
        keys = {key: tree[step][key] for names in LIST_KEYS.values() for key in names if key in tree[step]}
        return [{**keys, **below}] if isinstance(below, dict) else [below]
    return {step: below}


def list_object_ways(kind, after, path, value) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The ways to set a field of the object of a job: fields of the job, or those of a child overlay."""
    block = make_block(path, value, after)
    yield "manifest", {"manifest": block}, {}
    yield "manifest of defaults", {}, {"defaults": {"manifest": block}}
    yield "patch of the manifest", {}, {"patches": [{"manifest": block}]}
    pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
    yield "JSON patch", {}, {"patches": [{"jsonPatch": [{"op": "add", "path": pointer, "value": value}]}]}
    yield "deletion", {"manifest": make_block(path[:-1], {path[-1]: None}, after)}, {}
    single = kind.frameworks[next(iter(kind.frameworks))].single
    template = kind.replicas.template
    for item in kind.list_items(after):
        below = path[len(item.path) :]
        if path[: len(item.path)] == item.path and below:
            yield "manifest of a role", {"roles": {single: {"manifest": make_block(below, value, item.data)}}}, {}
            if below[: len(template)] == template and len(below) > len(template):
                inside = {"podTemplate": _get(block, (*item.path, *template))}
                yield "pod template", inside, {}
                yield "pod template of a role", {"roles": {single: inside}}, {}
                yield "pod template of a merge", {}, {"patches": [{"merge": inside}]}


def _get(tree, path):
    for step in path:
        tree = tree[0] if isinstance(tree, list) else tree[step]
    return tree


# What follows from a field, but is another field of the object.
FOLLOWING = {
    "completionMode",  # of a Job whose fields require an index
    "slotsPerWorker",  # the GPUs of a worker
    "procPerWorker",
}
MOUNTS = "volumeMounts"
# Fields by which pods get Secrets and ConfigMaps.
SOURCES = {"env", "envFrom", "volumes", "secrets", "configs"}


def is_own(field: Field, path, value) -> bool:
    """Return True if a change is the field itself. The mount of a Secret names a volume, not the Secret."""
    names = {path[-1], *(value if isinstance(value, dict) and len(path) == 2 else ())}
    return not (names & FOLLOWING or (field.path.startswith(("secrets", "configs")) and MOUNTS in path))


class Rendered(NamedTuple):
    """A field that a kind renders: the object with it, and the values that it sets there."""

    field: Field
    object: Any
    changes: tuple[tuple[tuple[str | int, ...], Any], ...]


@cache
def render_fields(kind_index: int) -> list[Rendered]:
    """The fields that have a place in the objects of a kind."""
    kind, found = JOB_KINDS[kind_index], []
    before, problems = build(make_job(kind), compose())
    assert not problems
    for field in list_fields(kind):
        after, problems = build(make_job(kind, field.spec), compose())
        changes = [] if problems else list(find_changes(before, after))
        if changes:
            found.append(Rendered(field, after, tuple(each for each in changes if is_own(field, *each))))
    return found


def list_ways(kind, rendered: Rendered) -> Iterator[tuple[str, Any, Expander]]:
    """The ways to set a field though the overlay `base` locks it."""
    field, job = rendered.field, make_job(kind)
    lock, single = field.path, kind.frameworks[next(iter(kind.frameworks))].single
    yield "field", make_job(kind, field.spec), compose(lock)
    yield "merge", job, compose(lock, patches=[{"merge": field.spec}])
    yield "defaults", job, compose(lock, defaults=field.spec)
    yield "some defaults", job, compose(lock, defaults=[{"match": {}, "merge": field.spec}])
    yield "defaults of a team", job, compose(lock, team={"defaults": field.spec})
    yield "raw manifest", rendered.object, compose(lock)
    if field.is_of_role:
        yield "field of a role", make_job(kind, {"roles": {single: field.spec}}), compose(lock)
        yield "locked in a role", make_job(kind, field.spec), compose(f"roles.{single}.{lock}")
    for path, value in rendered.changes:
        if path[0] == "metadata":
            metadata = make_block(path, value, rendered.object)["metadata"]
            yield "metadata", make_job(kind, metadata=metadata), compose(lock)
            if "labels" in metadata:
                yield "labels of a team", job, compose(lock, team={"labels": metadata["labels"]})
        for name, spec, child in list_object_ways(kind, rendered.object, path, value):
            yield name, make_job(kind, spec), compose(lock, **child)


KINDS = pytest.mark.parametrize(
    "index",
    sample(range(len(JOB_KINDS)), 3, [f"{kind.platform}-{kind.name}-{kind.operator}" for kind in JOB_KINDS]),
)


@KINDS
def test_every_way_to_set_a_locked_field_is_refused(index):
    """The ways are made of what a field is rendered to, not of where the lock looks for it."""
    kind = JOB_KINDS[index]
    ways = [(each.field.path, *way) for each in render_fields(index) for way in list_ways(kind, each)]
    assert len(ways) > (300 if kind in DISTINCT_KINDS else 20)
    assert not [(field, way) for field, way, document, expander in ways if not is_refused(document, expander)]


@KINDS
def test_other_fields_are_not_refused(index):
    """Every field is locked, and each job sets one of them, as a field and in its object."""
    kind, fields = JOB_KINDS[index], render_fields(index)
    expander = compose(*(each.field.path for each in fields))
    assert not is_refused(make_job(kind), expander)
    for each in fields:
        blocks = [{"manifest": make_block(path, value, each.object)} for path, value in each.changes]
        for spec in (each.field.spec, *blocks):
            _, problems = build(make_job(kind, spec), expander)
            refused = {problem.evidence[0] for problem in problems if problem.rule == "locked-field"}
            others = [other for other in fields if parse_dotted(other.field.path) in map(parse_dotted, refused)]
            assert not [other.field.path for other in others if not _overlap(each, other)]


def _overlap(one: Rendered, other: Rendered) -> bool:
    """Return True if two fields set the same value of the object, or one is a part of the other."""
    tops = {str(parse_dotted(each.field.path)[0]) for each in (one, other)}
    return (
        len(tops) == 1
        or tops <= SOURCES
        or any(
            path[: len(second)] == second or second[: len(path)] == path or "submitterPodTemplate" in path
            for path, _ in one.changes
            for second, _ in other.changes
        )
    )


@KINDS
def test_the_overlay_that_locks_a_field_may_set_it(index):
    kind = JOB_KINDS[index]
    for field, _, changes in render_fields(index):
        for base in ({"defaults": field.spec}, {"patches": [{"merge": field.spec}]}):
            made, problems = build(make_job(kind), compose(field.path, base=base))
            assert not problems
            assert not changes or made != build(make_job(kind), compose())[0]
