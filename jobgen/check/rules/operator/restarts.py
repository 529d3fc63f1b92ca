"""Restarts, retries, and jobs that never start or never end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobgen.check.admission.fields import iter_mappings, iter_strings
from jobgen.check.operators import KINDS, find_violations
from jobgen.check.operators.checks import NEVER_STARTS
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.images import parse_image_name
from jobgen.k8s.kinds import parse_release
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Pod, Role
from jobgen.k8s.operators import choose_severity, describe_rejection
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import list_alternatives
from jobgen.spec.kinds import parse_version

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState

_KNOWN = ("Always", "OnFailure", "Never", "ExitCode")


@rule("role", ERROR)
def unsupported_restart_policy(role: Role) -> Iterator[Violation]:
    """A restart policy that this kind's operator does not support, although other operators do.

    mpi-operator supports only `Never` and `OnFailure`. With `Always`, or with `ExitCode` of training-operator, it
    reports an event and does nothing more.

    Use a restart policy that the kind supports.

    When to turn it off: never: the operator leaves the job untouched after its event. A manifest that moves between
    two operators should set the policy in the overlay of each.
    """
    kind = role.manifest.kind
    policy = as_text(role.restart_policy_node)
    # `unsupported-value` reports policies that no pod can have; kinds without requirements have checks of their own.
    if (
        kind
        and kind.requirements.known
        and policy in _KNOWN
        and kind.restart_policies
        and policy not in kind.restart_policies
    ):
        known = list_alternatives(f"`{word}`" for word in kind.restart_policies)
        message = Sentence(
            "{} does not support `{}`; {}; use {}", kind.name, policy, describe_rejection(role.manifest), known
        )
        place = role.restart_policy_place
        # All three restart a pod that failed.
        fix_steps = (FixStep("set", place, "OnFailure"),) if "OnFailure" in kind.restart_policies else ()
        yield Violation(place, message, severity=choose_severity(role.manifest), fix_steps=fix_steps, safe=False)


_POLICIES = ("Always", "ExitCode", "Never", "OnFailure")


@rule("pod", WARNING, fields=("restartPolicy",))
def overwritten_restart_policy(pod: Pod) -> Iterator[Violation]:
    """A restart policy in a pod template that the operator overwrites.

    Pods get the policy of their role, or the default of the operator, whatever their template says.

    Write `restartPolicy` next to `template`, not inside it.

    When to turn it off: if the pod template is shared with a Deployment or a bare Pod, where its policy counts,
    suppress the finding at the template that the job refers to.
    """
    kind, role = pod.manifest.kind, pod.role
    if role is None:
        return
    written, effective = as_text(pod.spec["restartPolicy"]), role.restart_policy
    if kind is None or not kind.requirements.overwrites_restart_policy or not written or not effective:
        return
    if written != ("Never" if effective == "ExitCode" else effective):
        node = At(pod.spec, "restartPolicy")
        if as_text(role.restart_policy_node):
            advice = "the policy of the role; remove it from the pod template"
        else:
            # Some write a policy in other letters, which the role would not take.
            kept = next((each for each in _POLICIES if each.lower() == written.lower()), "")
            advice = "the default of the role"
            advice += f"; to keep it, write `restartPolicy: {kept}` beside `template`" if kept else ""
        yield Violation(
            node,
            Sentence("`{}` is overwritten with `{}`, {}", written, effective, advice),
            fix_steps=(FixStep("remove", node, key="restartPolicy"),),
        )


@rule("job", WARNING)
def backoff_without_restarts(manifest: Manifest) -> Iterator[Violation]:
    """A `backoffLimit` on a job whose pods are never restarted.

    The operator counts restarts, and restarts only pods whose policy allows it. With `Never`, the default of most
    kinds, the first failure ends the job whatever the limit.

    Use `OnFailure` or `ExitCode`, or remove the limit. For an MPIJob, use `OnFailure`: training-operator never creates
    a launcher again.

    When to turn it off: if one manifest is used with several restart policies, for example by an overlay that sets
    `OnFailure` only in prod, accept it in the environments where nothing restarts, with `rules` and `environments`.
    """
    assert manifest.kind is not None
    counted = manifest.kind.requirements.backoff_counts
    limit = manifest.run_policy.get("backoffLimit")
    if not counted or not (as_integer(limit) or 0) > 0 or not manifest.roles:
        return
    if not any(role.restart_policy in counted for role in manifest.roles):
        # training-operator reads `ExitCode` of an MPIJob, and never creates a launcher again.
        unusable = ("Always", "ExitCode") if manifest.kind_name == "MPIJob" else ("Always",)
        usable = [policy for policy in counted if policy not in unusable and policy in manifest.kind.restart_policies]
        names = list_alternatives(f"`{policy}`" for policy in usable)
        message = Sentence(
            "`backoffLimit` has no effect, because no role is ever restarted; set `restartPolicy` of a role to {}",
            names,
        )
        policies = tuple((role.restart_policy_place, "") for role in manifest.roles)
        yield Violation(At(manifest.run_policy, "backoffLimit"), message, policies)


_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
# Since then, the webhook of JobSet ignores leaders that have failed.
_FIXED = (0, 13)


@rule("manifest", WARNING, kinds=("JobSet",))
def retry_hangs(manifest: Manifest) -> Iterator[Violation]:
    """A JobSet with exclusive placement whose Jobs retry pods, so it hangs after a failure.

    With exclusive placement, the webhook of JobSet before 0.13 admits the pods of a Job only if there is exactly one
    pod with index 0, the leader. If that pod fails and the Job retries it, there are two: all other pods are refused,
    and the JobSet neither fails nor restarts.

    Set `backoffLimit: 0` in the Jobs: a failed pod then fails its Job, and the JobSet restarts as a whole.

    When to turn it off: with JobSet 0.13 or later, declare it in `cluster.operators`, and the rule is silent. Jobs
    that cannot fail in parts, with one pod each, can accept it.
    """
    version = str(manifest.cluster.operators.get("jobset", ""))
    if manifest.group != "jobset.x-k8s.io" or not version or parse_version(version) >= _FIXED:
        return
    for item in map(as_mapping, as_list(manifest.spec.get("replicatedJobs"))):
        job = as_mapping(get_path(item, "template", "spec"))
        annotations = as_mapping(get_path(item, "template", "metadata", "annotations"))
        owner = next((each for each in (manifest.annotations, annotations) if as_text(each.get(_EXCLUSIVE))), None)
        # With a node selector of one's own, the webhook does nothing; a single pod has no followers.
        pods = max(as_integer(job.get("parallelism")) or 1, as_integer(job.get("completions")) or 1)
        if owner is None or _NODE_SELECTOR in {**manifest.annotations, **annotations} or pods < 2:
            continue
        limit = job.get("backoffLimit")
        if as_integer(limit) != 0:
            shown = "is not set" if limit is None else f"is `{as_integer(limit)}`"
            message = Sentence(
                "`backoffLimit` {}, so a failed leader is retried; with `exclusive-topology`, JobSet", shown
            )
            message += f" {version} then refuses all other pods, and the job hangs"
            place = At(owner, _EXCLUSIVE, is_key=True) if limit is None else At(job, "backoffLimit")
            yield Violation(place, Sentence("{}; set `backoffLimit: 0`", message))


_OF_FAILURES = ("PodFailed", "TaskFailed")
_OF_PENDING = ("RestartPod", "RestartTask")
_SPECS = {"CronJob": ("spec", "jobTemplate", "spec"), "Job": ("spec",)}


@rule("manifest", WARNING, kinds=tuple(_SPECS))
def policy_without_effect(manifest: Manifest) -> Iterator[Violation]:
    """A policy, or a `maxRetry`, of a Job of Volcano that has no effect.

    Volcano acts when a pod fails. With `restartPolicy: OnFailure` or `Always`, the default, the kubelet restarts a
    failed container forever and the pod never fails. Policies for `PodFailed`, `TaskFailed` and exit codes then do not
    apply, `maxRetry` limits nothing, and the job keeps its GPUs.

    With the event `PodPending`, the actions `RestartPod` and `RestartTask` restart no pod.

    Set `restartPolicy: Never` in the tasks, and keep the policy; for `PodPending`, use `RestartJob`.

    When to turn it off: for a policy that takes effect only in an overlay with `Never`, set the rule to `off` in
    the environments without it.
    """
    if manifest.group != "batch.volcano.sh":
        return
    spec = as_mapping(get_path(manifest.object, *_SPECS[manifest.kind_name]))
    tasks = list(iter_mappings(spec.get("tasks")))
    for holder in (spec, *tasks):
        for policy, events in _list_policies(holder):
            if "PodPending" in events and as_text(policy.get("action")) in _OF_PENDING:
                action = as_text(policy["action"])
                message = Sentence("`{}` restarts no pod for the event `PodPending`; use `RestartJob`", action)
                yield Violation(At(policy, "action"), message)
    shared = _find_policy(spec)
    for task in tasks:
        pod = as_mapping(get_path(task, "template", "spec"))
        restart = as_text(pod.get("restartPolicy")) or "Always"
        own = _find_policy(task)
        if restart == "Never" or not pod or not (own or shared):
            continue
        name = as_text(task.get("name"))
        useless = f"the policy for `{own or shared}`" + (" and `maxRetry` have" if "maxRetry" in spec else " has")
        place = find_at(pod, "restartPolicy") or find_at(task, "template", "spec", is_key=True)
        message = Sentence(
            "with `restartPolicy: {}`, the kubelet restarts the containers of task `{}` forever and its", restart, name
        )
        message += f" pods never fail, so {useless} no effect; set `restartPolicy: Never`"
        yield Violation(place, message, evidence=(restart,))


def _list_policies(holder: Mapping[str, Plain]) -> Iterator[tuple[Mapping[str, Plain], list[str]]]:
    for policy in iter_mappings(holder.get("policies")):
        events = [text for text, _ in iter_strings(policy.get("events"))]
        yield policy, [*events, as_text(policy.get("event"))]


def _find_policy(holder: Mapping[str, Plain]) -> str:
    """Return what a policy of a job or task waits for, if that is a failed pod."""
    for policy, events in _list_policies(holder):
        found = next((event for event in events if event in _OF_FAILURES), "")
        if found or policy.get("exitCode") is not None:
            return found or "exitCode"
    return ""


@rule("manifest", ERROR, kinds=KINDS)
def never_starts(manifest: Manifest) -> Iterator[Violation]:
    """An object that its operator accepts, but never starts.

    KubeRay validates objects in its controller: the API server accepts an invalid RayJob, and nothing runs. It reports
    this only in an event or in the status, and a RayJob stays invalid even after a correction.

    Correct the field and create the object again, because an invalid RayJob does not recover.

    When to turn it off: never, as KubeRay does not reconsider such an object. If the declared release is older than
    the cluster's, correct `cluster.operators` first.
    """
    yield from find_violations(manifest, NEVER_STARTS)


# The server in the foreground, which runs until its pod is deleted.
_SSHD = lazy_pattern(r"\bsshd (?:-\w+ )*-[a-zA-Z]*D")
_ENDING_ACTIONS = ("AbortJob", "CompleteJob", "TerminateJob")


@rule("manifest", ERROR)
def never_completes(manifest: Manifest) -> Iterator[Violation]:
    """A job that never completes, because pods that decide its success are always restarted, or never end.

    With `restartPolicy: Always`, a container is restarted even after it succeeds. Its pod never succeeds, and neither
    does the job: it trains again and again. In a Job of Volcano this is the default; it is a warning there, because
    such a Job can be a service that is meant to run on.

    A Job of Volcano completes when all its pods have ended. With the plugin `mpi`, the workers run `sshd`, which never
    ends: without a policy the job holds its GPUs forever. Workers without a command are a warning, because their image
    decides what they run; so is `sshd` without `-D`, which runs in the background.

    Use `OnFailure`; for MPI, give the task of the launcher the policy `{event: TaskCompleted, action: CompleteJob}`.

    When to turn it off: for a Volcano Job that is a service on purpose, suppress the warning on its
    `restartPolicy`. In the kinds of Kubeflow, use a Deployment for what shall never end.
    """
    kind = manifest.kind
    if (manifest.group, manifest.kind_name) == ("batch.volcano.sh", "Job"):
        yield from _check_volcano_job(manifest)
        return
    if kind is None or not kind.requirements.overwrites_restart_policy:
        return
    deciding = next((role for name in kind.success if (role := manifest.find_role(name))), None)
    if deciding and as_text(deciding.restart_policy_node) == "Always" and "Always" in kind.restart_policies:
        message = Sentence("`{}` is restarted even after success, so the job never completes", deciding.replica_type)
        yield Violation(deciding.restart_policy_place, Sentence("{}; use `OnFailure`", message))


def _check_volcano_job(manifest: Manifest) -> Iterator[Violation]:
    """Check a Job of Volcano: it completes when all its pods have ended."""
    if not manifest.pods:
        return
    tasks = [as_mapping(task) for task in as_list(manifest.spec.get("tasks"))]
    endless = list(_check_volcano_mpi(manifest, tasks))
    yield from endless
    policies = any(map(_waits_for_more, (manifest.spec, *tasks)))
    restarted = [pod for pod in manifest.pods if as_text(pod.spec.get("restartPolicy")) in ("", "Always")]
    if not endless and not policies and len(restarted) == len(manifest.pods):
        first = restarted[0]
        message = "all pods are restarted even after success, so the job never completes"
        place = find_at(first.spec, "restartPolicy") or find_at(first.template, "spec", is_key=True)
        place = place or At(manifest.object, "kind")
        yield Violation(place, Sentence("{}; set `restartPolicy: OnFailure`", message), severity=WARNING)


def _check_volcano_mpi(manifest: Manifest, tasks: list[Mapping[str, Plain]]) -> Iterator[Violation]:
    """Check that a job of the plugin `mpi` ends, although `sshd` of its workers does not."""
    plugins = as_mapping(manifest.spec.get("plugins"))
    # With `minSuccess`, the job completes when that many pods have succeeded.
    if "mpi" not in plugins or "minSuccess" in manifest.spec or any(map(_ends_job, (manifest.spec, *tasks))):
        return
    # Imported late, because few repositories have Jobs of Volcano.
    from jobgen.check.operators.volcano import find_argument

    wanted = find_argument(plugins["mpi"], "worker")
    worker = next((role for role in manifest.roles if role.replica_type == wanted and role.count), None)
    main = worker.pod.main_container if worker else None
    command = " ".join(main.words) if main else ""
    # Another command may be a script that ends, or not.
    if main is None or (command and "sshd" not in command):
        return
    message = Sentence("task `{}` waits for MPI connections and never ends, so the job never completes", wanted)
    advice = "give the launcher's task the policy `{event: TaskCompleted, action: CompleteJob}`"
    severity = None if _SSHD.search(command) else WARNING
    yield Violation(At(plugins, "mpi", is_key=True), Sentence("{}; {}", message, advice), severity=severity)


def _waits_for_more(owner: Mapping[str, Plain]) -> bool:
    """Return True if a policy of a job or a task waits for another event than a task that has completed."""
    return any(_list_events(policy) - {"", "TaskCompleted"} for policy in as_list(owner.get("policies")))


def _list_events(policy: Plain) -> set[str]:
    """Return the events that a policy waits for."""
    fields = as_mapping(policy)
    return {as_text(fields.get("event")), *map(as_text, as_list(fields.get("events")))}


def _ends_job(owner: Mapping[str, Plain]) -> bool:
    """Return True if a policy of a job or a task ends the job when a task has completed."""
    for policy in map(as_mapping, as_list(owner.get("policies"))):
        events = _list_events(policy)
        if events & {"TaskCompleted", "*"} and as_text(policy.get("action")) in _ENDING_ACTIONS:
            return True
    return False


# Images whose program runs until it is stopped: shippers of logs and metrics, proxies, servers.
_ENDLESS_IMAGES = lazy_pattern(
    r"(?:.*/)?(?:fluent-?bit|aws-for-fluent-bit|fluentd[\w-]*|filebeat|metricbeat|heartbeat|logstash|vector|promtail|alloy"
    r"|grafana/agent|grafana-agent|opentelemetry-collector[\w-]*|otel[\w-]*collector[\w-]*|aws-otel-collector|telegraf"
    r"|cloud-?sql-proxy|gce-proxy|proxyv2|envoy|linkerd2?/?-?proxy|oauth2-proxy|kube-rbac-proxy|nginx|haproxy|squid"
    r"|pgbouncer|redis|memcached|minio|dcgm-exporter|node-exporter|statsd-exporter|pushgateway|prometheus|cadvisor"
    r"|datadog/agent|datadoghq/agent|cloudwatch-agent|aws-xray-daemon|splunk-otel-collector|tailscale"
    r"|gcs-fuse-csi-driver-sidecar-mounter)"
)
# Programs that serve, or wait, until they are stopped.
_ENDLESS_COMMAND = lazy_pattern(
    r"(?:\A|[\s;&|/(])(?:tail(?:\s+-\w+)*\s+-\w*[fF]\b|sleep\s+inf|while\s+(?:true|:|\[ 1 \])\s*;"
    r"|tensorboard\s+(?:serve\s+)?--|jupyter[\s-](?:lab|notebook|server)\b|redis-server\b|nginx\s+-g\b|fluent-bit\s+-|fluentd\s+-|filebeat\s+-"
    r"|sshd(?:\s+-\w+)*\s+-\w*D|dcgm-exporter\b|node_exporter\b|mlflow\s+(?:server|ui)\b|python3?\s+-m\s+http\.server)"
)
# What ends such a program, in its own command or in that of another container.
_ENDING_WORDS = lazy_pattern(
    r"\b(?:break|exit|kill|pkill|killall|trap|timeout|quitquitquit|one-time|exit-after-auth|inotifywait|--pid)\b"
    r"|--pid|--one-time|shutdown|terminat"
)
_OWNERS = (
    "CronJob JAXJob Job JobSet MPIJob PaddleJob PyTorchJob TFJob TrainingRuntime ClusterTrainingRuntime XGBoostJob"
)
_GROUPS = ("batch", "batch.volcano.sh", "jobset.x-k8s.io", "kubeflow.org", "trainer.kubeflow.org")
_SIDECARS = (1, 29)


@rule("manifest", WARNING, kinds=tuple(_OWNERS.split()))
def endless_sidecar(manifest: Manifest) -> Iterator[Violation]:
    """A container that never ends, such as a log shipper, beside the container that trains.

    A pod succeeds when all its containers have ended. A container that runs until it is stopped keeps the pod running
    after the training, so the job never completes, and its GPUs stay allocated.

    Make it a sidecar: an init container with `restartPolicy: Always`, which Kubernetes 1.29 and newer stop when all
    other containers have ended. Before 1.29, let the program end when the training has ended.

    When to turn it off: when the shipped program ends by itself as soon as the trainer does, as with a shared
    process namespace and a watch on its process, suppress the finding on that container and say how it ends.
    """
    if manifest.group not in _GROUPS or _ends_early(manifest):
        return
    for pod in manifest.pods:
        main = pod.main_container
        if main is None or len(pod.containers) < 2 or not _decides(pod) or _is_endless(main):
            continue
        if pod.spec.get("shareProcessNamespace") is True or _ENDING_WORDS.search(main.search_text):
            continue
        for container in pod.containers:
            if container is not main and _is_endless(container):
                yield _report(container, main)


def _ends_early(manifest: Manifest) -> bool:
    """Return True if the job can end while pods of it are running: a policy says so."""
    owners = (manifest.spec, *map(as_mapping, as_list(manifest.spec.get("tasks"))))
    policies = manifest.group == "batch.volcano.sh" and any(as_list(owner.get("policies")) for owner in owners)
    return policies or "minSuccess" in manifest.spec or "successPolicy" in manifest.spec


def _decides(pod: Pod) -> bool:
    """Return True if the job completes only when the pod has ended."""
    kind, role = pod.manifest.kind, pod.role
    if kind is None or role is None or not kind.success:
        return True
    return role.definition is None or role.name in kind.success


def _is_endless(container: Container) -> bool:
    """Return True if the program of a container plainly runs until it is stopped."""
    command = " ".join(container.words)
    if _ENDING_WORDS.search(command):
        return False
    if _ENDLESS_COMMAND.search(command):
        return True
    image = parse_image_name(container.image).repository.lower()
    # Another command may do something else with the image.
    return "command" not in container.data and _ENDLESS_IMAGES.fullmatch(image) is not None


def _report(container: Container, main: Container) -> Violation:
    manifest = container.pod.manifest
    what = "the pod does not complete" if not container.pod.gpus else "the pod does not complete and keeps its GPUs"
    message = Sentence(
        "container `{}` never ends by itself, so {} after `{}` has ended", container.name, what, main.name
    )
    release = parse_release(manifest.cluster.kubernetes)
    advice = "make it a sidecar: an init container with `restartPolicy: Always`"
    if manifest.cluster.kubernetes and release < _SIDECARS:
        advice = "end it when the training ends; sidecars need Kubernetes 1.29"
    place = find_at(container.data, "image") or find_at(container.data, "name", is_key=True)
    return Violation(place, Sentence("{}; {}", message, advice))


# Labels or annotations of pods that turn injection on or off, by mesh.
_SWITCHES = {"Istio": "sidecar.istio.io/inject", "Linkerd": "linkerd.io/inject"}
_OFF = {"Istio": "false", "Linkerd": "disabled"}
_KINDS_WITH_PROXIES = "JAXJob Job JobSet MPIJob PaddleJob PyTorchJob TFJob XGBoostJob"


@rule("cluster", WARNING, kinds=tuple(_KINDS_WITH_PROXIES.split()))
def injected_proxy(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A job in a namespace whose service mesh adds a proxy to every pod.

    The label `istio-injection: enabled` of a namespace adds an Istio proxy to its pods. It intercepts the connections
    between the pods of a job: `init_process_group` hangs, or workers fail until the proxy is ready. A proxy that is an
    ordinary container also keeps running after the training, so the job does not complete.

    Set the label `sidecar.istio.io/inject: "false"` on the pods.

    When to turn it off: for a mesh whose proxies are native sidecars and pass the ports of the job unchanged
    (`excludeInboundPorts`), accept the finding in the overlay of that cluster.
    """
    found = state.injecting.get(manifest.namespace)
    if found is None:
        return
    mesh, label = found
    for pod in manifest.pods:
        if pod.partial or _get_switch(pod, mesh):
            continue
        is_one = manifest.pod_count == 1 and manifest.kind is not None
        effect = "keeps the pod running after the training" if is_one else "breaks the connections between the pods"
        message = Sentence(
            "namespace `{}` injects a sidecar of {} into the pod, which {}", manifest.namespace, mesh, effect
        )
        advice = Sentence('set the label `{}: "{}"` on the pods', _SWITCHES[mesh], _OFF[mesh])
        place = find_at(pod.template, "spec", is_key=True) or At(manifest.object, "kind")
        yield Violation(place, Sentence("{}; {}", message, advice), ((label, "injection is enabled here"),))
        return


def _get_switch(pod: Pod, mesh: str) -> str:
    """Return what the pod says about injection; empty if it leaves that to its namespace."""
    places = (pod.metadata.get("labels"), pod.metadata.get("annotations"))
    return next((text for each in places if (text := as_text(as_mapping(each).get(_SWITCHES[mesh])))), "")
