"""What a request about a position needs: the workspace, its layers, the file, and what is at the position."""

from __future__ import annotations

from jobgen.features.editor.completion.names import OVERLAY, find_keyed_kind, find_named_kind
from jobgen.features.editor.cursor import Cursor, Part
from jobgen.features.editor.index import NO_DECISIONS, Decisions
from jobgen.features.editor.workspace import Ready, Workspace, load_ready
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Location, text_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.root import SETTINGS

_SUPPRESSED = lazy_pattern(r"jobgen\s*:\s*ignore(?:-file)?\[([^\]]*)")
_WORD = lazy_pattern(r"[\w-]+")
_RULES = ("rules", "mandatory")
_NAMING_OVERLAYS = ("JobTests", "Overlay", "Team")
"""The kinds whose documents name overlays."""


class Context(NamedTuple):
    """A position in a workspace."""

    workspace: Workspace
    ready: Ready | None
    """None if the settings have errors."""
    file: str
    cursor: Cursor
    decisions: Decisions = NO_DECISIONS
    """What Kueue decides about the jobs as they are now."""

    @property
    def kind(self) -> str:
        """The kind of the document; empty without one."""
        return text_of(as_mapping(self.cursor.tree).get("kind"))

    @property
    def name(self) -> str:
        """The name of the document's object; empty without one."""
        return text_of(as_mapping(as_mapping(self.cursor.tree).get("metadata")).get("name"))

    def find_rule_name(self) -> str:
        """Return the rule or policy that is named, in a suppression or in the settings; empty without one."""
        cursor = self.cursor
        if cursor.part is Part.COMMENT:
            listed = (found.span(1) for found in _SUPPRESSED.finditer(cursor.text))
            words = (word for start, end in listed for word in _WORD.finditer(cursor.text, start, end))
            return next((word[0] for word in words if word.start() <= len(cursor.prefix) <= word.end()), "")
        if self.file == SETTINGS and len(cursor.path) == 2 and cursor.path[0] in _RULES:
            is_name = cursor.part is Part.KEY if cursor.path[0] == "rules" else cursor.part is Part.VALUE
            return cursor.text if is_name else ""
        match cursor.path:
            case ("exceptions", int(), "rule"):
                is_name = self.file == SETTINGS
            case (*_, "findings", int()):
                is_name = self.kind == "JobTests"
            case _:
                is_name = cursor.path[-1:] == ("policyName",)
        return cursor.text if is_name and cursor.part is Part.VALUE else ""

    def find_overlay_name(self) -> str:
        """Return the overlay that is named, in `environments`, in `extends` or as its own name; empty without one."""
        cursor = self.cursor
        if self.file != SETTINGS and self.kind not in _NAMING_OVERLAYS:
            return ""
        if cursor.part is Part.KEY:
            return cursor.text if find_keyed_kind(cursor.path[:-1]) == OVERLAY else ""
        if cursor.part is not Part.VALUE:
            return ""
        is_own_name = cursor.path == ("metadata", "name") and self.kind == "Overlay"
        return cursor.text if is_own_name or find_named_kind(cursor.path, None) == OVERLAY else ""

    def find_framework_name(self) -> str:
        """Return the framework that is named at a position; empty without one."""
        cursor = self.cursor
        if cursor.part is Part.VALUE:
            match cursor.path:
                case (*_, "framework") | (*_, "frameworks", int()):
                    return cursor.text
                case _:
                    return ""
        is_kind_file = self.file.startswith("schemas/") and cursor.path[:1] == ("frameworks",)
        return cursor.text if is_kind_file and len(cursor.path) == 2 else ""

    def find_kind_name(self) -> str:
        """Return the kind of objects that is named at a position; empty without one."""
        cursor = self.cursor
        if cursor.part is not Part.VALUE or self.file.startswith("schemas/"):
            return ""
        match cursor.path:
            case ("kind",) | (*_, "kinds", int()):
                return cursor.text
            case _:
                return ""


def make_context(workspace: Workspace, file: str, cursor: Cursor, decisions: Decisions = NO_DECISIONS) -> Context:
    """Return the context of a position."""
    return Context(workspace, load_ready(workspace), file, cursor, decisions)


_HIDING = frozenset(("yaml", "schema", "spec"))
"""The categories of errors that hide what later stages find."""

_MAX_LINES = 3
"""As many lines may be half typed together: a key, and the first line of its value. More were not typed just now."""


class GoodText(NamedTuple):
    """A document that was not half typed, and its findings."""

    text: str
    findings: tuple[Finding, ...]


def keep_findings(good: GoodText, text: str, found: tuple[Finding, ...]) -> tuple[Finding, ...] | None:
    """Return the findings of a document with those that a half-typed line hides; None if no line is half typed."""
    if text == good.text:
        return None
    # Whatever line they are on.
    known_errors = {each.fault for each in good.findings}
    if not any(_hides_others(each) and each.fault not in known_errors for each in found):
        return None
    before, now = good.text.split("\n"), text.split("\n")
    # How many lines are equal before and after those that differ.
    most = min(len(before), len(now))
    start = next((number for number in range(most) if before[number] != now[number]), most)
    after = next((number for number in range(most - start) if before[-1 - number] != now[-1 - number]), most - start)
    if len(now) - after - start > _MAX_LINES:
        return None
    shift = len(now) - len(before)
    known = {each.key for each in found}
    is_yaml = not any(each.rule == "yaml-syntax" for each in found)
    kept = [
        moved
        for each in good.findings
        # Errors that hide others are all found at once, unless the text is not YAML.
        if not (is_yaml and _hides_others(each))
        and (moved := _move(each, start, len(before) - after, shift)) is not None
        and moved.key not in known
    ]
    return (*kept, *found) if kept else None


def _hides_others(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR and finding.category in _HIDING


def _move(finding: Finding, start: int, end: int, shift: int) -> Finding | None:
    """Return a finding at its place after the edit of the lines after `start`, up to `end`; None if it is in them."""
    file = finding.location.file
    location = _move_location(finding.location, start, end, shift)
    if location is None:
        return None
    related = tuple(
        each._replace(location=moved)
        for each in finding.related
        if (moved := _move_location(each.location, start, end, shift) if each.location.file == file else each.location)
    )
    return finding._replace(location=location, related=related, fix=None)


def _move_location(at: Location, start: int, end: int, shift: int) -> Location | None:
    last = max(at.line, at.end_line)
    if last <= start:
        return at
    if at.line <= end:
        return None
    return at._replace(line=at.line + shift, end_line=at.end_line + shift if at.end_line else 0)
