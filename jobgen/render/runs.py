"""Runs of a job: whether one is wanted at all, what it is called, and what becomes of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

from jobgen.k8s.argocd_annotations import SYNC_OPTIONS
from jobgen.k8s.objects import Manifest, get_path
from jobgen.k8s.operators import MAX_NAME_LENGTH, find_longest_suffix
from jobgen.model.data import Data, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.render.expand import JobSpec
from jobgen.render.run_hash import LENGTH, run_hash
from jobgen.render.set_path import set_path

JOB_ANNOTATION = "jobgen.dev/job"
"""The annotation that names the job an object is a run of, beside the namespace that it has anyway."""

SOURCE_ANNOTATION = "jobgen.dev/source"
"""The annotation with the path of the job's file, from the root of the repository."""

ON_CHANGE_ANNOTATION = "jobgen.dev/on-change"
"""The annotation of an object that no change may replace."""

_PRUNE = "kustomize.toolkit.fluxcd.io/prune"
_OPTIONS = {"keep": "Prune=false", "replace": "PruneLast=true"}
_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}
_SHORTEST = 8
_DATE = lazy_pattern(r"\d{4}-\d{2}-\d{2}\Z")


def is_inactive(job: JobSpec, day: Callable[[], str], problems: list[Problem]) -> bool:
    """Whether no run is wanted: the job is paused or done, or its time is over on the day of the commit."""
    run = _run(job)
    if value_of(run.get("state", "active")) != "active":
        return True
    expires = run.get("expires")
    if value_of(expires) is None:
        return False
    last = str(value_of(expires))
    today = day() if _is_day(last) else ""
    if today:
        return last < today
    problems.append(_no_day(expires) if _is_day(last) else _no_date(expires))
    return False


def _is_day(text: str) -> bool:
    if not _DATE.match(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _no_date(expires: Data) -> Problem:
    return Problem(
        "invalid-value", f"`expires` is `{value_of(expires)}`, and must be a date like `2027-01-31`", expires
    )


def _no_day(expires: Data) -> Problem:
    message = f"whether `{value_of(expires)}` is over depends on the day, and there is no commit to take it from"
    return Problem("unknown-day", f"{message}; say it with `--today`", expires)


def needs_name(job: JobSpec) -> bool:
    """Whether anything has to be said about the run: plain manifests for reading stay as they are."""
    return bool(job.cluster.gitops) or "run" in job.fields


def name_run(made: Data, job: JobSpec, source: Data, problems: list[Problem]) -> Data:
    """The object with the name of its run, and with what an engine must know about it; `source` is the job's file."""
    run = _run(job)
    hashed = value_of(run.get("identity")) == "hash"
    found = list(_contradictions(run, made, job)) if run else []
    problems += found
    if found or not isinstance(made.get("metadata"), dict) or not isinstance(value_of(_name(made)), str):
        return made
    result: dict[str, Data] = dict(made)
    result["metadata"] = dict(made["metadata"])
    if job.cluster.gitops or hashed:
        _annotate(result, JOB_ANNOTATION, _name(made))
    if job.cluster.gitops and source is not None:
        _annotate(result, SOURCE_ANNOTATION, source)
    _on_change(result, run.get("onChange", "replace" if hashed else None), job.cluster.gitops)
    if hashed:
        result["metadata"]["name"] = with_value(_name(made), _hashed_name(made, job, run, problems))
    return result


def _run(job: JobSpec) -> dict[str, Data]:
    run = job.fields.get("run")
    return run if isinstance(run, dict) else {}


def _name(made: Data) -> Data:
    return made["metadata"].get("name")


def _annotate(made: dict[str, Data], name: str, value: Data) -> None:
    if not isinstance(made["metadata"].get("annotations"), dict):
        made["metadata"].pop("annotations", None)
    set_path(made, ("metadata", "annotations", name), value)


def _on_change(made: dict[str, Data], asked: Data, gitops: str) -> None:
    word = value_of(asked)
    if word == "forbid":
        _annotate(made, ON_CHANGE_ANNOTATION, with_value(asked, word))
    elif word == "keep" and gitops == "flux":
        _annotate(made, _PRUNE, with_value(asked, "disabled"))
    elif word is not None and gitops == "argocd":
        own = value_of(get_path(made, "metadata", "annotations", SYNC_OPTIONS))
        options = [option.strip() for option in own.split(",")] if isinstance(own, str) and own else []
        if _OPTIONS[word] not in options:
            _annotate(made, SYNC_OPTIONS, with_value(asked, ",".join([*options, _OPTIONS[word]])))


def _hashed_name(made: Data, job: JobSpec, run: dict[str, Data], problems: list[Problem]) -> str:
    """`<name>-<hash>`, within what pods' names leave of it: the name is cut where it must be, never the hash."""
    name, attempt = str(value_of(_name(made))), value_of(run.get("attempt", 1))
    suffix = find_longest_suffix(Manifest(made, job.kind, job.cluster))
    room = MAX_NAME_LENGTH - len(suffix) - len("-") - LENGTH
    if len(name) <= room:
        return f"{name}-{run_hash(made, job.kind, attempt)}"
    if room < _SHORTEST:
        message = f"`…-{LENGTH * 'x'}{suffix}` leaves {max(room, 0)} characters of the name, and {_SHORTEST} are needed"
        problems.append(Problem("no-room-for-name", message, _name(made)))
    # Two long names may begin alike, so of those that are cut all of the name counts.
    return f"{name[: max(room, 0)].rstrip('-.')}-{run_hash(made, job.kind, attempt, name)}"


def _contradictions(run: dict[str, Data], made: Data, job: JobSpec) -> Iterator[Problem]:
    if value_of(run.get("identity")) != "hash":
        if value_of(run.get("attempt", 1)) != 1:
            message = "another `attempt` starts nothing where the name stays the same; set `identity: hash`"
            yield Problem("attempt-without-hash", message, run["attempt"])
        return
    ttl = get_path(made, "spec", "runPolicy", "ttlSecondsAfterFinished")
    engine = _ENGINES.get(job.cluster.gitops)
    # mpi-operator deletes the launcher's pods alone, and keeps the job.
    if engine and value_of(ttl) is not None and job.kind.operator != "mpi-operator":
        message = f"the finished job is deleted, and {engine} makes it again and trains anew"
        yield Problem("ttl-reruns-job", message, ttl, category="gitops")
