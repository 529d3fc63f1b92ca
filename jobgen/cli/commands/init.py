"""`jobgen init`: create a jobs repository."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import click

from jobgen.cli.commands.schema import editor_files
from jobgen.cli.complete import complete_folders
from jobgen.cli.replaced_objects import refuse_losses
from jobgen.cli.result import ExitCode, Result, error_result, write_files
from jobgen.cli.starter import (
    CI,
    PLATFORMS,
    TREE_DECLARATION,
    Converted,
    list_supported,
    make_frame,
    make_skill,
    make_starter,
)
from jobgen.model.features import NO_FEATURE, find_part, has_part
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering import config
from jobgen.rendering.build import identity_of
from jobgen.repo import git
from jobgen.repo.atomic import advise, open_scratch
from jobgen.repo.layout import list_starter_frameworks
from jobgen.repo.root import explain_absence
from jobgen.repo.shipped import find_shipped
from jobgen.reports.entries import pluralize
from jobgen.reports.escape import visible
from jobgen.yamlio.commented import edit_text, to_scalar

HOOKS = ".pre-commit-config.yaml"
_WORKFLOW = ".github/workflows/jobgen.yaml"
_START = (
    "Start with `pip install",
    "`jobgen init` printed hooks for the top of the Git repository. With them, start with `pip install",
)
"""What the README says about hooks at the top, and below it."""


_CREDENTIALS = lazy_pattern(r"(?<=://)[^/@]*@")
_EXAMPLE_URL = "https://git.example.com/jobs.git"


class Choices(NamedTuple):
    """What a new repository is for."""

    frameworks: Sequence[str] = ()
    platform: str = ""
    gitops: str = ""
    ci: str = "github"
    source: str = ""
    """A folder of manifests to import."""
    skill: bool = False
    """True to write the files for assistants."""


@click.command("init")
@click.argument("folder", default=".", metavar="[DIR]", shell_complete=complete_folders)
@click.option(
    "--framework",
    "frameworks",
    multiple=True,
    type=click.Choice(list_starter_frameworks()),
    help="Add an example job for this framework.",
)
@click.option("--platform", type=click.Choice(list(PLATFORMS)), help="The platform of the cluster.")
@click.option(
    "--from",
    "source",
    default="",
    metavar="FOLDER",
    shell_complete=complete_folders,
    help="Import the manifests in this folder as jobs.",
)
@click.option("--gitops", type=click.Choice(["argocd", "flux"]), help="Also write the settings of this GitOps engine.")
@click.option("--ci", type=click.Choice(list(CI)), default="github", show_default=True, help="CI to set up.")
@click.option("--skill", is_flag=True, help="Also write a skill for AI assistants; alone, add it to a repository.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.pass_obj
def command(
    directory: Path,
    folder: str,
    frameworks: tuple[str, ...],
    platform: str | None,
    source: str,
    gitops: str | None,
    ci: str,
    skill: bool,
    force: bool,
) -> Result:
    """Create a jobs repository."""
    choices = Choices(frameworks, platform or "", gitops or "", ci, source, skill)
    return init(directory, directory / folder, choices, force=force)


_NEW = "; to add a job, run `jobgen new NAME --framework FRAMEWORK`"


def init(directory: Path, folder: Path, choices: Choices, *, force: bool) -> Result:
    """Write the files of a new repository, unless an existing file differs."""
    fault = _find_fault(directory, choices)
    if fault:
        return error_result(ExitCode.USAGE, fault)
    converted: Converted | None = None
    if choices.source:
        converted = find_part("init.import")(directory, choices.source, folder.resolve())
    if converted and converted.failure:
        return error_result(ExitCode.ERRORS, converted.failure, converted.notes)
    if converted and not converted.files:
        message = f"there is nothing to import in `{choices.source}`"
        return error_result(ExitCode.NOTHING_TO_DO, message, converted.notes)
    # The path from the top of the Git repository to the folder; None outside of one.
    prefix: tuple[str, ...] | None = None
    with suppress(git.GitError):
        home = _find_home(folder)
        prefix = (*PurePosixPath(git.find_prefix(home)).parts, *folder.resolve().relative_to(home).parts)
    wanted, at_top = _make_files(folder, choices, converted, prefix)
    try:
        conflicts = "".join(f"{visible(line)}\n" for line in _list_conflicts(folder, wanted, force=force))
        if conflicts:
            advice = "move them" if force else "move them, or overwrite them with --force"
            refused = error_result(ExitCode.ERRORS, f"nothing was written, because files exist; {advice}{_NEW}")
            return refused._replace(err=f"{refused.err}{conflicts}")
        stale = {
            path: content
            for path, content in wanted.items()
            if not (folder / path).exists() or (folder / path).read_bytes() != content
        }
    except OSError as error:
        message = f"{error.filename}: {error.strerror}; nothing was written{advise(error)}"
        return error_result(ExitCode.INTERNAL_ERROR, message)
    files = {folder / path: content.decode("utf-8", "surrogateescape") for path, content in stale.items()}
    kept = map(identity_of, converted.manifests) if converted else ()
    failure = refuse_losses(files, directory, kept) or write_files(files, folder)
    if failure:
        return failure
    notes = "".join(f"{path} written\n" for path in stale)
    notes += _describe_import(converted, directory, folder) if converted else ""
    if _EXAMPLE_URL.encode() in wanted.get("gitops/argocd.yaml", b""):
        notes += f"there is no remote `origin`: replace `{_EXAMPLE_URL}` in gitops/argocd.yaml before you apply it\n"
    notes += f"{_describe_top(prefix, at_top)}{pluralize(len(stale), 'file')}; next: "
    # The tree that the settings declare is a part of the repository.
    notes += "`jobgen render -o rendered`, `jobgen lint`" if choices.gitops else "`jobgen lint`"
    # Hooks need a Git repository, and those of a subfolder must be added to its top first.
    notes += ", `git init`" if prefix is None else ", add the hooks" if HOOKS in at_top else ""
    notes += ", `pre-commit install`"
    if choices.gitops:
        notes += f"; then apply gitops/{choices.gitops}.yaml to the cluster"
    code = ExitCode.ERRORS if converted and converted.left_out else ExitCode.OK
    texts = (f"# {path}, at the top of the Git repository\n{text}" for path, text in at_top.items())
    return Result(code, "---\n".join(texts), f"{notes}\n")


_MOST_NAMED = 3


def _describe_import(converted: Converted, directory: Path, folder: Path) -> str:
    """Return what there is to say about manifests that became jobs in a folder."""
    stay = [each for each in converted.origins if (directory / each).resolve().is_relative_to(folder.resolve())]
    return converted.notes + converted.name_secrets() + _describe_sources(stay) + converted.count_objects()


def _describe_sources(files: Sequence[str]) -> str:
    """Say that files in the new repository have the same objects as the jobs that were written."""
    if not files:
        return ""
    names = [f"`{each}`" for each in files[:_MOST_NAMED]]
    names += [f"{len(files) - _MOST_NAMED} others"] if len(files) > _MOST_NAMED else []
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    verb = "is not changed, and is a second copy" if len(files) == 1 else "are not changed, and are second copies"
    advice = "remove it" if len(files) == 1 else "remove them"
    return visible(f"{listed} {verb} of what is in jobs/ now; {advice} once you have compared both") + "\n"


def _describe_top(prefix: Sequence[str] | None, at_top: Mapping[str, str]) -> str:
    """Say that hooks and CI are not written, because they are read only at the top of the Git repository."""
    if not prefix or not at_top:
        return ""
    paths = " and ".join(f"`{'../' * len(prefix)}{path}`" for path in at_top)
    reason = f"{'/'.join(prefix)} is not the top of the Git repository, and hooks and CI are read only there"
    return visible(f"{reason}: standard output has what to add to {paths}, which jobgen does not change") + "\n"


def _list_conflicts(folder: Path, wanted: dict[str, bytes], *, force: bool) -> Iterator[str]:
    """Yield a line for each path that cannot be written; `force` allows overwriting files, and nothing else."""
    for path, content in wanted.items():
        full = folder / path
        parts = [folder / parent for parent in reversed(Path(path).parents) if parent != Path()]
        blocked = [part for part in parts if part.is_symlink() or (part.exists() and not part.is_dir())]
        if blocked:
            yield f"{blocked[0]}: is not a folder"
        elif full.is_symlink() or (full.exists() and not full.is_file()):
            yield f"{full}: is not a file"
        elif full.exists() and not force and full.read_bytes() != content:
            yield f"{full}: exists"


def _find_fault(directory: Path, choices: Choices) -> str:
    """Return why the choices cannot be combined; empty if they can."""
    if choices.source and not has_part("init.import"):
        return NO_FEATURE.format("convert")
    if choices.gitops and not has_part(f"init.{choices.gitops}"):
        return NO_FEATURE.format("gitops")
    if choices.source and (choices.frameworks or choices.platform):
        return "`--from` takes frameworks and platforms from the manifests; remove `--framework` and `--platform`"
    if choices.source and not (directory / choices.source).is_dir():
        return explain_absence(directory / choices.source, choices.source)
    if {"jax", "mxnet"} <= set(choices.frameworks):
        return "no training-operator has both `jax` and `mxnet`; choose one of them"
    if choices.platform:
        known = list_supported(choices.platform, config.load_own(find_shipped("starter")).kinds)
        # With MXNet, an older operator is declared, which runs it.
        older = ["mxnet"] if choices.platform == "kubeflow" else []
        unknown = [name for name in choices.frameworks if name not in (*known, *older)]
        if unknown:
            return f"`{choices.platform}` does not run `{unknown[0]}`; it runs {', '.join(known)}"
    return ""


def _make_files(
    folder: Path, choices: Choices, converted: Converted | None, prefix: tuple[str, ...] | None
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the files of the folder, and texts for the top of the Git repository if the folder is below it."""
    skill = make_skill() if choices.skill else {}
    if choices == Choices(skill=True) and (folder / "jobgen.yaml").exists():
        return {path: text.encode() for path, text in skill.items()}, {}
    gitops = choices.gitops or "argocd"
    if converted:
        envs = sorted({path.split("/")[1] for path in converted.files if path.startswith("overlays/")})
        settings: dict[str, Any] = {"cluster": {"gitops": gitops}} if choices.gitops else {}
        settings |= {"environments": envs} if envs else {}
        texts = {**make_frame(settings, choices.ci), **converted.files}
    else:
        default = PLATFORMS[choices.platform or "kubeflow"].framework
        frameworks = list(dict.fromkeys(choices.frameworks or [default]))
        texts = make_starter(frameworks, choices.platform, gitops, choices.ci)
    if choices.gitops:
        texts["jobgen.yaml"] += TREE_DECLARATION
        texts[f"gitops/{gitops}.yaml"] = _make_gitops(folder, gitops, texts, prefix or ())
    texts |= skill
    texts, at_top = split_files(texts, "/".join(prefix)) if prefix else (texts, {})
    ordered = {path: text.encode("utf-8", "surrogateescape") for path, text in sorted(texts.items())}
    return {**ordered, **editor_files(folder)}, at_top


def _find_home(folder: Path) -> Path:
    """Return the folder, which may not exist yet, or the nearest one above it."""
    full = folder.resolve()
    return next(path for path in (full, *full.parents) if path.is_dir())


def _make_gitops(folder: Path, engine: str, texts: dict[str, str], prefix: tuple[str, ...]) -> str:
    """Return what `jobgen gitops` prints for these files, which do not exist yet."""
    with open_scratch() as scratch:
        write_files({scratch / path: text for path, text in texts.items()}, scratch)
        print_settings = find_part(f"init.{engine}")
        if engine == "flux":
            result: Result = print_settings(scratch, (), "jobs", "", prefix)
        else:
            url = _CREDENTIALS.sub("", git.read_remote(_find_home(folder))) or _EXAMPLE_URL
            result = print_settings(scratch, (), None, url, "main", prefix)
        return result.out


def split_files(texts: Mapping[str, str], prefix: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files of the folder, and those for the top of the Git repository by their path there."""
    movers = {HOOKS: _move_hooks, _WORKFLOW: _move_workflow, ".gitlab-ci.yml": _move_pipeline}
    own = {path: text.replace(*_START) for path, text in texts.items() if path not in movers}
    names = {_WORKFLOW: f".github/workflows/jobgen-{_make_name(prefix)}.yaml"}
    moved = {
        names.get(path, path): edit_text(text, partial(movers[path], prefix=prefix))
        for path, text in texts.items()
        if path in movers
    }
    if HOOKS in moved:
        moved[HOOKS] = moved[HOOKS].replace("commit. They", "commit that adds or changes files in the folder.\n# They")
    return own, moved


def _make_name(prefix: str) -> str:
    """Return the folder as a part of the name of a file or of a job."""
    return re.sub(r"[^\w.]+", "-", prefix).strip("-.") or "jobs"


def _move_hooks(config: Any, prefix: str) -> None:
    """Run the hooks in the folder, at commits that change it."""
    folder = f"^{re.escape(prefix)}/"
    for hook in config["repos"][0]["hooks"]:
        hook["id"] += f"-{_make_name(prefix)}"
        hook["name"] = to_scalar(f"{hook['name']} in {prefix}")
        hook["entry"] = to_scalar(hook["entry"].replace("jobgen ", f"jobgen -C {shlex.quote(prefix)} ", 1))
        hook["files"] = to_scalar(folder + hook.get("files", "^").removeprefix("^"))
        # pre-commit does not name deleted files, so a commit that only deletes some does not run the hooks.
        hook.pop("always_run", None)
        # The comments after the last hook are about hooks for the whole repository.
        hook.ca.items.clear()


def _move_workflow(workflow: Any, prefix: str) -> None:
    """Run the steps in the folder, for changes in it."""
    workflow["name"] = to_scalar(f"jobgen {prefix}")
    workflow["on"]["pull_request"] = {"paths": [to_scalar(f"{prefix}/**")]}
    workflow["on"]["push"]["paths"] = [to_scalar(f"{prefix}/**")]
    job = workflow["jobs"]["lint"]
    job.insert(list(job).index("steps"), "defaults", {"run": {"working-directory": to_scalar(prefix)}})
    upload = job["steps"][-1]["with"]
    upload["path"] = to_scalar(f"{prefix}/{upload['path']}")


def _move_pipeline(pipeline: Any, prefix: str) -> None:
    """Run the job in the folder, for changes in it."""
    job = pipeline.pop("jobgen")
    pipeline[f"jobgen-{_make_name(prefix)}"] = job
    job["script"].insert(0, to_scalar(f"cd {shlex.quote(prefix)}"))
    artifacts = job["artifacts"]
    artifacts["paths"][0] = to_scalar(f"{prefix}/{artifacts['paths'][0]}")
    artifacts["reports"]["codequality"] = to_scalar(f"{prefix}/{artifacts['reports']['codequality']}")
    for rule in job["rules"]:
        rule["changes"] = [to_scalar(f"{prefix}/**/*")]
