"""Objects that can be applied only once."""

from collections.abc import Callable, Iterator, Mapping

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import is_hook, uses_server_side_apply
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of
from jobgen.model.suggest import find_key, suggest_entry

_ENGINES = {"argocd": "Argo CD", "flux": "Flux", "kubectl": "kubectl"}
_CREATED_ONCE = "kustomize.toolkit.fluxcd.io/ssa"
# The API server merges the items of this list by name, and replaces the tasks of Volcano.
_MERGED = "replicatedJobs"
# A webhook fills in this value, and rejects a change of the field.
_FilledIn = tuple[Mapping[str, Node], str, str | int]


@rule("manifest", WARNING, kinds=("JobSet", "Job"))
def reapply_refused(manifest: Manifest) -> Iterator[Violation]:
    """A JobSet or Volcano Job without the fields that a webhook fills in inside a list and never lets you change.

    An apply sends a changed list as a whole. The list in Git lacks the filled-in fields, so applying the same manifest
    again removes them, and the webhook rejects it: the next sync fails although nothing changed. This happens to
    Volcano Jobs with every engine, and to a JobSet without server-side apply.

    Write the fields with the values that the webhook fills in. For a JobSet, `ServerSideApply=true` also helps.
    """
    engine = _ENGINES.get(manifest.cluster.gitops)
    if engine is None or is_hook(manifest) or as_text(manifest.annotations.get(_CREATED_ONCE)) == "IfNotPresent":
        return
    field, find = _FINDERS.get((manifest.group, manifest.kind_name), ("", _find_in_job))
    if not field or (field == _MERGED and uses_server_side_apply(manifest)):
        return
    for index, item in enumerate(as_list(manifest.spec.get(field))):
        missing = [entry for entry in find(as_mapping(item), index) if value_of(entry[0].get(entry[1])) is None]
        if missing:
            yield _report(engine, as_mapping(item), missing)


def _find_in_task(task: Mapping[str, Node], index: int) -> Iterator[_FilledIn]:
    pod = as_mapping(get_path(task, "template", "spec"))
    yield task, "name", f"default{index}"
    yield task, "maxRetry", 3
    if value_of(pod.get("hostNetwork")) is True:
        yield pod, "dnsPolicy", "ClusterFirstWithHostNet"


def _find_in_job(item: Mapping[str, Node], _: int) -> Iterator[_FilledIn]:
    job = as_mapping(get_path(item, "template", "spec"))
    pod = as_mapping(get_path(job, "template", "spec"))
    if pod:
        yield job, "completionMode", "Indexed"
        yield pod, "restartPolicy", "OnFailure"


def _report(engine: str, item: Mapping[str, Node], missing: list[_FilledIn]) -> Violation:
    """Report an item of a list at its name, or else at its template."""
    wanted = " and ".join(f"`{name}: {value}`" for _, name, value in missing)
    message = f"{engine} cannot apply the object again: a webhook fills in {wanted}, and rejects an item without this"
    fix_steps = tuple(step for holder, name, value in missing for step in suggest_entry(name, value, holder))
    is_whole = len(fix_steps) == len(missing)
    node = item.get("name") if as_text(item.get("name")) else find_key(item, "template")
    return Violation(node, f"{message}; write it in the manifest", fix_steps=fix_steps if is_whole else (), safe=True)


_FINDERS: Mapping[tuple[str, str], tuple[str, Callable[[Mapping[str, Node], int], Iterator[_FilledIn]]]] = {
    ("batch.volcano.sh", "Job"): ("tasks", _find_in_task),
    ("jobset.x-k8s.io", "JobSet"): (_MERGED, _find_in_job),
}
