"""Completion in the shell: whether the files that a shell reads at its start load it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from jobgen.cli.doctor import NOTE, Check
from jobgen.engine.inputs import read_start
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_LIMIT = 1_000_000
_LOADS = lazy_pattern(r"(?m)^[^#\n]*\bjobgen completion\b")
_WRITTEN = "printed by `jobgen completion"
_ZSH_FOLDERS = (
    ".zfunc",
    ".zsh",
    ".zsh/completion",
    ".zsh/completions",
    ".zsh/functions",
    ".oh-my-zsh/completions",
    ".oh-my-zsh/custom/completions",
    ".local/share/zsh/site-functions",
    "/usr/local/share/zsh/site-functions",
    "/opt/homebrew/share/zsh/site-functions",
    "/usr/share/zsh/site-functions",
    "/usr/share/zsh/vendor-completions",
)
"""The folders that people usually add to `$fpath`, or that are in it. Only the shell itself knows `$fpath`."""


class _Shell(NamedTuple):
    starts: tuple[str, ...]
    """Files that the shell runs at its start, below the home folder."""
    scripts: tuple[str, ...]
    """Files that may be the script itself."""
    command: str
    """The command that turns the completion on."""


_SHELLS = {
    "bash": _Shell(
        (".bashrc", ".bash_profile", ".profile"),
        (".local/share/bash-completion/completions/jobgen", "/usr/share/bash-completion/completions/jobgen"),
        "echo 'source <(jobgen completion bash)' >> ~/.bashrc",
    ),
    "zsh": _Shell(
        (".zshrc", ".zshenv", ".zprofile"),
        tuple(f"{folder}/_jobgen" for folder in _ZSH_FOLDERS),
        "echo 'source <(jobgen completion zsh)' >> ~/.zshrc",
    ),
    "fish": _Shell(
        (".config/fish/config.fish",),
        (".config/fish/completions/jobgen.fish",),
        "mkdir -p ~/.config/fish && echo 'jobgen completion fish | source' >> ~/.config/fish/config.fish",
    ),
}


def check_completion(environ: Mapping[str, str]) -> Check:
    """Whether the files that the shell of this user reads at its start load the completion."""
    name = os.path.basename(environ.get("SHELL", ""))
    facts = {"shell": name, "file": ""}
    if name not in _SHELLS:
        return Check("completion", f"none for the shell {name}" if name else "the shell is unknown", facts=facts)
    shell = _SHELLS[name]
    home = environ.get("HOME", "")
    for file in shell.starts:
        if _LOADS.search(_read(home, file)):
            return Check("completion", f"{name}, loaded by ~/{file}", facts={**facts, "file": f"~/{file}"})
    for file in shell.scripts:
        if _WRITTEN in _read(home, file):
            path = file if os.path.isabs(file) else f"~/{file}"
            condition = ", if its folder is in $fpath" if name == "zsh" else ""
            return Check("completion", f"{name}, loaded by {path}{condition}", facts={**facts, "file": path})
    found = f"not set up for {name}"
    if name == "zsh":
        found = "not found for zsh, neither in ~/.zshrc nor in the usual folders of $fpath; another folder may have it"
    return Check("completion", found, NOTE, shell.command, facts)


def _read(home: str, file: str) -> str:
    """The content of a file, which may be below the home folder; empty if there is none."""
    content = read_start(os.path.join(home, file), _LIMIT) if home or os.path.isabs(file) else b""
    return content.decode("utf-8", "replace")
