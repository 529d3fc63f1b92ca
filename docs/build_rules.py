"""Write docs/rules.md and a page for each rule in docs/rules/; with --check, only test whether they are current."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jobgen.check.rule_docs import RuleDoc, all_docs, list_related, policy_example, rule_example
from jobgen.model.builtin_rules import former_rule_names

DOCS = Path(__file__).parent
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
NOTICE = "<!-- Written by docs/build_rules.py: run `make docs`. -->\n"
INTRO = """\
<!-- Written by docs/build_rules.py: run `make docs`. -->

# Rules

Every finding of `jobgen lint` names its rule. Each rule has a page: what it finds, why it matters, an example that
fails, the same one repaired, and when to turn the rule off. `jobgen explain RULE` prints the same text.

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
    """Write the pages, or compare them."""
    pages = build_pages()
    found = {path: path.read_text("utf-8") for path in (DOCS / "rules.md", *(DOCS / "rules").glob("*.md"))}
    if "--check" in sys.argv:
        wrong = sorted(path.name for path in found.keys() | pages.keys() if found.get(path) != pages.get(path))
        sys.stderr.write(f"out of date: {', '.join(wrong)}; run `make docs`\n" if wrong else "")
        return 1 if wrong else 0
    for path in found.keys() - pages.keys():
        path.unlink()
    (DOCS / "rules").mkdir(exist_ok=True)
    for path, text in pages.items():
        if found.get(path) != text:
            path.write_text(text, "utf-8")
    return 0


def build_pages() -> dict[Path, str]:
    """Return the table of all rules and the page of each rule, by path."""
    docs = {doc.name: doc for doc in all_docs(None).values() if doc.category in CATEGORIES}
    pages = {DOCS / "rules.md": _build_table(docs.values())}
    return pages | {DOCS / f"rules/{doc.name}.md": _build_page(doc, docs) for doc in docs.values()}


def _build_table(docs: Iterable[RuleDoc]) -> str:
    found = {name: sorted(doc for doc in docs if doc.category == name) for name in CATEGORIES}
    return "\n".join((INTRO, *(part for name, rules in found.items() for part in _format_table(name, rules))))


def _format_table(category: str, rules: list[RuleDoc]) -> Iterator[str]:
    yield f"## {category}\n\n{CATEGORIES[category]}\n"
    yield "| rule | severity | flags |\n|---|---|---|\n" + "".join(map(_format_row, rules))


def _format_row(doc: RuleDoc) -> str:
    # Links to the sections that this page had still lead to the row of the rule.
    anchors = "".join(f'<a id="{name}"></a>' for name in (doc.name, *former_rule_names(doc.name)))
    summary = doc.summary.replace("|", "\\|")
    return f"| {anchors}[{doc.name}](rules/{doc.name}.md) | {doc.severity.value} | {summary} |\n"


def _build_page(doc: RuleDoc, docs: Mapping[str, RuleDoc]) -> str:
    shown = rule_example(doc.name) or policy_example(None, doc.name)
    why, off = (_link_rules(part, doc, docs) for part in doc.parts)
    kind = f"**{doc.severity.value.capitalize()}** of the category [{doc.category}](../rules.md#{doc.category})."
    parts = [NOTICE, f"# {doc.name}\n", f"{doc.summary}\n", f"{kind}\n"]
    parts += [f"Former name: `{former}`.\n" for former in former_rule_names(doc.name)]
    parts += [f"## Why it matters\n\n{why}\n"] if why else []
    # Tildes, because the tests run every example in backticks.
    titled = zip(("An example that fails", "The same, repaired"), shown or (), strict=False)
    parts += [f"## {title}\n\n~~~yaml\n{text.rstrip()}\n~~~\n" for title, text in titled if text]
    parts += [f"## When to turn it off\n\n{off}\n"] if off else []
    related = [f"[{name}]({name}.md)" for name in list_related(doc.name) if name in docs]
    parts += [f"## Related rules\n\n{', '.join(related)}\n"] if related else []
    return "\n".join(parts)


def _link_rules(text: str, doc: RuleDoc, docs: Mapping[str, RuleDoc]) -> str:
    def link(found: re.Match[str]) -> str:
        name = found[1]
        return f"[`{name}`]({name}.md)" if name in docs and name != doc.name else found[0]

    return re.sub(r"`([a-z]+(?:-[a-z]+)+)`", link, text)


if __name__ == "__main__":
    raise SystemExit(main())
