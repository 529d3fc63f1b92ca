"""The public API of the simulation, as `jobgen.kueue`: the objects of a cluster in, decisions about workloads out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jobgen.api.errors import UsageError
from jobgen.features.kueue.answers import Answer, Job
from jobgen.features.kueue.captured import attach_captured, fill_pod_sets, is_finished, list_owners
from jobgen.features.kueue.job_workloads import QueuedJobs, collect_jobs
from jobgen.features.kueue.objects import name_of
from jobgen.features.kueue.queues.formats.json import describe_report
from jobgen.features.kueue.queues.report import EnvironmentReport, decide_environment
from jobgen.features.kueue.workloads import parse_workload
from jobgen.k8s.kueue_integrations import parse_release
from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.build import split_list
from jobgen.rendering.config import complete_schemas
from jobgen.rendering.file_secrets import read_masked
from jobgen.schema.own_formats import compile_schema
from jobgen.spec.overlay import Cluster

Object = Mapping[str, Any]
Source = Object | str | os.PathLike[str]


class WorkloadDecision(NamedTuple):
    """What becomes of one workload."""

    workload: str
    """Its namespace and name."""
    kind: str
    """The kind of the job, or `Workload`."""
    queue: str
    """The LocalQueue that it names; empty if it names none."""
    cluster_queue: str
    """The ClusterQueue; empty if it is not known."""
    decision: str
    """`running`, `admitted`, `borrows`, `preempts`, `waits`, `never` or `unmanaged`."""
    reason: str
    change: str
    """The smallest change that would admit it; empty unless it is never admitted."""
    flavors: tuple[tuple[str, str, str], ...]
    """Pod set, resource and flavor of what is admitted."""


class ClusterDecision(NamedTuple):
    """What Kueue decides about all jobs and workloads of a cluster."""

    workloads: tuple[WorkloadDecision, ...]
    """In the order of the objects."""
    settles: bool
    """False if workloads evict each other in turn."""
    is_complete: bool
    """False if the simulation took too long."""
    assumptions: tuple[str, ...]
    """What is assumed because the objects do not show it."""
    report: EnvironmentReport
    """Private: everything that `to_plain` shows."""

    def to_plain(self) -> dict[str, Plain]:
        """Return the decision as plain data for JSON: an item of `environments` in docs/queue_v1.json."""
        return describe_report(self.report)


def decide(
    objects: Iterable[Source] | Source, *, version: str = "", configuration: Mapping[str, Any] | None = None
) -> ClusterDecision:
    """Decide which jobs and workloads Kueue admits. Workloads keep the quota that their status says they have.

    Args:
        objects: Kubernetes objects as mappings, or paths of YAML files; or only one of them. ResourceFlavors,
            ClusterQueues, Cohorts, LocalQueues, Topologies, Nodes, priority classes, Namespaces, jobs of all kinds that
            Kueue knows, Workloads.
        version: The version of Kueue, such as `0.19`; by default the newest that jobgen knows.
        configuration: The fields of `cluster.kueue` in an overlay, such as `fairSharing` and `featureGates`.

    Raises:
        UsageError: A file cannot be read, or is not YAML, an object has no kind, or the version or configuration is
            wrong.
        TypeError: An object is neither a mapping nor a path.

    """
    if isinstance(objects, (str, os.PathLike, Mapping)):
        objects = [objects]
    found = [obj for number, source in enumerate(objects) for obj in _read_source(source, number)]
    _check_settings(version, configuration)
    declared = {**(configuration or {}), **({"version": version} if version else {})}
    cluster = Cluster(kueue=declared, operators={"kueue": version} if version else {})
    queued = attach_captured(collect_jobs(found, (), cluster), found)
    known = {job[:3] for job in queued.jobs}
    # The Workload of a job that is given is this job.
    workloads = (obj for obj in found if obj.get("kind") == "Workload" and known.isdisjoint(list_owners(obj)))
    given = (_read_workload(obj, queued) for obj in workloads)
    queued = queued._replace(jobs=(*queued.jobs, *(each for each in given if each is not None)))
    report = decide_environment("", queued, lambda _: False)
    decision = report.decision
    described = tuple(map(_describe_answer, decision.answers))
    return ClusterDecision(described, decision.settles, decision.is_complete, decision.assumptions, report)


def _check_settings(version: str, configuration: Mapping[str, Any] | None) -> None:
    """Raise a UsageError if the version is none, or the configuration has a field that `cluster.kueue` does not."""
    if not isinstance(version, str):
        raise TypeError(f"`version` is {version!r}; write it as text, such as `'0.19'`")
    if version and not parse_release(version):
        raise UsageError(f"`{version}` is not a version of Kueue; write one such as `0.19`")
    schemas = complete_schemas(())
    problems: list[Problem] = []
    spec = {"cluster": {"kueue": dict(configuration or {})}}
    overlay: Plain = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": spec}
    compile_schema("overlay_v1.json", schemas)(overlay, "", None, problems)
    for problem in problems:
        raise UsageError(f"the configuration is not that of `cluster.kueue`: {problem.sentence}")


def _read_source(source: Source, number: int) -> Iterable[Object]:
    if isinstance(source, Mapping):
        if not source.get("kind"):
            raise UsageError(f"object {number + 1} has no `kind`; give Kubernetes objects, or paths of YAML files")
        return split_list(dict(source))
    if not isinstance(source, (str, os.PathLike)):
        what = f"`{str(source)[:60]}` is neither a Kubernetes object nor a path"
        raise TypeError(f"{what}; give objects as mappings, or paths of YAML files")
    path = Path(source)
    try:
        file = read_masked(path.read_bytes(), str(source))
    except OSError as error:
        raise UsageError(f"`{source}` cannot be read: {error.strerror}") from error
    if file.findings:
        raise UsageError(f"`{source}` cannot be read: {file.findings[0].message}")
    return [obj for document in file.documents for obj in split_list(document.data)]


def _read_workload(obj: Object, queued: QueuedJobs) -> Job | None:
    """Return a Workload as a job; None if it has finished."""
    workload = fill_pod_sets(parse_workload(obj, queued.context.cluster.configuration.resources))
    if is_finished(obj):
        return None
    if not workload.reserved:
        workload = workload._replace(cluster_queue="", admission=())
    return Job("Workload", workload.namespace, name_of(obj), workload.queue, (workload,))


def _describe_answer(answer: Answer) -> WorkloadDecision:
    job, admission = answer.job, answer.workload.admission if answer.workload else ()
    flavors = ((each.name, resource, flavor) for each in admission for resource, flavor in each.flavors.items())
    change = answer.obstacle.change if answer.obstacle else ""
    return WorkloadDecision(
        answer.key, job.kind, job.queue, answer.cluster_queue, answer.decision, answer.reason, change, tuple(flavors)
    )
