"""Runs of a job: whether it runs at all, the name of the run, and what happens to the previous run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any

from jobgen.k8s.argocd_annotations import SYNC_OPTIONS
from jobgen.k8s.nodes import get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import MAX_NAME_LENGTH, find_longest_suffix
from jobgen.k8s.workloads import find_ttl_path
from jobgen.model.data import Node, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.original_messages import original_message
from jobgen.render.expand import JobSpec
from jobgen.render.run_hash import LENGTH, run_hash
from jobgen.render.set_path import set_path

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
_DATE = lazy_pattern(r"\d{4}-\d{2}-\d{2}\Z")


def is_inactive(job: JobSpec, day: Callable[[], str], problems: list[Problem]) -> bool:
    """Whether the job does not run: it is paused, done, or expired on the day of the commit."""
    run = _run(job)
    if value_of(run.get("state", "active")) != "active":
        return True
    expires = run.get("expires")
    if value_of(expires) is None:
        return False
    last = str(value_of(expires))
    today = day() if _is_date(last) else ""
    if today:
        return last < today
    problems.append(_unknown_day(expires) if _is_date(last) else _invalid_date(expires))
    return False


def explain_inactive(job: JobSpec, day: Callable[[], str]) -> str:
    """Why a job does not run, after its name in a sentence; empty if it runs."""
    run = _run(job)
    state = value_of(run.get("state", "active"))
    if state != "active":
        return f"is {state}: its `run.state` is `{state}`"
    if is_inactive(job, day, []):
        return f"expired on `{value_of(run['expires'])}`; it is `{day()}`, the date of the commit or of `--today`"
    return ""


def _is_date(text: str) -> bool:
    if not _DATE.match(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _invalid_date(expires: Node) -> Problem:
    return Problem(
        "invalid-value",
        f"`expires` is `{value_of(expires)}`, which is not a date; write one such as `2027-01-31`",
        expires,
    )


def _unknown_day(expires: Node) -> Problem:
    message = f"cannot tell whether `{value_of(expires)}` has passed: there is no commit to take the date from"
    return Problem("unknown-current-date", f"{message}; pass `--today`", expires)


def needs_name(job: JobSpec) -> bool:
    """Whether the object needs the name or annotations of a run. A plain render of a plain job needs neither."""
    return bool(job.cluster.gitops) or "run" in job.fields


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
    suffix = find_longest_suffix(Manifest(resource, job.kind, job.cluster))
    room = MAX_NAME_LENGTH - len(suffix) - len("-") - LENGTH
    if len(name) <= room:
        return f"{name}-{run_hash(resource, job.kind, attempt)}"
    if room < _MIN_NAME_LENGTH:
        message = (
            f"`…-{LENGTH * 'x'}{suffix}` leaves {max(room, 0)} characters for the name; it needs {_MIN_NAME_LENGTH}"
        )
        problems.append(Problem("name-too-long-for-hash", message, _name(resource)))
    # Two long names may start with the same characters, so the hash of a cut name includes the whole name.
    return f"{name[: max(room, 0)].rstrip('-.')}-{run_hash(resource, job.kind, attempt, name)}"


def _find_contradictions(run: dict[str, Any], resource: Mapping[str, Any], job: JobSpec) -> Iterator[Problem]:
    if value_of(run.get("identity")) != "hash":
        if value_of(run.get("attempt", 1)) != 1:
            message = "`attempt` has no effect while the name stays the same; set `identity: hash`"
            yield Problem("attempt-without-hash", message, run["attempt"])
        return
    manifest = Manifest(resource, job.kind, job.cluster)
    path = find_ttl_path(manifest.group, manifest.kind_name, job.kind.operator)
    ttl = get_path(resource, *path) if path else None
    engine = _ENGINES.get(job.cluster.gitops)
    if engine and value_of(ttl) is not None:
        message = f"the finished job is deleted, then {engine} recreates it, so training runs again; remove the TTL"
        evidence = original_message("ttl-reruns-job", engine)
        yield Problem("ttl-reruns-job", message, ttl, category="gitops", evidence=evidence)
