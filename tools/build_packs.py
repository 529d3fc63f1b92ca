"""Write what policies share, tools/pack_parts.yaml, into the policies of policies/packs/.

    python tools/build_packs.py

Each policy is complete, so that `kubectl apply` takes it as it is. So what several of them have is in one table, and is
written into all of them: the lists of objects, and the variables that find the pods of every kind.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

HOME = Path(__file__).parent.parent
PACKS = HOME / "policies/packs"
RULES = re.compile(r"(?<=^    resourceRules:\n)(?:      .*\n)+", re.MULTILINE)
VARIABLE = re.compile(r"(?:^    # .*\n)*^    - name: (\w+)\n(?:      .*\n)+", re.MULTILINE)
_MADE = "        + variables.made\n"
"""The end of `templates`, for policies that also look at what other controllers make pods of."""


def read_parts() -> dict[str, Any]:
    """Return the table."""
    parts: dict[str, Any] = yaml.safe_load((HOME / "tools/pack_parts.yaml").read_text("utf-8"))
    return parts


def build_policy(name: str, text: str, parts: dict[str, Any]) -> str:
    """Return the text of a policy, such as `cost/max-gpus`, with the shared parts as the table has them now."""
    policy, separator, binding = text.partition("---\n")
    for entry in parts["rules"]:
        if name in entry["policies"]:
            policy = RULES.sub(lambda _, rules=entry["text"]: indent(rules, " " * 6), policy, count=1)
    has_made = "- name: made\n" in policy

    def replace(found: re.Match[str]) -> str:
        shared = indent(parts["variables"].get(found[1], ""), " " * 4)
        return (shared if has_made else shared.replace(_MADE, "")) or found[0]

    return VARIABLE.sub(replace, policy) + separator + binding


def list_policies() -> list[tuple[str, Path]]:
    """Return the policies of all packs, with their names in the table."""
    return [(path.relative_to(PACKS).with_suffix("").as_posix(), path) for path in sorted(PACKS.glob("*/*.yaml"))]


def main() -> None:
    """Write the policies that differ."""
    parts = read_parts()
    for name, path in list_policies():
        text = path.read_text("utf-8")
        if (built := build_policy(name, text, parts)) != text:
            path.write_text(built, "utf-8")


if __name__ == "__main__":
    main()
