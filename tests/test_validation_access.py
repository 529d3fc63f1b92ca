"""Objects of rbac, networking, resource and other groups that the API server refuses.

A case is a file of objects for each group. `# expect: rule, rule` is on the line of the fault; an object without it is
accepted by the API server.
"""

import pytest
from validationcases import list_cases, read_objects

from jobgen.check.validation import find_kind, find_metadata_format, validate_object
from jobgen.k8s.kinds import NEWEST_RELEASE
from jobgen.model.data import untraced

CASES = list_cases("access")


def find_problems(obj, release=NEWEST_RELEASE):
    return [(problem.rule, str(problem.sentence)) for problem in validate_object(obj, release)]


@pytest.mark.parametrize(
    ("kind", "name", "is_valid"),
    [
        ("rbac.authorization.k8s.io/v1/Role", "system:x", True),
        ("rbac.authorization.k8s.io/v1/ClusterRoleBinding", "a b", True),
        ("rbac.authorization.k8s.io/v1/ClusterRole", "a/b", False),
        ("rbac.authorization.k8s.io/v1/RoleBinding", "..", False),
        ("networking.k8s.io/v1/IPAddress", "10.0.0.1", True),
        ("networking.k8s.io/v1/IPAddress", "fe80::1", True),
        ("v1/Event", "a:b", True),
        ("certificates.k8s.io/v1beta1/ClusterTrustBundle", "example.com:signer:a", True),
        ("networking.k8s.io/v1/Ingress", "a:b", False),
    ],
)
def test_names(kind, name, is_valid):
    api_version, _, kind = kind.rpartition("/")
    assert find_metadata_format({"apiVersion": api_version, "kind": kind}).name.is_valid(name) is is_valid


def test_only_generated_names_of_device_classes_are_validated():
    names = find_metadata_format({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}).name

    assert names.accepts_prefix("a" * 300)
    assert names.accepts_prefix("-a", named=True)
    assert not names.accepts_prefix("-a")


def test_kinds_of_other_groups_are_not_validated():
    assert find_kind({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}) is None
    assert find_kind({"apiVersion": "rbac.example.com/v1", "kind": "Role"}) is None


def test_releases_before_1_36_accept_sloppy_networks():
    obj = untraced(read_objects(CASES[[case.stem for case in CASES].index("networking")])[1])
    newest, older = find_problems(obj), find_problems(obj, (1, 35))
    gone = {message.split("`")[1] for _, message in newest} - {message.split("`")[1] for _, message in older}

    assert gone == {"10.0.0.1/24", "10.00.0.0/24", "::ffff:10.0.0.0/120"}


def test_service_names_start_with_a_letter_before_1_36():
    backend = {"service": {"name": "1a", "port": {"number": 80}}}
    obj = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {"defaultBackend": backend}}

    assert find_problems(obj) == []
    assert [rule for rule, _ in find_problems(obj, (1, 35))] == ["invalid-object-name"]


@pytest.mark.parametrize(
    ("release", "field", "value", "is_refused"),
    [
        ((1, 36), "tolerations", [{"operator": "Gt"}], True),
        ((1, 35), "tolerations", [{"operator": "Gt"}], False),
        ((1, 36), "selectors", [{"cel": {"expression": "device.allowMultipleAllocations"}}], False),
        ((1, 35), "selectors", [{"cel": {"expression": "device.allowMultipleAllocations"}}], True),
    ],
)
def test_fields_of_disabled_features_are_not_validated(release, field, value, is_refused):
    request = {"name": "a", "exactly": {"deviceClassName": "b", field: value}}
    spec = {"devices": {"requests": [request]}}
    obj = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": spec}

    assert bool(find_problems(obj, release)) is is_refused
