"""`jobgen completion`: print the script that completes command lines in a shell."""

from __future__ import annotations

import click

from jobgen.cli.complete import SCRIPTS, SHELLS
from jobgen.cli.result import ExitCode, Result


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> Result:
    """Print the completion script of a shell.

    To turn it on, write `source <(jobgen completion bash)` in ~/.bashrc, `source <(jobgen completion zsh)` in ~/.zshrc,
    or `jobgen completion fish | source` in ~/.config/fish/config.fish. See docs/commands.md.
    """
    return Result(ExitCode.OK, (SCRIPTS / f"jobgen.{shell}").read_text("utf-8"))
