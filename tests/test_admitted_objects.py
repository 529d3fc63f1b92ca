"""Objects as the API server passes them to policies, and expressions that the engine alone cannot evaluate."""

import pytest

from jobgen.check.cel import Expression, Failed, compile_cel, cost
from jobgen.check.cel.interpreter import interpret
from jobgen.check.schema.admitted import UID, compile_admission
from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.check.schema.untrusted import compile_untrusted_admission
from jobgen.model.limits import MAX_CALL_COST
from jobgen.spec.overlay import Cluster


def admit(api_version, kind, spec, **metadata):
    shipped = find_shipped_schema(api_version, kind, Cluster())
    convert = compile_admission(shipped.schema, api_version, kind)
    return convert({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", **metadata}, **spec})


def test_nulls_and_unknown_fields_of_a_custom_resource_are_dropped():
    roles = {"Worker": {"replicas": None, "typo": 1, "template": {"spec": None}}, "Master": None}

    made = admit("kubeflow.org/v1", "PyTorchJob", {"spec": {"pytorchReplicaSpecs": roles}, "status": {"x": 1}})

    assert made["spec"]["pytorchReplicaSpecs"] == {"Worker": {"template": {}}}
    assert "status" not in made


def test_defaults_of_a_custom_resource_are_filled_in():
    port = {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]}
    roles = {"Worker": {"template": {"spec": port}}}

    job = admit("kubeflow.org/v1", "PyTorchJob", {"spec": {"pytorchReplicaSpecs": roles, "runPolicy": {}}})
    train = admit("trainer.kubeflow.org/v1alpha1", "TrainJob", {"spec": {"runtimeRef": {"name": "x"}}})

    assert job["spec"]["runPolicy"] == {"suspend": False}
    containers = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert containers[0]["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert train["spec"]["suspend"] is False
    assert train["spec"]["runtimeRef"]["kind"] == "ClusterTrainingRuntime"


def test_kubernetes_fills_in_its_own_kinds():
    pod = {"containers": [{"name": "a", "image": "x:1", "command": [], "env": None}], "volumes": [{"name": "v"}]}

    made = admit("batch/v1", "Job", {"spec": {"template": {"spec": pod}}})

    spec = made["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"], spec["suspend"]) == (1, 1, 6, False)
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert spec["template"]["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    container = spec["template"]["spec"]["containers"][0]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert "command" not in container
    assert "env" not in container


def test_a_cron_job_has_no_defaults_for_its_jobs():
    template = {"spec": {"template": {"spec": {"containers": []}}}}

    made = admit("batch/v1", "CronJob", {"spec": {"schedule": "@daily", "jobTemplate": template}})

    assert made["spec"]["concurrencyPolicy"] == "Allow"
    assert "backoffLimit" not in made["spec"]["jobTemplate"]["spec"]


def test_the_server_fills_in_metadata():
    metadata = {"name": None, "generateName": "run-", "labels": {}, "annotations": {"a": None}, "resourceVersion": "1"}

    made = admit("v1", "ConfigMap", {}, **metadata)["metadata"]

    assert made["name"] == "run-xxxxx"
    assert (made["uid"], made["annotations"]) == (UID, {"a": ""})
    assert not {"labels", "resourceVersion", "generation"} & made.keys()


@pytest.mark.parametrize("schema", [b"[", b"{", b'{"properties": 3}', b'{"properties": {"spec": {"$ref": "none"}}}'])
def test_with_a_broken_schema_only_metadata_is_converted(schema):
    admit_object = compile_untrusted_admission(schema, "example.com/v1", "Thing")

    made = admit_object({"metadata": {"name": "a", "labels": None}, "spec": {"x": None}})

    assert made["spec"] == {"x": None}
    assert "labels" not in made["metadata"]


EXPRESSIONS = """
    [1, 2, 3].map(x, x * 2).filter(x, x > 2).size() == 2
    {'b': 1, 'a': 2}.all(k, k < 'c') && [1, 2].exists_one(x, x == 2)
    object.spec.items.exists(x, x.name == 'a') && !object.spec.items.all(x, has(x.size))
    object.?spec.?none.orValue('x') == 'x' && optional.of(1).optMap(x, x + 1).value() == 2
    object.spec.items.exists(x, x.size > 1)
    object.spec.items.all(x, x.size > 1)
    'a-b'.split('-') == ['a', 'b'] && 'abc'.substring(1, 3) == 'bc' && quantity('1k').isGreaterThan(quantity('10'))
    duration('60s') == duration('1m') && timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026
    type(object.spec.items) == list && type(1.0) == double && dyn(1) == 1.0
    object.spec.items[0].name + string(object.spec.items.size()) == 'a2' && object.spec['items'][1].size == 3
    object.spec.items.map(x, x.name).join(',') == 'a,b' ? [1, 2].sum() == 3 : false
    {'a': dyn(1), ?'b': object.?none}.size() == 1 && 'x' in ['x', 'y']
    object.none == 1 || true
    object.none == 1
    1 / 0 == 1
    [1, 2, 3].transformList(i, v, i + v) == [1, 3, 5]
"""


@pytest.mark.parametrize("text", [line.strip() for line in EXPRESSIONS.strip().splitlines()])
def test_the_interpreter_agrees_with_the_engine(text):
    data = {"object": {"spec": {"items": [{"name": "a"}, {"name": "b", "size": 3}]}}}
    compiled = compile_cel(text, ("object",))
    assert isinstance(compiled, Expression), compiled

    wanted, found = compiled(data), interpret(compiled._tree(), data, MAX_CALL_COST)

    assert isinstance(wanted, Failed) == isinstance(found, Failed)
    assert isinstance(wanted, Failed) or wanted is found


def loops(depth):
    digits = "[1,2,3,4,5,6,7,8,9,10]"
    return "".join(f"{digits}.all(x{level}, " for level in range(depth)) + "true" + ")" * depth


def test_long_loops_are_evaluated_up_to_the_cost_that_the_server_allows():
    five = compile_cel(loops(5), ())

    assert five({}) is True
    assert "costs more than the API server allows" in interpret(five._tree(), {}, 10_000).message
    assert "cost more than the API server allows" in compile_cel(loops(8), ())({}).message


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("object.a.b == 'x'", 4),
        ("'abc'.contains('b')", 1),
        ("[object.b, object.a].size() == 2", 16),
        ("has(object.a.b)", 2),
    ],
)
def test_costs_are_those_of_the_server(text, total):
    root = compile_cel(text, ("object",))._tree()
    data = {"object": {"a": {"b": "x"}, "b": 1}}

    assert not isinstance(interpret(root, data, total), Failed)
    assert isinstance(interpret(root, data, total - 1), Failed)


def test_optionals_can_be_values():
    assert compile_cel("[optional.of(1), optional.none()].filter(x, x.hasValue()).size() == 1", ())({}) is True
    assert compile_cel("type(optional.none()) == optional_type && has({'a': {}}.?a.b) == false", ())({}) is True


@pytest.mark.parametrize("text", ["int({'a': 'x'}.?a.orValue('0'))", "int(object.?m['a'].orValue(0))"])
def test_a_conversion_fails_for_another_type_than_the_checker_derives(text):
    result = compile_cel(text, ("object",), returns="any")({"object": {"m": {"a": "2"}}})

    assert isinstance(result, Failed)


def test_loops_over_mappings_in_messages_are_in_order():
    data = {"object": dict.fromkeys("hgfedcba", 1)}
    compiled = compile_cel("object.map(k, k).join('')", ("object",), returns="string")

    assert compiled(data) == "abcdefgh"
    assert not cost.is_too_expensive(compiled._tree(), data, cost.measure_all(data))
