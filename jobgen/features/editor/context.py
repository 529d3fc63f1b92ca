"""What a request about a position needs: the workspace, its layers, the file, and what is at the position."""

from __future__ import annotations

from jobgen.features.editor.completion.names import OVERLAY, find_keyed_kind, find_named_kind
from jobgen.features.editor.cursor import Cursor, Part
from jobgen.features.editor.decisions import NO_DECISIONS, Decisions
from jobgen.features.editor.workspace import Ready, Workspace, load_ready
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import value_of
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
        found = value_of(as_mapping(self.cursor.tree).get("kind"))
        return found if isinstance(found, str) else ""

    @property
    def name(self) -> str:
        """The name of the document's object; empty without one."""
        found = value_of(as_mapping(as_mapping(self.cursor.tree).get("metadata")).get("name"))
        return found if isinstance(found, str) else ""


def make_context(workspace: Workspace, file: str, cursor: Cursor, decisions: Decisions = NO_DECISIONS) -> Context:
    """Return the context of a position."""
    return Context(workspace, load_ready(workspace), file, cursor, decisions)


def find_rule_name(context: Context) -> str:
    """Return the rule or policy that is named at a position, in a suppression or in the settings; empty without one."""
    cursor = context.cursor
    if cursor.part is Part.COMMENT:
        return _find_suppressed(cursor.text, len(cursor.prefix))
    if context.file == SETTINGS and len(cursor.path) == 2 and cursor.path[0] in _RULES:
        is_name = cursor.part is Part.KEY if cursor.path[0] == "rules" else cursor.part is Part.VALUE
        return cursor.text if is_name else ""
    match cursor.path:
        case ("exceptions", int(), "rule"):
            is_name = context.file == SETTINGS
        case (*_, "findings", int()):
            is_name = context.kind == "JobTests"
        case _:
            is_name = cursor.path[-1:] == ("policyName",)
    return cursor.text if is_name and cursor.part is Part.VALUE else ""


def _find_suppressed(comment: str, at: int) -> str:
    for listed in _SUPPRESSED.finditer(comment):
        for word in _WORD.finditer(comment, listed.start(1), listed.end(1)):
            if word.start() <= at <= word.end():
                return word[0]
    return ""


def find_overlay_name(context: Context) -> str:
    """Return the overlay that is named, in `environments`, in `extends` or as its own name; empty without one."""
    cursor = context.cursor
    if context.file != SETTINGS and context.kind not in _NAMING_OVERLAYS:
        return ""
    if cursor.part is Part.KEY:
        return cursor.text if find_keyed_kind(cursor.path[:-1]) == OVERLAY else ""
    if cursor.part is not Part.VALUE:
        return ""
    is_own_name = cursor.path == ("metadata", "name") and context.kind == "Overlay"
    return cursor.text if is_own_name or find_named_kind(cursor.path, None) == OVERLAY else ""


def find_framework_name(context: Context) -> str:
    """Return the framework that is named at a position; empty without one."""
    cursor = context.cursor
    if cursor.part is Part.VALUE:
        match cursor.path:
            case (*_, "framework") | (*_, "frameworks", int()):
                return cursor.text
            case _:
                return ""
    is_kind_file = context.file.startswith("schemas/") and cursor.path[:1] == ("frameworks",)
    return cursor.text if is_kind_file and len(cursor.path) == 2 else ""


def find_kind_name(context: Context) -> str:
    """Return the kind of objects that is named at a position; empty without one."""
    cursor = context.cursor
    if cursor.part is not Part.VALUE or context.file.startswith("schemas/"):
        return ""
    match cursor.path:
        case ("kind",) | (*_, "kinds", int()):
            return cursor.text
        case _:
            return ""
