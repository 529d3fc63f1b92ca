"""Real shells on a terminal, as a user has them: keys go in, and what the shell understands comes back."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from jobgenprocess import install_jobgen

_READY = "ready>"
_STARTS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "--interactive"],
}
# `show` prints its words, each in brackets. In each shell, Alt-A inserts all candidates.
_SETUP = {
    "bash": r"""
PS1='{ready}'
show() {{ printf '<%s>' "$@"; printf '\n%s\n' shown; }}
bind 'set enable-bracketed-paste off' 'set bell-style none'
bind '"\ea": insert-completions'
source <(jobgen completion bash)
""",
    "zsh": r"""
PS1='{ready}' PROMPT_EOL_MARK=
unsetopt beep zle_bracketed_paste prompt_sp 2>/dev/null
show() {{ printf '<%s>' "$@"; printf '\n%s\n' shown }}
source <(jobgen completion zsh)
zle -C all-matches complete-word _generic
bindkey '\ea' all-matches
zstyle ':completion:all-matches::::' completer _all_matches _complete
zstyle ':completion:all-matches:*' insert true
zstyle ':completion:*' list-prompt ''
LISTMAX=1000000
""",
}


class Shell:
    """An interactive shell that has read the script of `jobgen completion`."""

    def __init__(self, name: str, folder: Path, programs: Path) -> None:
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed")
        install_jobgen(programs)
        self.name = name
        controller, terminal = pty.openpty()
        self.controller = controller
        self.process = subprocess.Popen(
            _STARTS[name],
            cwd=folder,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=make_environment(programs, folder),
            start_new_session=True,
        )
        os.close(terminal)
        script = programs / f"setup.{name}"
        script.write_text(_SETUP[name].format(ready=_READY))
        self.send(f" source {script}; echo set'' up\n")
        self.read_until(rf"set up\s+{_READY}")

    def send(self, text: str) -> None:
        os.write(self.controller, text.encode())

    def read_until(self, pattern: str, seconds: float = 300) -> str:
        """Return what the terminal shows up to a pattern."""
        shown, deadline = "", time.monotonic() + seconds
        while not re.search(pattern, shown):
            assert time.monotonic() < deadline, f"{self.name} does not show {pattern!r}: {shown!r}"
            if select.select([self.controller], (), (), 0.1)[0]:
                shown += os.read(self.controller, 65536).decode(errors="replace")
        return shown

    def complete(self, line: str, key: str = "\t") -> list[str]:
        """Type a line and a key; return the words of the line as the shell then understands them."""
        # Ctrl-A: the begin of the line.
        self.send(f"{line}{key}")
        self.send("\x01show \n")
        shown = self.read_until(r"\nshown\s+" + _READY)
        words = shown[: shown.rindex("\nshown")].rstrip().rpartition("\n")[2]
        return words[1:-1].split("><")

    def list_all(self, line: str) -> list[str]:
        """Return all candidates for the last word of a line."""
        last = len(line.split()) if line.endswith(" ") else len(line.split()) - 1
        return self.complete(line, "\x1ba")[last:]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.controller)


def make_environment(programs: Path, home: Path) -> dict[str, str]:
    """The variables of a user without settings of their own."""
    kept = {name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "LANG")}
    path = f"{programs}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "HOME": str(home), "TERM": "dumb", "LC_ALL": "C.UTF-8", "COLUMNS": "300"}
