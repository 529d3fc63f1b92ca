"""A pod without the container that the operator looks for."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Pod
from jobgen.k8s.operators import choose_severity, describe_rejection
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep


@rule("pod", ERROR, fields=("containers",))
def missing_main_container(pod: Pod) -> Iterator[Violation]:
    """A pod without a container of the name that the operator looks for, such as `pytorch`.

    The operator finds the container that trains by its name, for its port and its exit code, and refuses a job without
    it. Rename the container that trains; others beside it may be called as they like.
    """
    kind = pod.role.manifest.kind
    if kind is None or not kind.requirements.container or not pod.containers:
        return
    wanted = value_of(kind.container)
    names = [container.data.get("name") for container in pod.containers]
    if wanted in map(value_of, names) or not all(map(value_of, names)):
        # A container without any name is refused for that.
        return
    blame = names[0]
    hint = f"rename `{value_of(blame)}`" if len(names) == 1 else "rename the one that trains"
    message = f"no container is called `{wanted}`; {describe_rejection(pod.role.manifest)}, so {hint}"
    told = choose_severity(pod.role.manifest)
    fix_steps = (FixStep("set", blame, wanted),) if len(names) == 1 else ()
    # A job that is refused today cannot be meant as it is.
    yield Violation(blame, message, severity=told, fix_steps=fix_steps, safe=told is None)
