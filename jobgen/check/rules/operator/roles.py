"""The roles of a job, and how many replicas they have."""

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod, Role
from jobgen.k8s.operators import choose_severity, describe_rejection, is_operator_since
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep, Severity, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import is_same_name
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import (
    ask_for,
    find_closest,
    list_alternatives,
    suggest_entry,
    suggest_rename,
    suggest_value,
    takes_any_name,
)
from jobgen.spec.replicas import RoleDescription, find_count


@rule("job", ERROR)
def missing_role(manifest: Manifest) -> Iterator[Violation]:
    """A job without a role that its operator requires, or without a role that can complete it.

    Without a required role, such as the Launcher of an MPIJob, nothing is started. Without a role that decides whether
    the job succeeded, as in a TFJob with only parameter servers, the job runs until it is deleted, which is a
    warning.

    Add the role.

    When to turn it off: for a service that is meant to run until it is deleted, such as parameter servers for
    several jobs, accept the warning at the object; the error for a role that is required has no exception.
    """
    kind = manifest.kind
    assert kind is not None
    if kind.shape not in ("map", "list") or not kind.requirements.known:
        return
    present = {role.definition.name for role in manifest.roles if role.definition}
    missing = [role.spelling for role in kind.roles.values() if role.required and role.name not in present]
    if not missing and not present.isdisjoint(kind.success or present):
        return
    place = _find_place(manifest)
    if place is None:
        return
    if missing:
        names = list_alternatives(f"`{name}`" for name in missing)
        message = Sentence(
            "the job has no {}; {}; add {}", names, describe_rejection(manifest), "it" if len(missing) == 1 else "them"
        )
        yield Violation(place, message, severity=choose_severity(manifest))
    elif not manifest.roles:
        yield Violation(place, "the job has no roles, so nothing is started; add one")
    elif kind.requirements.unknown_roles == "started":
        names = list_alternatives(f"`{kind.roles[name].spelling}`" for name in kind.success)
        yield Violation(place, Sentence("the job has no {}, so it never completes; add one", names), severity=WARNING)


def _find_place(manifest: Manifest) -> At | None:
    """Return the place of the key of the roles, or of the name of an object; None if the schema reports it."""
    assert manifest.kind is not None
    *steps, last = map(str, manifest.kind.replicas_at)
    holder = get_path(manifest.object, *steps)
    if not isinstance(holder, dict):
        return find_at(manifest.metadata, "name") or At(manifest.object, "kind")
    return At(holder, last, is_key=True) if holder.get(last) is not None else None


@rule("role", ERROR)
def unknown_role(role: Role) -> Iterator[Violation]:
    """A role that the kind does not have, often in the wrong case or of another framework.

    CRDs accept any name. Most operators then reject the job; mpi-operator starts all other roles; the controllers of
    TFJob and MXJob start the pods of the role but ignore how they end, which is a warning.

    Use a role of the kind.

    When to turn it off: for a fork of an operator with roles of its own, import its CRD and keep the finding as an
    exception for the jobs of that fork.
    """
    kind = role.manifest.kind
    if role.definition or kind is None or not role.replica_type or not kind.requirements.unknown_roles:
        return
    known = [str(known.spelling) for known in kind.roles.values()]
    severity: Severity | None = choose_severity(role.manifest)
    if kind.requirements.unknown_roles == "started":
        consequence, severity = "its pods start, but the operator ignores how they end", Severity.WARNING
    elif kind.requirements.unknown_roles == "ignored":
        consequence = "the operator ignores it and starts none of its pods"
    else:
        consequence = describe_rejection(role.manifest)
    taken = dict.fromkeys(other.replica_type for other in role.manifest.roles)
    free = [name for name in known if name not in taken]
    # A layer that means a role of the job may write it in another case.
    same = [name for name in known if name in taken and is_same_name(name, role.replica_type)]
    meant = find_closest(role.replica_type, same or free) or _find_initials(role.replica_type, free)
    message = Sentence("{} has no role `{}`{}", kind.name, role.replica_type, ask_for(meant))
    is_refused = kind.requirements.unknown_roles not in ("started", "ignored")
    place = role.place
    if kind.shape == "map":
        fix_steps, safe = suggest_rename(place, known, taken, takes_any_name if is_refused else None)
    else:
        fix_steps, safe = suggest_value(place, free, is_refused=is_refused)
    yield Violation(
        place,
        Sentence("{}{} {}", message, "" if meant else ";", consequence),
        severity=severity,
        fix_steps=fix_steps,
        safe=safe,
        meant=meant,
    )


_WORDS = lazy_pattern(r"[A-Z]?[a-z]+")


def _find_initials(word: str, known: list[str]) -> str:
    """Return the role that is called by the initials of a name: `PS` for `ParameterServer`; empty if there is none."""
    initials = "".join(part[0] for part in _WORDS.findall(word)).lower()
    return next((name for name in known if len(name) > 1 and name.lower() == initials), "")


@rule("job", WARNING, kinds=("TensorFlowTrainingJob", "PyTorchTrainingJob", "XGBoostTrainingJob"))
def duplicate_role(manifest: Manifest) -> Iterator[Violation]:
    """A role that appears twice in the list of roles.

    Pods are named after the job, the role and an index, so both entries ask for pods of the same names.

    Merge the entries into one, with the sum of their replicas.

    When to turn it off: never on TensorStack, where both entries want the same pods. Two groups of workers with
    different nodes need two jobs, or one role with an affinity.
    """
    seen: dict[str, Role] = {}
    for role in manifest.roles:
        first = seen.setdefault(role.replica_type, role)
        if first is not role:
            yield Violation(
                role.place,
                Sentence("role `{}` is listed twice; merge the two entries", role.replica_type),
                related=((first.place, "the first entry"),),
            )


@rule("job", ERROR, kinds=("TFJob",))
def chief_and_master(manifest: Manifest) -> Iterator[Violation]:
    """A TFJob with both a Chief and a Master.

    Both are names of the role that leads the job and decides whether it succeeded, so the operator rejects a job that
    has both.

    Keep `Chief`; `Master` is the older name.

    When to turn it off: never for TFJob. Jobs that are shared with an old operator, before `Chief` existed, should
    use `Master` alone rather than both.
    """
    leaders = [role for role in manifest.roles if role.name in ("chief", "master")]
    if len(leaders) > 1:
        first, second = leaders[:2]
        message = Sentence("`{}` and `{}` are the same role", first.replica_type, second.replica_type)
        message = Sentence("{}; {}; remove one of them", message, describe_rejection(manifest))
        yield Violation(second.place, message, related=((first.place, "the other role"),))


@rule("role", ERROR)
def role_without_template(role: Role) -> Iterator[Violation]:
    """A role without a pod template.

    The CRD does not require one, but the operator cannot create pods without it and rejects the job.

    Add `template.spec.containers`, or remove the role.

    When to turn it off: never; there is nothing that the operator could start. A role that only some environments
    have is better added in their overlays, complete with its template.
    """
    kind = role.manifest.kind
    if role.pod.partial or kind is None or not kind.requirements.known:
        return
    if isinstance(role.template, dict):
        # An empty template is a pod without containers, which the API server rejects.
        return
    yield Violation(
        role.place,
        Sentence("`{}` has no pod template; {}; set `template`", role.replica_type, describe_rejection(role.manifest)),
        severity=choose_severity(role.manifest),
    )


@rule("pod", ERROR, fields=("containers",))
def missing_main_container(pod: Pod) -> Iterator[Violation]:
    """A pod without a container of the name that the operator expects, such as `pytorch`.

    The operator finds the main container by its name, for its port and its exit code, and rejects a job without it.

    Rename the container that trains. Other containers can have any name.

    When to turn it off: never for kinds of Kubeflow. The name follows the kind, so a rename in a shared pod
    template needs an overlay for each framework.
    """
    kind = pod.manifest.kind
    main, wanted = pod.main_container, kind.container if kind else ""
    if kind is None or pod.role is None or not kind.requirements.container or main is None or main.name == wanted:
        return
    names = [container.data.get("name") for container in pod.containers]
    if wanted in names or not all(names):
        # The API server rejects a container without a name.
        return
    place = At(pod.containers[0].data, "name")
    remedy = f"rename `{names[0]}`" if len(names) == 1 else "rename the one that trains"
    message = Sentence("no container is named `{}`; {}; {}", wanted, describe_rejection(pod.manifest), remedy)
    severity = choose_severity(pod.manifest)
    fix_steps = (FixStep("set", place, wanted),) if len(names) == 1 else ()
    # The fix is safe where the job is certainly rejected as it is.
    yield Violation(place, message, severity=severity, fix_steps=fix_steps, safe=severity is None)


@rule("role", ERROR, kinds=("PyTorchJob", "XGBoostJob", "MPIJob"))
def missing_replicas(role: Role) -> Iterator[Violation]:
    """A role without `replicas` where the operator does not default to one pod.

    Since 1.8, the webhook of training-operator rejects a Master of a PyTorchJob or an XGBoostJob without an explicit
    `replicas: 1`. The Worker of an MPIJob has no pods without `replicas`.

    Set `replicas`.

    When to turn it off: with a training-operator before 1.8 that defaults to one pod, declare its version; the rule
    then stays silent where the default exists.
    """
    kind, described = role.manifest.kind, role.definition
    if described is None or kind is None or as_integer(role.replica_spec.get("replicas")) is not None:
        return
    since = kind.requirements.written.get(described.name)
    if since and is_operator_since(role.manifest, since):
        message = Sentence("`{}` must set `replicas: 1`; {}", role.replica_type, describe_rejection(role.manifest))
        yield Violation(role.place, message, fix_steps=suggest_entry("replicas", 1, role.replica_spec))
    elif not described.omitted:
        consequence = f"; {describe_rejection(role.manifest)}" if described.least else ""
        message = Sentence("`{}` does not set `replicas`, so it has no pods{}; set it", role.replica_type, consequence)
        yield Violation(role.place, message, fix_steps=suggest_entry("replicas", 1, role.replica_spec), safe=False)


@rule("role", ERROR)
def invalid_replica_count(role: Role) -> Iterator[Violation]:
    """A role with more or fewer pods than the operator supports, such as two masters.

    Operators require exactly one Master or Launcher, and reject the job otherwise. mpi-operator also rejects
    `replicas: 0` of the Worker, and so does training-operator 1.9 or later for a PyTorchJob; it accepts that in other
    kinds, such as MPIJob `v1`. A second Chief of TensorFlow is started, and both train as if they were alone.
    A number that the operator does not check is a warning.

    Set a supported number of replicas.

    When to turn it off: a second Chief or Master is never right. A number that only an unreleased operator accepts
    can be a warning for the environment in which you test it.
    """
    kind = role.manifest.kind
    assert kind is not None
    one = kind.replicas.shape == "one"
    node = role.replica_spec.get(str(kind.replicas_at[-1])) if one else find_count(role.replica_spec, kind.replicas)
    written = as_integer(node)
    # A kind without templates has only the number of nodes.
    described = kind.roles.get("node") if one else role.definition
    if written is None or (written < 0 and described and described.name in kind.requirements.scaled):
        # The schema of the CRD reports it.
        return
    wanted = _describe_bounds(role, described, written)
    if not wanted:
        return
    # An operator with bounds in the object uses the nearest number.
    checked = described is not None and described.name not in kind.requirements.unchecked and not kind.replicas.least
    bounded = described is not None and described.least is not None
    consequence = f"; {describe_rejection(role.manifest)}" if checked and bounded else ""
    severity = choose_severity(role.manifest) if checked or described is None else Severity.WARNING
    if one:
        message = Sentence("the job has {} but needs {}", pluralize(written, "node"), wanted)
    else:
        message = Sentence("`{}` has `replicas: {}` but needs {}", role.replica_type, written, wanted)
    paths = ((str(kind.replicas_at[-1]),),) if one else kind.replicas.counts
    found = (find_at(role.replica_spec, *map(str, path)) for path in paths)
    place = next(place for place in found if place is not None and place.node is node)
    yield Violation(place, Sentence("{}{}", message, consequence), severity=severity)


def _describe_bounds(role: Role, described: RoleDescription | None, written: int) -> str:
    """Return how many pods the role must have; an empty string if it has as many."""
    assert role.manifest.kind is not None
    least, most = (described.least, described.most) if described else (None, None)
    since = role.manifest.kind.requirements.bounds_since.get(described.name, "") if described else ""
    if not is_operator_since(role.manifest, since):
        least = None
    if (least or 0) <= written and (most is None or written <= most):
        return ""
    if least is not None and least == most:
        return f"exactly {most}"
    return f"at least {least or 0}" if written < (least or 0) else f"at most {most}"


@rule("job", ERROR)
def min_available_too_high(manifest: Manifest) -> Iterator[Violation]:
    """A `schedulingPolicy.minAvailable` above the number of pods.

    A gang scheduler starts the job when that many of its pods can run at once. The job has fewer, so it waits forever.

    Remove `minAvailable`; the default is all pods.

    When to turn it off: no scheduler can start what does not exist. If an autoscaler adds the missing pods later,
    describe them with the elastic fields of the kind instead.
    """
    if "schedulingPolicy" not in manifest.run_policy:
        return
    least = find_at(manifest.run_policy, "schedulingPolicy", "minAvailable")
    number = as_integer(least.node) if least is not None else None
    if number is not None and manifest.roles and number > manifest.pod_count:
        pods = pluralize(manifest.pod_count, "pod")
        message = Sentence(
            "`minAvailable` is {}, but the job has {}, so it never starts; remove `minAvailable`", number, pods
        )
        fix_steps = (FixStep("remove", least, key="minAvailable"),)
        counts = tuple(each for role in manifest.roles for each in role.compared_count)
        yield Violation(least, message, counts, fix_steps=fix_steps, safe=False)


_RAY_FIELDS = ("workerGroupSpecs", "rayClusterSpec", "rayClusterConfig")


@rule("manifest", ERROR, kinds=("PyTorchJob", "PaddleJob", *RAY_CLUSTERS), fields=("elasticPolicy", *_RAY_FIELDS))
def elastic_bounds(manifest: Manifest) -> Iterator[Violation]:
    """Elastic bounds that contradict each other or the number of pods.

    With `minReplicas` above `maxReplicas`, torchrun exits at once. With fewer pods than `minReplicas`, it waits for
    nodes that are never started. Pods beyond `maxReplicas` are not used, which is a warning. No operator checks this.
    KubeRay starts the nearest bound instead of `replicas`, which is also a warning: Kueue counts `replicas`.

    Make `minReplicas`, `maxReplicas` and the number of pods consistent.

    When to turn it off: for bounds that another controller rewrites before the pods exist, set the rule to `off`
    for the jobs of that controller by their `paths`; on plain operators the numbers apply as written.
    """
    if manifest.group == "ray.io":
        cluster = as_mapping(get_path(manifest.object, *RAY_CLUSTERS[manifest.kind_name]))
        for group in iter_mappings(cluster.get("workerGroupSpecs")):
            yield from _check_group(group)
        return
    policy = as_mapping(manifest.spec.get("elasticPolicy"))
    if not policy:
        return
    least, most = as_integer(policy.get("minReplicas")), as_integer(policy.get("maxReplicas"))
    if least is not None and most is not None and least > most:
        yield Violation(
            At(policy, "minReplicas"),
            Sentence("`minReplicas` is {}, which is above `maxReplicas` ({}); lower it", least, most),
        )
    elif manifest.kind_name == "PyTorchJob" and not policy.get("metrics"):
        yield from _check_pods(manifest, policy, least, most)


def _check_group(group: Mapping[str, Plain]) -> Iterator[Violation]:
    """Compare the number of workers of a group of Ray with its bounds, unless these contradict each other."""
    fields = ("replicas", "minReplicas", "maxReplicas")
    count, least, most = (as_integer(group.get(name)) for name in fields)
    if count is None or (least is not None and most is not None and least > most):
        return
    bound, name = (least, fields[1]) if least is not None and count < least else (most, fields[2])
    if bound is not None and bound >= 0 and count >= 0 and (count > bound or name == fields[1]):
        message = Sentence(
            "`replicas` of `{}` is {}, but `{}` is {}, so KubeRay starts {}",
            as_text(group.get("groupName")),
            count,
            name,
            bound,
            bound,
        )
        yield Violation(
            At(group, "replicas"),
            Sentence("{}; write `replicas: {}`, or change the bound", message, bound),
            ((At(group, name), ""),),
            WARNING,
        )


def _check_pods(
    manifest: Manifest, policy: Mapping[str, Plain], least: int | None, most: int | None
) -> Iterator[Violation]:
    """Compare the bounds with the number of pods, which is fixed without metrics; a missing bound equals the other."""
    total = manifest.pod_count
    bounds = [(bound, key) for bound, key in ((least, "minReplicas"), (most, "maxReplicas")) if bound is not None]
    if not bounds:
        return
    (low, lower), (high, upper) = bounds[0], bounds[-1]
    counts = tuple(each for role in manifest.roles for each in role.compared_count)
    if total < low:
        message = Sentence(
            "torchrun waits for {}, but the job has {}; add pods or lower `{}`", pluralize(low, "pod"), total, lower
        )
        yield Violation(At(policy, lower), message, counts)
    elif total > high:
        message = Sentence("torchrun uses at most {}, but the job has {}", pluralize(high, "pod"), total)
        message += f"; set `maxReplicas` to at least {total}"
        yield Violation(At(policy, upper), message, counts, severity=WARNING)


@rule("job", ERROR, kinds=("PyTorchJob",), fields=("elasticPolicy",))
def elastic_without_worker(manifest: Manifest) -> Iterator[Violation]:
    """A PyTorchJob with an `elasticPolicy` but without Workers.

    Only Workers are scaled. Since 1.9 the webhook rejects such a job; before that, the operator could fail on it, which
    is a warning.

    Add a Worker, or remove the `elasticPolicy`.

    When to turn it off: if a single elastic process is intended, for example to test the settings, remove the
    policy: it changes nothing for one pod.
    """
    if manifest.find_role("worker") or not isinstance(manifest.spec.get("elasticPolicy"), dict):
        return
    is_rejected = is_operator_since(manifest, "1.9.0")
    effect = "the operator's webhook rejects the job" if is_rejected else "the operator can fail on it"
    message = Sentence("`elasticPolicy` requires a `Worker`, but the job has none; {}", effect)
    yield Violation(At(manifest.spec, "elasticPolicy", is_key=True), message, severity=None if is_rejected else WARNING)
