"""Policies of Volcano that never apply."""

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import iter_mappings, iter_strings
from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node
from jobgen.model.suggest import find_key

_OF_FAILURES = ("PodFailed", "TaskFailed")
_OF_PENDING = ("RestartPod", "RestartTask")
_SPECS = {"CronJob": ("spec", "jobTemplate", "spec"), "Job": ("spec",)}


@rule("manifest", WARNING, kinds=tuple(_SPECS))
def policy_without_effect(manifest: Manifest) -> Iterator[Violation]:
    """A policy, or a `maxRetry`, of a Job of Volcano that has no effect.

    Volcano acts when a pod fails. With `restartPolicy: OnFailure` or `Always`, the default, the kubelet restarts a
    failed container forever and the pod never fails. Policies for `PodFailed`, `TaskFailed` and exit codes then do not
    apply, `maxRetry` limits nothing, and the job keeps its GPUs.

    With the event `PodPending`, the actions `RestartPod` and `RestartTask` restart no pod.

    Set `restartPolicy: Never` in the tasks, and keep the policy; for `PodPending`, use `RestartJob`.
    """
    if manifest.group != "batch.volcano.sh":
        return
    spec = as_mapping(get_path(manifest.object, *_SPECS[manifest.kind_name]))
    tasks = list(iter_mappings(spec.get("tasks")))
    for holder in (spec, *tasks):
        for policy, events in _list_policies(holder):
            if "PodPending" in events and as_text(policy.get("action")) in _OF_PENDING:
                action = as_text(policy["action"])
                message = f"`{action}` restarts no pod for the event `PodPending`; use `RestartJob`"
                yield Violation(policy["action"], message)
    shared = _find_policy(spec)
    for task in tasks:
        pod = as_mapping(get_path(task, "template", "spec"))
        restart = as_text(pod.get("restartPolicy")) or "Always"
        own = _find_policy(task)
        if restart == "Never" or not pod or not (own or shared):
            continue
        name = as_text(task.get("name"))
        useless = f"the policy for `{own or shared}`" + (" and `maxRetry` have" if "maxRetry" in spec else " has")
        node = pod.get("restartPolicy") or find_key(as_mapping(task.get("template")), "spec")
        message = (
            f"with `restartPolicy: {restart}`, the kubelet restarts the containers of task `{name}` forever and its"
        )
        message += f" pods never fail, so {useless} no effect; set `restartPolicy: Never`"
        yield Violation(node, message, evidence=(restart,))


def _list_policies(holder: Mapping[str, Node]) -> Iterator[tuple[Mapping[str, Node], list[str]]]:
    for policy in iter_mappings(holder.get("policies")):
        events = [text for text, _ in iter_strings(policy.get("events"))]
        yield policy, [*events, as_text(policy.get("event"))]


def _find_policy(holder: Mapping[str, Node]) -> str:
    """Return what a policy of a job or task waits for, if that is a failed pod."""
    for policy, events in _list_policies(holder):
        found = next((event for event in events if event in _OF_FAILURES), "")
        if found or policy.get("exitCode") is not None:
            return found or "exitCode"
    return ""
