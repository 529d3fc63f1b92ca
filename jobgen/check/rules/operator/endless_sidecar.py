"""Containers that never end beside one that does."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.images import parse_image_name
from jobgen.k8s.kinds import parse_release
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_key

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
_ENDING = lazy_pattern(
    r"\b(?:break|exit|kill|pkill|killall|trap|timeout|quitquitquit|one-time|exit-after-auth|inotifywait|--pid)\b"
    r"|--pid|--one-time|shutdown|terminat"
)
_KINDS = "CronJob JAXJob Job JobSet MPIJob PaddleJob PyTorchJob TFJob TrainingRuntime ClusterTrainingRuntime XGBoostJob"
_GROUPS = ("batch", "batch.volcano.sh", "jobset.x-k8s.io", "kubeflow.org", "trainer.kubeflow.org")
_SIDECARS = (1, 29)


@rule("manifest", WARNING, kinds=tuple(_KINDS.split()))
def endless_sidecar(manifest: Manifest) -> Iterator[Violation]:
    """A container that never ends, such as a log shipper, beside the container that trains.

    A pod succeeds when all its containers have ended. A container that runs until it is stopped keeps the pod running
    after the training, so the job never completes, and its GPUs stay allocated.

    Make it a sidecar: an init container with `restartPolicy: Always`, which Kubernetes 1.29 and newer stop when all
    other containers have ended. Before 1.29, let the program end when the training has ended.
    """
    if manifest.group not in _GROUPS or _ends_early(manifest):
        return
    for pod in manifest.pods:
        main = pod.main_container
        if main is None or len(pod.containers) < 2 or not _decides(pod) or _is_endless(main):
            continue
        if value_of(pod.spec.get("shareProcessNamespace")) is True or _ENDING.search(main.search_text):
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
    command = " ".join(map(as_text, container.command_line))
    if _ENDING.search(command):
        return False
    if _ENDLESS_COMMAND.search(command):
        return True
    image = parse_image_name(as_text(container.data.get("image"))).repository.lower()
    # Another command may do something else with the image.
    return "command" not in container.data and _ENDLESS_IMAGES.fullmatch(image) is not None


def _report(container: Container, main: Container) -> Violation:
    manifest = container.pod.manifest
    what = "the pod does not complete" if not container.pod.gpus else "the pod does not complete and keeps its GPUs"
    message = f"container `{container.name}` never ends by itself, so {what} after `{main.name}` has ended"
    release = parse_release(manifest.cluster.kubernetes)
    advice = "make it a sidecar: an init container with `restartPolicy: Always`"
    if manifest.cluster.kubernetes and release < _SIDECARS:
        advice = "end it when the training ends; sidecars need Kubernetes 1.29"
    node: Node = container.data.get("image") or find_key(container.data, "name") or get_path(container.data, "name")
    return Violation(node, f"{message}; {advice}")
