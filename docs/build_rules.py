"""Writes docs/rules.md from what the rules say about themselves; with --check it only says whether it is up to date."""

# ruff: noqa: INP001

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from jobgen.check.policy_docs import all_docs, policy_example
from jobgen.check.rule_docs import RuleDoc, example

PAGE = Path(__file__).parent / "rules.md"
CATEGORIES = {
    "yaml": "Kubernetes reads the file differently from what it says, or not at all.",
    "schema": "The API server refuses the object; or a file of ours does not fit its format.",
    "pod": "The API server accepts the object and refuses the pods that its operator makes of it.",
    "operator": "The operator refuses the object, ignores a part of it, or makes something else of it.",
    "policy": "A policy of the cluster says no, or is itself at fault.",
    "gitops": "Argo CD or Flux would run the job again, fight over it, drop it or never apply it.",
    "resources": "What the job asks for does not go together, or is wasted.",
    "image": "Which image runs is not certain.",
    "security": "The pod may do more than training needs.",
    "scheduling": "The job may never start, or not all of it.",
    "spec": "A job spec, an overlay or the settings are wrong.",
    "fleet": "Jobs do not go together.",
    "meta": "Something could not be checked.",
}
INTRO = """\
<!-- Written by docs/build_rules.py: run `make docs`. -->

# Rules

Every finding of `jobgen lint` names its rule; `jobgen explain RULE` prints what stands here.

An **error** certainly fails, or certainly loses work. A **warning** is a risk. An **info** is advice. Only errors make
`jobgen lint` exit with 1. [lint.md](lint.md#settings) says how a repository changes the severity of a rule, or switches
it off:

~~~yaml
# jobgen.yaml
rules:
  moving-tag: off
  server-field:
    - {severity: error, environments: [prod]}
~~~
"""


def main() -> int:
    """Write the page, or compare it."""
    text = page()
    if "--check" in sys.argv:
        current = PAGE.is_file() and PAGE.read_text("utf-8") == text
        sys.stderr.write("" if current else "docs/rules.md is out of date: run `make docs`\n")
        return 0 if current else 1
    PAGE.write_text(text, "utf-8")
    return 0


def page() -> str:
    """The whole page."""
    docs = all_docs(None).values()
    found = {name: sorted(doc for doc in docs if doc.category == name) for name in CATEGORIES}
    used = {name: rules for name, rules in found.items() if rules}
    parts = [INTRO]
    parts += [part for name, rules in used.items() for part in _table(name, rules)]
    parts += [part for name, rules in used.items() for part in (f"## {name}\n", *map(_section, rules))]
    return "\n".join(parts)


def _table(category: str, rules: list[RuleDoc]) -> Iterator[str]:
    yield f"**[{category}](#{category})**: {CATEGORIES[category]}\n"
    rows = (f"| [{doc.name}](#{doc.name}) | {doc.severity.value} | {_cell(doc.summary)} |\n" for doc in rules)
    yield "| rule | severity | finds |\n|---|---|---|\n" + "".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _section(doc: RuleDoc) -> str:
    shown = example(doc.name) or policy_example(None, doc.name)
    parts = [f"### {doc.name}\n", f"{doc.severity.value.capitalize()}. {doc.summary}\n"]
    parts += [f"{doc.text}\n"] if doc.text else []
    # Tildes, because blocks in backticks are examples that must be right.
    titled = zip(("Bad", "Good"), shown or (), strict=False)
    parts += [f"{title}:\n\n~~~yaml\n{text.rstrip()}\n~~~\n" for title, text in titled if text]
    return "\n".join(parts)


if __name__ == "__main__":
    raise SystemExit(main())
