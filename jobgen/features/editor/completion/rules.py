"""The names of rules and policies, in suppressions and in the settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from jobgen.check.rule_docs import RuleDoc
from jobgen.features.editor.completion.items import Item, ItemKind, Rank
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.rule_names import former_rule_names

_NAMES = lazy_pattern(r"#\s*jobgen\s*:\s*ignore(?:-file)?\[(?P<names>[^\]]*)\Z", re.IGNORECASE)
_DIRECTIVE = lazy_pattern(r"#\s*jobgen\s*:\s*(?P<word>[\w-]*)\Z", re.IGNORECASE)
_START = lazy_pattern(r"#\s*(?P<word>[\w]*)\Z")
_NAME = lazy_pattern(r"[\w-]*\Z")


def complete_comment(
    before: str, read_docs: Callable[[], Mapping[str, RuleDoc]], found: Iterable[str]
) -> tuple[int, list[Item]]:
    """Return what a comment can go on with, and how many characters before the cursor that replaces.

    `before` is the comment up to the cursor; `found` has the rules that the line below, or this one, breaks.
    """
    names = _NAMES.search(before)
    if names:
        typed = _NAME.search(names["names"])
        given = {name.strip() for name in names["names"].split(",")[:-1]}
        return len(typed[0]) if typed else 0, [
            item for item in list_rules(read_docs().values(), found) if item.label not in given
        ]
    directive = _DIRECTIVE.search(before)
    if directive:
        return len(directive["word"]), list(_list_directives(""))
    start = _START.search(before)
    return (len(start["word"]), list(_list_directives("jobgen: "))) if start else (0, [])


def _list_directives(head: str) -> Iterator[Item]:
    for word, scope in (("ignore", "on this line, or on the next one"), ("ignore-file", "in this file, at its top")):
        text = f"{head}{word}"
        insert = f"{text}[${{1:rule}}] -- ${{2:reason}}"
        documentation = f"Suppresses findings of rules {scope}. A reason is required."
        yield Item(text, ItemKind.RULE, insert, "suppression", documentation, is_snippet=True)


def list_rules(docs: Iterable[RuleDoc], found: Iterable[str] = ()) -> Iterator[Item]:
    """Yield all rules and policies; those that were found here come first, former names last."""
    first = frozenset(found)
    for doc in sorted(docs, key=lambda doc: doc.name):
        rank = Rank.REQUIRED if doc.name in first else Rank.COMMON
        detail = f"{doc.severity} ({doc.category})"
        yield Item(doc.name, ItemKind.RULE, "", detail, f"{doc.summary}\n\n{doc.text}".strip(), rank)
        for former in former_rule_names(doc.name):
            reason = f"the former name of `{doc.name}`; use that"
            yield Item(former, ItemKind.RULE, "", detail, doc.summary, Rank.DEPRECATED, reason)
