"""Secrets in clear, and programs from elsewhere."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, INFO, WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.k8s.secrets_in_text import (
    find_assignments,
    find_token,
    is_secret_value,
    looks_like_secret,
    may_contain_secret,
)
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.model.sentence import Sentence


@rule("container", ERROR, fields=("env", "args", "command"))
def plain_secret(container: Container) -> Iterator[Violation]:
    """A secret in plain text, in an environment variable or on the command line.

    Anyone who can read the repository, the job or its pods can read the secret, and Git keeps it after it is removed. A
    value that only looks like a secret is a warning.

    Revoke the secret, put a new one into a Secret, and refer to it with `secretKeyRef`: as the value of the variable in
    a job, and below `valueFrom` in a manifest.

    When to turn it off: a sample that opens nothing, for example in a tutorial, can be suppressed on its line, with
    the reason that it is invented. A real one must be revoked even if the line is deleted.
    """
    if not may_contain_secret(container.search_text):
        return
    for name, entry in container.env:
        value = as_text(entry.get("value"))
        if value:
            yield from _check_variable(name, value, At(entry, "value"))
    if may_contain_secret("\n".join(container.words)):
        for place in container.command_places:
            yield from _check_argument(as_text(place.node), place)


def _check_variable(name: str, value: str, place: At) -> Iterator[Violation]:
    if find_token(value) or is_secret_value(name, value):
        message = Sentence(
            "`{}` contains a secret; revoke it, and read the new one from a Secret with `secretKeyRef`", name
        )
        yield Violation(place, message)
    elif looks_like_secret(name, value):
        message = Sentence("`{}` appears to contain a secret; read it from a Secret with `secretKeyRef`", name)
        yield Violation(place, message, severity=WARNING)


def _check_argument(text: str, place: At) -> Iterator[Violation]:
    if find_token(text):
        message = Sentence("the command line contains a secret; revoke it and pass it as a variable from a Secret")
        yield Violation(place, message)
        return
    for name, value in find_assignments(text):
        if looks_like_secret(name, value):
            message = Sentence(
                "`{}` on the command line appears to contain a secret; pass it as a variable from a Secret", name
            )
            yield Violation(place, message, severity=WARNING)
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

    When to turn it off: in a development environment where each change of a requirement would need a new image, set
    it to `off` for `dev`.
    """
    for index, word in enumerate(container.words):
        found = _PIPED.search(word) or _INSTALLED.search(word)
        if found:
            is_script = "|" in found[0]
            subject = "a downloaded script" if is_script else f"`{found[0]}`"
            message = Sentence(
                "{} runs at every pod start and can install other versions; install it in the image", subject
            )
            yield Violation(container.word_place(index), message)
            return
