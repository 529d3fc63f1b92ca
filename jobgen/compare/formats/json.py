"""The JSON format, for programs: one versioned document; docs/diff_v1.json is its schema."""

from __future__ import annotations

from jobgen.compare.changes import ChangeSet, NotCompared
from jobgen.compare.effects import describe
from jobgen.compare.grouping import ACTIONS
from jobgen.compare.impact import Impact
from jobgen.compare.snapshot import Cause, find_causes
from jobgen.engine.workers import parallel_map
from jobgen.k8s.compare import FieldPath
from jobgen.k8s.resources import ResourceTotals, format_cpu, format_memory
from jobgen.model.data import Plain
from jobgen.model.features import find_part
from jobgen.model.finding import Finding
from jobgen.model.path import format_dotted, format_pointer
from jobgen.reports import to_plain_identity
from jobgen.reports.escape import dump_json, dump_json_list


def render(changes: ChangeSet) -> str:
    """Write every changed object with all its fields, and all totals."""
    # Finding the causes traces every object again; that is most of the work, so it runs in parallel.
    objects = parallel_map(changes.impacts, lambda share: [_describe_impact(changes, one) for one in share])
    jobs, gpus = changes.count_stopped()
    summary: dict[str, Plain] = {
        **{str(action): changes.count(action) for action in ACTIONS},
        "unchanged": changes.unchanged,
        "effects": {effect.value: count for effect, count in changes.count_effects().items()},
        "stops": {"jobs": jobs, "gpus": gpus},
    }
    totals = (
        {**total._asdict(), "before": _describe_resources(total.before), "after": _describe_resources(total.after)}
        for total in changes.totals
    )
    document = {
        "version": "1",
        "base": dump_json(changes.old.name),
        "head": dump_json(changes.new.name),
        "summary": dump_json(summary, indent=None),
        "objects": dump_json_list(objects, "    "),
        "totals": dump_json_list(totals, "    "),
    }
    if changes.queues:
        document["queues"] = dump_json_list(map(find_part("diff.queues.json"), changes.queues), "    ")
    if changes.governance:
        document["governance"] = dump_json_list((each.to_plain() for each in changes.governance), "    ")
    if changes.tree:
        document["tree"] = dump_json_list(map(_describe_tree_fault, changes.tree), "    ")
    if changes.not_compared:
        document["leftOut"] = dump_json_list(map(describe_left_out, changes.not_compared), "    ")
    return "{\n" + ",\n".join(f'  "{key}": {value}' for key, value in document.items()) + "\n}\n"


def _describe_tree_fault(finding: Finding) -> dict[str, Plain]:
    return {
        "file": finding.location.file,
        "line": finding.location.line,
        "rule": finding.rule,
        "severity": finding.severity.value,
        "message": finding.message,
    }


def describe_left_out(each: NotCompared) -> dict[str, Plain]:
    """Describe what is not compared, with the errors that prevent it."""
    return {"side": "base" if each.is_old else "head", **each.left_out.to_plain()}


def _describe_impact(changes: ChangeSet, one: Impact) -> dict[str, Plain]:
    paths = [field.change.path for field in one.fields]
    new_causes = find_causes(changes.new, one.new, paths, one.old) if one.new and paths else {}
    old_causes = find_causes(changes.old, one.old, paths, one.new) if one.old and paths else {}
    source = changes.describe_source(one)
    return {
        "happening": one.action,
        "effect": one.outcome.effect.value,
        "effects": [effect.value for effect in one.effects],
        "why": one.outcome.reason,
        "summary": describe(one, one.before, one.after),
        "stops": one.stops,
        "env": one.current.env,
        "object": to_plain_identity(one.new and one.new.identity),
        "was": to_plain_identity(one.old and one.old.identity),
        "file": one.current.location.file,
        "line": one.current.location.line,
        **({"source": source} if source else {}),
        "before": _describe_resources(one.before),
        "after": _describe_resources(one.after),
        "fields": [
            {
                "field": format_dotted(change.path),
                "pointer": format_pointer(change.path),
                "op": change.op,
                "old": change.old,
                "new": change.new,
                "effect": outcome.effect.value,
                "why": outcome.reason,
                "cause": _describe_cause(new_causes, change.path),
                "was": _describe_cause(old_causes, change.path),
            }
            for change, outcome in one.fields
        ],
    }


def _describe_cause(causes: dict[FieldPath, Cause], path: FieldPath) -> dict[str, Plain] | None:
    if path not in causes:
        return None
    location, layer = causes[path]
    return {"file": location.file, "line": location.line, "column": location.column, "layer": layer or "jobgen"}


def _describe_resources(totals: ResourceTotals) -> dict[str, Plain]:
    return {"gpus": totals.gpus, "cpu": format_cpu(totals.cpu), "memory": format_memory(totals.memory)}
