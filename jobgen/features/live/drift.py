"""`jobgen drift`: compare what the repository renders with what runs, as an apply would see it.

Only fields that a manifest sets are compared: defaults, and what controllers own, are not its concern. Items of lists
are matched by their keys. What a difference would do is assessed as `jobgen diff` does it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from jobgen.check.cluster.exported import read_exported
from jobgen.compare.impact import Impact, assess_change
from jobgen.compare.snapshot import Snapshot, find_causes, snapshot_repository
from jobgen.features.live.applied import Applied, find_apply
from jobgen.features.live.capture import (
    RESOURCES,
    RUNNING,
    Kubectl,
    MissingError,
    Resource,
    UnansweredError,
    list_served,
    pluralize_kind,
    select_version,
)
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.redaction import redact_at, redact_tree
from jobgen.k8s.resources import count_gpus
from jobgen.k8s.secrets import find_secrets
from jobgen.model.data import Location
from jobgen.model.finding import Finding, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import format_dotted
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import Rendered
from jobgen.rendering.left_out import LeftOutFile, join_environments
from jobgen.rendering.runs import JOB_ANNOTATION
from jobgen.repo.captures import list_unread
from jobgen.reports.sections import EnvironmentSections, Section, SectionReport

_TRACKING = {
    "argocd.argoproj.io/tracking-id": "Argo CD would prune it",
    "kustomize.toolkit.fluxcd.io/name": "Flux would prune it",
}
"""Labels and annotations of engines, and what these do with an object that Git does not have."""
_NOT_CAPTURED = "the capture could not read it; capture the cluster again"
_FINISHED = frozenset(("Complete", "Completed", "Failed", "Succeeded"))
_Key = tuple[str, str, str, str]
"""The group, kind, namespace and name of an object."""


class ChangedField(NamedTuple):
    """A field that differs, with the line that sets it."""

    field: str
    live: Any
    wanted: Any
    location: Location


class Difference(NamedTuple):
    """An object that differs between the repository and the cluster."""

    state: str
    """`missing`, `changed`, `extra` or `stale`: a run that nothing renders any more."""
    api_version: str
    kind: str
    namespace: str
    name: str
    location: Location | None
    """Where its job is written; None if the repository does not have it."""
    fields: tuple[ChangedField, ...] = ()
    effect: str = ""
    """What an apply or an engine would do."""
    gpus: int = 0
    """The GPUs that it holds."""


class Drift(NamedTuple):
    """What differs between an environment and its cluster."""

    environment: str
    differences: tuple[Difference, ...]
    compared: int
    unread: Mapping[str, str]
    """Kinds that could not be read, with the reason."""
    left_out: tuple[LeftOutFile, ...]
    findings: tuple[Finding, ...]
    day: str = ""
    """The day of the captured state, if that was compared."""

    @property
    def failed(self) -> bool:
        """Return True if something differs, or could not be compared."""
        return bool(self.differences or self.unread or self.left_out)


def find_drift(config: ProjectConfig, env: str, kubectl: Kubectl | None, day: str = "") -> Drift:
    """Compare an environment with its cluster, or without kubectl with its captured state."""
    snapshot = snapshot_repository(config.root, "repository", [env], config.today)
    kinds = {(str(each.object.get("apiVersion", "")), each.identity.kind) for each in snapshot.objects}
    unread: dict[str, str] = {}
    objects = _read_live(kubectl, kinds, unread) if kubectl else _read_captured(config, env, kinds, unread)
    applied = find_apply(config, env)
    live = {_identify(each): each for each in objects}
    wanted = {_identify(each.object): each for each in snapshot.objects}
    groups = {_name_kind(version, kind): f"{kind}.{version}" for version, kind in kinds}
    namespaces = {key[2] for key in wanted}
    found: list[Difference] = []
    for key, rendered in wanted.items():
        if groups[key[0], key[1]] not in unread:
            # A capture has masks in place of secrets.
            found += _compare(snapshot, applied, rendered if kubectl else _mask(rendered), live.get(key))
    for key, obj in live.items():
        if key not in wanted and key[2] in namespaces and ((key[0], key[1]) in groups or _is_running(key)):
            found += _describe_extra(snapshot, obj, env)
    left_out = tuple(join_environments(snapshot.left_out))
    errors = dict.fromkeys(finding for each in left_out for finding in each.errors)
    order = sorted(found, key=lambda each: (each.state, each.kind, each.namespace, each.name))
    return Drift(env, tuple(order), len(wanted), unread, left_out, tuple(errors), day)


def _is_running(key: _Key) -> bool:
    """Return True if jobs of the kind are read although nothing of the kind is rendered any more."""
    return (key[0], pluralize_kind(key[1])) in {(each.group.rpartition("/")[0], each.plural) for each in RUNNING}


def _list_others(kinds: Collection[tuple[str, str]]) -> list[Resource]:
    """The kinds of jobs of which nothing is rendered; what runs of them is left from an earlier render."""
    known = {(version.rpartition("/")[0], pluralize_kind(kind)) for version, kind in kinds}
    return [each for each in RUNNING if (each.group.rpartition("/")[0], each.plural) not in known]


def _name_kind(version: str, kind: str) -> tuple[str, str]:
    return version.rpartition("/")[0], kind


def _identify(obj: Mapping[str, Any]) -> _Key:
    metadata = as_mapping(obj.get("metadata"))
    group, kind = _name_kind(as_text(obj.get("apiVersion")), as_text(obj.get("kind")))
    return group, kind, as_text(metadata.get("namespace")), as_text(metadata.get("name"))


def _read_live(
    kubectl: Kubectl, kinds: Collection[tuple[str, str]], unread: dict[str, str]
) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of some kinds; what cannot be read is added to `unread`."""
    plurals: dict[str, Mapping[str, str]] = {}
    for version, kind in sorted(kinds):
        base = f"/{'apis' if '/' in version else 'api'}/{version}"
        try:
            if version not in plurals:
                listed = map(as_mapping, as_list(as_mapping(kubectl.get(base)).get("resources")))
                names = ((as_text(each.get("kind")), as_text(each.get("name"))) for each in listed)
                plurals[version] = {kind: name for kind, name in names if "/" not in name}
            plural = plurals[version].get(kind)
            if plural is None:
                unread[f"{kind}.{version}"] = "the cluster does not serve this kind"
                continue
            for obj in kubectl.list(f"{base}/{plural}"):
                yield {**obj, "apiVersion": version, "kind": kind}
        except UnansweredError as error:
            unread[f"{kind}.{version}"] = str(error)
    yield from _read_others(kubectl, kinds, unread)


def _read_others(
    kubectl: Kubectl, kinds: Collection[tuple[str, str]], unread: dict[str, str]
) -> Iterator[Mapping[str, Any]]:
    """Yield the jobs of kinds that are not rendered; a kind that the cluster does not have is not missing."""
    served = list_served(kubectl, {}) if kinds else {}
    for resource in _list_others(kinds) if kinds else ():
        found = select_version(resource, served)
        try:
            yield from kubectl.list(found.path, found.page) if found else ()
        except MissingError:
            continue
        except UnansweredError as error:
            unread[f"{resource.plural}.{resource.group}"] = str(error)


def _read_captured(
    config: ProjectConfig, env: str, kinds: Collection[tuple[str, str]], unread: dict[str, str]
) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a capture; kinds that it never holds are added to `unread`."""
    folder = config.environment(env, []).cluster.state
    captured = {(each.group.rpartition("/")[0], each.plural) for each in (*RESOURCES, *RUNNING)}
    not_read = list_unread(config.root, folder)
    for version, kind in kinds:
        if (version.rpartition("/")[0], pluralize_kind(kind)) not in captured:
            unread[f"{kind}.{version}"] = "a capture does not hold this kind; compare with the cluster"
        elif f"{pluralize_kind(kind)}.{version.rpartition('/')[0]}".rstrip(".") in not_read:
            unread[f"{kind}.{version}"] = _NOT_CAPTURED
    for resource in _list_others(kinds) if kinds else ():
        if f"{resource.plural}.{resource.group.rpartition('/')[0]}" in not_read:
            unread[f"{resource.plural}.{resource.group}"] = _NOT_CAPTURED
    for place in (folder, f"{folder}/.running"):
        yield from read_exported(config.layers, place, [])


def _mask(rendered: Rendered) -> Rendered:
    return rendered._replace(object=redact_tree(rendered.object, find_secrets(rendered.object)))


def _compare(
    snapshot: Snapshot, applied: Applied, rendered: Rendered, live: Mapping[str, Any] | None
) -> Iterator[Difference]:
    identity = rendered.identity
    described = (identity.api_version, identity.kind, identity.namespace, identity.name, rendered.location)
    if live is None:
        yield Difference("missing", *described, effect="an apply would create it")
        return
    # The API server converts the object to the version that a manifest has.
    live = {**live, "apiVersion": identity.api_version}
    schema = snapshot.checker(rendered.env).read_schema(identity.api_version, identity.kind)
    group = identity.api_version.rpartition("/")[0]
    before = rendered._replace(object=applied.project(live, rendered.object, group, schema))
    impact = assess_change(snapshot, snapshot, before, rendered)
    if impact.fields:
        yield Difference(
            "changed", *described, tuple(_list_fields(snapshot, rendered, impact, live)), impact.outcome.reason
        )


def _list_fields(snapshot: Snapshot, rendered: Rendered, impact: Impact, live: Any) -> Iterator[ChangedField]:
    causes = find_causes(snapshot, rendered, [each.change.path for each in impact.fields])
    secrets = find_secrets(live) | find_secrets(rendered.object)
    for path, _, old, new in (each.change for each in impact.fields):
        cause = causes.get(path)
        place = cause.location if cause else rendered.location
        yield ChangedField(
            format_dotted(path),
            redact_at(old, live, path, secrets),
            redact_at(new, rendered.object, path, secrets),
            place,
        )


def _describe_extra(snapshot: Snapshot, obj: Mapping[str, Any], env: str) -> Iterator[Difference]:
    """Yield an object that only the cluster has, if it came from the repository or an engine deploys it."""
    metadata = as_mapping(obj.get("metadata"))
    if metadata.get("ownerReferences"):
        return
    marks = {**as_mapping(metadata.get("labels")), **as_mapping(metadata.get("annotations"))}
    engine = next((effect for mark, effect in _TRACKING.items() if mark in marks), "")
    is_run = JOB_ANNOTATION in marks
    if not engine and not is_run:
        return
    manifest = snapshot.checker(env).manifest(obj)
    gpus = 0 if _is_finished(obj) else count_gpus(manifest)
    state = "stale" if is_run else "extra"
    effect = engine or "nothing renders it any more, and nothing deletes it"
    place = (manifest.namespace, manifest.name)
    yield Difference(state, as_text(obj.get("apiVersion")), manifest.kind_name, *place, None, (), effect, gpus)


def _is_finished(obj: Mapping[str, Any]) -> bool:
    conditions = map(as_mapping, as_list(as_mapping(obj.get("status")).get("conditions")))
    return any(as_text(each.get("type")) in _FINISHED and as_text(each.get("status")) == "True" for each in conditions)


VERSION = 1
"""The version of the data."""
_TITLES = {
    "missing": "Missing in the cluster",
    "changed": "Changed in the cluster",
    "stale": "Stale runs, which nothing renders any more",
    "extra": "Only in the cluster",
}
_MOST_SHOWN = 80


def describe(drifts: Sequence[Drift]) -> SectionReport:
    """Return what differs, as sections and as data; docs/live.md describes the data."""
    environments = [
        {
            "environment": drift.environment,
            "compared": drift.compared,
            "differences": list(map(_to_plain, drift.differences)),
            "unread": dict(drift.unread),
            "leftOut": [each.describe() for each in drift.left_out],
        }
        for drift in drifts
    ]
    parts = [EnvironmentSections(drift.environment, list(_list_sections(drift))) for drift in drifts]
    left_out = list(dict.fromkeys(each.describe() for drift in drifts for each in drift.left_out))
    data = {"version": VERSION, "environments": environments}
    return SectionReport("Drift", _summarize(drifts), parts, left_out, data)


def _summarize(drifts: Sequence[Drift]) -> str:
    """Return what differs, in one line."""
    found = [each for drift in drifts for each in drift.differences]
    counts = [f"{count} {state}" for state in _TITLES if (count := sum(each.state == state for each in found))]
    unread = sum(len(drift.unread) for drift in drifts)
    counts += [f"{pluralize(unread, 'kind')} not read"] if unread else []
    held = sum(each.gpus for each in found if each.state == "stale")
    left_out = len({each.describe() for drift in drifts for each in drift.left_out})
    counts += [f"{left_out} not compared, because of errors"] if left_out else []
    counts += [f"stale runs hold {pluralize(held, 'GPU')}"] if held else []
    compared = pluralize(sum(drift.compared for drift in drifts), "object")
    days = [f"; state captured on {drift.day}" for drift in drifts if drift.day][:1]
    return f"{compared} compared: {', '.join(counts) or 'no drift'}{''.join(days)}"


def _list_sections(drift: Drift) -> Iterator[Section]:
    """Yield the sections of an environment that have something to say, each with a title and lines."""
    for state, title in _TITLES.items():
        lines = [line for each in drift.differences if each.state == state for line in _list_lines(each)]
        if lines:
            yield Section(title, lines)
    if drift.unread:
        yield Section("Not read", list_reasons(drift.unread))


def list_reasons(unread: Mapping[str, str]) -> list[str]:
    """Return a line for each reason for which something could not be read."""
    names: dict[str, list[str]] = {}
    for name, reason in sorted(unread.items()):
        names.setdefault(reason, []).append(name)
    return [f"{', '.join(several)}: {reason}" for reason, several in names.items()]


def _list_lines(each: Difference) -> Iterator[str]:
    place = f"{each.location}: " if each.location else ""
    held = f", holds {pluralize(each.gpus, 'GPU')}" if each.gpus else ""
    name = f"{each.namespace}/{each.name}" if each.namespace else each.name
    yield f"{place}{each.kind} {name}{held}: {each.effect}"
    for field in each.fields:
        yield f"  {field.field}: {_show(field.live)} → {_show(field.wanted)} ({field.location})"


def _show(value: object) -> str:
    text = "(none)" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def _to_plain(each: Difference) -> dict[str, Any]:
    found: dict[str, Any] = {
        "state": each.state,
        "apiVersion": each.api_version,
        "kind": each.kind,
        "namespace": each.namespace,
        "name": each.name,
        "effect": each.effect,
        "gpus": each.gpus,
    }
    if each.location:
        found |= {"file": each.location.file, "line": each.location.line}
    found["fields"] = [
        {
            "field": field.field,
            "live": field.live,
            "wanted": field.wanted,
            "file": field.location.file,
            "line": field.location.line,
        }
        for field in each.fields
    ]
    return found
