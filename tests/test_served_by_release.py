"""What a server of a release serves and keeps by default: versions of kinds, and fields behind feature gates."""

import json

import pytest

from jobgen.api.lint import lint
from jobgen.check.checker import Checker
from jobgen.check.rules.operator.versions import dropped_field
from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.k8s.feature_gates import GATED_FIELDS, GATES
from jobgen.k8s.kinds import format_release
from jobgen.rendering import config
from jobgen.repo.layout import own_layers
from jobgen.spec.overlay import Cluster

# A version, a kind, a release, and what is advised there; empty if it is served.
SERVED = [
    ("resource.k8s.io/v1beta1", "DeviceClass", "1.36", "use `resource.k8s.io/v1`"),
    ("resource.k8s.io/v1beta2", "ResourceClaim", "1.34", "use `resource.k8s.io/v1`"),
    (
        "resource.k8s.io/v1beta1",
        "DeviceClass",
        "1.33",
        "turn it on with `--runtime-config=resource.k8s.io/v1beta1=true`",
    ),
    ("resource.k8s.io/v1", "DeviceClass", "1.34", ""),
    (
        "admissionregistration.k8s.io/v1beta1",
        "MutatingAdmissionPolicy",
        "1.36",
        "use `admissionregistration.k8s.io/v1`",
    ),
    ("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicy", "1.34", "turn it on"),
    ("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicy", "1.33", "turn it on"),
    (
        "admissionregistration.k8s.io/v1beta1",
        "ValidatingAdmissionPolicy",
        "1.30",
        "use `admissionregistration.k8s.io/v1`",
    ),
    ("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", "1.31", ""),
    ("storage.k8s.io/v1beta1", "VolumeAttributesClass", "1.33", "turn it on"),
    ("batch/v1", "Job", "1.36", ""),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "1.36", ""),
]


@pytest.mark.parametrize(("api_version", "kind", "release", "advice"), SERVED)
def test_versions_that_a_default_server_does_not_serve(api_version, kind, release, advice):
    shipped = find_shipped_schema(api_version, kind, Cluster(kubernetes=release))

    found = [
        each for each in shipped.check({"apiVersion": api_version, "kind": kind}) if each.rule == "old-api-version"
    ]

    assert [each.severity.value for each in found] == ["warning"] * bool(advice)
    assert all(advice in str(each.sentence) for each in found)


def make_object(field):
    """An object with one gated field."""
    value = {"hostUsers": False, "procMount": "Unmasked"}.get(field.path.rpartition(".")[2], "x")
    for step in reversed(field.path.split(".")):
        value = {step.removesuffix("[]"): [value] if step.endswith("[]") else value}
    head = {"apiVersion": "v1", "kind": field.kind or "Pod", "metadata": {"name": "a"}}
    return {**head, **value} if field.kind else {**head, "spec": value}


def find_dropped(obj, release, tmp_path, gates=None):
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    cluster = Cluster(kubernetes=format_release(release), feature_gates=gates)
    checker = Checker(own_layers(tmp_path), config.load_own(tmp_path).kinds, cluster, ())
    return [str(each.sentence) for each in dropped_field.check(checker.manifest(obj))]


@pytest.mark.parametrize("field", GATED_FIELDS, ids=lambda field: f"{field.kind}.{field.path}")
def test_fields_behind_gates_are_dropped_until_the_gate_is_on(field, tmp_path):
    gate, obj = GATES[field.gate], make_object(field)
    releases = [(1, minor) for minor in range(30, 37)]

    found = {release: find_dropped(obj, release, tmp_path) for release in releases}

    dropped = [each for each in releases if each >= gate.exists and not (gate.on and each >= gate.on)]
    assert [release for release in releases if found[release]] == dropped
    assert all(f"`{field.gate}` is off by default" in message for messages in found.values() for message in messages)
    assert not any(find_dropped(obj, release, tmp_path, (field.gate,)) for release in dropped)


def test_what_is_dropped_is_not_invalid(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    folder = tmp_path / "overlays" / "a"
    folder.mkdir(parents=True)
    overlay = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "metadata": {"name": "a"}}
    (folder / "overlay.yaml").write_text(json.dumps({**overlay, "spec": {"cluster": {"kubernetes": "1.30"}}}))
    mount = {"name": "v", "mountPath": "/v", "recursiveReadOnly": "Enabled"}
    container = {"name": "a", "image": "registry.example.com/a:1", "volumeMounts": [mount]}
    container["securityContext"] = {"procMount": "Unmasked"}
    spec = {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "x"}, "spec": spec}
    (tmp_path / "pod.yaml").write_text(json.dumps(pod))

    findings = lint(tmp_path, paths=["pod.yaml"], environments=["a"]).findings

    assert [each.rule for each in findings if each.severity.value == "error"] == []
    assert len([each for each in findings if each.rule == "dropped-field"]) == 2
