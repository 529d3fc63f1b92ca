"""What the team of a file may use."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Fact, FactViolation, Violation, rule
from jobgen.check.team_limits import (
    Target,
    advise,
    find_accelerated_pods,
    find_foreign_uses,
    find_scaling,
    is_kind_allowed,
    measure_use,
    name_target,
    requires_queue,
)
from jobgen.k8s.kinds import CLUSTER_SCOPED
from jobgen.k8s.kueue import advise_queue
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import sum_gpus
from jobgen.k8s.team_uses import (
    ACCOUNTS,
    IDENTITIES,
    KINDS,
    LABELS,
    NAMESPACES,
    NODES,
    PRIORITIES,
    PRIORITY_NUMBERS,
    QUEUES,
    VOLUMES,
)
from jobgen.spec.overlay import Cluster
from jobgen.spec.teams import count_units


@rule("manifest", ERROR)
def foreign_namespace(manifest: Manifest) -> Iterator[Violation]:
    """A namespace that the file's team cannot use.

    A team's file lists the namespaces of its objects. An object in another namespace takes the quota of other teams,
    and can use their secrets and volumes. References to objects in other namespaces also count. An object without a
    namespace gets one from the tool that applies it, which can be any.

    Use one of the team's namespaces, or ask the platform team to add this one to the team's file.
    """
    yield from find_foreign_uses(manifest, NAMESPACES, "namespace")
    team = manifest.team
    if team is None or NAMESPACES not in team.allowed or manifest.kind_name in CLUSTER_SCOPED:
        return
    if not manifest.namespace:
        message = f"the object has no namespace; {advise(team, NAMESPACES)}"
        yield Violation(manifest.metadata.get("name", manifest.object), message)


@rule("manifest", ERROR)
def foreign_priority_class(manifest: Manifest) -> Iterator[Violation]:
    """A priority class that the file's team cannot use.

    A job with a higher priority preempts the jobs of others. If the team's file lists classes, a number in
    `priority` without a class also counts.

    Use one of the team's priority classes, or ask the platform team to add this one to the team's file.
    """
    yield from find_foreign_uses(manifest, PRIORITIES, "priority class")
    team = manifest.team
    if team is None or PRIORITIES not in team.allowed:
        return
    for use in manifest.uses:
        if use.what == PRIORITY_NUMBERS:
            message = f"`priority: {use.value}` is not allowed without a priority class; {advise(team, PRIORITIES)}"
            yield Violation(use.node, message, evidence=(use.value,))


@rule("manifest", ERROR)
def foreign_queue(manifest: Manifest) -> Iterator[Violation]:
    """A queue that the file's team cannot use.

    A team's file lists the queues that its jobs can use. A job in another queue takes the quota of other teams. Labels,
    annotations and fields that name a queue count, also of objects inside this one.

    Use one of the team's queues, or ask the platform team to add this one to the team's file.
    """
    yield from find_foreign_uses(manifest, QUEUES, "queue")


@rule("manifest", ERROR)
def foreign_service_account(manifest: Manifest) -> Iterator[Violation]:
    """A service account that the file's team cannot use.

    A pod has the permissions of its service account. With another team's service account, it can read and change what
    belongs to that team. `default` is always allowed.

    Use one of the team's service accounts, or ask the platform team to add this one to the team's file.
    """
    yield from find_foreign_uses(manifest, ACCOUNTS, "service account", always=("default",))


@rule("manifest", ERROR)
def foreign_team_label(manifest: Manifest) -> Iterator[Violation]:
    """A label, also on pods, that names another team than the file's owner.

    Budgets, reports and policies count an object for the team that its label names: `team` with the name of a team, or
    a label that the files of both teams set.

    Remove the label; the team's file can set it for all of its jobs.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        owner = team.find_labeled(use.qualifier, use.value) if use.what == LABELS else ""
        if owner:
            message = f"the label names team `{owner}`, but team `{team.team}` owns the file; remove it"
            yield Violation(use.node, message, evidence=(use.value,))


def collect_volumes(manifest: Manifest) -> Iterator[Fact]:
    """Yield the volumes that an object names, or the volume that it is, with the namespace that it is reserved for."""
    team = manifest.team
    if team is None:
        return
    if manifest.kind_name == "PersistentVolume" and not manifest.group:
        namespace = as_text(get_path(manifest.spec, "claimRef", "namespace"))
        owners = team.claims.list_owners(NAMESPACES, namespace) if namespace else [team.team]
        yield Fact(("", manifest.name, namespace, tuple(owners)), ("metadata", "name"))
    elif manifest.kind_name == "PersistentVolumeClaim" and not manifest.group:
        name = as_text(manifest.spec.get("volumeName"))
        if name:
            yield Fact((team.team, name, manifest.namespace, ()), ("spec", "volumeName"))
    else:
        for name in dict.fromkeys(use.value for use in manifest.uses if use.what == VOLUMES):
            yield Fact((team.team, name, manifest.namespace, ()), ("metadata", "name"))


@rule("fleet", ERROR, collect=collect_volumes)
def foreign_volume(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A claim for a PersistentVolume of another team, by its name in `volumeName`.

    The volume has the other team's data. A volume belongs to the team whose namespace is in its `claimRef`; without
    one, to the team whose folder declares it.

    Remove `volumeName`, or ask the volume's owner to set `claimRef` to this claim.
    """
    volumes = {fact.value[1]: fact for fact in facts if not fact.value[0]}
    for fact in facts:
        team, name, namespace, _ = fact.value
        volume = volumes.get(name) if team else None
        if volume is None:
            continue
        _, _, reserved, owners = volume.value
        if owners and team not in owners and (not reserved or reserved != namespace):
            message = f"volume `{name}` belongs to team `{owners[0]}`; remove `volumeName`"
            related = ((volume, f"`{name}` is declared here"),)
            yield FactViolation(fact, message, related, evidence=(team, name))


@rule("manifest", ERROR)
def kind_not_allowed(manifest: Manifest) -> Iterator[Violation]:
    """An object, or an object inside it, of a kind that the file's team cannot have.

    Objects of the whole cluster affect all teams. Roles, secrets, quotas and Applications grant access, or deploy other
    objects without review. Without `kinds` in the team's file, these are not allowed.

    Move the object to a folder of the platform team, or ask it to add the kind to the team's `kinds`.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == KINDS and not is_kind_allowed(team, use):
            what = advise(team, KINDS) if KINDS in team.allowed else "move it to a folder of the platform team"
            message = f"team `{team.team}` cannot have objects of kind `{use.value}`; {what}"
            yield Violation(use.node, message, evidence=(use.value,))


@rule("job", ERROR)
def platform_not_allowed(manifest: Manifest) -> Iterator[Violation]:
    """A job on a platform that the file's team cannot use.

    A team's file lists the platforms of its jobs, for example to reserve an operator for other teams.

    Use one of the listed platforms, or ask the platform team to add this one to the team's file.
    """
    team, kind = manifest.team, manifest.kind
    if team is None or kind is None or team.allows("platforms", kind.platform):
        return
    message = f"platform `{kind.platform}` is not allowed for team `{team.team}`; {advise(team, 'platforms')}"
    yield Violation(manifest.object["kind"], message, evidence=(kind.platform,))


_MAX_RELATED = 5


def collect_team_gpus(manifest: Manifest) -> Iterator[Fact]:
    """Yield what a job requests of each limit of its team's budget."""
    team = manifest.team
    if team is None:
        return
    scaling = find_scaling(manifest)
    if scaling:
        yield Fact((team.team, "", 0, scaling[1], "", (), 0, scaling[0]), ("metadata", "name"))
    for name, limit, amount, shared, each in measure_use(manifest, team.budget):
        if amount or shared or each:
            value = (team.team, name, limit, amount, manifest.name, shared, each, name_target(manifest))
            yield Fact(value, ("metadata", "name"))


@rule("fleet", ERROR, collect=collect_team_gpus)
def team_budget_exceeded(facts: list[Fact], cluster: Cluster) -> Iterator[FactViolation]:
    """A team's jobs that together exceed its budget.

    A team's file declares its `budget`: GPUs, devices of some types, jobs and pods, also for single environments.
    All jobs in the team's folders count, except suspended jobs that no queue starts. Objects that are scaled count with
    the most replicas that a HorizontalPodAutoscaler or a ScaledObject can set.

    Suspend, shrink or remove some of the jobs, or raise the budget in the team's file.
    """
    by_line: dict[tuple[str, str], list[Fact]] = {}
    scales: dict[Target, int] = {}
    for fact in facts:
        if not fact.value[1]:
            scales[fact.value[7]] = max(scales.get(fact.value[7], 0), fact.value[3])
    for fact in facts:
        team, name, limit, amount, job, shared, each, target = fact.value
        if name:
            most = max(amount, each * scales.get(target, 0))
            by_line.setdefault((team, name), []).append(fact._replace(value=(team, name, limit, most, job, shared)))
    for (team, name), jobs in by_line.items():
        limit = jobs[0].value[2]
        total = sum_gpus((fact.value[3], fact.value[5]) for fact in jobs)
        if total > limit:
            # Reported once, on the largest job.
            largest, *others = sorted(jobs, key=lambda fact: (-fact.value[3], fact.value[4]))
            named = others[:_MAX_RELATED]
            related = tuple((fact, f"`{fact.value[4]}`: {count_units(fact.value[3], name)}") for fact in named)
            what = f"{'has' if name == 'jobs' else 'requests'} {count_units(total, name)}"
            message = f"team `{team}` {what}, above its budget of {limit}; suspend, shrink or remove some of its jobs"
            yield FactViolation(largest, message, related, evidence=(team, name), is_amount=True)


@rule("manifest", ERROR)
def team_cloud_identity(manifest: Manifest) -> Iterator[Violation]:
    """An annotation with which a team's service account or pod assumes a cloud identity.

    IAM roles for service accounts and workload identity give a pod the permissions of a cloud account, such as that of
    another team. Only the platform team decides who assumes it.

    Move the ServiceAccount to a folder of the platform team, which allows the team to use it with `serviceAccounts`.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == IDENTITIES:
            message = f"team `{team.team}` cannot choose the cloud identity `{use.value}`"
            advice = "let a folder of the platform team have the ServiceAccount"
            yield Violation(use.node, f"{message}; {advice}", evidence=(use.qualifier, use.value))


@rule("manifest", ERROR)
def team_node_name(manifest: Manifest) -> Iterator[Violation]:
    """`nodeName` in a pod of a team.

    The pod skips the scheduler and with it the queue, the quotas, the taints of nodes and the pods that wait for them.

    Use a `nodeSelector`.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == NODES:
            message = f"`nodeName: {use.value}` skips the scheduler, which limits team `{team.team}`"
            yield Violation(use.node, f"{message}; use a `nodeSelector`", evidence=(use.value,))


@rule("manifest", WARNING)
def uncounted_accelerators(manifest: Manifest) -> Iterator[Violation]:
    """Accelerators of a team with a budget, whose number is known only when the object runs.

    A Workflow can run a step for each item of a list that an earlier step writes, or take the number of GPUs from a
    parameter. Whether the team stays within its budget is then not known before. What is not known does not count.

    Write the number: `parallelism`, `withItems`, `withSequence`, or the amount itself.
    """
    team = manifest.team
    if team is None or not (team.budget.devices or team.budget.gpus is not None):
        return
    # Imported late: most repositories have no teams.
    from jobgen.check.created_pods import find_created_pods

    unknown = {(id(node), what): (node, what) for node, what in find_created_pods(manifest).unknown}
    for node, what in unknown.values():
        message = f"accelerators that do not count for the budget of team `{team.team}`: {what}; write the number"
        yield Violation(manifest.metadata.get("name", manifest.object) if node is None else node, message)


@rule("manifest", ERROR)
def unqueued_accelerators(manifest: Manifest) -> Iterator[Violation]:
    """An object with accelerators and without a queue, although the file's team has queues.

    A team's file lists the queues of its jobs. Accelerators outside of queues count against no quota, so other teams
    wait for what was promised to them. Pods, Deployments, StatefulSets and all other kinds that create pods count.

    Set `queue`, or the label `kueue.x-k8s.io/queue-name`, to one of the team's queues. Where there are no queues, set
    `queues: []` for the environment in the team's file.
    """
    team = manifest.team
    if team is None or not requires_queue(team):
        return
    for owner, pods in find_accelerated_pods(manifest):
        advice = advise_queue(owner, pods)
        if advice:
            message = f"the pods request accelerators without a queue; {advice}; {advise(team, QUEUES)}"
            yield Violation(manifest.metadata.get("name", manifest.object), message)
            return
