"""`jobgen migrate`: convert jobs to another kind, with a report for each field."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import click

from jobgen.cli.options import env_option, force_option, output_option
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.cli.write_files import write_new_files
from jobgen.convert.importing.import_job import ImportedSpec, import_manifest
from jobgen.convert.importing.invert import to_spec_name
from jobgen.convert.migrate.migrate_job import MigratedJob, migrate_job, target_framework
from jobgen.convert.migrate.rewrite import find_line, rewrite_job
from jobgen.model.finding import Finding
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.trace import Job
from jobgen.render.build import is_spec
from jobgen.render.expand import Expander
from jobgen.repo import layout
from jobgen.report.escape import visible
from jobgen.report.summary import format_findings, pluralize
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import DEFAULT_PLATFORM
from jobgen.yamlio.write import to_yaml


@click.command("migrate")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--to", "target", required=True, metavar="KIND|PLATFORM", help="The kind or platform to convert to.")
@env_option
@output_option
@force_option
@click.pass_obj
def command(
    directory: Path, jobs: tuple[str, ...], target: str, envs: tuple[str, ...], output: str | None, force: bool
) -> Result:
    """Convert jobs to another kind or platform, and report what cannot be converted.

    JOB is a name or a pattern of jobs in this repository, or a file with specs or manifests. ENV is where a spec runs
    today.
    """
    return migrate_jobs(directory, jobs, target, envs, output, force=force)


class MigrationSource(NamedTuple):
    """A job to migrate: its spec, its current kind, and whether it was written as a spec."""

    job: Job
    document: dict[str, Any]
    kind: Kind
    framework: str
    is_spec: bool


class MigrationOutput(NamedTuple):
    """The result for one job: its new text, if there is one, and its report."""

    name: str
    text: str
    report: str


def migrate_jobs(
    directory: Path, wanted: Sequence[str], target: str, envs: Sequence[str], output: str | None, *, force: bool = False
) -> Result:
    """Convert jobs, by name or by file, to another kind or platform."""
    root = layout.find_root(directory.resolve())
    project = config.load(root or directory.resolve())
    platforms = sorted({kind.platform for kind in project.kinds if kind.frameworks})
    names = sorted({kind.name for kind in project.kinds if kind.frameworks})
    if not any(_is_selected(kind, target) for kind in project.kinds):
        known = ", ".join([*platforms, *names])
        return error_result(
            ExitCode.USAGE, f"there is no kind or platform `{target}`{did_you_mean(target, names)} (known: {known})"
        )
    unknown = [env for env in envs if env not in project.overlays]
    if unknown:
        return error_result(
            ExitCode.USAGE, f"there is no environment `{unknown[0]}`{did_you_mean(unknown[0], list(project.overlays))}"
        )
    findings: list[Finding] = []
    jobs = list(_jobs(directory, project, wanted, findings))
    errors = format_findings(findings)
    if not jobs:
        return error_result(
            ExitCode.NOTHING_TO_DO, f"no job is called {' or '.join(f'`{name}`' for name in wanted)}", errors
        )
    outputs = [_migrate(job, project, target, envs) for job in jobs]
    done = [each for each in outputs if each.text]
    report = errors + "".join(each.report for each in outputs)
    code = ExitCode.OK if len(done) == len(outputs) and not findings else ExitCode.ERRORS
    if output is None:
        return Result(code, "---\n".join(each.text for each in done), report)
    error = write_new_files(_make_files(directory / output, done), root or directory, force=force)
    if error:
        return error._replace(err=report + error.err)
    return Result(code, err=f"{report}{pluralize(len(done), 'job')} written\n")


def _jobs(directory: Path, project: ProjectConfig, wanted: Sequence[str], findings: list[Finding]) -> Iterator[Job]:
    """Return the jobs of the given files, and jobs of the repository by name."""
    paths = [name for name in wanted if os.path.exists(directory / name)]
    patterns = [name for name in wanted if name not in paths]
    for path in paths:
        yield from read_jobs(layout.find_manifests(directory, path), project.frameworks, findings)
    if patterns:
        for job in read_jobs(layout.find_jobs(project.root), project.frameworks, []):
            if any(fnmatchcase(job.document.name, pattern) for pattern in patterns):
                yield job


def _is_selected(kind: Kind, target: str) -> bool:
    """Whether a target selects a kind: by platform, by name, or by name and version."""
    name, _, version = target.partition("/")
    if not kind.frameworks:
        return False
    named = name.lower() == kind.name.lower() and (not version or str(kind.api_version).endswith(f"/{version}"))
    return target == kind.platform or named


def _migrate(job: Job, project: ProjectConfig, target: str, envs: Sequence[str]) -> MigrationOutput:
    origin = _find_source(job, project, target, envs)
    where = f"{job.file.path}:{job.start().line}"
    if isinstance(origin, str):
        return MigrationOutput(job.document.name, "", f"{where}: not migrated: {visible(origin)}\n")
    kind = _select_target(origin, project, target)
    if isinstance(kind, str):
        return MigrationOutput(job.document.name, "", f"{where}: not migrated: {visible(kind)}\n")
    done = migrate_job(origin.document, origin.kind, kind, origin.framework, project.kinds)
    report = _format_report(origin, done, kind)
    if done.problems:
        why = "".join(f"{where}: not migrated: {visible(problem)}\n" for problem in done.problems)
        return MigrationOutput(job.document.name, "", report + why)
    if not origin.is_spec:
        return MigrationOutput(job.document.name, to_yaml(done.rendered), report)
    return MigrationOutput(job.document.name, rewrite_job(job.file, job.position, done.document), report)


def _find_source(job: Job, project: ProjectConfig, target: str, envs: Sequence[str]) -> MigrationSource | str:
    """Return the current kind of a job, or why it is unknown."""
    data = job.document.data
    if job.document.sweep:
        return f"`{job.document.sweep}` is a sweep, of which this is one member; migrate it without its `matrix`"
    if not is_spec(data):
        kind = next((kind for kind in project.kinds if kind.describes(data["apiVersion"], data["kind"])), None)
        if kind is None or not kind.frameworks:
            return f"`{data['apiVersion']}` `{data['kind']}` is not a kind of job that jobgen knows"
        spec = import_manifest(data, kind, project.kinds)
        if not isinstance(spec, ImportedSpec):
            return "no spec renders to exactly this object; `jobgen import` shows why"
        return MigrationSource(job, spec.document, kind, spec.framework, is_spec=False)
    found = list(_find_kinds(job, project, envs or project.environments()))
    if not found and not envs:
        found = [
            MigrationSource(job, data, kind, str(data["spec"]["framework"]), is_spec=True)
            for kind in sorted(project.kinds, key=lambda kind: kind.platform != DEFAULT_PLATFORM)
            if data["spec"].get("framework") in kind.frameworks
        ]
    other = [each for each in found if not _is_selected(each.kind, target)] or found
    return (
        other[0]
        if other
        else "no environment contains it, so its current kind is unknown; name an environment with `-e`"
    )


def _find_kinds(job: Job, project: ProjectConfig, envs: Sequence[str]) -> Iterator[MigrationSource]:
    """Yield the kind of a spec in each environment that contains it."""
    for env in envs:
        expander = Expander(project.environment(env, []), list(project.kinds))
        facets = expander.attributes(job.document)
        if not expander.environment.matches(facets):
            continue
        platform = expander.environment.cluster.platform or DEFAULT_PLATFORM
        for kind in project.kinds:
            if kind.platform == platform and kind.name == facets.kind:
                yield MigrationSource(job, job.document.data, kind, facets.framework, is_spec=True)


def _select_target(origin: MigrationSource, project: ProjectConfig, target: str) -> Kind | str:
    """Return the kind to convert to, or why that is impossible."""
    meant = [kind for kind in project.kinds if _is_selected(kind, target)]
    able = [kind for kind in meant if target_framework(origin.framework, kind)]
    other = [kind for kind in able if kind is not origin.kind]
    if other:
        return other[0]
    if able:
        return f"it is already a {origin.kind.name} of `{origin.kind.platform}`"
    serving = {kind.platform for kind in project.kinds if target_framework(origin.framework, kind)}
    elsewhere = sorted(serving - {origin.kind.platform})
    hint = f"; it can be converted to {' or '.join(f'`{name}`' for name in elsewhere)}" if elsewhere else ""
    return f"`{target}` does not support `{origin.framework}`{hint}"


def _format_report(origin: MigrationSource, done: MigratedJob, kind: Kind) -> str:
    """Return the report: one line for each field, with its location, and the comparison of the pods."""
    job = origin.job
    where = f"{job.file.path}:{job.start().line}"
    way = f"{origin.kind.name} ({origin.kind.platform}) to {kind.name} ({kind.platform})"
    if origin.is_spec and kind.platform != origin.kind.platform:
        way += f"; it needs an overlay with `cluster: {{platform: {kind.platform}}}`"
    lines = [f"{where}: `{job.document.name}`: {way}"]
    lines += (
        f"{job.file.path}:{find_line(job, entry.field) if origin.is_spec else job.start().line}: {entry}"
        for entry in done.notes
    )
    lines += (f"{where}: {each}" for each in done.differences)
    if not done.differences:
        lines.append(f"{where}: images, commands, env, resources, nodes and processes are the same")
    return "".join(f"{visible(line)}\n" for line in lines)


def _make_files(folder: Path, done: Sequence[MigrationOutput]) -> dict[Path, str]:
    """Return the files to write; jobs of the same name share a file."""
    files: dict[Path, str] = {}
    for each in done:
        path = folder / f"{to_spec_name(each.name)}.yaml"
        files[path] = f"{files[path]}---\n{each.text}" if path in files else each.text
    return files
