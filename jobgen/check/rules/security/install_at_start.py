"""Software installed when a pod starts."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.model.lazy_re import lazy_pattern

_PIPED = lazy_pattern(r"\b(?:curl|wget)\b[^|;&\n]{0,500}\|\s*(?:sudo\s+)?(?:\S{0,99}/)?(?:ba|z|da)?sh\b")
_INSTALLED = lazy_pattern(
    r"\b(?:pip3?|uv pip|conda|mamba|apt|apt-get|yum|dnf|apk)\s+(?:-\S{1,100}\s{1,9}){0,9}(?:install|add)\b"
)


@rule("container", INFO, fields=("command", "args"))
def install_at_start(container: Container) -> Iterator[Violation]:
    """Software downloaded when the pod starts: `pip install`, `apt-get install`, or `curl … | sh`.

    Pods that start at different times can install different versions, all pods hold their GPUs while they install, and
    the job fails when the server is down.

    Install the software in the image.
    """
    words = container.command_line
    whole = " ".join(map(as_text, words))
    if "install" not in whole and " add " not in whole and "curl " not in whole and "wget " not in whole:
        return  # faster than the patterns
    for word in words:
        found = _PIPED.search(as_text(word)) or _INSTALLED.search(as_text(word))
        if found:
            is_script = "|" in found[0]
            subject = "a downloaded script" if is_script else f"`{found[0]}`"
            message = f"{subject} runs at every pod start and can install other versions; install it in the image"
            yield Violation(word, message)
            return
