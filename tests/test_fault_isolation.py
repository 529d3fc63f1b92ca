"""A fault in one rule hides nothing that the others find."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from jobgen.check import rules
from jobgen.cli.run_lint import lint_paths

MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a, namespace: b}
spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: a, imag: b}]}}}}}
"""


# --- Rules over all jobs.


def test_exception_while_facts_are_collected_is_reported_beside_other_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = next(rule for rule in rules.all_rules() if rule.scope == "fleet")

    def fail(*_: object) -> NoReturn:
        raise KeyError("containerPort")

    def all_rules() -> tuple[rules.Rule, ...]:
        return (fleet._replace(collect=fail), *(rule for rule in found if rule.name != fleet.name))

    found = rules.all_rules()
    monkeypatch.setattr(rules, "all_rules", all_rules)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(MANIFEST)
    result = lint_paths(tmp_path, (), (), format_="text")

    assert f"the rule `{fleet.name}` failed on this object with `KeyError`" in result.out
    assert "[unknown-field]" in result.out
