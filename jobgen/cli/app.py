"""The command line as users write it: reads arguments and calls a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jobgen import __version__, cache
from jobgen.cli.app_convert import import_command, migrate_command
from jobgen.cli.app_entry_points import cmp_group, env_option, fn_command, gitops, init_command, root_of, today_option
from jobgen.cli.commands import ExitCode, Result, error_result
from jobgen.cli.terminal import Progress, run_lint
from jobgen.diff.formats import format_names as diff_formats

_FORMATS = ["text", "concise", "json", "sarif", "junit", "github", "gitlab", "tap", "auto"]


def _forget(_: click.Context, __: click.Parameter, asked: bool) -> None:
    if asked:
        cache.disable()


_no_cache = click.option(
    "--no-cache", is_flag=True, expose_value=False, callback=_forget, help="Work everything out anew."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "--directory", default=".", metavar="DIR", help="Work in this folder.")
@click.option("--no-cache", is_flag=True, help="Work everything out anew.")
@click.option("--traceback", is_flag=True, help="Show the traceback of an internal fault.")
@click.version_option(__version__, prog_name="jobgen")
@click.pass_context
def cli(context: click.Context, directory: str, no_cache: bool, traceback: bool) -> None:
    """Training jobs written once, layered by overlays, spelt for their operator."""
    if not no_cache:
        cache.enable(cache.find_default_folder(), cache.installation_fingerprint())
    # main looks for --traceback itself: a fault may come before arguments are read.
    context.obj = Path(directory)


@cli.command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@env_option
@click.option("-o", "--output", metavar="DIR", help="Write a tree: DIR/<env>/<namespace>/<kind>-<name>.yaml.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the tree is not up to date.")
@click.option("--allow-empty", is_flag=True, help="An environment without any object is meant.")
@click.option("--allow-mass-delete", is_flag=True, help="Deleting most files of an environment is meant.")
@_no_cache
@today_option
@click.option("--format", "format_", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@click.pass_obj
def render(
    directory: Path, /, jobs: tuple[str, ...], envs: tuple[str, ...], output: str | None, **options: Any
) -> Result:
    """Print the manifests of jobs, or write them as a tree.

    JOB is a name or a shell pattern; without it, all jobs are rendered.
    """
    from jobgen.cli.commands.render import render as run

    folder = directory / output if output else None
    progress = Progress()
    result = run(root_of(directory), jobs, envs, folder, progress=progress, **options)
    progress.clear()
    return result


@cli.command()
@click.argument("revisions", default="", metavar="[BASE[..HEAD]]")
@env_option
@click.option("--format", "format_", type=click.Choice(diff_formats()), default="text", show_default=True)
@click.option("--folders", nargs=2, metavar="OLD NEW", help="Compare two folders instead of revisions.")
@click.option("--exit-code", is_flag=True, help="Exit 1 if anything changes.")
@_no_cache
@today_option
@click.pass_obj
def diff(
    directory: Path, /, revisions: str, envs: tuple[str, ...], folders: tuple[str, str] | None, **options: Any
) -> Result:
    """Say what a merge does: which jobs start, stop, restart or ignore it, and how many GPUs that is.

    BASE alone is compared with the work tree, BASE..HEAD are two commits, and BASE...HEAD begins where they parted.
    Without BASE, it is the commit where this branch left the default branch. A folder may be a jobs repository, a
    rendered tree, or hold manifests.
    """
    from jobgen.cli.commands.diff import diff_folders, diff_revisions

    if folders and revisions:
        raise click.UsageError("`--folders` takes the place of revisions; give one of them")
    if folders:
        return diff_folders(directory, folders, envs, **options)
    return diff_revisions(directory, revisions, envs, **options)


@cli.command()
@click.argument("name", metavar="JOB|RULE")
@click.argument("field", default="")
@env_option
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@today_option
@click.pass_obj
def explain(directory: Path, name: str, field: str, envs: tuple[str, ...], format_: str, today: str) -> Result:
    """Say who set the values of a job, or what a rule means.

    Of a JOB: file, line and layer, the last word first. FIELD is a dotted path or a JSON pointer into the rendered
    object; without it, every value is explained.

    Of a RULE or a policy: what it finds and why, with a bad and a good example. A job of the same name comes first.
    """
    from jobgen.cli.commands.explain import explain_name
    from jobgen.repo.layout import find_root

    nowhere = not field and directory.is_dir() and find_root(directory.resolve()) is None
    return explain_name(None if nowhere else root_of(directory), name, field, envs, format_, today)


@cli.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@env_option
@click.option("--format", "format_", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("--since", default="", metavar="REV", help="Only what is new since a Git revision.")
@click.option("--fix", "fix", flag_value="safe", help="Mend what can be mended without changing what was meant.")
@click.option("--fix-unsafe", "fix", flag_value="unsafe", help="Mend more, for you to look at.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and write nothing.")
@click.option("--baseline", "known", default="", metavar="FILE", help="Only what this file does not know.")
@click.option("--write-baseline", is_flag=True, help="Write all that is found into the baseline.")
@click.option("--statistics", is_flag=True, help="Count what each rule found.")
@click.option("--show-suppressed", is_flag=True, help="Show what comments and the baseline silence, too.")
@click.option("--kubeconform", "second_opinion", is_flag=True, help="Ask kubeconform too; report disagreements.")
@_no_cache
@today_option
@click.pass_obj
def lint(directory: Path, /, paths: tuple[str, ...], envs: tuple[str, ...], format_: str, **options: Any) -> Result:
    """Say what the cluster would refuse: in jobs, overlays, rendered objects and raw manifests.

    PATH is a file or folder, of this repository or any other; `-` reads standard input. Without it, the whole
    repository is judged.
    """
    options["fix"] = options["fix"] or ""
    return run_lint(directory, paths, envs, format_, **options)


@cli.group()
def schema() -> None:
    """The schemas that objects are checked against."""


@schema.command("build")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a schema is not up to date.")
@click.pass_obj
def schema_build(directory: Path, check: bool) -> Result:
    """Write the schema of every kind that this repository describes."""
    from jobgen.cli.commands.schema import build

    return build(root_of(directory), check=check)


@schema.command("import")
@click.argument("crds", nargs=-1, required=True, metavar="CRD...")
@click.pass_obj
def schema_import(directory: Path, crds: tuple[str, ...]) -> Result:
    """Take the schemas of CustomResourceDefinitions into this repository."""
    from jobgen.cli.commands.schema import import_crds

    return import_crds(root_of(directory), [directory / crd for crd in crds])


@schema.command("editor")
@click.pass_obj
def schema_editor(directory: Path) -> Result:
    """Write the schemas of jobs and overlays, and settings for completion in editors."""
    from jobgen.cli.commands.schema import write_editor_files

    return write_editor_files(root_of(directory))


@schema.command("list")
@click.pass_obj
def schema_list(directory: Path) -> Result:
    """List the kinds that are known."""
    from jobgen.cli.commands.schema import list_kinds
    from jobgen.pipeline import config

    return list_kinds(config.load(directory.resolve()))


@schema.command("print")
@click.argument("kind")
@click.pass_obj
def schema_print(directory: Path, kind: str) -> Result:
    """Print the JSON Schema of a kind."""
    from jobgen.cli.commands.schema import print_schema
    from jobgen.pipeline import config

    return print_schema(config.load(directory.resolve()), kind)


@cli.group()
def policy() -> None:
    """The policies that objects must pass."""


@policy.command("test")
@click.argument("folder", required=False, metavar="[DIR]")
@click.pass_obj
def policy_test(directory: Path, folder: str | None) -> Result:
    """Run the cases of the policies: those under policies/tests/, or under DIR."""
    from jobgen.cli.commands.policy import run_cases

    return run_cases(root_of(directory), directory, folder)


@policy.command("list")
@click.pass_obj
def policy_list(directory: Path) -> Result:
    """List the policies, what they do and whom they concern."""
    from jobgen.cli.commands.policy import list_policies

    return list_policies(root_of(directory))


for _door in (gitops, cmp_group, fn_command, init_command, import_command, migrate_command):
    cli.add_command(_door)


def answer(words: list[str]) -> Result | int:
    """What the command says to its arguments; help and version are printed at once, and come back as an exit code."""
    try:
        result: Result | int = cli.main(words, prog_name="jobgen", standalone_mode=False)
    except click.UsageError as wrong:
        return _misused(wrong)
    except click.Abort:
        return 130
    return result


def _misused(wrong: click.UsageError) -> Result:
    """Wrong usage in one line; without any arguments, the help is the answer."""
    message = wrong.format_message()
    if message.startswith("Usage:"):
        return Result(ExitCode.USAGE, err=f"{message}\n")
    return error_result(ExitCode.USAGE, f"{message[:1].lower()}{message[1:].rstrip('.')}")
