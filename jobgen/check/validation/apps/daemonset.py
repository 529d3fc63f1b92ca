"""Validate DaemonSets."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, ValidatorTable, report_unsupported, validate_fields
from jobgen.check.validation.percentages import read_count_or_percentage, validate_count_or_share
from jobgen.check.validation.workloads import validate_count, validate_integer_annotation, validate_workload
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

_STRATEGIES = ("RollingUpdate", "OnDelete")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the update strategy, the selector and the template."""
    validate_workload(obj, _SPEC, run)
    validate_integer_annotation("deprecated.daemonset.template.generation", run)


def _validate_strategy(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    strategy = as_mapping(value)
    name, update = as_text(strategy.get("type")), strategy.get("rollingUpdate")
    if name and name not in _STRATEGIES:
        report_unsupported("type", strategy["type"], _STRATEGIES, run)
    elif name != "OnDelete" and isinstance(update, dict):
        validate_fields(update, _ROLLING_UPDATE, run)
        _validate_progress(update, run)


def _validate_progress(update: Mapping[str, Node], run: Validation) -> None:
    """Validate that an update either deletes pods first or creates them first."""
    unavailable = read_count_or_percentage(update.get("maxUnavailable"), 1)
    surge = read_count_or_percentage(update.get("maxSurge"), 0)
    if unavailable is None or surge is None:
        return
    if unavailable and surge:
        message = "`maxSurge` requires `maxUnavailable: 0`; set it, or delete `maxSurge`"
        run.report("out-of-range", message, update.get("maxSurge"))
    elif not unavailable and not surge:
        message = "`maxUnavailable` and `maxSurge` cannot both be 0; raise one of them"
        run.report("out-of-range", message, update.get("maxUnavailable"))


_ROLLING_UPDATE: ValidatorTable = {"maxUnavailable": validate_count_or_share, "maxSurge": validate_count_or_share}
_SPEC: ValidatorTable = {
    "minReadySeconds": validate_count,
    "revisionHistoryLimit": validate_count,
    "updateStrategy": _validate_strategy,
}
