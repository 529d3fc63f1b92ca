"""Jobs that never complete."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.objects import Manifest, as_text


@rule("job", ERROR)
def never_completes(manifest: Manifest) -> Iterator[Violation]:
    """A job that never completes, because the pods that decide its success are always restarted.

    With `restartPolicy: Always`, a container is restarted even after it succeeds. Its pod never succeeds, and neither
    does the job: it trains again and again.

    Use `OnFailure`.
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
        message = f"`{deciding.replica_type}` is restarted even after success, so the job never completes"
        yield Violation(deciding.replica_spec["restartPolicy"], f"{message}; use `OnFailure`")
