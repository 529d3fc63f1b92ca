"""Write docs/rules.md from the docstrings and examples of the rules; with --check, only test whether it is current."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from jobgen.check.rule_docs import RuleDoc, all_docs, policy_example, rule_example
from jobgen.model.builtin_rules import former_rule_names

PAGE = Path(__file__).parent / "rules.md"
CATEGORIES = {
    "yaml": "Kubernetes reads the file differently than it appears, or not at all.",
    "schema": "The API server rejects the object, or a jobgen file does not match its format.",
    "pod": "The API server accepts the object but rejects the pods that its operator creates.",
    "operator": "The operator rejects the object, ignores a part of it, or handles it differently.",
    "policy": "A policy of the cluster rejects the object, or the policy itself is invalid.",
    "gitops": "Argo CD or Flux would rerun the job, conflict over it, delete it, or never apply it.",
    "resources": "The requested resources are inconsistent or wasted.",
    "launch": "The launcher, the training script or the server does not fit its pods.",
    "image": "It is uncertain which image runs.",
    "security": "The pod has more access than training needs.",
    "scheduling": "The job, or a part of it, can wait forever.",
    "spec": "A job spec, an overlay or the settings are invalid.",
    "team": "An object uses what its team cannot use, or more than its budget.",
    "fleet": "Several jobs conflict with each other.",
    "meta": "Something could not be checked.",
}
INTRO = """\
<!-- Written by docs/build_rules.py: run `make docs`. -->

# Rules

Every finding of `jobgen lint` names its rule. `jobgen explain RULE` prints the same text as this page.

An **error** certainly fails or loses work. A **warning** is a risk. An **info** is advice. Only errors make
`jobgen lint` exit with 1. A repository can change the severity of a rule or turn it off
([lint.md](lint.md#settings)):

~~~yaml
# jobgen.yaml
rules:
  mutable-image-tag: off
  server-managed-field:
    - {severity: error, environments: [prod]}
~~~
"""


def main() -> int:
    """Write the page, or compare it."""
    text = build_page()
    if "--check" in sys.argv:
        current = PAGE.is_file() and PAGE.read_text("utf-8") == text
        sys.stderr.write("" if current else "docs/rules.md is out of date: run `make docs`\n")
        return 0 if current else 1
    PAGE.write_text(text, "utf-8")
    return 0


def build_page() -> str:
    """Return the whole page."""
    docs = all_docs(None).values()
    found = {name: sorted(doc for doc in docs if doc.category == name) for name in CATEGORIES}
    used = {name: rules for name, rules in found.items() if rules}
    parts = [INTRO]
    parts += [part for name, rules in used.items() for part in _format_table(name, rules)]
    parts += [part for name, rules in used.items() for part in (f"## {name}\n", *map(_format_section, rules))]
    return "\n".join(parts)


def _format_table(category: str, rules: list[RuleDoc]) -> Iterator[str]:
    yield f"**[{category}](#{category})**: {CATEGORIES[category]}\n"
    rows = (f"| [{doc.name}](#{doc.name}) | {doc.severity.value} | {_escape_cell(doc.summary)} |\n" for doc in rules)
    yield "| rule | severity | flags |\n|---|---|---|\n" + "".join(rows)


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _format_section(doc: RuleDoc) -> str:
    shown = rule_example(doc.name) or policy_example(None, doc.name)
    parts = [f"### {doc.name}\n", f"{doc.severity.value.capitalize()}. {doc.summary}\n"]
    parts += [f"{doc.text}\n"] if doc.text else []
    parts += [f"Former name: `{former}`.\n" for former in former_rule_names(doc.name)]
    # Tildes, because the tests run every example in backticks.
    titled = zip(("Bad", "Good"), shown or (), strict=False)
    parts += [f"{title}:\n\n~~~yaml\n{text.rstrip()}\n~~~\n" for title, text in titled if text]
    return "\n".join(parts)


if __name__ == "__main__":
    raise SystemExit(main())
