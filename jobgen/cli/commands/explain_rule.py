"""`jobgen explain RULE`: what a rule or a policy finds, why it matters, and what is bad and good."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from pathlib import Path

from jobgen.check.policy_docs import all_docs, policy_example
from jobgen.check.rule_docs import RuleDoc, example
from jobgen.check.rule_names import canonical_rule_name, former_rule_names
from jobgen.cli.commands import ExitCode, Result, error_result
from jobgen.model.suggest import did_you_mean
from jobgen.report.escape import visible

Example = tuple[str, str]


def rule_names(root: Path | None) -> list[str]:
    """Every rule and policy that can be explained."""
    return list(all_docs(root))


def explain_rule(root: Path | None, name: str, format_: str) -> Result:
    """What a rule or a policy means; one that does not exist is told with the nearest that does."""
    known = all_docs(root)
    current = canonical_rule_name(name)
    if current in known:
        return _told(known[current], example(current) or policy_example(root, current), format_)
    hint = did_you_mean(name, list(known))
    return error_result(ExitCode.NOTHING_TO_DO, f"there is no rule `{name}`{hint or ', and no jobs repository here'}")


def unknown(name: str, jobs: Iterable[str], rules: Iterable[str], said: str = "") -> Result:
    """A name that is neither a job's nor a rule's."""
    return error_result(
        ExitCode.NOTHING_TO_DO, f"there is no job or rule `{name}`{did_you_mean(name, [*sorted(jobs), *rules])}", said
    )


def _told(doc: RuleDoc, shown: Example | None, format_: str) -> Result:
    return Result(ExitCode.OK, _as_json(doc, shown) if format_ == "json" else _as_text(doc, shown))


def _as_text(doc: RuleDoc, shown: Example | None) -> str:
    parts = [f"{doc.name} ({doc.category}, {doc.severity.value})\n", f"{doc.summary}\n"]
    former = former_rule_names(doc.name)
    if former:
        parts.append(f"Former name{'s' if len(former) > 1 else ''}: {', '.join(former)}\n")
    if doc.text:
        parts.append(f"{doc.text}\n")
    for title, text in zip(("Bad", "Good"), shown or (), strict=False):
        if text:
            parts.append(f"{title}:\n\n{textwrap.indent(text.rstrip(), '  ')}\n")
    lines = "\n".join(parts).split("\n")
    return "\n".join(map(visible, lines))


def _as_json(doc: RuleDoc, shown: Example | None) -> str:
    bad, good = shown or ("", "")
    rule = {
        "name": doc.name,
        "category": doc.category,
        "severity": doc.severity.value,
        "summary": doc.summary,
        "text": doc.text,
        "bad": bad,
        "good": good,
    }
    return json.dumps({"version": 1, "rule": rule}, ensure_ascii=False, indent=2) + "\n"
