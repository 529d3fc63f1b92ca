"""Offer the fixes of `jobgen lint --fix` and `--fix-unsafe`: one by one, and all safe ones of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b

from jobgen.api.fix import MAX_ROUNDS, apply_fixes
from jobgen.features.editor.actions.offer import FIX_ALL, QUICK_FIX, ActionRequest, Change, Offer
from jobgen.features.editor.actions.verify import (
    MORE_ERRORS,
    Outcome,
    find_findings,
    list_checked_files,
    read_editable,
    try_change,
)
from jobgen.features.editor.workspace import Workspace
from jobgen.model.finding import Finding, Fix, TextEdit
from jobgen.yamlio.edit import EditRefusedError, apply_edits

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
