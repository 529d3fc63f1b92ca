"""What becomes of each job in its queue: admitted, by borrowing, by preemption, waiting, or never admitted.

All jobs arrive together, and scheduling cycles run until nothing changes. Time does not pass: no workload finishes, and
an evicted workload leaves its quota before the next cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from jobgen.features.kueue.admission_context import REJECTED, AdmissionContext, Refusal
from jobgen.features.kueue.assignment import WAITING_FOR_QUOTA, Assignment
from jobgen.features.kueue.cycle import Scheduler
from jobgen.features.kueue.match import find_node_mismatch
from jobgen.features.kueue.objects import STRICT_FIFO, Preemption, ResourceGroup
from jobgen.features.kueue.obstacles import PODS, Obstacle, count_least
from jobgen.features.kueue.quota import FlavorResource, QuotaNode, Tree, Usage, show_amount
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import GATED_BY, PodSet, Workload
from jobgen.k8s.devices import is_device
from jobgen.model.named_tuple import NamedTuple

_NOW = "~"
"""Later than all times: when a job without a Workload object arrives."""

_MOST_REPEATS = 3
"""A workload that is evicted more often by the same one is evicted without end."""

_MOST_STEPS, _MOST_STEPS_PER_WORKLOAD = 1_000_000, 100
"""The simulation stops after this much work: about ten seconds, and one more for each thousand workloads."""


class Eviction(NamedTuple):
    """A workload that was evicted for another."""

    workload: str
    preemptor: str
    reason: str
    """The rule that allowed it, as in the condition of the workload."""


def _admit_running(scheduler: Scheduler, workloads: Sequence[Workload], context: AdmissionContext) -> None:
    """Admit workloads that are said to run, also in queues that are held now. None of them evicts another."""
    queues, inactive, local_queues = scheduler.snapshot.queues, scheduler.inactive, scheduler.local_queues
    scheduler.inactive = inactive - context.held_queues
    scheduler.local_queues = {**local_queues, **context.held_local_queues}
    scheduler.snapshot.queues = {name: each._replace(preemption=Preemption()) for name, each in queues.items()}
    for each in workloads:
        scheduler.add(each)
    run_until_settled(scheduler, len(workloads))
    scheduler.snapshot.queues = queues
    scheduler.inactive, scheduler.local_queues = inactive, local_queues
    scheduler.bounds.forget()
    for pending in scheduler.pending.values() if context.held_local_queues else ():
        for each in pending.list_all():
            if (each.namespace, each.queue) not in local_queues:
                pending.remove(each.key)
    admitted = {key for several in scheduler.snapshot.workloads.values() for key in several}
    for each in workloads:
        if each.key not in admitted:
            # It was tried in another state: without preemption, and with queues that are held.
            scheduler.outcomes.pop(each.key, None)
    scheduler.retry_parked(scheduler.snapshot.queues)


def run_until_settled(scheduler: Scheduler, workloads: int) -> tuple[list[Eviction], dict[str, str], bool]:
    """Run cycles until several in a row change nothing.

    Return the evictions, the workloads that are evicted without end and by which, and False if it takes too long.
    Those that are evicted without end are kept back, so that the others can go on.
    """
    snapshot = scheduler.snapshot
    # A workload that stopped before the last flavor goes on there in its next cycle.
    flavors = max((len(group.flavors) for each in snapshot.queues.values() for group in each.groups), default=0)
    most_steps = snapshot.steps + _MOST_STEPS + _MOST_STEPS_PER_WORKLOAD * workloads
    evictions: list[Eviction] = []
    repeats = Counter[tuple[str, str]]()
    held: dict[str, str] = {}
    idle, before = 0, scheduler.changes
    while idle <= flavors and scheduler.run_cycle(skips_blocked=True):
        if scheduler.evicted:
            for key, each in scheduler.evictions.items():
                preemptor = each.preemptor.key
                evictions.append(Eviction(key, preemptor, each.target.reason))
                repeats[key, preemptor] += 1
                if repeats[key, preemptor] > _MOST_REPEATS:
                    held[key] = preemptor
            scheduler.release_evicted(held.keys())
        idle = idle + 1 if scheduler.changes == before else 0
        before = scheduler.changes
        if snapshot.steps > most_steps:
            return evictions, held, False
    return evictions, held, True


class Loan(NamedTuple):
    """Quota that one queue uses, and another queue or cohort does not."""

    borrower: str
    lender: str
    pair: FlavorResource
    amount: int
    is_from_cohort: bool = False
    """True if the lender is a cohort with quota of its own; a queue may have the same name."""


def list_loans(snapshot: Snapshot) -> list[Loan]:
    """List what every queue borrows, and from whom."""
    loans: list[Loan] = []
    free: dict[tuple[int, FlavorResource], int] = {}
    members = snapshot.list_members()
    for _, node in sorted(snapshot.nodes.items()):
        cohorts = list(node.list_ancestors())
        for pair, used in node.usage.items() if cohorts else ():
            missing = used - node.find_quota(pair).nominal
            for cohort, lender in ((above, each) for above in cohorts for each in (above, *members[above.name])):
                if missing <= 0:
                    break
                if (id(lender), pair) not in free:
                    # What it has of its own, does not use, and may lend.
                    kept = max(lender.usage.get(pair, 0), lender.local_quota(pair)) if lender.is_queue else 0
                    free[id(lender), pair] = lender.find_quota(pair).nominal - kept
                amount = min(missing, free[id(lender), pair])
                if lender is not node and amount > 0:
                    free[id(lender), pair] -= amount
                    missing -= amount
                    loans.append(Loan(node.name, lender.name, pair, amount, lender is cohort))
    return loans


class Total(NamedTuple):
    """The quota of a queue or cohort for one resource in one flavor."""

    kind: str
    """`ClusterQueue` or `Cohort`."""
    name: str
    flavor: str
    resource: str
    nominal: int
    used: int
    borrowed: int
    lent: int
    waiting: int
    """What the waiting workloads request."""
    tree: int = 0
    """Equal for all queues and cohorts that lend to each other, directly or through others."""


Amounts = Counter[FlavorResource]


def list_totals(snapshot: Snapshot, loans: Iterable[Loan], waiting: Iterable[tuple[str, Usage]]) -> list[Total]:
    """List the totals of all queues, then those of all cohorts; `waiting` has queues and what is requested there."""
    lent = Counter[tuple[str, bool, FlavorResource]]()
    for loan in loans:
        lent[loan.lender, not loan.is_from_cohort, loan.pair] += loan.amount
    requested: dict[str, Amounts] = {}
    for queue, usage in waiting:
        requested.setdefault(queue, Amounts()).update(usage)
    queues = [node for _, node in sorted(snapshot.nodes.items())]
    cohorts = [node for _, node in sorted(snapshot.cohorts.items())]
    sums = _sum_by_node(queues, cohorts, requested)
    trees: dict[int, int] = {}
    return [
        Total(
            "ClusterQueue" if node.is_queue else "Cohort",
            node.name,
            pair.flavor,
            pair.resource,
            nominal=nominal[pair],
            used=used[pair],
            # Without a parent there is nothing to borrow from: the quota was lowered while workloads ran.
            borrowed=max(0, used[pair] - nominal[pair]) if node.parent is not None else 0,
            lent=lent[node.name, node.is_queue, pair],
            waiting=waits[pair],
            tree=trees.setdefault(id(node.tree), len(trees)),
        )
        for node in (*queues, *cohorts)
        for nominal, used, waits in (sums[id(node)],)
        for pair in sorted(node.quotas if node.is_queue else {*node.quotas, *node.subtree, *node.usage})
    ]


def _sum_by_node(
    queues: Sequence[QuotaNode], cohorts: Sequence[QuotaNode], requested: Mapping[str, Amounts]
) -> dict[int, tuple[Amounts, Amounts, Amounts]]:
    """Sum what each node and all below it have, use and wait for.

    It takes one step for each node, from the queues up. Stopped queues count, although no cohort lists them.
    """
    sums = {
        id(node): (Amounts({pair: quota.nominal for pair, quota in node.quotas.items()}), Amounts(), Amounts())
        for node in (*queues, *cohorts)
    }
    for node in queues:
        _, used, waiting = sums[id(node)]
        used.update(node.usage)
        waiting.update(requested.get(node.name, {}))
    below = [each for node in cohorts if node.parent is None for each in node.list_below() if not each.is_queue]
    for node in (*queues, *reversed(below)):
        if node.parent is not None:
            for total, amounts in zip(sums[id(node.parent)], sums[id(node)], strict=True):
                total.update(amounts)
    return sums


RUNNING, ADMITTED, BORROWS, PREEMPTS = "running", "admitted", "borrows", "preempts"
WAITS, NEVER, UNMANAGED = "waits", "never", "unmanaged"
DECISIONS = (RUNNING, ADMITTED, BORROWS, PREEMPTS, WAITS, NEVER, UNMANAGED)
RUNS = frozenset((RUNNING, ADMITTED, BORROWS, PREEMPTS))
IN_SUMS = {BORROWS: "borrowing", PREEMPTS: "preempting", WAITS: "waiting", NEVER: "never admitted"}
"""What decisions are called in a sum, such as `8 waiting`."""
"""The decisions about what has quota."""

_MAX_BLOCKERS = 20


class Job(NamedTuple):
    """A job object, and the workloads that Kueue makes of it."""

    kind: str
    namespace: str
    name: str
    queue: str
    """The name of its LocalQueue; empty if it names none."""
    workloads: tuple[Workload, ...] = ()
    obstacle: Obstacle | None = None
    """Why Kueue makes no workload of it."""
    aliases: tuple[str, ...] = ()
    """Other names under which users know it: that of the job of which it is a run, and that of its sweep."""
    annotations: Mapping[str, str] = {}


class Shortage(NamedTuple):
    """What a waiting workload lacks."""

    resource: str
    flavor: str
    missing: int


class ClusterAnswer(NamedTuple):
    """What a worker cluster of MultiKueue decides about a workload."""

    name: str
    decision: str
    """`admitted`; `possible` if it has room as well; `preempts`, `waits`, `never`; `unknown`, `later` or `lost`."""
    reason: str


class Answer(NamedTuple):
    """What becomes of one workload."""

    job: Job
    key: str
    """Namespace and name of the workload; those of the job if it has only one."""
    decision: str
    reason: str
    cluster_queue: str = ""
    workload: Workload | None = None
    """The workload, with its admission if it has one."""
    obstacle: Obstacle | None = None
    loans: tuple[Loan, ...] = ()
    """What its queue borrows of the resources that the workload uses, and from whom."""
    shortages: tuple[Shortage, ...] = ()
    blockers: tuple[str, ...] = ()
    """The workloads that it waits behind, or that use what it lacks."""
    evictions: tuple[Eviction, ...] = ()
    evicted_by: str = ""
    clusters: tuple[ClusterAnswer, ...] = ()
    """What each worker cluster of MultiKueue decides, if the job runs in one of them."""
    cluster: str = ""
    """The worker cluster that runs it."""

    @property
    def is_failure(self) -> bool:
        """Return True if its queue never admits it, or Kueue ignores the queue and starts it without quota."""
        return self.decision == NEVER or (self.decision == UNMANAGED and bool(self.job.queue))


class Outside(NamedTuple):
    """What runs from the start and is no job of the repository."""

    workloads: int = 0
    used: tuple[tuple[FlavorResource, int], ...] = ()

    def describe(self, which: str = "no job of the repository has") -> str:
        """Say how much they use, and `which` they are; empty if there are none."""
        amounts = (
            f"`{show_amount(pair.resource, amount)}` of `{pair.resource}` in flavor `{pair.flavor}`"
            for pair, amount in self.used
            if amount
        )
        are = "is a Workload" if self.workloads == 1 else f"are {self.workloads} Workloads"
        uses = "uses" if self.workloads == 1 else "use"
        text = f"in the capture {are} that {which}, which {uses} {', '.join(amounts) or 'nothing'}"
        return text if self.workloads else ""


class Decision(NamedTuple):
    """The answers for all jobs of a cluster."""

    answers: tuple[Answer, ...]
    totals: tuple[Total, ...]
    settles: bool
    """False if workloads evict each other in turn."""
    assumptions: tuple[str, ...]
    """What the decision assumes because the files do not show it."""
    evictions: tuple[Eviction, ...] = ()
    """All evictions, in the order in which they happen."""
    is_complete: bool = True
    """False if the simulation took too long: jobs that it did not reach wait, and others may be evicted yet."""
    cluster_totals: tuple[tuple[str, Total], ...] = ()
    """The totals of worker clusters, each with the name of its cluster."""
    outside: Outside = Outside()


class Settled(NamedTuple):
    """The state in which nothing changes any more, and how it came about."""

    scheduler: Scheduler
    arrivals: Mapping[str, Workload]
    """All workloads by key, in the order in which they arrive."""
    assumed: frozenset[str]
    """The workloads that run from the start."""
    evictions: Sequence[Eviction]
    held: Mapping[str, str]
    """The workloads that are evicted without end, and by which."""
    is_complete: bool
    refused: dict[str, tuple[Refusal, Workload]]
    """The workloads that admission checks refuse."""


def decide(
    context: AdmissionContext,
    jobs: Sequence[Job],
    running: frozenset[str] = frozenset(),
    later: frozenset[str] = frozenset(),
) -> Decision:
    """Decide about all jobs; those in `running`, by key, run from the start, and those in `later` arrive last.

    A workload with an admission runs from the start, and keeps it even above the quota, also one from outside. The
    others arrive by priority, by queue and by name; Workload objects, by the time of their creation before them.
    """
    return report_settled(context, jobs, settle(context, jobs, running, later))


def settle(
    context: AdmissionContext,
    jobs: Sequence[Job],
    running: frozenset[str] = frozenset(),
    later: frozenset[str] = frozenset(),
) -> Settled:
    """Let all jobs arrive, and run cycles until nothing changes."""
    scheduler = context.build_scheduler()
    workloads = [context.stop(each) for job in jobs for each in job.workloads]
    keys = {each.key for each in workloads}
    workloads += (context.stop(each) for job in context.outside for each in job.workloads if each.key not in keys)
    running |= {each.key for each in workloads if each.reserved and each.cluster_queue in context.queues}
    ordered = sorted(
        (each for each in workloads if each.key in keys or each.key in running),
        key=lambda each: (
            each.key in later,
            each.created or _NOW,
            -each.priority,
            each.namespace,
            each.queue,
            each.key,
        ),
    )
    arrivals = [each._replace(created=f"{place:08}", uid=f"{place:08}") for place, each in enumerate(ordered)]
    _admit_running(scheduler, [each for each in arrivals if each.key in running], context)
    assumed = frozenset(key for several in scheduler.snapshot.workloads.values() for key in several)
    for each in arrivals:
        if each.key not in running:
            scheduler.add(each)
    refused: dict[str, tuple[Refusal, Workload]] = {}
    found = settle_checks(scheduler, context, len(arrivals), refused, assumed)
    return Settled(scheduler, {each.key: each for each in arrivals}, assumed, *found, refused)


def settle_checks(
    scheduler: Scheduler,
    context: AdmissionContext,
    workloads: int,
    refused: dict[str, tuple[Refusal, Workload]],
    assumed: frozenset[str],
) -> tuple[list[Eviction], dict[str, str], bool]:
    """Run cycles until nothing changes, also after admission checks refuse workloads, which `refused` gets."""
    evictions, held, is_complete = run_until_settled(scheduler, workloads)
    while is_complete and (found := _refuse(scheduler, context, refused.keys() | assumed)):
        refused |= found
        more, others, is_complete = run_until_settled(scheduler, workloads)
        evictions, held = evictions + more, held | others
    return evictions, held, is_complete


def report_settled(context: AdmissionContext, jobs: Sequence[Job], settled: Settled) -> Decision:
    """Answer for each job in the state in which nothing changes."""
    scheduler, _, assumed, evictions, held, is_complete, refused = settled
    loans = list_loans(scheduler.snapshot)
    reporter = _Reporter(context, scheduler, evictions, held, assumed, loans, refused)
    answers = tuple(answer for job in jobs for answer in reporter.answer_job(job))
    keys = {each.key for job in jobs for each in job.workloads}
    others = [job for job in context.outside if job.workloads[0].key in assumed - keys]
    answers += tuple(answer for job in others for answer in reporter.answer_evicted(job))
    outside = Counter[FlavorResource]()
    for job in others:
        outside.update(job.workloads[0].usage)
    decision = Decision(answers, (), not held, context.assumptions, tuple(evictions), is_complete)
    decision = decision._replace(outside=Outside(len(others), tuple(sorted(outside.items()))))
    if context.dispatcher:
        decision = context.dispatcher.dispatch(context, decision)
    admitted = scheduler.snapshot.workloads
    waiting = [
        (each.cluster_queue, reporter.requested(each))
        for each in decision.answers
        if each.decision == WAITS and each.key not in admitted.get(each.cluster_queue, {})
    ]
    return decision._replace(totals=tuple(list_totals(scheduler.snapshot, loans, waiting)))


def _refuse(
    scheduler: Scheduler, context: AdmissionContext, known: Collection[str]
) -> dict[str, tuple[Refusal, Workload]]:
    """Take back the quota of workloads whose admission checks do not pass; those that are pending keep it."""
    if not context.cluster.configuration.checks:
        return {}
    every = [each for several in scheduler.snapshot.workloads.values() for each in several.values()]
    found = {
        each.key: (refusal, each) for each in every if each.key not in known and (refusal := context.find_refusal(each))
    }
    for key, (refusal, _) in found.items():
        if not refusal.keeps_quota:
            scheduler.remove(key)
    return found


class _Reporter:
    """Turns the end of a simulation into answers."""

    def __init__(
        self,
        context: AdmissionContext,
        scheduler: Scheduler,
        evictions: Sequence[Eviction],
        held: Mapping[str, str],
        assumed: frozenset[str],
        loans: Sequence[Loan],
        refused: Mapping[str, tuple[Refusal, Workload]],
    ) -> None:
        """`held` are evicted without end by others, `assumed` are those that run from the start.

        `refused` have had quota, but an admission check does not pass.
        """
        self._refused = refused
        self._context = context
        self._scheduler = scheduler
        self._snapshot = scheduler.snapshot
        self._held = held
        self._assumed = assumed
        self._loans: dict[str, list[Loan]] = {}
        for loan in loans:
            self._loans.setdefault(loan.borrower, []).append(loan)
        self._members = self._snapshot.list_members()
        self._users: dict[str, dict[FlavorResource, list[str]]] = {}
        self._users_of_tree: dict[tuple[Tree, frozenset[FlavorResource]], list[tuple[str, str]]] = {}
        self._shortages: dict[str, tuple[str, tuple[Shortage, ...]]] = {}
        self._by_preemptor: dict[str, list[Eviction]] = {}
        self._last_eviction: dict[str, Eviction] = {}
        for eviction in evictions:
            self._by_preemptor.setdefault(eviction.preemptor, []).append(eviction)
            self._last_eviction[eviction.workload] = eviction

    def answer_job(self, job: Job) -> Iterator[Answer]:
        """Yield an answer for each workload of a job; one for a job without workloads."""
        if job.obstacle is not None:
            decision = UNMANAGED if job.obstacle.code == "unmanaged" else NEVER
            yield Answer(job, f"{job.namespace}/{job.name}", decision, job.obstacle.message, obstacle=job.obstacle)
        for workload in job.workloads:
            queue = self._context.find_cluster_queue(workload)
            admitted = self._snapshot.workloads.get(queue, {}).get(workload.key)
            waiting = workload._replace(cluster_queue="", admission=(), reserved="")
            answer = Answer(job, workload.key, NEVER, "", queue, admitted or waiting)
            refusal, _ = self._refused.get(workload.key, (None, None))
            if refusal is not None and refusal.answer != REJECTED:
                yield answer._replace(decision=WAITS, reason=refusal.explain())
                continue
            if admitted is not None:
                yield self._answer_admitted(answer, admitted)
                continue
            obstacle = self._context.find_obstacle(workload)
            if refusal is not None and obstacle is None:
                change = f"change what `{refusal.check}` rejects, or use a queue without this check"
                obstacle = Obstacle("check", refusal.explain(), change)
            if obstacle is not None:
                yield answer._replace(reason=obstacle.message, obstacle=obstacle)
            else:
                yield self._answer_waiting(answer, workload)

    def answer_evicted(self, job: Job) -> Iterator[Answer]:
        """Yield an answer for a workload from outside, if it does not run any more."""
        for each in job.workloads:
            if each.key not in self._snapshot.workloads[each.cluster_queue]:
                eviction = self._last_eviction.get(each.key)
                preemptor, waiting = eviction.preemptor if eviction else "", each._replace(admission=(), reserved="")
                yield Answer(job, each.key, WAITS, "it waits again", each.cluster_queue, waiting, evicted_by=preemptor)

    def _answer_admitted(self, answer: Answer, workload: Workload) -> Answer:
        used = workload.usage
        loans = tuple(loan for loan in self._loans.get(answer.cluster_queue, ()) if used.get(loan.pair))
        evictions = tuple(self._by_preemptor.get(workload.key, ()))
        evicted = self._last_eviction.get(workload.key)
        found = answer._replace(loans=loans, evictions=evictions)
        if workload.key in self._assumed and evicted is None:
            has_quota = any(each.reserved for each in answer.job.workloads if each.key == workload.key)
            return found._replace(decision=RUNNING, reason="it runs already" if has_quota else "it is assumed to run")
        if evictions:
            names = ", ".join(f"`{each.workload}` ({each.reason})" for each in evictions)
            return found._replace(decision=PREEMPTS, reason=f"it evicts {names}")
        outcome = self._scheduler.outcomes.get(workload.key)
        if loans and outcome is not None and outcome.level:
            shown = ", ".join(
                f"`{show_amount(loan.pair.resource, loan.amount)}` of `{loan.pair.resource}` from "
                f"{'cohort ' if loan.is_from_cohort else ''}`{loan.lender}`"
                for loan in loans
            )
            return found._replace(decision=BORROWS, reason=f"its queue borrows {shown}")
        reason = f"ClusterQueue `{answer.cluster_queue}` has quota for it"
        gated = sum(each.count - sum(count for _, count in each.domains) for each in workload.admission if each.domains)
        if gated > 0:
            reason += (
                f", but {gated} of its pods fill no slice and stay gated; use a `podset-slice-size` that divides them"
            )
        return found._replace(decision=ADMITTED, reason=reason)

    def _answer_waiting(self, answer: Answer, workload: Workload) -> Answer:
        queue = self._snapshot.queues[answer.cluster_queue]
        evicted = self._last_eviction.get(workload.key)
        found = answer._replace(decision=WAITS, evicted_by=evicted.preemptor if evicted else "")
        if workload.key in self._held:
            preemptor = self._held[workload.key]
            reason = f"`{preemptor}` evicts it each time it is admitted"
            return found._replace(reason=reason, blockers=(preemptor,))
        if not workload.is_active:
            return found._replace(reason="its Workload is deactivated; set `active: true` in its `spec`")
        head = self._scheduler.find_head(queue.name) if queue.strategy == STRICT_FIFO else None
        if head is not None and head.key != workload.key:
            state = (
                "waits before it" if self._context.find_obstacle(head) is None else "is before it and never admitted"
            )
            reason = f"`{head.key}` {state}, and ClusterQueue `{queue.name}` admits in strict order"
            return found._replace(reason=reason, blockers=(head.key,))
        if workload.is_held:
            return found._replace(
                reason=f"its annotation `{GATED_BY}` keeps it waiting until you remove the annotation"
            )
        message, shortages = self._explain_shortage(workload, queue.name)
        pairs = frozenset(FlavorResource(each.flavor, each.resource) for each in shortages)
        blockers = tuple(islice(self._list_users(pairs, queue.name), _MAX_BLOCKERS))
        if not shortages:
            cause = message.partition(": ")[2]
            reason = f"there is no place for its pods now: {cause}" if "topology" in message else message
            return found._replace(reason=reason or "it is not its turn", blockers=blockers)
        lacks = ", ".join(
            f"`{show_amount(each.resource, each.missing)}` of `{each.resource}` in flavor `{each.flavor}`"
            for each in shortages
        )
        return found._replace(reason=f"it lacks {lacks}", shortages=shortages, blockers=blockers)

    def _explain_shortage(self, workload: Workload, queue: str) -> tuple[str, tuple[Shortage, ...]]:
        """Return the message of an assignment, and what a workload lacks; found once for all of the same shape.

        A workload with one pod set lacks what its closest flavor lacks, and needs no message. For the others, the last
        assignment counts. A workload that had tried some flavors before goes on with the next one; if that explains
        nothing, the assignment is one that begins with the first flavor. A workload that can run with fewer pods waits
        for these.
        """
        scheduler, tried = self._scheduler, self._scheduler.assignments
        key = workload.key if workload.key in tried else scheduler.pending[queue].find_tried(workload) or workload.key
        if key not in self._shortages:
            closest = self._find_closest(workload, queue)
            if closest and len(workload.pod_sets) == 1:
                self._shortages[key] = "", closest
                return self._shortages[key]
            is_partial = any(each.min_count is not None for each in workload.pod_sets)
            assignment = None if is_partial else tried.get(key)
            shortages = tuple(self._list_shortages(assignment, queue)) if assignment is not None else ()
            if assignment is None or not shortages:
                assignment = scheduler.nominator.explain(workload, queue)
                shortages = tuple(self._list_shortages(assignment, queue))
            self._shortages[key] = assignment.message, (closest or shortages) if shortages else ()
        return self._shortages[key]

    def _list_shortages(self, assignment: Assignment, queue: str) -> Iterator[Shortage]:
        """Yield what is missing in the flavors that were chosen, or else in the first that had too little left."""
        wanted: dict[FlavorResource, int] = dict(assignment.usage)
        for each in assignment.pod_sets:
            chosen = next((attempt.flavor for attempt in each.attempts if attempt.no_fit == WAITING_FOR_QUOTA), None)
            if chosen is not None and not each.flavors:
                for resource, amount in each.requests.items():
                    pair = FlavorResource(chosen, resource)
                    wanted[pair] = wanted.get(pair, 0) + amount
        node = self._snapshot.nodes[queue]
        for pair, amount in wanted.items():
            missing = amount - max(0, node.available(pair))
            if missing > 0:
                yield Shortage(pair.resource, pair.flavor, missing)

    def _find_closest(self, workload: Workload, queue: str) -> tuple[Shortage, ...]:
        """Return what is missing in the flavors in which the least is.

        A flavor that could never hold the pods counts only if there is no other.
        """
        node, known = self._snapshot.nodes[queue], self._snapshot.flavors
        wanted = Counter[FlavorResource]()
        for pod_set in workload.pod_sets:
            count = count_least(pod_set)
            amounts = {**pod_set.total(count), PODS: count}
            for group in self._snapshot.queues[queue].groups:
                own = {name: amount for name, amount in amounts.items() if name in group.resources and amount}
                usable = [
                    each for each in group.flavors if each in known and not find_node_mismatch(known[each], pod_set)
                ]

                def measure(flavor: str, own: Mapping[str, int] = own) -> tuple[bool, int, float]:
                    pairs = {FlavorResource(flavor, name): amount for name, amount in own.items()}
                    missing = {
                        pair: max(0, wanted[pair] + amount - max(0, node.available(pair)))
                        for pair, amount in pairs.items()
                    }
                    is_small = any(wanted[pair] + amount > node.potential(pair) for pair, amount in pairs.items())
                    devices = sum(amount for pair, amount in missing.items() if is_device(pair.resource))
                    return is_small, devices, sum(amount / pairs[pair] for pair, amount in missing.items())

                if own and usable:
                    chosen = min(usable, key=measure) if len(usable) > 1 else usable[0]
                    wanted.update({FlavorResource(chosen, name): amount for name, amount in own.items()})
        lacking = ((pair, amount - max(0, node.available(pair))) for pair, amount in wanted.items())
        return tuple(Shortage(pair.resource, pair.flavor, missing) for pair, missing in lacking if missing > 0)

    def requested(self, answer: Answer) -> Usage:
        """Return what a waiting workload would use; of several flavors, the first that its queue would try."""
        workload, found = answer.workload, dict[FlavorResource, int]()
        if workload is None:
            return found
        if answer.key in self._refused:
            return dict(self._refused[answer.key][1].usage)
        queue = self._snapshot.queues[answer.cluster_queue]
        lacking = {each.resource: each.flavor for each in answer.shortages}
        for pod_set in workload.pod_sets:
            for resource, amount in {**pod_set.total(), PODS: pod_set.count}.items():
                group = queue.find_group(resource)
                if group is not None:
                    pair = FlavorResource(self._guess_flavor(pod_set, group, lacking), resource)
                    found[pair] = found.get(pair, 0) + amount
        return found

    def _guess_flavor(self, pod_set: PodSet, group: ResourceGroup, lacking: Mapping[str, str]) -> str:
        """Return the flavor in which a pod set lacks a resource of a group; else the first that its pods can use."""
        if len(group.flavors) < 2:
            return group.flavors[0] if group.flavors else ""
        known = self._snapshot.flavors
        lacks = (lacking[name] for name in group.resources if name in lacking and pod_set.requests.get(name))
        usable = (each for each in group.flavors if each not in known or not find_node_mismatch(known[each], pod_set))
        return next(lacks, None) or next(usable, group.flavors[0])

    def _list_users(self, pairs: frozenset[FlavorResource], queue: str) -> Iterator[str]:
        """Yield the workloads that use any of these: first those of the queue itself, then those of its cohort."""
        node = self._snapshot.nodes[queue]
        if (node.tree, pairs) not in self._users_of_tree:
            root = node.root
            names = [] if root.is_queue else [each.name for each in self._members[root.name]]
            users = [(name, key) for name in names for key in self._list_users_of(name, pairs)]
            self._users_of_tree[node.tree, pairs] = users
        yield from self._list_users_of(queue, pairs)
        yield from (key for name, key in self._users_of_tree[node.tree, pairs] if name != queue)

    def _list_users_of(self, queue: str, pairs: frozenset[FlavorResource]) -> list[str]:
        if queue not in self._users:
            users = self._users[queue] = {}
            for key, workload in self._snapshot.workloads[queue].items():
                for pair, amount in workload.usage.items():
                    if amount:
                        users.setdefault(pair, []).append(key)
        return sorted({key for pair in pairs for key in self._users[queue].get(pair, ())})
