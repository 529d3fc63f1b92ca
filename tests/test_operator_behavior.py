"""The table of operator behavior, and the CEL transition rules of CRDs."""

import json

import pytest

from jobgen.diff.immutability import find_rejections
from jobgen.diff.operator_behavior import BEHAVIORS, Effect, JobState, predict_outcome


def state_of(behavior):
    """A job that the behavior applies to."""
    operator = behavior.operators.split()[0] if behavior.operators else "other-operator"
    kind = behavior.kinds.split()[0] if behavior.kinds else "Thing"
    return JobState(
        operator,
        kind,
        behavior.span.since,
        suspended=bool(behavior.suspended),
        queued=bool(behavior.queued),
        elastic=bool(behavior.elastic),
        on_both_sides=behavior.on_both_sides is not False,
    )


@pytest.mark.parametrize(
    "behavior",
    BEHAVIORS,
    ids=lambda behavior: f"{behavior.operators or 'any'}:{behavior.paths.split()[0]}:{behavior.effect.value}",
)
def test_every_behavior_can_apply(behavior):
    assert (behavior.effect, behavior.reason) in {
        predict_outcome(path, state_of(behavior)) for path in behavior.paths.split()
    }


@pytest.mark.parametrize(
    ("path", "state", "effect"),
    [
        ("spec/runPolicy/schedulingPolicy/queue", JobState("training-operator", "TFJob", "1.7.0"), Effect.IN_PLACE),
        ("spec/runPolicy/schedulingPolicy/queue", JobState("training-operator", "TFJob", "1.8.0"), Effect.REJECTED),
        (
            "spec/runPolicy/schedulingPolicy/queue",
            JobState("training-operator", on_both_sides=False),
            Effect.IN_PLACE,
        ),
        ("spec/runPolicy/managedBy", JobState("training-operator", "PyTorchJob", "1.9.0"), Effect.IN_PLACE),
        ("spec/runPolicy/managedBy", JobState("training-operator", "TFJob", "1.9.0"), Effect.REJECTED),
        ("spec/runPolicy/backoffLimit", JobState("training-operator", "TFJob"), Effect.IN_PLACE),
        ("spec/runPolicy/backoffLimit", JobState("mpi-operator", "MPIJob"), Effect.NO_EFFECT),
        ("role/template/spec/volumes", JobState("training-operator", "TFJob", queued=True), Effect.NO_EFFECT),
        ("role/template/spec/volumes", JobState("training-operator", "TFJob", suspended=True), Effect.IN_PLACE),
        ("spec/template/spec", JobState("-", "Job"), Effect.REJECTED),
        ("spec/resources/requests/storage", JobState("-", "PersistentVolumeClaim"), Effect.IN_PLACE),
        ("spec/accessModes", JobState("-", "PersistentVolumeClaim"), Effect.REJECTED),
        ("spec/template", JobState("-", "Deployment"), Effect.RESTART),
        ("data/x", JobState("-", "ConfigMap"), Effect.IN_PLACE),
        ("role/template/spec", JobState("other-operator", "OtherJob"), Effect.NO_EFFECT),
    ],
)
def test_predicted_effect(path, state, effect):
    assert predict_outcome(path, state).effect is effect


def crd(**properties):
    return json.dumps({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}).encode()


def rule(text, message=""):
    return {"x-kubernetes-validations": [{"rule": text, **({"message": message} if message else {})}]}


def test_transition_rules_need_both_sides():
    schema = crd(a={"type": "integer", **rule("self == oldSelf", "no")})

    assert find_rejections(schema, {"spec": {"a": 1}}, {"spec": {"a": 1}}) == []
    assert find_rejections(schema, {"spec": {}}, {"spec": {"a": 1}}) == []
    assert find_rejections(schema, {"spec": {"a": 1}}, {"spec": {}}) == []
    assert find_rejections(schema, {"spec": {"a": 1}}, {"spec": {"a": 2}}) == [(("spec", "a"), "no")]


def test_rules_are_evaluated_as_cel():
    schema = crd(a={"type": "integer", **rule("self >= oldSelf")})

    assert find_rejections(schema, {"spec": {"a": 1}}, {"spec": {"a": 2}}) == []
    assert find_rejections(schema, {"spec": {"a": 2}}, {"spec": {"a": 1}}) == [
        (("spec", "a"), "failed rule: `self >= oldSelf`")
    ]


def test_defaulted_values_are_no_change():
    schema = crd(
        ref={
            "type": "object",
            "properties": {"kind": {"type": "string", "default": "Runtime"}, "name": {"type": "string"}},
            **rule("self == oldSelf"),
        }
    )
    old, new = {"spec": {"ref": {"name": "x"}}}, {"spec": {"ref": {"name": "x", "kind": "Runtime"}}}

    assert find_rejections(schema, old, new) == []


def test_list_items_are_compared_by_key():
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "v": {"type": "integer", **rule("self == oldSelf")}},
    }
    keyed = crd(a={"type": "array", "x-kubernetes-list-map-keys": ["name"], "items": item})
    loose = crd(a={"type": "array", "items": item})
    old = {"spec": {"a": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]}}
    new = {"spec": {"a": [{"name": "y", "v": 3}, {"name": "x", "v": 1}]}}

    assert [str(refusal.path[2]) for refusal in find_rejections(keyed, old, new)] == ["[name=y]"]
    assert find_rejections(loose, old, new) == []


def test_schema_without_transition_rules_is_skipped():
    assert find_rejections(b"{}", {"a": 1}, {"a": 2}) == []
    assert find_rejections(b"", {"a": 1}, {"a": 2}) == []
