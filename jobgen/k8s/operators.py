"""What operators do with a job: how they reject an invalid one, and how they name its pods."""

from __future__ import annotations

from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest, Role
from jobgen.model.finding import Severity
from jobgen.spec.kinds import parse_version

MAX_NAME_LENGTH = 63
"""The maximum length of the name of a Service and of a label value."""
# Groups of operators whose source is not public.
_DOCUMENTED = ("batch.tensorstack.dev",)


def is_operator_since(manifest: Manifest, since: str) -> bool:
    """Return True if the declared version of the operator is `since` or later; without one, the newest is assumed."""
    declared = manifest.operator_version if since else ""
    return not declared or parse_version(declared) >= parse_version(since)


def describe_rejection(manifest: Manifest) -> str:
    """Return what happens to a job that the operator does not accept."""
    assert manifest.kind is not None
    required = manifest.kind.requirements
    if required.from_documentation:
        return f"according to its reference, {manifest.kind.name} does not accept this"
    if required.webhook and is_operator_since(manifest, required.webhook):
        return "the operator's webhook rejects the job"
    return "the operator accepts the job but never starts it"


def choose_severity(manifest: Manifest) -> Severity | None:
    """Return a warning if the behavior of the operator is undocumented; None means the severity of the rule."""
    is_documented = manifest.kind.requirements.from_documentation if manifest.kind else manifest.group in _DOCUMENTED
    return Severity.WARNING if is_documented else None


def name_last_pod(role: Role) -> str:
    """Return the name of the last pod of a role; empty if it is not known."""
    manifest, kind = role.manifest, role.manifest.kind
    if kind is None or not manifest.name or not role.count or "{index}" not in kind.name_suffix:
        return ""
    suffix = kind.name_suffix.replace("{index}", str(role.count - 1))
    replica_type = role.replica_type.lower()
    if "{role}" in suffix:
        return manifest.name + suffix.replace("{role}", replica_type)
    return manifest.name + suffix if suffix.startswith(f"-{replica_type}-") else ""


def find_longest_suffix(manifest: Manifest) -> str:
    """Return the longest suffix that the operator appends to the job's name for a pod."""
    kind = manifest.kind
    assert kind is not None
    if kind.requirements.names == "label":
        return ""
    runtime = kind.requirements.runtimes.get(as_text(get_path(manifest.spec, "runtimeRef", "name")))
    suffixes = [runtime.name_suffix] if runtime else []
    for role in manifest.roles:
        index = str(max(role.count - 1, 0))
        if "{role}" in kind.name_suffix:
            suffixes.append(kind.name_suffix.replace("{role}", role.replica_type.lower()).replace("{index}", index))
        elif not role.definition or not role.definition.launches:
            suffixes.append(kind.name_suffix.replace("{index}", index))
    return max(suffixes, key=len, default="")
