"""Offer to suppress a finding with a comment: `# jobgen: ignore[rule] -- reason`, on its line or above it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from jobgen.features.editor.actions.offer import QUICK_FIX, ActionRequest, Change, Offer, return_change
from jobgen.features.editor.actions.verify import read_editable
from jobgen.features.editor.workspace import Workspace, load_ready
from jobgen.model.data import Node, untraced
from jobgen.model.finding import Finding
from jobgen.repo.root import LAYER_FOLDERS, SETTINGS
from jobgen.report.suppress import Suppression, is_unreadable, parse_suppressions, write_rules
from jobgen.yamlio.edit import EditRefusedError, apply_edits
from jobgen.yamlio.read import read

REASON = "TODO: state the reason"
"""Stands for the reason until the user has written one."""

# Findings about comments, files and patterns that no comment can suppress.
_NEVER = frozenset(
    (
        "edited-rendered-file",
        "exclude-matches-nothing",
        "expired-suppression",
        "malformed-suppression",
        "mandatory-suppressed",
        "unknown-current-date",
        "unknown-suppression",
        "unlisted-rendered-file",
        "unused-suppression",
    )
)
_LAYERS = tuple(f"{folder}/" for folder in LAYER_FOLDERS)
_MAX_COLUMN = 120
_MAX_OFFERS = 10
"""How many suppressions are offered for a selection, at most."""


def list_suppressions(request: ActionRequest) -> Iterator[Offer]:
    """Offer to suppress the selected findings, one offer for each rule and line."""
    ready = load_ready(request.workspace)
    if ready is None or not _reads_comments(request.workspace, request.file):
        return
    by_line: dict[tuple[int, str], list[Finding]] = {}
    for finding in request.list_nearest_first():
        is_fixed = finding.rule in ready.run.project.mandatory or finding.rule in _NEVER or is_unreadable(finding)
        if not is_fixed and request.is_asked_about(finding.location):
            by_line.setdefault((finding.location.line, finding.rule), []).append(finding)
    for (line, rule), findings in list(by_line.items())[:_MAX_OFFERS]:
        change = suppress(request.workspace, findings[0])
        if change is not None:
            title = f"Suppress {rule} on this line with a reason"
            make = partial(return_change, change)
            yield Offer(f"suppress {line} {rule}", title, QUICK_FIX, make, tuple(findings))


def _reads_comments(workspace: Workspace, file: str) -> bool:
    """Whether comments of a file can suppress findings. JSON has no comments."""
    if not file.endswith((".yaml", ".yml")):
        return False
    return workspace.is_job(file) or file == SETTINGS or file.startswith(_LAYERS)


def suppress(workspace: Workspace, finding: Finding) -> Change | None:
    """Return the change that suppresses a finding; None where no comment can stand."""
    file = finding.location.file
    content = read_editable(workspace, file)
    if isinstance(content, str):
        return None
    for new, line in _list_texts(content, file, finding):
        if new != content and _suppresses(
            content, new, finding._replace(location=finding.location._replace(line=line))
        ):
            return Change({file: new})
    return None


def _list_texts(content: bytes, file: str, finding: Finding) -> Iterator[tuple[bytes, int]]:
    """Yield texts with a comment, the best first, and the line of the finding in each."""
    line = finding.location.line
    for comment in parse_suppressions(content, file)[0]:
        if comment.line == line:
            yield _join_comment(content, file, comment, finding.rule), line
    rows = content.split(b"\n")
    if line > len(rows):
        return
    row, end = _split_end(rows[line - 1])
    comment_text = f"# jobgen: ignore[{finding.rule}] -- {REASON}".encode()
    indent = row[: len(row) - len(row.lstrip(b" \t"))]
    beside = [*rows[: line - 1], row.rstrip() + b"  " + comment_text + end, *rows[line:]]
    above = [*rows[: line - 1], indent + comment_text + end, *rows[line - 1 :]]
    texts = [(b"\n".join(beside), line), (b"\n".join(above), line + 1)]
    is_long = len(row.rstrip()) + 2 + len(comment_text) > _MAX_COLUMN
    yield from reversed(texts) if is_long or b"#" in row else texts


def _split_end(row: bytes) -> tuple[bytes, bytes]:
    return (row[:-1], b"\r") if row.endswith(b"\r") else (row, b"")


def _join_comment(content: bytes, file: str, comment: Suppression, rule: str) -> bytes:
    """Add a rule to a comment."""
    try:
        return apply_edits(content, file, write_rules(comment, (*comment.rules, rule)).edits)
    except EditRefusedError:
        return content


def _suppresses(old: bytes, new: bytes, finding: Finding) -> bool:
    """Whether a comment of the new text suppresses a finding, and nothing else is different."""
    file = finding.location.file
    comments, errors = parse_suppressions(new, file)
    if len(errors) > len(parse_suppressions(old, file)[1]):
        return False
    return any(comment.matches(finding) for comment in comments) and _read(old, file) == _read(new, file)


def _read(content: bytes, file: str) -> list[Node]:
    return [untraced(document.data) for document in read(content, file).documents]
