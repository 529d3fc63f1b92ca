"""`jobgen fn`: a KRM function for kustomize and kpt that generates, transforms or validates objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from jobgen.api.render import list_findings, matcher, sort_objects
from jobgen.cli.result import ExitCode, Result, error_result, read_stdin
from jobgen.features.gitops import krm
from jobgen.model.finding import Finding, Identity, Severity, add_failures
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.placed import place_problems
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.pipeline.finish import Finishing, finish
from jobgen.pipeline.placed_findings import locate_placed
from jobgen.pipeline.policies import load_policies
from jobgen.rendering import config
from jobgen.rendering.build import identity_of, is_spec
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, new_overlay_use
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact_results import redact_shared
from jobgen.rendering.render_task import RenderTask, render_jobs
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.repo.root import find_root
from jobgen.reports.entries import count_severities, format_findings, pluralize
from jobgen.reports.suppress import Suppression
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml


class FunctionOutput(NamedTuple):
    """The items and findings of a function, and the files that items were read from."""

    items: list[Any]
    findings: list[Finding]
    files: Mapping[str, int] = MappingProxyType({})
    empty: bool = False
    """True if there was nothing to generate."""
    texts: Sequence[File] = ()
    """What the items were read from."""


class FunctionInput(NamedTuple):
    """The input of a function: the list, the task, the working folder, and the repository."""

    resources: krm.ResourceList
    task: krm.FunctionTask
    folder: Path
    project: ProjectConfig


@click.command("fn")
@click.argument("mode", required=False, type=click.Choice(["generate", "transform", "validate"]))
@click.pass_obj
def command(directory: Path, mode: str | None) -> Result:
    """Run as a KRM function (stdin to stdout).

    The input and output are a ResourceList. Its functionConfig (JobGenerator, JobTransformer, JobValidator) or MODE
    selects what to do.
    """
    return run(directory, mode or "", read_stdin())


def run(folder: Path, mode: str, stdin: bytes) -> Result:
    """Read a ResourceList, run the function, and return the list with its results."""
    try:
        given = krm.parse_resource_list(stdin)
        task = krm.parse_task(given.config, mode)
        output = _run_task(given, task, folder.resolve())
    except krm.FunctionError as error:
        return error_result(ExitCode.USAGE, str(error))
    out = given.to_yaml(output.items, krm.to_results(output.findings, output.files))
    failed = any(finding.severity is Severity.ERROR for finding in output.findings)
    if output.empty:
        return error_result(ExitCode.NOTHING_TO_DO, "there is no job to generate")
    # kustomize does not show the results, so they are printed, too.
    findings = format_findings(output.findings)
    if findings:
        findings += f"jobgen: {count_severities(output.findings)} in {pluralize(len(given.items), 'item')}\n"
    return Result(ExitCode.ERRORS if failed else ExitCode.OK, out, findings)


def _run_task(given: krm.ResourceList, task: krm.FunctionTask, folder: Path) -> FunctionOutput:
    root = find_root(folder)
    if root is None and task.mode != "validate":
        raise krm.FunctionError("no jobs repository: there is no jobgen.yaml here or above, and no jobs/ here")
    project = config.load_own(root or folder)
    if any(finding.severity is Severity.ERROR for finding in project.findings):
        return FunctionOutput(given.items, redact_shared(project, config.load(project.layers, traced=True).findings))
    task = task._replace(env=_select_environment(project, task))
    output = _TASKS[task.mode](FunctionInput(given, task, folder, project))
    # Findings are printed and stored; a run has redacted its own.
    return output._replace(findings=redact_shared(project, output.findings, output.texts))


def _select_environment(project: ProjectConfig, task: krm.FunctionTask) -> str:
    """Return the environment; validation does not need one."""
    known = sorted(project.overlays)
    if task.env and task.env not in known:
        hint = did_you_mean(task.env, known)
        raise krm.FunctionError(f"there is no environment `{task.env}`{hint} (known: {', '.join(known) or 'none'})")
    default = project.environments()
    if task.env or len(default) == 1:
        return task.env or default[0]
    if task.mode == "validate":
        return ""
    raise krm.FunctionError(f"set `env` to one environment (known: {', '.join(known)})")


def _generate(work: FunctionInput) -> FunctionOutput:
    """Append the jobs of the repository to the items; a job that is among them already is replaced in place."""
    task = work.task
    result = render_jobs(work.project, [task.env], matcher(task.jobs), RenderTask(deployable=True))
    made: dict[Identity, Any] = {one.identity: one.object for one in sort_objects(result)}
    findings = list_findings(result)
    if any(finding.severity is Severity.ERROR for finding in findings):
        return FunctionOutput(work.resources.items, findings)
    if not made:
        return FunctionOutput(work.resources.items, [], empty=True)
    items = [_update_item(item, made.pop(identity_of(item), None)) for item in work.resources.items]
    return FunctionOutput([*items, *made.values()], findings)


def _update_item(item: Any, made: Any) -> Any:
    """Return an item with new content and the tracking annotations of the orchestrator."""
    if made is None:
        return item
    plain = krm.without_tracking(item)
    tracking = {key: value for key, value in krm.get_annotations(item).items() if key not in krm.get_annotations(plain)}
    if not tracking:
        return made
    metadata = made["metadata"]
    return {**made, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **tracking}}}


def _transform(work: FunctionInput) -> FunctionOutput:
    """Apply the overlays of the environment to every item; specs are replaced by their objects."""
    runner, tracer = EnvironmentRunner(work.project, work.task.env), Tracer(work.project)
    findings = runner.overlay_findings(tracer)
    items: list[Any] = []
    texts: list[File] = []
    for item, entry in _entries(work, {}):
        texts += [read_file(entry)] if entry else []
        made, companions = item, list[Any]()
        for job in read_jobs([entry] if entry else [], work.project.kinds, findings):
            patches = runner.patches_for(job)
            if patches is not None:
                rendered = runner.build_objects(job, patches, new_overlay_use())
                findings += [] if rendered else tracer.findings(job, runner.name)
                made = _keep_name(item, rendered[0].object) if rendered else item
                companions += (companion.object for companion in rendered[1:])
        items += (made, *companions)
    failed = any(finding.severity is Severity.ERROR for finding in findings)
    return FunctionOutput(work.resources.items if failed else items, findings, texts=texts)


def _keep_name(item: Any, made: Any) -> Any:
    """Return the transformed item; its name must not change, because orchestrators identify objects by name."""
    if is_spec(item):
        return made
    before, after = identity_of(item), identity_of(made)
    if not before.namespace and after.namespace:
        # The namespace of the environment is a default; the kustomization sets it.
        metadata = {key: value for key, value in made["metadata"].items() if key != "namespace"}
        made, after = {**made, "metadata": metadata}, after._replace(namespace="")
    if before != after:
        raise krm.FunctionError(f"an overlay renames `{before}` to `{after}`; a function must not rename objects")
    return made


def _validate(work: FunctionInput) -> FunctionOutput:
    policies = load_policies(work.project.layers)
    checker = EnvironmentChecker(EnvironmentRunner(work.project, work.task.env), lambda: policies.policies)
    tracer = Tracer(work.project)
    findings = [*policies.findings, *checker.runner.overlay_findings(tracer)]
    comments: list[Suppression] = []
    files: dict[str, int] = {}
    texts: list[File] = []
    for _, entry in _entries(work, files):
        texts += [read_file(entry)] if entry else []
        for job in read_jobs([entry] if entry else [], work.project.kinds, findings, comments):
            findings += _check_job(job, checker, tracer)
    # A kustomization also contains kinds that jobgen does not check, such as Deployments.
    findings = [finding for finding in findings if finding.rule != "missing-schema"]
    contents = {file.path: file.content.decode("utf-8", "replace") for file in texts}
    context = Finishing(
        work.project.mandatory,
        work.project.severities,
        lambda finding: work.project.teams.find_name(finding.location.file),
        comments=comments,
        read_text=lambda path: contents.get(path, ""),
    )
    return FunctionOutput(work.resources.items, finish(findings, context), files, texts=texts)


def _check_job(job: Job, checker: EnvironmentChecker, tracer: Tracer) -> list[Finding]:
    """Check an item as it is, or for a spec, the object that the environment renders."""
    runner = checker.runner
    if not is_spec(job.document.data):
        return _check_object(job.document.data, job, "", checker, tracer)
    patches = runner.patches_for(job)
    if patches is None:
        return []
    built = runner.build_objects(job, patches, new_overlay_use())
    if not built:
        return tracer.findings(job, runner.name)
    return _check_object(built[0].object, job, runner.name, checker, tracer)


def _check_object(
    obj: Mapping[str, Any], job: Job, env: str, checker: EnvironmentChecker, tracer: Tracer
) -> list[Finding]:
    mutated = checker.mutate(obj)
    problems = add_failures(place_problems(mutated.failures, mutated.object), checker.checker(mutated.object))
    return locate_placed(problems, mutated.object, tracer, job, env, mutate=checker.mutate)


def _entries(work: FunctionInput, files: dict[str, int]) -> Iterator[tuple[Any, FileEntry | None]]:
    """Yield every item with its text: its file if that still has the same data, else the item as YAML."""
    for item in work.resources.items:
        if krm.is_local(item):
            yield item, None
            continue
        path, index = krm.source_file(item)
        content = _read_document(work.folder, path, index, item) if path and work.task.mode == "validate" else b""
        if content:
            files[path] = index
        name = path if content else str(identity_of(item))
        yield item, FileEntry(name, content=content or to_yaml(item).encode())


def _read_document(folder: Path, path: str, index: int, item: Any) -> bytes:
    """Return the document of an item with all other lines of the file empty; empty if its data differs."""
    full = os.path.realpath(folder / path)
    if not Path(full).is_relative_to(folder) or not os.path.isfile(full):
        return b""
    file = read_file(FileEntry(path, full))
    documents = read(file.content, path).documents
    if index >= len(documents) or documents[index].data != krm.without_tracking(item):
        return b""
    starts = [document.location.line - 1 for document in documents]
    end = starts[index + 1] if index + 1 < len(starts) else len(file.content)
    lines = file.content.splitlines(keepends=True)
    return b"".join(line if starts[index] <= number < end else b"\n" for number, line in enumerate(lines))


_TASKS: dict[str, Callable[[FunctionInput], FunctionOutput]] = {
    "generate": _generate,
    "transform": _transform,
    "validate": _validate,
}
