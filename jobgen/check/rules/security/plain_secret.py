"""A secret written out."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Container, as_text
from jobgen.k8s.secrets import find_assignments, find_token, is_secret_value, looks_like_secret, may_contain_secret
from jobgen.model.data import Data


@rule("container", ERROR, fields=("env", "args", "command"))
def plain_secret(container: Container) -> Iterator[Violation]:
    """A secret written out in a variable or on the command line.

    Whoever can read the repository, the job or its pods has it, and Git keeps it when it is removed: revoke it. Put the
    new one into a Secret and name that under `valueFrom.secretKeyRef`. What only looks like one is a warning.
    """
    for name, entry in container.env:
        value = as_text(entry.get("value"))
        if value:
            yield from _judged(name, value, entry["value"])
    words = container.command_line
    if words and may_contain_secret("\n".join(map(as_text, words))):
        for word in words:
            yield from _in_word(as_text(word), word)


def _judged(name: str, value: str, node: Data) -> Iterator[Violation]:
    found = find_token(value)
    if found or is_secret_value(name, value):
        message = f"`{name}` holds a secret, `{(found or value)[:3]}…`: revoke it, and name a Secret under `valueFrom`"
        yield Violation(node, message)
    elif looks_like_secret(name, value):
        message = f"`{name}` seems to hold a secret, `{value[:3]}…`; name a Secret under `valueFrom`"
        yield Violation(node, message, severity=WARNING)


def _in_word(written: str, node: Data) -> Iterator[Violation]:
    found = find_token(written)
    if found:
        yield Violation(node, f"a secret, `{found[:3]}…`, on the command line: revoke it, and pass it by a variable")
        return
    for name, value in find_assignments(written):
        if looks_like_secret(name, value):
            message = f"`{name}` on the command line seems to hold a secret, `{value[:3]}…`; pass it by a variable"
            yield Violation(node, message, severity=WARNING)
            return
