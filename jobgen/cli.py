"""The command line: reads arguments, calls a command, prints and exits; no other module does."""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path

import click

from jobgen import __version__
from jobgen.commands import Code, Result, stopped

_env = click.option("-e", "--env", "envs", multiple=True, metavar="ENV", help="Environment; may be repeated.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "--directory", default=".", metavar="DIR", help="Work in this folder.")
@click.option("--traceback", is_flag=True, help="Show the traceback of an internal fault.")
@click.version_option(__version__, prog_name="jobgen")
@click.pass_context
def cli(context: click.Context, directory: str, traceback: bool) -> None:
    """Training jobs written once, layered by overlays, spelt for their operator."""
    # main looks for --traceback itself: a fault may come before arguments are read.
    context.obj = Path(directory)


@cli.command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@_env
@click.option("-o", "--output", metavar="DIR", help="Write a tree: DIR/<env>/<namespace>/<kind>-<name>.yaml.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the tree is not up to date.")
@click.option("--format", "format_", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@click.pass_obj
def render(
    directory: Path, jobs: tuple[str, ...], envs: tuple[str, ...], output: str | None, check: bool, format_: str
) -> Result:
    """Print the manifests of jobs, or write them as a tree.

    JOB is a name or a shell pattern; without it, all jobs are rendered.
    """
    from jobgen.commands.render import render as run

    folder = directory / output if output else None
    progress = _Progress()
    result = run(_root(directory), jobs, envs, folder, check=check, format_=format_, progress=progress)
    progress.clear()
    return result


@cli.command()
@click.argument("job")
@click.argument("field", default="")
@_env
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def explain(directory: Path, job: str, field: str, envs: tuple[str, ...], format_: str) -> Result:
    """Say who set the values of a job: file, line and layer, the last word first.

    FIELD is a dotted path or a JSON pointer into the rendered object; without it, every value is explained.
    """
    from jobgen.commands.explain import explain_job

    return explain_job(_root(directory), job, field, envs, format_)


@cli.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_env
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def lint(directory: Path, paths: tuple[str, ...], envs: tuple[str, ...], format_: str) -> Result:
    """Say what the cluster would refuse: in jobs, overlays, rendered objects and raw manifests.

    PATH is a file or folder, of this repository or any other; `-` reads standard input. Without it, the whole
    repository is judged.
    """
    from jobgen.commands.lint import lint_paths

    stdin = sys.stdin.buffer.read() if "-" in paths else None
    return lint_paths(directory, paths, envs, format_=format_, stdin=stdin)


@cli.group()
def schema() -> None:
    """The schemas that objects are checked against."""


@schema.command("build")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a schema is not up to date.")
@click.pass_obj
def schema_build(directory: Path, check: bool) -> Result:
    """Write the schema of every kind that this repository describes."""
    from jobgen.commands.schema import build

    return build(_root(directory), check=check)


@schema.command("import")
@click.argument("crds", nargs=-1, required=True, metavar="CRD...")
@click.pass_obj
def schema_import(directory: Path, crds: tuple[str, ...]) -> Result:
    """Take the schemas of CustomResourceDefinitions into this repository."""
    from jobgen.commands.schema import import_crds

    return import_crds(_root(directory), [directory / crd for crd in crds])


@schema.command("editor")
@click.pass_obj
def schema_editor(directory: Path) -> Result:
    """Write the schemas of jobs and overlays, and settings for completion in editors."""
    from jobgen.commands.schema import write_editor_files

    return write_editor_files(_root(directory))


@schema.command("list")
@click.pass_obj
def schema_list(directory: Path) -> Result:
    """List the kinds that are known."""
    from jobgen import catalogue
    from jobgen.commands.schema import list_kinds

    return list_kinds(catalogue.load(directory.resolve()))


@schema.command("print")
@click.argument("kind")
@click.pass_obj
def schema_print(directory: Path, kind: str) -> Result:
    """Print the JSON Schema of a kind."""
    from jobgen import catalogue
    from jobgen.commands.schema import print_schema

    return print_schema(catalogue.load(directory.resolve()), kind)


def main() -> None:
    """Run the command line; an internal fault is one line and exit code 4."""
    # What a run makes has no cycles, and looking for them costs a tenth of its time.
    gc.disable()
    try:
        result = cli.main(prog_name="jobgen", standalone_mode=False)
        # Help and version have been printed already, and come back as an exit code.
        code = _finish(result) if isinstance(result, Result) else result
    except click.UsageError as wrong:
        code = _finish(_misused(wrong))
    except click.Abort:
        code = 130
    except Exception as fault:
        if "--traceback" in sys.argv:
            raise
        message = f"internal fault: {type(fault).__name__}: {fault} (see it whole with --traceback)"
        code = _finish(stopped(Code.BROKEN, message))
    raise SystemExit(code)


def _misused(wrong: click.UsageError) -> Result:
    """Wrong usage in one line; without any arguments, the help is the answer."""
    message = wrong.format_message()
    if message.startswith("Usage:"):
        return Result(Code.USAGE, err=f"{message}\n")
    return stopped(Code.USAGE, f"{message[:1].lower()}{message[1:].rstrip('.')}")


def _finish(result: Result) -> int:
    """Print a result, in UTF-8 whatever the terminal says: the same input gives the same bytes everywhere."""
    try:
        click.echo(result.err.encode("utf-8", "backslashreplace"), nl=False, err=True)
        click.echo(result.out.encode("utf-8", "surrogateescape"), nl=False)
    except OSError as error:
        # What is still buffered cannot be written either, and Python would complain while closing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if not isinstance(error, BrokenPipeError):
            click.echo(f"jobgen: the output cannot be written: {error.strerror}", err=True)
            return Code.BROKEN
    return int(result.code)


def _root(directory: Path) -> Path:
    from jobgen.repo import find_root

    if not directory.is_dir():
        raise click.UsageError(f"there is no folder `{directory}`")
    root = find_root(directory.resolve())
    if root is None:
        raise click.UsageError("no jobs repository: there is no jobgen.yaml here or above, and no jobs/ here")
    return root


class _Progress:
    """A bar on the terminal, once a second has passed."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.shown = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.started > 1 and now - self.shown > 0.1 and sys.stderr.isatty():
            self.shown = now
            filled = min(done * _BAR // max(total, 1), _BAR)
            bar = "█" * filled + "░" * (_BAR - filled)
            click.echo(f"\r{bar} {done} objects".encode(), nl=False, err=True)

    def clear(self) -> None:
        """Take the bar away again."""
        if self.shown:
            click.echo("\r\033[K", nl=False, err=True)


_BAR = 30
