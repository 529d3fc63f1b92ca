"""What an operator does with an object that is not as it demands: how bad that is, and in which words to say so."""

from __future__ import annotations

from jobgen.k8s.objects import Manifest, as_text, get_path
from jobgen.model.finding import Severity
from jobgen.spec.kinds import version

MAX_NAME_LENGTH = 63
"""The longest name that a Service, or a label's value, may have."""


def is_operator_since(manifest: Manifest, since: str) -> bool:
    """Whether the declared operator is at least that old; an undeclared one is the newest."""
    declared = manifest.operator_version
    return not (since and declared) or version(declared) >= version(since)


def describe_rejection(manifest: Manifest) -> str:
    """What becomes of an object that the operator does not take."""
    assert manifest.kind is not None
    demands = manifest.kind.demands
    if demands.unseen:
        return f"by its reference, {manifest.kind.name} does not take that"
    if demands.webhook and is_operator_since(manifest, demands.webhook):
        return "the operator's webhook refuses the job"
    return "the operator takes the job and never starts it"


def choose_severity(manifest: Manifest) -> Severity | None:
    """A warning where nobody knows what the operator does; else that of the rule."""
    return Severity.WARNING if manifest.kind and manifest.kind.demands.unseen else None


def find_longest_suffix(manifest: Manifest) -> str:
    """The longest end that a pod's name will have."""
    kind = manifest.kind
    assert kind is not None
    if kind.demands.names == "label":
        return ""
    runtime = kind.demands.runtimes.get(as_text(get_path(manifest.spec, "runtimeRef", "name")))
    ends = [runtime.name_suffix] if runtime else []
    for role in manifest.roles:
        index = str(max(role.count - 1, 0))
        if "{role}" in kind.name_suffix:
            ends.append(kind.name_suffix.replace("{role}", role.replica_type.lower()).replace("{index}", index))
        elif not role.definition or not role.definition.launches:
            ends.append(kind.name_suffix.replace("{index}", index))
    return max(ends, key=len, default="")
