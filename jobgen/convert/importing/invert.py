"""A manifest to the job spec that renders to it: the kind description read backwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from jobgen.convert.importing.common_fields import Fields, extract_common, shorten_resources, with_types
from jobgen.convert.importing.job_fields import field_words, framework_of, settle_defaults
from jobgen.convert.importing.patch import create_patch
from jobgen.convert.importing.pod_fields import fits, words_of
from jobgen.convert.importing.verify import SpecRenderer, find_differences, is_equivalent, render_spec
from jobgen.model.data import API_VERSION, Data, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.path import Step
from jobgen.spec.kinds import Kind

_NAME = lazy_pattern(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")
_NAMESPACE = lazy_pattern(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_NOT_IN_NAMES = lazy_pattern(r"[^a-z0-9.-]+")
_ORDER = """
    framework replicas description image imagePullPolicy containerName command args workingDir env envFrom ports
    resources volumes shm restartPolicy nodeSelector tolerations affinity serviceAccount imagePullSecrets
    securityContext labels annotations queue priority suspend runPolicy
    FRAMEWORK tensorboard roles podTemplate manifest
""".split()
# `FRAMEWORK` stands for the block of the job's framework, whatever its name.
_RANK = {field: place for place, field in enumerate(_ORDER)}

Difference = tuple[tuple[Step, ...], Data, Data]


class Candidate(NamedTuple):
    """A spec, and where what it renders to is not the manifest."""

    document: dict[str, Data]
    differences: tuple[Difference, ...]
    problems: tuple[str, ...] = ()


def build_candidates(manifest: dict[str, Data], kind: Kind, bench: SpecRenderer) -> Iterator[Candidate]:
    """Specs for a manifest, the ones with the most short forms first."""
    for inverted in (True, False):
        for parts in (True, False):
            yield _attempt(manifest, kind, bench, inverted=inverted, parts=parts)


def _attempt(manifest: dict[str, Data], kind: Kind, bench: SpecRenderer, *, inverted: bool, parts: bool) -> Candidate:
    document = _document(manifest, kind, bench.gpu_resource, inverted=inverted, parts=parts)
    made, problems = render_spec(document, bench)
    if not isinstance(made, dict):
        return Candidate(document, (), tuple(problems))
    if not is_equivalent(made, manifest):
        document["spec"]["manifest"] = create_patch(made, manifest)
        made, problems = render_spec(document, bench)
    return Candidate(
        document, tuple(find_differences(manifest, made)) if isinstance(made, dict) else (), tuple(problems)
    )


def _document(manifest: dict[str, Data], kind: Kind, gpu: str, *, inverted: bool, parts: bool) -> dict[str, Data]:
    framework = framework_of(manifest, kind)
    spec, left = field_words(manifest, kind, framework)
    metadata = _metadata(left["metadata"])
    roles = _roles(left, kind, framework, str(metadata["name"]), inverted=inverted)
    _priority(spec, roles, kind)
    settle_defaults(spec, kind.frameworks[framework].defaults)
    common, own = extract_common(_settled(roles, kind, framework), parts=parts)
    for words in (common, *own.values()):
        if "resources" in words:
            words["resources"] = shorten_resources(words["resources"], gpu)
    spec = {"framework": framework, **common, **spec}
    if own and not (list(own) == [kind.frameworks[framework].single] and not own[next(iter(own))]):
        spec["roles"] = {name: sort_fields(words) for name, words in own.items()}
    return {"apiVersion": API_VERSION, "kind": "TrainingJob", "metadata": metadata, "spec": sort_fields(spec)}


def sort_fields(fields: Fields) -> Fields:
    """Fields in the order in which people look for them."""
    return dict(sorted(fields.items(), key=lambda pair: _RANK.get(pair[0], _RANK["FRAMEWORK"])))


def _metadata(metadata: dict[str, Data]) -> dict[str, Data]:
    """The metadata of a spec; what it does not take, or takes otherwise, is patched into the object."""
    name = metadata.get("name", metadata.get("generateName", ""))
    kept: dict[str, Data] = {"name": name if _NAME.match(str(name)) else to_spec_name(str(name))}
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and _NAMESPACE.match(namespace):
        kept["namespace"] = namespace
    for key in ("labels", "annotations"):
        found = metadata.get(key)
        if isinstance(found, dict) and all(isinstance(value, str) for value in found.values()):
            kept[key] = found
    return kept


def to_spec_name(name: str) -> str:
    """A name that a spec can have, for an object whose own it cannot be."""
    return _NOT_IN_NAMES.sub("-", name.lower()).strip("-.")[:253] or "imported"


def _roles(manifest: dict[str, Data], kind: Kind, framework: str, job: str, *, inverted: bool) -> dict[str, Fields]:
    """The fields of every role that the kind knows; what is odd about a role is left out and patched in later."""
    container = job if value_of(kind.container) == "{job}" else str(value_of(kind.container))
    roles: dict[str, Fields] = {}
    for name, replica in _replicas(manifest, kind, framework):
        words = words_of(replica.get("template"), container) if inverted else None
        fields: Fields = {**words.fields} if words else {}
        if words and words.rest:
            fields["podTemplate"] = words.rest
        for key in ("replicas", "restartPolicy"):
            if key not in replica:
                fields[key] = None
            elif replica[key] is not None and (fits(key, replica[key])):
                fields[key] = replica[key]
        roles[name] = fields
    return roles


def _replicas(manifest: dict[str, Data], kind: Kind, framework: str) -> Iterator[tuple[str, dict[str, Data]]]:
    """The roles of a manifest in the kind's order, each as a replica with a template."""
    if kind.shape == "one":
        yield kind.frameworks[framework].single, _one(manifest, kind)
        return
    node = _at(manifest, kind.replicas_at)
    for name in kind.frameworks[framework].roles:
        spelling = value_of(kind.roles[name].spelling)
        if kind.shape == "map":
            found = [node[spelling]] if isinstance(node, dict) and spelling in node else []
        else:
            items = node if isinstance(node, list) else []
            found = [item for item in items if isinstance(item, dict) and item.get("type") == spelling]
        if len(found) == 1 and isinstance(found[0], dict):
            yield name, found[0]


def _one(manifest: dict[str, Data], kind: Kind) -> dict[str, Data]:
    """A kind without templates as if it had one."""
    assert kind.template is not None, "schemas/kind.json ties the shape `one` to a template"
    container: dict[str, Data] = {"name": str(value_of(kind.container))}
    for field, path in kind.template.container.items():
        value = _at(manifest, path)
        if value is not None:
            container[field] = value
    replica: dict[str, Data] = {"template": {"spec": {"containers": [container]}}, "restartPolicy": None}
    count = _at(manifest, kind.replicas_at)
    return replica if count is None else {**replica, "replicas": count}


def _settled(roles: dict[str, Fields], kind: Kind, framework: str) -> dict[str, Fields]:
    """Roles without what the kind says anyway; a null unsays what it says and the manifest does not."""
    default = kind.frameworks[framework].defaults.get("restartPolicy")
    settled: dict[str, Fields] = {}
    for name, fields in roles.items():
        said = {"replicas": value_of(kind.roles[name].replicas), "restartPolicy": value_of(default)}
        settled[name] = {
            key: value for key, value in fields.items() if key not in said or with_types(value) != with_types(said[key])
        }
    return settled


def _priority(spec: Fields, roles: dict[str, Fields], kind: Kind) -> None:
    """What stands in every template and is a field of the job."""
    for path, field in kind.fields.items():
        if field.at[:2] != ("template", "spec") or len(field.at) != 3 or not roles:
            continue
        key = str(field.at[2])
        found = [fields.get("podTemplate", {}).get("spec", {}).get(key) for fields in roles.values()]
        if (
            found[0] is None
            or any(with_types(each) != with_types(found[0]) for each in found)
            or not fits(path, found[0])
        ):
            continue
        spec[path] = found[0]
        for fields in roles.values():
            rest = {name: value for name, value in fields["podTemplate"]["spec"].items() if name != key}
            fields["podTemplate"] = {**fields["podTemplate"], "spec": rest}
            if not rest:
                del fields["podTemplate"]["spec"]
            if not fields["podTemplate"]:
                del fields["podTemplate"]


def _at(tree: Data, path: tuple[Step, ...]) -> Data:
    for step in path:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(str(step))
    return tree
