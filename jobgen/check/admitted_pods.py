"""The pods that operators and controllers create of an object, as the API server passes them to policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from jobgen.check.schema.admitted import UID
from jobgen.k8s.nodes import get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Derived, Gathered, Place, Places, find_at
from jobgen.model.sentence import Sentence

_CREATES_NO_PODS = frozenset((("", "Pod"), ("", "PodTemplate"), ("kueue.x-k8s.io", "Workload")))
"""Kinds with pod templates from which no controller creates pods, and the pod itself."""


class AdmittedPod(NamedTuple):
    """A pod that will be created, and the template that says what it is."""

    object: Mapping[str, Plain]
    template: Plain
    manifest: Manifest
    """The object that the pod is created for."""
    sources: Mapping[int, Mapping[str, Plain]]
    """What mappings of the pod were made of, by their identity: expressions read plain mappings only."""

    def locate(self, problem: Problem) -> Problem:
        """Return a problem of the pod at the template if the pod has nothing of it, with what creates the pod."""
        message = Sentence("{} (in a pod that the {} creates)", problem.sentence, self.manifest.kind_name)
        related = tuple((self._lead_back(node), text) for node, text in problem.related)
        node, finish = self._lead_back(problem.node), problem.finish
        if finish is not None and node is self.template:
            finish = partial(_keep_node, finish)
        return problem._replace(node=node, related=related, sentence=message, finish=finish)

    def _lead_back(self, node: Place) -> Place:
        """Return where something in the pod is written; the template if it is of the object as a whole, or added."""
        if type(node) is At and node.holder is self.object and node.key == "spec":
            # Its key is that of the pod, so what is written is in it.
            node = get_path(self.template, "spec")
        elif type(node) is At and id(node.holder) in self.sources:
            node = At(self.sources[id(node.holder)], node.key, node.is_key)
        elif id(node) in self.sources:
            node = self.sources[id(node)]
        return self.template if Places(self.manifest.object).find(node) is None else node


def _keep_node(
    finish: Callable[[Problem, bool], Problem | None],
    problem: Problem,
    is_spec: bool,
) -> Problem | None:
    """Finish a problem of a whole template, which stays where it is reported."""
    finished = finish(problem, is_spec)
    return None if finished is None else finished._replace(node=problem.node)


def list_admitted_pods(manifest: Manifest) -> Iterator[AdmittedPod]:
    """Yield a pod of each template of an object; what its operator adds is left out.

    A template that another object completes is left out, too: the rest of the pod is not known here.
    """
    if (manifest.group, manifest.kind_name) in _CREATES_NO_PODS or manifest.kind_name.endswith("Template"):
        return
    for pod in manifest.pods:
        if pod.part == "whole" and pod.containers:
            made, sources = _make_pod(pod)
            yield AdmittedPod(made, pod.template, manifest, sources)


def _make_pod(pod: Pod) -> tuple[dict[str, Plain], dict[int, Mapping[str, Plain]]]:
    """Return a pod, and what its mappings are made of."""
    owner = pod.manifest.object
    kept = {key: value for key, value in pod.metadata.items() if key in ("labels", "annotations")}
    # What the pod has of its owner is not where the pod is written.
    head = {key: owner.get(key) for key in ("apiVersion", "kind")}
    named = {str(key): value for key, value in pod.manifest.metadata.items()}
    place: dict[str, Plain] = {"namespace": named["namespace"]} if "namespace" in named else {}
    controller: dict[str, Plain] = {**head, "name": named.get("name", "")}
    # An operator may create a Job or a StatefulSet, which creates the pods; all of them are controllers.
    references: list[Plain] = [{**controller, "uid": UID, "controller": True}]
    metadata: dict[str, Plain] = {"generateName": "pod-", **place, **kept, "ownerReferences": references}
    policy, written = _find_restart_policy(pod)
    spec = {**pod.spec, "restartPolicy": policy} if policy is not None else {**pod.spec}
    places = {key: At(pod.spec, key) for key in pod.spec if key != "restartPolicy" or policy is None}
    sources: dict[int, Mapping[str, Plain]] = {
        id(metadata): Derived(metadata, pod.metadata),
        id(spec): Gathered(spec, places if written is None else {**places, "restartPolicy": written}),
    }
    made: dict[str, Plain] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
    }
    return made, sources


def _find_restart_policy(pod: Pod) -> tuple[Plain, At | None]:
    """The policy that an operator writes into the pods of a role, and its place.

    That of the template counts where the operator keeps it: then there is none.
    """
    role, kind = pod.role, pod.manifest.kind
    if role is None or kind is None or kind.replicas.keeps_restart_policy:
        return None, None
    # `ExitCode` is a policy of the operator.
    policy = role.restart_policy if role.restart_policy != "ExitCode" else "Never"
    if not policy:
        return None, None
    place = find_at(role.replica_spec, *map(str, kind.replicas.restart_policy))
    return policy, place
