"""Pods that the Pod Security level of their namespace forbids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.objects import Manifest

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState
    from jobgen.check.pod_security.checks import Breach, Level

_TEMPLATES = ("spec", "template", "spec", "replicatedJobs", "*", "template", "spec", "template")
_SEVERITIES = {"enforce": ERROR, "warn": WARNING, "audit": INFO}


@rule("cluster", ERROR)
def pod_security_violation(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A pod that the Pod Security level of its namespace forbids.

    The labels `pod-security.kubernetes.io/enforce`, `warn` and `audit` of a Namespace in the repository, or in the
    folder `cluster.state`, apply to every pod of the namespace. With `enforce`, the API server accepts the job and
    refuses its pods, so the job never starts: an error. With `warn` it is a warning, with `audit` an info.

    The pods of a TrainJob come from its runtime, so its runtime is also checked, if it is known.

    Apply the fix in the message, or move the job to a namespace whose level allows it.
    """
    from jobgen.check.pod_security.checks import find_breaches

    reported: set[tuple[int, str]] = set()
    for level, label in state.levels.get(manifest.namespace, ()):
        minor = min(level.minor, state.release[1])
        for pod in manifest.pods:
            for breach in find_breaches(pod.metadata, pod.spec, level.level, minor):
                # The rest of such a pod may have what is missing.
                if (pod.partial and breach.is_missing) or (id(breach.node), breach.fault) in reported:
                    continue
                reported.add((id(breach.node), breach.fault))
                message = _format_message(breach, level, manifest.namespace)
                related = ((label, f"namespace `{manifest.namespace}` sets `{level.mode}: {level.level}`"),)
                yield Violation(breach.node, message, related, _SEVERITIES[level.mode])
        if manifest.kind_name == "TrainJob":
            yield from _check_runtime(manifest, level, state)


def _check_runtime(manifest: Manifest, level: Level, state: ClusterState) -> Iterator[Violation]:
    """Report a runtime whose pods the level forbids, at the reference to it; the first fault stands for all."""
    from jobgen.check.cluster.pod_resources import find_runtime
    from jobgen.check.pod_security.checks import find_breaches

    runtime = find_runtime(manifest, state)
    name = as_text(get_path(manifest.spec, "runtimeRef", "name"))
    # The job may add what the runtime lacks.
    is_patched = any(manifest.spec.get(field) for field in ("podTemplateOverrides", "runtimePatches", "trainer"))
    templates = [as_mapping(found) for found in find_nodes(runtime, _TEMPLATES)]
    breaches = [
        breach
        for template in templates
        for breach in find_breaches(
            template.get("metadata"), template.get("spec"), level.level, min(level.minor, state.release[1])
        )
        if not (breach.is_missing and is_patched)
    ]
    if breaches:
        more = f" (and {len(breaches) - 1} more)" if len(breaches) > 1 else ""
        message = (
            f"the pods of runtime `{name}` are refused{more}: {_format_message(breaches[0], level, manifest.namespace)}"
        )
        related = ((breaches[0].node, f"in runtime `{name}`"),)
        yield Violation(get_path(manifest.spec, "runtimeRef", "name"), message, related, _SEVERITIES[level.mode])


def _format_message(breach: Breach, level: Level, namespace: str) -> str:
    verb = "requires" if breach.is_missing else "forbids"
    version = "" if level.version == "latest" else f" of `{level.version}`"
    reason = f"the Pod Security level `{level.level}`{version} of namespace `{namespace}` {verb}"
    return f"{breach.fault}, which {reason}; {breach.remedy}"
