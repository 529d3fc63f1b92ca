"""The command of a RayJob: a text that a shell runs once, for all pods."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from jobgen.k8s.shell.commands import split_words
from jobgen.model.data import Plain
from jobgen.spec.replicas import get_at

_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


def to_shell_command(words: Sequence[str]) -> list[str]:
    """Return the command in which a shell expands the variables; Kubernetes does so in containers only."""
    if not any(_VARIABLE.search(word) for word in words):
        return list(words)
    return ["sh", "-c", " ".join(map(_quote, words))]


def _quote(word: str) -> str:
    """A word for a shell, with `$(A)` as `$A`."""
    parts = _VARIABLE.split(word)
    quoted = [f'"${{{part}}}"' if index % 2 else shlex.quote(part) for index, part in enumerate(parts) if part]
    return "".join(quoted) or "''"


def read_entrypoint(obj: Mapping[str, Plain]) -> list[str]:
    """Return the words of the command of a RayJob, or a shell that runs it."""
    text = get_at(obj, ("spec", "entrypoint"))
    if not isinstance(text, str) or not text:
        return []
    words = split_words(text)
    return [*words] if shlex.join(words) == text else ["sh", "-c", text]
