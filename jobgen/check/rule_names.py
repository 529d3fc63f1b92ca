"""Former names of rules and policies, which stay valid wherever a user can name a rule.

To rename a rule, add a line `"former-name": "current-name"` to `_RENAMED`. Suppression comments, settings, baselines
and `jobgen explain` then accept both names. Fingerprints and baselines use the first name that a rule ever had, so
those of earlier versions still match. The table is separate from the rules, because a report needs it without
importing them.
"""

from __future__ import annotations

from collections.abc import Mapping

_RENAMED: Mapping[str, str] = {}


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
