"""`jobgen migrate`: convert jobs to another kind, or a whole repository, with a report for each field."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import click

from jobgen.cli.complete import complete_jobs_and_files
from jobgen.cli.options import env_option, force_option, output_option
from jobgen.cli.replaced_objects import refuse_losses
from jobgen.cli.result import ExitCode, Result, error_result, write_files, write_new_files
from jobgen.features.convert.importing.invert import to_spec_name
from jobgen.features.convert.migrate.convert_job import (
    SOURCE,
    TARGET,
    MigrationOutput,
    convert_job,
    convert_with_runtimes,
    is_selected,
    needs_runtime,
)
from jobgen.features.convert.migrate.differences import OVERLAYS, judge, list_names
from jobgen.features.convert.migrate.draft import replace_documents
from jobgen.features.convert.migrate.prove_repository import RepositoryProof, complete_migration, lint_changed
from jobgen.features.convert.migrate.repository import RepositoryMigration, list_notes, migrate_repository
from jobgen.k8s.redaction import redact
from jobgen.model.data import Plain
from jobgen.model.finding import Finding, Severity
from jobgen.model.suggest import did_you_mean, list_alternatives, list_jobs, suggest_name, suggest_or
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact import find_file_secrets, redact_diff, redact_findings
from jobgen.rendering.redact_results import find_layer_secrets, redact_shared
from jobgen.rendering.trace import WHOLE, Job
from jobgen.repo import layout
from jobgen.repo.atomic import find_output_fault
from jobgen.repo.files import File, read_file
from jobgen.repo.named_paths import find_manifests
from jobgen.repo.root import find_root
from jobgen.reports.entries import format_findings, pluralize
from jobgen.reports.escape import visible
from jobgen.spec.kinds import Kind

_SPEC = "TrainingJob"


def migrate_all(
    root: Path, target: str, output: str | None, accepted: Sequence[str] = (), *, write: bool, force: bool
) -> Result:
    """Migrate all PyTorchJobs of a repository to TrainJobs."""
    project = config.load_own(root)
    kinds = {kind.name: kind for kind in project.kinds}
    if target not in (TARGET, kinds[TARGET].platform):
        message = f"`--all` migrates a repository to `{kinds[TARGET].platform}`; name the jobs to migrate to `{target}`"
        return error_result(ExitCode.USAGE, message)
    fault = _check_output(output, root, root)
    if fault:
        return fault
    if any(finding.severity is Severity.ERROR for finding in project.findings):
        errors = redact_shared(project, project.findings)
        return error_result(ExitCode.ERRORS, "the repository has errors", format_findings(errors))
    migration = migrate_repository(project, kinds[SOURCE], kinds[TARGET])
    if any(finding.severity is Severity.ERROR for finding in migration.findings):
        errors = redact_shared(project, migration.findings)
        return error_result(ExitCode.ERRORS, "the repository has errors", format_findings(errors))
    if not migration.files:
        return error_result(
            ExitCode.NOTHING_TO_DO,
            f"the repository has no {SOURCE} to migrate; name jobs of other kinds",
            _refused(migration),
        )
    migration, proof = complete_migration(project, migration)
    secrets = _find_secrets(project, (each.source.jobs[0].file for each in migration.documents))
    lines = (redact(line, secrets) for line in _list_lines(migration, proof, kinds[TARGET]))
    report = "".join(f"{visible(line)}\n" for line in lines)
    refusals = "".join(f"{visible(line)}\n" for line in _list_refusals(migration, proof, accepted))
    if proof.errors or refusals or proof.findings:
        return Result(ExitCode.ERRORS, err=f"{report}{refusals}nothing was written\n")
    code = ExitCode.ERRORS if _refused(migration) else ExitCode.OK
    if output is None and not write:
        return Result(code, "".join(_list_diffs(root, migration)), report)
    folder = root / output if output else root
    files = {folder / path: text for path, text in migration.files.items()}
    error = refuse_losses(files, root) if output and force else None
    error = error or (write_new_files(files, root, force=force) if output else write_files(files, root))
    if error:
        return error._replace(err=report + error.err)
    return Result(code, err=report + _list_files(files, root))


def _list_refusals(migration: RepositoryMigration, proof: RepositoryProof, accepted: Sequence[str]) -> Iterator[str]:
    """Yield the jobs and the fields of overlays that do something else that users do not accept, and why."""
    for each in migration.documents:
        if not isinstance(each.result, str):
            own = [pods.differences for pods in proof.pods if pods.source is each.source]
            verdict = judge([difference for found in own for difference in found], each.result.notes, accepted)
            if verdict.is_refused:
                yield f"{each.source.where}: not migrated: {verdict.advice}"
    for where, found in migration.notes:
        verdict = judge((), [found.note], accepted)
        if verdict.is_refused:
            yield f"{where}: not migrated: {verdict.advice}"


def _list_files(files: Iterable[Path], directory: Path) -> str:
    """Return the lines with all files that were written, and their number."""
    names = sorted(os.path.relpath(path, directory) for path in files)
    return "".join(f"{visible(name)} written\n" for name in names) + f"{pluralize(len(names), 'file')} written\n"


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
                counts["different" if each.differences else "equal"] += 1
                env = f"`{each.env}`: " if each.env else ""
                yield from (f"{source.where}: {env}{difference}" for difference in each.differences)
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


def _complete_targets(context: click.Context, _: click.Parameter, __: str) -> list[str]:
    """Complete a kind or a platform; nothing can be converted to a runtime, which has no framework."""
    directory = context.find_root().params.get("directory") or "."
    jobs = [kind for kind in config.load_own(Path(directory).resolve()).kinds if kind.frameworks]
    return sorted({kind.name for kind in jobs} | {kind.platform for kind in jobs})


def _complete_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in list_names() if name.startswith(incomplete)]


def _check_names(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    known = list_names()
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        hint = did_you_mean(unknown, known) or f"; use {list_alternatives(f'`{name}`' for name in known)}"
        raise click.UsageError(f"`{unknown}` is not a difference that `--accept` knows{hint}")
    return names


_NEED_NAMES = "name the jobs to migrate, or write `--all` for all jobs of the repository"
_ALL_TAKES_NONE = "`--all` migrates all jobs, and takes no names; to write some of them, use `-o DIR` without `--all`"
_ALL_ENVIRONMENTS = "`--all` migrates the jobs of all environments; remove `-e`"
_NEED_ALL = "`--write` and `--dry-run` need `--all`; `-o DIR` writes the jobs that are named"


@click.command("migrate")
@click.argument("jobs", nargs=-1, metavar="[JOB|FILE]...", shell_complete=complete_jobs_and_files)
@click.option(
    "--to",
    "target",
    required=True,
    metavar="KIND|PLATFORM",
    shell_complete=_complete_targets,
    help="The kind or platform to convert to.",
)
@click.option("--all", "all_jobs", is_flag=True, help="Convert the whole repository, with overlays and runtimes.")
@click.option(
    "--runtimes/--no-runtimes",
    default=None,
    help="Write runtimes for what a TrainJob does not have; default: for each PyTorchJob, unless you give ENV.",
)
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="NAME",
    callback=_check_names,
    shell_complete=_complete_names,
    help="Accept that the migrated jobs differ in this way; can be repeated. The report names what differs.",
)
@click.option("--write", is_flag=True, help="With --all: change the files instead of printing the difference.")
@click.option("--dry-run", is_flag=True, help="With --all: print the difference and write nothing (the default).")
@env_option
@output_option
@force_option
@click.pass_obj
def command(
    directory: Path,
    jobs: tuple[str, ...],
    target: str,
    envs: tuple[str, ...],
    output: str | None,
    force: bool,
    all_jobs: bool,
    runtimes: bool | None,
    accepted: tuple[str, ...],
    write: bool,
    dry_run: bool,
) -> Result:
    """Convert jobs to another kind or platform.

    It reports what cannot be converted.

    JOB is the name of a job in this repository, or a pattern. FILE contains specs or manifests. ENV is the environment
    in which the jobs run today. If a migrated job would not do the same as before, nothing is printed or written,
    unless you accept each NAME of what differs.
    """
    if not all_jobs:
        if write or dry_run or not jobs:
            raise click.UsageError(_NEED_ALL if jobs else _NEED_NAMES)
        return migrate_jobs(directory, jobs, target, envs, output, accepted, force=force, runtimes=runtimes)
    if jobs or envs:
        raise click.UsageError(_ALL_TAKES_NONE if jobs else _ALL_ENVIRONMENTS)
    if (dry_run and (write or output)) or (write and output):
        raise click.UsageError("use one of `--write`, `--dry-run` and `-o`")
    root = find_root(directory.resolve())
    if root is None:
        return error_result(
            ExitCode.NOTHING_TO_DO,
            "no jobs repository: there is no jobgen.yaml, jobs/ or overlays/; `jobgen init` writes one",
        )
    return migrate_all(root, target, output, accepted, write=write, force=force)


def migrate_jobs(
    directory: Path,
    wanted: Sequence[str],
    target: str,
    envs: Sequence[str],
    output: str | None,
    accepted: Sequence[str] = (),
    *,
    force: bool = False,
    runtimes: bool | None = None,
) -> Result:
    """Convert jobs, by name or by file, to another kind or platform."""
    root = find_root(directory.resolve())
    project = config.load_own(root or directory.resolve())
    error = _check_arguments(project, target, envs) or _check_output(output, directory, root or directory)
    if error:
        return error
    findings: list[Finding] = []
    jobs = list(_jobs(directory, project, wanted, findings))
    errors = format_findings(findings)
    if not jobs:
        return error_result(ExitCode.NOTHING_TO_DO, _explain_missing(directory, project, wanted, findings), errors)
    apart = [runtimes if runtimes is not None else needs_runtime(*each, project, target, envs) for each in jobs]
    kinds = {kind.name: kind for kind in project.kinds}
    with_runtimes = [job for (job, _), is_apart in zip(jobs, apart, strict=True) if is_apart]
    if with_runtimes and not is_selected(kinds[TARGET], target):
        raise click.UsageError(f"`--runtimes` needs `--to {kinds[TARGET].platform}`; remove it, or change `--to`")
    outputs = convert_with_runtimes(with_runtimes, project, accepted) if with_runtimes else []
    outputs += [
        convert_job(job, size, project, target, envs, accepted)
        for (job, size), is_apart in zip(jobs, apart, strict=True)
        if not is_apart
    ]
    done = [each for each in outputs if each.text]
    secrets = _find_secrets(project, (job.file for job, _ in jobs))
    is_refused = any(each.verdict.is_refused for each in outputs)
    new_errors = [] if is_refused or root is None else _lint_in_place(project, root, done, accepted)
    shown = "".join(
        each.report.replace(f"{visible(each.same)}\n", "") if new_errors else each.report for each in outputs
    )
    report = errors + redact(shown + "".join(f"{visible(line)}\n" for line in new_errors), secrets)
    if is_refused:
        return Result(ExitCode.ERRORS, err=f"{report}nothing was {'written' if output else 'printed'}\n")
    is_right = len(done) == len(outputs) and not (findings or new_errors or any(each.errors for each in outputs))
    code = ExitCode.OK if is_right else ExitCode.ERRORS
    if output is None:
        return Result(code, "---\n".join(each.text for each in done), report)
    files = _make_files(directory, output, root, done)
    refusal = _refuse_jobs(files, done, target, root, directory / output)
    if force:
        # A job may become one of another kind.
        job_kinds = {_SPEC, *(kind.name for kind in project.kinds if kind.frameworks)}
        refusal = refusal or refuse_losses(files, directory, kinds=job_kinds)
    error = refusal or write_new_files(files, root or directory, force=force)
    if error:
        return error._replace(err=report + error.err)
    return Result(code, err=report + _list_files(files, directory))


def _lint_in_place(
    project: ProjectConfig, root: Path, done: Sequence[MigrationOutput], accepted: Sequence[str]
) -> list[str]:
    """Return the new errors of the repository as if its jobs were migrated where they are, besides those of the jobs.

    A job waits for the platform of an environment, and would be an error there until then. That a patch is for the old
    kind only is a difference by itself, which can be accepted.
    """
    folder = (root / "jobs").resolve()
    ready = [each for each in done if each.job is None or _is_ready(each, root, folder)]
    if not any(each.job for each in ready):
        return []
    files = _make_files(root, "jobs", root, ready)
    found = lint_changed(project, {os.path.relpath(path, root.resolve()): text for path, text in files.items()})
    known = {error for each in done for error in each.errors}
    named = ("patch-matches-nothing",) if OVERLAYS in accepted else ()
    texts = ((each, f"error: {each.message} [{each.rule}]") for each in found if each.rule not in named)
    lines = (f"{each.location.file}:{each.location.line}: {text}" for each, text in texts if text not in known)
    return list(dict.fromkeys(lines))


def _is_ready(output: MigrationOutput, root: Path, folder: Path) -> bool:
    """Return True if a job can be changed where it is, and all its environments have the new platform."""
    path = _find_file(output.job, root, root)
    is_document = output.job is not None and output.job.item <= WHOLE
    return is_document and not output.waiting and path is not None and path.is_relative_to(folder)


def _check_output(output: str | None, directory: Path, home: Path) -> Result | None:
    """Return an error if nothing may be written to a folder."""
    fault = find_output_fault(directory / output, home) if output is not None else ""
    return error_result(ExitCode.USAGE, f"`{output}` {fault}; choose another folder") if fault else None


def _check_arguments(project: ProjectConfig, target: str, envs: Sequence[str]) -> Result | None:
    """Return an error if there is no such kind, platform or environment."""
    platforms = sorted({kind.platform for kind in project.kinds if kind.frameworks})
    names = sorted({kind.name for kind in project.kinds if kind.frameworks})
    if not any(is_selected(kind, target) for kind in project.kinds):
        # Imported late: most names are right.
        from jobgen.schema.foreign_words import find_value

        if target.lower() == "kueue":
            message = "Kueue is no platform: it admits jobs of all platforms; write `queue: NAME` in the job"
            return error_result(ExitCode.USAGE, message)
        known = ", ".join([*platforms, *names])
        other = find_value("platform", target)
        listed = [*platforms, *names]
        hint = (
            f"; did you mean `{other}`?" if other in platforms else suggest_or(target, listed, f"choose one of {known}")
        )
        return error_result(ExitCode.USAGE, f"there is no kind or platform `{target}`{hint}")
    unknown = [env for env in envs if env not in project.overlays]
    if unknown:
        return error_result(
            ExitCode.USAGE, f"there is no environment `{unknown[0]}`{suggest_name(unknown[0], list(project.overlays))}"
        )
    return None


def _jobs(
    directory: Path, project: ProjectConfig, wanted: Sequence[str], findings: list[Finding]
) -> Iterator[tuple[Job, int]]:
    """Return the jobs of the given files, and jobs of the repository by name, each with the number of its members.

    A sweep is returned once. A member that was named without its sweep has none.
    """
    paths = [name for name in wanted if os.path.exists(directory / name)]
    patterns = [name for name in wanted if name not in paths]
    entries = [entry for path in paths for entry in find_manifests(directory, path)]
    errors: list[Finding] = []
    found = list(read_jobs(entries, project.kinds, errors))
    findings += redact_findings(errors, map(read_file, entries)) if errors else []
    errors = []
    for job in read_jobs(layout.find_jobs(project.root), project.kinds, errors) if patterns else ():
        if _is_named(job.document.sweep or job.document.name, patterns):
            found.append(job)
        elif _is_named(job.document.name, patterns):
            yield job, 0
    if not found:
        # The job may be in a file that cannot be read.
        findings += redact_shared(project, errors)
    sizes = Counter((job.file.path, job.position) for job in found)
    for job in found:
        size = sizes.pop((job.file.path, job.position), 0) if job.document.sweep else 1
        if size:
            yield job, size


def _explain_missing(
    directory: Path, project: ProjectConfig, wanted: Sequence[str], findings: Sequence[Finding]
) -> str:
    """Say that nothing has one of the names; a name with a slash or an extension is that of a file."""
    shown = list_alternatives(f"`{name}`" for name in wanted)
    if findings:
        return f"no job without errors is called {shown}; fix the errors above"
    if len(wanted) == 1 and (name := wanted[0]).endswith((".yaml", ".yml", ".json")):
        is_there = os.path.exists(directory / name)
        return (
            f"there is no job in `{name}`; name another file"
            if is_there
            else f"there is no file `{name}`; check the path"
        )
    if find_root(directory.resolve()) is None:
        return f"there is no jobs repository here, so no job {shown}; name a file with a job, or go to a repository"
    known = sorted({job.document.name for job, _ in _jobs(directory, project, ["*"], [])})
    advice = list_jobs(known)
    return f"there is no job {shown}{suggest_or(wanted[0], known, advice) if len(wanted) == 1 else f'; {advice}'}"


def _find_secrets(project: ProjectConfig, files: Iterable[File]) -> frozenset[str]:
    """Return the secrets of jobs and of what applies to them: what differs between two pods can show one."""
    return find_layer_secrets(project).union(*(find_file_secrets(file.content, file.path) for file in files))


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _make_files(directory: Path, output: str, root: Path | None, done: Sequence[MigrationOutput]) -> dict[Path, str]:
    """Return the files to write; jobs of the same name share a file.

    A job of a file in the folder is changed where it is, so that the rest of this file stays. Runtimes of jobs of a
    repository are beside its folder of jobs.
    """
    folder = (directory / output).resolve()
    files: dict[Path, str] = {}
    changed: dict[Path, tuple[Job, dict[int, Mapping[str, Plain] | str]]] = {}
    for each in done:
        source = _find_file(each.job, directory, root)
        if each.job and source and source.is_relative_to(folder) and each.job.item <= WHOLE:
            changed.setdefault(source, (each.job, {}))[1][each.job.position] = each.text
            continue
        below, _, name = each.name.rpartition("/")
        home = root if root and below == "runtimes" and folder.is_relative_to(root / "jobs") else folder
        path = home / below / f"{to_spec_name(name)}.yaml"
        files[path] = f"{files[path]}---\n{each.text}" if path in files else each.text
    return {**files, **{path: replace_documents(job.file, texts) for path, (job, texts) in changed.items()}}


def _find_file(job: Job | None, directory: Path, root: Path | None) -> Path | None:
    """Return the file of a job, which is named from the root or from the folder of the command."""
    if job is None:
        return None
    places = [(home / job.file.path).resolve() for home in (directory, root) if home]
    return next((path for path in places if path.is_file()), None)


def _refuse_jobs(
    files: Mapping[Path, str], done: Sequence[MigrationOutput], target: str, root: Path | None, folder: Path
) -> Result | None:
    """Return an error if jobs would be rendered where the platform is missing, or beside what they replace."""
    if root is None or not folder.resolve().is_relative_to(root / "jobs"):
        return None
    waiting = list(dict.fromkeys(f"`{env}`" for each in done for env in each.waiting if env))
    if waiting:
        verb = "has" if len(waiting) == 1 else "have"
        message = f"{', '.join(waiting)} {verb} no platform for `{target}` yet; nothing was written"
        return error_result(ExitCode.ERRORS, f"{message}; add the platform first, in the line above")
    for each in done:
        source = _find_file(each.job, root, None)
        if each.job and source and source.is_relative_to(root / "jobs") and source not in files:
            message = f"`{each.name}` is in `{visible(each.job.file.path)}`, so there would be two jobs of this name"
            return error_result(ExitCode.ERRORS, f"{message}; nothing was written; use `-o jobs` to change it there")
    return None
