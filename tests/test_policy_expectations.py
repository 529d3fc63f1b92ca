"""What test cases of policies expect, and the page about policies."""

import xml.etree.ElementTree as ET

import pytest

from jobgen.check.policy.expectations import Expectation, Observed, find_differences, parse_expectations
from jobgen.cli.commands.policy import run_cases, write_page
from jobgen.model.finding import Severity

ERROR, WARNING = Severity.ERROR, Severity.WARNING
FOUND = Observed(1, "p", ERROR, "no, never")
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p, annotations: {jobgen.dev/description: Maps need labels.}}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: has(object.metadata.labels), message: add | labels}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Warn], matchResources: {namespaceSelector: {matchLabels: {env: prod}}}}
"""


def repository(tmp_path, expected="p"):
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    (tmp_path / "policies/tests/p").mkdir(parents=True)
    (tmp_path / "policies/p.yaml").write_text(POLICY)
    case = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}} # expect: {expected}\n"
    (tmp_path / "policies/tests/p/a.yaml").write_text(case)
    return tmp_path


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("p", [Expectation(1, "p")]),
        ("p, q", [Expectation(1, "p"), Expectation(1, "q")]),
        ("p error, q warning", [Expectation(1, "p", ERROR), Expectation(1, "q", WARNING)]),
        ('p error "a, \\"b\\""', [Expectation(1, "p", ERROR, 'a, "b"')]),
        ('p "a"', [Expectation(1, "p", None, "a")]),
        ("p fatal", [Expectation(1, "p fatal")]),
    ],
)
def test_comments_are_parsed(comment, expected):
    assert list(parse_expectations(f"name: a # expect: {comment}\n")) == expected


@pytest.mark.parametrize(
    ("comment", "difference"),
    [
        ("p", ""),
        ("p error", ""),
        ('p error "no, never"', ""),
        ("p warning", "line 1: `p` has the severity `error`, but `warning` is expected"),
        ('p "no"', "line 1: `p` has the message `no, never`, but `no` is expected"),
        ("p, p", "line 1: `p` is expected but not found"),
    ],
)
def test_findings_are_compared(comment, difference):
    found = find_differences(parse_expectations(f"# expect: {comment}"), [FOUND])

    assert found == ([difference] if difference else [])


def test_what_is_not_expected_is_a_difference():
    assert find_differences([], [FOUND]) == ["line 1: `p` is found but not expected: no, never"]


def test_exact_expectations_get_their_finding_first():
    other = Observed(1, "p", WARNING, "maybe")

    assert find_differences(parse_expectations('# expect: p, p warning "maybe"'), [other, FOUND]) == []


def test_policy_test_checks_severities_and_writes_junit(tmp_path):
    root = repository(tmp_path, 'p error "add | labels"')

    text, xml = run_cases(root, root, None), run_cases(root, root, None, "junit")

    assert "has the severity `warning`, but `error` is expected" in text.out
    assert (text.code, xml.code) == (1, 1)
    suites = ET.fromstring(xml.out)
    assert suites.attrib["failures"] == "1"
    assert "severity `warning`" in suites.find("testsuite/testcase/failure").attrib["message"]


def test_policy_test_passes_in_junit(tmp_path):
    root = repository(tmp_path, 'p warning "add | labels"')

    result = run_cases(root, root, None, "junit")

    assert result.code == 0
    assert ET.fromstring(result.out).attrib["failures"] == "0"


def test_the_page_says_what_is_enforced_where(tmp_path):
    result = write_page(repository(tmp_path))

    assert result.code == 0
    assert "| [p](#p) | Warn | configmaps | policies/p.yaml |\n" in result.out
    assert "Maps need labels.\n\n- Warn: namespaces with `env=prod`\n\n- add \\| labels\n" in result.out


def test_the_page_marks_policies_that_are_off(tmp_path):
    root = repository(tmp_path)
    (tmp_path / "jobgen.yaml").write_text("rules: {p: off}\n")

    assert "| [p](#p) | off |" in write_page(root).out
