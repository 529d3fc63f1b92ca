"""`jobgen migrate`: convert jobs to another kind, with a report for each field."""

from __future__ import annotations

import os
from collections import Counter
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
from jobgen.convert.migrate.draft import NO_SURROUNDINGS, Surroundings
from jobgen.convert.migrate.migrate_job import MigratedJob, migrate_job, target_framework
from jobgen.convert.migrate.migrate_sweep import migrate_sweep
from jobgen.convert.migrate.rewrite import find_line, rewrite_job
from jobgen.model.data import value_of
from jobgen.model.finding import Finding
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.trace import Job
from jobgen.render.build import is_spec
from jobgen.render.expand import Expander
from jobgen.repo import layout
from jobgen.repo.files import FileEntry
from jobgen.repo.named_paths import find_manifests
from jobgen.repo.root import find_root
from jobgen.report.escape import visible
from jobgen.report.summary import format_findings, pluralize
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import DEFAULT_PLATFORM, Environment, JobAttributes
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml


@click.command("migrate")
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@click.option("--to", "target", required=True, metavar="KIND|PLATFORM", help="The kind or platform to convert to.")
@click.option("--all", "all_jobs", is_flag=True, help="Convert the whole repository, with overlays and runtimes.")
@click.option(
    "--runtimes/--no-runtimes",
    default=None,
    help="Write runtimes for what a TrainJob cannot have; by default for each PyTorchJob, unless ENV is given.",
)
@click.option("--write", is_flag=True, help="With --all: change the files instead of printing the difference.")
@click.option("--dry-run", is_flag=True, help="With --all: print the difference and write nothing, as without --write.")
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
    write: bool,
    dry_run: bool,
) -> Result:
    """Convert jobs to another kind or platform, and report what cannot be converted.

    JOB is a name or a pattern of jobs in this repository, or a file with specs or manifests. ENV is where a spec runs
    today.
    """
    if not all_jobs:
        if write or dry_run or not jobs:
            message = "name the jobs to migrate" if not jobs else "`--write` and `--dry-run` need `--all`"
            raise click.UsageError(message)
        return migrate_jobs(directory, jobs, target, envs, output, force=force, runtimes=runtimes)
    if jobs or envs or (dry_run and (write or output)) or (write and output):
        raise click.UsageError("`--all` takes no jobs and no environments, and one of --write, --dry-run and -o")
    # Imported late: a migration of single jobs needs none of it.
    from jobgen.cli.migrate_all import migrate_all

    root = find_root(directory.resolve())
    if root is None:
        return error_result(ExitCode.NOTHING_TO_DO, "there is no repository here: no jobgen.yaml, jobs/ or overlays/")
    return migrate_all(root, target, output, write=write, force=force)


class MigrationSource(NamedTuple):
    """A job to migrate: its spec, its current kind, and whether it was written as a spec."""

    job: Job
    document: dict[str, Any]
    kind: Kind
    framework: str
    is_spec: bool
    surroundings: Surroundings = NO_SURROUNDINGS


class MigrationOutput(NamedTuple):
    """The result for one job: its new text, if there is one, and its report."""

    name: str
    text: str
    report: str


def migrate_jobs(
    directory: Path,
    wanted: Sequence[str],
    target: str,
    envs: Sequence[str],
    output: str | None,
    *,
    force: bool = False,
    runtimes: bool | None = None,
) -> Result:
    """Convert jobs, by name or by file, to another kind or platform."""
    root = find_root(directory.resolve())
    project = config.load(root or directory.resolve())
    error = _check_arguments(project, target, envs)
    if error:
        return error
    findings: list[Finding] = []
    jobs = list(_jobs(directory, project, wanted, findings))
    errors = format_findings(findings)
    if not jobs:
        return error_result(
            ExitCode.NOTHING_TO_DO, f"no job is called {' or '.join(f'`{name}`' for name in wanted)}", errors
        )
    apart = [runtimes if runtimes is not None else _needs_runtime(*each, project, target, envs) for each in jobs]
    with_runtimes = [job for (job, _), is_apart in zip(jobs, apart, strict=True) if is_apart]
    outputs = _migrate_with_runtimes(with_runtimes, project, target) if with_runtimes else []
    outputs += [
        _migrate(job, size, project, target, envs)
        for (job, size), is_apart in zip(jobs, apart, strict=True)
        if not is_apart
    ]
    done = [each for each in outputs if each.text]
    report = errors + "".join(each.report for each in outputs)
    code = ExitCode.OK if len(done) == len(outputs) and not findings else ExitCode.ERRORS
    if output is None:
        return Result(code, "---\n".join(each.text for each in done), report)
    error = write_new_files(_make_files(directory / output, done), root or directory, force=force)
    if error:
        return error._replace(err=report + error.err)
    return Result(code, err=f"{report}{pluralize(len(done), 'file' if with_runtimes else 'job')} written\n")


def _check_arguments(project: ProjectConfig, target: str, envs: Sequence[str]) -> Result | None:
    """Return an error if there is no such kind, platform or environment."""
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
    return None


def _needs_runtime(job: Job, size: int, project: ProjectConfig, target: str, envs: Sequence[str]) -> bool:
    """Whether a job is a PyTorchJob that becomes a TrainJob: only a runtime can keep all of its pods' fields."""
    from jobgen.cli.migrate_all import SOURCE, TARGET

    origin = _find_source(job, project, target, envs) if size and not envs else ""
    if isinstance(origin, str) or origin.kind.name != SOURCE:
        return False
    kind = _select_target(origin, project, target)
    return not isinstance(kind, str) and kind.name == TARGET


def _migrate_with_runtimes(jobs: Sequence[Job], project: ProjectConfig, target: str) -> list[MigrationOutput]:
    from jobgen.cli.migrate_all import SOURCE, TARGET
    from jobgen.cli.migrate_runtimes import migrate_with_runtimes

    kinds = {kind.name: kind for kind in project.kinds}
    if not _is_selected(kinds[TARGET], target):
        raise click.UsageError(f"`--runtimes` migrates to `{kinds[TARGET].platform}`")
    members = [member for job in jobs for member in (_list_members(job, project) if job.document.sweep else (job,))]
    found = migrate_with_runtimes(members, project, kinds[SOURCE], kinds[TARGET])
    return [MigrationOutput(each.path.removesuffix(".yaml"), each.text, each.report) for each in found]


def _list_members(job: Job, project: ProjectConfig) -> list[Job]:
    """All members of the sweep that a job belongs to."""
    entry = FileEntry(job.file.path, content=job.file.content)
    return [each for each in read_jobs([entry], project.frameworks, []) if each.position == job.position]


def _jobs(
    directory: Path, project: ProjectConfig, wanted: Sequence[str], findings: list[Finding]
) -> Iterator[tuple[Job, int]]:
    """Return the jobs of the given files, and jobs of the repository by name, each with the number of its members.

    A sweep is returned once. A member that was named without its sweep has none.
    """
    paths = [name for name in wanted if os.path.exists(directory / name)]
    patterns = [name for name in wanted if name not in paths]
    found = [job for path in paths for job in read_jobs(find_manifests(directory, path), project.frameworks, findings)]
    errors: list[Finding] = []
    for job in read_jobs(layout.find_jobs(project.root), project.frameworks, errors) if patterns else ():
        if _is_named(job.document.sweep or job.document.name, patterns):
            found.append(job)
        elif _is_named(job.document.name, patterns):
            yield job, 0
    if not found:
        # The job may be in a file that cannot be read.
        findings += errors
    sizes = Counter((job.file.path, job.position) for job in found)
    for job in found:
        size = sizes.pop((job.file.path, job.position), 0) if job.document.sweep else 1
        if size:
            yield job, size


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_selected(kind: Kind, target: str) -> bool:
    """Whether a target selects a kind: by platform, by name, or by name and version."""
    name, _, version = target.partition("/")
    if not kind.frameworks:
        return False
    named = name.lower() == kind.name.lower() and (not version or str(kind.api_version).endswith(f"/{version}"))
    return target == kind.platform or named


def _migrate(job: Job, size: int, project: ProjectConfig, target: str, envs: Sequence[str]) -> MigrationOutput:
    where = f"{job.file.path}:{job.start().line}"

    def refuse(reason: str) -> MigrationOutput:
        return MigrationOutput(job.document.name, "", f"{where}: not migrated: {visible(reason)}\n")

    if not size:
        return refuse(f"`{job.document.name}` is a member of a sweep; migrate `{job.document.sweep}`, the whole sweep")
    origin = _find_source(job, project, target, envs)
    if isinstance(origin, str):
        return refuse(origin)
    kind = _select_target(origin, project, target)
    if isinstance(kind, str):
        return refuse(kind)
    env, version = _find_version(project, kind)
    origin = origin._replace(surroundings=origin.surroundings._replace(target_version=version))
    done = _migrate_document(origin, kind, size, project)
    if isinstance(done, str):
        return refuse(done)
    report = _format_report(origin, done, kind, env)
    if done.problems:
        why = "".join(f"{where}: not migrated: {visible(problem)}\n" for problem in done.problems)
        return MigrationOutput(job.document.name, "", report + why)
    if not origin.is_spec:
        return MigrationOutput(job.document.name, "---\n".join(map(to_yaml, (done.rendered, *done.companions))), report)
    name = job.document.sweep or job.document.name
    return MigrationOutput(name, rewrite_job(job.file, job.position, done.document), report)


def _migrate_document(origin: MigrationSource, kind: Kind, size: int, project: ProjectConfig) -> MigratedJob | str:
    """Migrate a job, or a sweep of that size; a text says why that is impossible."""

    def migrate(document: dict[str, Any]) -> MigratedJob:
        return migrate_job(document, origin.kind, kind, origin.framework, project.kinds, origin.surroundings)

    job = origin.job
    if not job.document.sweep:
        return migrate(origin.document)
    document = read(job.file.content, job.file.path).documents[job.position].data
    return migrate_sweep(document, size, migrate)


def _find_source(job: Job, project: ProjectConfig, target: str, envs: Sequence[str]) -> MigrationSource | str:
    """Return the current kind of a job, or why it is unknown."""
    data = job.document.data
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
                policies = Surroundings(_find_overlay_policies(job, expander, facets), env)
                yield MigrationSource(
                    job, job.document.data, kind, facets.framework, is_spec=True, surroundings=policies
                )


def _find_overlay_policies(job: Job, expander: Expander, attributes: JobAttributes) -> dict[str, str]:
    """Return the restart policies, by role, that overlays and not the job set."""
    environment = expander.environment
    bare = Expander(Environment("", environment.cluster), expander.kinds)
    patches = environment.patches_for(attributes)
    with_overlays = expander.expand(job.document, patches, [], [])
    without = bare.expand(job.document, [], [], [])
    if with_overlays is None:
        return {}
    own = {name: value_of(role.replica.get("restartPolicy")) for name, role in without.roles.items()} if without else {}
    policies = {name: value_of(role.replica.get("restartPolicy")) for name, role in with_overlays.roles.items()}
    return {name: policy for name, policy in policies.items() if policy and policy != own.get(name)}


def _find_version(project: ProjectConfig, kind: Kind) -> tuple[str, str]:
    """Return the first environment that declares the version of a kind's operator on its platform, and the version."""
    for env in project.environments():
        cluster = project.environment(env, []).cluster
        version = cluster.find_version(kind.operator)
        if version and kind.platform in cluster.list_platforms():
            return env, version
    return "", ""


def _select_target(origin: MigrationSource, project: ProjectConfig, target: str) -> Kind | str:
    """Return the kind to convert to, or why that is impossible."""
    meant = [kind for kind in project.kinds if _is_selected(kind, target)]
    able = [kind for kind in meant if target_framework(origin.framework, kind)]
    other = [kind for kind in able if kind is not origin.kind]
    if other:
        # Volcano has a Job, too; without its platform, `Job` is that of Kubernetes.
        return min(other, key=lambda kind: kind.platform != "kubernetes")
    if able:
        return f"it is already a {origin.kind.name} of `{origin.kind.platform}`"
    serving = {kind.platform for kind in project.kinds if target_framework(origin.framework, kind)}
    elsewhere = sorted(serving - {origin.kind.platform})
    hint = f"; it can be converted to {' or '.join(f'`{name}`' for name in elsewhere)}" if elsewhere else ""
    return f"`{target}` does not support `{origin.framework}`{hint}"


def _format_report(origin: MigrationSource, done: MigratedJob, kind: Kind, env: str) -> str:
    """Return the report: one line for each field, with its location, and the comparison of the pods."""
    job = origin.job
    where = f"{job.file.path}:{job.start().line}"
    way = f"{origin.kind.name} ({origin.kind.platform}) to {kind.name} ({kind.platform})"
    if origin.is_spec and kind.platform != origin.kind.platform:
        way += f"; it needs an overlay with `cluster: {{platform: {kind.platform}}}`"
    if env:
        way += f"; overlay `{env}` has {kind.operator} {origin.surroundings.target_version}"
    lines = [f"{where}: `{job.document.sweep or job.document.name}`: {way}"]
    for entry in done.notes:
        line = job.start().line
        if origin.is_spec:
            line = find_line(job.traced_document().data["spec"], entry.field, line)
        lines.append(f"{job.file.path}:{line}: {entry}")
    lines += (f"{where}: {each}" for each in done.differences)
    if not done.differences:
        lost = sum(note.change == "lost" for note in done.notes)
        except_lost = f"except for {pluralize(lost, 'lost field')}, " if lost else ""
        lines.append(f"{where}: {except_lost}images, commands, env, resources, nodes and processes are the same")
    if (origin.kind.name, kind.name) == ("PyTorchJob", "TrainJob") and any(
        note.change == "lost" for note in done.notes
    ):
        lines.append(
            f"{where}: `--runtimes`, or `--all` for the whole repository, writes runtimes that keep what is lost"
        )
    return "".join(f"{visible(line)}\n" for line in lines)


def _make_files(folder: Path, done: Sequence[MigrationOutput]) -> dict[Path, str]:
    """Return the files to write; jobs of the same name share a file."""
    files: dict[Path, str] = {}
    for each in done:
        below, _, name = each.name.rpartition("/")
        path = folder / below / f"{to_spec_name(name)}.yaml"
        files[path] = f"{files[path]}---\n{each.text}" if path in files else each.text
    return files
