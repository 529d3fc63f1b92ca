"""Feature gates that the configuration of a cluster in the same repository turns on: of Talos, kubeadm, k3s or kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobgen.k8s.feature_gates import GATED_FIELDS
from jobgen.model.finding import Finding
from jobgen.recognize.tree import FileTree

# What the API server refuses or drops without a gate: by rule, the last field of the value and its gate.
_GATES: Mapping[str, Mapping[str, str]] = {
    "dropped-field": {field.path.rpartition(".")[2].removesuffix("[]"): field.gate for field in GATED_FIELDS},
    "out-of-range": {"minReplicas": "HPAScaleToZero"},
}
_CONFIGURATIONS = (".yaml", ".yml", ".j2", ".tmpl", ".tpl", ".tf", ".toml", ".sh", ".json")
_SIGNS = ("=true", ": true", "=True")


def leave_out_gated(findings: Sequence[Finding], tree: FileTree) -> Sequence[Finding]:
    """Return the findings without those about fields whose gate some file turns on."""
    gates = {gate for finding in findings if finding.rule in _GATES and (gate := _find_gate(finding))}
    declared = {gate for gate in gates if _is_declared(gate, tree)}
    if not declared:
        return findings
    return [finding for finding in findings if finding.rule not in _GATES or _find_gate(finding) not in declared]


def _find_gate(finding: Finding) -> str:
    return _GATES[finding.rule].get(finding.pointer.rpartition("/")[2], "")


def _is_declared(gate: str, tree: FileTree) -> bool:
    return any(tree.find_text(f"{gate}{sign}".encode(), _CONFIGURATIONS) for sign in _SIGNS)
