"""The pods that operators and controllers create of an object, as the API server passes them to policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.schema.admitted import UID
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Node, location_of, value_of, with_value
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple

_CREATES_NO_PODS = frozenset((("", "Pod"), ("", "PodTemplate"), ("kueue.x-k8s.io", "Workload")))
"""Kinds with pod templates from which no controller creates pods, and the pod itself."""


class AdmittedPod(NamedTuple):
    """A pod that will be created, and the template that says what it is."""

    object: Mapping[str, Node]
    template: Node
    owner: str
    """The kind of the object that the pod is created for."""

    def locate(self, problem: Problem) -> Problem:
        """Return a problem of the pod at the template if the pod has nothing of it, with what creates the pod."""
        is_of_object = location_of(problem.node) in (None, location_of(self.object.get("kind")))
        message = f"{problem.message} (in a pod that the {self.owner} creates)"
        return problem._replace(node=self.template if is_of_object else problem.node, message=message)


def list_admitted_pods(manifest: Manifest) -> Iterator[AdmittedPod]:
    """Yield a pod of each template of an object; what its operator adds is left out.

    A template that another object completes is left out, too: the rest of the pod is not known here.
    """
    if (manifest.group, manifest.kind_name) in _CREATES_NO_PODS or manifest.kind_name.endswith("Template"):
        return
    for pod in manifest.pods:
        if pod.part == "whole" and pod.containers:
            yield AdmittedPod(_make_pod(pod), pod.template, manifest.kind_name)


def _make_pod(pod: Pod) -> dict[str, Node]:
    owner = pod.manifest.object
    kept = {key: value for key, value in pod.metadata.items() if key in ("labels", "annotations")}
    # What the pod has of its owner is not where the pod is written.
    head = {key: value_of(owner.get(key)) for key in ("apiVersion", "kind")}
    named = {str(key): value_of(value) for key, value in pod.manifest.metadata.items()}
    place: dict[str, Node] = {"namespace": named["namespace"]} if "namespace" in named else {}
    controller: dict[str, Node] = {**head, "name": named.get("name", "")}
    # An operator may create a Job or a StatefulSet, which creates the pods; all of them are controllers.
    references: list[Node] = [{**controller, "uid": UID, "controller": True}]
    return {
        "apiVersion": with_value(owner.get("apiVersion"), "v1"),
        "kind": with_value(owner.get("kind"), "Pod"),
        "metadata": {"generateName": "pod-", **place, **kept, "ownerReferences": references},
        "spec": {**pod.spec, **_find_restart_policy(pod)},
    }


def _find_restart_policy(pod: Pod) -> dict[str, Node]:
    """The policy that an operator writes into the pods of a role; that of the template counts where it keeps it."""
    role, kind = pod.role, pod.manifest.kind
    if role is None or kind is None or kind.replicas.keeps_restart_policy:
        return {}
    # `ExitCode` is a policy of the operator.
    policy = role.restart_policy if role.restart_policy != "ExitCode" else "Never"
    return {"restartPolicy": with_value(role.restart_policy_node, policy)} if policy else {}
