"""How long jobs run, and which of them run or have ended: from their annotations, a history of runs, or a capture."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.kueue.answers import Job
from jobgen.features.kueue.captured import fill_pod_sets
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.workloads import Workload, parse_workload
from jobgen.k8s.devices import is_device
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.times import (
    DEADLINE_ANNOTATION,
    EXPECTED_ANNOTATION,
    MAX_EXPECTED,
    Expected,
    find_time_fault,
    parse_expected,
    parse_moment,
)
from jobgen.rendering.locate import locate
from jobgen.repo.commit import CommitPath, Folder, read_committed
from jobgen.repo.files import read_file, read_path

_COLUMNS = ("name", "start", "end")
_MAX_FAULTS = 20
_HASHED = lazy_pattern(r"(.+)-[0-9a-f]{8}")
_EXAMPLE = "write a time such as `2026-11-18T08:00Z`"


class PastRun(NamedTuple):
    """A run of a job: `name` can have its namespace; without an `end`, it still runs."""

    name: str
    start: int
    end: int | None
    gpus: int | None = None
    workload: Workload | None = None
    """The workload of a capture."""


class JobTimes(NamedTuple):
    """What is known of the times of a job."""

    expected: Expected | None = None
    source: str = ""
    """Where the duration comes from: `run.expected`, `history` or `capture`."""
    deadline: int | None = None
    since: int | None = None
    """When it was started, if it runs."""
    finished: tuple[int, int] | None = None
    """Its last run, if it has ended and does not run again."""
    workload: Workload | None = None
    faults: tuple[str, ...] = ()
    """What is wrong with its annotations."""


def read_history(root: Folder, path: str, findings: list[Finding]) -> list[PastRun]:
    """Read a history of runs: a CSV file of the repository with the columns `name`, `start`, `end` and `gpus`."""
    if isinstance(root, CommitPath):
        file = read_file(read_committed(root / path, path, root.resolve()))
    else:
        file = read_path(root / path, path, root)
    if file.finding is not None:
        findings.append(file.finding)
        return []
    faults: list[Finding] = []
    found = list(_parse_history(file.content.decode("utf-8-sig", "replace"), path, faults))
    findings += faults[:_MAX_FAULTS]
    return found


def _parse_history(text: str, path: str, faults: list[Finding]) -> Iterator[PastRun]:
    def report(message: str, line: int) -> None:
        faults.append(locate(Problem("invalid-value", message, None), path, Location(path, line, 1)))

    reader = csv.DictReader(io.StringIO(text, newline=""), restkey="", restval="")
    try:
        missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            *others, last = (f"`{name}`" for name in missing)
            names = f"columns {', '.join(others)} and {last}" if others else f"column {last}"
            report(f"the history lacks the {names}; begin it with the line `name,start,end,gpus`", 1)
            return
        for row in reader:
            run = _parse_run(*(str(row.get(field) or "").strip() for field in (*_COLUMNS, "gpus")))
            if not isinstance(run, str):
                yield run
                continue
            report(run, reader.line_num)
            if len(faults) >= _MAX_FAULTS:
                return
    except csv.Error as error:
        report(f"the history is not CSV: {error}; write one run in each line", reader.line_num)


def _parse_run(name: str, start: str, end: str, gpus: str) -> PastRun | str:
    """Return the run of a row, or what is wrong with it."""
    if not name:
        return f"the run that starts at `{start[:60]}` has no `name`; write that of its job"
    first, last = (parse_moment(each, needs_zone=False) for each in (start, end or start))
    if first is None or last is None:
        return f"`{(start if first is None else end)[:60]}` is not a time; {_EXAMPLE}"
    if end and not 0 < last - first <= MAX_EXPECTED:
        return f"the run of `{name[:60]}` starts at `{start}`, but ends at `{end}`; correct one of the times"
    if gpus and not (gpus.isdecimal() and len(gpus) < 10):
        return f"`gpus` is `{gpus[:60]}`; write a whole number, or leave it empty"
    return PastRun(name, first, last if end else None, int(gpus) if gpus else None)


def read_captured(objects: Sequence[Mapping[str, Any]]) -> list[PastRun]:
    """Read the runs of Workload objects: those that have quota, and those that have finished."""
    found: list[PastRun] = []
    for obj in objects:
        metadata, status = as_mapping(obj.get("metadata")), as_mapping(obj.get("status"))
        conditions = {str(each.get("type")): each for each in map(as_mapping, as_list(status.get("conditions")))}
        start, end = (_find_time(conditions, names) for names in (("Admitted", "QuotaReserved"), ("Finished",)))
        is_finished = as_mapping(conditions.get("Finished")).get("status") == "True"
        try:
            workload = fill_pod_sets(parse_workload(obj))
        except (TypeError, ValueError):
            continue
        if not is_finished and (not workload.reserved or not workload.cluster_queue or workload.is_evicted):
            continue
        owner = next(iter(map(as_mapping, as_list(metadata.get("ownerReferences")))), {})
        name = f"{metadata.get('namespace', '')}/{owner.get('name') or metadata.get('name', '')}"
        if start is not None and (end is not None or not is_finished):
            found.append(PastRun(name, start, max(end or 0, start + 1) if is_finished else None, None, workload))
    return found


def _find_time(conditions: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> int | None:
    times = (conditions[name].get("lastTransitionTime") for name in names if name in conditions)
    return next((parse_moment(str(each), needs_zone=False) for each in times if each), None)


def find_times(
    job: Job, past: Mapping[str, Sequence[PastRun]], history: Mapping[str, Sequence[PastRun]], begin: int
) -> JobTimes:
    """Find what is known of a job. The first of these counts: its annotation, the history, the capture.

    A run of the history without an end goes on when the timeline begins, unless it starts later.
    """
    annotations = job.annotations or (job.workloads[0].annotations if job.workloads else {})
    texts = {name: str(annotations[name]) for name in (EXPECTED_ANNOTATION, DEADLINE_ANNOTATION) if name in annotations}
    written = parse_expected(texts.get(EXPECTED_ANNOTATION, ""))
    deadline = parse_moment(texts.get(DEADLINE_ANNOTATION, ""), ends_day=True)
    faults = ((name, text, find_time_fault(name, text)) for name, text in texts.items())
    names = (
        f"{job.namespace}/{job.name}",
        job.name,
        *(name for alias in job.aliases for name in (f"{job.namespace}/{alias}", alias)),
    )
    captured, recorded = ([run for name in names for run in several.get(name, ())] for several in (past, history))
    found, source = None, ""
    if isinstance(written, Expected):
        found, source = written, "run.expected"
    else:
        gpus = _count_gpus(job)
        for runs, origin in ((recorded, "history"), (captured, "capture")):
            ended = [run for run in runs if run.end is not None]
            alike = [run for run in ended if run.gpus in (None, gpus)] or ended
            lengths = [(run.end or 0) - run.start for run in alike]
            if lengths and found is None:
                found, source = Expected(min(lengths), max(lengths)), origin
    own = [run for run in (*captured, *recorded) if run.name.rpartition("/")[2] == job.name]
    open_runs = [run for run in own if run.end is None and (run.workload is not None or run.start <= begin)]
    running = max(open_runs, key=lambda run: (run.workload is not None, run.start), default=None)
    # A history can be about earlier runs of the same name; a finished Workload is about this one.
    ended_here = next((run for run in captured if run.end is not None and run in own), None)
    return JobTimes(
        found,
        source,
        deadline,
        running.start if running else None,
        (ended_here.start, ended_here.end or 0) if ended_here and not running else None,
        running.workload if running else None,
        tuple(f"`{name}` is `{text[:60]}`, which {fault}" for name, text, fault in faults if fault),
    )


def _count_gpus(job: Job) -> int:
    pod_sets = (each for workload in job.workloads for each in workload.pod_sets)
    return sum(amount * each.count for each in pod_sets for name, amount in each.requests.items() if is_device(name))


def index_runs(runs: Sequence[PastRun]) -> dict[str, list[PastRun]]:
    """Return runs by the names of jobs; a run whose name ends with a hash also by the name without it."""
    found: dict[str, list[PastRun]] = {}
    for run in runs:
        hashed = _HASHED.fullmatch(run.name)
        for name in {run.name, hashed[1] if hashed else run.name}:
            found.setdefault(name, []).append(run)
    return found


def add_captured(queued: QueuedJobs, runs: Sequence[PastRun]) -> tuple[Job, ...]:
    """Return the jobs, and as jobs of their own the running workloads of others that a capture shows."""
    known = {f"{job.namespace}/{job.name}" for job in queued.jobs}
    others = [
        Job("Workload", found.namespace, run.name.partition("/")[2], found.queue, (found,))
        for run in runs
        if (found := run.workload) is not None and run.end is None and run.name not in known
        if found.cluster_queue in queued.context.queues
    ]
    taken = {workload.key for job in queued.jobs for workload in job.workloads}
    return (*queued.jobs, *(job for job in others if job.workloads[0].key not in taken))
