"""What `jobgen queue` reports: the decisions of one or more environments, and how amounts and names are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.check.cluster.exported import read_exported, read_located
from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import DECISIONS, IN_SUMS, Answer, Decision, Job, Total, decide
from jobgen.features.kueue.captured import attach_captured
from jobgen.features.kueue.cluster_objects import DECIDING_KINDS
from jobgen.features.kueue.job_workloads import QueuedJobs, collect_jobs, get_job_name
from jobgen.features.kueue.multikueue import OWN_SETTINGS, Worker, build_dispatcher, build_worker
from jobgen.features.kueue.objects import find_namespace
from jobgen.features.kueue.queues.comparison import Comparison
from jobgen.features.kueue.quota import summarize_amount
from jobgen.k8s.nodes import as_mapping, get_path
from jobgen.model.data import Plain, text_of, untraced
from jobgen.model.finding import Finding, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.environment_checker import find_duplicates, report_missing_folder
from jobgen.pipeline.policies import ClusterMutations
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.config import load as load_config
from jobgen.rendering.runs import JOB_ANNOTATION
from jobgen.repo.root import folder_exists
from jobgen.spec.overlay import Cluster
from jobgen.spec.sweeps import SWEEP

ARRIVAL_ORDER = "jobs arrive by priority, then by namespace and queue, then by name"
NO_FINAL_STATE = "workloads evict each other in turn, so there is no final state; this is one of the states"
STOPPED = "the simulation was stopped because it takes too long; jobs that it did not reach are listed as waiting"


_MAX_DOMAINS = 4


class EnvironmentReport(NamedTuple):
    """The decision about one environment."""

    environment: str
    version: str
    """The version of Kueue."""
    is_fair: bool
    running: str
    """Which jobs run from the start: `none`, `all`, or their names."""
    decision: Decision
    """With changes, the one after them."""
    comparison: Comparison | None = None
    """What the changes do, if there are any."""
    left_out: tuple[str, ...] = ()
    """What is not simulated."""

    def count_decisions(self) -> Mapping[str, int]:
        """Return how many workloads have each decision, in the order of decisions."""
        counts = Counter(answer.decision for answer in self.decision.answers)
        return {decision: counts[decision] for decision in DECISIONS if counts[decision]}

    def summarize(self) -> str:
        """Return the counts in one line."""
        counts = ", ".join(f"{count} {IN_SUMS.get(name, name)}" for name, count in self.count_decisions().items())
        return f"{pluralize(len(self.decision.answers), 'workload')}: {counts}" if counts else "no workloads"

    def list_notes(self) -> Iterator[str]:
        """Yield what the decision assumes and leaves out."""
        sharing = "with fair sharing" if self.is_fair else "without fair sharing"
        yield f"Kueue {self.version}, {sharing}; {ARRIVAL_ORDER}; assumed to run from the start: {self.running}"
        if not self.decision.settles:
            yield NO_FINAL_STATE
        if not self.decision.is_complete:
            yield STOPPED
        if outside := self.decision.outside.describe():
            yield outside
        yield from self.decision.assumptions
        yield f"not simulated: {', '.join(self.left_out)}"


class PodSetRow(NamedTuple):
    """A pod set as text."""

    name: str
    pods: str
    """How many pods there are; of how many, if it was admitted with fewer."""
    requests: str
    """What one pod is charged."""
    flavors: str


def list_pod_sets(answer: Answer) -> Iterator[PodSetRow]:
    """Yield the pod sets of a workload; with the flavors that it was admitted with."""
    workload = answer.workload
    admitted = {each.name: each for each in workload.admission} if workload else {}
    for each in workload.pod_sets if workload else ():
        found = admitted.get(each.name)
        pods = str(each.count) if found is None or found.count == each.count else f"{found.count} of {each.count}"
        requests = ", ".join(
            f"{name} {summarize_amount(name, amount)}" for name, amount in sorted(each.requests.items())
        )
        flavors = ", ".join(dict.fromkeys(found.flavors.values())) if found else ""
        if found is not None and found.domains:
            shown = ", ".join(f"{count} in {'/'.join(values)}" for values, count in found.domains[:_MAX_DOMAINS])
            more = f" and {len(found.domains) - _MAX_DOMAINS} more" if len(found.domains) > _MAX_DOMAINS else ""
            flavors = f"{flavors} ({shown}{more})"
        yield PodSetRow(each.name, pods, requests or "no requests", flavors)


def list_total_cells(total: Total) -> tuple[str, ...]:
    """Return the name of a queue or cohort, flavor, resource, and the amounts of a total."""
    amounts = (total.nominal, total.used, total.borrowed, total.lent, total.waiting)
    shown = (summarize_amount(total.resource, amount) for amount in amounts)
    return (f"{total.kind} {total.name}", total.flavor, total.resource, *shown)


def list_rows(decision: Decision) -> Iterator[tuple[str, ...]]:
    """Yield the cells of all totals, first those of the cluster itself, then those of its worker clusters."""
    yield from map(list_total_cells, decision.totals)
    for cluster, total in decision.cluster_totals:
        name, *cells = list_total_cells(total)
        yield (f"{name} in {cluster}", *cells)


def explain(answer: Answer) -> str:
    """Return why a workload has its decision, and what to change if it is never admitted."""
    if answer.obstacle is not None and answer.obstacle.change:
        return f"{answer.reason}; {answer.obstacle.change}"
    evicted = f"`{answer.evicted_by}` evicts it; " if answer.evicted_by else ""
    return f"{evicted}{answer.reason}"


NONE, ALL = "none", "all"

Objects = Sequence[Mapping[str, Any]]
ChangeObjects = Callable[[Objects, Objects, Cluster, str], tuple[Objects, Objects, Cluster]]
"""Changes the rendered and the exported objects and the cluster; or those of a worker cluster, which it names."""


def collect_environment(
    env: str,
    rendered: Sequence[Mapping[str, Any]],
    project: ProjectConfig,
    cluster: Cluster,
    findings: list[Finding],
    change: ChangeObjects | None = None,
) -> QueuedJobs:
    """Collect the jobs and queues of an environment. Of an object that is also exported, the repository's counts.

    Kueue sees the rendered objects as mutating policies change them. `change` changes all objects before they are read.
    """
    mutations = ClusterMutations(project)
    objects: Objects = [mutations.mutate(env, each).object for each in rendered]
    located = list(read_located(project.layers, cluster.state, findings)) if cluster.state else []
    exported: list[Mapping[str, Plain]] = list(map(untraced, located))
    deciding = (each for each in located if text_of(each.get("kind")) in DECIDING_KINDS)
    findings += find_duplicates(deciding, cluster.state)
    others: Objects = exported
    if change is not None:
        objects, others, cluster = change(objects, others, cluster, "")
    queued = collect_jobs(objects, others, cluster)
    _attach_workers(queued, project, cluster, findings, change)
    known: dict[tuple[str, str, str], tuple[tuple[str, ...], Mapping[str, str]]] = {}
    for each in objects:
        # The name of the job of which it is a run, and that of the sweep of which it is a member.
        run = get_path(each, "metadata", "annotations", JOB_ANNOTATION)
        names = (run, get_path(each, "metadata", "labels", SWEEP))
        key = str(each.get("kind", "")), find_namespace(each), get_job_name(each)
        aliases = tuple(str(name) for name in names if name)
        annotations = as_mapping(get_path(each, "metadata", "annotations"))
        known[key] = aliases, {str(name): str(value) for name, value in annotations.items()}
    jobs = (
        job._replace(aliases=of[0], annotations=of[1]) for job in queued.jobs for of in (known.get(job[:3], ((), {})),)
    )
    workloads = [each for each in exported if each.get("kind") == "Workload"]
    if queued.context.dispatcher:
        workloads = list(map(queued.context.dispatcher.locate, workloads))
    found = queued._replace(jobs=tuple(jobs), exported=tuple(workloads))
    return attach_captured(found, found.exported)


def find_workers(project: ProjectConfig, cluster: Cluster) -> dict[str, Cluster]:
    """Return the declared worker clusters of MultiKueue: other environments, or folders with exported state."""
    found: dict[str, Cluster] = {}
    shared = {key: value for key, value in cluster.kueue.items() if key not in OWN_SETTINGS}
    for name, each in cluster.workers.items():
        other = each.get("environment")
        if other is None:
            found[name] = cluster._replace(state=str(each.get("state", "")).strip("/"), kueue=shared)
        elif other in project.overlays:
            # One that does not exist is an error of the overlay.
            found[name] = project.environment(other, []).cluster
    return found


def _attach_workers(
    queued: QueuedJobs,
    project: ProjectConfig,
    cluster: Cluster,
    findings: list[Finding],
    change: ChangeObjects | None,
) -> None:
    workers: dict[str, Worker] = {}
    namespaces = sorted({job.namespace for job in queued.jobs})
    for name, found in find_workers(project, cluster).items():
        if found.state and not folder_exists(project.root, found.state):
            findings.append(report_missing_folder(load_config(project.layers, traced=True), found.state))
        elif found.state:
            exported: Objects = list(read_exported(project.layers, found.state, findings))
            _, exported, settings = change((), exported, found, name) if change else ((), exported, found)
            workers[name] = build_worker(settings, exported, namespaces)
    if workers:
        queued.context.dispatcher = build_dispatcher(cluster.kueue["multiKueue"], workers)


def find_running(queued: QueuedJobs, is_running: Callable[[Job], bool]) -> frozenset[str]:
    """Return the workloads that run from the start."""
    return frozenset(each.key for job in queued.jobs if is_running(job) for each in job.workloads)


def decide_environment(
    env: str, queued: QueuedJobs, is_running: Callable[[Job], bool], running: str = NONE
) -> EnvironmentReport:
    """Decide about the jobs of an environment; `running` says in the report which of them run from the start."""
    configuration = queued.context.cluster.configuration
    version = ".".join(map(str, configuration.version))
    decision = Decision((), (), True, ("no ClusterQueue is among the files, so nothing is decided",))
    if queued.context.queues:
        decision = decide(queued.context, queued.jobs, find_running(queued, is_running))
    left_out = list_left_out(queued.context)
    return EnvironmentReport(env, version, configuration.rules.is_fair, running, decision, left_out=left_out)


def list_left_out(context: AdmissionContext) -> tuple[str, ...]:
    """Return what a decision leaves out; docs/kueue.md says the same."""
    has_answers, has_workers = bool(context.cluster.configuration.checks), context.dispatcher is not None
    known = {"time": False, "autoscaling": False, "admission checks": has_answers, "MultiKueue": has_workers}
    return tuple(name for name, is_simulated in known.items() if not is_simulated)
