"""What the mutating policies of a repository change in an object when the cluster creates it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobgen.model.data import Location, Node
from jobgen.model.mutated import POLICY_LAYER, Mutated, list_changed_paths
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.render.provenance import Assignment, ExplainedValue, NoSuchFieldError, explain_path


class ClusterChange(NamedTuple):
    """A field that a mutating policy changes; the values are not shown, because they may be secrets."""

    environment: str
    policy: str
    field: str
    """A JSON pointer; empty if the policy fails."""
    action: str
    """`adds`, `changes`, `removes`, or `fails: ` with the reason."""
    location: Location | None = None
    """Where the mutation is written."""


def list_cluster_changes(env: str, mutated: Mutated) -> Iterator[ClusterChange]:
    """The changes of an object in the order in which the policies make them."""
    for change in mutated.changes:
        policy, location = change.source
        if change.error:
            yield ClusterChange(env, policy, "", f"fails: {change.error}", location)
        for pointer, action in list_changed_paths(change.before, change.after):
            yield ClusterChange(env, policy, pointer, action, location)


def explain_mutated(obj: Mapping[str, Node], mutated: Mutated, path: tuple[Step, ...]) -> list[ExplainedValue]:
    """Explain every leaf at or below a path: a mutation is the last layer that sets, changes or removes it.

    Raises:
        NoSuchFieldError: Neither the rendered object nor the one in the cluster has the field.

    """
    try:
        found, missing = list(explain_path(mutated.object, path)), None
    except NoSuchFieldError as error:
        found, missing = [], error
    if not mutated.removals and missing is None:
        return found
    found += _explain_removed(obj, mutated, path, {each.path for each in found})
    if missing is not None and not found:
        raise missing
    return found


def _explain_removed(
    obj: Mapping[str, Node], mutated: Mutated, path: tuple[Step, ...], known: set[tuple[Step, ...]]
) -> Iterator[ExplainedValue]:
    """Explain the leaves of a rendered object that a mutation removed."""
    try:
        rendered = {each.path for each in explain_path(obj, path)}
    except NoSuchFieldError:
        return
    for removal in mutated.removals:
        for leaf in explain_path(removal.node, ()):
            place = (*removal.path, *leaf.path)
            if place in rendered and place not in known:
                known.add(place)
                removed = Assignment(None, removal.source.layer, removal.source.location, is_removed=True)
                yield ExplainedValue(place, (removed, *leaf.assignments))


def find_mutations(
    obj: Mapping[str, Node], mutated: Mutated, places: Iterable[tuple[Step, ...]]
) -> Iterator[tuple[tuple[Step, ...], Assignment]]:
    """The places of an object whose values mutations set or remove, each with the last mutation."""
    if not mutated.changes:
        return
    for place in places:
        try:
            found = explain_mutated(obj, mutated, place)
        except NoSuchFieldError:
            continue
        for each in found:
            if each.assignments[0].layer.startswith(POLICY_LAYER):
                yield each.path, each.assignments[0]
