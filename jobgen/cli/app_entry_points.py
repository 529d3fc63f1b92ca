"""Commands about other programs: Argo CD, Flux, kustomize and kpt; and the one that begins a repository."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import click

from jobgen.cli.commands import ExitCode, Result, error_result
from jobgen.repo.layout import list_starter_frameworks

env_option = click.option("-e", "--env", "envs", multiple=True, metavar="ENV", help="Environment; may be repeated.")


def _day(_: click.Context, __: click.Parameter, value: str) -> str:
    from jobgen.report.suppress import is_date

    if value and not is_date(value):
        raise click.UsageError(f"`{value}` is not a date like `2027-01-31`")
    return value


_TODAY = "The day by which jobs and suppressions expire; else the commit's."
today_option = click.option("--today", default="", metavar="DATE", callback=_day, help=_TODAY)


def root_of(directory: Path) -> Path:
    """The jobs repository that a folder belongs to."""
    from jobgen.repo.layout import find_root

    if not directory.is_dir():
        raise click.UsageError(f"there is no folder `{directory}`")
    root = find_root(directory.resolve())
    if root is None:
        raise click.UsageError("no jobs repository: there is no jobgen.yaml here or above, and no jobs/ here")
    return root


@click.group()
def gitops() -> None:
    """What Argo CD and Flux need to know about training jobs."""


@gitops.command("argocd")
@env_option
@click.option("--only", type=click.Choice(["health", "differences", "types", "appset", "paths"]), help="One part.")
@click.option("--repo", "repository", default="https://git.example.com/jobs.git", metavar="URL", show_default=True)
@click.option("--revision", default="main", metavar="REV", show_default=True)
@click.pass_obj
def gitops_argocd(directory: Path, envs: tuple[str, ...], only: str | None, repository: str, revision: str) -> Result:
    """Print settings for Argo CD, and an ApplicationSet over the rendered tree."""
    from jobgen.cli.commands.gitops import argocd

    return argocd(root_of(directory), envs, only, repository, revision)


@gitops.command("flux")
@env_option
@click.option("--source", default="jobs", metavar="NAME", show_default=True, help="The GitRepository to read.")
@click.option("--wait", default="", metavar="DURATION", help="Wait for the jobs to end, this long at most.")
@click.pass_obj
def gitops_flux(directory: Path, envs: tuple[str, ...], source: str, wait: str) -> Result:
    """Print a Kustomization of Flux for each environment of the rendered tree."""
    from jobgen.cli.commands.gitops import flux

    return flux(root_of(directory), envs, source, wait)


class _EndedError(Exception):
    """A signal said that it is over; its text says why."""


@click.group("cmp")
def cmp_group() -> None:
    """What Argo CD calls, as a config management plugin."""


@cmp_group.command("generate")
@click.pass_obj
def cmp_generate(directory: Path) -> Result:
    """Print the manifests of the Application that ARGOCD_* variables describe."""
    from jobgen.cli.commands.cmp import generate

    return _in_time(lambda: generate(directory, os.environ))


@cmp_group.command("parameters")
@click.pass_obj
def cmp_parameters(directory: Path) -> Result:
    """Print the parameters that an Application may have, as JSON."""
    from jobgen.cli.commands.cmp import parameters

    return _in_time(lambda: parameters(directory, os.environ))


@click.command("fn")
@click.argument("mode", required=False, type=click.Choice(["generate", "transform", "validate"]))
@click.pass_obj
def fn_command(directory: Path, mode: str | None) -> Result:
    """Be a KRM function: a ResourceList comes on standard input, and goes to standard output.

    What to do is said by the functionConfig (JobGenerator, JobTransformer, JobValidator), or in a word.
    """
    from jobgen.cli.commands.fn import run

    return run(directory, mode or "", sys.stdin.buffer.read())


@click.command("init")
@click.argument("folder", default=".", metavar="[DIR]")
@click.option(
    "--framework",
    "frameworks",
    multiple=True,
    type=click.Choice(list_starter_frameworks()),
    help="A job of it, to copy.",
)
@click.option(
    "--ci",
    type=click.Choice(["github", "gitlab", "none"]),
    default="github",
    show_default=True,
    help="Whose CI to set up.",
)
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.pass_obj
def init_command(directory: Path, folder: str, frameworks: tuple[str, ...], ci: str, force: bool) -> Result:
    """Begin a jobs repository that works at once."""
    from jobgen.cli.commands.init import init

    return init(directory / folder, frameworks, ci, force=force)


def _in_time(work: Callable[[], Result]) -> Result:
    """What `work` says; or that it took too long, or was told to end. Either way nothing is printed by halves."""
    from jobgen.gitops.cmp import read_deadline

    seconds = read_deadline(os.environ)

    def end(number: int, frame: FrameType | None) -> None:
        late = number == signal.SIGALRM
        if late and os.getpgrp() == os.getpid():
            # Children that we forked must not work on for nobody.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.killpg(0, signal.SIGTERM)
        raise _EndedError(f"not finished after {seconds:g} seconds" if late else "told to end")

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return work()
    except _EndedError as why:
        return error_result(ExitCode.INTERNAL_ERROR, f"{why}; nothing was generated")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
