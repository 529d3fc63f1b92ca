"""Join the objects of several environments: one spec for what is equal, and patches in overlays for what differs."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from typing import Any, NamedTuple

from jobgen.features.convert.importing.comments import format_document
from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.importing.import_job import ImportedSpec, rewrite_document
from jobgen.features.convert.importing.verify import SpecRenderer, create_patch, is_equivalent, render_spec
from jobgen.model.data import API_VERSION, Plain
from jobgen.rendering.expand import Expander
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import merge
from jobgen.spec.overlay import Overlay, compose_environment


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
        text = _write_text(base, document)
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
    for patches in _list_candidates(each, document, match):
        rendered = _render(document, overlay.build(patches), kinds)
        rest = create_patch(rendered, each.manifest) if rendered is not None else {}
        if rendered is None:
            continue
        both = [*patches, *([{"match": match, "manifest": rest}] if rest else [])]
        if not rest or _is_equal(_render(document, overlay.build(both), kinds), each.manifest):
            return both
    return None


def _list_candidates(each: EnvironmentObject, document: Fields, match: Fields) -> Iterator[list[Plain]]:
    """Yield patches of the spec to try; what they leave is patched in the rendered object."""
    assert each.spec is not None
    wanted: Any = each.spec.document["spec"]
    old = {key: value for key, value in document["spec"].items() if key != "platform"}
    patch = create_patch(old, wanted)
    if patch and "framework" not in patch:
        yield [{"match": match, "merge": patch}]
    yield []


def _render(document: Fields, overlay: Fields, kinds: Sequence[Kind]) -> dict[str, Plain] | None:
    name = overlay["metadata"]["name"]
    environment = compose_environment(name, {name: Overlay(name, (overlay["spec"],))}, [])
    renderer = SpecRenderer(Expander(environment, list(kinds)))
    rendered, problems = render_spec(document, renderer, patches=environment.patches)
    return None if problems else rendered


def _is_equal(rendered: dict[str, Plain] | None, manifest: Mapping[str, Plain]) -> bool:
    return rendered is not None and is_equivalent(rendered, dict(manifest))


def _write_text(base: EnvironmentObject, document: Fields) -> str:
    if base.spec is None or document == base.spec.document:
        return base.text
    return rewrite_document(base.text, document)
