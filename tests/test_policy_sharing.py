"""Expressions of policies that are evaluated together, and only on what they read, give the same results as alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws

from jobgen.check.cel import Bound, Expression, Failed, compile_cel
from jobgen.check.cel.reads import find_reads, project
from jobgen.check.cel.together import NAMES, Shared, evaluate_all, load_value
from jobgen.check.policy import ClusterFacts, PolicyEvaluator, compile_policies
from jobgen.check.policy.expressions import PolicyExpression
from jobgen.check.policy.locate import Trials, find_failing_parts, find_read_value

FIELDS = "abc"
SCALARS = st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b", "x"])
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=15,
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), TREES, max_size=3)


def extend(paths):
    field = st.sampled_from(FIELDS)
    default = st.sampled_from(["0", "'a'", "dyn([])", "dyn({})"])
    return st.one_of(
        st.builds("{}.{}".format, paths, field),
        st.builds("{}['{}']".format, paths, field),
        st.builds("{}[0]".format, paths),
        st.builds("{}.?{}.orValue({})".format, paths, field, default),
        st.builds("{}[?'{}'].orValue({})".format, paths, field, default),
        st.builds("({} + {})".format, paths, paths),
        st.builds("[{}, {}]".format, paths, paths),
        st.builds("dyn({{'a': {}}})".format, paths),
        st.builds("({} ? dyn({}) : dyn({}))".format, conditions(paths), paths, paths),
        st.builds("{}.map(y, y)".format, paths),
        st.builds("{}.filter(y, {})".format, paths, conditions(st.just("y"))),
        st.builds("{0}.map(k, {0}[k])".format, paths),
    )


def conditions(paths):
    field = st.sampled_from(FIELDS)
    return st.one_of(
        st.builds("has({}.{})".format, paths, field),
        st.builds("{} == {}".format, paths, st.sampled_from(["1", "'a'", "true"])),
        st.builds("{} == {}".format, paths, paths),
        st.builds("size({}) < {}".format, paths, st.integers(0, 3)),
        st.builds("'{}' in {}".format, field, paths),
        st.builds("string({}) != 'x'".format, paths),
    )


def make_conditions(root):
    """Conditions on paths that start with some name."""
    paths = st.recursive(st.just(root), extend, max_leaves=3)
    inner = st.recursive(st.just("x"), extend, max_leaves=2)
    of_items = conditions(inner)
    loops = st.builds("{}.{}(x, {})".format, paths, st.sampled_from(["all", "exists", "exists_one"]), of_items)
    return st.recursive(
        conditions(paths) | loops,
        lambda some: (
            st.builds("({} {} {})".format, some, st.sampled_from(["&&", "||"]), some)
            | st.builds("!({})".format, some)
            | st.builds("({} ? {} : {})".format, some, some, some)
        ),
        max_leaves=4,
    )


def evaluate(text, obj):
    """The value of an expression, or how it fails."""
    compiled = compile_cel(text, NAMES)
    result = compiled({"object": obj})
    return f"failed: {result.message}" if isinstance(result, Failed) else result


def compiles(text):
    return isinstance(compile_cel(text, NAMES), Expression)


CONDITIONS = make_conditions("object").filter(compiles)


@given(CONDITIONS, OBJECTS)
@laws(40)
def test_what_an_expression_does_not_read_changes_nothing(text, obj):
    assert evaluate(text, project(obj, Shared(text, "bool"))) == evaluate(text, obj)


@given(CONDITIONS, OBJECTS)
@laws(25)
def test_causes_are_those_of_a_search_in_the_whole_object(text, obj):
    def fails(tree):
        result = evaluate(text, tree)
        return "" if result is True else str(result)

    many = 100_000
    everywhere = Trials(obj, fails)
    read = Trials(obj, fails, project(obj, Shared(text, "bool")))
    causes = list(find_failing_parts(everywhere, many))

    assert list(find_failing_parts(read, many)) == causes
    for cause in causes:
        others = frozenset(causes) - {cause}
        assert find_read_value(read, cause, others, many) == find_read_value(everywhere, cause, others, many)


def test_parts_that_no_expression_names_are_not_read():
    text = "object.spec.containers.all(c, has(c.image) && c.image != '')"
    obj = {"kind": "Pod", "spec": {"nodeName": "a", "containers": [{"name": "a", "image": "b"}, {"env": []}]}}

    assert project(obj, Shared(text, "bool")) == {"spec": {"containers": [{"image": "b"}, {}]}}


@pytest.mark.parametrize("text", ["object.spec.filter(k, k.endsWith('s')).all(k, has(object.spec[k].x))"])
def test_loops_over_mappings_read_the_keys(text):
    obj = {"spec": {"name": {"x": 1, "y": 2}, "specs": {"x": {"z": 1}, "y": 1}}}

    assert project(obj, Shared(text, "bool")) == {"spec": {"name": {"x": 1}, "specs": {"x": {}}}}


def test_variables_in_another_way_than_by_name_are_not_known():
    assert find_reads(Shared("variables == object", "bool")) is None


VARIABLES = st.recursive(st.just("object"), extend, max_leaves=3)


@given(
    st.lists(st.tuples(VARIABLES, make_conditions("variables.v")), min_size=1, max_size=4),
    st.lists(OBJECTS, max_size=3),
)
@laws(20)
def test_expressions_that_share_variables_have_their_own_verdicts(policies, objects):
    expressions = []
    for variable, text in policies:
        above = {"v": PolicyExpression(variable, {}, "any")}
        if compiles(f"dyn({variable}) == 1") and compiles(text):
            alone = f"[dyn({variable})].map(v, {text.replace('variables.v', 'v')})[0]"
            # Its values may grow more in a loop than by themselves.
            if compiles(alone):
                expressions.append((PolicyExpression(text, above, "bool"), alone))
    shared = [expression.share() for expression, _ in expressions]

    for obj in objects:
        verdicts = evaluate_all(tuple(each for each in shared if each), Bound({"object": obj}))
        for each, (_, alone) in zip(shared, expressions, strict=True):
            if each in verdicts:
                assert verdicts[each] is evaluate(alone, obj)


def test_a_failure_hides_no_other_verdict():
    texts = ("object.nowhere == 1", "object.a == 1", "object.a == 2", "size(object.a) == 1")
    shared = [Shared(text, "bool") for text in texts]

    assert evaluate_all(tuple(shared), Bound({"object": {"a": 1}})) == {shared[1]: True, shared[2]: False}


def test_a_variable_that_fails_fails_only_what_reads_it():
    above = {"v": PolicyExpression("object.nowhere", {}, "any")}
    reads, other = (PolicyExpression(text, above, "bool") for text in ("variables.v == 1", "true || variables.v == 1"))

    verdicts = evaluate_all((reads.share(), other.share()), Bound({"object": {}}))

    assert verdicts == {other.share(): True}


def test_the_same_text_with_other_params_is_another_expression():
    expression = PolicyExpression("params.x == object.x", {}, "bool")
    first, second = expression.share(0), expression.share(1)

    verdicts = evaluate_all((first, second), Bound({"object": {"x": 1}, "params_0": {"x": 1}, "params_1": {"x": 2}}))

    assert verdicts == {first: True, second: False}


def test_a_variable_that_is_defined_again_is_that_above_the_expression():
    first = PolicyExpression("object.a", {}, "any")
    second = PolicyExpression("[variables.v, object.b]", {"v": first}, "any")
    expression = PolicyExpression("variables.v == [1, 2]", {"v": second}, "bool")

    program = load_value(expression.share())

    assert program.evaluate(Bound({"object": {"a": 1, "b": 2}})) is True


def make_policy(name, variable, expression):
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "variables": [{"name": "v", "expression": variable}],
        "validations": [{"expression": expression, "messageExpression": "'v is ' + string(variables.v)"}],
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {**head, "kind": "ValidatingAdmissionPolicy", "spec": spec},
        {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    ]


def test_policies_and_objects_keep_their_variables_apart():
    documents = [
        *make_policy("one", "object.a", "variables.v == 1"),
        *make_policy("two", "object.b", "variables.v == 1"),
    ]
    policies, problems = compile_policies(documents)
    evaluator = PolicyEvaluator(policies, ClusterFacts())
    objects = [
        {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, "a": a, "b": b}
        for a, b in ((1, 2), (3, 1), (1, 1))
    ]

    found = [[(one.rule, str(one.sentence)) for one in evaluator.find_problems(obj)] for obj in objects]

    assert problems == []
    assert found == [[("two", "v is 2")], [("one", "v is 3")], []]


def find_all(evaluator, obj):
    """The problems of an object, each with its place and its evidence.

    Which of several failures is told depends on the order in which the engine loops over a mapping.
    """
    made = json.loads(json.dumps({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, **obj}))
    found = list(evaluator.find_problems(made))
    if any("could not be evaluated" in str(one.sentence) for one in found):
        return ["failed"]
    return [(one.rule, str(one.sentence), one.evidence) for one in found]


def make_evaluator(text):
    policies, problems = compile_policies(make_policy("one", "object.?a.orValue('none')", text))
    return None if problems else PolicyEvaluator(policies, ClusterFacts())


@given(CONDITIONS, st.lists(OBJECTS, min_size=2, max_size=6))
@laws(20)
def test_what_is_found_in_an_object_does_not_depend_on_those_before_it(text, objects):
    evaluator = make_evaluator(text)

    # The second time, everything that is found once for the same values is known.
    for obj in (*objects, *objects) if evaluator else ():
        assert find_all(evaluator, obj) == find_all(make_evaluator(text), obj)


def test_values_that_are_equal_in_python_but_not_in_cel_are_told_apart():
    evaluator = make_evaluator("type(object.a) == string || object.?b.orValue(0) == 7")

    found = [find_all(evaluator, {"a": value})[0][1] for value in (1, True, 1.5, 1)]

    assert found == ["v is 1", "v is true", "v is 1.5", "v is 1"]


def test_an_emptied_mapping_is_told_from_an_empty_one():
    text = "!has(object.a.b)"

    for objects in ([{"a": {"b": {}}}, {"a": {"b": {"c": 1}}}], [{"a": {"b": {"c": 1}}}, {"a": {"b": {}}}]):
        evaluator = make_evaluator(text)
        assert [find_all(evaluator, obj) for obj in objects] == [find_all(make_evaluator(text), obj) for obj in objects]


def test_a_variable_that_is_no_structure_is_inside_of_the_expression():
    """Its value is not converted to Python and back."""
    variable = PolicyExpression("object.a > 1 ? 'x' : 'y'", {}, "any")
    expression = PolicyExpression("variables.v == 'x' && variables.v != 'z'", {"v": variable}, "bool")

    shared = expression.share()

    assert shared is not None
    assert (shared.variables, "variables." in shared.text) == ((), False)
    assert [expression.evaluate_fast(Bound({"object": {"a": number}})) for number in (1, 2)] == [False, True]
