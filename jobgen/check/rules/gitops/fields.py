"""Fields that belong to the cluster, and fields that differ from what the cluster stores."""

from collections.abc import Iterator, Mapping

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import is_hook, is_training_job
from jobgen.k8s.kinds import BUILTIN_GROUPS
from jobgen.k8s.kueue import can_be_queued, find_suspend, get_kueue_queue
from jobgen.k8s.nodes import as_list, as_text
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.model.data import Plain
from jobgen.model.finding import FixStep
from jobgen.model.place import At, find_at
from jobgen.model.quantity import canonicalize_quantity
from jobgen.model.sentence import Sentence


@rule("manifest", WARNING, fields=("finalizers",))
def finalizer_in_git(manifest: Manifest) -> Iterator[Violation]:
    """An object in Git with a finalizer.

    A controller sets and removes its finalizer. A finalizer in Git comes back with each sync, and without its
    controller the object cannot be deleted. Argo CD's own finalizers are not reported.

    Remove the finalizer from the manifest.

    When to turn it off: a finalizer of your own controller, which must be there from the first moment, has to be in
    Git: suppress it on the line and name the controller.
    """
    finalizers = as_list(manifest.metadata.get("finalizers"))
    for index, name in enumerate(finalizers):
        if "argocd.argoproj.io" not in as_text(name):
            message = Sentence("finalizer `{}` can block deletion of the object", as_text(name))
            yield Violation(At(finalizers, index), Sentence("{}; remove it, its controller sets it", message))


@rule("manifest", WARNING, fields=("ownerReferences",))
def owner_references_in_git(manifest: Manifest) -> Iterator[Violation]:
    """An object in Git with `ownerReferences`.

    An owner reference contains the `uid` that one cluster assigned to the owner. Where no such object exists, the
    garbage collector deletes this object as soon as it is created.

    Remove `ownerReferences` from the manifest.

    When to turn it off: never from Git, since a `uid` is known only after its owner was created. Name an exported
    object that is only kept, and not applied, in `exclude`.
    """
    if as_list(manifest.metadata.get("ownerReferences")):
        place = At(manifest.metadata, "ownerReferences", is_key=True)
        message = "`ownerReferences` makes the cluster delete the object if the owner does not exist there; remove it"
        yield Violation(place, message, fix_steps=(FixStep("remove", place),), safe=False)


SERVER_FIELDS = frozenset(
    ("creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@rule("manifest", WARNING)
def server_managed_field(manifest: Manifest) -> Iterator[Violation]:
    """A field that only the cluster sets, in a manifest that was exported from one.

    The API server drops or rejects the field, and a comparison of Git with the cluster always shows a difference.
    `creationTimestamp: null` and a `status` without values, which code generators write, have no effect and are not
    reported; a `status` with values is dropped, and is an info.

    Remove the field from the manifest.

    When to turn it off: manifests kept as a backup of the cluster contain such fields by nature. Exclude that
    folder, rather than turn the rule off for what is deployed.
    """
    if "status" in manifest.object and not _is_empty(manifest.object["status"]):
        yield _report(manifest.object, "status")._replace(severity=INFO)
    for key in manifest.metadata:
        if key in SERVER_FIELDS and manifest.metadata[key] is not None:
            yield _report(manifest.metadata, key)
    if _LAST_APPLIED in manifest.annotations:
        yield _report(manifest.annotations, _LAST_APPLIED)


def _is_empty(node: Plain) -> bool:
    """Return True if a value holds nothing: neither text nor a number, at any depth."""
    nodes = [node]
    while nodes:
        found = nodes.pop()
        if isinstance(found, dict):
            nodes += found.values()
        elif isinstance(found, list):
            nodes += found
        elif found:
            return False
    return True


def _report(holder: Mapping[str, Plain], key: str) -> Violation:
    message, place = (
        Sentence("`{}` is set by the cluster; remove it from the manifest", key),
        At(holder, key, is_key=True),
    )
    return Violation(place, message, fix_steps=(FixStep("remove", place),))


@rule("job", WARNING, kinds=("TrainJob",))
def runtime_patch_time(manifest: Manifest) -> Iterator[Violation]:
    """A `time` in the `runtimePatches` of a TrainJob.

    Trainer's webhook sets it whenever a patch changes. The value from Git is overwritten, so Git and the cluster always
    differ.

    Remove it.

    When to turn it off: never, because Trainer overwrites the value within the same request. `--fix` removes the
    field from an exported object.
    """
    for patch in as_list(manifest.spec.get("runtimePatches")):
        place = find_at(patch, "time", is_key=True)
        if place is not None:
            message = "Trainer sets the `time` of a patch itself; remove it"
            yield Violation(place, message, fix_steps=(FixStep("remove", place),))


_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}


@rule("manifest", WARNING, gitops=tuple(_ENGINES))
def suspend_in_git(manifest: Manifest) -> Iterator[Violation]:
    """A queued job with `suspend` set in Git.

    Kueue sets `suspend` when it admits or stops a job. If Git also sets it, Argo CD or Flux reverts it: `true` stops a
    job that is training, `false` starts a job without quota.

    Remove `suspend`. Kueue suspends a queued job itself.

    When to turn it off: to hold a queued job back for some days, `run.state: paused` or `stopPolicy` of its queue
    does it without a conflict; suppress the finding only for a job that no queue manages.
    """
    engine = _ENGINES[manifest.cluster.gitops]
    if get_kueue_queue(manifest) is None or not can_be_queued(manifest):
        return
    place = find_suspend(manifest)
    suspend = place.node if place is not None else None
    if suspend is not None:
        effect = "stops a job that Kueue has admitted" if suspend else "starts the job before Kueue admits it"
        message = Sentence("{} reverts `suspend` and {}; remove it", engine, effect)
        yield Violation(place, message, fix_steps=(FixStep("remove", place, key="suspend"),), safe=False)


_APPLIERS = {"argocd": "Argo CD", "flux": "Flux", "kubectl": "`kubectl apply`"}


@rule("manifest", ERROR, fields=("generateName",), gitops=tuple(_APPLIERS))
def generated_name(manifest: Manifest) -> Iterator[Violation]:
    """A `generateName` in a manifest that is applied.

    Applying needs a name to find the object again. `kubectl apply`, Argo CD and Flux reject an object without one; only
    Argo CD hooks can have a generated name.

    Write a `name`.

    When to turn it off: objects that only `kubectl create` sends, for example by a script for each run, are not
    applied from Git: list their folder in `exclude` or accept it by path.
    """
    applier = _APPLIERS[manifest.cluster.gitops]
    if "generateName" not in manifest.metadata or manifest.name:
        return
    if applier != "Argo CD" or not is_hook(manifest):
        message = Sentence("{} rejects an object without a name; use `name` instead of `generateName`", applier)
        yield Violation(At(manifest.metadata, "generateName", is_key=True), message)


_FALLBACKS = {
    "argocd": "Argo CD uses the namespace of the app",
    "flux": "Flux uses the namespace of the Kustomization, if it has one",
    "kubectl": "`kubectl` uses the namespace of the current context",
}


@rule("job", INFO, gitops=tuple(_FALLBACKS))
def missing_namespace(manifest: Manifest) -> Iterator[Violation]:
    """A job without a namespace, in a cluster that is deployed from Git.

    Something else then decides the namespace: the Argo CD app, the Flux Kustomization, or the kubectl context.

    Set the namespace in the job, or once for all jobs in the overlay.

    When to turn it off: a repository that is deployed to a namespace for each branch leaves it out by design; set
    the info to `off` there.
    """
    fallback = _FALLBACKS[manifest.cluster.gitops]
    if not manifest.namespace and is_training_job(manifest):
        yield Violation(manifest.name_place, Sentence("the job has no namespace, so {}; set one", fallback))


_INSTANCE = "app.kubernetes.io/instance"


@rule("pod", INFO, gitops=("argocd",))
def instance_label_on_pods(pod: Pod) -> Iterator[Violation]:
    """The label `app.kubernetes.io/instance` on a pod template that Argo CD applies.

    When Argo CD tracks objects by this label, which was the default before 3.0, it considers the pods its own and can
    prune them while they train.

    Remove the label from the pods, or let Argo CD track by annotation.

    When to turn it off: with tracking by annotation, the default since Argo CD 3.0, the label does no harm: set the
    info to `off` in a repository that only such an Argo CD reads.
    """
    # Workloads such as Deployments often select their pods by this label.
    if pod.manifest.kind is None:
        return
    place = find_at(pod.metadata, "labels", _INSTANCE, is_key=True)
    if place is not None:
        message = Sentence("Argo CD can treat pods with the label `{}` as its own and prune them; remove it", _INSTANCE)
        yield Violation(place, message, fix_steps=(FixStep("remove", place),), safe=False)


@rule("pod", INFO, fields=("tolerations",), gitops=("argocd",))
def queued_tolerations(pod: Pod) -> Iterator[Violation]:
    """Tolerations of a queued job that Argo CD keeps in sync with Git.

    Kueue adds the tolerations of the flavor when it admits the job. Argo CD compares the list as a whole and sees a
    difference; with self-heal it reverts the list, which stops the job.

    Move the tolerations to the ResourceFlavor, or ignore the difference in Argo CD.

    When to turn it off: when Argo CD ignores the tolerations already, as `jobgen gitops argocd` writes it, set the
    info to `off`.
    """
    manifest = pod.manifest
    if get_kueue_queue(manifest) is None:
        return
    if as_list(pod.spec["tolerations"]):
        message = "Kueue adds to `tolerations`, and Argo CD can revert that; move them to the ResourceFlavor"
        yield Violation(At(pod.spec, "tolerations", is_key=True), message)


@rule("container", INFO, fields=("resources",), gitops=tuple(_ENGINES))
def non_canonical_quantity(container: Container) -> Iterator[Violation]:
    """A quantity in non-canonical form, such as `1000m`, in a job that Argo CD or Flux applies.

    Kueue and operators write objects back in canonical form: `1000m` as `1`, `1024Mi` as `1Gi`. Git and the cluster
    then differ, and a tool that reverts the difference conflicts with them. Kinds of Kubernetes itself, such as
    Deployments, are not reported: Argo CD and Flux know which of their fields are quantities.

    Write the quantity in canonical form.

    When to turn it off: where neither Argo CD nor Flux corrects drift by itself, the difference is only cosmetic,
    and the info can be off.
    """
    manifest = container.pod.manifest
    engine = _ENGINES[manifest.cluster.gitops]
    if manifest.group in BUILTIN_GROUPS:
        return
    for amounts in (container.limits, container.requests):
        for name, node in amounts.items():
            quantity = node
            canonical = canonicalize_quantity(quantity) if isinstance(quantity, str) else None
            if canonical is not None and canonical != quantity:
                message = Sentence(
                    "`{}` is not in canonical form, so {} can see a difference; write `{}`", name, engine, canonical
                )
                yield Violation(At(amounts, name), message, fix_steps=(FixStep("set", At(amounts, name), canonical),))
