"""The JSON Schema test suite as the API server 1.36.4 applies it to custom resources."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance import Verdict, list_errors, temporary_repository
from jobgen.api.lint import lint
from jobgen.cli.commands.schema import import_crds


def run(data: Any) -> Iterator[Verdict]:
    """Import each schema as the field `val` of a CRD, and lint an object with each value."""
    cases, kinds = data["cases"], {}
    files: dict[str, Any] = {"jobgen.yaml": ""}
    for number, case in enumerate(cases):
        kind = kinds.setdefault(json.dumps(case["schema"], sort_keys=True), f"T{len(kinds):04}")
        head = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": f"x{number}", "namespace": "d"}}
        files[f"objects/o{number:04}.yaml"] = {**head, "val": case["value"]}
    files |= {f"crds/{kind}.yaml": _build_crd(json.loads(text), kind) for text, kind in kinds.items()}
    with temporary_repository(files) as root:
        import_crds(root, sorted(root.glob("crds/*.yaml")))
        errors: dict[str, list[str]] = {}
        for finding in lint(root, ("objects",)).findings:
            errors.setdefault(Path(finding.location.file).stem, []).extend(list_errors([finding]))
    for number, case in enumerate(cases):
        found = errors.get(f"o{number:04}", [])
        shown = f"{json.dumps(case['schema'])[:180]} {json.dumps(case['value'])[:80]}"
        wanted = f"{case['expect']} {case.get('why', '')[:120]}"
        agrees = bool(found) == (case["expect"] == "refused")
        yield Verdict(case["id"], agrees, f"{shown}: expected {wanted}, got {found[:1]}")


def _build_crd(schema: Any, kind: str) -> dict[str, Any]:
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower(), "listKind": f"{kind}List"}
    root = {"type": "object", "properties": {"val": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
