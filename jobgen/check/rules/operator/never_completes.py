"""Jobs that never complete."""

from collections.abc import Iterator, Mapping

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import find_key

# The server in the foreground, which runs until its pod is deleted.
_SSHD = lazy_pattern(r"\bsshd (?:-\w+ )*-[a-zA-Z]*D")
_ENDING = ("AbortJob", "CompleteJob", "TerminateJob")


@rule("manifest", ERROR)
def never_completes(manifest: Manifest) -> Iterator[Violation]:
    """A job that never completes, because pods that decide its success are always restarted, or never end.

    With `restartPolicy: Always`, a container is restarted even after it succeeds. Its pod never succeeds, and neither
    does the job: it trains again and again. In a Job of Volcano this is the default; it is a warning there, because
    such a Job can be a service that is meant to run on.

    A Job of Volcano completes when all its pods have ended. With the plugin `mpi`, the workers run `sshd`, which never
    ends: without a policy the job holds its GPUs forever. Workers without a command are a warning, because their image
    decides what they run; so is `sshd` without `-D`, which runs in the background.

    Use `OnFailure`; for MPI, give the task of the launcher the policy `{event: TaskCompleted, action: CompleteJob}`.
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
    endless = list(_check_volcano_mpi(manifest, tasks))
    yield from endless
    policies = any(as_list(owner.get("policies")) for owner in (manifest.spec, *tasks))
    restarted = [pod for pod in manifest.pods if as_text(pod.spec.get("restartPolicy")) in ("", "Always")]
    if not endless and not policies and len(restarted) == len(manifest.pods):
        first = restarted[0]
        message = "all pods are restarted even after success, so the job never completes"
        node = first.spec.get("restartPolicy") or find_key(first.template, "spec") or manifest.object.get("kind")
        yield Violation(node, f"{message}; set `restartPolicy: OnFailure`", severity=WARNING)


def _check_volcano_mpi(manifest: Manifest, tasks: list[Mapping[str, Node]]) -> Iterator[Violation]:
    """Check that a job of the plugin `mpi` ends, although `sshd` of its workers does not."""
    plugins = as_mapping(manifest.spec.get("plugins"))
    # With `minSuccess`, the job completes when that many pods have succeeded.
    if "mpi" not in plugins or "minSuccess" in manifest.spec or any(map(_ends_job, (manifest.spec, *tasks))):
        return
    # Imported late, because few repositories have Jobs of Volcano.
    from jobgen.check.operators.volcano import find_argument

    wanted = find_argument(plugins["mpi"], "worker")
    worker = next((role for role in manifest.roles if role.replica_type == wanted and role.count), None)
    main = worker.pod.main_container if worker else None
    command = " ".join(map(as_text, main.command_line)) if main else ""
    # Another command may be a script that ends, or not.
    if main is None or (command and "sshd" not in command):
        return
    message = f"task `{wanted}` waits for MPI connections and never ends, so the job never completes"
    advice = "give the launcher's task the policy `{event: TaskCompleted, action: CompleteJob}`"
    severity = None if _SSHD.search(command) else WARNING
    yield Violation(find_key(plugins, "mpi"), f"{message}; {advice}", severity=severity)


def _ends_job(owner: Mapping[str, Node]) -> bool:
    """Return True if a policy of a job or a task ends the job when a task has completed."""
    for policy in map(as_mapping, as_list(owner.get("policies"))):
        events = {as_text(policy.get("event")), *map(as_text, as_list(policy.get("events")))}
        if events & {"TaskCompleted", "*"} and as_text(policy.get("action")) in _ENDING:
            return True
    return False
