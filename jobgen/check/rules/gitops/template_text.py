"""Unrendered template expressions."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.model.lazy_re import lazy_pattern

# Expressions of Helm, Argo Workflows and similar tools; other braces may be meant for the program.
_TEMPLATE = lazy_pattern(
    r"\{\{-?\s*(?:\.|\$\.|include |template |tpl |printf |quote |default "
    r"|(?:workflow|inputs|outputs|steps|tasks|item|pod|retries|values)\b[.}\s])[^}]*\}\}"
)


@rule("container", WARNING, fields=("image", "command", "args", "env"))
def template_text(container: Container) -> Iterator[Violation]:
    """A template expression, such as `{{ .Values.image }}`, that was not rendered.

    The program receives the braces literally.

    Render the template first, or set in an overlay what differs.
    """
    if "{{" not in container.search_text:
        return
    values = (entry.get("value") for _, entry in container.env)
    for leaf in (container.data.get("image"), *container.command_line, *values):
        if "{{" in as_text(leaf) and (found := _TEMPLATE.search(as_text(leaf))):
            yield Violation(
                leaf, f"`{found[0]}` is an unrendered template expression; render it first or use an overlay"
            )
