"""Decide about the jobs of an environment: from its rendered objects and the exported state of its cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobgen.features.kueue.cluster_objects import DECIDING_KINDS
from jobgen.features.kueue.decision.answers import Decision, Job, decide
from jobgen.features.kueue.objects import as_mapping
from jobgen.features.kueue.queue_jobs import QueuedJobs, collect_jobs
from jobgen.features.kueue.queues.report import EnvironmentReport
from jobgen.features.kueue.workload.job_workloads import find_namespace, get_job_name
from jobgen.model.data import untraced, value_of
from jobgen.model.finding import Finding
from jobgen.pipeline.exported_state import find_duplicates, read_exported
from jobgen.pipeline.mutations import ClusterMutations
from jobgen.render.config import ProjectConfig
from jobgen.render.runs import JOB_ANNOTATION
from jobgen.spec.overlay import Cluster
from jobgen.spec.sweeps import SWEEP

NONE, ALL = "none", "all"

IsRunning = Callable[[Job], bool]
"""Whether a job runs from the start."""


def collect_environment(
    env: str, rendered: Sequence[Mapping[str, Any]], project: ProjectConfig, cluster: Cluster, findings: list[Finding]
) -> QueuedJobs:
    """Collect the jobs and queues of an environment. Of an object that is also exported, the repository's counts.

    Kueue sees the rendered objects as mutating policies change them.
    """
    mutations = ClusterMutations(project)
    objects = [mutations.mutate(env, each).object for each in rendered]
    exported = list(read_exported(project.root, cluster.state, findings)) if cluster.state else []
    deciding = (each for each in exported if str(value_of(each.get("kind"))) in DECIDING_KINDS)
    findings += find_duplicates(deciding, cluster.state)
    queued = collect_jobs(objects, [untraced(dict(each)) for each in exported], cluster)
    known = {(str(each.get("kind", "")), find_namespace(each), get_job_name(each)): each for each in objects}
    return queued._replace(jobs=tuple(_add_aliases(job, known) for job in queued.jobs))


def _add_aliases(job: Job, objects: Mapping[tuple[str, str, str], Mapping[str, Any]]) -> Job:
    """Return a job with the name of the job of which it is a run, and that of the sweep of which it is a member."""
    metadata = as_mapping(objects.get((job.kind, job.namespace, job.name), {}).get("metadata"))
    names = as_mapping(metadata.get("annotations")).get(JOB_ANNOTATION), as_mapping(metadata.get("labels")).get(SWEEP)
    return job._replace(aliases=tuple(str(name) for name in names if name))


_NOTHING = Decision((), (), True, ("no ClusterQueue is among the files, so nothing is decided",))


def decide_environment(env: str, queued: QueuedJobs, is_running: IsRunning, running: str = NONE) -> EnvironmentReport:
    """Decide about the jobs of an environment; `running` says in the report which of them run from the start."""
    keys = frozenset(each.key for job in queued.jobs if is_running(job) for each in job.workloads)
    configuration = queued.context.cluster.configuration
    version = ".".join(map(str, configuration.version))
    decision = decide(queued.context, queued.jobs, keys) if queued.context.queues else _NOTHING
    return EnvironmentReport(env, version, configuration.rules.is_fair, running, decision)
