"""An overlay with errors, read without its faulty values: its environments are checked, and never rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from jobgen.model.data import TracedScalar, ValidFields, location_of, untraced, value_of
from jobgen.model.finding import Problem
from jobgen.model.mend import find_gaps, list_leaves, mend
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import find_closest

_KIND = "Overlay"


class MendedOverlay(NamedTuple):
    """An overlay without its faulty values."""

    data: ValidFields
    has_gaps: bool
    """True if it lacks something in both copies, because what was meant by it is not known."""


def mend_overlay(
    data: ValidFields, find_errors: Callable[[ValidFields], Sequence[Problem]], *, fill: bool
) -> MendedOverlay | None:
    """Return an overlay, with locations, without the values at fault; None if that leaves no overlay to check.

    With `fill`, there are placeholders for them.
    """
    written_problems = find_errors(data)
    kept = _drop_images(_drop_patches(data, written_problems), written_problems)
    # Its text was repaired, and something else may have been meant; or what a patch is for is not known.
    is_guess = not written_problems or kept is not data
    data = _complete(kept, find_errors(kept), fill=fill)
    problems = find_errors(data)
    if not problems:
        return MendedOverlay(data, has_gaps=is_guess)
    copies = mend(data, problems) or ()
    valid = [each for each in copies if not find_errors(each)]
    if not valid:
        return None
    left_out, filled = valid[0], valid[-1]
    has_gaps = len(valid) < len(copies) or bool(find_gaps(data, problems))
    written, *selected = (list(map(untraced, _list_decisive(each))) for each in (data, left_out, filled))
    if has_gaps and any(one == other != before is not None for before, one, other in zip_longest(written, *selected)):
        # It would be about other jobs, or another cluster.
        return None
    return MendedOverlay(filled if fill else left_out, has_gaps)


def _complete(data: ValidFields, problems: Sequence[Problem], *, fill: bool) -> ValidFields:
    """Return an overlay with what is certain of any overlay, and with another namespace if its own is faulty."""
    places = {location_of(each.node) for each in problems}
    kind = value_of(data.get("kind"))
    is_other = isinstance(kind, str) and not find_closest(kind, [_KIND])
    known = {} if is_other else {"apiVersion": "jobgen.dev/v1", "kind": _KIND}
    unknown = [key for key in data if location_of(key) in places] if "spec" not in data else []
    meant = {key: "spec" for key in unknown if find_closest(key, ["spec"])}
    certain = {
        meant.get(key, key): known.get(key, value) if location_of(value) in places else value
        for key, value in data.items()
    }
    spec = certain.get("spec")
    if isinstance(spec, dict) and isinstance(value_of(spec.get("extends")), str):
        # One overlay is meant where a list is wanted.
        certain["spec"] = spec = {**spec, "extends": [spec["extends"]]}
    namespace: Any = spec.get("namespace") if isinstance(spec, dict) else None
    if isinstance(spec, dict) and namespace is not None and location_of(namespace) in places:
        kept = {key: value for key, value in spec.items() if key != "namespace"}
        placeholder = TracedScalar("placeholder", namespace.location)
        certain["spec"] = {**kept, "namespace": placeholder} if fill else kept
    return certain


def _drop_patches(data: ValidFields, problems: Sequence[Problem]) -> ValidFields:
    """Return an overlay without the patches of which it is not known which jobs they match."""
    spec: Any = data.get("spec")
    patches = spec.get("patches") if isinstance(spec, dict) else None
    if not isinstance(patches, list):
        return data
    places = {location_of(each.node) for each in problems if not any(step.op == "rename" for step in each.fix_steps)}

    def is_certain(patch: Any) -> bool:
        # An unknown key may be meant as `match`.
        match = ({key: value} for key, value in patch.items() if key == "match") if isinstance(patch, dict) else ()
        nodes = (*(patch if isinstance(patch, dict) else ()), *(node for each in match for node in list_leaves(each)))
        return places.isdisjoint(map(location_of, nodes))

    kept = [patch for patch in patches if is_certain(patch)]
    return data if len(kept) == len(patches) else {**data, "spec": {**spec, "patches": kept}}


def _drop_images(data: ValidFields, problems: Sequence[Problem]) -> ValidFields:
    """Return an overlay without the entries of `images` of which it is not known which images they name."""
    spec: Any = data.get("spec")
    images = spec.get("images") if isinstance(spec, dict) else None
    if not isinstance(images, list):
        return data
    places = {location_of(each.node) for each in problems}
    kept = [image for image in images if places.isdisjoint(map(location_of, list_leaves(image)))]
    return data if len(kept) == len(images) else {**data, "spec": {**spec, "images": kept}}


def _list_decisive(data: ValidFields) -> Iterator[Any]:
    """Yield what decides which jobs an overlay is about, and in which cluster."""
    written: Any = data.get("spec")
    spec = written if isinstance(written, dict) else {}
    yield from (spec.get(field) for field in ("extends", "namespace", "jobs", "cluster"))
    patches = spec.get("patches")
    for patch in patches if isinstance(patches, list) else ():
        yield patch.get("match") if isinstance(patch, dict) else None


def outline_overlay(data: ValidFields) -> ValidFields:
    """Return what decides about other overlays: which ones an overlay with errors extends, as far as it can be read."""
    spec: Any = data.get("spec")
    extended = spec.get("extends") if isinstance(spec, dict) else None
    extended = [extended] if isinstance(value_of(extended), str) else extended
    is_valid = isinstance(extended, list) and all(isinstance(value_of(each), str) for each in extended)
    return {"spec": {"extends": extended} if is_valid else {}}
