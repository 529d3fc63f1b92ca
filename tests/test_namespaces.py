"""The admission of a namespace, from files: Pod Security, limit ranges, quotas, and references."""

import json

import pytest
from sharedfiles import shared_folder

from jobgen.check.pod_security.checks import find_breaches
from jobgen.check.pod_security.levels import LATEST, list_levels, parse_version

LABEL = "pod-security.kubernetes.io/"


def pod(spec=None, **container):
    return {"containers": [{"name": "main", "image": "x", **container}], **(spec or {})}


def secure(**context):
    """A pod that `restricted` accepts, with some fields of its container's security context replaced."""
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, **context}
    shared = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return pod({"securityContext": shared}, securityContext={key: value for key, value in own.items() if value != ""})


def test_pod_security_agrees_with_every_case_of_its_suite():
    cases = json.loads((shared_folder("suites/pod-security") / "cases.json").read_text())["cases"]
    assert len(cases) > 200
    wrong = [
        (case["id"], level, version)
        for case in cases
        for level, version, expected in case["expect"]
        if bool(find_breaches(case["pod"]["metadata"], case["pod"]["spec"], level, parse_version(version)))
        != (expected == "fail")
    ]
    assert wrong == []


PODS = [
    (pod(), "baseline", LATEST, []),
    (secure(), "restricted", LATEST, []),
    (pod({"hostNetwork": True}), "privileged", LATEST, []),
    (pod({"hostNetwork": True}), "baseline", 0, ["the pod sets `hostNetwork: true`"]),
    (pod(ports=[{"hostPort": 80}]), "baseline", 0, ["container `main` takes the `hostPort` `80`"]),
    (pod({"volumes": [{"name": "v"}]}), "baseline", LATEST, []),
    (
        pod({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
        "baseline",
        LATEST,
        ["volume `v` is a `hostPath`"],
    ),
    (secure(privileged=True), "restricted", LATEST, ["container `main` sets `privileged: true`"]),
    (secure(capabilities=""), "restricted", 21, []),
    (secure(capabilities=""), "restricted", 22, ["container `main` does not drop all capabilities"]),
    (
        secure(capabilities={"drop": ["ALL"], "add": ["CHOWN"]}),
        "restricted",
        LATEST,
        ["container `main` adds the capability `CHOWN`"],
    ),
    (secure(runAsUser=0), "restricted", 22, []),
    (secure(runAsUser=0), "restricted", 23, ["container `main` sets `runAsUser: 0`, which is root"]),
    (
        {**secure(runAsUser=0), "hostUsers": False},
        "restricted",
        34,
        ["container `main` sets `runAsUser: 0`, which is root"],
    ),
    ({**secure(runAsUser=0), "hostUsers": False}, "restricted", 35, []),
    (pod(livenessProbe={"tcpSocket": {"host": "h"}}), "baseline", 33, []),
    (
        pod(livenessProbe={"tcpSocket": {"host": "h"}}),
        "baseline",
        34,
        ["`livenessProbe` of container `main` sets the host `h`"],
    ),
]


@pytest.mark.parametrize(("spec", "level", "minor", "expected"), PODS)
def test_breaches_of_a_level(spec, level, minor, expected):
    assert [breach.fault for breach in find_breaches({}, spec, level, minor)] == expected


def test_breaches_survive_any_type():
    for junk in (None, 1, "x", [], {}, [None], {"a": None}, [[{}]]):
        fields = "containers volumes securityContext hostNetwork os initContainers hostUsers".split()
        deep = {"securityContext": junk, "ports": junk, "livenessProbe": junk, "lifecycle": {"preStop": junk}}
        contexts = [{"securityContext": dict.fromkeys("capabilities seLinuxOptions seccompProfile".split(), junk)}]
        for spec in (junk, dict.fromkeys(fields, junk), {"containers": [deep, junk]}, {"containers": contexts}):
            find_breaches(junk, spec, "restricted", 10)
            find_breaches({"annotations": junk}, spec, "restricted", LATEST)


LEVELS = [
    ({}, []),
    ({"enforce": "privileged"}, []),
    ({"enforce": "baseline"}, [("enforce", "baseline", "latest")]),
    ({"enforce": "baseline", "enforce-version": "v1.30"}, [("enforce", "baseline", "v1.30")]),
    ({"enforce": "baseline", "enforce-version": "1.30"}, [("enforce", "baseline", "latest")]),
    # The server refuses such a label; one that is there in spite of it counts as the strictest.
    ({"enforce": "Baseline"}, [("enforce", "restricted", "latest")]),
    ({"warn": "Baseline"}, []),
    ({"audit": "restricted", "warn": "baseline"}, [("warn", "baseline", "latest"), ("audit", "restricted", "latest")]),
]


@pytest.mark.parametrize(("labels", "expected"), LEVELS)
def test_levels_of_a_namespace(labels, expected):
    found = list_levels({LABEL + name: value for name, value in labels.items()})
    assert [(level.mode, level.level, level.version) for level in found] == expected
