"""Commands in one string."""

import shlex
from collections.abc import Iterator

from jobgen.check.rules import ERROR, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.objects import Container
from jobgen.model.lazy_re import lazy_pattern
from jobgen.yamlio.write import to_inline_yaml

# A program without a path, or with one, and more words after it.
_COMMAND = lazy_pattern(r"\s*[\w./+-]+\s+\S")
_MAX_LENGTH = 60


@rule("container", ERROR, fields=("command",))
def command_in_one_string(container: Container) -> Iterator[Violation]:
    """A `command` whose first item is a whole command line, such as `torchrun train.py`.

    Kubernetes does not split it. The runtime looks for a program of that name, spaces included, and the container never
    starts: `executable file not found`.

    Write one item for each word, or start a shell: `[sh, -c, "torchrun train.py"]`.
    """
    command = as_list(container.data.get("command"))
    text = as_text(command[0]) if command else ""
    if _COMMAND.match(text) is None or _is_joined(container):
        return
    yield Violation(command[0], f"`{_shorten(text)}` is not the name of a program; {_explain(text)}")


def _is_joined(container: Container) -> bool:
    """Return True if KubeRay joins the command to a line for a shell: that of the first container of a Ray pod."""
    pod = container.pod
    keeps = as_text(as_mapping(pod.metadata.get("annotations")).get("ray.io/overwrite-container-cmd")) == "true"
    return pod.manifest.group == "ray.io" and pod.containers[0] is container and not keeps


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LENGTH else f"{line[:_MAX_LENGTH]}…"


def _explain(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words or len(text) > _MAX_LENGTH or any(sign in text for sign in "|&;<>$\n"):
        return "start a shell: `[sh, -c, …]`"
    # A dash may be that of an item, which was indented too far.
    return "write one item for each word" if "-" in words else f"write `{to_inline_yaml(words)}`"
