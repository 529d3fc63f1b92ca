"""Leaves out findings that only follow from another one: a total that lacks a role whose name is wrong.

This comes after severities and suppressions: a finding that is turned off or suppressed does not hide another one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache

from jobgen.model.data import API_VERSION, Node
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import list_keys_around
from jobgen.reports.read_fields import ABOUT_TEXT, BLOCKS, DEPENDS_ON, NAMED_IN, SHARED_NAMES
from jobgen.yamlio.read import read

_CAUSES = frozenset(
    (
        "wrong-type",
        "invalid-value",
        "unknown-field",
        "unknown-role",
        "unknown-resource",
        "deletes-nothing",
        "duplicate-key",
        "missing-resource-limit",
    )
)
_MISSPELLED = frozenset(("unknown-field", "unknown-role"))
_BY_NAME = frozenset(("unknown-volume", "invalid-env-source", "conflicting-env"))
"""Rules about a volume or a variable, whose name is in their messages."""

_OF_ADDED_ROLES = frozenset(("nnodes-mismatch", "replica-totals", "role-without-template", "uneven-priority"))
_TWICE = frozenset(("duplicate-item", "duplicate-mount-path"))


class _Cause(NamedTuple):
    rule: str
    line: int
    names: frozenset[str]
    """The field as it is written, and as it was probably meant."""
    parents: tuple[str, ...]
    """The fields around it, the outermost first."""
    is_unknown: bool
    """True if it is not known which field is meant."""
    is_misplaced: bool = False
    """True if the field is meant, and stands in another mapping."""


def leave_out_consequences(findings: Sequence[Finding], read_text: Callable[[str], str]) -> list[Finding]:
    """Return the findings without those that follow from another one in the same document."""
    rules = {each.rule for each in findings}
    if "inadmissible-job" in rules:
        findings = _leave_out_inactive(findings)
    if "folded-item" in rules:
        findings = _leave_out_joined(findings)
    if "unmounted-volume" in rules:
        findings = _leave_out_unmounted(findings)
    findings = _leave_out_queues(_leave_out_unexpanded(_leave_out_unnamed(findings, read_text)))
    findings = _leave_out_asked(_leave_out_roles(_leave_out_mounts(findings)))
    if rules.isdisjoint(_CAUSES):
        return list(findings)
    files = {each.location.file for each in findings if _is_cause(each)}
    files &= {each.location.file for each in findings if _may_follow(each)}
    if not files:
        return list(findings)
    texts = {file: read_text(file).splitlines() for file in files}
    causes: dict[tuple[str, int], list[_Cause]] = {}
    for each in findings:
        if each.location.file in files and _is_cause(each):
            lines = texts[each.location.file]
            causes.setdefault(_find_document(each, lines), []).append(_describe_cause(each, read_text))
    return [
        each
        for each in findings
        if each.location.file not in files
        or not _may_follow(each)
        or not any(_follows(each, cause) for cause in causes.get(_find_document(each, texts[each.location.file]), ()))
    ]


def _name_object(found: Finding) -> tuple[object, ...]:
    """Return what the findings about one object share: files without environments may have two of one name."""
    return found.object, found.env, "" if found.env else found.location.file


def _leave_out_joined(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings without those about a script whose lines YAML has joined."""
    joined = {
        (each.location.file, line)
        for each in findings
        if each.rule == "folded-item"
        for line in (each.location.line, each.location.line + 1)
    }
    return [
        each
        for each in findings
        if each.rule != "broken-script" or (each.location.file, each.location.line) not in joined
    ]


def _leave_out_unnamed(findings: Sequence[Finding], read_text: Callable[[str], str]) -> Sequence[Finding]:
    """Return the findings without advice about an object one of whose containers has no name.

    In a patch, such a container replaces the one that it was meant to change, with everything that it had.
    """
    causes = [each for each in findings if each.severity is Severity.ERROR and each.cause == "unnamed container"]
    unnamed = {
        _name_object(each) for each in causes if each.object and f"{API_VERSION}\n" in read_text(each.location.file)
    }
    if not unnamed:
        return findings
    return [
        each
        for each in findings
        if _name_object(each) not in unnamed
        or (each.severity is Severity.ERROR and each.rule != "missing-main-container")
    ]


def _leave_out_queues(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings without the rules of queue names where a known queue is meant."""
    meant = {
        (each.location, each.env)
        for each in findings
        if each.rule == "unknown-queue" and each.severity is Severity.ERROR and each.meant
    }
    named = {(each.location, each.env) for each in findings if each.rule == "bad-queue-name"}
    if not meant and not named:
        return findings
    # The name of a queue is the value of a label, too.
    hiding = {"bad-queue-name": meant, "invalid-label": named}
    return [each for each in findings if (each.location, each.env) not in hiding.get(each.rule, ())]


def _leave_out_inactive(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings with one for each fault of a queue, and without jobs that it keeps from admission.

    An object that the API server refuses keeps all jobs of the queue from admission: these are left out. A queue that
    it accepts is reported with the jobs that it never admits.
    """
    refused = {each.location[:2] for each in findings if each.severity is Severity.ERROR and _is_of_queue(each)}
    left = [each for each in findings if each.rule != "inadmissible-job" or not _is_refused(each, refused)]
    places = {(each.location, each.env) for each in left if each.rule == "inadmissible-job"}
    return [
        each
        for each in left
        if each.rule not in _OF_QUEUES or ((each.location, each.env) not in places and each.location[:2] not in refused)
    ]


_OF_QUEUES = ("admits-nothing", "unknown-cluster-queue", "unreachable-quota")


def _is_of_queue(found: Finding) -> bool:
    return found.object is not None and found.object.api_version.startswith("kueue.x-k8s.io/")


def _is_refused(found: Finding, refused: Collection[object]) -> bool:
    """Return True if a job is never admitted because of a line of its queue that has an error."""
    return any(place[:2] in refused for place in (found.location, *(each.location for each in found.related)))


def _leave_out_unexpanded(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings without the variables that nothing expands if the same word is refused, or no program."""
    rules = ("command-in-one-string", "launch-refused")
    refused = {(*_name_object(each), each.location) for each in findings if each.rule in rules}
    if not refused:
        return findings
    return [
        each
        for each in findings
        if each.rule != "unexpanded-variable" or (*_name_object(each), each.location) not in refused
    ]


def _leave_out_unmounted(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings without volumes that nothing mounts only because their name is wrong in a mount."""
    meant = {(*_name_object(each), each.meant) for each in findings if each.rule == "unknown-volume" and each.meant}
    lost = {
        _name_object(each)
        for each in findings
        if each.rule == "unknown-field" and "volumeMounts" in (each.meant, *each.wrong_values[:1])
    }
    return [
        each
        for each in findings
        if each.rule != "unmounted-volume"
        or ((*_name_object(each), *each.values[:1]) not in meant and _name_object(each) not in lost)
    ]


def _leave_out_mounts(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings without what is said of a path at which two volumes are mounted: one of them is wrong."""
    twice = {
        (*_name_object(each), *each.values[:1])
        for each in findings
        if each.rule in _TWICE and each.severity is Severity.ERROR
    }
    if not twice:
        return findings
    return [
        each
        for each in findings
        if each.rule != "lost-checkpoints" or (*_name_object(each), *each.values[:1]) not in twice
    ]


def _leave_out_roles(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings without what a role lacks whose name is that of another role in another case.

    A layer that was meant to change a role has added another one, with nothing in it.
    """
    added = {
        _name_object(each)
        for each in findings
        if each.rule == "unknown-role" and each.severity is Severity.ERROR and each.meant
    }
    if not added:
        return findings
    return [each for each in findings if each.rule not in _OF_ADDED_ROLES or _name_object(each) not in added]


def _leave_out_asked(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings without what asks for a field that the object has under a misspelled name."""
    lost: dict[object, set[str]] = {}
    for each in findings:
        if each.rule == "unknown-field" and each.severity is Severity.ERROR and each.object is not None and each.meant:
            lost.setdefault(_name_object(each), set()).add(each.meant)
    if not lost:
        return findings
    return [
        each for each in findings if each.rule in ABOUT_TEXT or not _asks_for(each, lost.get(_name_object(each), set()))
    ]


def _asks_for(found: Finding, names: set[str]) -> bool:
    """Return True if a finding is about a field of these names, or about pods of which one of them holds all."""
    if not names.isdisjoint(BLOCKS):
        return True
    own = names - SHARED_NAMES
    return any(value.partition(":")[0].rpartition(".")[2] in own for value in found.values)


def _is_cause(found: Finding) -> bool:
    """Return True for an error in a field of jobgen's own formats, or for a field of an object that is misspelled.

    Other faults of objects are all reported, as the API server does it.
    """
    is_misspelled = (
        found.rule == "unknown-role"
        or found.meant != ""
        or found.cause == "misplaced"
        or bool(found.fix and any(edit.op == "rename" for edit in found.fix.edits))
    )
    return (found.object is None or is_misspelled) and found.rule in _CAUSES and found.severity is Severity.ERROR


def _may_follow(found: Finding) -> bool:
    return found.rule in DEPENDS_ON or found.category == "policy"


def _find_document(found: Finding, lines: Sequence[str]) -> tuple[str, int]:
    return found.location.file, sum(line.startswith("---") for line in lines[: found.location.line])


def _describe_cause(found: Finding, read_text: Callable[[str], str]) -> _Cause:
    names = {value.partition(":")[0] for value in found.wrong_values[:1]}
    # Of two levels that are missing, the first one is missed.
    names |= {*found.meant.split(".")} if found.meant else set()
    if found.fix:
        names |= {str(edit.value) for edit in found.fix.edits if edit.op == "rename"}
    place = found.location
    starts, documents = _read_traced(place.file, read_text(place.file))
    at = bisect_right(starts, place.line) - 1
    around = list_keys_around(documents[at], place) if at >= 0 else ()
    # What is written in one line is one field.
    parents = tuple(str(key) for key in around if key.location.line < place.line)
    is_misplaced = found.cause == "misplaced"
    is_unknown = found.rule in _MISSPELLED and not found.meant and not found.fix and not is_misplaced
    return _Cause(found.rule, found.location.line, frozenset(names), parents, is_unknown, is_misplaced)


@lru_cache(maxsize=1)
def _read_traced(file: str, text: str) -> tuple[list[int], list[Node]]:
    """Read a file with locations: where its documents begin, and their data. One file often has several causes."""
    source = read(text.encode("utf-8", "surrogatepass"), file, traced=True)
    documents = sorted((*source.documents, *source.repaired), key=lambda document: document.location)
    return [document.location.line for document in documents], [document.data for document in documents]


def _follows(found: Finding, cause: _Cause) -> bool:
    """Return True if a finding is about a field that has a fault, or that may be meant by an unknown one."""
    if found.rule == cause.rule:
        return False
    if found.rule not in DEPENDS_ON:
        # What a policy of the repository demands is only in its message.
        names = cause.names | ({"labels", "annotations"} if cause.is_unknown and "metadata" in cause.parents else set())
        return any(found.mentions(name.removesuffix("s")) for name in names if len(name) > 3)
    fields = DEPENDS_ON[found.rule]
    named = found.wrong_values or ("",)
    if cause.names & fields or (cause.parents[-1:] == ("roles",) and "roles" in fields):
        return True
    if "name" in cause.names and not {*NAMED_IN.get(found.rule, ())}.isdisjoint(cause.parents):
        return True
    # In a job itself, or in a role, it may be meant as any of its fields.
    may_be_any = cause.is_unknown and (len(cause.parents) < 2 or "roles" in cause.parents)
    if found.rule in _BY_NAME:
        is_inside = cause.line == found.location.line or not {*cause.parents, *cause.names}.isdisjoint(named)
        return is_inside or (may_be_any and cause.parents == ("spec",))
    if cause.is_misplaced and found.rule.startswith("missing-"):
        return any(name.rpartition(".")[2] in cause.names for name in named)
    if found.rule.startswith("missing-"):
        around = next(iter(cause.parents[-1:]), "spec")
        is_inside = around != "spec" and any(name.startswith(around) for name in named)
        return named[-1] in cause.names or may_be_any or (cause.is_unknown and is_inside)
    return may_be_any and "roles" in fields
