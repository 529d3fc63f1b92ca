"""Pods that the API server refuses: a case is a file of pod templates for each rule.

A document is a PodTemplateSpec of a job, with the pod's own `restartPolicy`. `# expect: rule, rule` is on the line of
the error; a document without it is accepted by the API server.
"""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from placedproblems import check_located, place_problem
from sampling import laws

from jobgen.check.admission import validate_pod_template
from jobgen.model.builtin_rules import POD_RULES
from jobgen.model.data import untraced
from jobgen.model.place import Places
from jobgen.model.placed import follow
from jobgen.yamlio.read import read

CASES = sorted((Path(__file__).parent / "admission").iterdir())
POD = "job-worker-0"
WORDS = sorted(set(re.findall(r"[\w./-]+", " ".join(path.read_text() for path in CASES))))


def templates(path):
    return [document.data for document in read(path.read_bytes(), path.name, traced=True).documents]


def found(template):
    return [(problem.rule, str(problem.sentence)) for problem in validate_pod_template(untraced(template), None, POD)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_problems_are_on_their_lines(case):
    expected = Counter(
        (number, rule)
        for number, line in enumerate(case.read_text().splitlines(), 1)
        for rule in line.partition("# expect: ")[2].split(", ")
        if rule
    )
    problems = [
        problem
        for template in templates(case)
        for problem in check_located(lambda plain: validate_pod_template(plain, None, POD), template)
    ]

    assert Counter((problem.location.line, problem.rule) for problem in problems) == expected
    assert {problem.category for problem in problems} == {"pod"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_problems_have_paths_to_where_they_are(case):
    for template in templates(case):
        plain = untraced(template)
        places = Places(plain)
        placed = [place_problem(problem, places) for problem in validate_pod_template(plain, None, POD)]
        read = check_located(lambda plain: validate_pod_template(plain, None, POD), template)
        located = [problem.location for problem in read]

        assert [
            follow(problem, lambda path, tree=template: path.follow(tree)).location for problem in placed
        ] == located


def test_every_rule_has_bad_and_good_cases():
    assert {case.stem for case in CASES} == set(POD_RULES)
    for case in CASES:
        fired = [{rule for rule, _ in found(template)} for template in templates(case)]

        assert case.stem in fired[0], case.stem
        assert set() in fired, case.stem


def test_messages_are_one_line():
    for case in CASES:
        for template in templates(case):
            for _, message in found(template):
                assert message[0] == "`" or message[0].islower(), message
                assert "\n" not in message.replace("a:1\n", ""), message
                assert not message.endswith("."), message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_template_has_the_same_problems_again(case):
    for template in map(untraced, templates(case)):
        assert found(template) == found(template)


def test_changed_template_is_checked_again():
    limits = {"cpu": "1"}
    template = {"spec": {"containers": [{"name": "main", "image": "a", "resources": {"limits": limits}}]}}
    before = found(template)
    limits["cpu"] = "-1"

    assert before == []
    assert [rule for rule, _ in found(template)] == ["negative-quantity"]


def test_volumes_of_another_pod_are_unknown():
    with_volume = {"name": "main", "image": "a", "env": [_from_file("data")], "volumeMounts": [_mount("data")]}
    good = {"spec": {"containers": [with_volume], "volumes": [{"name": "data", "emptyDir": {}}]}}
    bad = {"spec": {"containers": [with_volume]}}

    assert found(good) == []
    assert [rule for rule, _ in found(bad)] == ["unknown-volume", "unknown-volume"]


def _from_file(volume):
    return {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": volume, "key": "A", "path": "a"}}}


def _mount(volume):
    return {"name": volume, "mountPath": "/a"}


@pytest.mark.parametrize(
    ("given_policy", "in_template", "rules"),
    [
        (None, "Sometimes", ["unsupported-value"]),
        ("Never", "Sometimes", []),
        ("ExitCode", None, ["unsupported-value"]),
        ("", None, []),
    ],
)
def test_restart_policy_of_the_replica_is_used(given_policy, in_template, rules):
    template = {"spec": {"restartPolicy": in_template, "containers": [{"name": "main", "image": "a"}]}}

    assert [problem.rule for problem in validate_pod_template(template, given_policy)] == rules


def test_annotation_size_is_counted_in_bytes():
    template = {
        "metadata": {"annotations": {"a": "é" * 131_071}},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    }
    fits = found(template)
    template["metadata"]["annotations"]["a"] += "é"

    assert fits == []
    assert [rule for rule, _ in found(template)] == ["invalid-annotation"]


def test_claim_name_of_an_ephemeral_volume_includes_the_pod_name():
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": claim}}
    template = {"spec": {"containers": [{"name": "main", "image": "a"}], "volumes": [volume]}}

    assert list(validate_pod_template(template, None, "a" * 248)) == []
    assert [problem.rule for problem in validate_pod_template(template, None, "a" * 249)] == ["invalid-volume-name"]


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8), st.sampled_from(WORDS)
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner),
    max_leaves=30,
)


@given(TREES, SCALARS)
@laws(13)
def test_any_tree_yields_problems_without_crashing(tree, policy):
    for template in (tree, {"metadata": tree, "spec": tree}):
        assert_documented(validate_pod_template(template, policy, POD))


@given(st.data())
@laws(20)
def test_wrong_types_yield_problems_without_crashing(data):
    case = data.draw(st.sampled_from(CASES))
    template = untraced(data.draw(st.sampled_from(templates(case))))
    spoil(template, data)

    assert_documented(validate_pod_template(template, data.draw(SCALARS), POD))


def assert_documented(problems):
    """Check that each problem has the name of an admission rule and a message."""
    for problem in problems:
        assert problem.rule in POD_RULES
        assert str(problem.sentence)


def spoil(tree, data):
    """Put something else in one place of the tree, however deep."""
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    if not keys:
        return
    key = data.draw(st.sampled_from(keys))
    if isinstance(tree[key], (dict, list)) and tree[key] and data.draw(st.integers(0, 4)):
        spoil(tree[key], data)
    else:
        tree[key] = data.draw(TREES)
