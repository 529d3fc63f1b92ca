"""`jobgen new`: write a job to start from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import click

from jobgen.api.project import load, select_environments
from jobgen.cli.complete import complete_folders
from jobgen.cli.job_drafts import (
    Surroundings,
    Variant,
    choose_draft,
    explain_unserved,
    is_served,
    list_variants,
    look_around,
)
from jobgen.cli.options import force_option
from jobgen.cli.replaced_objects import refuse_losses
from jobgen.cli.result import ExitCode, Result, error_result, write_new_files
from jobgen.cli.starter import PLATFORM_NAMES, suit_job
from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import list_alternatives
from jobgen.rendering.build import is_spec
from jobgen.rendering.expand import Expander
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Tracer
from jobgen.repo import layout
from jobgen.repo.layout import list_starter_frameworks
from jobgen.reports.entries import format_findings
from jobgen.yamlio.commented import edit_text, to_scalar

_NAME = lazy_pattern(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")
_LONGEST = 63


@click.command("new")
@click.argument("name", metavar="[FOLDER/]NAME", shell_complete=complete_folders)
@click.option("--framework", type=click.Choice(list_starter_frameworks()), help="The framework; default: pytorch.")
@click.option("--platform", type=click.Choice(PLATFORM_NAMES), help="The platform, where the clusters have several.")
@click.option("--gpus", type=click.IntRange(0, 1024), metavar="N", help="GPUs for each pod that uses GPUs.")
@force_option
@click.pass_obj
def command(
    directory: Path, name: str, framework: str | None, platform: str | None, gpus: int | None, force: bool
) -> Result:
    """Write a new job, and check it.

    The job is for the platform of this repository, and is checked in every environment.

    The file is jobs/[FOLDER/]NAME.yaml. Change its image, command and resources.
    """
    project = load(directory)
    # Before anything is written: settings with errors end the command.
    environments = select_environments(project.config, ())
    path = PurePosixPath("jobs", f"{name.removeprefix('jobs/')}.yaml")
    if not name or not all(_NAME.match(part) for part in name.split("/")):
        return error_result(ExitCode.USAGE, _describe_name(name))
    tracer = Tracer(project.config)
    expanders = [tracer.expander(environment) for environment in environments]
    served = _list_served(platform or "", expanders)
    chosen = framework or ("pytorch" if "pytorch" in served else next(iter(served), "pytorch"))
    if chosen not in served:
        advice = explain_unserved(chosen, platform or "", tracer.traced_project(), expanders)
        return _refuse(chosen, platform or "", served, advice)
    read = read_jobs(layout.find_jobs(project.root), project.config.kinds, [])
    jobs = [job for job in read if is_spec(job.document.data)]
    known = {job.document.name: job.file.path for job in jobs}
    if known.get(path.stem, str(path)) != str(path):
        return error_result(ExitCode.USAGE, f"{known[path.stem]} has a job `{path.stem}`; use another name")
    if os.path.lexists(project.root / path) and not force:
        # The same answer as that of writing, before the repository is linted with each draft.
        return write_new_files({project.root / path: ""}, project.root, force=False) or Result(ExitCode.OK)
    around = look_around(jobs, path, expanders)

    texts = (_write_job(path, chosen, variant, around, gpus) for variant in served[chosen])
    draft = choose_draft(project, path, texts, around)
    files = {project.root / path: draft.text}
    failure = refuse_losses(files, project.root) or write_new_files(files, project.root, force=force)
    if failure:
        return failure
    code = ExitCode.ERRORS if draft.rank[0] else ExitCode.OK
    shown = [each for each in draft.findings if each.severity is not Severity.INFO or each.location.file == str(path)]
    return Result(code, err=f"{path} written\n{format_findings(shown)}")


def _describe_name(name: str) -> str:
    """Say why a job cannot be called so: by the ending of its file, or with characters that no name has."""
    # Imported late: most names are right.
    from jobgen.schema.right_forms import write_as_name

    stem = name.removesuffix(".yaml").removesuffix(".yml")
    meant = "/".join(write_as_name(part).replace(".", "-")[:_LONGEST] for part in stem.split("/"))
    hint = f", such as `{meant}`" if all(_NAME.match(part) for part in meant.split("/")) else ""
    if stem != name and hint:
        return f"`{name}` is the name of a file; write the name of the job: `{meant}`"
    return f"`{name}` is not the name of a job; use at most {_LONGEST} lower-case letters, digits and `-`{hint}"


def _write_job(path: PurePosixPath, framework: str, variant: Variant, around: Surroundings, gpus: int | None) -> str:
    """Return the example of a framework as a job of this repository."""

    def change(job: Any) -> None:
        metadata = job["metadata"]
        metadata["name"] = to_scalar(path.stem)
        if around.labels is not None:
            metadata["labels"].clear()
            metadata["labels"].update(around.labels)
        if not metadata["labels"]:
            del metadata["labels"]
        if variant.platform:
            job["spec"].insert(1, "platform", variant.platform)
        if gpus is not None:
            _set_gpus(job["spec"], gpus)

    text = edit_text(suit_job(framework, variant.example), change)
    return text.replace("$schema=../schemas", f"$schema={'../' * (len(path.parts) - 1)}schemas", 1)


def _list_served(platform: str, expanders: Sequence[Expander]) -> dict[str, list[Variant]]:
    """Return the frameworks that all environments run and that have an example, with the ways to write them."""
    found: dict[str, list[Variant]] = {}
    for framework in list_starter_frameworks():
        listed = all(platform in each.environment.cluster.list_platforms() for each in expanders if platform)
        if listed and all(is_served(framework, platform, each) for each in expanders):
            found[framework] = list_variants(framework, platform, expanders)
    return found


def _refuse(framework: str, platform: str, served: Iterable[str], advice: str) -> Result:
    """Return an error about a framework that clusters do not run."""
    listed = list_alternatives(f"`{each}`" for each in served)
    where = f" on platform `{platform}`" if platform else ""
    ways = ", or ".join(filter(None, (f"use {listed}" if listed else "", advice)))
    return error_result(ExitCode.USAGE, f"the clusters of this repository do not run `{framework}`{where}; {ways}")


def _set_gpus(spec: Any, gpus: int) -> None:
    """Set the GPUs of all pods that have any; without GPUs, shared memory is not needed."""
    for block in (spec, *spec.get("roles", {}).values()):
        resources = block.get("resources", {})
        if "gpu" in resources and gpus:
            resources["gpu"] = gpus
        elif "gpu" in resources:
            del resources["gpu"]
            block.pop("shm", None)
        command = block.get("command", [])
        if gpus and "mpirun" in command and "-N" in command:
            command[command.index("-N") + 1] = str(gpus)
    if gpus and "torchrunConfig" in spec.get("pytorch", {}):
        spec["pytorch"]["torchrunConfig"]["procPerNode"] = str(gpus)
    if gpus and "slotsPerWorker" in spec.get("mpi", {}):
        spec["mpi"]["slotsPerWorker"] = gpus
