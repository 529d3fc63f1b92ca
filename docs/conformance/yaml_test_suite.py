"""The YAML test suite as kubectl 1.37.1 reads it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from conformance import Verdict, is_same
from jobgen.model.data import untraced
from jobgen.model.finding import Severity
from jobgen.yamlio.read import read


def run(data: Any) -> Iterator[Verdict]:
    """Read each text, with and without locations."""
    for case in data["cases"]:
        content = base64.b64decode(case["base64"])
        source = read(content, "f.yaml")
        errors = [finding for finding in source.findings if finding.severity is Severity.ERROR]
        found = [document.data for document in source.documents]
        traced = [untraced(document.data) for document in read(content, "f.yaml", traced=True).documents]
        said = errors[0].message if errors else json.dumps(found)[:150]
        wanted = case["expect"].get("documents")
        agrees = bool(errors) if wanted is None else not errors and is_same(found, wanted) and is_same(traced, wanted)
        yield Verdict(case["id"], agrees, f"{case['about'][:60]} {content[:120]!r}: expected {wanted}, got {said}")
