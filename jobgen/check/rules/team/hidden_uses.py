"""What a team's objects take without a request, a queue or a reference that says so."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.check.team_limits import reaches_others
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.team_uses import (
    DEVICES,
    EXTERNAL_NAME,
    FINALIZERS,
    KEPT,
    NAMESPACES,
    NO_DEVICES,
    TRACKING,
    TRAFFIC,
    VISIBLE_DEVICES,
)
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

_ADVICE = "request them in `resources`, and remove it"


@rule("manifest", ERROR)
def foreign_traffic(manifest: Manifest) -> Iterator[Violation]:
    """A host or an address through which a team's object takes the traffic of others.

    `externalIPs` of a Service take the traffic for an address in the whole cluster. A host of a Service in another
    namespace, such as `api.vision.svc.cluster.local` in a VirtualService, takes that of the other team.
    `externalName` of a Service gives the Service of another team a second name.

    Remove the host or the address, or let a folder of the platform team have the object.

    When to turn it off: a route between two teams that both want belongs in a folder of the platform team, which
    a comment in either team's file cannot replace.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what != TRAFFIC:
            continue
        owner = team.find_owner(NAMESPACES, use.value)
        if use.qualifier == "externalIPs":
            message = Sentence("`externalIPs` take the traffic for `{}` in the whole cluster; remove it", use.value)
        elif use.qualifier == EXTERNAL_NAME:
            # Services of the platform team have names like this in each namespace.
            if not owner or owner == team.team or team.allows(NAMESPACES, use.value):
                continue
            message = Sentence(
                "`externalName` leads to namespace `{}` of team `{}`; use a Service of your own", use.value, owner
            )
        elif use.value == "*" and reaches_others(team):
            message = Sentence(
                "host `{}` matches the Services of all teams; write the host of one Service", use.qualifier
            )
        elif owner or (".svc" in use.qualifier and use.value != "*" and not team.allows(NAMESPACES, use.value)):
            whose = f"of team `{owner}`" if owner else f"that team `{team.team}` cannot use"
            message = Sentence(
                "host `{}` is in namespace `{}` {}; use a host of your own", use.qualifier, use.value, whose
            )
        else:
            continue
        yield Violation(use.place, message, evidence=(use.value,))


@rule("manifest", ERROR)
def unrequested_devices(manifest: Manifest) -> Iterator[Violation]:
    """Devices that a team's pod gets from the container runtime, without a request.

    Annotations `cdi.k8s.io/…`, variables such as `NVIDIA_VISIBLE_DEVICES`, mounts below
    `/var/run/nvidia-container-devices` and `adminAccess` of a claim give a container devices that no scheduler, queue
    or budget counts, and that pods of others use at the same time.

    Request the devices in `resources`, and remove the annotation, variable, mount or field.

    When to turn it off: a monitor that must see all GPUs is an agent of the platform, and belongs in its folder;
    no team can accept this finding for itself.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == DEVICES:
            message = Sentence("`{}` gives the pod devices that it does not request", use.qualifier)
            yield Violation(use.place, Sentence("{}; {}", message, _ADVICE), evidence=(use.qualifier, use.value))
    for container in (each for pod in manifest.pods for each in pod.all_containers if each.data.get("envFrom")):
        for source in as_list(container.data["envFrom"]) if not container.own_devices else ():
            reference, prefix = as_mapping(get_path(source, "configMapRef")), as_text(as_mapping(source).get("prefix"))
            data = manifest.find_config(manifest.namespace, as_text(reference.get("name"))) if reference else None
            for key, value in as_mapping(data).items():
                if f"{prefix}{key}" in VISIBLE_DEVICES and as_text(value) not in NO_DEVICES:
                    message = Sentence(
                        "`{}{}` of this ConfigMap gives the pod devices that it does not request", prefix, key
                    )
                    yield Violation(At(reference, "name"), Sentence("{}; {}", message, _ADVICE))


@rule("manifest", ERROR)
def team_untracked_object(manifest: Manifest) -> Iterator[Violation]:
    """An object of a team that stays when it is deleted from Git, or that says that another Application has it.

    Argo CD sets `argocd.argoproj.io/tracking-id` itself. With the id of another Application, the object is shown and
    deleted as part of that one. A finalizer of the team's own keeps an object that GitOps does not prune, also after
    it is deleted, so what it holds counts for no budget any more. So does a Deployment, a schedule or another
    object that never ends, with accelerators and `Prune=false`. A job can have it, to finish.

    Remove the annotation. Remove the finalizer, or let GitOps prune the object.

    When to turn it off: a job that has to finish after its removal can have `Prune=false` without a finding. All
    else that outlives Git belongs to a folder of the platform team.
    """
    team = manifest.team
    if team is None:
        return
    for use in manifest.uses:
        if use.what == TRACKING:
            message = Sentence(
                "`{}` is set by Argo CD, so team `{}` cannot set it; remove it", use.qualifier, team.team
            )
            yield Violation(use.place, message, evidence=(use.value,))
        elif use.what == FINALIZERS:
            message = Sentence(
                "finalizer `{}` keeps an object that is not pruned when it is deleted from Git", use.value
            )
            yield Violation(use.place, Sentence("{}; remove the finalizer", message), evidence=(use.value,))
        elif use.what == KEPT and (manifest.group, manifest.kind_name) in _ENDLESS and _has_accelerators(manifest):
            message = Sentence(
                "`{}` keeps the accelerators of this {} when it is deleted from Git", use.value, manifest.kind_name
            )
            yield Violation(use.place, Sentence("{}; remove it", message), evidence=(use.qualifier,))


_ENDLESS = frozenset(
    tuple(each.rpartition("/")[::2])
    for each in """apps/DaemonSet apps/Deployment apps/ReplicaSet apps/StatefulSet argoproj.io/CronWorkflow
    argoproj.io/Rollout batch/CronJob batch.volcano.sh/CronJob leaderworkerset.x-k8s.io/LeaderWorkerSet
    ray.io/RayCluster ray.io/RayCronJob ray.io/RayService serving.knative.dev/Service
    serving.kserve.io/InferenceService sparkoperator.k8s.io/ScheduledSparkApplication ReplicationController""".split()
)
"""The kinds whose pods do not end by themselves, or are started again and again."""


def _has_accelerators(manifest: Manifest) -> bool:
    # Imported late: few objects are kept.
    from jobgen.check.created_pods import find_created_pods

    return any(count and any(pod.devices.values()) for pod, count in find_created_pods(manifest).pods)
