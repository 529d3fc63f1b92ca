"""The tests of RFC 6902 of json-patch-tests and evanphx/json-patch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conformance import Verdict, is_same, temporary_repository
from jobgen.api.errors import JobgenError
from jobgen.api.render import render


def run(data: Any) -> Iterator[Verdict]:
    """Render each document as the field `doc` of a manifest, with the patch in an overlay."""
    for case in data["cases"]:
        found, wanted = _apply(case), case["expect"]
        agrees = found.keys() == wanted.keys() and ("error" in found or is_same(found["result"], wanted["result"]))
        shown = f"{case.get('about', '')} {json.dumps(case['doc'])[:150]} {json.dumps(case['patch'])[:200]}"
        yield Verdict(case["id"], agrees, f"{shown}: expected {json.dumps(wanted)[:150]}, got {str(found)[:250]}")


def _apply(case: Any) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "d"}
    manifest = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "doc": case["doc"]}
    patch = list(map(_move_operation, case["patch"])) if isinstance(case["patch"], list) else case["patch"]
    overlay = {
        "apiVersion": "jobgen.dev/v1",
        "kind": "Overlay",
        "metadata": {"name": "e"},
        "spec": {"patches": [{"match": {}, "jsonPatch": patch}]},
    }
    files = {"jobgen.yaml": "", "jobs/x.yaml": manifest, "overlays/e/overlay.yaml": overlay}
    with temporary_repository(files) as root:
        try:
            result = render(root, environments=["e"], format="json")
        except JobgenError as error:
            return {"error": str(error)}
    if result.failed or not result.objects:
        return {"error": [finding.message for finding in result.findings]}
    return {"result": result.objects[0].manifest.get("doc", "(gone)")}


def _move_operation(operation: Any) -> Any:
    """An operation on the field `doc`; a pointer that does not begin with `/` is left as it is."""
    if not isinstance(operation, dict):
        return operation
    moved = {
        field: f"/doc{operation[field]}"
        for field in ("path", "from")
        if isinstance(operation.get(field), str) and operation[field][:1] in ("", "/")
    }
    return {**operation, **moved}
