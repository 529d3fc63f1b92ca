"""The tests of CEL rules in CRDs of Kubernetes 1.36.4, on creation, without cost limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from conformance import Verdict
from jobgen.check.schema.build import convert_crd
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.check.validation import validate_object
from jobgen.k8s.kinds import NEWEST_RELEASE


def run(data: Any) -> Iterator[Verdict]:
    """Convert each schema as `jobgen schema import` does, and check the object."""
    for case in data["cases"]:
        found, said = _check(case)
        wanted = case["expect"]["verdict"]
        why = " ".join(case["expect"].get("why", "")[:300].split())
        rules = re.findall('"rule": "([^"]{,200})', json.dumps(case["schema"]))[:2]
        yield Verdict(case["id"], found == wanted, f"{rules} expected {wanted} {why}, got {found} {said:.200}")


def _check(case: Any) -> tuple[str, str]:
    plural = f"{case['kind'].lower()}s"
    names = {"kind": case["kind"], "plural": plural}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": case["schema"]}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    errors = validate_object(crd, NEWEST_RELEASE)
    if errors:
        return "refused", str(errors[0].sentence)
    (schema,) = dict(convert_crd(crd)).values()
    if "object" not in case:
        return "compiles", ""
    problems = compile_structural(schema)(case["object"])
    for problem in problems:
        if problem.rule != "crd-rule-violated":
            return "schema", f"{problem.rule}: {problem.sentence}"
    return ("violated", str(problems[0].sentence)) if problems else ("valid", "")
