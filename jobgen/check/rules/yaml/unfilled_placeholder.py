"""Placeholders that the cluster accepts as values; reports/placeholders.py reports those that it refuses."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.k8s.placeholders import find_placeholders, may_be_unfilled
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

# Text for people and programs, in which `<name>` may be meant as it is written.
_FREE_TEXT = frozenset(
    """annotations args binaryData command data description displayName documentation expr expression help message
    messageExpression openAPIV3Schema pattern query regex script summary title usage""".split()
)
# Objects that hold nothing but such text, or a schema.
_FREE_KINDS = frozenset(("ConfigMap", "CustomResourceDefinition", "PrometheusRule", "Template"))
# Words that Eclipse Che replaces in the name of a namespace.
_OF_CHE = frozenset(("<userid>", "<username>"))
# Placeholders of other styles are the work of a tool, or belong to a program.
_STYLES = ("angle", "word")
_MAX_LENGTH = 200


@rule("manifest", ERROR)
def unfilled_placeholder(manifest: Manifest) -> Iterator[Violation]:
    """A placeholder that is not filled in, such as `<name>` or `YOUR-PVC-NAME`.

    The API server refuses some of these values. If it accepts a value, the finding is a warning: the object is created,
    but what it names does not exist, so its pods wait for a claim, cannot pull their image, or run with a token that
    is refused. All placeholders of a file that is refused are one finding. Commands, scripts, annotations and the
    data of ConfigMaps are not searched.

    Write the value in place of the placeholder. If a tool fills it in, exclude the file.

    When to turn it off: a folder of templates that people copy belongs in `exclude`. A value that only looks like a
    placeholder, such as a label `<none>`, can be accepted on its line.
    """
    if manifest.kind_name in _FREE_KINDS or not may_be_unfilled(manifest.text):
        return
    # An object may have any valid name, also one that means nothing.
    metadata = manifest.metadata
    places = [At(manifest.object, key) for key in reversed([*manifest.object]) if key not in _FREE_TEXT]
    while places:
        place = places.pop()
        node, is_own_name = place.node, place.holder is metadata and place.key == "name"
        if isinstance(node, dict):
            places += [At(node, key) for key in reversed(node) if key not in _FREE_TEXT]
        elif isinstance(node, list):
            places += [At(node, index) for index in range(len(node) - 1, -1, -1)]
        elif not is_own_name and (token := _find_token(as_text(node))):
            if token in _OF_CHE and manifest.group == "org.eclipse.che":
                continue
            yield Violation(place, Sentence("`{}` is a placeholder; fill it in", token), severity=WARNING)


def _find_token(text: str) -> str:
    """Return the placeholder in a value that a person fills in; empty if there is none."""
    if not text or len(text) > _MAX_LENGTH or "\n" in text or "</" in text:
        return ""
    # The program that gets an address with `?q=<query>` fills in what is searched for.
    found = (each for each in find_placeholders(text) if each.style in _STYLES)
    return next((each.token for each in found if not ("?" in text and f"={each.token}" in text)), "")
