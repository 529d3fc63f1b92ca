"""Former names of rules and policies, which stay valid wherever a user can name a rule.

To rename a rule, add a line `"former-name": "current-name"` to `_RENAMED`. Suppression comments, settings, baselines
and `jobgen explain` then accept both names. Fingerprints and baselines use the first name that a rule ever had, so
those of earlier versions still match. The table is separate from the rules, because a report needs it without
importing them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.model.suggest import find_closest

_RENAMED: Mapping[str, str] = {
    "change-not-judged": "change-not-analyzed",
    "doubled-role": "duplicate-role",
    "gang-beyond-job": "min-available-too-high",
    "misspelt-kind": "misspelled-kind",
    "moving-tag": "mutable-image-tag",
    "needless-pull": "unnecessary-image-pull",
    "never-admitted": "queue-quota-exceeded",
    "newer-field": "field-newer-than-operator",
    "no-room-for-name": "name-too-long-for-hash",
    "not-expressible": "unsupported-by-kind",
    "owner-in-git": "owner-references-in-git",
    "padded-image": "image-name-whitespace",
    "partial-gang": "min-available-too-low",
    "patched-env": "env-in-runtime-patch",
    "queue-without-effect": "ineffective-queue-label",
    "replica-count": "invalid-replica-count",
    "reserved-env": "overwritten-env",
    "reserved-variable": "reserved-runtime-env",
    "second-document": "ignored-document",
    "server-field": "server-managed-field",
    "tiny-memory": "memory-too-small",
    "too-many-faults": "too-many-errors",
    "two-schedulers": "kueue-and-volcano-queues",
    "uncanonical-quantity": "non-canonical-quantity",
    "uneven-gpus": "master-worker-gpu-mismatch",
    "unknown-choice": "unknown-enum-value",
    "unknown-day": "unknown-current-date",
    "unwritten-replicas": "missing-replicas",
}


def canonical_rule_name(name: str) -> str:
    """The current name of the rule that has, or once had, this name."""
    return _RENAMED.get(name, name)


def original_rule_name(name: str) -> str:
    """The first name of the rule that has, or once had, this name."""
    current = canonical_rule_name(name)
    return next((former for former, renamed in _RENAMED.items() if renamed == current), current)


def former_rule_names(name: str) -> list[str]:
    """The names that a rule had before its current one, oldest first."""
    return [former for former, current in _RENAMED.items() if current == name]


def find_similar_rule(name: str, known: Iterable[str]) -> str:
    """Return the known rule with the most similar current or former name, or an empty string."""
    return canonical_rule_name(find_closest(name, [*known, *_RENAMED]))
