"""Runtimes of TrainJobs that the repository has, in runtimes/: check them, refer to them, and render them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.k8s.nodes import get_path
from jobgen.model.data import Node, ValidFields, untraced, value_of, with_layer
from jobgen.model.finding import Problem
from jobgen.model.sentence import Sentence
from jobgen.rendering.patch_objects import apply_images, apply_patches
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import Environment, JobAttributes, Patch

GROUP = "trainer.kubeflow.org/"
RUNTIME, CLUSTER_RUNTIME = "TrainingRuntime", "ClusterTrainingRuntime"
RUNTIME_KINDS = frozenset((RUNTIME, CLUSTER_RUNTIME))


def find_runtime_error(data: Mapping[str, Node], known: Sequence[str]) -> Problem | None:
    """Report why a document in runtimes/ is no runtime that jobs can name."""
    kind, version = str(value_of(data.get("kind"))), str(value_of(data.get("apiVersion")))
    metadata = data.get("metadata")
    if kind not in RUNTIME_KINDS or not version.startswith(GROUP):
        message = Sentence(
            "`{}` is not a runtime; write a `{}` of `{}v1alpha1`, or move the file", kind, RUNTIME, GROUP
        )
        return Problem("misplaced-document", message, data.get("kind", data))
    name = value_of(metadata.get("name")) if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        return Problem("missing-field", "a runtime needs `metadata.name`", data, category="schema")
    if "namespace" in metadata:
        message = Sentence("a runtime has no `namespace`: it is rendered in each namespace of its jobs; remove it")
        return Problem("invalid-value", message, metadata["namespace"])
    if name in known:
        message = Sentence("there are two runtimes `{}`; rename one of them", name)
        return Problem("duplicate-identity", message, metadata["name"], category="fleet")
    return None


def complete_reference(made: Mapping[str, Any], runtimes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the reference of a TrainJob the kind of a runtime of the repository, unless the job says it."""
    reference = get_path(made, "spec", "runtimeRef") if value_of(made.get("kind")) == "TrainJob" else None
    name = value_of(get_path(reference, "name"))
    runtime = runtimes.get(name) if isinstance(name, str) else None
    if not runtime or not isinstance(reference, dict) or "kind" in reference or value_of(runtime["kind"]) != RUNTIME:
        return made
    return {**made, "spec": {**made["spec"], "runtimeRef": {**reference, "kind": runtime["kind"]}}}


def find_runtime(made: Mapping[str, Any], runtimes: Mapping[str, Any]) -> ValidFields | None:
    """The runtime of the repository that a TrainJob refers to, by name and kind."""
    reference = get_path(made, "spec", "runtimeRef") if value_of(made.get("kind")) == "TrainJob" else None
    if not isinstance(reference, dict):
        return None
    runtime: ValidFields | None = runtimes.get(str(value_of(reference.get("name"))))
    kind = value_of(reference.get("kind")) or CLUSTER_RUNTIME
    return runtime if runtime and value_of(runtime["kind"]) == kind else None


def list_patches(runtime: ValidFields, namespace: str, environment: Environment) -> list[Patch]:
    """The patches of an environment for a runtime: those that name its kind. A patch for all jobs is not for it."""
    metadata, kind = untraced(runtime["metadata"]), str(value_of(runtime["kind"]))
    name, labels = str(metadata["name"]), metadata.get("labels")
    labels, path = labels if isinstance(labels, dict) else {}, f"runtimes/{name}.yaml"
    attributes = JobAttributes(name, labels, "", kind, namespace, path, is_spec=False, platform="trainer")
    return [
        patch
        for patch in environment.patches
        if any(attribute == "kind" for attribute, _ in patch.match.patterns) and patch.matches(attributes)
    ]


def render_runtimes(
    job: Mapping[str, Any],
    environment: Environment,
    kinds: Sequence[Kind],
    problems: list[Problem],
    deletions: list[Deletion],
) -> tuple[Mapping[str, Any], ...]:
    """Render the runtime of a TrainJob, in the namespace of the job, if the repository has it."""
    runtime = find_runtime(job, environment.runtimes)
    if runtime is None:
        return ()
    made: Mapping[str, Any] = with_layer(runtime, "runtime")
    namespace = job["metadata"].get("namespace")
    is_local = value_of(runtime["kind"]) == RUNTIME
    if is_local and value_of(namespace):
        made = {**made, "metadata": {**made["metadata"], "namespace": namespace}}
    patches = list_patches(runtime, str(value_of(namespace) or "") if is_local else "", environment)
    made = apply_patches(made, patches, problems, deletions)
    made = apply_images(made, environment, kinds, deletions, is_spec=True)
    if environment.cluster.gitops == "argocd":
        # Let Argo CD create the runtime before its jobs, which Trainer refuses without it.
        own = made["metadata"].get("annotations")
        annotations = {"argocd.argoproj.io/sync-wave": "-1", **(own if isinstance(own, dict) else {})}
        made = {**made, "metadata": {**made["metadata"], "annotations": annotations}}
    return (made,)
