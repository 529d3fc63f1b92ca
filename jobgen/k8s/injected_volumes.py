"""Volumes that webhooks and operators add to a pod, so that a container may mount them without declaring them.

A webhook changes pods when they are created. A template in a Deployment or another of Kubernetes' own kinds is
validated earlier, without what a webhook adds; so this applies to Pods, and to the pods of custom resources.
"""

from __future__ import annotations

from collections.abc import Callable

from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Pod


def _has(field: str, key: str, value: str = "true") -> Callable[[Pod], bool]:
    return lambda pod: as_text(as_mapping(pod.metadata.get(field)).get(key)).lower() == value


def _may_be_in_mesh(pod: Pod) -> bool:
    """Return True unless the pod itself says that Istio must not change it; its namespace may ask for it."""
    return not any(_has(field, "sidecar.istio.io/inject", "false")(pod) for field in ("labels", "annotations"))


def _is_of_mpi_job(version: str, role: str = "") -> Callable[[Pod], bool]:
    def applies(pod: Pod) -> bool:
        is_kind = pod.manifest.kind_name == "MPIJob" and as_text(pod.manifest.object.get("apiVersion")) == version
        return is_kind and (not role or (pod.role is not None and pod.role.replica_type == role))

    return applies


# What adds volumes: the condition, and the names. These also add a container, which mounts the volumes.
_SIDECARS: tuple[tuple[Callable[[Pod], bool], str], ...] = (
    # GoogleCloudPlatform/gcs-fuse-csi-driver, pkg/webhook/sidecar_spec.go and its page of known issues
    (_has("annotations", "gke-gcsfuse/volumes"), "gke-gcsfuse-tmp gke-gcsfuse-buffer gke-gcsfuse-cache"),
    # istio/istio, manifests/charts/istio-control/istio-discovery/files/injection-template.yaml
    (
        _may_be_in_mesh,
        """workload-socket credential-socket workload-certs istio-envoy istio-data istio-podinfo istio-token
        istiod-ca-cert""",
    ),
    # linkerd/linkerd2, charts/partials/templates/_proxy.tpl
    (_has("annotations", "linkerd.io/inject", "enabled"), "linkerd-identity-end-entity linkerd-identity-token"),
    # hashicorp/vault-k8s, agent-inject/agent/container_volume.go
    (_has("annotations", "vault.hashicorp.com/agent-inject"), "home-init home-sidecar vault-config vault-secrets"),
)
_INJECTORS = (
    *_SIDECARS,
    # aws/amazon-eks-pod-identity-webhook, pkg/handler/handler.go: an annotation of the service account decides
    (lambda _: True, "aws-iam-token eks-pod-identity-token"),
    # Azure/azure-workload-identity, pkg/webhook/webhook.go
    (_has("labels", "azure.workload.identity/use"), "azure-identity-token"),
    # ray-project/kuberay, ray-operator/controllers/ray/common/pod.go and utils/constant.go
    (lambda pod: pod.manifest.group == "ray.io", "shared-mem ray-logs ray-token"),
    # kubeflow/mpi-operator, pkg/controller/mpi_job_controller.go
    (_is_of_mpi_job("kubeflow.org/v2beta1"), "ssh-auth"),
    (_is_of_mpi_job("kubeflow.org/v2beta1", "Launcher"), "mpi-job-config"),
    # kubeflow/training-operator, pkg/controller.v1/mpi/mpijob_controller.go
    (_is_of_mpi_job("kubeflow.org/v1"), "mpi-job-config"),
    (_is_of_mpi_job("kubeflow.org/v1", "Launcher"), "mpi-job-kubectl"),
)


def list_injected_volumes(pod: Pod) -> list[str]:
    """Return the volumes that containers mount, that the pod does not declare, and that it gets when it is created."""
    mounted = sorted(pod.undeclared_volumes)
    return [name for name in mounted if any(name in names.split() and applies(pod) for applies, names in _INJECTORS)]


def is_unmounted(name: str, pod: Pod) -> bool:
    """Return True if no container mounts the volume of this name, nor one that a webhook adds to the pod."""
    mounted = pod.mounted_volumes
    # A mount with the name in other letters is reported.
    if not name or name in mounted or name.lower() in mounted or pod.partial or not pod.containers:
        return False
    return not any(name in names.split() and applies(pod) for applies, names in _SIDECARS)
