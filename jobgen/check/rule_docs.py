"""What can be said of every rule: those in rules/, those of pods, and those that the road itself applies."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from jobgen.check.admission.rules import RULES as POD_RULES
from jobgen.check.builtin_rules import ROAD_RULES
from jobgen.check.rules import Rule, all_rules
from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.repo import layout

EXPECTATION = lazy_pattern(r" *# expect: .*$", re.MULTILINE)
"""What a line of a case says about the findings that are to stand there."""


class RuleDoc(NamedTuple):
    """A rule by name, and what it means."""

    name: str
    category: str
    severity: Severity
    summary: str
    text: str = ""


def names() -> frozenset[str]:
    """The name of every rule."""
    return frozenset((*(said[0] for said in ROAD_RULES), *POD_RULES, *(rule.name for rule in all_rules())))


@cache
def documented() -> dict[str, RuleDoc]:
    """Every rule, in the order of categories and names."""
    docs = [RuleDoc(*said) for said in ROAD_RULES]
    docs += [RuleDoc(name, "pod", Severity.ERROR, _sentence(said)) for name, said in POD_RULES.items()]
    # What the road and a rule find alike is told by the rule, which says more.
    docs += map(_doc, all_rules())
    known = {doc.name: doc for doc in docs}
    return {doc.name: doc for doc in sorted(known.values(), key=lambda doc: (doc.category, doc.name))}


def _doc(rule: Rule) -> RuleDoc:
    summary, _, text = (rule.check.__doc__ or "").strip().partition("\n")
    from textwrap import dedent

    return RuleDoc(rule.name, rule.category, rule.severity, summary, dedent(text).strip())


def example(name: str) -> tuple[str, str] | None:
    """A rule's first bad case and its first good one, as people would write them; None if it has no cases."""
    path = layout.find_shipped("examples") / f"{name}.yaml"
    if not path.is_file():
        return None
    cases = [case.partition("\n")[2] for case in re.split(r"^# case: ", path.read_text("utf-8"), flags=re.MULTILINE)]
    good = next((case for case in cases[2:] if not EXPECTATION.search(case)), "")
    return EXPECTATION.sub("", cases[1]), good


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."
