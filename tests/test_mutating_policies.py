"""MutatingAdmissionPolicies: their patches, their order, and what validating policies and `explain` see of them."""

import pytest

from jobgen.api.explain import explain
from jobgen.check.checker import Checker
from jobgen.check.policy import ClusterFacts, PolicyEvaluator, compile_policies
from jobgen.check.policy.mutate import PatchError, apply_json_patch, check_atomics, merge_configuration
from jobgen.cli.commands.explain import explain_name
from jobgen.rendering import config
from jobgen.repo.layout import own_layers

GROUP = "admissionregistration.k8s.io/v1"
RULES = {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]}


def mutating(name, *mutations, **spec):
    """A mutating policy and its binding."""
    listed = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
        if text.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        for text in mutations
    ]
    head = {"reinvocationPolicy": "Never", "failurePolicy": "Fail", "matchConstraints": RULES}
    return [
        {
            "apiVersion": GROUP,
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {**head, "mutations": listed, **spec},
        },
        {
            "apiVersion": GROUP,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name},
        },
    ]


def validating(expression):
    spec = {"matchConstraints": RULES, "validations": [{"expression": expression}]}
    return [
        {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "v"}, "spec": spec},
        {
            "apiVersion": GROUP,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "v"},
            "spec": {"policyName": "v", "validationActions": ["Deny"]},
        },
    ]


def evaluate(documents, obj, tmp_path):
    """The messages about an object, and the object after all mutations."""
    policies, problems = compile_policies(documents)
    assert problems == []
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    project = config.load_own(tmp_path)
    evaluator = PolicyEvaluator(policies, ClusterFacts())
    checker = Checker(own_layers(tmp_path), project.kinds, project.environment("", []).cluster, (), evaluator)
    made = checker.mutate(obj)
    problems = [*made.failures, *checker.evaluate_policies(made.object)]
    return [str(problem.sentence) for problem in problems], made.object


def config_map(**fields):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **fields}


def test_validating_policies_see_what_mutating_ones_made(tmp_path):
    label = mutating("m", 'Object{metadata: Object.metadata{labels: Object.metadata.labels{team: "x"}}}')
    check = validating("object.metadata.labels.team == 'x'")

    assert evaluate([*label, *check], config_map(), tmp_path)[0] == []
    assert len(evaluate(check, config_map(), tmp_path)[0]) == 1


def test_optional_fields_are_set_if_they_have_a_value(tmp_path):
    text = "Object{data: Object.data{?x: object.?data.y, ?z: object.?data.none}}"

    assert evaluate(mutating("m", text), config_map(data={"y": "1"}), tmp_path)[1]["data"] == {"y": "1", "x": "1"}


def test_policies_are_applied_in_the_order_of_their_names(tmp_path):
    later = mutating("b", '[JSONPatch{op: "replace", path: "/data/x", value: object.data.x + "b"}]')
    first = mutating("a", '[JSONPatch{op: "add", path: "/data", value: {"x": "a"}}]')

    assert evaluate([*later, *first], config_map(), tmp_path)[1]["data"] == {"x": "ab"}


def test_a_policy_is_reinvoked_if_a_later_one_changed_the_object(tmp_path):
    count = '[JSONPatch{op: "add", path: "/data", value: {"x": has(object.data) ? object.data.x + "1" : "1"}}]'
    first = mutating("a", count, reinvocationPolicy="IfNeeded")
    later = mutating("b", '[JSONPatch{op: "add", path: "/metadata/labels", value: {"l": "1"}}]')

    assert evaluate([*first, *later], config_map(), tmp_path)[1]["data"] == {"x": "11"}


def test_conditions_variables_and_params_apply(tmp_path):
    policy, binding = mutating(
        "m",
        '[JSONPatch{op: "add", path: "/metadata/labels", value: {"t": variables.team}}]',
        matchConditions=[{"name": "c", "expression": "object.metadata.name == 'a'"}],
        variables=[{"name": "team", "expression": "params.data.team"}],
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    binding["spec"]["paramRef"] = {"name": "p", "parameterNotFoundAction": "Deny"}
    param = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"team": "x"}}

    assert evaluate([policy, binding, param], config_map(), tmp_path)[1]["metadata"]["labels"] == {"t": "x"}
    other = config_map(metadata={"name": "b"})
    assert evaluate([policy, binding, param], other, tmp_path) == ([], other)


def test_a_policy_for_another_version_reads_and_changes_the_object_in_it(tmp_path):
    rules = {**RULES["resourceRules"][0], "apiGroups": ["kueue.x-k8s.io"], "apiVersions": ["v1beta1"]}
    text = '[JSONPatch{op: "add", path: "/metadata/labels", value: {"v": object.apiVersion.split("/")[1]}}]'
    obj = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "a"}}

    made = evaluate(mutating("m", text, matchConstraints={"resourceRules": [rules]}), obj, tmp_path)[1]

    assert (made["apiVersion"], made["metadata"]["labels"]) == ("kueue.x-k8s.io/v1beta2", {"v": "v1beta1"})


def test_containers_are_merged_by_name(tmp_path):
    text = "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', image: 'y'}]}}"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "b", "image": "z"}, {"name": "a", "image": "x", "tty": True}]},
    }

    made = evaluate(mutating("m", text), pod, tmp_path)[1]["spec"]["containers"]

    assert [(one["name"], one["image"], one.get("tty")) for one in made] == [("b", "z", None), ("a", "y", True)]


def test_whether_a_policy_matches_is_decided_before_any_is_applied(tmp_path):
    first = mutating("a", '[JSONPatch{op: "add", path: "/metadata/labels", value: {"l": "1"}}]')
    selects = {**RULES, "objectSelector": {"matchLabels": {"l": "1"}}}
    later = mutating("b", '[JSONPatch{op: "add", path: "/data", value: {"x": "1"}}]', matchConstraints=selects)

    assert "data" not in evaluate([*first, *later], config_map(), tmp_path)[1]


def test_conditions_read_what_earlier_policies_made(tmp_path):
    first = mutating("a", '[JSONPatch{op: "add", path: "/data", value: {"x": "1"}}]')
    condition = [{"name": "c", "expression": "has(object.data)"}]
    later = mutating("b", '[JSONPatch{op: "add", path: "/data/y", value: "2"}]', matchConditions=condition)

    assert evaluate([*first, *later], config_map(), tmp_path)[1]["data"] == {"x": "1", "y": "2"}


def test_only_policies_that_ask_for_it_are_invoked_again(tmp_path):
    count = '[JSONPatch{op: "add", path: "/data/%s", value: object.data.%s + "1"}]'
    once, twice = mutating("a", count % ("x", "x")), mutating("b", count % ("y", "y"), reinvocationPolicy="IfNeeded")

    made = evaluate([*once, *twice], config_map(data={"x": "", "y": ""}), tmp_path)[1]

    assert made["data"] == {"x": "1", "y": "11"}


def test_a_policy_whose_conditions_did_not_match_is_not_invoked_again(tmp_path):
    text = '[JSONPatch{op: "add", path: "/data/y", value: "2"}]'
    condition = [{"name": "c", "expression": "has(object.data)"}]
    first = mutating("a", text, matchConditions=condition, reinvocationPolicy="IfNeeded")
    later = mutating("b", '[JSONPatch{op: "add", path: "/data", value: {"x": "1"}}]')

    assert evaluate([*first, *later], config_map(), tmp_path)[1]["data"] == {"x": "1"}
    assert evaluate([*first, *later], config_map(data={"z": "3"}), tmp_path)[1]["data"] == {"x": "1", "y": "2"}


def test_a_mutation_that_fails_does_not_stop_the_next(tmp_path):
    broken, good = '[JSONPatch{op: "remove", path: "/x"}]', '[JSONPatch{op: "add", path: "/data", value: {"y": "2"}}]'

    messages, made = evaluate(mutating("m", broken, good), config_map(), tmp_path)

    assert messages == ["policy `m` could not be applied: there is no `/x`"]
    assert made["data"] == {"y": "2"}


def test_params_that_are_missing_and_conditions_that_fail_deny_the_object(tmp_path):
    text = '[JSONPatch{op: "add", path: "/data", value: {"x": "1"}}]'
    policy, binding = mutating("m", text, paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    binding["spec"]["paramRef"] = {"name": "p", "parameterNotFoundAction": "Deny"}
    failing = mutating("m", text, matchConditions=[{"name": "c", "expression": "object.none == 1"}])

    reason = "binding `m` requires a ConfigMap named `p`, which does not exist in namespace `default`"
    missing = f"policy `m` could not be applied: {reason}; add it to policies/params/"
    assert evaluate([policy, binding], config_map(), tmp_path) == ([missing], config_map())
    assert evaluate(failing, config_map(), tmp_path)[0] == ["policy `m` could not be applied: no such key: `none`"]
    policy["spec"]["failurePolicy"] = failing[0]["spec"]["failurePolicy"] = "Ignore"
    assert evaluate([policy, binding], config_map(), tmp_path) == ([], config_map())
    assert evaluate(failing, config_map(), tmp_path) == ([], config_map())


def test_later_policies_see_the_defaults_of_what_was_added(tmp_path):
    added = '[JSONPatch{op: "add", path: "/spec/containers/-", value: {"name": "b", "image": "x:1"}}]'
    check = validating("object.spec.containers[1].imagePullPolicy == 'IfNotPresent'")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "image": "x:1"}]},
    }

    messages, made = evaluate([*mutating("m", added), *check], pod, tmp_path)

    assert messages == []
    assert made["spec"]["containers"][1] == {"name": "b", "image": "x:1"}


def test_variables_may_be_optionals_and_their_errors_are_named(tmp_path):
    text = '[JSONPatch{op: "add", path: "/data", value: {"x": variables.v.orValue("none")}}]'
    optional = mutating("m", text, variables=[{"name": "v", "expression": "object.metadata.?labels.a"}])
    failing = mutating(
        "m", text.replace('.orValue("none")', ""), variables=[{"name": "v", "expression": "object.none"}]
    )

    assert evaluate(optional, config_map(), tmp_path)[1]["data"] == {"x": "none"}
    assert evaluate(failing, config_map(), tmp_path)[0] == ["policy `m` could not be applied: no such key: `none`"]


def test_two_policies_of_one_name_are_an_error():
    text = '[JSONPatch{op: "remove", path: "/data"}]'

    policies, problems = compile_policies([*mutating("m", text), mutating("m", text)[0]])

    assert [str(problem.sentence) for problem in problems] == ["there are two policies named `m`"]
    assert len(policies.mutating) == 1


EMPTY = 'JSONPatch{op: "add", path: "/data", value: {"a": "b"}}'
COPIES = ", ".join([EMPTY, *(f'JSONPatch{{op: "copy", from: "/data", path: "/data/x{n}"}}' for n in range(40))])
DEEP = ", ".join(f'JSONPatch{{op: "add", path: "/data{"/a" * n}", value: {{"b": "c"}}}}' for n in range(120))
HOSTILE = [
    (f"[{COPIES}]", "`copy` operations add more than 100000 values"),
    (f"[{DEEP}]", "the object would be nested more than 100 levels deep"),
    ('[JSONPatch{op: "replace", path: "", value: "x"}]', "the result is not an object"),
    ('[JSONPatch{op: "replace", path: "/kind", value: "Secret"}]', "`kind` cannot be changed"),
    ('[JSONPatch{op: "add", path: "/data", value: {"x": double("NaN")}}]', "cannot be written as JSON"),
    ('[JSONPatch{op: "add", path: "/data/x/y", value: 1}]', "there is no `/data/x/y`"),
    ('[JSONPatch{op: "add", path: "data", value: 1}]', "`data` is not a JSON pointer"),
    ("Object{dat: Object.dat{x: '1'}}", "there is no field `dat`"),
    ("Object{immutable: 'yes'}", "`immutable` must be of type `boolean`"),
    ("Object{data: Object.wrong{x: '1'}}", "`Object.wrong` is not the type of this field; use `Object.data`"),
    ("Object{data: object.metadata.name}", "`data` must be of type `object`"),
]


@pytest.mark.parametrize(("text", "reason"), HOSTILE)
def test_hostile_and_wrong_patches_fail_for_the_object_alone(text, reason, tmp_path):
    good = mutating("n", '[JSONPatch{op: "add", path: "/data", value: {"y": "2"}}]')

    messages, made = evaluate([*mutating("m", text), *good], config_map(), tmp_path)

    assert len(messages) == 1
    assert reason in messages[0]
    assert made["data"] == {"y": "2"}


def test_copies_of_deep_values_fail():
    deep = [{"op": "add", "path": "/a" + "/a" * n, "value": {}} for n in range(1200)]

    with pytest.raises(PatchError, match="nested more than 100 levels"):
        apply_json_patch({}, [*deep, {"op": "copy", "from": "/a", "path": "/b"}])


def test_mutations_that_double_a_text_fail_when_it_is_too_long(tmp_path):
    double = '[JSONPatch{op: "replace", path: "/data/x", value: object.data.x + object.data.x}]'

    messages, made = evaluate(mutating("m", *[double] * 14), config_map(data={"x": "y" * 1000}), tmp_path)

    reason = "the object would have more than 3145728 characters"
    assert messages == [f"policy `m` could not be applied: {reason}"] * 3
    assert len(made["data"]["x"]) == 1000 * 2**11


def test_of_many_failures_some_are_reported(tmp_path):
    broken = '[JSONPatch{op: "remove", path: "/x"}]'

    assert len(evaluate(mutating("m", *[broken] * 150), config_map(), tmp_path)[0]) == 100


def test_expressions_that_grow_or_cost_too_much_fail(tmp_path):
    large = config_map(data={f"k{n}": "x" * 50 for n in range(2000)})
    loop = "object.data.map(a, object.data.map(b, object.data.map(c, a + b + c)))"
    text = f'[JSONPatch{{op: "add", path: "/metadata/labels", value: {{"x": string(size({loop}))}}}}]'

    [message], made = evaluate(mutating("m", text), large, tmp_path)

    assert "it can cost more than the API server allows" in message
    assert made == large


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[JSONPatch{op: "remove", path: "/data/x"}]', "there is no `/data/x`"),
        ('[JSONPatch{op: "add", path: "/data", value: object.none}]', "no such key: `none`"),
    ],
)
def test_a_patch_that_fails_denies_the_object_unless_failures_are_ignored(text, reason, tmp_path):
    assert evaluate(mutating("m", text), config_map(), tmp_path)[0] == [f"policy `m` could not be applied: {reason}"]
    assert evaluate(mutating("m", text, failurePolicy="Ignore"), config_map(), tmp_path)[0] == []


def test_an_invalid_policy_is_reported_and_others_are_evaluated(tmp_path):
    broken, good = mutating("a", "[JSONPatch{typo: 1}]"), validating("false")

    policies, problems = compile_policies([*broken, *good])

    assert [problem.rule for problem in problems] == ["invalid-policy"]
    assert len(policies.policies) == 1


@pytest.mark.parametrize("value", [None, 3, [], "x", {"spec": None}, {"spec": {"mutations": 3}}, {"metadata": []}])
def test_malformed_policies_yield_problems(value):
    fields = value if isinstance(value, dict) else {"spec": value}
    document = {"apiVersion": GROUP, "kind": "MutatingAdmissionPolicy", **fields}

    _, problems = compile_policies([document])

    assert {problem.rule for problem in problems} == {"invalid-policy"}


PATCHES = [
    ({"a": [1, 2]}, [{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
    ({"a": [1, 2]}, [{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
    ({"a/b": 1}, [{"op": "move", "from": "/a~1b", "path": "/c"}], {"c": 1}),
    ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/a"}], {}),
    ({"a": 1}, [{"op": "remove", "path": "/a"}, {"op": "test", "path": "/b", "value": 1}], {"a": 1}),
    # What the API server's library does beyond the standard.
    ({"a": 1}, [{"op": "replace", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ({"a": 1}, [{"op": "copy", "from": "/none", "path": "/b"}], {"a": 1, "b": None}),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
    ({"a": [1, 2]}, [{"op": "add", "path": "/a/-1", "value": 3}], {"a": [1, 2, 3]}),
    ({"a": [1, 2]}, [{"op": "replace", "path": "/a/+1", "value": 3}], {"a": [1, 3]}),
    ({"a": 1}, [{"op": "add", "path": "x/b", "value": 2}], {"a": 1, "b": 2}),
    ({"a": 1}, [{"op": "test", "path": "", "value": {"a": 1}}, {"op": "remove", "path": "/a"}], {}),
    (
        {"a": 1},
        [{"op": "test", "path": "/b", "value": None}, {"op": "add", "path": "/b", "value": 2}],
        {"a": 1, "b": 2},
    ),
]


@pytest.mark.parametrize(("obj", "patch", "expected"), PATCHES)
def test_json_patches(obj, patch, expected):
    assert apply_json_patch(obj, patch) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/b/c", "value": 2},
        {"op": "move", "from": "/a", "path": "/a/b"},
        {"op": "move", "from": "/b", "path": "/c"},
        {"op": "remove", "path": "/b"},
        {"op": "replace", "path": "/l/1", "value": 1},
        {"op": "add", "path": "/l/-3", "value": 1},
        {"op": "add", "path": "b", "value": 1},
        {"op": "grow", "path": "/a"},
        {"op": "add", "path": "/a/b", "value": 1},
    ],
)
def test_json_patches_that_fail(operation):
    with pytest.raises(PatchError):
        apply_json_patch({"a": 1, "l": [1]}, [operation])


def test_atomic_lists_cannot_be_merged():
    a_list = {"type": "array", "items": {}}
    schema = {"properties": {"a": a_list, "s": {**a_list, "x-kubernetes-list-type": "set"}}}

    assert merge_configuration({"s": [1]}, {"s": [1, 2]}, schema, {}) == {"s": [1, 2]}
    check_atomics({"s": [2]}, schema, {})
    with pytest.raises(PatchError):
        check_atomics({"a": [2]}, schema, {})
    # The API server does not look into mappings with any keys.
    check_atomics({"m": {"x": {"a": [2]}}}, {"properties": {"m": {"additionalProperties": schema}}}, {})


APPLIED = [
    ("Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}", "`spec.nodeSelector` is an atomic mapping"),
    ("Object{metadata: {'labels': {'a': 'b'}}}", "a literal in another one cannot be applied"),
    ("Object{metadata: Object.metadata{labels: {'a': 1}}}", "`metadata.labels.a` must be of type `string`"),
    ("Object{metadata: Object.metadata{typo: 'a'}}", "there is no field `metadata.typo`"),
    ("Object{metadata: Object.metadata{finalizers: ['a/b', 'a/b']}}", "`metadata.finalizers` has an item twice"),
    ("Object{metadata: null}", "`metadata` cannot be null"),
    (
        "Object{spec: Object.spec{volumes: [Object.spec.volumes{name: 'a'}, Object.spec.volumes{name: 'a'}]}}",
        "the same `name`",
    ),
    ("has(object.metadata.uid) ? Object{nothing: 1} : Object{}", ""),
    ("Object{spec: Object.spec{priority: 1.0}}", ""),
]


@pytest.mark.parametrize(("text", "reason"), APPLIED)
def test_apply_configurations_that_the_server_refuses(text, reason, tmp_path):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}

    messages, _ = evaluate(mutating("m", text), pod, tmp_path)

    assert len(messages) == bool(reason)
    assert all(reason in message for message in messages)


def test_explain_shows_what_policies_change(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    (tmp_path / "policies").mkdir()
    (tmp_path / "jobs").mkdir()
    text = (
        "apiVersion: {0}\nkind: MutatingAdmissionPolicy\nmetadata: {{name: pause}}\nspec:\n"
        "  reinvocationPolicy: Never\n  failurePolicy: Fail\n  matchConstraints:\n    resourceRules:\n"
        "    - {{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}}\n  mutations:\n"
        "  - patchType: ApplyConfiguration\n"
        "    applyConfiguration: {{expression: 'Object{{spec: Object.spec{{suspend: true}}}}'}}\n---\n"
        "apiVersion: {0}\nkind: MutatingAdmissionPolicyBinding\nmetadata: {{name: pause}}\n"
        "spec: {{policyName: pause}}\n"
    )
    (tmp_path / "policies/pause.yaml").write_text(text.format(GROUP))
    (tmp_path / "jobs/j.yaml").write_text(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  template:\n    spec:\n"
        "      restartPolicy: Never\n      containers: [{name: a, image: x:1}]\n"
    )

    found = explain(tmp_path, "j", "spec.template.spec.restartPolicy")

    assert [(one.policy, one.action, one.field) for one in found.changes] == [("pause", "changes", "/spec/suspend")]
    text = "policy pause (policies/pause.yaml:12:38) changes /spec/suspend\n"
    assert text in explain_name(tmp_path, "j", "kind", (), "text").out
