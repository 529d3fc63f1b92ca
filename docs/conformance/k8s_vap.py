"""The tests of ValidatingAdmissionPolicies of Kubernetes 1.36.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance import Verdict, temporary_repository
from jobgen.cli.commands.policy import run_cases

_BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "p"},
}


def run(data: Any) -> Iterator[Verdict]:
    """Test each policy on its object with `jobgen policy test`."""
    for case in data["cases"]:
        found, said = _check(case)
        wanted = case["expect"]
        agrees = found == wanted or (wanted == "accepted" and found in ("pass", "fail", "error"))
        text = case["policy"]["spec"]["validations"][0]["expression"]
        yield Verdict(case["id"], agrees, f"`{text[:150]}` expected {wanted}, got {found}: {said[:300]}")


def _check(case: Any) -> tuple[str, str]:
    spec: dict[str, Any] = {"policyName": "p", "validationActions": ["Deny"]}
    if case.get("params"):
        spec["paramRef"] = {"name": "params", "parameterNotFoundAction": "Deny"}
    files = {
        "jobgen.yaml": "",
        "policies/p.yaml": (case["policy"], {**_BINDING, "spec": spec}),
        "policies/tests/p/case.yaml": case["object"],
        "policies/params/params.yaml": case.get("params"),
        "policies/namespaces/ns.yaml": case.get("namespace"),
    }
    with temporary_repository({name: content for name, content in files.items() if content is not None}) as root:
        result = run_cases(root, root, None)
    if result.code == 4:
        return "refused", result.err
    if "could not be evaluated" in result.out:
        return "error", result.out
    if "`p` is found" in result.out:
        return "fail", result.out
    return ("pass", "") if result.code == 0 else ("other", result.out + result.err)
