"""The tests of Karmada's resource interpreters: resources and health of training jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance import Verdict, temporary_repository
from jobgen.check.cel import CompileError, Failed, compile_cel
from jobgen.features.gitops.engine_kinds import build_cel_checks, list_engine_kinds
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import sum_resources
from jobgen.model.quantity import to_milli
from jobgen.rendering import config
from jobgen.spec.overlay import Cluster


def run(data: Any) -> Iterator[Verdict]:
    """Compare the sum of resources, and whether a job failed; jobgen has no dependencies and no revised replicas."""
    with temporary_repository({"jobgen.yaml": ""}) as root:
        kinds = config.load_own(root).kinds
    by_name = {(str(kind.api_version), kind.name): kind for kind in kinds}
    engines = {(kind.group, kind.name): kind for kind in list_engine_kinds(kinds)}
    for case in data["cases"]:
        obj = case["object"]
        kind = by_name.get((obj["apiVersion"], obj["kind"]))
        if case["operation"] in ("InterpretDependency", "InterpretReplica"):
            continue
        if case["operation"] == "InterpretComponent":
            agrees, said = _compare_resources(case, kind)
            yield Verdict(case["id"], agrees, f"{case['about']}: {said}")
            continue
        engine = engines.get((obj["apiVersion"].partition("/")[0], obj["kind"]))
        if engine is None:
            yield Verdict(case["id"], False, f"{case['about']}: there is no health check of {obj['kind']}")
        elif obj.get("status") and (engine.workload or obj["status"].get("conditions")):
            agrees, said = _compare_health(case, engine)
            yield Verdict(case["id"], agrees, f"{case['about']}: {said}")


def _compare_resources(case: Any, kind: Any) -> tuple[bool, str]:
    totals = [0, 0, 0]
    for part in case["expect"]["components"] or ():
        requests = ((part.get("replicaRequirements") or {}).get("resourceRequest")) or {}
        for index, name in enumerate(("cpu", "memory", "nvidia.com/gpu")):
            totals[index] += part["replicas"] * (to_milli(requests.get(name)) or 0)
    wanted = (totals[0], totals[1], totals[2] // 1000)
    found = sum_resources(Manifest(case["object"], kind, Cluster()))
    return wanted == (found.cpu, found.memory, found.gpus), f"expected {wanted}, got {tuple(found)}"


def _compare_health(case: Any, engine: Any) -> tuple[bool, str]:
    compiled = compile_cel(build_cel_checks(engine)["failed"], ("status",))
    assert not isinstance(compiled, CompileError), "an expression of ours"
    failed = compiled({"status": case["object"]["status"]})
    healthy = case["expect"]["healthy"]
    if isinstance(failed, Failed):
        return False, failed.message
    return failed is not healthy, f"expected healthy={healthy}, got failed={failed}"
