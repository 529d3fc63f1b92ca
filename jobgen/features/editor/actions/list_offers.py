"""All offers for a range of a file: fixes, quotes, and comments that suppress a finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b

from jobgen.api.fix import MAX_ROUNDS, apply_fixes
from jobgen.features.editor.actions.extract import list_extractions
from jobgen.features.editor.actions.migrate import list_migrations
from jobgen.features.editor.actions.offers import (
    EXTRACT,
    FIX_ALL,
    QUICK_FIX,
    REWRITE,
    ActionRequest,
    Change,
    Offer,
    return_change,
)
from jobgen.features.editor.actions.verify import (
    MORE_ERRORS,
    Outcome,
    find_findings,
    list_checked_files,
    read_editable,
    try_change,
)
from jobgen.features.editor.cursor import read_text
from jobgen.features.editor.workspace import Workspace, load_ready
from jobgen.model.data import Node, TracedKey, TracedScalar, untraced
from jobgen.model.finding import Finding, Fix, TextEdit
from jobgen.repo.root import LAYER_FOLDERS, SETTINGS
from jobgen.reports.suppress import Suppression, is_unreadable, parse_suppressions, write_rules
from jobgen.yamlio.edit import EditRefusedError, apply_edits
from jobgen.yamlio.read import read

_MAX_OFFERS = 20
"""How many fixes are offered for a selection, at most."""


def list_fixes(request: ActionRequest) -> Iterator[Offer]:
    """Offer the fix of each selected finding; a finding of several environments has one."""
    by_fix: dict[str, list[Finding]] = {}
    for finding in request.list_nearest_first():
        if finding.fix and request.is_asked_about(finding.location):
            by_fix.setdefault(repr(finding.fix), []).append(finding)
    for name, findings in list(by_fix.items())[:_MAX_OFFERS]:
        fix = findings[0].fix
        assert fix is not None, "selected above"
        title = _describe_fix(findings[0], fix, request.file)
        make = partial(fix_findings, request.workspace, tuple(findings), fix)
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        yield Offer(f"fix {digest}", title, QUICK_FIX, make, tuple(findings), is_preferred=fix.safe)


def _describe_fix(finding: Finding, fix: Fix, file: str) -> str:
    described = dict.fromkeys(_describe_edit(edit, finding) for edit in fix.edits)
    other = fix.edits[0].location.file
    where = f" in {other}" if other != file else ""
    unsafe = "" if fix.safe else " (unsafe: review the change)"
    return f"Fix {finding.rule}: {', '.join(described)}{where}{unsafe}"


def _describe_edit(edit: TextEdit, finding: Finding) -> str:
    """Return what an edit does. A message is without secrets, so a value that it has may be shown."""
    shown = f"`{edit.value}`"
    known = shown in finding.message
    if edit.op == "quote":
        return "quote the value"
    if edit.op == "set":
        return f"write {shown}" if known else "change the value"
    if edit.op == "rename":
        return f"rename to {shown}" if known else "rename the key"
    if edit.op == "remove":
        return f"remove `{edit.key}`" if edit.key else "remove the entry"
    if edit.op == "add":
        return f"add `{edit.key}`"
    return "change the comment" if edit.value else "remove the comment"


def fix_findings(workspace: Workspace, findings: Sequence[Finding], fix: Fix) -> Change | str:
    """Return the change that fixes findings, or why there is none.

    Errors that it leads to are fixed too, if they can be: a request has to change with its limit.
    """
    file = fix.edits[0].location.file
    content = read_editable(workspace, file)
    if isinstance(content, str):
        return content
    new = content
    fixes = [fix]
    for _ in range(MAX_ROUNDS):
        try:
            new = apply_edits(new, file, [edit for each in fixes for edit in each.edits])
        except EditRefusedError as error:
            return f"`{file}` cannot be edited: {error}"
        outcome = try_change(workspace, {file: new}, findings)
        if not outcome.has_new_errors:
            return "the finding would stay" if _stays(findings, outcome) else Change({file: new})
        fixes = list(_list_following_fixes(outcome, fix))
        if not fixes:
            break
    return MORE_ERRORS


def _list_following_fixes(outcome: Outcome, fix: Fix) -> Iterator[Fix]:
    """Yield the fixes of findings that another fix led to. They are safe if that is."""
    before = set(map(_name_fault, outcome.before.findings))
    new = [each.fix for each in outcome.after.findings if each.fix and _name_fault(each) not in before]
    for number, each in enumerate(new):
        if _is_inside(each, fix.edits[0].location.file) and each.safe >= fix.safe and each not in new[:number]:
            yield each


def _stays(findings: Iterable[Finding], outcome: Outcome) -> bool:
    then, now = (Counter(map(_name_fault, found.findings)) for found in outcome)
    return any(now[fault] >= then[fault] for fault in map(_name_fault, findings) if then[fault])


def _name_fault(finding: Finding) -> tuple[object, ...]:
    """What identifies a fault, wherever it is."""
    return finding.rule, finding.env, finding.message, finding.location.file


def list_fix_all(request: ActionRequest) -> Iterator[Offer]:
    """Offer to fix all safe findings of the file, if there is one."""
    findings = [each for each in request.findings if each.fix and each.fix.safe and _is_inside(each.fix, request.file)]
    if findings:
        make = partial(fix_file, request.workspace, request.file, request.findings)
        yield Offer("fix all", "Fix all safe findings of this file", FIX_ALL, make, tuple(findings))


def _is_inside(fix: Fix, file: str) -> bool:
    return fix.edits[0].location.file == file


def fix_file(workspace: Workspace, file: str, findings: Iterable[Finding]) -> Change | str:
    """Apply the safe fixes of a file until nothing changes any more, because one fix may enable the next."""
    content = read_editable(workspace, file)
    if isinstance(content, str):
        return content
    first = list(findings)
    current: Iterable[Finding] = first
    new = content
    for _ in range(MAX_ROUNDS):
        fixes = {
            repr(each.fix.edits): each.fix.edits
            for each in current
            if each.fix and each.fix.safe and _is_inside(each.fix, file)
        }
        fixed, _ = apply_fixes(new, file, list(fixes.values()))
        if fixed == new:
            break
        new = fixed
        with workspace.trying({file: new}):
            current = find_findings(workspace, list_checked_files(workspace, [file], first)).findings
    if new == content:
        return "no fix can be applied"
    return MORE_ERRORS if try_change(workspace, {file: new}, first).has_new_errors else Change({file: new})


_MAX_QUOTES = 10
"""How many scalars are offered for a selection, at most."""


def list_quotes(request: ActionRequest) -> Iterator[Offer]:
    """Offer to quote the selected scalars, except for those that a fix quotes."""
    content = read_editable(request.workspace, request.file)
    if isinstance(content, str) or request.file.endswith(".json"):
        return
    fixes = [finding.fix for finding in request.findings if finding.fix]
    fixed = {(edit.op, edit.location) for fix in fixes for edit in fix.edits}
    offered = 0
    for document in read_text(content.decode("utf-8", "replace"), request.file).documents:
        for edit in _list_edits(document.data):
            if offered < _MAX_QUOTES and request.is_selected(edit.location) and (edit.op, edit.location) not in fixed:
                offered += 1
                make = partial(fix_findings, request.workspace, (), Fix((edit,), safe=False))
                name = f"quote {edit.location.line}:{edit.location.column}"
                yield Offer(name, "Quote this scalar", REWRITE, make)


def _list_edits(tree: Node) -> Iterator[TextEdit]:
    """Yield the edits that quote the keys and values that are read as another text."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(key, TracedKey) and key.written:
                yield TextEdit("rename", key.location, key.written)
            yield from _list_edits(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _list_edits(value)
    elif isinstance(tree, TracedScalar) and tree.written:
        yield TextEdit("quote", tree.location)


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
_MAX_SUPPRESSIONS = 10
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
    for (line, rule), findings in list(by_line.items())[:_MAX_SUPPRESSIONS]:
        change = suppress(request.workspace, findings[0])
        if change is not None:
            title = f"Suppress {rule} on this line with a reason"
            make = partial(return_change, change)
            yield Offer(f"suppress {line} {rule}", title, QUICK_FIX, make, tuple(findings))


def _reads_comments(workspace: Workspace, file: str) -> bool:
    """Return True if comments of a file can suppress findings. JSON has no comments."""
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
    """Return True if a comment of the new text suppresses a finding, and nothing else is different."""
    file = finding.location.file
    comments, errors = parse_suppressions(new, file)
    if len(errors) > len(parse_suppressions(old, file)[1]):
        return False
    return any(comment.matches(finding) for comment in comments) and _read(old, file) == _read(new, file)


def _read(content: bytes, file: str) -> list[Node]:
    return [untraced(document.data) for document in read(content, file).documents]


_SOURCES: tuple[tuple[str, Callable[[ActionRequest], Iterator[Offer]]], ...] = (
    (QUICK_FIX, list_fixes),
    (QUICK_FIX, list_suppressions),
    (FIX_ALL, list_fix_all),
    (EXTRACT, list_extractions),
    (REWRITE, list_quotes),
    (REWRITE, list_migrations),
)
"""The functions that list offers, each with the kind of these."""


def list_offers(request: ActionRequest, only: Sequence[str] = ()) -> list[Offer]:
    """Return the offers of some kinds, or of all: `source` stands for `source.fixAll` and everything below."""
    return [
        offer
        for kind, list_some in _SOURCES
        if not only or any(f"{kind}.".startswith(f"{wanted}.") for wanted in only)
        for offer in list_some(request)
    ]
