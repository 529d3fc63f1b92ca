"""Objects of the groups core, storage, scheduling, node, coordination, discovery and events that are refused.

A case is a file of objects for each kind. `# expect: rule, rule` is on the line of the fault; an object without it is
accepted by the API server.
"""

from base64 import b64encode
from collections import Counter
from pathlib import Path

import pytest
from validationcases import list_cases, read_objects

import jobgen
from jobgen.check.checker import Checker
from jobgen.check.validation import find_metadata_format, validate_object
from jobgen.k8s.kinds import NEWEST_RELEASE
from jobgen.model.data import untraced
from jobgen.rendering import config
from jobgen.spec.overlay import Cluster

PROJECT = config.load_own(Path(__file__).parent)
CASES = list_cases("core")


def find_problems(obj, release=NEWEST_RELEASE):
    return [(problem.rule, str(problem.sentence)) for problem in validate_object(obj, release)]


def find_rules(obj, release=NEWEST_RELEASE):
    return [rule for rule, _ in find_problems(obj, release)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_schemas_do_not_report_the_same_faults(case):
    check = Checker(PROJECT.layers, PROJECT.kinds, Cluster())
    for obj in map(untraced, read_objects(case)):
        problems = validate_object(obj, NEWEST_RELEASE)

        assert Counter(problem.rule for problem in check(obj)) == Counter(problem.rule for problem in problems), obj


def test_lint_reports_an_empty_item_on_its_line(tmp_path):
    lines = ["apiVersion: storage.k8s.io/v1", "kind: StorageClass", "metadata: {name: a}", "provisioner: a"]
    (tmp_path / "a.yaml").write_text("\n".join([*lines, "allowedTopologies:", "- {}"]))

    assert [(finding.rule, finding.location.line) for finding in jobgen.lint(tmp_path).findings] == [
        ("missing-field", 6)
    ]


@pytest.mark.parametrize(
    ("kind", "name", "release", "is_valid"),
    [
        ("v1/ConfigMap", "a.b", NEWEST_RELEASE, True),
        ("v1/Namespace", "a.b", NEWEST_RELEASE, False),
        ("v1/Namespace", "1", NEWEST_RELEASE, True),
        ("v1/Service", "1a", NEWEST_RELEASE, True),
        ("v1/Service", "a.b", NEWEST_RELEASE, False),
        ("v1/Service", "1a", (1, 35), False),
        ("v1/Service", "a1", (1, 30), True),
    ],
)
def test_names(kind, name, release, is_valid):
    api_version, _, kind = kind.rpartition("/")
    assert find_metadata_format({"apiVersion": api_version, "kind": kind}, release).name.is_valid(name) is is_valid


def test_data_has_at_most_a_mebibyte():
    half = "é" * (256 * 1024)
    binary = b64encode(half.encode()).decode()
    configmap = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": half}, "binaryData": {"b": binary}}
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"a": binary, "b": binary}, "stringData": {"b": half}}

    assert find_rules(configmap) == find_rules(secret) == []
    configmap["data"]["c"] = secret["stringData"]["c"] = "x"
    assert find_rules(configmap) == find_rules(secret) == ["out-of-range"]


def test_messages_do_not_contain_secrets():
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "hunter2"},
    }

    assert [message for _, message in find_problems(secret) if "hunter2" in message] == []
    assert find_rules(secret) == ["invalid-value"]


@pytest.mark.parametrize(
    ("spec", "release", "rules"),
    [
        ({"trafficDistribution": "PreferSameZone"}, (1, 36), []),
        ({"trafficDistribution": "PreferSameZone"}, (1, 33), ["invalid-value"]),
        ({"trafficDistribution": "PreferSameZone"}, (1, 30), []),
        ({"externalIPs": ["010.0.0.1"]}, (1, 36), ["invalid-host-name"]),
        ({"externalIPs": ["010.0.0.1"]}, (1, 35), []),
        ({"externalIPs": ["::ffff:127.0.0.1"]}, (1, 35), ["invalid-host-name"]),
    ],
)
def test_services_of_older_releases(spec, release, rules):
    obj = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}], **spec}}

    assert find_rules(obj, release) == rules


def test_attributes_classes_count_since_1_34():
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": 1}, "nfs": {"server": "a", "path": "/"}}
    for kind, spec in (("PersistentVolumeClaim", claim), ("PersistentVolume", volume)):
        obj = {"apiVersion": "v1", "kind": kind, "spec": {**spec, "volumeAttributesClassName": "a_b"}}

        assert find_rules(obj, (1, 33)) == []
        assert "invalid-object-name" in find_rules(obj, (1, 34))


def test_data_may_be_a_list_of_bytes():
    check = Checker(PROJECT.layers, PROJECT.kinds, Cluster())
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": "kubernetes.io/ssh-auth"}

    assert check({**secret, "data": {"ssh-privatekey": [1, None, 255]}}) == []
    assert [problem.rule for problem in check({**secret, "data": {"ssh-privatekey": []}})] == ["missing-field"]
    assert [problem.rule for problem in check({**secret, "data": {"ssh-privatekey": [256]}})] == ["out-of-range"]
    assert [problem.rule for problem in check({**secret, "data": {"ssh-privatekey": 1}})] == ["wrong-type"]


def test_line_breaks_around_quantities_are_refused():
    check = Checker(PROJECT.layers, PROJECT.kinds, Cluster())
    limit = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "a"}}
    amounts = {"cpu": " 1", "memory": "1\n"}

    assert [problem.rule for problem in check({**limit, "spec": {"limits": [{"type": "Pod", "max": amounts}]}})] == [
        "invalid-quantity"
    ]
