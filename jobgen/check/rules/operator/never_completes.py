"""A job that cannot end."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest, as_text


@rule("job", ERROR)
def never_completes(manifest: Manifest) -> Iterator[Violation]:
    """A job that cannot end, because the pods that decide are started again even when they succeed.

    With `restartPolicy: Always` a container that has finished is started anew, so its pod never succeeds, and neither
    does the job: it trains again and again. Use `OnFailure`.
    """
    kind = manifest.kind
    assert kind is not None
    if not kind.requirements.overwrites_restart_policy:
        return
    deciding = next((role for name in kind.success if (role := manifest.find_role(name))), None)
    if (
        deciding
        and as_text(deciding.replica_spec.get("restartPolicy")) == "Always"
        and "Always" in kind.restart_policies
    ):
        message = (
            f"`{deciding.replica_type}` decides when the job is done, and is started again even then; use `OnFailure`"
        )
        yield Violation(deciding.replica_spec["restartPolicy"], message)
