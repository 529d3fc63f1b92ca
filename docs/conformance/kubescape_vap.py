"""The policies and tests of kubescape's CEL admission library."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from conformance import Verdict, temporary_repository
from jobgen.cli.commands.policy import run_cases

_FILE = re.compile(r"policies/tests/.*/c(\d+)\.yaml: (ok|FAILED)")


def run(data: Any) -> Iterator[Verdict]:
    """Test each control on its objects with `jobgen policy test`."""
    groups: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for case in data["cases"]:
        groups[case["control"], case["binding"], case["params"]].append(case)
    for key, cases in sorted(groups.items()):
        binding, found = _check(data, key, cases)
        for number, case in enumerate(cases):
            verdict = _to_verdict(found.get(number), case["policy"], binding["spec"]["validationActions"][0])
            yield Verdict(case["id"], verdict == case["expect"], f"expected {case['expect']}, got {verdict}")


def _check(data: Any, key: tuple[str, str, str], cases: list[Any]) -> tuple[Any, dict[int, list[str]]]:
    control, binding_name, params_name = key
    name = cases[0]["policy"]
    binding, params = data["bindings"][binding_name], data["params"][params_name]
    param_ref = {**binding["spec"]["paramRef"], "name": f"{name}-params"}
    spec = {**binding["spec"], "policyName": name, "paramRef": param_ref}
    binding = {**binding, "metadata": {**binding["metadata"], "name": f"{name}-binding"}, "spec": spec}
    params = {**params, "metadata": {**params["metadata"], "name": f"{name}-params"}}
    files = {"jobgen.yaml": "", f"policies/{control}.yaml": (data["policies"][control].rstrip(), binding)}
    files |= {"policies/params/params.yaml": params}
    files |= {f"policies/tests/{name}/c{number:04}.yaml": case["object"] for number, case in enumerate(cases)}
    with temporary_repository(files) as root:
        lines = run_cases(root, root, None).out.splitlines()
    found: dict[int, list[str]] = {}
    current: list[str] = []
    for line in lines:
        if match := _FILE.match(line):
            current = found[int(match[1])] = []
        else:
            current.append(line.strip())
    return binding, found


def _to_verdict(lines: list[str] | None, policy: str, action: str) -> str:
    if lines is None:
        return "not tested"
    if not lines:
        return "pass"
    if any("could not be evaluated" in line for line in lines):
        return f"error: {lines[0]}"
    if all(f"`{policy}` is found" in line for line in lines):
        return "warn" if action == "Warn" else "fail"
    return " | ".join(lines)
