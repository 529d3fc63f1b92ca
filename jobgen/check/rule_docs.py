"""Documentation of every rule and policy: its name, severity, text, and a bad and a good example."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from jobgen.check.defects import CATEGORY, list_defects
from jobgen.check.rules import all_rules
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.redaction import hide_credentials
from jobgen.model.builtin_rules import BUILTIN_RULES, POD_RULES
from jobgen.model.data import Plain
from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.files import read_file
from jobgen.repo.known_rules import MUTATING, VALIDATING, name_policy, read_policy_file, read_policy_files
from jobgen.repo.layout import Layers
from jobgen.repo.shipped import find_shipped, read_data

EXPECTATION = lazy_pattern(r" *# expect: .*$", re.MULTILINE)
"""The comment on a line of a case that names the findings expected there."""

_DESCRIPTION = "jobgen.dev/description"
_MUTATION_FAILED = "It reports objects that it cannot change; the API server refuses them. Correct its expression."
_SEVERITIES = {"Deny": Severity.ERROR, "Warn": Severity.WARNING, "Audit": Severity.INFO}
_KIND = lazy_pattern(r"^kind: *(\S+)", re.MULTILINE)
_NAME = lazy_pattern(r"`([a-z]+(?:-[a-z]+)+)`")
_OFF = "When to turn it off: "
"""The beginning of the last paragraph of the text of a rule."""
_SEPARATOR = lazy_pattern(r"^---.*\n", re.MULTILINE)
_HEADING = lazy_pattern(r"^## ", re.MULTILINE)
_LEADING_COMMENTS = lazy_pattern(r"\A(?:#.*\n)+")


class RuleDoc(NamedTuple):
    """The documentation of a rule or a policy."""

    name: str
    category: str
    severity: Severity
    summary: str
    text: str = ""
    """Why it matters and what to do, and in a last paragraph when to turn the rule off."""

    @property
    def parts(self) -> tuple[str, str]:
        """The text without its last paragraph, and when to turn the rule off; empty if nothing says so."""
        why, _, off = self.text.partition(_OFF)
        return why.strip(), f"{off[:1].upper()}{off[1:]}".strip()


def all_docs(layers: Layers | None) -> dict[str, RuleDoc]:
    """Every policy, known defect and rule, by name."""
    return {**policy_docs(layers), **defect_docs(layers), **all_rule_docs()}


@cache
def _list_mentions() -> dict[str, set[str]]:
    """The rules and policies that the text of each one names."""
    docs = {**policy_docs(None), **all_rule_docs()}
    return {name: docs.keys() & set(_NAME.findall(doc.text)) - {name} for name, doc in docs.items()}


def list_related(name: str) -> list[str]:
    """The rules that the text of a rule names, and those whose text names it."""
    mentions = _list_mentions()
    return sorted(mentions.get(name, set()).union(other for other, named in mentions.items() if name in named))


def translate_summary(name: str, language: str) -> str:
    """Return the summary of a rule in another language; empty if there is no translation."""
    if language != "zh":
        return ""
    # Imported late: only speakers of Chinese read it.
    from jobgen.yamlio.read import read

    [document] = read((find_shipped("docs/zh") / "rules.yaml").read_bytes(), "rules.yaml").documents
    return as_text(get_path(document.data, "rules", name, "zh"))


def defect_docs(layers: Layers | None) -> dict[str, RuleDoc]:
    """The known defects that come with jobgen, and those of a repository if there is one, by name."""
    return {
        defect.name: RuleDoc(defect.name, CATEGORY, defect.severity, f"{defect.title}: {defect.describe()}.", text)
        for defect in sorted(list_defects(layers))
        for text in (defect.explain(),)
    }


def defect_example(layers: Layers | None, name: str) -> tuple[str, str] | None:
    """The bad and the good example of a defect."""
    return next(((defect.red, defect.green) for defect in list_defects(layers) if defect.name == name), None)


@cache
def all_rule_docs() -> dict[str, RuleDoc]:
    """Every rule by name, ordered by category and name."""
    # Imported late: a lint needs names only.
    from textwrap import dedent

    docs = [RuleDoc(*rule) for rule in BUILTIN_RULES]
    docs += [RuleDoc(name, "pod", Severity.ERROR, _to_sentence(summary)) for name, summary in POD_RULES.items()]
    texts = _read_texts({doc.category for doc in docs})
    docs = [doc._replace(text=texts.get(doc.name, "")) for doc in docs]
    for rule in all_rules():
        summary, _, text = (rule.check.__doc__ or "").strip().partition("\n")
        docs.append(RuleDoc(rule.name, rule.category, rule.severity, summary, dedent(text).strip()))
    # A rule in rules/ may share its name with a built-in one; its documentation says more.
    by_name = {doc.name: doc for doc in docs}
    return {doc.name: doc for doc in sorted(by_name.values(), key=lambda doc: (doc.category, doc.name))}


def _read_texts(categories: Iterable[str]) -> dict[str, str]:
    """Return the texts of rules that are no functions and so have no docstrings, by name; a category has one file."""
    named = (find_shipped("rules") / f"{category}.md" for category in sorted(categories))
    parts = (part for file in named if file.is_file() for part in _HEADING.split(file.read_text("utf-8"))[1:])
    return {name: text.strip() for name, _, text in (part.partition("\n") for part in parts)}


def policy_docs(layers: Layers | None) -> dict[str, RuleDoc]:
    """The policies that come with jobgen, and those of a repository if there is one, by name."""
    documents = list(read_policy_files(layers))
    bindings = [as_mapping(each.get("spec")) for each in documents if each.get("kind") == f"{VALIDATING}Binding"]
    # Of a mutating and a validating policy with one name, the validating one counts.
    kinds = (MUTATING, VALIDATING)
    found = [_document_policy(each, bindings) for kind in kinds for each in documents if each.get("kind") == kind]
    return {doc.name: doc for doc in sorted(found, key=lambda doc: doc.name)}


class Incident(NamedTuple):
    """A public incident that a rule finds in the manifest."""

    source: str
    """The issue or pull request."""
    versions: str
    """The component and its version, if the incident depends on it."""
    consequence: str


@cache
def all_incidents() -> dict[str, tuple[Incident, ...]]:
    """The public incidents behind rules, by rule."""
    incidents = read_data("incidents.yaml")
    return {rule: tuple(Incident(**each) for each in listed) for rule, listed in incidents.items()}


def rule_example(name: str) -> tuple[str, str] | None:
    """The first bad case of a rule and its first good one, without comments; None if it has no cases."""
    path = find_shipped("examples") / f"{name}.yaml"
    if not path.is_file():
        return None
    cases = [case.partition("\n")[2] for case in re.split(r"^# case: ", path.read_text("utf-8"), flags=re.MULTILINE)]
    good = next((case for case in cases[2:] if not EXPECTATION.search(case)), "")
    return EXPECTATION.sub("", cases[1]), good


def policy_example(layers: Layers | None, name: str) -> tuple[str, str] | None:
    """The shortest case that a policy refuses, and the shortest that it accepts, of the same kind if possible."""
    # A policy of the repository may have the name of one that comes with jobgen, whose cases are not about it.
    own = (data for file in layout.read_own_policies(layers) for data in read_policy_file(file)) if layers else ()
    is_own = any(name_policy(data) == name for data in own if data.get("kind") in (VALIDATING, MUTATING))
    shipped = find_shipped("policies").parent
    root = layers.root if layers else None
    homes = [root] if root and is_own else [home for home in (root, shipped) if home]
    documents = sorted((text for home in homes for text in _read_cases(home, name)), key=len)
    expected = [(text, EXPECTATION.findall(text)) for text in documents]
    refused = [text for text, found in expected if any(name in re.split(r"[:,] *", each.strip()) for each in found)]
    # Params, and namespaces with labels, are no examples themselves.
    accepted = [text for text, found in expected if not found and _kind(text) not in ("ConfigMap", "Namespace")]
    if not refused:
        return None
    pairs = [(bad, good) for bad in refused for good in accepted if _kind(bad) == _kind(good)]
    # A job is what users write.
    pairs.sort(key=lambda pair: _kind(pair[0]) != "TrainingJob")
    bad, good = pairs[0] if pairs else (refused[0], accepted[0] if accepted else "")
    return hide_credentials(EXPECTATION.sub("", bad)), hide_credentials(good)


def _document_policy(document: Mapping[str, Plain], bindings: Iterable[Mapping[str, Plain]]) -> RuleDoc:
    name, described = name_policy(document), as_text(get_path(document, "metadata", "annotations", _DESCRIPTION))
    if document.get("kind") == MUTATING:
        described = described or "Changes objects when they are created"
        severity, default_text = Severity.ERROR, _MUTATION_FAILED
    else:
        validations = map(as_mapping, as_list(get_path(document, "spec", "validations")))
        texts = (str(each.get("message") or each.get("expression") or "").rstrip(".") for each in validations)
        described = described or "\n".join(dict.fromkeys(map(_to_sentence, texts)))
        own = (spec for spec in bindings if spec.get("policyName") == name)
        actions = {as_text(action) for spec in own for action in as_list(spec.get("validationActions"))}
        # The highest severity that a binding gives the policy; without a binding, it has no effect.
        severities = (severity for action, severity in _SEVERITIES.items() if action in actions)
        severity, default_text = next(severities, Severity.INFO), ""
    summary, _, text = hide_credentials(described.strip()).partition("\n")
    return RuleDoc(name, "policy", severity, f"{summary.rstrip('.')}.", text.strip() or default_text)


def _to_sentence(phrase: str) -> str:
    return f"{phrase[:1].upper()}{phrase[1:]}."


def _read_cases(root: Folder, name: str) -> Iterator[str]:
    for entry in layout.find_policy_tests(root):
        if f"/{name}/" in entry.path:
            text = read_file(entry).content.decode("utf-8", "replace")
            yield from (_LEADING_COMMENTS.sub("", part) for part in _SEPARATOR.split(text) if part.strip())


def _kind(text: str) -> str:
    found = _KIND.search(text)
    return found[1] if found else ""
