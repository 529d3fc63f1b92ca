"""What is wrong with names and versions in the settings, beyond their schema."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jobgen import __version__
from jobgen.k8s.nodes import as_list
from jobgen.model.builtin_rules import ENTRY_RULES, UNCHECKED_RULES, canonical_rule_name, find_similar_rule
from jobgen.model.data import Node, TracedKey, ValidFields, value_of
from jobgen.model.finding import FixStep, Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import NO_FIX, suggest_name, suggest_value
from jobgen.repo import layout
from jobgen.repo.layout import Layers
from jobgen.reports.narrowing import describe_unknown
from jobgen.spec.overlay import Overlay

FIELD = "required-version"
_CONDITION = lazy_pattern(r"\s*(==|!=|>=|<=|~=|>|<)\s*(\d{1,6}(?:\.\d{1,6}){0,3})(\.\*)?\s*", re.ASCII)


def find_unknown_names(settings: ValidFields, layers: Layers, overlays: Mapping[str, Overlay]) -> Iterator[Problem]:
    """Report environments and rules in the settings that do not exist, and rules that are set by two names.

    The settings may have errors, so entries of other types are left to the schema.
    """
    environments, mandatory, rules = (
        [node for node in value if isinstance(value_of(node), str)] if isinstance(value, (list, dict)) else []
        for value in map(settings.get, ("environments", "mandatory", "rules"))
    )
    for node in environments:
        if value_of(node) not in overlays:
            hint = suggest_name(str(value_of(node)), list(overlays))
            fix_steps, safe = suggest_value(node, [each for each in overlays if each not in environments])
            message = Sentence("there is no overlay `{}`{}", value_of(node), hint)
            yield Problem("unknown-overlay", message, node, fix_steps=fix_steps, safe=safe)
    entries = [entry for entry in as_list(settings.get("exceptions")) if isinstance(entry, dict)]
    excepted = [entry["rule"] for entry in entries if isinstance(value_of(entry.get("rule")), str)]
    yield from _find_unknown_rules(layers, (*rules, *mandatory, *excepted))
    yield from _find_unselectable(settings, layers)
    for node in excepted:
        rule = canonical_rule_name(str(value_of(node)))
        if rule in UNCHECKED_RULES or rule in ENTRY_RULES:
            is_unchecked = rule in UNCHECKED_RULES
            why = "means that something was not checked" if is_unchecked else "is about exceptions and suppressions"
            message = Sentence("`{}` {}, so it cannot have an exception; fix what it finds", rule, why)
            yield Problem("invalid-value", message, node)
    named = [(node, str(value_of(node)), canonical_rule_name(str(value_of(node)))) for node in rules]
    seen = {current for _, name, current in named if name == current}
    for node, name, current in named:
        if name != current and current in seen:
            message = Sentence("`{}` is a former name of `{}`, which is also set; remove one of them", name, current)
            yield Problem("duplicate-rule", message, node)
        seen.add(current)


def _find_unknown_rules(layers: Layers, named: tuple[Any, ...]) -> Iterator[Problem]:
    if not named:
        return
    # Imported late: most repositories name no rule.
    from jobgen.model.meant import find_meant
    from jobgen.repo.known_rules import list_known_rules

    known = list_known_rules(layers)
    for node in named:
        name = str(value_of(node))
        if canonical_rule_name(name) not in known:
            pack = layout.find_pack_of(name)
            similar = "" if pack else find_similar_rule(name, known)
            hint = f"did you mean `{similar}`?" if similar else "`jobgen rules` lists them"
            message = Sentence("there is no rule or policy `{}`; {}", name, hint)
            if pack:
                message = Sentence(
                    "the policy `{}` is in the pack `{}`, which is off; add the pack to `policies`", name, pack
                )
            steps, safe = NO_FIX
            if similar and isinstance(node, TracedKey):
                steps, safe = (FixStep("rename", node, similar),), find_meant(name, known) == similar
            elif similar:
                steps, safe = suggest_value(node, [similar])
            yield Problem("unknown-rule", message, node, fix_steps=steps, safe=safe)


def _find_unselectable(settings: ValidFields, layers: Layers) -> Iterator[Problem]:
    """Report names in `select` and `ignore` that no rule, category or preset has."""
    for field in ("select", "ignore"):
        named = [node for node in as_list(settings.get(field)) if isinstance(value_of(node), str)]
        if not named:
            continue
        # Imported late: most repositories select nothing.
        from jobgen.repo.known_rules import list_known_rules

        known = list_known_rules(layers)
        for node in named:
            if wrong := describe_unknown(value_of(node), known, presets=field == "select"):
                yield Problem("unknown-rule", wrong, node)


def find_version_problem(settings: Mapping[Any, Node]) -> Iterator[Problem]:
    """Report a `required-version` that this version does not meet, or that cannot be read."""
    required = value_of(settings.get(FIELD))
    if not isinstance(required, str):
        return  # Absent, or an error of the schema.
    met = is_met(required, __version__)
    if met is None:
        message = Sentence(
            "`{}` is `{}`, which is not a list of conditions; write one such as `>=0.2,<0.3`", FIELD, required
        )
        yield Problem("invalid-value", message, settings[FIELD])
    elif not met:
        message = Sentence(
            "this is jobgen `{}`, and the repository requires `{}`; install such a version, for example with "
            "`pip install 'jobgen{}'`",
            __version__,
            required,
            required,
        )
        yield Problem("wrong-jobgen-version", message, settings[FIELD], category="meta")


def is_met(conditions: str, version: str) -> bool | None:
    """Return True if a version meets all conditions of a list; None if one of them is not a condition."""
    met = [_meets(part, version) for part in conditions.split(",")]
    return None if None in met else all(met)


def _meets(condition: str, version: str) -> bool | None:
    """Return True if a version meets a condition; None if it is not a condition."""
    found = _CONDITION.fullmatch(condition)
    if not found:
        return None
    sign, number, any_patch = found.groups()
    length = number.count(".") + 1
    ours, theirs = _parse(version), _parse(number)
    if sign == "~=":
        # `~=0.2.1` is `>=0.2.1,==0.2.*`; with a single number nothing would be fixed.
        fixed = length - 1
        return None if not fixed or any_patch else ours >= theirs and ours[:fixed] == theirs[:fixed]
    if any_patch:
        is_equal = ours[:length] == theirs[:length]
        return {"==": is_equal, "!=": not is_equal}.get(sign)
    return _COMPARE[sign](ours, theirs)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


def _parse(version: str) -> tuple[int, ...]:
    """Return the numbers of a release: four, as `0.2` is `0.2.0`. What follows, as in `0.2.0.dev1`, does not count."""
    leading = re.match(r"\d+(?:\.\d+)*", version)
    numbers = map(int, leading[0].split(".")) if leading else ()
    return (*numbers, 0, 0, 0, 0)[:4]
