"""Shell variables that Flux substitutes."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container, Manifest
from jobgen.model.lazy_re import lazy_pattern

_SUBSTITUTE = "kustomize.toolkit.fluxcd.io/substitute"
_VARIABLE = lazy_pattern(r"(?<!\$)\$\{([A-Za-z_]\w*)[^}]*\}")


@rule("container", WARNING, fields=("command", "args"))
def flux_substitution(container: Container) -> Iterator[Violation]:
    """A `${NAME}` in a command of a job that Flux applies.

    With post-build substitution, Flux replaces `${NAME}` before the script sees it. It fails for a variable that it
    does not know, or, before 2.9, inserts an empty string.

    Set the annotation `kustomize.toolkit.fluxcd.io/substitute: disabled`, or write `$${NAME}`.
    """
    manifest = container.pod.manifest
    if manifest.cluster.gitops != "flux" or "${" not in container.search_text or _is_substitution_disabled(manifest):
        return
    if "${" in as_text(container.data.get("image")):
        # The image relies on substitution, so the command may rely on it, too.
        return
    for word in container.command_line:
        if "${" in as_text(word) and (found := _VARIABLE.search(as_text(word))):
            message = f"Flux substitutes its own variable for `{found[0]}`"
            yield Violation(word, f"{message}; set the annotation `{_SUBSTITUTE}: disabled`")
            return


def _is_substitution_disabled(manifest: Manifest) -> bool:
    values = (manifest.annotations.get(_SUBSTITUTE), manifest.labels.get(_SUBSTITUTE))
    return any(as_text(value).lower() == "disabled" for value in values)
