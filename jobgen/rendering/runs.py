"""Runs of a job: whether it runs at all, the name of the run, and what happens to the previous run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jobgen.k8s.argocd_annotations import SYNC_OPTIONS
from jobgen.k8s.nodes import get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import MAX_NAME_LENGTH, find_longest_suffix
from jobgen.k8s.workloads import find_ttl_path, find_workload
from jobgen.model.data import Node, untraced, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence
from jobgen.model.times import DEADLINE_ANNOTATION, EXPECTED_ANNOTATION, find_time_fault, is_date
from jobgen.rendering.expand import JobSpec
from jobgen.rendering.kinds.main_container import set_path
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
    fields = ((name.partition(".")[0], tuple(map(str, field.at))) for name, field in kind.fields.items())
    without_effect = [at[1:] for name, at in fields if name in _WITHOUT_EFFECT and at[0] == "spec"]
    for path in (("runPolicy",), *without_effect, *(workload.lifecycle_paths if workload else ())):
        spec = _remove_path(spec, path)
    return _canonicalize(spec)


def _api_group(made: Mapping[str, Node]) -> str:
    return str(value_of(made.get("apiVersion", ""))).rpartition("/")[0]


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


JOB_ANNOTATION = "jobgen.dev/job"
"""The annotation with the name of the job that an object is a run of."""

SOURCE_ANNOTATION = "jobgen.dev/source"
"""The annotation with the path of the job's file, relative to the root of the repository."""

ON_CHANGE_ANNOTATION = "jobgen.dev/on-change"
"""The annotation of an object that must not be replaced by a change."""

_PRUNE = "kustomize.toolkit.fluxcd.io/prune"
_OPTIONS = {"keep": "Prune=false", "replace": "PruneLast=true"}
_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}
_MIN_NAME_LENGTH = 8


def is_inactive(job: JobSpec, day: Callable[[], str], problems: list[Problem]) -> bool:
    """Return True if the job does not run: it is paused, done, or expired on the day of the commit."""
    run = _run(job)
    if value_of(run.get("state", "active")) != "active":
        return True
    expires = run.get("expires")
    if value_of(expires) is None:
        return False
    last = str(value_of(expires))
    if not is_date(last):
        message = Sentence("`expires` is `{}`, which is not a date; write one such as `2027-01-31`", last)
        problems.append(Problem("invalid-value", message, expires))
        return False
    today = day()
    if not today:
        message = Sentence(
            "cannot tell whether `{}` has passed: there is no commit to take the date from; pass `--today`", last
        )
        problems.append(Problem("unknown-current-date", message, expires))
    return bool(today) and last < today


def explain_inactive(job: JobSpec, day: Callable[[], str]) -> str:
    """Why a job does not run, after its name in a sentence; empty if it runs."""
    run = _run(job)
    state = value_of(run.get("state", "active"))
    if state != "active":
        return f"is {state}: its `run.state` is `{state}`"
    if is_inactive(job, day, []):
        return f"expired on `{value_of(run['expires'])}`; it is `{day()}`, the date of the commit or of `--today`"
    return ""


def name_run(resource: Mapping[str, Any], job: JobSpec, source: Node, problems: list[Problem]) -> Mapping[str, Any]:
    """Set the name of the run and the annotations for the GitOps engine; `source` is the job's file."""
    run = _run(job)
    hashed = value_of(run.get("identity")) == "hash"
    found = list(_find_contradictions(run, resource, job)) if run else []
    problems += found
    if found or not isinstance(resource.get("metadata"), dict) or not isinstance(value_of(_name(resource)), str):
        return resource
    result: dict[str, Any] = dict(resource)
    result["metadata"] = dict(resource["metadata"])
    if job.cluster.gitops or hashed:
        _annotate(result, JOB_ANNOTATION, _name(resource))
    if job.cluster.gitops and source is not None:
        _annotate(result, SOURCE_ANNOTATION, source)
    for annotation, field in ((EXPECTED_ANNOTATION, "expected"), (DEADLINE_ANNOTATION, "deadline")):
        if value_of(run.get(field)) is not None:
            _annotate(result, annotation, run[field])
    _annotate_on_change(result, run.get("onChange", "replace" if hashed else None), job.cluster.gitops)
    if hashed:
        result["metadata"]["name"] = with_value(_name(resource), _hash_name(resource, job, run, problems))
    return result


def _run(job: JobSpec) -> dict[str, Any]:
    run = job.fields.get("run")
    return run if isinstance(run, dict) else {}


def _name(resource: Mapping[str, Any]) -> Any:
    return resource["metadata"].get("name")


def _annotate(resource: dict[str, Any], name: str, value: Node) -> None:
    if not isinstance(resource["metadata"].get("annotations"), dict):
        resource["metadata"].pop("annotations", None)
    set_path(resource, ("metadata", "annotations", name), value)


def _annotate_on_change(resource: dict[str, Any], on_change: Node, gitops: str) -> None:
    mode = value_of(on_change)
    if mode == "forbid":
        _annotate(resource, ON_CHANGE_ANNOTATION, with_value(on_change, mode))
    elif mode == "keep" and gitops == "flux":
        _annotate(resource, _PRUNE, with_value(on_change, "disabled"))
    elif mode is not None and gitops == "argocd":
        own = value_of(get_path(resource, "metadata", "annotations", SYNC_OPTIONS))
        options = [option.strip() for option in own.split(",")] if isinstance(own, str) and own else []
        if _OPTIONS[mode] not in options:
            _annotate(resource, SYNC_OPTIONS, with_value(on_change, ",".join([*options, _OPTIONS[mode]])))


def _hash_name(resource: Mapping[str, Any], job: JobSpec, run: dict[str, Any], problems: list[Problem]) -> str:
    """`<name>-<hash>`, cut to the length that pod names leave; the hash is never cut."""
    name, attempt = str(value_of(_name(resource))), value_of(run.get("attempt", 1))
    suffix = find_longest_suffix(Manifest(untraced(resource), job.kind, job.cluster))
    room = MAX_NAME_LENGTH - len(suffix) - len("-") - LENGTH
    if len(name) <= room:
        return f"{name}-{run_hash(resource, job.kind, attempt)}"
    if room < _MIN_NAME_LENGTH:
        message = Sentence(
            "`…-{}{}` leaves {} characters for the name; it needs {}",
            LENGTH * "x",
            suffix,
            max(room, 0),
            _MIN_NAME_LENGTH,
        )
        problems.append(Problem("name-too-long-for-hash", message, _name(resource)))
    # Two long names may start with the same characters, so the hash of a cut name includes the whole name.
    return f"{name[: max(room, 0)].rstrip('-.')}-{run_hash(resource, job.kind, attempt, name)}"


def _find_contradictions(run: dict[str, Any], resource: Mapping[str, Any], job: JobSpec) -> Iterator[Problem]:
    for annotation, field in ((EXPECTED_ANNOTATION, "expected"), (DEADLINE_ANNOTATION, "deadline")):
        written = value_of(run.get(field))
        fault = find_time_fault(annotation, str(written)) if written is not None else ""
        if fault:
            yield Problem("invalid-value", Sentence("`{}` is `{}`, which {}", field, written, fault), run[field])
    if value_of(run.get("identity")) != "hash":
        if value_of(run.get("attempt", 1)) != 1:
            message = Sentence("`attempt` has no effect while the name stays the same; set `identity: hash`")
            yield Problem("attempt-without-hash", message, run["attempt"])
        return
    manifest = Manifest(untraced(resource), job.kind, job.cluster)
    path = find_ttl_path(manifest.group, manifest.kind_name, job.kind.operator)
    ttl = get_path(resource, *path) if path else None
    engine = _ENGINES.get(job.cluster.gitops)
    if engine and value_of(ttl) is not None:
        message = Sentence(
            "the finished job is deleted, then {} recreates it, so training runs again; remove the TTL", engine
        )
        yield Problem("ttl-reruns-job", message, ttl, category="gitops")
