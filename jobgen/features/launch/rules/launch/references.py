"""References to variables that a container does not have."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest


@rule("manifest", WARNING, words=("$(", "`"))
def undefined_reference(manifest: Manifest) -> Iterator[Violation]:
    """A `$(NAME)` in a command or in the value of a variable, though the container has no variable of that name.

    Kubernetes replaces `$(NAME)` only if the container has the variable, in `env` or `envFrom`, or if the operator sets
    it. Kubernetes does not know the variables in the image. The program receives the literal text `$(NAME)`. Nor does
    anything run `$(date +%F)` without a shell. Scripts of a shell, in which `$(NAME)` runs a program, are not reported.
    The value of a variable can name those above it only.

    Set the variable in `env`.

    When to turn it off: when an admission webhook adds the variable to the container, suppress the finding on the
    reference and name the webhook.
    """
    # Few jobs have such references.
    from jobgen.features.launch.references import check_references

    for place, message, *_ in check_references(manifest):
        yield Violation(place, message)
