"""What an operator does with an object that is not as it demands: how bad that is, and in which words to say so."""

from __future__ import annotations

from jobgen.k8s.objects import Manifest
from jobgen.model.finding import Severity
from jobgen.spec.kinds import version


def has_come(manifest: Manifest, since: str) -> bool:
    """Whether the declared operator is at least that old; an undeclared one is the newest."""
    declared = manifest.operator_version
    return not (since and declared) or version(declared) >= version(since)


def refusal(manifest: Manifest) -> str:
    """What becomes of an object that the operator does not take."""
    assert manifest.kind is not None
    demands = manifest.kind.demands
    if demands.unseen:
        return f"by its reference, {manifest.kind.name} does not take that"
    if demands.webhook and has_come(manifest, demands.webhook):
        return "the operator's webhook refuses the job"
    return "the operator takes the job and never starts it"


def severity(manifest: Manifest) -> Severity | None:
    """A warning where nobody knows what the operator does; else that of the rule."""
    return Severity.WARNING if manifest.kind and manifest.kind.demands.unseen else None
