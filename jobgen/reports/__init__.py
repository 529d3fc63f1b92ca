"""The model of a report: what a lint found, from which every format in `formats/` is written."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Identity, Severity, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.shipped import BUILT_IN


class Suppressed(NamedTuple):
    """A finding that is not reported, and why."""

    finding: Finding
    reason: str
    by: str = "comment"
    """`comment`, `exception` or `baseline`; within a lint also what a finding follows from, or what stands for it."""


class RuleText(NamedTuple):
    """The documentation of a rule."""

    category: str
    severity: Severity
    summary: str
    help: str
    page: str = ""
    """The address of the section about it; empty for a policy of the user."""


REPLACES = " replaces a shipped file"
"""The end of what a summary says about such a file, which may be weaker or stricter."""


class Report(NamedTuple):
    """The result of a lint, and how to show it."""

    findings: Sequence[Finding]
    suppressed: Sequence[Suppressed] = ()
    files: int = 0
    objects: int = 0
    environments: Sequence[str] = ()
    rules: Mapping[str, RuleText] = MappingProxyType({})
    find_line: Callable[[str, int], str | None] = lambda _, __: None
    """Returns a line of a file by its number; None if there is no such line, or the file cannot be read."""
    show_suppressed: bool = False
    """True to show suppressed findings in formats that leave them out by default."""
    width: int = 80
    color: bool = False
    link: Callable[[str], str] | None = None
    """Returns the address of the page about a rule, empty without one; None if the terminal shows no links."""
    skipped: Mapping[str, int] = MappingProxyType({})
    """How many files and folders were not judged, by reason."""
    taken: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """What each file was taken for, and why, by path; only those that were decided about."""
    explain_files: bool = False
    """True to list also the files that are judged as they are."""
    weaker: Sequence[str] = ()
    """What the settings check less than jobgen does without them, and the files that replace shipped ones."""
    trees: Sequence[str] = ()
    """How much of the declared trees was compared with the sources."""
    captures: Sequence[str] = ()
    """Of which day the captured state of each environment is."""
    left_out: int = 0
    """How many findings `select`, `ignore` and `severity` leave out."""
    prefix: str = ""
    """The path of the folder that file names are relative to, from the top of the Git repository; empty at the top."""

    def from_top(self, location: Location) -> Location:
        """The location with the path that forges know: from the top of the Git repository."""
        file = location.file
        # Files that come with jobgen and texts that are no path stay as they are.
        if not self.prefix or file.startswith(("/", "<", BUILT_IN)):
            return location
        return location._replace(file=posixpath.normpath(f"{self.prefix}/{file}"))


class Opinion(NamedTuple):
    """How much another tool checked."""

    tool: str
    objects: int = 0
    without_schema: int = 0
    missing: str = ""
    """Why it did not take part."""
    builds: int | None = None
    """How many kustomizations it built; None if it checks objects."""

    def __add__(self, other: Opinion) -> Opinion:  # type: ignore[override]
        return self._replace(
            objects=self.objects + other.objects,
            without_schema=self.without_schema + other.without_schema,
            builds=None if self.builds is None else self.builds + (other.builds or 0),
        )

    def __str__(self) -> str:
        if self.missing:
            return f"second opinion: {self.tool} checked nothing: {self.missing}"
        if self.builds is not None:
            built = f"{pluralize(self.builds, 'kustomization')} with {pluralize(self.objects, 'object')}"
            return f"second opinion: {self.tool} built {built}"
        rest = f"; {self.without_schema} had no schema" if self.without_schema else ""
        return f"second opinion: {self.tool} checked {pluralize(self.objects, 'object')}{rest}"


SITE = "https://github.com/jobgen/jobgen/blob/main/docs"
"""The address of the documentation; `jobgen explain RULE` prints the page of a rule without it."""


def name_rule_page(rule: str) -> str:
    """Return the address of the page about a rule; empty for a policy or a defect that does not come with jobgen."""
    rules, defects = _list_shipped_rules()
    page = f"defects.md#{rule}" if rule in defects else f"rules/{rule}.md"
    return f"{SITE}/{page}" if rule in rules else ""


@cache
def _list_shipped_rules() -> tuple[frozenset[str], frozenset[str]]:
    """The names of all rules, and those of defects among them."""
    # Imported late: a report without findings names no page.
    from jobgen.repo.known_rules import list_defect_names, list_known_rules

    return frozenset(list_known_rules(None)), frozenset(list_defect_names(None))


def to_plain_identity(identity: Identity | None) -> dict[str, str] | None:
    """Return an identity as JSON formats write it."""
    return dict(zip(("apiVersion", "kind", "namespace", "name"), identity, strict=True)) if identity else None
