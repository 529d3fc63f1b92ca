"""Finds where the fields of a schema belong, to suggest a move for a misplaced one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

from jobgen.k8s.nodes import get_path
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import identify
from jobgen.model.suggest import NO_FIX, SuggestedFix, suggest_move

_PATH = lazy_pattern(r"[A-Za-z.]+")
_LEVELS = 7
"""Enough levels for the fields of a container."""
_MAX_PATHS = 50_000
_MAX_STEPS = 64
_LISTS = ("containers", "replicatedJobs", "tasks", "workerGroupSpecs")
"""Lists of whose items all have the fields that are meant for them."""
_MAX_HOLDERS = 2
"""A section and the pod may have a field in common, such as `activeDeadlineSeconds`."""


def locate_fields(schema: dict[str, Any]) -> dict[str, list[str]]:
    """The paths of the mappings that have each field, in an object's spec, shortest first."""
    found: dict[str, list[str]] = {}
    for name, place in islice(
        _iterate_fields(schema["properties"].get("spec", {}), schema.get("$defs", {}), "spec"), _MAX_PATHS
    ):
        found.setdefault(name, []).append(place)
    return found


def _iterate_fields(schema: dict[str, Any], types: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Each field's name with the path of its mapping, breadth first over the first levels of a schema."""
    level = [(schema, path)]
    for _ in range(_LEVELS):
        following: list[tuple[dict[str, Any], str]] = []
        for node, place in level:
            node, place = _resolve(node, types, place)  # noqa: PLW2901
            for name, child in node.get("properties", {}).items():
                yield name, place
                following.append((child, f"{place}.{name}"))
            extra = node.get("additionalProperties")
            if isinstance(extra, dict):
                following.append((extra, f"{place}.<role>" if place.endswith("Specs") else f"{place}.*"))
        level = following


def _resolve(node: dict[str, Any], types: dict[str, Any], place: str) -> tuple[dict[str, Any], str]:
    """The mapping that a node leads to, through references, alternatives and lists."""
    # A reference may lead to itself.
    for _ in range(_MAX_STEPS):
        if "anyOf" in node:
            node = node["anyOf"][0]
        elif "$ref" in node:
            node = types[node["$ref"].rpartition("/")[2]]
        elif "items" in node:
            node, place = node["items"], f"{place}[]"
        else:
            return node, place
    return {}, place


def find_field_path(key: str, mapping: Mapping[str, Plain], obj: Plain, known: Mapping[str, list[str]]) -> str:
    """The path of the mapping where a misplaced field of one belongs; empty if that is not certain.

    In another branch of the object the field may mean something else, so it must be a mapping around the misplaced
    field, one below it, or a section of `spec` such as `spec.runPolicy`. A name that many mappings have, such as
    `type`, does not say which section is meant.
    """
    holder = _find_steps(obj, mapping)
    paths = [path.replace("[]", ".[]").split(".") for path in known.get(key, ())]
    in_sections = len({path[-1] for path in paths}) <= _MAX_HOLDERS
    fitting = (_fit_path(path, holder, in_sections=in_sections) for path in paths if holder is not None)
    found = list(filter(None, fitting))
    # A mapping that the object has is more likely to be meant than one that it lacks.
    return next((path for path in found if isinstance(get_path(obj, *path.split(".")), dict)), [*found, ""][0])


def _fit_path(path: list[str], holder: tuple[str | int, ...] | None, *, in_sections: bool) -> str:
    """A path with the names of the object in place of `<role>`, `*` and `[]`; empty if it is in another branch."""
    if holder is None:
        return ""
    shared = 0
    for step, own in zip(path, holder, strict=False):
        if step != own and step not in ("<role>", "*") and not (step == "[]" and isinstance(own, int)):
            break
        shared += 1
    below = path[shared:]
    is_around = not below
    is_below = shared == len(holder) and all(step != "[]" or before in _LISTS for before, step in pairwise(below))
    # A pod and its containers have mappings of one name.
    is_around = is_around or (len(path) - 1 == shared < len(holder) and path[-1] == holder[-1])
    is_section = in_sections and len(path) == 2 < len(holder) and shared == 1
    if not (is_around or is_below or is_section):
        return ""
    return _join([*holder[:shared], *below])


def _join(steps: Sequence[str | int]) -> str:
    return ".".join(f"[{step}]" if isinstance(step, int) else step for step in steps).replace(".[", "[")


def find_own_path(mapping: Mapping[str, Plain], obj: Plain) -> str:
    """The path of a mapping."""
    return _join(_find_steps(obj, mapping) or ())


def _find_steps(tree: Plain, mapping: Mapping[str, Plain]) -> tuple[str | int, ...] | None:
    """The steps to a mapping in a tree; None if it is elsewhere."""
    if isinstance(tree, dict) and identify(tree) == identify(mapping):
        return ()
    children: Iterable[tuple[str | int, Plain]] = ()
    if isinstance(tree, (dict, list)):
        children = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for step, child in children:
        found = _find_steps(child, mapping)
        if found is not None:
            return (str(step) if isinstance(tree, dict) else step, *found)
    return None


def suggest_field_move(
    key: str, holder: Mapping[str, Plain], obj: Plain, known: Mapping[str, list[str]]
) -> SuggestedFix:
    """Move a misplaced field to where it belongs, unless that is in a role or a list; safe if it has one path only."""
    paths = known.get(key, [])
    if _find_steps(obj, holder) is None or not paths or not _PATH.fullmatch(paths[0]):
        return NO_FIX
    *steps, name = paths[0].split(".")
    target = get_path(obj, *steps)
    # Down into a sibling or up to an ancestor: in another branch the field might mean something else.
    if not isinstance(target, dict) or (target is not holder and _find_steps(target.get(name), holder) is None):
        return NO_FIX
    fix_steps, safe = suggest_move(key, holder, name, target)
    return fix_steps, safe and len(paths) == 1
