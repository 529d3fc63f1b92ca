"""Jobs that never complete."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.suggest import find_key


@rule("manifest", ERROR)
def never_completes(manifest: Manifest) -> Iterator[Violation]:
    """A job that never completes, because the pods that decide its success are always restarted.

    With `restartPolicy: Always`, a container is restarted even after it succeeds. Its pod never succeeds, and neither
    does the job: it trains again and again. In a Job of Volcano this is the default; it is a warning there, because a
    policy may still end the job.

    Use `OnFailure`.
    """
    kind = manifest.kind
    if (manifest.group, manifest.kind_name) == ("batch.volcano.sh", "Job"):
        yield from _check_volcano_job(manifest)
        return
    if kind is None or not kind.requirements.overwrites_restart_policy:
        return
    deciding = next((role for name in kind.success if (role := manifest.find_role(name))), None)
    if deciding and as_text(deciding.restart_policy_node) == "Always" and "Always" in kind.restart_policies:
        message = f"`{deciding.replica_type}` is restarted even after success, so the job never completes"
        yield Violation(deciding.restart_policy_node, f"{message}; use `OnFailure`")


def _check_volcano_job(manifest: Manifest) -> Iterator[Violation]:
    """Check a Job of Volcano: it completes when all its pods have ended."""
    if not manifest.pods:
        return
    tasks = [as_mapping(task) for task in as_list(manifest.spec.get("tasks"))]
    policies = any(as_list(owner.get("policies")) for owner in (manifest.spec, *tasks))
    restarted = [pod for pod in manifest.pods if as_text(pod.spec.get("restartPolicy")) in ("", "Always")]
    if not policies and len(restarted) == len(manifest.pods):
        first = restarted[0]
        message = "all pods are restarted even after success, so the job never completes"
        node = first.spec.get("restartPolicy") or find_key(first.template, "spec") or manifest.object.get("kind")
        yield Violation(node, f"{message}; set `restartPolicy: OnFailure`", severity=WARNING)
