"""Pods without the main container."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Pod
from jobgen.k8s.operators import choose_severity, describe_rejection
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep


@rule("pod", ERROR, fields=("containers",))
def missing_main_container(pod: Pod) -> Iterator[Violation]:
    """A pod without a container of the name that the operator expects, such as `pytorch`.

    The operator finds the main container by its name, for its port and its exit code, and rejects a job without it.

    Rename the container that trains. Other containers can have any name.
    """
    kind = pod.manifest.kind
    if kind is None or pod.role is None or not kind.requirements.container or not pod.containers:
        return
    wanted = value_of(kind.container)
    names = [container.data.get("name") for container in pod.containers]
    if wanted in map(value_of, names) or not all(map(value_of, names)):
        # The API server rejects a container without a name.
        return
    name = names[0]
    remedy = f"rename `{value_of(name)}`" if len(names) == 1 else "rename the one that trains"
    message = f"no container is named `{wanted}`; {describe_rejection(pod.manifest)}; {remedy}"
    severity = choose_severity(pod.manifest)
    fix_steps = (FixStep("set", name, wanted),) if len(names) == 1 else ()
    # The fix is safe where the job is certainly rejected as it is.
    yield Violation(name, message, severity=severity, fix_steps=fix_steps, safe=severity is None)
