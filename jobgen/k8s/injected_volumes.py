"""Volumes that webhooks and operators add to a pod, so that a container may mount them without declaring them.

A webhook changes pods when they are created. A template in a Deployment or another of Kubernetes' own kinds is
validated earlier, without what a webhook adds; so this applies to Pods, and to the pods of custom resources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Pod


class _Injector(NamedTuple):
    """What adds volumes, the condition, and the names."""

    applies: Callable[[Pod], bool]
    volumes: tuple[str, ...]
    is_sidecar: bool = False
    """It also adds a container, which mounts these volumes."""


def _has(field: str, key: str, value: str = "true") -> Callable[[Pod], bool]:
    return lambda pod: as_text(as_mapping(pod.metadata.get(field)).get(key)).lower() == value


def _may_be_in_mesh(pod: Pod) -> bool:
    """Return True unless the pod itself says that Istio must not change it; its namespace may ask for it."""
    return not any(_has(field, "sidecar.istio.io/inject", "false")(pod) for field in ("labels", "annotations"))


def _is_of_ray(pod: Pod) -> bool:
    return pod.manifest.group == "ray.io"


def _always(_: Pod) -> bool:
    """Return True: what decides is not in the pod, such as an annotation of its service account."""
    return True


_INJECTORS = (
    # GoogleCloudPlatform/gcs-fuse-csi-driver, pkg/webhook/sidecar_spec.go and its page of known issues
    _Injector(
        _has("annotations", "gke-gcsfuse/volumes"),
        ("gke-gcsfuse-tmp", "gke-gcsfuse-buffer", "gke-gcsfuse-cache"),
        is_sidecar=True,
    ),
    # istio/istio, manifests/charts/istio-control/istio-discovery/files/injection-template.yaml
    _Injector(
        _may_be_in_mesh,
        tuple(
            """workload-socket credential-socket workload-certs istio-envoy istio-data istio-podinfo istio-token
            istiod-ca-cert""".split()
        ),
        is_sidecar=True,
    ),
    # linkerd/linkerd2, charts/partials/templates/_proxy.tpl
    _Injector(
        _has("annotations", "linkerd.io/inject", "enabled"),
        ("linkerd-identity-end-entity", "linkerd-identity-token"),
        is_sidecar=True,
    ),
    # hashicorp/vault-k8s, agent-inject/agent/container_volume.go
    _Injector(
        _has("annotations", "vault.hashicorp.com/agent-inject"),
        ("home-init", "home-sidecar", "vault-config", "vault-secrets"),
        is_sidecar=True,
    ),
    # aws/amazon-eks-pod-identity-webhook, pkg/handler/handler.go: decided by the service account
    _Injector(_always, ("aws-iam-token", "eks-pod-identity-token")),
    # Azure/azure-workload-identity, pkg/webhook/webhook.go
    _Injector(_has("labels", "azure.workload.identity/use"), ("azure-identity-token",)),
    # ray-project/kuberay, ray-operator/controllers/ray/common/pod.go and utils/constant.go
    _Injector(_is_of_ray, ("shared-mem", "ray-logs", "ray-token")),
)


def list_injected_volumes(pod: Pod) -> list[str]:
    """Return the volumes that containers mount, that the pod does not declare, and that it gets when it is created."""
    return [name for name in sorted(pod.undeclared_volumes) if _is_injected(name, pod)]


def is_mounted_by_sidecar(name: str, pod: Pod) -> bool:
    """Return True if a container that a webhook adds to the pod mounts the volume of this name."""
    return any(each.is_sidecar and name in each.volumes and each.applies(pod) for each in _INJECTORS)


def _is_injected(name: str, pod: Pod) -> bool:
    return any(name in each.volumes and each.applies(pod) for each in _INJECTORS)
