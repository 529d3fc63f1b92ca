"""What the webhook of Katib rejects: Experiments whose counts, parameters or trial template do not fit together."""

from __future__ import annotations

import json

from jobgen.check.operators.checks import REJECTED, Check, Checks, Violations, spec_place
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import untraced
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean

OPERATOR = "katib"

_MAX_NAME = 40
_DEFAULT_PARALLEL = 3
"""The trials that run at the same time, if the Experiment does not say how many."""
_USE = lazy_pattern(r"\$\{trialParameters\.(.+?)\}")
_RANGES = frozenset(("double", "int"))
_LISTS = frozenset(("categorical", "discrete"))


def _check_name(manifest: Manifest) -> Violations:
    name = manifest.name
    if name and (len(name) > _MAX_NAME or not name[0].isalpha()):
        message = Sentence(
            "`{}` must begin with a letter, and have at most {} characters; trials begin with it", name, _MAX_NAME
        )
        yield Violation(At(manifest.metadata, "name"), message)


def _check_counts(manifest: Manifest) -> Violations:
    spec = manifest.spec
    most, parallel, failed = (
        as_integer(spec.get(name)) for name in ("maxTrialCount", "parallelTrialCount", "maxFailedTrialCount")
    )
    for name, least in (("maxFailedTrialCount", 0), ("maxTrialCount", 1), ("parallelTrialCount", 1)):
        count = as_integer(spec.get(name))
        if count is not None and count < least:
            yield Violation(At(spec, name), Sentence("`{}` must be at least {}, got `{}`", name, least, count))
            return
    if most is None:
        return
    if failed is not None and failed > most:
        message = Sentence(
            "`maxFailedTrialCount` is `{}`, more than `maxTrialCount`, which is `{}`; lower it", failed, most
        )
        yield Violation(At(spec, "maxFailedTrialCount"), message, ((At(spec, "maxTrialCount"), "the limit"),))
    if parallel is not None and parallel > most:
        message = Sentence(
            "`parallelTrialCount` is `{}`, more than `maxTrialCount`, which is `{}`; lower it", parallel, most
        )
        yield Violation(At(spec, "parallelTrialCount"), message, ((At(spec, "maxTrialCount"), "the limit"),))
    elif "parallelTrialCount" not in spec and most < _DEFAULT_PARALLEL:
        message = Sentence(
            "`maxTrialCount` is `{}`, less than `parallelTrialCount`, which is {} by default; write "
            "`parallelTrialCount: {}`",
            most,
            _DEFAULT_PARALLEL,
            most,
        )
        yield Violation(At(spec, "maxTrialCount"), message)


def _check_parameters(manifest: Manifest) -> Violations:
    spec = manifest.spec
    parameters = as_list(spec.get("parameters"))
    if not parameters and "nasConfig" not in spec:
        yield Violation(spec_place(manifest, "parameters"), "an Experiment needs `parameters` or `nasConfig`; add one")
    if parameters and spec.get("nasConfig"):
        message = Sentence("an Experiment has either `parameters` or `nasConfig`; remove one")
        yield Violation(At(spec, "nasConfig", is_key=True), message)
    for parameter in map(as_mapping, parameters):
        space, kind = as_mapping(parameter.get("feasibleSpace")), as_text(parameter.get("parameterType"))
        name = as_text(parameter.get("name"))
        if not space:
            yield Violation(
                find_at(parameter, "name", is_key=True),
                Sentence("the parameter `{}` needs a `feasibleSpace`; add it", name),
            )
        elif kind in _RANGES and not (as_text(space.get("min")) and as_text(space.get("max"))):
            message = Sentence(
                "the parameter `{}` of type `{}` needs `min` and `max` in `feasibleSpace`; add them", name, kind
            )
            yield Violation(At(parameter, "feasibleSpace", is_key=True), message)
        elif kind in _RANGES and as_list(space.get("list")):
            message = Sentence("a parameter of type `{}` has no `list`; write `min` and `max`", kind)
            yield Violation(At(space, "list", is_key=True), message)
        elif kind in _LISTS and (wrong := next((key for key in ("max", "min", "step") if key in space), "")):
            yield Violation(
                At(space, wrong, is_key=True),
                Sentence("a parameter of type `{}` has no `{}`; write a `list`", kind, wrong),
            )


def _check_objective(manifest: Manifest) -> Violations:
    objective = as_mapping(manifest.spec.get("objective"))
    name = as_text(objective.get("objectiveMetricName"))
    others = as_list(objective.get("additionalMetricNames"))
    for index, other in enumerate(others):
        if name and as_text(other) == name:
            message = Sentence(
                "`{}` is the metric of the objective, so it cannot be in `additionalMetricNames`; remove it", name
            )
            yield Violation(At(others, index), message)


def _check_trial(manifest: Manifest) -> Violations:
    """Check that each parameter of trials is set by one of the experiment, and is used in the trial."""
    template = as_mapping(manifest.spec.get("trialTemplate"))
    parameters = [as_mapping(each) for each in as_list(template.get("trialParameters"))]
    known = [as_text(as_mapping(each).get("name")) for each in as_list(manifest.spec.get("parameters"))]
    trial = as_mapping(template.get("trialSpec"))
    used = set(_USE.findall(json.dumps(untraced(trial), default=str)))
    names: list[str] = []
    for parameter in parameters:
        name, reference = (as_text(parameter.get(key)) for key in ("name", "reference"))
        if not name or not reference:
            continue
        if name in names:
            yield Violation(
                At(parameter, "name"), Sentence("`{}` occurs twice in `trialParameters`; use different names", name)
            )
        if known and "${trialSpec." not in reference and reference not in known:
            message = Sentence("the Experiment has no parameter `{}`", reference)
            yield Violation(
                At(parameter, "reference"), Sentence("{}{}", message, did_you_mean(reference, known) or "; add it")
            )
        if trial and name not in used:
            message = Sentence(
                "no text of `trialSpec` uses `trialParameters.{}`; use it there, or remove it here", name
            )
            yield Violation(At(parameter, "name"), message)
        names.append(name)
    missing = next(iter(sorted(used - set(names))), "") if parameters else ""
    if missing:
        message = Sentence("`trialSpec` uses `trialParameters.{}`, which `trialParameters` does not list", missing)
        yield Violation(
            find_at(template, "trialParameters", is_key=True),
            Sentence("{}{}", message, did_you_mean(missing, names) or "; add it"),
        )
    metadata = as_mapping(trial.get("metadata"))
    for key in ("name", "namespace"):
        if as_text(metadata.get(key)):
            message = Sentence("Katib sets the `{}` of trials, and rejects one in `trialSpec`; remove it", key)
            yield Violation(At(metadata, key), message)


CHECKS: Checks = {
    "Experiment": (
        Check(REJECTED, _check_name),
        Check(REJECTED, _check_counts),
        Check(REJECTED, _check_parameters),
        Check(REJECTED, _check_objective),
        Check(REJECTED, _check_trial),
    )
}
