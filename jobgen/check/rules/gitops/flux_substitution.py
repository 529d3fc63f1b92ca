"""Variables of a script that Flux takes for its own."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Container, Manifest, as_text
from jobgen.model.lazy_re import lazy_pattern

_SUBSTITUTE = "kustomize.toolkit.fluxcd.io/substitute"
_VARIABLE = lazy_pattern(r"(?<!\$)\$\{([A-Za-z_]\w*)[^}]*\}")


@rule("container", WARNING, fields=("command", "args"))
def flux_substitution(container: Container) -> Iterator[Violation]:
    """A `${NAME}` in a command of a job that Flux applies: Flux puts in its own variables first.

    Where post-build substitution is on, Flux fails at a name that it does not know, or, before 2.9, puts in nothing:
    the script never sees its variable. Say `kustomize.toolkit.fluxcd.io/substitute: disabled`, or write `$${NAME}`.
    """
    manifest = container.pod.role.manifest
    if manifest.cluster.gitops != "flux" or "${" not in container.search_text or _is_switched_off(manifest):
        return
    if "${" in as_text(container.data.get("image")):
        # Flux is meant to fill it in, and others with it.
        return
    for word in container.command_line:
        if "${" in as_text(word) and (found := _VARIABLE.search(as_text(word))):
            message = f"Flux puts its own variable in the place of `{found[0]}`"
            yield Violation(word, f"{message}; set the annotation `{_SUBSTITUTE}: disabled`")
            return


def _is_switched_off(manifest: Manifest) -> bool:
    told = (manifest.annotations.get(_SUBSTITUTE), manifest.labels.get(_SUBSTITUTE))
    return any(as_text(word).lower() == "disabled" for word in told)
