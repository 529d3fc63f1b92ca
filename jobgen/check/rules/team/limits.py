"""What the team of a file may use."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, WARNING, Fact, FactViolation, Violation, rule
from jobgen.check.team_limits import (
    DEFAULT_QUEUE,
    admit_by_default,
    advise,
    find_accelerated_pods,
    find_foreign_uses,
    measure_use,
    reaches_others,
    requires_queue,
)
from jobgen.k8s.devices import CLASS_RESOURCE, is_device, may_be_accelerator, name_device
from jobgen.k8s.kinds import CLUSTER_SCOPED
from jobgen.k8s.kueue import advise_queue
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.resources import sum_gpus
from jobgen.k8s.team_uses import (
    ACCOUNTS,
    IDENTITIES,
    KINDS,
    LABELS,
    NAMESPACES,
    NODES,
    OWNERS,
    PRIORITIES,
    PRIORITY_NUMBERS,
    QUEUES,
    SELECTED_NAMESPACES,
    UNREAD,
)
from jobgen.model.place import At, Place, find_at, identify
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence
from jobgen.spec.overlay import Cluster
from jobgen.spec.teams import count_units

if TYPE_CHECKING:
    from jobgen.rendering.config import ProjectConfig


@rule("manifest", ERROR)
def foreign_namespace(manifest: Manifest) -> Iterator[Violation]:
    """A namespace that the file's team cannot use.

    A team's file lists the namespaces of its objects. An object in another namespace takes the quota of other teams,
    and can use their secrets and volumes. References to objects in other namespaces also count. An object without a
    namespace gets one from the tool that applies it, which can be any.

    Use one of the team's namespaces, or ask the platform team to add this one to the team's file.

    When to turn it off: a file of the team cannot suppress it. The platform team allows a namespace in
    `namespaces`, or deploys the object from a folder of its own.
    """
    yield from find_foreign_uses(manifest, NAMESPACES, "namespace")
    team = manifest.team
    if team is not None and reaches_others(team):
        for use in manifest.uses:
            if use.what == SELECTED_NAMESPACES:
                message = Sentence("`{}` selects namespaces of other teams; name the namespaces instead", use.value)
                yield Violation(use.place, message, evidence=(use.value,))
    if team is None or NAMESPACES not in team.allowed or manifest.kind_name in CLUSTER_SCOPED:
        return
    if not manifest.namespace:
        message = Sentence("the object has no namespace; {}", advise(team, NAMESPACES))
        yield Violation(find_at(manifest.metadata, "name") or manifest.object, message)


@rule("manifest", ERROR)
def foreign_priority_class(manifest: Manifest) -> Iterator[Violation]:
    """A priority class that the file's team cannot use.

    A job with a higher priority preempts the jobs of others. If the team's file lists classes, a number in
    `priority` without a class also counts.

    Use one of the team's priority classes, or ask the platform team to add this one to the team's file.

    When to turn it off: no comment of the team counts. For an urgent run, the platform team adds the class under
    `environments` of the team, and removes it afterwards.
    """
    yield from find_foreign_uses(manifest, PRIORITIES, "priority class")
    team = manifest.team
    if team is None or PRIORITIES not in team.allowed:
        return
    for use in manifest.uses:
        if use.what == PRIORITY_NUMBERS:
            message = Sentence(
                "`priority: {}` is not allowed without a priority class; {}", use.value, advise(team, PRIORITIES)
            )
            yield Violation(use.place, message, evidence=(use.value,))


@rule("manifest", ERROR)
def foreign_queue(manifest: Manifest) -> Iterator[Violation]:
    """A queue that the file's team cannot use.

    A team's file lists the queues that its jobs can use. A job in another queue takes the quota of other teams. Labels,
    annotations and fields that name a queue count, also of objects inside this one.

    Use one of the team's queues, or ask the platform team to add this one to the team's file.

    When to turn it off: only the owner of `teams/` can decide: an entry in `queues` lends the queue, with a history
    of who had it when.
    """
    yield from find_foreign_uses(manifest, QUEUES, "queue")


@rule("manifest", ERROR)
def foreign_service_account(manifest: Manifest) -> Iterator[Violation]:
    """A service account that the file's team cannot use.

    A pod has the permissions of its service account. With another team's service account, it can read and change what
    belongs to that team. `default` is always allowed.

    Use one of the team's service accounts, or ask the platform team to add this one to the team's file.

    When to turn it off: not from within the team's files. A shared account is better than one of another team:
    create it and list it in `serviceAccounts` of both.
    """
    yield from find_foreign_uses(manifest, ACCOUNTS, "service account", always=("default",))


@rule("manifest", ERROR)
def foreign_team_label(manifest: Manifest) -> Iterator[Violation]:
    """A label, also on pods, that names another team than the file's owner.

    Budgets, reports and policies count an object for the team that its label names: `team` with the name of a team, or
    a label that the files of both teams set.

    Remove the label; the team's file can set it for all of its jobs.

    When to turn it off: where the label `team` means something else in an application, rename it there; budgets
    cannot follow two meanings.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        owner = team.find_labeled(use.qualifier, use.value) if use.what == LABELS else ""
        if owner:
            message = Sentence("the label names team `{}`, but team `{}` owns the file; remove it", owner, team.team)
            yield Violation(use.place, message, evidence=(use.value,))


def collect_volumes(manifest: Manifest) -> Iterator[Fact]:
    """Yield the volumes that an object names or selects, or the volume that it is."""
    if manifest.team is None:
        return
    # Imported late: most repositories have no teams.
    from jobgen.check.team_volumes import find_volume_uses

    yield from (Fact(tuple(use), path) for use, path in find_volume_uses(manifest, manifest.team))


@rule("fleet", ERROR, collect=collect_volumes)
def foreign_volume(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A PersistentVolume of another team: by its name, by its labels, or the same storage as a volume of the pod.

    The volume has the other team's data. A volume belongs to the team whose namespace is in its `claimRef`; without
    one, to the team whose folder declares it. A claim binds it with `volumeName` or with a `selector` of its labels.
    A pod reaches the same storage with an `nfs` volume of the same path, or one above or below it.

    Remove the reference, or ask the volume's owner to set `claimRef` to this claim.

    When to turn it off: data that two teams share needs a claim for each of them, or a namespace that both list.
    The volume's owner grants it, not the reader.
    """
    from jobgen.check.team_volumes import VolumeUse, find_foreign_volumes

    uses = [VolumeUse(*fact.value) for fact in facts]
    for at, volume, message in find_foreign_volumes(uses):
        related = ((facts[volume], f"`{uses[volume].name}` is declared here"),)
        yield FactViolation(facts[at], message, related, evidence=(uses[at].team, uses[volume].name))


@rule("manifest", ERROR)
def kind_not_allowed(manifest: Manifest) -> Iterator[Violation]:
    """An object, or an object inside it, of a kind that the file's team cannot have.

    Without `kinds` in its file, a team has jobs, the workloads of Kubernetes, and their configuration. Other kinds can
    grant access, deploy objects without review, affect all teams, or create pods that no budget counts. A kind whose
    pods jobgen does not count is refused for a team with a budget, unless `pods` in the team's file says how.

    Move the object to a folder of the platform team, or ask it to add the kind to the team's `kinds`.

    When to turn it off: the platform team adds kinds to `kinds` of the team, for single environments also. A team
    that could do so itself could create any permission.
    """
    team = manifest.team
    if team is None:
        return
    # Imported late: many repositories have no teams.
    from jobgen.k8s.team_kinds import explain_refusal

    for use in manifest.uses:
        if use.what == UNREAD:
            message = Sentence("team `{}` cannot create objects that are known only at run time", team.team)
            yield Violation(use.place, Sentence("{}; write the object in `manifest`", message), evidence=(use.value,))
        refusal = explain_refusal(team, use.qualifier, use.value) if use.what == KINDS else ""
        if refusal:
            hint = f"; {advise(team, KINDS)}" if KINDS in team.allowed and "; " not in refusal else ""
            yield Violation(use.place, refusal + hint, evidence=(use.value,))
    if team.has_budget and team.pods:
        # Imported late: most teams say nothing about pods.
        from jobgen.check.created_pods import find_created_pods

        for place, reason in find_created_pods(manifest).refused:
            message = Sentence("jobgen cannot count the pods for the budget of team `{}`: {}", team.team, reason)
            advice = "write what `pods` of the team's file names"
            yield Violation(place if place is not None else manifest.object, Sentence("{}; {}", message, advice))


@rule("job", ERROR)
def platform_not_allowed(manifest: Manifest) -> Iterator[Violation]:
    """A job on a platform that the file's team cannot use.

    A team's file lists the platforms of its jobs, for example to reserve an operator for other teams.

    Use one of the listed platforms, or ask the platform team to add this one to the team's file.

    When to turn it off: to try another operator, the platform team adds it to `platforms` of the team in the
    environment for tests.
    """
    team, kind = manifest.team, manifest.kind
    if team is None or kind is None or team.allows("platforms", kind.platform):
        return
    message = Sentence(
        "platform `{}` is not allowed for team `{}`; {}", kind.platform, team.team, advise(team, "platforms")
    )
    yield Violation(At(manifest.object, "kind"), message, evidence=(kind.platform,))


_MAX_RELATED = 5


_SCALING, _DEFAULT, _USE = "scaling", "default queue", "use"
"""The first words of facts: about what scales others, about LocalQueues, and about what an object requests."""


def collect_team_gpus(manifest: Manifest) -> Iterator[Fact]:
    """Yield what a job requests of each limit of its team's budget."""
    team, path = manifest.team, ("metadata", "name")
    if team is None:
        return
    # Imported late: most repositories have no teams.
    from jobgen.check.scaling import find_scaling, name_target

    if (manifest.group, manifest.kind_name, manifest.name) == ("kueue.x-k8s.io", "LocalQueue", DEFAULT_QUEUE):
        yield Fact((_DEFAULT, manifest.namespace), path)
    for scaling in find_scaling(manifest):
        yield Fact((_SCALING, team.team, tuple(scaling)), path)
    admitted = admit_by_default(manifest)
    where = manifest.namespace if admitted is not None else ""
    for use in measure_use(admitted or manifest, team.budget):
        if use.amount or use.shared or use.each:
            of_job = (team.team, use.name, use.limit, manifest.name, name_target(manifest))
            amounts = (use.amount, use.base, use.each, use.shared, use.advice, where)
            yield Fact((_USE, *of_job, *amounts), path)


@rule("fleet", ERROR, collect=collect_team_gpus, needs_project=True, across_teams=("LocalQueue", "AppWrapper"))
def team_budget_exceeded(
    facts: list[Fact], cluster: Cluster, project: ProjectConfig, environment: str
) -> Iterator[FactViolation]:
    """A team's jobs that together exceed its budget.

    A team's file declares its `budget`: GPUs, devices of some types, jobs and pods, also for single environments.
    All jobs in the team's folders count, except suspended jobs that no queue starts. Objects that are scaled count with
    the most replicas that a HorizontalPodAutoscaler or a ScaledObject can set, and runs of a schedule with the most
    that can overlap.

    Suspend, shrink or remove some of the jobs, or raise the budget in the team's file.

    When to turn it off: a budget is raised in the team's file, for one environment if need be. The team itself can
    suspend jobs that no queue starts, which do not count.
    """
    from jobgen.check.scaling import BudgetedUse, Scalable, Scaling, scale_amounts

    by_line: dict[tuple[str, str], list[tuple[Fact, BudgetedUse]]] = {}
    scalings: dict[str, list[Scaling]] = {}
    defaults = {fact.value[1] for fact in facts if fact.value[0] == _DEFAULT}
    uses = [(fact, BudgetedUse(*fact.value[1:])) for fact in facts if fact.value[0] == _USE]
    if any(use.default_in for _, use in uses):
        defaults |= set(_list_default_queues(project, cluster))
    for fact in facts:
        if fact.value[0] == _SCALING:
            scalings.setdefault(fact.value[1], []).append(Scaling(*fact.value[2]))
    for fact, use in uses:
        if not use.default_in or use.default_in in defaults:
            by_line.setdefault((use.team, use.line), []).append((fact, use))
    for (team, name), known in by_line.items():
        amounts = scale_amounts(
            [Scalable(use.target, use.amount, use.base, use.each) for _, use in known], scalings.get(team, ())
        )
        jobs = [(amount, use, fact) for amount, (fact, use) in zip(amounts, known, strict=True) if amount or use.shared]
        limit = known[0][1].limit
        total = sum_gpus((amount, use.shared) for amount, use, _ in jobs)
        if total > limit:
            # Reported once, on the largest job.
            (_, largest, at), *others = sorted(jobs, key=lambda job: (-job[0], job[1].job))
            named = others[:_MAX_RELATED]
            related = tuple((fact, f"`{use.job}`: {count_units(amount, name)}") for amount, use, fact in named)
            what = f"{'has' if name == 'jobs' else 'requests'} {count_units(total, name)}"
            if largest.advice:
                what = f"can request any number of {count_units(total, name).partition(' ')[2]}"
            advice = Sentence("suspend, shrink or remove some of its jobs")
            if largest.advice:
                advice = Sentence("nothing limits `{}`: {}", largest.job, largest.advice)
            message = Sentence("team `{}` {}, above its budget of {}; {}", team, what, limit, advice)
            yield FactViolation(at, message, related, evidence=(team, name), is_amount=True)


def _list_default_queues(project: ProjectConfig, cluster: Cluster) -> Iterator[str]:
    """Yield the namespaces whose captured state has a LocalQueue `default`."""
    # Imported late: few repositories have suspended jobs of teams.
    from jobgen.check.cluster.exported import read_exported

    for obj in read_exported(project.layers, cluster.state, []) if cluster.state else ():
        if as_text(obj.get("kind")) == "LocalQueue" and as_text(get_path(obj, "metadata", "name")) == DEFAULT_QUEUE:
            yield as_text(get_path(obj, "metadata", "namespace"))


@rule("manifest", ERROR)
def team_cloud_identity(manifest: Manifest) -> Iterator[Violation]:
    """An annotation with which a team's service account or pod assumes a cloud identity.

    IAM roles for service accounts and workload identity give a pod the permissions of a cloud account, such as that of
    another team. Only the platform team decides who assumes it.

    Move the ServiceAccount to a folder of the platform team, which allows the team to use it with `serviceAccounts`.

    When to turn it off: the ServiceAccount with the annotation stays with the platform team, and the team lists it;
    there is no annotation that a team could choose freely without a risk for others.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == IDENTITIES:
            message = Sentence("team `{}` cannot choose the cloud identity `{}`", team.team, use.value)
            advice = "let a folder of the platform team have the ServiceAccount"
            yield Violation(use.place, Sentence("{}; {}", message, advice), evidence=(use.qualifier, use.value))


@rule("manifest", ERROR)
def team_node_name(manifest: Manifest) -> Iterator[Violation]:
    """`nodeName` in a pod of a team.

    The pod skips the scheduler and with it the queue, the quotas, the taints of nodes and the pods that wait for them.

    Use a `nodeSelector`.

    When to turn it off: for work on a broken node, the platform team runs the pod from its own folder; a node
    selector with the host name is open to every team.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == NODES:
            message = Sentence("`nodeName: {}` skips the scheduler, which limits team `{}`", use.value, team.team)
            yield Violation(use.place, Sentence("{}; use a `nodeSelector`", message), evidence=(use.value,))


@rule("manifest", WARNING)
def uncounted_accelerators(manifest: Manifest) -> Iterator[Violation]:
    """Accelerators of a team with a budget, whose number is known only when the object runs.

    A Workflow can run a step for each item of a list that an earlier step writes, or take the number of GPUs from a
    parameter. Whether the team stays within its budget is then not known before. What is not known does not count.
    Neither do devices of a DeviceClass or a claim that the repository does not have, and resources of device plugins
    that jobgen does not know.

    Write the number: `parallelism`, `withItems`, `withSequence`, or the amount itself. Limit a resource in
    `budget.devices` of the team's file.

    When to turn it off: when the list that a step works through is always short, write `parallelism` as its bound:
    then it counts, and the warning is gone.
    """
    team = manifest.team
    if team is None or not (team.budget.devices or team.budget.gpus is not None):
        return
    # Imported late: most repositories have no teams.
    from jobgen.check.created_pods import find_created_pods

    created = find_created_pods(manifest)
    unknown = {(identify(place), what): (place, what) for place, what in created.unknown}
    for place, what in unknown.values():
        message = Sentence(
            "accelerators that do not count for the budget of team `{}`: {}; write the number", team.team, what
        )
        yield Violation((find_at(manifest.metadata, "name") or manifest.object) if place is None else place, message)
    limited = frozenset(each.resource for each in team.budget.devices)
    seen: set[str] = set()
    for pod, count in created.pods:
        for what, place, reason in _find_uncounted(pod, limited) if count else ():
            if what not in seen:
                seen.add(what)
                yield Violation(
                    place, Sentence("{}, so it does not count for the budget of team `{}`", reason, team.team)
                )


def _find_uncounted(pod: Pod, limited: Container[str]) -> Iterator[tuple[str, Place, str]]:
    """Yield what a pod requests that may be accelerators and that no budget counts, with its place and the reason."""
    manifest = pod.manifest
    for container in pod.all_containers:
        for name, amount in (*container.limits.items(), *container.requests.items()):
            if "/" not in name or name in limited or not to_milli(amount):
                continue
            place = At(container.limits if name in container.limits else container.requests, name, is_key=True)
            if name.startswith(CLASS_RESOURCE):
                if manifest.read_catalog().find_resource(name.removeprefix(CLASS_RESOURCE)) is None:
                    yield name, place, f"the repository has no DeviceClass for `{name}`"
            elif is_device(name) and name != manifest.cluster.gpu_resource and name_device(name) != "GPU":
                yield name, place, f"`budget` has no entry for `{name}`"
            elif may_be_accelerator(name) and name != manifest.cluster.gpu_resource:
                yield name, place, f"jobgen does not know whether `{name}` is an accelerator"
    for claim in pod.claims.values():
        if not claim.is_counted and claim.key[1]:
            reason = claim.definition.uncounted if claim.definition else "it is not in the repository"
            yield claim.key[1], claim.place, f"the devices of {claim.kind} `{claim.key[1]}` are not known: {reason}"


@rule("manifest", ERROR)
def unqueued_accelerators(manifest: Manifest) -> Iterator[Violation]:
    """An object with accelerators and without a queue, although the file's team has queues.

    A team's file lists the queues of its jobs. Accelerators outside of queues count against no quota, so other teams
    wait for what was promised to them. Pods, Deployments, StatefulSets and all other kinds that create pods count.
    Kueue charges nothing for an object that another one controls, or whose Workload `prebuilt-workload-name` names.

    Set `queue`, or the label `kueue.x-k8s.io/queue-name`, to one of the team's queues. Where there are no queues, set
    `queues: []` for the environment in the team's file.

    When to turn it off: environments without Kueue say so with `queues: []` in the team's file. Within a cluster
    with queues, there is no exception for a single pod.
    """
    team = manifest.team
    if team is None or not requires_queue(team):
        return
    for owner, pods in find_accelerated_pods(manifest):
        of_others = next((use for use in owner.uses if use.what == OWNERS), None)
        if of_others is not None:
            message = Sentence("`{}` makes Kueue charge no quota for the object; remove it", of_others.qualifier)
            yield Violation(of_others.place, message, evidence=(of_others.qualifier,))
            return
        advice, cause = advise_queue(owner, pods)
        if advice:
            message = Sentence("the pods request accelerators without a queue; {}; {}", advice, advise(team, QUEUES))
            yield Violation(find_at(manifest.metadata, "name") or manifest.object, message, cause=cause)
            return
