"""Feature gates that the configuration of a cluster in the same repository turns on: of Talos, kubeadm, k3s or kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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


def leave_out_gated(findings: Iterable[Finding], tree: FileTree) -> Iterator[Finding]:
    """Yield the findings without those about fields whose gate some file turns on."""
    known: dict[str, bool] = {}
    for finding in findings:
        gate = _GATES.get(finding.rule, {}).get(finding.pointer.rpartition("/")[2], "")
        if gate and gate not in known:
            known[gate] = any(tree.find_text(f"{gate}{sign}".encode(), _CONFIGURATIONS) for sign in _SIGNS)
        if not known.get(gate):
            yield finding
