"""Problems that a stage finds, findings with their location, and the fixes for them."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Literal, TypeAlias

from jobgen.model.data import Location, Node, Plain, location_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, identify
from jobgen.model.sentence import Words, advice_of, fault_of, values_at_fault, values_of

_WORD = lazy_pattern(r"\w+")
_NUMBERS = lazy_pattern(r"`[^`]*`|\b(?:lines?|columns?) \d+|\b(\d+)\b")


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Identity(NamedTuple):
    """The fields by which the API server identifies an object."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


class Related(NamedTuple):
    """Another location that a finding refers to."""

    location: Location
    message: str


FaultKey: TypeAlias = tuple[str, str]
"""A rule, and what it says: see `Finding.fault`."""
Cause: TypeAlias = Literal[
    "",
    "unnamed item",  # of a list, written as `NAME: value`; its name is not reported as missing again
    "unnamed container",
    "misplaced",  # a field that belongs in another mapping, which the message names
    "missing level",  # between a mapping and all its unknown fields
    "not evaluated",  # a policy
    "names objects",  # the message names all objects that the finding is about
    "no placeholder",  # what looks like one is none: braces in a name that jobgen fills, variables of a shell
    "not indented",  # a field stands beside the empty key that it belongs below
    "not installed",  # a chart that no values turn on, or a command that fails: nothing of it must be checked
    "other form",  # the answer is to write the whole value, or another field with it, in another form
    "unmanaged kind",  # Kueue does not manage the kind, so its pods name the queue
    "no list",  # what is no list must be one
]
"""What is known of a problem beyond its rule and its values, where other stages depend on it."""


class SetByPatch(str):
    """What a related value is; shown only if a patch of an overlay sets the value, together with its name."""

    __slots__ = ()


Op: TypeAlias = Literal["set", "quote", "rename", "remove", "add", "comment", "join", "split"]


class FixStep(NamedTuple):
    """One step of a fix: set or quote a scalar, rename or remove a key, or add an entry after a key.

    `key` is the name of the entry to add; for `remove`, the name of the entry if `node` is its value. `split` makes
    items of an item of a list, which are its value.
    """

    op: Op
    node: Node
    value: Node = None
    key: str = ""


class TextEdit(NamedTuple):
    """A fix step at its location: the scalar to set, the key to rename or remove, or the key to add an entry after.

    For `comment`, the value is the new text of the comment; without a value, the comment is removed. `was` is the value
    that the location must hold: a value that was derived from something else is not changed there. `join` is what
    `quote` becomes for a text that commas have cut into items.
    """

    op: Op
    location: Location
    value: Plain = None
    key: str = ""
    was: Plain = None


class Fix(NamedTuple):
    """Text edits that fix a finding together; `safe` if they cannot change the meaning."""

    edits: tuple[TextEdit, ...]
    safe: bool


class Problem(NamedTuple):
    """What a stage found wrong, and the node that causes it; its location is looked up later."""

    rule: str
    sentence: Words
    """What it says; a text once it is shown: see `locate`."""
    node: Node = None
    related: tuple[tuple[Node, str], ...] = ()
    category: str = "spec"
    severity: Severity = Severity.ERROR
    fix_steps: tuple[FixStep, ...] = ()
    safe: bool = True
    evidence: tuple[str, ...] | None = None
    at: Node = None
    """The node whose location is shown, if `node`, whose pointer identifies the problem, is around it, or if another
    factor of its amount is at fault."""
    expected: str = ""
    """The type that a faulty value must have, as messages name it; empty if it can only be left out."""
    inside: Location | None = None
    """Where the problem stands in the text of `at`, or of `node`; lines and columns start at 1. Its file is empty."""
    cause: Cause = ""
    meant: str = ""
    """The name or value that was probably meant, as the message suggests it."""
    about: str = ""
    """The field whose value is refused, as the message begins with it."""
    item: int = -1
    """The item of the field, if it is a list."""
    answer: str = ""
    """What the message of a refused value says to write instead."""
    finish: Callable[[Problem, bool], Problem | None] | None = None
    """Decides and says what depends on locations and layers, once the nodes have them: None if nothing is wrong. It is
    told if the object is rendered from a job spec."""
    shown: str = ""
    """The key or value at fault, as the message shows it; its file may have another text for it: `N` for `false`."""

    @property
    def location(self) -> Location | None:
        """The location of the problem, if its nodes have one."""
        shown = None if self.at is None else location_of(self.at)
        return shown or location_of(self.node)

    @property
    def fault(self) -> FaultKey:
        """What is wrong, wherever it is: problems of two versions of an object with equal faults are the same."""
        return self.rule, str(self.sentence)

    @property
    def values(self) -> tuple[str, ...]:
        """See `Finding.values`."""
        return values_of(self.sentence) if self.evidence is None else self.evidence


class FindingIdentity(NamedTuple):
    """What makes a finding the same one in another revision or wording; without `env`, in another environment.

    Of an object it is the place; a file without an object is known by its path and the values at fault.
    """

    rule: str
    env: str
    kind: tuple[str, str]
    """The group and the kind of the object; empty without one."""
    namespace: str
    name: str
    file: str
    path: str
    values: tuple[str, ...]


class Finding(NamedTuple):
    """A problem with its location. Two findings are equal if they differ only in their fix."""

    rule: str
    category: str
    severity: Severity
    message: str
    location: Location
    object: Identity | None = None
    env: str = ""
    pointer: str = ""
    related: tuple[Related, ...] = ()
    evidence: tuple[str, ...] | None = None
    """The values that identify the fault for `--since`. None means the values in backticks in the message.

    A message that also names other objects, or a sum of several, states here which of its values are about the fault.
    """
    place: str = ""
    """The job and the path in its object, with names instead of numbers for list items, to compare revisions."""
    also_reported_by: tuple[str, ...] = ()
    """Other rules and policies that report the same fault."""
    cause: Cause = ""
    meant: str = ""
    """The name or value that was probably meant, as the message suggests it."""
    fix: Fix | None = None

    def __eq__(self, other: builtins.object) -> bool:
        return isinstance(other, Finding) and self[:-1] == tuple(other)[:-1]

    def __ne__(self, other: builtins.object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:-1])

    @property
    def values(self) -> tuple[str, ...]:
        """The values that identify the fault, whatever its message says around them."""
        return values_of(self.message) if self.evidence is None else self.evidence

    @property
    def wrong_values(self) -> tuple[str, ...]:
        """The values in backticks in what the message says is wrong, without what it says to write instead."""
        return values_at_fault(self.message)

    @property
    def fault(self) -> FaultKey:
        """What is wrong, wherever it is: findings of two versions of a file with equal faults are the same."""
        return self.rule, self.message

    @property
    def without_advice(self) -> str:
        """What the message says is wrong."""
        return fault_of(self.message)

    @property
    def advice(self) -> str:
        """What the message says to write instead."""
        return advice_of(self.message)

    def reword(self, words: str, others: str) -> str:
        """Return the message with other words."""
        return self.message.replace(words, others)

    def add_words(self, words: str) -> Finding:
        """Return the finding with more words behind its message."""
        return self._replace(message=f"{self.message}; {words}")

    @property
    def identity(self) -> FindingIdentity:
        """What identifies it. Baselines, fingerprints, `--since` and duplicates start from this."""
        rule, env, who = self.rule, self.env, self.object
        if who is None:
            return FindingIdentity(rule, env, ("", ""), "", "", self.location.file, self.pointer, self.wrong_values)
        kind = who.api_version.rpartition("/")[0], who.kind
        return FindingIdentity(rule, env, kind, who.namespace, who.name, "", self.pointer, ())

    @property
    def message_numbers(self) -> tuple[str, ...]:
        """The numbers in the message outside of backticks, but for lines and columns, which change with the text."""
        return tuple(filter(None, _NUMBERS.findall(self.message)))

    def mentions(self, text: str) -> bool:
        """Return True if the message has a text: what a policy demands is only in the words of its author."""
        return text in self.message

    def has_word(self, *words: str) -> bool:
        """Return True if one of some words is in the message: what a policy demands is only in its author's words."""
        return not {*words}.isdisjoint(_WORD.findall(self.message))

    @property
    def key(self) -> tuple[Location, str, str, str]:
        """What tells a finding from others of one lint, whatever its severity and object; findings are in its order."""
        return self.location, self.rule, self.message, self.env

    @property
    def fixable(self) -> bool:
        """Return True if `--fix` or `--fix-unsafe` can fix it."""
        return self.fix is not None


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by location. Those that differ only in their object keep their order: that of the files."""
    return sorted(findings, key=lambda found: found.key)


_AFTER_AN = ("A", "E", "I", "O", "MPI", "MX", "XGB")
BROKEN_KIND = "declared here, in a kind description that has errors"
"""What a finding about a framework says of the description that was to declare it."""
UNCHECKED = "its fields were not checked"
"""What a finding about a kind without a schema says of one object."""


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun: `1 GPU`, `2 GPUs`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def add_article(noun: str) -> str:
    """Return a noun with its article: `a TFJob`, `an MPIJob`."""
    return f"{'an' if noun.startswith(_AFTER_AN) else 'a'} {noun}"


_AMOUNT = lazy_pattern(r"[-+.\d]")
_FEW = 3


def join_sentences(sentences: Sequence[str], names: Collection[str] = ()) -> str:
    """Return one sentence for some that differ in some names in backticks, or in any; empty if they differ otherwise.

    Where they differ, it lists the names. Amounts are no names: what to do about each is another thing.
    """
    parts = [sentence.split("`") for sentence in sentences]
    if len({len(each) for each in parts}) > 1:
        return ""
    joined: list[str] = []
    for number, texts in enumerate(zip(*parts, strict=True)):
        found, is_quoted = [*dict.fromkeys(texts)], number % 2 == 1
        if len(found) > 1 and (not is_quoted or any(map(_AMOUNT.match, found)) or (names and not {*found} <= {*names})):
            return ""
        joined.append(_list_names(found) if is_quoted else found[0])
    return "".join(joined)


def _list_names(names: Sequence[str]) -> str:
    """Return names in backticks: `a`, `b` and `c`, or with 2 others."""
    shown = [f"`{name}`" for name in (names[:_FEW] if len(names) > _FEW + 1 else names)]
    last = f"{len(names) - len(shown)} others" if len(shown) < len(names) else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last


_MISSING = frozenset(("missing-field", "missing-pod-field"))


def drop_consequences(problems: Iterable[Problem], causes: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems that do not follow from a cause: at the same value, or a field that is only misspelled."""
    refused, misspelled = set(), set()
    for cause in causes:
        refused.add(identify(cause.node))
        if cause.rule == "unknown-field" and (cause.meant or cause.cause == "unnamed item"):
            misspelled.add(identify(cause.node))
    for problem in problems:
        holder = problem.node if problem.rule in _MISSING and isinstance(problem.node, dict) else {}
        keys = (identify(each) for key in holder for each in (key, At(holder, key, is_key=True)))
        if identify(problem.node) not in refused and misspelled.isdisjoint(keys):
            yield problem


def add_failures(failures: Iterable[Problem], problems: list[Problem]) -> list[Problem]:
    """The problems of an object with the mutations that failed, unless wrong types are refused before mutations."""
    return problems if any(one.rule == "wrong-type" for one in problems) else [*failures, *problems]
