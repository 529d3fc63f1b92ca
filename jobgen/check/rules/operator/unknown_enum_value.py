"""Unknown values of fields without an enum."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.nodes import get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import choose_severity, describe_rejection, is_operator_since
from jobgen.model.data import Node, value_of
from jobgen.model.suggest import did_you_mean, list_alternatives, suggest_value
from jobgen.spec.kinds import Choice


@rule("job", ERROR)
def unknown_enum_value(manifest: Manifest) -> Iterator[Violation]:
    """A value that the operator does not know, in a field where the CRD accepts any string.

    Some operators reject it; others silently do something else. For example, a misspelled `cleanPodPolicy` deletes
    every pod and its log when the job ends. It is a warning if that does what was meant, or if an image can know more
    values than the operator.

    Use one of the values that the message names.
    """
    assert manifest.kind is not None
    for place, choices in manifest.kind.requirements.choices.items():
        holder = get_path(manifest.object, *place)
        if not isinstance(holder, dict):
            continue
        for key in holder:
            choice = choices.get(key)
            if choice is not None and value_of(holder[key]) not in choice.values:
                yield from _report(manifest, key, holder[key], choice)


def _report(manifest: Manifest, key: Node, node: Node, choice: Choice) -> Iterator[Violation]:
    written = value_of(node)
    if not isinstance(written, str) or not is_operator_since(manifest, choice.since):
        return
    known = [value for value in choice.values if value]
    hint = did_you_mean(written, known).removeprefix("; ")
    remedy = hint or f"use {list_alternatives(f'`{value}`' for value in known)}"
    # `all` and `always` get the effect that was meant.
    is_warning = choice.warning or (choice.otherwise and written.lower() in ("all", "always"))
    consequence = choice.otherwise or describe_rejection(manifest)
    message = f"`{key}` has the unknown value `{written}`; {consequence}; {remedy}"
    fix_steps, safe = suggest_value(node, known)
    yield Violation(
        node, message, severity=WARNING if is_warning else choose_severity(manifest), fix_steps=fix_steps, safe=safe
    )
