"""Kinds, fields and values that the declared versions do not have."""

from collections.abc import Iterator

from jobgen.check.operators import KINDS, find_violations
from jobgen.check.operators.checks import ADMITS_NOTHING, GATE_OFF, REJECTED, is_gate_on
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.feature_gates import GatedField, find_places, list_dropped
from jobgen.k8s.kinds import BUILTIN_GROUPS, Release, format_release, parse_release
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import choose_severity, describe_rejection, is_operator_since
from jobgen.model.data import Plain
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean, list_alternatives, suggest_value
from jobgen.spec.kinds import Choice

_MPI_JOBS = {
    "mpi-operator": "use `platform: mpi-operator`, or `apiVersion: kubeflow.org/v2beta1` in a manifest",
    "training-operator": "use `platform: kubeflow`, or `apiVersion: kubeflow.org/v1` in a manifest",
}


@rule("job", ERROR)
def kind_not_served(manifest: Manifest) -> Iterator[Violation]:
    """A kind that the declared operator does not serve yet, or that another operator serves in its place.

    The API server rejects objects of unknown kinds. JAXJob was added in training-operator 1.9, PaddleJob in 1.6. An
    MPIJob is either `v1` of training-operator or `v2beta1` of mpi-operator, depending on what the cluster declares.

    Update the operator, or use a kind and version that it serves.

    When to turn it off: if both versions of the CRD are merged by hand in your cluster, import that CRD into
    `schemas/`; otherwise the declaration in `cluster.operators` is what has to change.
    """
    kind, cluster = manifest.kind, manifest.cluster
    assert kind is not None
    if not is_operator_since(manifest, kind.versions.since):
        since, declared = kind.versions.since, manifest.operator_version
        message = Sentence("{} was added in {} {}, but this cluster has {}", kind.name, kind.operator, since, declared)
        yield Violation(At(manifest.object, "kind"), Sentence("{}; update the operator or use another kind", message))
    other_operator = kind.requirements.conflicts_with
    if other_operator and cluster.has_other_operator(kind):
        message = Sentence("this cluster runs MPIJobs with {}, not with {}", other_operator, kind.operator)
        advice = _MPI_JOBS.get(other_operator, "use its `apiVersion`")
        yield Violation(At(manifest.object, "apiVersion"), Sentence("{}; {}", message, advice))


@rule("job", ERROR)
def field_newer_than_operator(manifest: Manifest) -> Iterator[Violation]:
    """A field that is newer than the operator version that the cluster declares.

    The API server drops the field without an error, or rejects the object if the client asks for strict validation. For
    example, a job with `suspend: true` starts at once.

    Remove the field, or update the operator.

    When to turn it off: correct `cluster.operators` if the cluster was updated already. During an update, the
    environments that are still old should get an overlay that removes the field.
    """
    kind, declared = manifest.kind, manifest.operator_version
    assert kind is not None
    if not declared or kind.older:
        # The schema is that of the declared version, and reports the field.
        return
    seen: set[tuple[object, ...]] = set()
    for field in kind.fields.values():
        if field.versions.contains(declared) or field.at in seen:
            continue
        seen.add(field.at)
        place = find_at(manifest.object, *map(str, field.at), is_key=True)
        if place is not None:
            message = Sentence(
                "`{}` {} of {}, but this cluster has {}, which drops it",
                place.key,
                field.versions,
                kind.operator,
                declared,
            )
            yield Violation(place, Sentence("{}; remove it", message))


@rule("manifest", WARNING)
def dropped_field(manifest: Manifest) -> Iterator[Violation]:
    """A field that the API server drops because its feature gate is off by default in the cluster's release.

    The object is accepted, and runs as if the field were not there: with Kubernetes 1.30, a mount with
    `recursiveReadOnly: Enabled` is not read-only below its top.

    Remove the field, or update the cluster. If the gate is on in your cluster, name it in `cluster.featureGates`.

    When to turn it off: when a gate is turned on in some clusters only, set `featureGates` in the overlays of
    these, and the others keep the warning.
    """
    release = parse_release(manifest.cluster.kubernetes)
    for holder, field in _list_gated(manifest, release):
        if is_gate_on(manifest, field.gate):
            continue
        for place in find_places(holder, field.path):
            if At(place.holder, place.key).node not in (None, field.default):
                shown = f"`{field.gate}` is off by default in Kubernetes {format_release(release)}"
                advice = "remove it, or name the gate in `cluster.featureGates`"
                yield Violation(
                    place,
                    Sentence("the API server drops `{}`, because the feature gate {}; {}", place.key, shown, advice),
                )


def _list_gated(manifest: Manifest, release: Release) -> list[tuple[Plain, GatedField]]:
    """Return the fields that are dropped in a release and that the object may have, each with what may hold it."""
    text = manifest.text if manifest.pods else ""
    in_pods = [field for name, field in list_dropped("", release) if text is None or name in text]
    found: list[tuple[Plain, GatedField]] = [(pod.spec, field) for field in in_pods for pod in manifest.pods]
    if manifest.group in BUILTIN_GROUPS:
        found += [(manifest.object, field) for _, field in list_dropped(manifest.kind_name, release)]
    return found


@rule("manifest", WARNING, kinds=KINDS)
def feature_gate_off(manifest: Manifest) -> Iterator[Violation]:
    """A field that its operator rejects unless you turn on a feature gate that is off by default.

    Without the gate, the operator rejects the object or never starts it. This is an error if `cluster.featureGates`
    declares the gates of the cluster and does not list this one.

    Remove the field. Gates that your operator runs with belong in `cluster.featureGates`, which ends the warning.

    When to turn it off: if an environment must fail whenever the gate is missing, declare `featureGates` there; it
    is an error then. Accepting the warning is right only while you plan to turn the gate on.
    """
    yield from find_violations(manifest, GATE_OFF)


@rule("manifest", ERROR, kinds=KINDS)
def rejected_by_operator(manifest: Manifest) -> Iterator[Violation]:
    """An object that the webhook of its operator rejects.

    The schema of a CRD describes single fields. Webhooks check more: whether names fit, whether a reference names
    something that exists, and whether two fields go together. With GitOps the object then never reaches the cluster.
    `cluster.operators` names the version of the operator; without it, the newest applies.

    Write a value that the webhook accepts; its rule is named with the field, and docs/operators.md lists all of
    them.

    When to turn it off: never for a webhook that runs. If yours is disabled, as in some test clusters, set the rule
    to `warning` for that environment; the operator can still fail on the object.
    """
    yield from find_violations(manifest, REJECTED)


@rule("manifest", WARNING, kinds=KINDS)
def admits_nothing(manifest: Manifest) -> Iterator[Violation]:
    """A queue that Kueue accepts, but that admits no workload.

    A ClusterQueue without `namespaceSelector` matches no namespace, so its workloads wait forever.

    Write `namespaceSelector: {}` to admit every namespace, or a selector of labels that the namespaces have.

    When to turn it off: a queue that is prepared before its tenants exist can keep the warning until then: accept
    it on the ClusterQueue with an end date.
    """
    yield from find_violations(manifest, ADMITS_NOTHING)


@rule("job", ERROR)
def unknown_enum_value(manifest: Manifest) -> Iterator[Violation]:
    """A value that the operator does not know, in a field where the CRD accepts any string.

    Some operators reject it; others silently do something else. For example, a misspelled `cleanPodPolicy` deletes
    every pod and its log when the job ends. It is a warning if that does what was meant, or if an image can know more
    values than the operator.

    Use one of the values that the message names.

    When to turn it off: a word that your newer operator introduced needs its version in `cluster.operators`; when
    jobgen does not know that release yet, lower the rule to `warning` for the environment.
    """
    assert manifest.kind is not None
    for place, choices in manifest.kind.requirements.choices.items():
        holder = get_path(manifest.object, *place)
        if not isinstance(holder, dict):
            continue
        for key in holder:
            if key in choices and holder[key] not in choices[key].values:
                yield from _report(manifest, At(holder, key), choices[key])


def _report(manifest: Manifest, place: At, choice: Choice) -> Iterator[Violation]:
    written = place.node
    if not isinstance(written, str) or not is_operator_since(manifest, choice.since):
        return
    known = [value for value in choice.values if value]
    hint = did_you_mean(written, known).removeprefix("; ")
    remedy = hint or f"use {list_alternatives(f'`{value}`' for value in known)}"
    # `all` and `always` get the effect that was meant.
    is_warning = choice.warning or (choice.otherwise and written.lower() in ("all", "always"))
    consequence = choice.otherwise or describe_rejection(manifest)
    message = Sentence("`{}` has the unknown value `{}`; {}; {}", place.key, written, consequence, remedy)
    fix_steps, safe = suggest_value(place, known, is_refused=not (is_warning or choice.otherwise))
    yield Violation(
        place, message, severity=WARNING if is_warning else choose_severity(manifest), fix_steps=fix_steps, safe=safe
    )


@rule("job", ERROR)
def number_out_of_bounds(manifest: Manifest) -> Iterator[Violation]:
    """A number that the operator does not support, such as a deadline of zero seconds.

    CRDs accept any number. A job with a negative `activeDeadlineSeconds` or `backoffLimit` fails as soon as it starts,
    and one with a negative `ttlSecondsAfterFinished` is deleted as soon as it ends; mpi-operator rejects all of them.

    Use a number within the bounds that the message names.

    When to turn it off: in clusters where a webhook replaces the number, for example a maximal deadline, delete the
    field from the job and let the webhook write it.
    """
    assert manifest.kind is not None
    for place, bounds in manifest.kind.requirements.bounds.items():
        holder = get_path(manifest.object, *place)
        if not isinstance(holder, dict):
            continue
        for key in holder:
            number = as_integer(holder[key]) if key in bounds else None
            if number is None:
                continue
            bound = bounds[key]
            if bound.minimum is not None and number < bound.minimum:
                wanted = f"at least {bound.minimum}"
            elif bound.maximum is not None and number > bound.maximum:
                wanted = f"at most {bound.maximum}"
            else:
                continue
            yield Violation(
                At(holder, key),
                Sentence("`{}` must be {}, got {}", key, wanted, number),
                severity=choose_severity(manifest),
            )


_SCHEMES = {"dataset": ("hf", "s3", "cache"), "model": ("hf", "s3")}


@rule("job", WARNING, kinds=("TrainJob",))
def unknown_storage_scheme(manifest: Manifest) -> Iterator[Violation]:
    """A `storageUri` of a TrainJob that Trainer's initializers cannot read.

    The initializers shipped with Trainer read `hf://` and `s3://`, and for datasets also `cache://`; they fail
    otherwise.

    Use one of these schemes, or an initializer image of your own.

    When to turn it off: if the initializer of your runtime is an image of your own that reads other schemes,
    suppress the finding on `storageUri` and name the image; the rule does not look at the runtime.
    """
    if "initializer" not in manifest.spec:
        return
    for what, schemes in _SCHEMES.items():
        written = as_text(get_path(manifest.spec, "initializer", what, "storageUri"))
        scheme = written.partition("://")[0]
        # From 2.3 on the CRD itself asks for a scheme.
        if scheme not in schemes and ("://" in written or (scheme and not is_operator_since(manifest, "2.3.0"))):
            known = list_alternatives(f"`{scheme}://`" for scheme in schemes)
            place = find_at(manifest.spec, "initializer", what, "storageUri")
            yield Violation(place, Sentence("Trainer's initializers read only {}, not `{}`", known, written))


@rule("job", WARNING, kinds=("TrainJob",))
def ignored_device_claims(manifest: Manifest) -> Iterator[Violation]:
    """A TrainJob with `claims` in `resourcesPerNode`, which Trainer ignores.

    Trainer copies only the `limits` and `requests` of `resourcesPerNode` into the pods. The container of the node gets
    no devices of the claims, and trains with what its runtime requests.

    Set `resources.claims` of the container `node`, and `resourceClaims` of its pod, in the runtime.

    When to turn it off: when the runtime has the claims and the job repeats them for readers, delete the copy in
    the job, as nothing reads it.
    """
    resources = as_mapping(get_path(manifest.spec, "trainer", "resourcesPerNode"))
    if as_list(resources.get("claims")):
        message = "Trainer ignores `claims` of `resourcesPerNode`, so the nodes get no devices of them"
        yield Violation(At(resources, "claims", is_key=True), Sentence("{}; set the claims in the runtime", message))
