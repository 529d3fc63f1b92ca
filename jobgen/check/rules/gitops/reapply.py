"""Objects that cannot be applied, or start again when they are applied."""

import json
from collections.abc import Callable, Iterator, Mapping

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import is_hook, uses_server_side_apply
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.workloads import find_ttl_path
from jobgen.model.data import Plain, untraced
from jobgen.model.finding import FixStep
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import suggest_entry

_APPLIED = 256 * 1024
_STORED = 1536 * 1024
# Only long strings make an object large; an object with fewer characters in them is not measured.
_MEASURED_FROM = 100_000
_DATA = ("data", "binaryData", "stringData")


@rule("manifest", WARNING)
def object_too_large(manifest: Manifest) -> Iterator[Violation]:
    """An object larger than 256 KiB, the limit of client-side apply, or 1.5 MiB, the limit of etcd.

    `kubectl apply` and Argo CD keep the whole object in an annotation of at most 256 KiB, and etcd stores at most 1.5
    MiB. An object above the limit of etcd is an error.

    Mount data and scripts from a volume, or put them into the image. Above 256 KiB, server-side apply also works.

    When to turn it off: for objects that are only applied on the server (`ServerSideApply=true`), accept the
    warning at 256 KiB; the limit of etcd has no way around.
    """
    characters = sum([len(container.search_text) for pod in manifest.pods for container in pod.containers])
    if (
        characters < _MEASURED_FROM
        and sum(len(as_text(place.node)) for place in _data_values(manifest)) < _MEASURED_FROM
    ):
        return
    longest = max(_long_strings(manifest), key=lambda place: len(as_text(place.node)), default=None)
    serialized = json.dumps(untraced(manifest.object), ensure_ascii=False, separators=(",", ":"))
    size = len(serialized.encode(errors="replace"))
    if size > _STORED:
        message = Sentence(
            "the object has {} KiB, but etcd stores at most 1536 KiB; move long strings to a volume", size // 1024
        )
        yield Violation(longest, message, severity=ERROR)
    elif size > _APPLIED and not uses_server_side_apply(manifest):
        message = Sentence("the object has {} KiB, but client-side apply accepts at most 256 KiB", size // 1024)
        message += "; move long strings to a volume or use server-side apply"
        yield Violation(longest, message)


def _long_strings(manifest: Manifest) -> Iterator[At]:
    """Yield the strings that may be long: commands and arguments, and the data of ConfigMaps and Secrets."""
    for pod in manifest.pods:
        for container in pod.containers:
            yield from container.command_places
    yield from _data_values(manifest)


def _data_values(manifest: Manifest) -> list[At]:
    found: list[At] = []
    for field in _DATA:
        if field in manifest.object:
            entries = as_mapping(manifest.object[field])
            found += (At(entries, key) for key in entries)
    return found


_CLIENTS = {"argocd": "Argo CD", "flux": "Flux", "kubectl": "kubectl"}
_CREATED_ONCE = "kustomize.toolkit.fluxcd.io/ssa"
# The API server merges the items of this list by name, and replaces the tasks of Volcano.
_MERGED = "replicatedJobs"
# A webhook fills in this value, and rejects a change of the field.
_FilledIn = tuple[Mapping[str, Plain], str, str | int]


@rule("manifest", WARNING, kinds=("JobSet", "Job"), gitops=tuple(_CLIENTS))
def reapply_refused(manifest: Manifest) -> Iterator[Violation]:
    """A JobSet or Volcano Job without the fields that a webhook fills in inside a list and never lets you change.

    An apply sends a changed list as a whole. The list in Git lacks the filled-in fields, so applying the same manifest
    again removes them, and the webhook rejects it: the next sync fails although nothing changed. This happens to
    Volcano Jobs with every engine, and to a JobSet without server-side apply.

    Write the fields with the values that the webhook fills in. For a JobSet, `ServerSideApply=true` also helps.

    When to turn it off: with JobSet and `ServerSideApply=true` in the Application, accept it for that environment;
    Volcano Jobs need the fields in any case.
    """
    engine = _CLIENTS[manifest.cluster.gitops]
    if is_hook(manifest) or as_text(manifest.annotations.get(_CREATED_ONCE)) == "IfNotPresent":
        return
    field, find = _FINDERS.get((manifest.group, manifest.kind_name), ("", _find_in_job))
    if not field or (field == _MERGED and uses_server_side_apply(manifest)):
        return
    for index, item in enumerate(as_list(manifest.spec.get(field))):
        missing = [entry for entry in find(as_mapping(item), index) if entry[0].get(entry[1]) is None]
        if missing:
            yield _report(engine, as_mapping(item), missing)


def _find_in_task(task: Mapping[str, Plain], index: int) -> Iterator[_FilledIn]:
    pod = as_mapping(get_path(task, "template", "spec"))
    yield task, "name", f"default{index}"
    yield task, "maxRetry", 3
    if pod.get("hostNetwork") is True:
        yield pod, "dnsPolicy", "ClusterFirstWithHostNet"


def _find_in_job(item: Mapping[str, Plain], _: int) -> Iterator[_FilledIn]:
    job = as_mapping(get_path(item, "template", "spec"))
    pod = as_mapping(get_path(job, "template", "spec"))
    if pod:
        yield job, "completionMode", "Indexed"
        yield pod, "restartPolicy", "OnFailure"


def _report(engine: str, item: Mapping[str, Plain], missing: list[_FilledIn]) -> Violation:
    """Report an item of a list at its name, or else at its template."""
    wanted = " and ".join(f"`{name}: {value}`" for _, name, value in missing)
    message = Sentence(
        "{} cannot apply the object again: a webhook fills in {}, and rejects an item without this", engine, wanted
    )
    fix_steps = tuple(step for holder, name, value in missing for step in suggest_entry(name, value, holder))
    is_whole = len(fix_steps) == len(missing)
    place = At(item, "name") if as_text(item.get("name")) else find_at(item, "template", is_key=True)
    message += "; write it in the manifest, or remove the `null` that deletes it"
    return Violation(place, message, fix_steps=fix_steps if is_whole else (), safe=True)


_FINDERS: Mapping[tuple[str, str], tuple[str, Callable[[Mapping[str, Plain], int], Iterator[_FilledIn]]]] = {
    ("batch.volcano.sh", "Job"): ("tasks", _find_in_task),
    ("jobset.x-k8s.io", "JobSet"): (_MERGED, _find_in_job),
}


_FIELD = "ttlSecondsAfterFinished"


@rule("manifest", WARNING, kinds=("TrainingRuntime", "ClusterTrainingRuntime"))
def ttl_in_runtime(manifest: Manifest) -> Iterator[Violation]:
    """A `ttlSecondsAfterFinished` in the JobSet or the Jobs of a training runtime.

    It deletes the objects that the TrainJob created, but not the TrainJob, whose controller can create them again. With
    Trainer 2.1 every finished job runs again; with other versions a failed one can.

    Remove it, and delete TrainJobs instead.

    When to turn it off: if TrainJobs are deleted by another tool before the TTL ends, accept it on the field;
    Trainer creates nothing for a TrainJob that is gone.
    """
    jobset = as_mapping(get_path(manifest.spec, "template", "spec"))
    jobs = [as_mapping(get_path(job, "template", "spec")) for job in as_list(jobset.get("replicatedJobs"))]
    for holder in (jobset, *jobs):
        for key in holder:
            if key == _FIELD:
                message = Sentence("`{}` deletes the objects of a TrainJob, which can then run again; remove it", key)
                yield Violation(
                    At(holder, key, is_key=True),
                    message,
                    fix_steps=(FixStep("remove", At(holder, key, is_key=True)),),
                    safe=False,
                )


_ENGINES = {"argocd": "Argo CD", "flux": "Flux"}


@rule("manifest", ERROR, gitops=tuple(_ENGINES))
def ttl_reruns_job(manifest: Manifest) -> Iterator[Violation]:
    """A `ttlSecondsAfterFinished` on a job that Argo CD or Flux keeps in sync with Git.

    The cluster deletes the finished job, but Git still has it, so it is recreated and trains again: with Argo CD within
    seconds if self-heal is on, else at the next commit; with Flux at the next interval.

    Remove it. `cleanPodPolicy` cleans up the pods. The TTL of a RayJob deletes only its RayCluster, so it can stay.

    When to turn it off: if each run has a new name from a generator and the old file is removed from Git before the
    TTL ends, accept it for these paths.
    """
    engine = _ENGINES[manifest.cluster.gitops]
    if is_hook(manifest):
        return
    path = find_ttl_path(manifest.group, manifest.kind_name, manifest.kind.operator if manifest.kind else "")
    ttl = find_at(manifest.object, *path) if path else None
    if ttl is not None and ttl.node is not None:
        message = Sentence(
            "`{}` deletes the finished job; {} recreates it, so training runs again; remove it", _FIELD, engine
        )
        fix_steps = (FixStep("remove", ttl, key=_FIELD),)
        yield Violation(ttl, message, fix_steps=fix_steps, safe=False)
