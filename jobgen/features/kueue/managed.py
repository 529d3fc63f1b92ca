"""Which jobs Kueue manages: by its version, its configuration, the queue of the job and its namespace.

Kueue ignores all other jobs; they start at once and use no quota.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobgen.features.kueue.configuration import Configuration
from jobgen.features.kueue.match import matches_selector
from jobgen.features.kueue.objects import as_mapping
from jobgen.model.named_tuple import NamedTuple

Version = tuple[int, ...]

_NEVER: Final = (10**6,)
_SYSTEM_NAMESPACES = ("kube-system", "kueue-system")
_SELECTOR_SINCE = (0, 10)


class Integration(NamedTuple):
    """The part of Kueue that manages a kind. The manifests and the chart of each release enable a list of them."""

    framework: str
    since: Version
    on_since: Version = _NEVER
    """The first release whose configuration enables it."""
    off_since: Version = _NEVER
    """The first release whose configuration no longer enables it."""

    def is_on_by_default(self, version: Version) -> bool:
        """Return whether the configuration of a release enables it."""
        return self.on_since <= version < self.off_since


INTEGRATIONS: Final[Mapping[tuple[str, str], Integration]] = {
    ("apps/v1", "Deployment"): Integration("deployment", (0, 9), (0, 16)),
    ("apps/v1", "StatefulSet"): Integration("statefulset", (0, 9), (0, 16)),
    ("batch/v1", "Job"): Integration("batch/job", (0, 1), (0, 1)),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): Integration("jobset.x-k8s.io/jobset", (0, 4), (0, 4)),
    ("kubeflow.org/v1", "JAXJob"): Integration("kubeflow.org/jaxjob", (0, 12), (0, 12), (0, 19)),
    ("kubeflow.org/v1", "PaddleJob"): Integration("kubeflow.org/paddlejob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v1", "PyTorchJob"): Integration("kubeflow.org/pytorchjob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v1", "TFJob"): Integration("kubeflow.org/tfjob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v1", "XGBoostJob"): Integration("kubeflow.org/xgboostjob", (0, 5), (0, 5), (0, 19)),
    ("kubeflow.org/v2beta1", "MPIJob"): Integration("kubeflow.org/mpijob", (0, 3), (0, 4)),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): Integration(
        "leaderworkerset.x-k8s.io/leaderworkerset", (0, 11), (0, 16)
    ),
    ("ray.io/v1", "RayCluster"): Integration("ray.io/raycluster", (0, 6), (0, 6)),
    ("ray.io/v1", "RayJob"): Integration("ray.io/rayjob", (0, 4), (0, 4)),
    ("ray.io/v1", "RayService"): Integration("ray.io/rayservice", (0, 17), (0, 17)),
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): Integration("sparkoperator.k8s.io/sparkapplication", (0, 17)),
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): Integration("trainer.kubeflow.org/trainjob", (0, 14), (0, 14)),
    ("v1", "Pod"): Integration("pod", (0, 5), (0, 16)),
    ("workload.codeflare.dev/v1beta2", "AppWrapper"): Integration(
        "workload.codeflare.dev/appwrapper", (0, 11), (0, 11)
    ),
}
"""The integrations by API version and kind."""


class Unmanaged(NamedTuple):
    """Why Kueue does not manage a job."""

    reason: str
    change: str = ""
    """What would make Kueue manage it; empty if nothing does."""


def find_integration(obj: Mapping[str, Any]) -> Integration | None:
    """Return the integration for an object; None if no version of Kueue has one."""
    return INTEGRATIONS.get((str(obj.get("apiVersion")), str(obj.get("kind"))))


def explain_unmanaged(
    obj: Mapping[str, Any], queue: str, configuration: Configuration, labels: Mapping[str, str] | None = None
) -> Unmanaged | None:
    """Explain why Kueue does not manage a job; None if it does.

    `queue` is the queue of the job, and `labels` are those of its namespace, None if they are not known.
    """
    kind, integration = str(obj.get("kind", "")), find_integration(obj)
    if integration is None:
        named = f"{kind} of `{obj.get('apiVersion')}`"
        group = str(obj.get("apiVersion")).rpartition("/")[0]
        others = [api for api, known in INTEGRATIONS if known == kind and api.rpartition("/")[0] == group]
        change = f"use `{others[0]}`" if others else ""
        return Unmanaged(f"Kueue has no integration for {named}, so it starts at once", change)
    spec = as_mapping(obj.get("spec"))
    if kind == "RayJob" and not isinstance(spec.get("rayClusterSpec"), dict):
        return Unmanaged("it runs in an existing RayCluster, so it starts at once", "queue the RayCluster instead")
    found = _explain_version(kind, integration, configuration)
    if found is not None:
        return found
    if not queue and not configuration.manages_unqueued:
        start = "only `suspend` keeps it from starting" if spec.get("suspend") is True else "it starts at once"
        return Unmanaged(f"it names no queue, so {start}", "add the label `kueue.x-k8s.io/queue-name`")
    return _explain_namespace(obj, queue, configuration, labels)


def _explain_version(kind: str, integration: Integration, configuration: Configuration) -> Unmanaged | None:
    """Explain that an integration does not exist or is off."""
    version, name = configuration.version, integration.framework
    if version < integration.since:
        reason = f"Kueue {_show(version)} has no integration for {kind}, so it starts at once"
        return Unmanaged(reason, f"update Kueue to {_show(integration.since)}")
    if configuration.frameworks is not None:
        if name in configuration.frameworks:
            return None
        reason = f"the integration `{name}` is not among the `frameworks` of Kueue, so it starts at once"
        return Unmanaged(reason, f"add `{name}` to `frameworks`")
    if integration.is_on_by_default(version):
        return None
    since = f" since {_show(integration.off_since)}" if version >= integration.off_since else ""
    reason = f"Kueue {_show(version)} does not enable its integration `{name}` by default{since}, so it starts at once"
    return Unmanaged(
        reason, f"enable `{name}` in the configuration of Kueue, and list it in `cluster.kueue.frameworks`"
    )


def _explain_namespace(
    obj: Mapping[str, Any], queue: str, configuration: Configuration, labels: Mapping[str, str] | None
) -> Unmanaged | None:
    """Explain that Kueue does not manage the jobs of a namespace."""
    if configuration.version < _SELECTOR_SINCE:
        return None
    if queue and not configuration.gates["ManagedJobsNamespaceSelectorAlwaysRespected"]:
        return None
    namespace = str(as_mapping(obj.get("metadata")).get("namespace") or "default")
    selector = configuration.namespace_selector
    if selector is None:
        if namespace not in _SYSTEM_NAMESPACES:
            return None
        return Unmanaged(f"Kueue does not manage jobs in `{namespace}`, so it starts at once", "use another namespace")
    if matches_selector(selector, labels):
        return None
    reason = f"`managedJobsNamespaceSelector` of Kueue does not select namespace `{namespace}`, so it starts at once"
    return Unmanaged(reason, "change the labels of the namespace, or the selector")


def _show(version: Version) -> str:
    return ".".join(map(str, version[:2]))
