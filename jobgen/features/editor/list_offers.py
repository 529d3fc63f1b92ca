"""Offer to move a value of a job to the defaults of an overlay, if the objects of the job stay the same."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any

from jobgen.api.fix import MAX_ROUNDS, apply_fixes
from jobgen.features.editor import offers
from jobgen.features.editor.cursor import Cursor, find_cursor, get_path, read_text
from jobgen.features.editor.offers import (
    EXTRACT,
    ActionRequest,
    Change,
    Offer,
    list_migrations,
    loses_comments,
    read_editable,
    return_change,
    try_change,
)
from jobgen.features.editor.workspace import Ready, Workspace, load_ready
from jobgen.model.data import Node, Plain, TracedKey, TracedScalar, untraced
from jobgen.model.digest import blake2b
from jobgen.model.finding import Finding, Fix, TextEdit, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import values_of
from jobgen.rendering.build import is_spec
from jobgen.rendering.environment import new_overlay_use
from jobgen.rendering.trace import Job
from jobgen.repo.root import LAYER_FOLDERS, SETTINGS
from jobgen.reports.suppress import is_unreadable, parse_suppressions, write_rules
from jobgen.spec.overlay import list_ancestors
from jobgen.yamlio.edit import EditRefusedError, apply_edits
from jobgen.yamlio.read import read

_MAX_SECONDS = 0.4
"""How long other jobs are compared, at most."""
_MAX_NAMES = 5


class _Field(NamedTuple):
    """A field of a job: its path in the spec, its key, and its value."""

    path: tuple[str, ...]
    key: TracedKey
    value: Plain


def list_extractions(request: ActionRequest) -> Iterator[Offer]:
    """Offer the overlays that all environments of the job have in common, the nearest first."""
    workspace = request.workspace
    if not request.is_invoked or not workspace.is_repository or not workspace.is_job(request.file):
        return
    content = read_editable(workspace, request.file)
    if isinstance(content, str):
        return
    cursor = find_cursor(content.decode("utf-8", "replace"), request.range.line, request.range.column, request.file)
    field = _find_field(cursor)
    if field is None:
        return
    with workspace.reading():
        ready = load_ready(workspace)
        if ready is None:
            return
        jobs = workspace.read_jobs(ready, request.file)
        own = [job for job in jobs if job.position == cursor.document and is_spec(job.document.data)]
        runners = [each for each in ready.layers.runners if any(each.patches_for(job) is not None for job in own)]
        chains = [list_ancestors(runner.name, ready.project.overlays) for runner in runners]
        for overlay in reversed(chains[0]) if chains else ():
            if all(overlay in chain for chain in chains):
                yield from _offer(request, ready, own, field, overlay)


def _find_field(cursor: Cursor) -> _Field | None:
    """Return the field of a spec at a position; that of the list, if it is in one."""
    steps = [str(step) for step in takewhile(lambda step: isinstance(step, str), cursor.path)]
    if len(steps) < 2 or steps[0] != "spec" or not cursor.is_complete:
        return None
    holder = get_path(cursor.tree, steps[:-1])
    key = next((key for key in holder if key == steps[-1]), None) if isinstance(holder, dict) else None
    return _Field(tuple(steps[1:]), key, untraced(holder[key])) if isinstance(key, TracedKey) else None


def _offer(request: ActionRequest, ready: Ready, jobs: Sequence[Job], field: _Field, overlay: str) -> Iterator[Offer]:
    workspace = request.workspace
    files = _move(workspace, ready, request.file, field, overlay)
    before = [_render(ready, job) for job in jobs]
    if files is None or None in before:
        return
    with workspace.trying(files):
        after = workspace.load()
        moved = [job for job in workspace.read_jobs(after, request.file) if job.position == jobs[0].position]
        if [_render(after, job) for job in moved] != before:
            return
        changed, unknown = _compare_others(workspace, ready, after, overlay, jobs[0])
    if try_change(workspace, files).has_new_errors:
        return
    more = f" (changes {pluralize(len(changed), 'other job')})" if changed else ""
    title = f"Move `{'.'.join(field.path)}` to the defaults of overlay {overlay}{more}"
    shown, rest = ", ".join(changed[:_MAX_NAMES]), len(changed) - _MAX_NAMES
    notes = [f"it also changes {shown}{f' and {rest} more' if rest > 0 else ''}"] if changed else []
    notes += [f"{pluralize(unknown, 'other job')} can also change"] if unknown else []
    is_lost = loses_comments(jobs[0].file.content, files[request.file])
    notes += ["the comment after the value is lost"] if is_lost else []
    make = partial(return_change, Change(files, "; ".join(notes)))
    yield Offer(f"extract {overlay}", title, EXTRACT, make)


def _move(workspace: Workspace, ready: Ready, file: str, field: _Field, overlay: str) -> Mapping[str, bytes] | None:
    """Return both files after the move; None if that is impossible, or the overlay has another default."""
    specs = ready.layers.tracer.traced_project().overlays[overlay].specs
    node: Any = next((spec for spec in specs if "defaults" in spec), specs[-1])
    steps = ["defaults", *field.path]
    while len(steps) > 1 and isinstance(node.get(steps[0]), dict) and node[steps[0]]:
        node = node[steps.pop(0)]
    edits = {file: [TextEdit("remove", field.key.location)]}
    if steps[0] not in node:
        value = field.value
        for step in reversed(steps[1:]):
            value = {step: value}
        last = list(node)[-1]
        if not isinstance(last, TracedKey):
            return None
        edits[last.location.file] = [TextEdit("add", last.location, value, steps[0])]
    elif len(steps) > 1 or untraced(node[steps[0]]) != field.value:
        return None
    files: dict[str, bytes] = {}
    for path, several in edits.items():
        content = read_editable(workspace, path)
        if isinstance(content, str):
            return None
        try:
            files[path] = apply_edits(content, path, several)
        except EditRefusedError:
            return None
    return files


def _render(ready: Ready, job: Job) -> dict[str, list[Any]] | None:
    """Return the objects of a job by environment; None if it has errors."""
    found: dict[str, list[Any]] = {}
    for runner in ready.layers.runners:
        patches = runner.patches_for(job)
        if patches is None:
            continue
        made = runner.render_job(job, patches, new_overlay_use())
        if made is None:
            return None
        found[runner.name] = [each.object for each in made]
    return found


def _compare_others(
    workspace: Workspace, before: Ready, after: Ready, overlay: str, own: Job
) -> tuple[tuple[str, ...], int]:
    """Render the other specs of environments that use an overlay before and after a change, as many as time allows.

    Return the names of those that change, and how many were not compared.
    """
    overlays = before.project.overlays
    using = {each.name for each in before.layers.runners if overlay in list_ancestors(each.name, overlays)}
    others: dict[str, set[int]] = {}
    for file, index in workspace.index.items():
        for known in index.jobs:
            is_own = (file, known.position) == (own.file.path, own.position)
            is_using = any(each.environment in using for each in known.environments)
            if not is_own and known.kind == "TrainingJob" and is_using:
                others.setdefault(file, set()).add(known.position)
    end = time.monotonic() + _MAX_SECONDS
    changed: dict[str, None] = {}
    left = sum(map(len, others.values()))
    for file, positions in others.items():
        if time.monotonic() > end:
            break
        left -= len(positions)
        for job in workspace.read_jobs(after, file):
            if job.position in positions and _render(before, job) != _render(after, job):
                changed[job.document.sweep or job.document.name] = None
    return tuple(changed), left


_MAX_FIXES, _MAX_QUOTES, _MAX_SUPPRESSIONS = 20, 10, 10
"""How many are offered for a selection, at most."""
_MAX_COLUMN = 120
REASON = "TODO: state the reason"
"""Stands for the reason until the user has written one."""
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
"""Findings about comments, files and patterns that no comment can suppress."""
_LAYERS = tuple(f"{folder}/" for folder in LAYER_FOLDERS)


def list_fixes(request: offers.ActionRequest) -> Iterator[offers.Offer]:
    """Offer the fix of each selected finding; a finding of several environments has one."""
    by_fix: dict[str, list[Finding]] = {}
    for finding in request.list_nearest_first():
        if finding.fix and request.is_asked_about(finding.location):
            by_fix.setdefault(repr(finding.fix), []).append(finding)
    for name, findings in list(by_fix.items())[:_MAX_FIXES]:
        fix = findings[0].fix
        assert fix is not None, "selected above"
        described = ", ".join(dict.fromkeys(_describe_edit(edit, findings[0]) for edit in fix.edits))
        other = fix.edits[0].location.file
        where = f" in {other}" if other != request.file else ""
        unsafe = "" if fix.safe else " (unsafe: review the change)"
        title = f"Fix {findings[0].rule}: {described}{where}{unsafe}"
        make = partial(fix_findings, request.workspace, tuple(findings), fix)
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        yield offers.Offer(f"fix {digest}", title, offers.QUICK_FIX, make, tuple(findings), is_preferred=fix.safe)


def _describe_edit(edit: TextEdit, finding: Finding) -> str:
    """Return what an edit does. A message is without secrets, so a value that it has may be shown."""
    shown = f"`{edit.value}`"
    known = str(edit.value) in values_of(finding.message)
    texts = {
        "quote": "quote the value",
        "set": f"write {shown}" if known else "change the value",
        "rename": f"rename to {shown}" if known else "rename the key",
        "remove": f"remove `{edit.key}`" if edit.key else "remove the entry",
        "add": f"add `{edit.key}`",
    }
    return texts.get(edit.op, "change the comment" if edit.value else "remove the comment")


def fix_findings(workspace: Workspace, findings: Sequence[Finding], fix: Fix) -> offers.Change | str:
    """Return the change that fixes findings, or why there is none.

    Errors that it leads to are fixed too, if they can be: a request has to change with its limit.
    """
    file = fix.edits[0].location.file
    content = offers.read_editable(workspace, file)
    if isinstance(content, str):
        return content
    new = content
    fixes = [fix]
    for _ in range(MAX_ROUNDS):
        try:
            new = apply_edits(new, file, [edit for each in fixes for edit in each.edits])
        except EditRefusedError as error:
            return f"`{file}` cannot be edited: {error}"
        outcome = offers.try_change(workspace, {file: new}, findings)
        if not outcome.has_new_errors:
            then, now = (Counter(map(_name_fault, found.findings)) for found in (outcome.before, outcome.after))
            stays = any(now[fault] >= then[fault] for fault in map(_name_fault, findings) if then[fault])
            return "the finding would stay" if stays else offers.Change({file: new})
        # The fixes of findings that this one led to. They have to be safe if it is.
        before = set(map(_name_fault, outcome.before.findings))
        led = [each.fix for each in outcome.after.findings if each.fix and _name_fault(each) not in before]
        fixes = []
        for each in led:
            if _is_inside(each, file) and each.safe >= fix.safe and each not in fixes:
                fixes.append(each)
        if not fixes:
            break
    return offers.MORE_ERRORS


def _name_fault(finding: Finding) -> tuple[object, ...]:
    """What identifies a fault, wherever it is."""
    return finding.fault, finding.env, finding.location.file


def list_fix_all(request: offers.ActionRequest) -> Iterator[offers.Offer]:
    """Offer to fix all safe findings of the file, if there is one."""
    findings = [each for each in request.findings if each.fix and each.fix.safe and _is_inside(each.fix, request.file)]
    if findings:
        make = partial(fix_file, request.workspace, request.file, request.findings)
        yield offers.Offer("fix all", "Fix all safe findings of this file", offers.FIX_ALL, make, tuple(findings))


def _is_inside(fix: Fix, file: str) -> bool:
    return fix.edits[0].location.file == file


def fix_file(workspace: Workspace, file: str, findings: Sequence[Finding]) -> offers.Change | str:
    """Apply the safe fixes of a file until nothing changes any more, because one fix may enable the next."""
    content = offers.read_editable(workspace, file)
    if isinstance(content, str):
        return content
    current, new = findings, content
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
            current = offers.find_findings(workspace, offers.list_checked_files(workspace, [file], findings)).findings
    if new == content:
        return "no fix can be applied"
    return (
        offers.MORE_ERRORS
        if offers.try_change(workspace, {file: new}, findings).has_new_errors
        else offers.Change({file: new})
    )


def list_quotes(request: offers.ActionRequest) -> Iterator[offers.Offer]:
    """Offer to quote the selected scalars, except for those that a fix quotes."""
    content = offers.read_editable(request.workspace, request.file)
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
                yield offers.Offer(name, "Quote this scalar", offers.REWRITE, make)


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


# Findings about comments, files and patterns that no comment can suppress.


def list_suppressions(request: offers.ActionRequest) -> Iterator[offers.Offer]:
    """Offer to suppress the selected findings, one offer for each rule and line."""
    ready, file = load_ready(request.workspace), request.file
    # JSON has no comments.
    is_yaml = file.endswith((".yaml", ".yml"))
    is_read = is_yaml and (request.workspace.is_job(file) or file == SETTINGS or file.startswith(_LAYERS))
    if ready is None or not is_read:
        return
    by_line: dict[tuple[int, str], list[Finding]] = {}
    for finding in request.list_nearest_first():
        is_fixed = finding.rule in ready.project.mandatory or finding.rule in _NEVER or is_unreadable(finding)
        if not is_fixed and request.is_asked_about(finding.location):
            by_line.setdefault((finding.location.line, finding.rule), []).append(finding)
    for (line, rule), findings in list(by_line.items())[:_MAX_SUPPRESSIONS]:
        change = _suppress_finding(request.workspace, findings[0])
        if change is not None:
            title = f"Suppress {rule} on this line with a reason"
            make = partial(offers.return_change, change)
            yield offers.Offer(f"suppress {line} {rule}", title, offers.QUICK_FIX, make, tuple(findings))


def _suppress_finding(workspace: Workspace, finding: Finding) -> offers.Change | None:
    """Return the change that suppresses a finding; None where no comment can stand."""
    file = finding.location.file
    content = offers.read_editable(workspace, file)
    if isinstance(content, str):
        return None
    errors = len(parse_suppressions(content, file)[1])
    for new, line in _list_texts(content, file, finding):
        comments, new_errors = parse_suppressions(new, file)
        moved = finding._replace(location=finding.location._replace(line=line))
        is_suppressed = len(new_errors) <= errors and any(comment.matches(moved) for comment in comments)
        before, after = ([untraced(each.data) for each in read(text, file).documents] for text in (content, new))
        # Nothing else may be different.
        if is_suppressed and before == after:
            return offers.Change({file: new})
    return None


def _list_texts(content: bytes, file: str, finding: Finding) -> Iterator[tuple[bytes, int]]:
    """Yield texts with a comment, the best first, and the line of the finding in each."""
    line = finding.location.line
    for comment in parse_suppressions(content, file)[0]:
        if comment.line == line:
            with suppress(EditRefusedError):
                fix = write_rules(comment, (*comment.rules, finding.rule))
                if fix is not None:
                    yield apply_edits(content, file, fix.edits), line
    rows = content.split(b"\n")
    if line > len(rows):
        return
    row = rows[line - 1].removesuffix(b"\r")
    end = rows[line - 1][len(row) :]
    comment_text = f"# jobgen: ignore[{finding.rule}] -- {REASON}".encode()
    indent = row[: len(row) - len(row.lstrip(b" \t"))]
    beside = [*rows[: line - 1], row.rstrip() + b"  " + comment_text + end, *rows[line:]]
    above = [*rows[: line - 1], indent + comment_text + end, *rows[line - 1 :]]
    texts = [(b"\n".join(beside), line), (b"\n".join(above), line + 1)]
    is_long = len(row.rstrip()) + 2 + len(comment_text) > _MAX_COLUMN
    yield from reversed(texts) if is_long or b"#" in row else texts


_SOURCES: tuple[tuple[str, Callable[[offers.ActionRequest], Iterator[offers.Offer]]], ...] = (
    (offers.QUICK_FIX, list_fixes),
    (offers.QUICK_FIX, list_suppressions),
    (offers.FIX_ALL, list_fix_all),
    (offers.EXTRACT, list_extractions),
    (offers.REWRITE, list_quotes),
    (offers.REWRITE, list_migrations),
)
"""The functions that list offers, each with the kind of these."""


def list_offers(request: offers.ActionRequest, only: Sequence[str] = ()) -> list[offers.Offer]:
    """Return the offers of some kinds, or of all: `source` stands for `source.fixAll` and everything below."""
    return [
        offer
        for kind, list_some in _SOURCES
        if not only or any(f"{kind}.".startswith(f"{wanted}.") for wanted in only)
        for offer in list_some(request)
    ]
