"""`jobgen migrate --all`: migrate a whole repository, prove it, and write it or show the difference."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from jobgen.cli.result import ExitCode, Result, error_result, write_files, write_new_files
from jobgen.features.convert.migrate.convert_job import SOURCE, TARGET
from jobgen.features.convert.migrate.prove_repository import RepositoryProof, complete_migration, format_difference
from jobgen.features.convert.migrate.repository import RepositoryMigration, list_notes, migrate_repository
from jobgen.features.convert.operators.compare import is_equal_for_training
from jobgen.model.finding import Severity
from jobgen.rendering import config
from jobgen.rendering.redact import redact_diff
from jobgen.reports.entries import format_findings, pluralize
from jobgen.reports.escape import visible
from jobgen.spec.kinds import Kind


def migrate_all(root: Path, target: str, output: str | None, *, write: bool, force: bool) -> Result:
    """Migrate all PyTorchJobs of a repository to TrainJobs."""
    project = config.load(root)
    kinds = {kind.name: kind for kind in project.kinds}
    if target not in (TARGET, kinds[TARGET].platform):
        message = f"`--all` migrates a repository to `{kinds[TARGET].platform}`; name the jobs to migrate to `{target}`"
        return error_result(ExitCode.USAGE, message)
    if any(finding.severity is Severity.ERROR for finding in project.findings):
        return error_result(ExitCode.ERRORS, "the repository has errors", format_findings(project.findings))
    migration = migrate_repository(project, kinds[SOURCE], kinds[TARGET])
    if any(finding.severity is Severity.ERROR for finding in migration.findings):
        return error_result(ExitCode.ERRORS, "the repository has errors", format_findings(migration.findings))
    if not migration.files:
        return error_result(ExitCode.NOTHING_TO_DO, f"the repository has no {SOURCE} to migrate", _refused(migration))
    migration, proof = complete_migration(project, migration)
    report = "".join(f"{visible(line)}\n" for line in _list_lines(migration, proof, kinds[TARGET]))
    if proof.errors:
        return Result(ExitCode.ERRORS, err=f"{report}nothing was written\n")
    code = ExitCode.ERRORS if _refused(migration) or proof.findings else ExitCode.OK
    if output is None and not write:
        return Result(code, "".join(_list_diffs(root, migration)), report)
    folder = root / output if output else root
    files = {folder / path: text for path, text in migration.files.items()}
    error = write_new_files(files, root, force=force) if output else write_files(files, root)
    if error:
        return error._replace(err=report + error.err)
    return Result(code, err=f"{report}{pluralize(len(files), 'file')} written\n")


def _refused(migration: RepositoryMigration) -> str:
    reasons = [(each.source.where, each.result) for each in migration.documents if isinstance(each.result, str)]
    return "".join(f"{where}: not migrated: {visible(reason)}\n" for where, reason in reasons)


def _list_diffs(root: Path, migration: RepositoryMigration) -> Iterator[str]:
    for path, text in sorted(migration.files.items()):
        old = (root / path).read_text("utf-8") if (root / path).is_file() else ""
        before, after = f"a/{path}" if old else "/dev/null", f"b/{path}"
        lines = difflib.unified_diff(old.splitlines(), text.splitlines(), before, after, lineterm="")
        yield from (f"{visible(line)}\n" for line in redact_diff(lines, old, text))


def _list_lines(migration: RepositoryMigration, proof: RepositoryProof, target: Kind) -> Iterator[str]:
    """The report: what happens to each field, and what differs between the pods in each environment."""
    counts: Counter[str] = Counter()
    for document in migration.documents:
        source = document.source
        if isinstance(document.result, str):
            yield f"{source.where}: not migrated: {document.result}"
            continue
        yield f"{source.where}: `{source.name}`: {SOURCE} to {target.name}, runtime `{document.runtime}`"
        for line, note in list_notes(document):
            counts[note.change] += 1
            yield f"{source.jobs[0].file.path}:{line}: {note}"
        yield from (f"{source.where}: not migrated: {problem}" for problem in document.result.problems)
        for each in proof.pods:
            if each.source is source:
                changed = [difference for difference in each.differences if difference.training]
                counts["equal" if is_equal_for_training(each.differences) else "different"] += 1
                env = f"`{each.env}`: " if each.env else ""
                yield from (f"{source.where}: {env}{format_difference(difference)}" for difference in changed)
    for job in migration.pinned:
        counts["changed"] += 1
        where = f"{job.file.path}:{job.start().line}"
        reason = f"`{job.document.sweep or job.document.name}` stays as it is, though `{target.platform}` supports it"
        yield f"{where}: changed: `platform`: {reason}"
    for where, found in migration.notes:
        counts[found.note.change] += 1
        yield f"{where}: {found.note}"
    yield from proof.errors
    yield from (
        f"{each.location.file}:{each.location.line}: error: {each.message} [{each.rule}]" for each in proof.findings
    )
    done = [each for each in migration.documents if not isinstance(each.result, str)]
    runtimes = len({each.runtime for each in done})
    fields = ", ".join(f"{counts[change]} {change}" for change in ("moved", "changed", "lost", "check"))
    yield (
        f"{pluralize(len(done), 'job')}, {pluralize(runtimes, 'runtime')}; fields: {fields}; pods: "
        f"{counts['equal']} of {counts['equal'] + counts['different']} equal for training"
        + (f"; {pluralize(len(proof.findings), 'new error')}" if proof.findings else "")
    )
