"""Secrets in clear, and programs from elsewhere."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.k8s.secrets import find_assignments, find_token, is_secret_value, looks_like_secret, may_contain_secret
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern


@rule("container", ERROR, fields=("env", "args", "command"))
def plain_secret(container: Container) -> Iterator[Violation]:
    """A secret in plain text, in an environment variable or on the command line.

    Anyone who can read the repository, the job or its pods can read the secret, and Git keeps it after it is removed. A
    value that only looks like a secret is a warning.

    Revoke the secret, put a new one into a Secret, and refer to it with `secretKeyRef`: as the value of the variable in
    a job, and below `valueFrom` in a manifest.
    """
    if not may_contain_secret(container.search_text):
        return
    for name, entry in container.env:
        value = as_text(entry.get("value"))
        if value:
            yield from _check_variable(name, value, entry["value"])
    if may_contain_secret("\n".join(container.words)):
        for word in container.command_line:
            yield from _check_argument(as_text(word), word)


def _check_variable(name: str, value: str, node: Node) -> Iterator[Violation]:
    if find_token(value) or is_secret_value(name, value):
        message = f"`{name}` contains a secret; revoke it, and read the new one from a Secret with `secretKeyRef`"
        yield Violation(node, message)
    elif looks_like_secret(name, value):
        message = f"`{name}` appears to contain a secret; read it from a Secret with `secretKeyRef`"
        yield Violation(node, message, severity=WARNING)


def _check_argument(text: str, node: Node) -> Iterator[Violation]:
    if find_token(text):
        message = "the command line contains a secret; revoke it and pass it as a variable from a Secret"
        yield Violation(node, message)
        return
    for name, value in find_assignments(text):
        if looks_like_secret(name, value):
            message = f"`{name}` on the command line appears to contain a secret; pass it as a variable from a Secret"
            yield Violation(node, message, severity=WARNING)
            return


_PIPED = lazy_pattern(r"\b(?:curl|wget)\b[^|;&\n]{0,500}\|\s*(?:sudo\s+)?(?:\S{0,99}/)?(?:ba|z|da)?sh\b")
_INSTALLED = lazy_pattern(
    r"\b(?:pip3?|uv pip|conda|mamba|apt|apt-get|yum|dnf|apk)\s+(?:-\S{1,100}\s{1,9}){0,9}(?:install|add)\b"
)


@rule("container", INFO, fields=("command", "args"), words=("install", "add", "curl", "wget"))
def install_at_start(container: Container) -> Iterator[Violation]:
    """Software downloaded when the pod starts: `pip install`, `apt-get install`, or `curl … | sh`.

    Pods that start at different times can install different versions, all pods hold their GPUs while they install, and
    the job fails when the server is down.

    Install the software in the image.
    """
    for word in container.command_line:
        found = _PIPED.search(as_text(word)) or _INSTALLED.search(as_text(word))
        if found:
            is_script = "|" in found[0]
            subject = "a downloaded script" if is_script else f"`{found[0]}`"
            message = f"{subject} runs at every pod start and can install other versions; install it in the image"
            yield Violation(word, message)
            return
