"""Find names of ConfigMaps and Secrets that nothing in a file or build makes, where it has one that nothing uses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

_CLAIM = "PersistentVolumeClaim"
KINDS = ("ConfigMap", _CLAIM, "Secret")
RULE = "unknown-reference"

_HASH = lazy_pattern(r"-[2456789bcdfghkmt]{10}\Z")
# What a template or a script fills in before the objects are applied.
_UNFILLED = ("$", "{", "<")
_FIELDS = {
    "configMap": ("ConfigMap", "name"),
    "persistentVolumeClaim": (_CLAIM, "claimName"),
    "configMapRef": ("ConfigMap", "name"),
    "configMapKeyRef": ("ConfigMap", "name"),
    "secret": ("Secret", "secretName"),
    "secretRef": ("Secret", "name"),
    "secretKeyRef": ("Secret", "name"),
}
"""The fields of pods that refer to an object: its kind, and where its name is."""
_MOST_KNOWN, _MOST_UNUSED = 100, 3
_WORD, _PREFIX = 3, 4


def find_unused_configs(objects: Sequence[Mapping[str, Plain]]) -> Iterator[tuple[int, Problem]]:
    """Report each reference to an object that is not there, by the number of its own, where one waits to be used.

    kustomize adds a hash to the names that it generates, and to the references by exactly these names. Other objects
    may be used by name in a way that is not known, so they are meant only by names that are near.
    """
    made = {(kind, as_text(get_path(obj, "metadata", "name"))) for obj in objects if (kind := as_text(obj.get("kind")))}
    configs = [(kind, name) for kind, name in made if kind in KINDS]
    used = [(number, *each) for number, obj in enumerate(objects) for each in _list_used(obj) if configs]
    missing = [(number, kind, place) for number, kind, place in used if (kind, as_text(place.node)) not in made]
    if not missing:
        return
    # Imported late: most names are right.
    from jobgen.model.meant import find_meant, is_near

    others = json.dumps(objects, default=str)
    for kind in KINDS:
        names = {as_text(place.node) for _, each, place in missing if each == kind}
        known = [name for each, name in configs if each == kind]
        if len(names) != 1 or len(known) > _MOST_KNOWN or any(sign in "".join(names) for sign in _UNFILLED):
            continue
        # One name for the object itself; each use is another one.
        # The name of a claim is often that of a volume, too.
        claimed = {as_text(node) for _, each, node in used if each == kind} if kind == _CLAIM else None
        unused = sorted(
            name for name in known if (others.count(f'"{name}"') == 1 if claimed is None else name not in claimed)
        )
        own = {_HASH.sub("", name): name for name in unused}
        if not 0 < len(own) <= _MOST_UNUSED:
            continue
        name = names.pop()
        is_generated = own.keys().isdisjoint(unused)
        # What an argument names is something else's to make.
        if others.count(name) > sum(each == kind for _, each, _ in missing):
            continue
        meant = [
            each
            for each in own
            if is_near(name, each) or ((is_generated or kind == _CLAIM) and _share_a_word(name, each))
        ]
        # `unknown-reference` reports names that are one slip away.
        if meant and not find_meant(name, own):
            makes = "kustomize generates" if is_generated else "there is"
            waiting = " and ".join(f"`{each}`" for each in sorted(meant))
            advice = Sentence("; write `{}`", meant[0]) if len(meant) == 1 else Sentence("; write one of them")
            message = Sentence(
                "nothing here makes the {} `{}`, but {} {}, which nothing uses{}", kind, name, makes, waiting, advice
            )
            for number, each, place in missing:
                if each == kind:
                    yield number, Problem(RULE, message, place, category="fleet", severity=Severity.WARNING)


def _share_a_word(one: str, other: str) -> bool:
    """Return True if two names have a word in common, or the beginning of one."""
    return any(
        first == second or (len(first) >= _PREFIX and second.startswith(first))
        for pair in ((one, other), (other, one))
        for first in pair[0].split("-")
        for second in pair[1].split("-")
        if len(first) >= _WORD
    )


def _list_used(node: Plain) -> Iterator[tuple[str, At]]:
    """Yield the kind and the place of the name of each object that the pods of an object cannot do without."""
    if isinstance(node, list):
        for item in node:
            yield from _list_used(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            kind, field = _FIELDS.get(key, ("", ""))
            fields = as_mapping(value) if kind else {}
            # A source of a projected volume has `name`.
            named = field if fields.get(field) or "items" not in fields else "name"
            if as_text(fields.get(named)) and fields.get("optional") is not True:
                yield kind, At(fields, named)
            yield from _list_used(value)
