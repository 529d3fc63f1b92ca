"""Which functions of CEL a new expression can use in each release of Kubernetes."""

import json

import pytest

from jobgen.api.lint import lint
from jobgen.check.cel.admission_scope import AdmissionScope
from jobgen.check.cel.signatures import LIBRARIES

# An expression for each library, with the first server on which a new policy with it compiles.
FIRST = {
    "standard": ((1, 28), "object.a.all(x, x < 3) && [1].isSorted() && url('https://a').getHost() == 'a'"),
    "strings": ((1, 28), "'a,b'.split(',').join() == 'ab'"),
    "authorization": ((1, 28), "authorizer.requestResource.check('get').allowed()"),
    "optionals": ((1, 29), "object.?a.orValue(1) == 1"),
    "comparisons of numbers": ((1, 29), "1 < 1.5"),
    "quantity": ((1, 29), "quantity('1').isLessThan(quantity('2'))"),
    "strings 2": ((1, 30), "'%d'.format([1]) == '1' && strings.quote('a') == '\"a\"'"),
    "sets": ((1, 30), "sets.contains([1], [1])"),
    "ip": ((1, 31), "ip('10.0.0.1').family() == 4"),
    "cidr": ((1, 31), "cidr('10.0.0.0/8').containsIP('10.0.0.1')"),
    "format": ((1, 32), "!format.dns1123Label().validate('a').hasValue()"),
    "authorization selectors": ((1, 32), "authorizer.requestResource.fieldSelector('a=b').check('get').allowed()"),
    "loops with two variables": ((1, 33), "{'a': 1}.all(k, v, v == 1) && [1].transformList(i, v, i + v) == [1]"),
    "optionals 2": ((1, 33), "[optional.of(1)].unwrapOpt() == [1] && [1].first().hasValue()"),
    "semver": ((1, 34), "semver('1.2.3').major() == 1"),
    "lists": ((1, 35), "lists.range(2).reverse() == [1, 0] && [2, 1].sortBy(x, x) == [1, 2]"),
}
SERVERS = [(1, minor) for minor in range(28, 37)]


def test_every_library_has_an_expression():
    assert {each.name for each in LIBRARIES} == FIRST.keys()


@pytest.mark.parametrize("name", FIRST)
def test_expressions_compile_since_a_release(name):
    first, text = FIRST[name]

    compiles = [
        server
        for server in SERVERS
        if not AdmissionScope(has_params=False, has_variables=False, server=server).find_error(text, "bool")
    ]

    assert compiles == [server for server in SERVERS if server >= first]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("ip('a') == ip('b')", "undeclared reference to `ip`, which new expressions can use since Kubernetes 1.31"),
        (
            "ip.isCanonical('a')",
            "undeclared reference to `ip.isCanonical`, which new expressions can use since Kubernetes 1.31",
        ),
        (
            "[1].all(i, v, v == 1)",
            "undeclared reference to `all` with two variables, which new expressions can use since Kubernetes 1.33",
        ),
        ("nope()", "undeclared reference to `nope`"),
    ],
)
def test_a_function_of_a_later_release_is_named(text, error):
    assert AdmissionScope(has_params=False, has_variables=False, server=(1, 30)).find_error(text, "bool") == error


GROUP = "admissionregistration.k8s.io/v1"
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]


@pytest.mark.parametrize(
    ("releases", "found"),
    [
        ({"a": "1.36"}, []),
        ({"a": "1.30"}, ["error"]),
        ({"a": "1.30", "b": "1.36"}, ["warning"]),
        ({}, []),
    ],
)
def test_policies_compile_in_the_releases_of_the_environments(releases, found, tmp_path):
    for name, release in releases.items():
        folder = tmp_path / "overlays" / name
        folder.mkdir(parents=True)
        overlay = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "metadata": {"name": name}}
        (folder / "overlay.yaml").write_text(json.dumps({**overlay, "spec": {"cluster": {"kubernetes": release}}}))
    spec = {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": "isIP('10.0.0.1')"}]}
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    documents = [
        {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": spec},
        {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "p"}, "spec": binding},
    ]
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    job = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ml"}}
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "a.yaml").write_text(json.dumps(job))
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yaml").write_text("\n---\n".join(map(json.dumps, documents)))

    findings = [each for each in lint(tmp_path).findings if each.rule == "invalid-policy"]

    assert [each.severity.value for each in findings] == found
    assert all("since Kubernetes 1.31" in each.message for each in findings)
