"""A word that the operator does not know."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Manifest, get_path
from jobgen.k8s.operators import choose_severity, describe_rejection, is_operator_since
from jobgen.model.data import Data, value_of
from jobgen.model.suggest import did_you_mean, suggest_value
from jobgen.spec.operator_requirements import Choice


@rule("job", ERROR)
def unknown_choice(manifest: Manifest) -> Iterator[Violation]:
    """A word that the operator does not know, where its CRD takes any.

    Some operators refuse it; others silently do something else: a misspelt `cleanPodPolicy` deletes every pod and its
    log when the job ends.
    """
    assert manifest.kind is not None
    for place, choices in manifest.kind.requirements.choices.items():
        holder = get_path(manifest.object, *place)
        if not isinstance(holder, dict):
            continue
        for key in holder:
            choice = choices.get(key)
            if choice is not None and value_of(holder[key]) not in choice.values:
                yield from _told(manifest, key, holder[key], choice)


def _told(manifest: Manifest, key: Data, node: Data, choice: Choice) -> Iterator[Violation]:
    said = value_of(node)
    if not isinstance(said, str) or not is_operator_since(manifest, choice.since):
        return
    known = [value for value in choice.values if value]
    hint = did_you_mean(said, known).removeprefix("; ")
    words = hint or f"use {' or '.join(f'`{value}`' for value in known)}"
    # Some words only come out as they were meant.
    mild = choice.warning or (choice.otherwise and said.lower() in ("all", "always"))
    consequence = choice.otherwise or describe_rejection(manifest)
    message = f"`{key}` is `{said}`; {consequence}; {words}"
    fix_steps, safe = suggest_value(node, known)
    yield Violation(
        node, message, severity=WARNING if mild else choose_severity(manifest), fix_steps=fix_steps, safe=safe
    )
