"""What Kueue refuses of its own Configuration, which a ConfigMap has as text: the manager does not start with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jobgen.k8s.kueue_integrations import INTEGRATIONS
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.place import At, Place, find_at
from jobgen.model.suggest import did_you_mean
from jobgen.model.times import parse_duration

_WAIT: Final = "waitForPodsReady"
# The fields of the Configuration, `v1beta1` and `v1beta2` together, and below those that are written often.
_FIELDS: Final[Mapping[str, Any]] = {
    "": """apiVersion kind namespace webhook leaderElection metrics health pprofBindAddress controller tls
        manageJobsWithoutQueueName managedJobsNamespaceSelector internalCertManagement waitForPodsReady clientConnection
        integrations queueVisibility visibilityServer multiKueue fairSharing admissionFairSharing resources featureGates
        objectRetentionPolicies""",
    _WAIT: "enable timeout blockAdmission requeuingStrategy recoveryTimeout",
    f"{_WAIT}.requeuingStrategy": "timestamp backoffLimitCount backoffBaseSeconds backoffMaxSeconds",
    "integrations": "frameworks externalFrameworks podOptions labelKeysToCopy",
    "fairSharing": "enable preemptionStrategies",
    "admissionFairSharing": "usageHalfLifeTime usageSamplingInterval resourceWeights",
    "objectRetentionPolicies.workloads": "afterFinished afterDeactivatedByKueue",
}
_FORMER: Final = "kubeflow.org/mxjob"
"""What releases before 0.10 manage."""
_FRAMEWORKS: Final = frozenset((_FORMER, *(each.framework for each in INTEGRATIONS.values())))
_FINAL, _INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
_STRATEGIES: Final = ([_FINAL], [_INITIAL], [_FINAL, _INITIAL])
_TIMESTAMPS: Final = ("Creation", "Eviction")
_COUNTS: Final = ("backoffLimitCount", "backoffBaseSeconds", "backoffMaxSeconds")
_STARTS: Final = "30s"
"""Less than any pod with GPUs needs to pull its image and to become ready."""

Found = Iterator[tuple[Place, str, bool]]
"""A place, what is wrong with it, and whether Kueue certainly refuses it."""


def is_configuration(data: Plain) -> bool:
    """Return True if the text of a ConfigMap is the Configuration of Kueue."""
    found = as_mapping(data)
    is_of_kueue = as_text(found.get("apiVersion")).startswith("config.kueue.")
    return is_of_kueue and as_text(found.get("kind")) == "Configuration"


def find_faults(data: Mapping[str, Plain]) -> Found:
    """Yield what Kueue refuses of its Configuration, or what can let no job run."""
    for path, names in _FIELDS.items():
        part = get_path(data, *path.split(".")) if path else data
        known = names.split()
        for key in as_mapping(part):
            name = str(key)
            if name not in known:
                where = f"`{path}`" if path else "the Configuration of Kueue"
                hint = did_you_mean(name, known) or "; remove it"
                yield (
                    At(part, key, is_key=True),
                    f"`{name}` is not a field of {where}, and the manager does not start with it{hint}",
                    True,
                )
    yield from _check_frameworks(as_mapping(data.get("integrations")))
    yield from _check_wait(as_mapping(data.get(_WAIT)))
    yield from _check_numbers(data)
    yield from _check_sharing(data)


def _check_frameworks(integrations: Mapping[str, Plain]) -> Found:
    frameworks = as_list(integrations.get("frameworks"))
    for at, node in enumerate(frameworks):
        name = as_text(node)
        if name and name in map(as_text, frameworks[:at]):
            yield (
                At(frameworks, at),
                f"`{name}` is listed twice, and the manager does not start with it; remove one of them",
                True,
            )
            continue
        if name and name not in _FRAMEWORKS:
            hint = did_you_mean(name, sorted(_FRAMEWORKS)) or "; remove it, or list the kind in `externalFrameworks`"
            # A later release may have more.
            yield (
                At(frameworks, at),
                f"`{name}` is not a framework of Kueue, and the manager does not start with it{hint}",
                False,
            )


def _check_wait(wait: Mapping[str, Plain]) -> Found:
    if wait.get("enable") is False:
        return
    timeout = parse_duration(as_text(wait.get("timeout")))
    least = parse_duration(_STARTS)
    if timeout is not None and least is not None and timeout < least:
        message = (
            f"`timeout: {as_text(wait['timeout'])}` of `{_WAIT}` ends before the pods of a job are ready, so Kueue"
        )
        yield (
            At(wait, "timeout"),
            f"{message} evicts each job again and again; write some minutes, such as `10m`",
            False,
        )
    strategy = as_mapping(wait.get("requeuingStrategy"))
    for field in _COUNTS:
        number = as_integer(strategy.get(field))
        if number is not None and number < 0:
            yield At(strategy, field), f"`{field}` is {number}, and must not be negative; write a greater number", True
    if as_integer(strategy.get("backoffLimitCount")) == 0:
        message = "`backoffLimitCount: 0` deactivates a job whose pods are late once, so it never runs"
        yield At(strategy, "backoffLimitCount"), f"{message}; write a greater number, or remove it", False
    stamp = strategy.get("timestamp")
    if stamp is not None and as_text(stamp) not in _TIMESTAMPS:
        yield At(strategy, "timestamp"), f"`timestamp` is `{as_text(stamp)}`; write `Creation` or `Eviction`", True


# Lengths of time that must not be negative.
_TIMES: Final = (
    f"{_WAIT}.timeout",
    f"{_WAIT}.recoveryTimeout",
    "admissionFairSharing.usageHalfLifeTime",
    "multiKueue.gcInterval",
    "multiKueue.workerLostTimeout",
    "objectRetentionPolicies.workloads.afterFinished",
    "objectRetentionPolicies.workloads.afterDeactivatedByKueue",
)
_TRANSFORMED: Final = ("Retain", "Replace")


def _check_numbers(data: Mapping[str, Plain]) -> Found:
    for path in _TIMES:
        node = get_path(data, *path.split("."))
        if as_text(node).startswith("-") and parse_duration(as_text(node)[1:]):
            message = f"`{path}` is `{as_text(node)}`, and the manager does not start with a negative length of time"
            yield find_at(data, *path.split(".")), f"{message}; write a positive one", True
    seen: set[str] = set()
    for item in map(as_mapping, as_list(get_path(data, "resources", "transformations"))):
        strategy, name = item.get("strategy"), as_text(item.get("input"))
        if strategy is not None and as_text(strategy) not in _TRANSFORMED:
            hint = did_you_mean(as_text(strategy), [*_TRANSFORMED]) or "; write `Retain` or `Replace`"
            yield (
                At(item, "strategy"),
                f"`{as_text(strategy)}` is not a strategy, and the manager does not start with it{hint}",
                True,
            )
        if name and name in seen:
            message = f"`{name}` is transformed twice, and the manager does not start with it"
            yield At(item, "input"), f"{message}; join the two entries", True
        seen.add(name)


def _check_sharing(data: Mapping[str, Plain]) -> Found:
    strategies = get_path(data, "fairSharing", "preemptionStrategies")
    written = [as_text(each) for each in as_list(strategies)]
    if written and written not in _STRATEGIES:
        wrong = next((at for at, name in enumerate(written) if name not in (_FINAL, _INITIAL)), None)
        if wrong is not None:
            message = f"`{written[wrong]}` is not a strategy of fair sharing, and the manager does not start with it"
            place = At(strategies, wrong)
            yield place, f"{message}{did_you_mean(written[wrong], [_FINAL, _INITIAL]) or f'; write `{_FINAL}`'}", True
        else:
            place = At(data["fairSharing"], "preemptionStrategies", is_key=True)
            yield place, f"the strategies are in an order that Kueue refuses; write `[{_FINAL}, {_INITIAL}]`", True
