"""The addresses of the documentation."""

from __future__ import annotations

SITE = "https://github.com/jobgen/jobgen/blob/main/docs"
"""Where the pages of docs/ are."""


def name_rule_page(rule: str) -> str:
    """Return the address of the section about a rule or a policy that comes with jobgen."""
    return f"{SITE}/rules.md#{rule}"
