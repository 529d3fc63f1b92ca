"""Validate Deployments."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    get_key,
    is_set,
    report_unsupported,
    validate_fields,
)
from jobgen.check.validation.percentages import (
    read_count_or_percentage,
    validate_count_or_percentage,
    validate_count_or_share,
)
from jobgen.check.validation.workloads import REPLICAS, validate_count, validate_integer_annotation, validate_workload
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node

_STRATEGIES = ("RollingUpdate", "Recreate")
_DEFAULT_DEADLINE = 600
_ROLLBACK = "deprecated.deployment.rollback.to"
_DEFAULT_PERCENTAGE = 25


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the strategy, the deadlines, the number of pods, the selector and the template."""
    validate_workload(obj, _SPEC, run)
    _validate_deadline(run)
    if as_text(as_mapping(run.metadata.get("annotations")).get(_ROLLBACK)):
        validate_integer_annotation(_ROLLBACK, run, low=0)


def _validate_deadline(run: Validation) -> None:
    """Validate that a rollout can be ready before it counts as failed."""
    deadline, ready = (run.spec.get(field) for field in ("progressDeadlineSeconds", "minReadySeconds"))
    seconds = as_integer(deadline) if is_set(deadline) else _DEFAULT_DEADLINE
    if seconds is not None and seconds >= 0 and seconds <= (as_integer(ready) or 0):
        message = f"`progressDeadlineSeconds` is `{seconds}`, but must be greater than `minReadySeconds`"
        run.report("out-of-range", message, deadline if is_set(deadline) else ready)


def _validate_strategy(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    strategy = as_mapping(value)
    name, update = as_text(strategy.get("type")), strategy.get("rollingUpdate")
    if name and name not in _STRATEGIES:
        report_unsupported("type", strategy["type"], _STRATEGIES, run)
    elif name == "Recreate":
        if is_set(update):
            message = "`rollingUpdate` cannot be set if `type` is `Recreate`; delete it"
            run.report("invalid-value", message, get_key(strategy, "rollingUpdate"))
    elif isinstance(update, dict):
        validate_fields(update, _ROLLING_UPDATE, run)
        _validate_progress(update, run)


def _validate_progress(update: Mapping[str, Node], run: Validation) -> None:
    """Validate that a rollout can replace a pod."""
    pairs = [(update.get(field), field) for field in ("maxUnavailable", "maxSurge")]
    if all(read_count_or_percentage(value, _DEFAULT_PERCENTAGE) == 0 for value, _ in pairs):
        message = "`maxUnavailable` and `maxSurge` cannot both be 0; raise one of them"
        run.report("out-of-range", message, pairs[0][0])


_ROLLING_UPDATE: ValidatorTable = {"maxUnavailable": validate_count_or_share, "maxSurge": validate_count_or_percentage}
_SPEC: ValidatorTable = {
    **REPLICAS,
    "progressDeadlineSeconds": validate_count,
    "revisionHistoryLimit": validate_count,
    "strategy": _validate_strategy,
}
