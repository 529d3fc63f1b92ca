"""Arrange imported jobs in files, and write the overlays that select each of them for its platform."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape
from typing import Any

from jobgen.features.convert.importing.collect import ImportedSpec, rewrite_document
from jobgen.features.convert.importing.pod_fields import Fields, is_valid_field, with_types
from jobgen.features.convert.importing.verify import create_patch, is_equivalent, render_spec
from jobgen.model.data import API_VERSION, Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.expand import Expander
from jobgen.rendering.read_jobs import read_jobs
from jobgen.repo import layout
from jobgen.spec.frameworks import collect_frameworks
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import merge
from jobgen.spec.overlay import DEFAULT_PLATFORM, Overlay, compose_environment
from jobgen.yamlio.commented import format_document

# Fields that identify a job, and fields that are merged later, so that the order would matter.
_NOT_SHARED = frozenset(("framework", "replicas", "roles", "manifest", "podTemplate", "description"))


def extract_overlay(
    name: str, platform: str, jobs: Sequence[ImportedSpec], kinds: Sequence[Kind]
) -> tuple[dict[str, Plain], list[dict[str, Plain]]]:
    """An overlay with the fields that the jobs share, and the jobs without them; each field is verified."""
    documents: list[Fields] = [copy.deepcopy(job.document) for job in jobs]
    overlay: Fields = build_overlay(name, platform, [job.name for job in jobs])
    for field, value in _find_shared_fields(documents):
        new_overlay = _with_field(overlay, field, value)
        new_documents = [_without_field(each, field, value) for each in documents]
        pairs = zip(new_documents, jobs, strict=True)
        if all(_renders_to_manifest(new_overlay, document, job, kinds) for document, job in pairs):
            overlay, documents = new_overlay, new_documents
    return overlay, documents


def build_overlay(name: str, platform: str, jobs: Sequence[str]) -> dict[str, Plain]:
    """An overlay that selects some jobs for a platform."""
    spec: Plain = {"cluster": {"platform": platform}, "jobs": {"names": sorted(set(jobs))}}
    return {"apiVersion": API_VERSION, "kind": "Overlay", "metadata": {"name": name}, "spec": spec}


def _find_shared_fields(documents: list[Fields]) -> list[tuple[str, Any]]:
    """The fields, and the parts of maps, that all jobs share; also the namespace."""
    found: list[tuple[str, Any]] = []
    namespaces = [document["metadata"].get("namespace") for document in documents]
    if namespaces[0] is not None and len(set(namespaces)) == 1:
        found.append(("namespace", namespaces[0]))
    first, *others = (document["spec"] for document in documents)
    for field, value in first.items():
        if field in _NOT_SHARED or value is None or not all(field in other for other in others):
            continue
        part = _find_shared_part(value, [other[field] for other in others], field)
        if part is not None:
            found.append((field, part))
    return found


def _find_shared_part(value: Any, others: list[Any], field: str) -> Any:
    """The value if all jobs have it; of maps, the entries that all jobs have."""
    if all(with_types(value) == with_types(other) for other in others):
        return value
    if field == "resources" or not all(isinstance(each, dict) for each in (value, *others)):
        return None
    entries = {key: with_types(each) for key, each in value.items() if each is not None}
    return {
        key: value[key]
        for key, each in entries.items()
        if all(key in other and with_types(other[key]) == each for other in others)
    } or None


def _with_field(overlay: Fields, field: str, value: Any) -> Fields:
    spec = overlay["spec"]
    if field == "namespace":
        return {**overlay, "spec": {**spec, "namespace": value}}
    return {**overlay, "spec": {**spec, "defaults": {**spec.get("defaults", {}), field: value}}}


def _without_field(document: Fields, field: str, value: Any) -> Fields:
    if field == "namespace":
        metadata = {key: each for key, each in document["metadata"].items() if key != field}
        return {**document, "metadata": metadata}
    own = document["spec"][field]
    rest = {key: each for key, each in own.items() if key not in value} if isinstance(own, dict) else None
    # The rest of a map keeps its position.
    spec = {key: rest if key == field else each for key, each in document["spec"].items() if key != field or rest}
    return {**document, "spec": spec}


def _renders_to_manifest(overlay: Fields, document: Fields, job: ImportedSpec, kinds: Sequence[Kind]) -> bool:
    rendered = _render(document, overlay, kinds)
    return rendered is not None and is_equivalent(rendered, job.manifest)


class PlacedObject(NamedTuple):
    """An object in a file: the name of the file, its own name, and its text."""

    stem: str
    name: str
    text: str
    platform: str = ""
    """The platform of the new overlay that selects it; empty if none does."""


class Arrangement(NamedTuple):
    """The files to write, and the texts of the specs; where each spec is, then where each other object is."""

    files: dict[str, str]
    texts: list[str]
    places: list[tuple[str, int]]
    """The file, and the position of the document in it."""


def arrange_files(
    specs: Sequence[ImportedSpec],
    others: Sequence[PlacedObject],
    project: ProjectConfig,
    folder: str = "jobs",
    *,
    factor: bool = False,
) -> Arrangement:
    """Return `jobs/<name>.yaml` and `overlays/<env>/overlay.yaml`; `folder` is what `jobs` is called in the repository.

    Objects of the same name share a file, unless different overlays select them.
    """
    texts = {id(spec): spec.text for spec in specs}
    overlays = _make_overlays(specs, project, texts, factor=factor)
    first = next(iter(overlays), "")
    placed: list[PlacedObject] = []
    for spec in specs:
        name, platform = spec.name, spec.kind.platform
        if not spec.is_spec:
            metadata: Any = spec.document["metadata"]
            name = str(metadata.get("name", name))
            # Without overlays all objects are selected; with the first one, only those that it lists.
            platform = "" if project.overlays else platform if platform in overlays else first
        placed.append(PlacedObject(spec.name, name, texts[id(spec)], platform))
    placed += (each._replace(platform=first) for each in others)
    files: dict[str, str] = {}
    counts: Counter[str] = Counter()
    places: list[tuple[str, int]] = []
    paths = _choose_paths(placed)
    for each, path in zip(placed, paths, strict=True):
        files[path] = f"{files[path]}---\n{each.text}" if path in files else each.text
        places.append((path, counts[path]))
        counts[path] += 1
    for platform, overlay in overlays.items():
        # Let an overlay select its objects by name, except for those of other overlays with the same name.
        names = {*overlay["spec"]["jobs"]["names"], *(each.name for each in placed if each.platform == platform)}
        # Both are patterns, and the name of a folder or of a manifest may hold `*` or `[`.
        overlay["spec"]["jobs"] = {"names": sorted(map(escape, names))}
        others_named = [at for at, each in enumerate(placed) if each.platform != platform and each.name in names]
        excluded = sorted({f"{folder}/{paths[at].removeprefix('jobs/')}" for at in others_named})
        if excluded:
            overlay["spec"]["jobs"]["exclude"] = {"paths": list(map(escape, excluded))}
        files[f"overlays/{overlay['metadata']['name']}/overlay.yaml"] = format_document(overlay)
    return Arrangement(files, [texts[id(spec)] for spec in specs], places)


def _make_overlays(
    specs: Sequence[ImportedSpec], project: ProjectConfig, texts: dict[int, str], *, factor: bool
) -> dict[str, Any]:
    """Return the new overlay of each platform that needs one; with `factor`, fields move there from the texts."""
    platforms = list(dict.fromkeys(spec.kind.platform for spec in specs if spec.is_spec))
    needs_overlays = needs_new_overlays(platforms, project)
    overlays: dict[str, Any] = {}
    for platform in platforms:
        jobs = [spec for spec in specs if spec.is_spec and spec.kind.platform == platform]
        if factor and len(jobs) > 1:
            name = "imported" if len(platforms) == 1 else f"imported-{platform}"
            overlays[platform], reduced = extract_overlay(name, platform, jobs, project.kinds)
            texts.update(
                (id(job), rewrite_document(job.text, document))
                for job, document in zip(jobs, reduced, strict=True)
                if document != job.document
            )
        elif needs_overlays:
            # If there is any overlay, jobs of Kubeflow need one too; it also lists the existing jobs.
            names = [job.name for job in jobs]
            if platform == DEFAULT_PLATFORM:
                existing = read_jobs(layout.find_jobs(project.root), project.kinds, [])
                names += (job.document.name for job in existing)
            overlays[platform] = build_overlay(platform, platform, names)
    return overlays


def _choose_paths(placed: Sequence[PlacedObject]) -> list[str]:
    """Return the path of each object; those of one name get a folder for each platform if they have several."""
    platforms: dict[str, set[str]] = {}
    for each in placed:
        platforms.setdefault(each.stem, set()).add(each.platform)
    return [
        f"jobs/{each.platform}/{each.stem}.yaml"
        if each.platform and len(platforms[each.stem]) > 1
        else f"jobs/{each.stem}.yaml"
        for each in placed
    ]


def needs_new_overlays(platforms: Iterable[str], project: ProjectConfig) -> bool:
    """Return True if jobs of some platforms need overlays, because there are none, and the settings lack a platform."""
    return not project.overlays and not find_platforms(project).issuperset(platforms)


def find_platforms(project: ProjectConfig) -> set[str]:
    """Return all platforms of the environments."""
    clusters = (project.environment(name, []).cluster for name in project.environments())
    return {platform for cluster in clusters for platform in cluster.list_platforms()}


# Join the objects of several environments: one spec for what is equal, and patches in overlays for what differs.


class EnvironmentObject(NamedTuple):
    """An object of an environment; `spec` is None if it is kept as it is."""

    env: str
    place: str
    """Where it was read, for messages."""
    name: str
    """How overlays select it."""
    kind: str
    stem: str
    """The name of its file."""
    manifest: Mapping[str, Plain]
    text: str
    spec: ImportedSpec | None

    @property
    def namespace(self) -> str:
        """The namespace of the manifest; empty if it has none."""
        metadata = self.manifest.get("metadata")
        return str(metadata.get("namespace") or "") if isinstance(metadata, dict) else ""

    @property
    def platform(self) -> str:
        """The platform of the spec; empty for other objects."""
        return self.spec.kind.platform if self.spec else ""


Failure = tuple[EnvironmentObject, str]
"""An object that cannot be joined with its variants, and why."""


class JoinedFiles(NamedTuple):
    """The files to write, and what cannot be joined."""

    files: dict[str, str]
    failures: list[Failure]


class _Overlay(NamedTuple):
    """What is known about an environment before its jobs are compared."""

    name: str
    platforms: tuple[str, ...]
    namespace: str
    """The namespace of its jobs that have another one elsewhere; empty if that is not one."""

    def build(self, patches: Sequence[Plain] = (), names: Sequence[str] = ()) -> Fields:
        spec: Fields = {}
        if self.platforms:
            one = {"platform": self.platforms[0]}
            spec["cluster"] = one if len(self.platforms) == 1 else {"platforms": list(self.platforms)}
        spec |= {"namespace": self.namespace} if self.namespace else {}
        spec |= {"jobs": {"names": list(names)}} if names else {}
        spec |= {"patches": list(patches)} if patches else {}
        return {"apiVersion": API_VERSION, "kind": "Overlay", "metadata": {"name": self.name}, "spec": spec}


def join_environments(envs: Sequence[str], objects: Sequence[EnvironmentObject], kinds: Sequence[Kind]) -> JoinedFiles:
    """Return `jobs/<name>.yaml` and `overlays/<env>/overlay.yaml`, which render to all objects again."""
    groups = _group(objects)
    overlays = {env: _describe_environment(env, groups) for env in envs}
    patches: dict[str, list[Plain]] = {env: [] for env in envs}
    names: dict[str, set[str]] = {env: set() for env in envs}
    files: dict[str, str] = {}
    failures: list[Failure] = []
    shared = Counter(group[0].name for group in groups)
    for group in groups:
        base = group[0]
        match: Fields = {"names": [escape(base.name)], **({"kinds": [base.kind]} if shared[base.name] > 1 else {})}
        document = _make_document(group, overlays)
        found = {each.env: _find_patches(each, document, match, overlays[each.env], kinds) for each in group}
        failed = next((each for each in group if found[each.env] is None), None)
        if failed:
            failures.append((failed, f"no patch makes {base.place} this object; rename one of them"))
            continue
        for each in group:
            patches[each.env] += found[each.env] or ()
            names[each.env].add(each.name)
        path = f"jobs/{base.stem}.yaml"
        text = base.text
        if base.spec is not None and document != base.spec.document:
            text = rewrite_document(text, document)
        files[path] = f"{files[path]}---\n{text}" if path in files else text
    every = set().union(*names.values())
    for env, overlay in overlays.items():
        listed = sorted(map(escape, names[env])) if names[env] != every else []
        files[f"overlays/{env}/overlay.yaml"] = format_document(overlay.build(patches[env], listed))
    return JoinedFiles(files, failures)


def _group(objects: Sequence[EnvironmentObject]) -> list[list[EnvironmentObject]]:
    """Return the variants of each object: those of one kind and name, and of one namespace if there are several."""
    keys = [(each.kind, each.platform, each.name) for each in objects]
    several = Counter((each.env, *key) for each, key in zip(objects, keys, strict=True))
    crowded = {key[1:] for key, count in several.items() if count > 1}
    groups: dict[tuple[str, ...], list[EnvironmentObject]] = {}
    for each, key in zip(objects, keys, strict=True):
        groups.setdefault((*key, each.namespace) if key in crowded else key, []).append(each)
    return list(groups.values())


def _describe_environment(env: str, groups: Sequence[Sequence[EnvironmentObject]]) -> _Overlay:
    own = [(each, group) for group in groups for each in group if each.env == env]
    moved = {each.namespace for each, group in own if each.spec and len({other.namespace for other in group}) > 1}
    is_everywhere = all(each.namespace for each, _ in own)
    platforms = tuple(dict.fromkeys(each.platform for each, _ in own if each.platform))
    return _Overlay(env, platforms, moved.pop() if len(moved) == 1 and is_everywhere else "")


def _make_document(group: Sequence[EnvironmentObject], overlays: Mapping[str, _Overlay]) -> Fields:
    """Return the spec or the manifest of the first environment, without what the overlays say."""
    base = group[0]
    if base.spec is None:
        return dict(base.manifest)
    document: Fields = copy.deepcopy(base.spec.document)
    if len({each.namespace for each in group}) > 1:
        document["metadata"].pop("namespace", None)
    if any(len(overlays[each.env].platforms) > 1 for each in group):
        document["spec"] = {"framework": document["spec"]["framework"], "platform": base.platform, **document["spec"]}
    return document


def _find_patches(
    each: EnvironmentObject, document: Fields, match: Fields, overlay: _Overlay, kinds: Sequence[Kind]
) -> list[Plain] | None:
    """Return the patches that make the spec of the first environment this object; None if there are none."""
    if each.spec is None:
        patch = create_patch(document, each.manifest)
        merged: Any = merge({"a": document}, {"a": patch}, [])["a"] if patch else document
        if not is_equivalent(merged, dict(each.manifest)):
            return None
        return [{"match": {**match, "kinds": [each.kind]}, "manifest": patch}] if patch else []
    for patches in _list_candidates(each, document, match, kinds):
        rendered = _render(document, overlay.build(patches), kinds)
        if rendered is None:
            continue
        rest = create_patch(rendered, each.manifest)
        both = [*patches, *([{"match": match, "manifest": rest}] if rest else [])]
        if not rest:
            return both
        completed = _render(document, overlay.build(both), kinds)
        if completed is not None and is_equivalent(completed, dict(each.manifest)):
            return both
    return None


def _list_candidates(
    each: EnvironmentObject, document: Fields, match: Fields, kinds: Sequence[Kind]
) -> Iterator[list[Plain]]:
    """Yield patches of the spec to try; what they leave is patched in the rendered object."""
    assert each.spec is not None
    wanted: Any = each.spec.document["spec"]
    old = {key: value for key, value in document["spec"].items() if key != "platform"}
    patch = create_patch(old, wanted)
    # Some fields cannot be null, and no patch of the spec removes them.
    frameworks = collect_frameworks(tuple(kinds))
    valid = {key: value for key, value in patch.items() if is_valid_field(key, value, frameworks)}
    if valid and "framework" not in patch:
        yield [{"match": match, "merge": valid}]
    yield []


def _render(document: Fields, overlay: Fields, kinds: Sequence[Kind]) -> dict[str, Plain] | None:
    name = overlay["metadata"]["name"]
    environment = compose_environment(name, {name: Overlay(name, (overlay["spec"],))}, [])
    expander = Expander(environment, list(kinds))
    rendered, problems = render_spec(document, expander, patches=environment.patches)
    return None if problems else rendered
