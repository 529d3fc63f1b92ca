"""Policies as the API server evaluates them: a case is a file of policies, what they read, and objects of example.com.

`# expect: rule, rule` stands on the line that is to blame, of a policy or of an object.
"""

import functools
import json
import random
from collections import Counter
from copy import deepcopy
from importlib import resources
from pathlib import Path

import kubectl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws, sample

from jobgen.check.checker import Checker
from jobgen.check.policy import ClusterFacts, Policies, PolicyEvaluator, compile_policies
from jobgen.check.policy.eval_context import remove_parts
from jobgen.check.policy.locate import Trials, find_failing_parts, find_first_failing_part, find_place
from jobgen.check.policy.parse import is_policy
from jobgen.cli.commands.policy import list_policies, run_cases
from jobgen.model.data import untraced
from jobgen.model.finding import Severity
from jobgen.model.origins import Origins
from jobgen.model.placed import finish, read_places
from jobgen.pipeline.policies import load_policies
from jobgen.rendering import config
from jobgen.repo import layout
from jobgen.repo.layout import own_layers
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
CASES = sorted((Path(__file__).parent / "policy").glob("*.yaml"))
SHIPPED = sorted((ROOT / "policies").glob("*.yaml"))
EVERY = [*SHIPPED, *sorted((ROOT / "policies/packs").glob("*/*.yaml"))]
NAMES = {"gpu-limits-match-requests", "mxjob-deprecated", "replica-totals", "restart-policy-sanity"}


def documents(text, *, traced=True):
    source = read(text, "case.yaml", traced=traced)

    assert source.findings == ()
    return [document.data for document in source.documents]


def is_object(document):
    return document["kind"] in ("Thing", "Policy")


def judged(text, *, traced=True):
    """All problems of a case: those of its policies, then those of its objects."""
    origins = Origins(documents(text, traced=traced))
    found = origins.objects
    policies, problems = compile_policies((document for document in found if not is_object(document)), origins=origins)
    evaluator = PolicyEvaluator(policies, ClusterFacts())
    denied = [problem for made in found if is_object(made) for problem in evaluator.find_problems(made)]
    return list(map(finish, read_places([*problems, *denied], origins.follow)))


def policy(expression, *, name="p", actions="Deny", more="", validation=""):
    """A policy for things, and its binding."""
    return f"""
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}}]
  validations:
    - expression: {json.dumps(expression)}
{validation}
{more}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [{actions}]}}
---
"""


THING = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {x: 1}\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_problems_are_on_their_lines(case):
    expected = Counter(
        (number, rule)
        for number, line in enumerate(case.read_text().splitlines(), 1)
        for rule in line.partition("# expect: ")[2].split(", ")
        if rule
    )
    problems = judged(case.read_bytes())

    assert Counter((problem.location.line, problem.rule) for problem in problems) == expected
    assert {problem.category for problem in problems} == {"policy"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_plain_and_traced_objects_have_the_same_problems(case):
    bare_rules = {problem.rule for problem in judged(case.read_bytes(), traced=False)}

    assert bare_rules == {problem.rule for problem in judged(case.read_bytes())}


@pytest.mark.parametrize(
    ("actions", "severity"),
    [("Deny", Severity.ERROR), ("Audit, Warn", Severity.WARNING), ("Audit", Severity.INFO), ("Audit, Deny", "error")],
)
def test_strongest_action_sets_the_severity(actions, severity):
    [problem] = judged((policy("object.spec.x != 1", actions=actions) + THING).encode())

    assert problem.severity == severity


def test_strongest_of_several_bindings_sets_the_severity():
    text = policy("object.spec.x != 1", actions="Warn") + policy("true", name="other")
    second = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n"
    second += "metadata: {name: second}\nspec: {policyName: p, validationActions: [Deny]}\n---\n"

    assert [problem.severity for problem in judged((text + second + THING).encode())] == [Severity.ERROR]


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ("", "failed expression: object.spec.x != 1"),
        ("      message: said", "said"),
        ("      messageExpression: \"'x is ' + string(object.spec.x)\"\n      message: said", "x is 1"),
        ("      messageExpression: string(object.spec.nowhere)\n      message: said", "said"),
        ("      messageExpression: \"'  '\"\n      message: said", "said"),
        ("      messageExpression: \"'two\\\\nlines'\"\n      message: said", "said"),
        ("      messageExpression: string(object.spec.nowhere)", "failed expression: object.spec.x != 1"),
    ],
)
def test_message_falls_back_to_reason_and_expression(validation, message):
    [problem] = judged((policy("object.spec.x != 1", validation=validation) + THING).encode())

    assert str(problem.sentence) == message


def test_evaluation_error_is_reported_as_such():
    [problem] = judged((policy("object.spec.nowhere == 1") + THING).encode())

    assert str(problem.sentence) == "policy `p` could not be evaluated: no such key: `nowhere`"


def test_error_in_a_multi_line_expression_has_its_line():
    text = policy("object.spec.x == 1\n&& object.spec.y ==") + THING
    [problem] = [problem for problem in judged(text.encode()) if problem.rule == "invalid-policy"]

    assert "line 2, column" in str(problem.sentence)


def test_more_than_64_conditions_are_refused():
    conditions = "\n".join(f"    - {{name: c{number}, expression: 'true'}}" for number in range(65))
    text = policy("true", more=f"  matchConditions:\n{conditions}")

    assert [str(problem.sentence) for problem in judged(text.encode())] == [
        "`65` match conditions are too many; the limit is 64"
    ]


def test_variable_types_are_known():
    text = policy("variables.n == 'one'", more="  variables: [{name: n, expression: size(object.spec)}]")

    assert [problem.rule for problem in judged(text.encode())] == ["invalid-policy"]


def test_declared_operators_are_available_as_params():
    made = documents(b"apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: a}\n", traced=False)[0]
    policies = load_policies(own_layers(ROOT)).policies
    found = {
        version: [
            problem.severity
            for problem in PolicyEvaluator(
                policies, ClusterFacts(operators={"training-operator": version} if version else {})
            ).find_problems(made)
        ]
        for version in ("", "1.8.1", "v1.8", "1.9.0", "1.10.0", "2.0")
    }

    assert found == {
        "": ["warning"],
        "1.8.1": ["warning"],
        "v1.8": ["warning"],
        "1.9.0": ["error"],
        "1.10.0": ["error"],
        "2.0": ["error"],
    }


def test_built_in_policies_compile_and_are_bound():
    book = load_policies(own_layers(ROOT))

    assert book.findings == ()
    assert set(book.files) >= NAMES
    assert all(bindings for _, bindings in book.policies.policies)


def test_every_policy_has_cases_that_pass():
    result = run_cases(ROOT, ROOT, None)

    assert result.code == 0, result.out
    assert "has no test cases" not in result.err


def test_failing_policy_case_is_reported(tmp_path):
    folder = tmp_path / "policies/tests/p"
    folder.mkdir(parents=True)
    (tmp_path / "jobgen.yaml").write_text("{}")
    (tmp_path / "policies/p.yaml").write_text(policy("object.spec.x != 1"))
    (tmp_path / "policies/q.yaml").write_text(policy("true", name="q"))
    (folder / "wrong.yaml").write_text(THING + "---\n" + THING.replace("x: 1}", "x: 2} # expect: p"))
    result = run_cases(tmp_path, tmp_path, None)

    assert result.code == 1
    assert result.out.splitlines() == [
        "policies/tests/p/wrong.yaml: FAILED",
        "  line 4: `p` is found but not expected: failed expression: object.spec.x != 1",
        "  line 9: `p` is expected but not found",
    ]
    assert "policies/q.yaml: policy `q` has no test cases; add some to policies/tests/q/" in result.err


def test_repository_without_policy_cases_has_nothing_to_test(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("{}")

    assert run_cases(tmp_path, tmp_path, None).code == 3


def test_broken_policy_stops_its_cases(tmp_path):
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/p.yaml").write_text(policy("object.spec.x !="))
    result = run_cases(tmp_path, tmp_path, None)

    assert result.code == 4
    assert "policies/p.yaml:9:" in result.err


def test_repository_file_replaces_a_built_in_policy(tmp_path):
    (tmp_path / "policies/params").mkdir(parents=True)
    (tmp_path / "policies/mxjob-deprecated.yaml").write_text(policy("true", name="mine"))
    (tmp_path / "policies/params/limit.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limit}\n")
    book = load_policies(own_layers(tmp_path))

    assert set(book.files) - {"restart-policy-risk"} == NAMES - {"mxjob-deprecated"} | {"mine"}
    assert [param["metadata"]["name"] for param in book.policies.param_store.params["v1", "ConfigMap"]] == ["limit"]
    assert list_policies(tmp_path).code == 0


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_policies_are_read_as_by_kubectl(path):
    [reading] = kubectl.read([path.read_bytes()])
    ours = [untraced(data) for data in documents(path.read_bytes())]
    for data in ours:
        # kubectl's answer is without them.
        data["metadata"].pop("annotations", None)

    assert not reading.refused
    assert reading.objects == ours


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_policies_match_the_kubernetes_types(path):
    import jsonschema

    name = "kubernetes-json-schema/v1.36.0-local-strict/_definitions.json"
    definitions = json.loads(resources.files("kubernetes_validate").joinpath(name).read_bytes())["$defs"]
    used = {
        key: value for key, value in definitions.items() if "admissionregistration.v1." in key or ".meta.v1." in key
    }
    types = json.loads(json.dumps(used).replace("_definitions.json#", "#"))
    for data in documents(path.read_bytes(), traced=False):
        kind = f"io.k8s.api.admissionregistration.v1.{data['kind']}"
        check = jsonschema.Draft7Validator({"$ref": f"#/$defs/{kind}", "$defs": types})

        assert [error.message for error in check.iter_errors(data)] == []


def test_policies_use_features_of_kubernetes_1_30_only():
    later = ("semver(", "isSemver(", "format.", "transformList(", "transformMap(", ".flatten(", ".distinct(", ".sort(")

    assert [(path.name, word) for path in EVERY for word in later if word in path.read_text()] == []


def test_this_repository_uses_its_own_policies_only():
    assert list(layout.read_shipped_policies(own_layers(ROOT))) == []
    assert len(list(layout.read_own_policies(own_layers(ROOT)))) == len(SHIPPED)


SCALARS = st.none() | st.booleans() | st.integers(0, 5) | st.sampled_from(["a", "b", "bad"])
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=4),
    max_leaves=25,
)


def count(tree, wanted):
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return (tree == wanted and isinstance(tree, type(wanted))) + sum(count(child, wanted) for child in children)


@given(st.dictionaries(st.sampled_from("abcde"), TREES, max_size=4))
@laws(13)
def test_tree_without_culprits_passes(tree):
    def fails(part):
        return count(part, "bad") > 0

    paths = list(find_failing_parts(Trials(tree, fails), max_evaluations=10_000))

    assert bool(paths) == fails(tree)
    assert all(find_place(tree, path).node == "bad" for path in paths)
    if len(paths) < 10:
        assert not fails(remove_parts(tree, frozenset(paths)))


@given(st.dictionaries(st.sampled_from("abcde"), TREES, max_size=4), st.integers(1, 3))
@laws(13)
def test_removing_one_of_many_culprits_leaves_the_others(tree, allowed):
    path = find_first_failing_part(Trials(tree, lambda part: count(part, "bad") > allowed), max_evaluations=10_000)

    assert not path or count(remove_parts(tree, frozenset([path])), "bad") < count(tree, "bad")


@given(TREES, st.functions(like=lambda tree: None, returns=st.booleans(), pure=False))
@laws(10)
def test_culprit_search_ends_for_any_predicate(tree, fails):
    asked = 0

    def counted(part):
        nonlocal asked
        asked += 1
        return fails(part)

    list(find_failing_parts(Trials(tree, counted), max_evaluations=50))

    assert asked <= 10 * 51


def test_deep_culprit_is_found_in_few_trials():
    tree = {"spec": {f"field-{number}": {"x": [{"y": number}] * 3} for number in range(30)}}
    tree["spec"]["field-29"] = {"x": [{"y": 1}, {"y": "bad"}]}
    asked = []

    def fails(part):
        asked.append(part)
        return count(part, "bad") > 0

    assert find_first_failing_part(Trials(tree, fails)) == ("spec", "field-29", "x", 1, "y")
    assert len(asked) < 50


KINDS = [
    ("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs"),
    ("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs"),
    ("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainer"),
    ("batch.tensorstack.dev/v1beta1", "TensorFlowTrainingJob", "replicaSpecs"),
]


@pytest.fixture(scope="module")
def evaluator():
    return PolicyEvaluator(shipped_policies(), ClusterFacts(operators={"training-operator": "1.9.0"}))


@functools.cache
def shipped_policies():
    """The policies of this repository; compiling them takes long."""
    return load_policies(own_layers(ROOT)).policies


@given(st.sampled_from(KINDS), TREES, TREES)
@laws(10)
def test_policies_accept_any_tree(evaluator, kind, metadata, inner):
    api_version, name, field = kind
    made = {"apiVersion": api_version, "kind": name, "metadata": metadata, "spec": {field: inner}}
    names = {policy.name for policy, _ in shipped_policies().policies}

    for problem in (*evaluator.find_problems(made), *evaluator.find_problems({**made, "spec": inner})):
        assert problem.rule in names
        assert str(problem.sentence)


POLICIES = [document for path in (*CASES, *SHIPPED) for document in documents(path.read_bytes(), traced=False)]


@given(st.data())
@laws(13)
def test_mutated_policies_compile_or_are_reported(data):
    document = deepcopy(data.draw(st.sampled_from(POLICIES)))
    tree = document
    while True:
        key = data.draw(st.sampled_from(list(tree) if isinstance(tree, dict) else list(range(len(tree)))))
        if not isinstance(tree[key], (dict, list)) or not tree[key] or not data.draw(st.integers(0, 3)):
            break
        tree = tree[key]
    tree[key] = data.draw(TREES)
    policies, problems = compile_policies([document])

    # A policy without its binding, or a binding without its policy, is a problem in any case.
    assert [bindings for _, bindings in policies.policies if bindings] == []
    assert bool(problems) == is_policy(document)
    assert all(str(problem.sentence) for problem in problems)


def test_null_fields_of_a_policy_are_ignored():
    text = policy("object.spec.x != 1", more="  paramKind: null\n  variables: null\n  matchConditions: null")

    assert [problem.rule for problem in judged((text + THING).encode())] == ["p"]


def test_empty_policy_set_finds_nothing():
    assert list(PolicyEvaluator(Policies(), ClusterFacts()).find_problems({"apiVersion": "v1", "kind": "Pod"})) == []


CASES_OF_POLICIES = [
    document.data
    for path in sorted((ROOT / "policies/tests").rglob("*.yaml"))
    for document in read(path.read_bytes(), path.name).documents
    if document.data.get("apiVersion") != "jobgen.dev/v1"
]


def _mutated(tree, chance):
    """The tree with some parts left out, and some values swapped."""
    if isinstance(tree, dict):
        return {key: _mutated(value, chance) for key, value in tree.items() if chance.random() > 0.03}
    if isinstance(tree, list):
        return [_mutated(value, chance) for value in tree if chance.random() > 0.03]
    return chance.choice(["Always", "Never", "1", 2, "8", 8]) if chance.random() < 0.05 else tree


@pytest.mark.parametrize("seed", sample(range(8), 3))
def test_policies_together_find_what_each_finds_alone(seed):
    chance = random.Random(seed)
    found = 0
    for original in CASES_OF_POLICIES:
        made = _mutated(original, chance)
        if "apiVersion" not in made or "kind" not in made:
            continue
        together = list(PolicyEvaluator(shipped_policies(), ClusterFacts()).find_problems(made))
        alone = [
            problem
            for pair in shipped_policies().policies
            for problem in PolicyEvaluator(
                Policies((pair,), shipped_policies().param_store), ClusterFacts()
            ).find_problems(made)
        ]

        # What finishes a problem is a function of its own.
        assert [each._replace(finish=None) for each in together] == [each._replace(finish=None) for each in alone]
        found += len(together)

    assert found


def test_an_error_in_a_match_condition_is_reported_beside_other_policies():
    conditions = "  matchConditions: [{name: c, expression: object.spec.nowhere == 1}]"
    text = policy("object.spec.x == 1", more=conditions) + policy("object.spec.x == 1", name="second")

    assert [problem.rule for problem in judged((text + THING).encode(), traced=False)] == ["p"]


def test_annotation_looks_at_has_no_effect():
    text = policy("object.spec.x == 1").replace("{name: p}", "{name: p, annotations: {jobgen.dev/looks-at: spec.y}}", 1)
    policies, problems = compile_policies(documents(text.encode(), traced=False))
    evaluator = PolicyEvaluator(policies, ClusterFacts())
    thing, other = ({**made, "spec": {"x": x}} for made in documents(THING.encode(), traced=False) for x in (1, 2))

    assert problems == []
    assert [[problem.rule for problem in evaluator.find_problems(made)] for made in (thing, other)] == [[], ["p"]]


@pytest.mark.parametrize("reads", ["", " + (has(variables.keys) ? '' : 'none')"])
def test_messages_with_variables_list_keys_in_order(reads):
    """The engine goes through mappings in another order in each process."""
    variables = [
        "  variables:",
        "    - {name: keys, expression: 'object.spec.map(key, key)'}",
        "    - {name: pairs, expression: 'variables.keys.map(key, key + string(variables.keys.size()))'}",
    ]
    message = f"variables.pairs.join(' ') + string(variables.pairs.size()){reads}"
    text = policy("false", more="\n".join(variables), validation=f"      messageExpression: {json.dumps(message)}")
    thing = THING.replace("{x: 1}", json.dumps(dict.fromkeys("hgfedcba", 1)))

    assert [str(problem.sentence) for problem in judged((text + thing).encode(), traced=False)] == [
        "a8 b8 c8 d8 e8 f8 g8 h88"
    ]


@pytest.mark.parametrize("number", range(3))
def test_variables_have_the_same_values_inside_and_outside_of_the_engine(number):
    """Variables that are read twice, in loops, as optionals, and that fail where nothing reads them."""
    variables = [
        "  variables:",
        "    - {name: x, expression: object.spec.x}",
        "    - {name: maybe, expression: 'object.spec.?y'}",
        "    - {name: broken, expression: object.spec.nowhere}",
        "    - {name: list, expression: '[variables.x, variables.x]'}",
    ]
    expressions = [
        "variables.list.all(item, item >= variables.x && variables.list.size() == 2)",
        "variables.maybe.orValue(variables.x) == variables.x && !variables.maybe.hasValue()",
        "variables.x == 2 || (variables.x == 1 ? true : variables.broken + variables.broken == 1)",
    ]
    passing = policy(expressions[number], more="\n".join(variables))
    failing = policy(f"!({expressions[number]})", more="\n".join(variables))

    assert judged((passing + THING).encode(), traced=False) == []
    assert [problem.rule for problem in judged((failing + THING).encode(), traced=False)] == ["p"]


@pytest.mark.parametrize(
    ("spec", "object_", "denied"),
    [
        # An annotation that cannot be evaluated denies, whatever the action of the binding is.
        ({"auditAnnotations": [{"key": "k", "valueExpression": "string(object.none)"}]}, {}, 1),
        (
            {"auditAnnotations": [{"key": "k", "valueExpression": "string(object.none)"}], "failurePolicy": "Ignore"},
            {},
            0,
        ),
        ({"auditAnnotations": [{"key": "k", "valueExpression": "string(object.kind)"}]}, {}, 0),
        # Conditions are checked before the namespace is known.
        ({"matchConditions": [{"name": "a", "expression": "has(namespaceObject.metadata)"}]}, {}, 0),
        # What Go leaves out, and what it fills in before policies are asked.
        ({"validations": [{"expression": "!has(object.spec.hostNetwork)"}]}, {"hostNetwork": False}, 0),
        ({"validations": [{"expression": "has(object.metadata.managedFields)"}]}, {}, 0),
        # A variable of another type than those of data is dynamic where it is read.
        (
            {
                "variables": [{"name": "a", "expression": "authorizer.group('').resource('pods')"}],
                "validations": [{"expression": "variables.a.check('create').allowed()"}],
            },
            {},
            0,
        ),
    ],
)
def test_what_the_server_does_beyond_validations(spec, object_, denied, tmp_path):
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "p"}}
    policy = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}], **spec}
    binding = {"policyName": "p", "validationActions": ["Warn"]}
    documents = [
        {**head, "kind": "ValidatingAdmissionPolicy", "spec": policy},
        {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    ]
    policies, problems = compile_policies(documents)
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    project = config.load_own(tmp_path)
    cluster = project.environment("", []).cluster
    checker = Checker(own_layers(tmp_path), project.kinds, cluster, (), PolicyEvaluator(policies, ClusterFacts()))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [], **object_}}

    found = [each.severity.value for each in checker.evaluate_policies(pod)]

    assert problems == []
    assert found == ["error"] * denied
