"""Jobs that read an index that their pods do not have."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

_NAME = "JOB_COMPLETION_INDEX"
_ANNOTATION = "batch.kubernetes.io/job-completion-index"
# `$(NAME)` of Kubernetes, and `$NAME` and `${NAME}` of a shell; `${NAME:-0}` has a value for this case.
_REFERENCE = lazy_pattern(rf"(?<!\$)\$(?:\({_NAME}\)|{_NAME}\b|\{{{_NAME}(?![:?+=-]|\w))|environ\W+{_NAME}\b")


@rule("manifest", WARNING, kinds=("CronJob", "Job"))
def missing_completion_index(manifest: Manifest) -> Iterator[Violation]:
    """A Job with several pods that reads `JOB_COMPLETION_INDEX` but is not `Indexed`.

    Kubernetes sets the variable, and the annotation that it is copied from, only with `completionMode: Indexed`. The
    default is `NonIndexed`: a shell reads an empty text, and a program gets `$(JOB_COMPLETION_INDEX)` as it is written.
    Pods that are meant to share the work all do the same, or fail.

    Set `completionMode: Indexed`, and `completions`.
    """
    if manifest.group != "batch":
        return
    path = ("jobTemplate", "spec") if manifest.kind_name == "CronJob" else ()
    spec = as_mapping(get_path(manifest.spec, *path)) if path else manifest.spec
    pods = max(as_integer(spec.get(name)) or 1 for name in ("parallelism", "completions"))
    if pods < 2 or as_text(spec.get("completionMode")) == "Indexed":
        return
    for container in (each for pod in manifest.pods for each in (*pod.containers, *pod.init_containers)):
        node = _find_reference(container)
        if node is not None:
            mode = "`completionMode` is `NonIndexed`" if "completionMode" in spec else "the Job is not `Indexed`"
            message = f"{mode}, so the {pods} pods have no `{_NAME}`; set `completionMode: Indexed`"
            yield Violation(node, message)
            return


def _find_reference(container: Container) -> Node:
    """Return the first node that reads the index; None if there is none, or if the container sets it."""
    entries = list(container.env)
    for name, entry in entries:
        source = get_path(entry, "valueFrom", "fieldRef", "fieldPath")
        if _ANNOTATION in as_text(source):
            return source
        if name == _NAME:
            return None
    texts: list[Node] = [*container.command_line, *(entry.get("value") for _, entry in entries)]
    return next((node for node in texts if _NAME in as_text(node) and _REFERENCE.search(as_text(node))), None)
