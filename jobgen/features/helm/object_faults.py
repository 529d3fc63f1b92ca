"""What helm does not install of the objects that a chart writes: two with one name, and hooks that it does not know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jobgen.features.helm.charts import is_crd
from jobgen.features.helm.locate import Locator
from jobgen.features.helm.uses import Use
from jobgen.k8s.nodes import get_path
from jobgen.model.data import Location, location_of, text_of
from jobgen.model.finding import Finding, Related, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import find_meant
from jobgen.repo.files import BuiltObject

HOOK, CONFLICT = "unknown-hook", "chart-object-conflict"
_ANNOTATION = lazy_pattern(r"helm\.sh/hook(-delete-policy)?[\"']?\s*:\s*[\"']?([A-Za-z][\w, -]*)")
_EVENTS = frozenset(
    """pre-install post-install pre-delete post-delete pre-upgrade post-upgrade pre-rollback post-rollback test
    test-success""".split()
)
_OLD = "crd-install"
"""A hook of Helm 2, which charts for both versions have still, besides `crds/`."""
_POLICIES = frozenset(("hook-succeeded", "before-hook-creation", "hook-failed"))


def find_hook_faults(use: Use, locator: Locator) -> Iterator[Finding]:
    """Yield the names of hooks, and when to delete them, that helm does not know."""
    seen: set[tuple[Location, str]] = set()
    has_crds = any(map(is_crd, use.chart.files))
    for path, content in use.chart.files.items():
        if b"helm.sh/hook" not in content or is_crd(path):
            continue
        for origin, line in locator.list_marked_lines(path):
            found = _ANNOTATION.search(line) if not line.lstrip().startswith("#") else None
            for word in found[2].split(",") if found else ():
                name = word.strip()
                known = _POLICIES if found and found[1] else _EVENTS
                place = locator.place(origin.place, name)
                is_known = name.lower() in known or (has_crds and name.lower() == _OLD)
                if name and not is_known and (place, name) not in seen:
                    seen.add((place, name))
                    yield _report_hook(name, place, is_policy=known is _POLICIES)


def _report_hook(name: str, place: Location, *, is_policy: bool) -> Finding:
    known = sorted(_POLICIES if is_policy else _EVENTS)
    meant = find_meant(name, known)
    hint = f"did you mean `{meant}`?" if meant else f"write one of {', '.join(f'`{each}`' for each in known)}"
    if name.lower() == _OLD and not is_policy:
        message = f"`{name}` was a hook of Helm 2, and helm does not install the object; move it to `crds/`"
        return Finding(HOOK, "gitops", Severity.INFO, message, place)
    if is_policy:
        message = f"`{name}` says nothing to helm about when to delete a hook; {hint}"
        return Finding(HOOK, "gitops", Severity.WARNING, message, place)
    message = f"`{name}` is not a hook of helm, so helm does not install the object; {hint}"
    return Finding(HOOK, "gitops", Severity.ERROR, message, place)


def find_conflicts(use: Use, objects: Sequence[BuiltObject]) -> Iterator[Finding]:
    """Yield the objects that have the kind, namespace and name of one before them; hooks may have the same."""
    seen: dict[tuple[str, ...], BuiltObject] = {}
    # With the values of the releases instead, the same is found there.
    for each in objects if not use.is_replaced else ():
        key = _identify(each.data, use)
        first = seen.setdefault(key, each) if key else each
        if key is None or first is each:
            continue
        # Argo CD applies one after the other.
        then = "only the last one is applied" if use.is_merged else "helm installs nothing then"
        message = f"the chart writes two objects `{key[1]} {key[-1]}`, and {then}; rename one of them"
        severity = Severity.WARNING if use.is_merged else Severity.ERROR
        related = (Related(_place(first), "the first one"),)
        yield Finding(CONFLICT, "gitops", severity, message, _place(each), related=related)


def _identify(data: Any, use: Use) -> tuple[str, ...] | None:
    annotations = get_path(data, "metadata", "annotations")
    name = text_of(get_path(data, "metadata", "name"))
    if not name or (isinstance(annotations, dict) and "helm.sh/hook" in annotations):
        return None
    group = text_of(data.get("apiVersion")).rpartition("/")[0]
    namespace = text_of(get_path(data, "metadata", "namespace")) or use.namespace
    return group, text_of(data.get("kind")), namespace, name


def _place(made: BuiltObject) -> Location:
    found = location_of(get_path(made.traced, "metadata", "name")) or made.location
    return Location(found.file, found.line, found.column)
