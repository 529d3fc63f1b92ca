"""A difference for programs: one versioned JSON document, described in docs/diff.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobgen.diff.causes import Cause, causes
from jobgen.diff.changes import ChangeSet, Total
from jobgen.diff.impact import Impact
from jobgen.k8s.compare import FieldPath
from jobgen.k8s.resources import ResourceTotals, format_cpu, format_memory
from jobgen.model.finding import Identity
from jobgen.model.path import dotted, pointer
from jobgen.pipeline.environment import Rendered
from jobgen.pipeline.parallel import parallel_map
from jobgen.report.strictjson import dumps, listing


def render(difference: ChangeSet) -> str:
    """Every object that changes with every field, and all totals."""
    # Each object is walked again for the lines of its fields, and that is most of the work.
    entries = parallel_map(difference.happened, lambda share: _objects(difference, share))
    jobs, gpus = difference.stopped()
    summary = {
        **{word: difference.count(word) for word in ("added", "removed", "changed")},
        "unchanged": difference.unchanged,
        "effects": {effect.value: count for effect, count in difference.effects().items()},
        "stops": {"jobs": jobs, "gpus": gpus},
    }
    document = {
        "version": "1",
        "base": dumps(difference.old.name),
        "head": dumps(difference.new.name),
        "summary": dumps(summary, indent=None),
        "objects": listing(entries, "    "),
        "totals": listing(map(_total, difference.totals), "    "),
    }
    return "{\n" + ",\n".join(f'  "{key}": {value}' for key, value in document.items()) + "\n}\n"


def _objects(difference: ChangeSet, share: Sequence[Impact]) -> list[dict[str, Any]]:
    return [_object(difference, one) for one in share]


def _object(difference: ChangeSet, one: Impact) -> dict[str, Any]:
    paths = [field.change.path for field in one.fields]
    now = causes(difference.new, one.new, paths) if one.new and paths else {}
    then = causes(difference.old, one.old, paths) if one.old and paths else {}
    return {
        "happening": one.happening,
        "effect": one.outcome.effect.value,
        "why": one.outcome.why,
        "stops": one.stops,
        "env": one.made.env,
        "object": _identity(one.new),
        "was": _identity(one.old),
        "file": one.made.location.file,
        "line": one.made.location.line,
        "before": _footprint(one.before),
        "after": _footprint(one.after),
        "fields": [
            {
                "field": dotted(change.path),
                "pointer": pointer(change.path),
                "op": change.op,
                "old": change.old,
                "new": change.new,
                "effect": outcome.effect.value,
                "why": outcome.why,
                "cause": _cause(now, change.path),
                "was": _cause(then, change.path),
            }
            for change, outcome in one.fields
        ],
    }


def _identity(made: Rendered | None) -> dict[str, str] | None:
    if made is None:
        return None
    identity: Identity = made.identity
    return {
        "apiVersion": identity.api_version,
        "kind": identity.kind,
        "namespace": identity.namespace,
        "name": identity.name,
    }


def _cause(found: dict[FieldPath, Cause], path: FieldPath) -> dict[str, Any] | None:
    if path not in found:
        return None
    location, layer = found[path]
    return {"file": location.file, "line": location.line, "column": location.column, "layer": layer or "jobgen"}


def _footprint(size: ResourceTotals) -> dict[str, Any]:
    return {"gpus": size.gpus, "cpu": format_cpu(size.cpu), "memory": format_memory(size.memory)}


def _total(total: Total) -> dict[str, Any]:
    return {
        "env": total.env,
        "by": total.by,
        "name": total.name,
        "before": _footprint(total.before),
        "after": _footprint(total.after),
    }
