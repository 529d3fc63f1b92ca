"""The text of every rule says why it matters, what to do, and when to turn the rule off, in sentences of its own."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from jobgen.check.rule_docs import all_rule_docs, list_related, policy_docs, rule_example
from jobgen.check.rules import all_rules
from jobgen.repo.shipped import find_shipped

DOCS = {**policy_docs(None), **all_rule_docs()}
FEWEST, MOST = 40, 260
"""The number of words of a summary and a text."""
_SENTENCE = re.compile(r"(?<=[.?!:])\s+(?=[A-Z`-])")
_SHARED = 6
"""Sentences of fewer words, such as `Remove the comment.`, can be on two pages."""


def count_words(name: str) -> int:
    return len(f"{DOCS[name].summary} {DOCS[name].text}".split())


def list_sentences(text: str) -> list[str]:
    plain = " ".join(text.split()).replace("When to turn it off: ", "")
    return [re.sub(r"\W+", " ", part).strip().lower() for part in _SENTENCE.split(plain)]


def is_finished(name: str) -> bool:
    why, off = DOCS[name].parts
    return bool(why and off) and FEWEST <= count_words(name) <= MOST and len(off.split()) >= 6


def test_every_rule_has_all_parts_in_a_sensible_length() -> None:
    assert {name: count_words(name) for name in sorted(DOCS) if not is_finished(name)} == {}


def test_no_two_pages_share_a_sentence() -> None:
    found = defaultdict(set)
    for name, doc in DOCS.items():
        for sentence in list_sentences(f"{doc.summary} {doc.text}"):
            if len(sentence.split()) >= _SHARED:
                found[sentence].add(name)

    assert {sentence: sorted(names) for sentence, names in found.items() if len(names) > 1} == {}


def test_texts_do_not_defer_to_the_message() -> None:
    deferred = re.compile(r"(?:fix|advice|follow|as|what) (?:in )?the message", re.IGNORECASE)
    assert [name for name, doc in DOCS.items() if deferred.search(" ".join(doc.text.split()))] == []


def test_texts_name_rules_that_exist() -> None:
    ends = ("-fails", "-failed", "-disagrees", "-mismatch", "-missing", "-invalid", "-value", "-conflict", "-commit")
    named = {name for doc in DOCS.values() for name in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", doc.text)}
    assert sorted(name for name in named - DOCS.keys() if name.endswith(ends)) == []


def test_rules_that_texts_name_are_related_both_ways() -> None:
    pairs = {(name, other) for name in DOCS for other in list_related(name)}
    assert pairs
    assert pairs == {(other, name) for name, other in pairs}


def test_files_of_texts_are_about_rules_without_docstrings() -> None:
    files = sorted(find_shipped("rules").glob("*.md"))
    names = [name for file in files for name in re.findall(r"^## (.*)$", file.read_text("utf-8"), re.MULTILINE)]
    rules = all_rule_docs()

    assert sorted(names) == sorted(set(names))
    assert sorted(set(names) - (rules.keys() - {rule.name for rule in all_rules()})) == []
    assert [name for file in files for name in names_of(file) if rules[name].category != file.stem] == []


def names_of(file: Path) -> list[str]:
    return re.findall(r"^## (.*)$", file.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", ["mutable-image-tag", "chief-and-master"])
def test_an_example_is_shown_with_its_repair(name: str) -> None:
    assert all(rule_example(name) or ())
