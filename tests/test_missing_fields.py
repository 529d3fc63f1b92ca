"""No rule fails because a field is missing: the examples of every rule are linted without each of their fields.

An entry of `env` may have no `value`, a container no `image`, a role no `replicas`. A rule that reads what is not there
ends the lint of all files, so here every field is left out once. `pytest tests/test_missing_fields.py -k RULE --stress`
tries all fields of the examples of one rule; without `--stress`, it is a few fields of each rule.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import run_jobgen
from examples import EXAMPLES, cases

from jobgen.check.rules import all_rules

RULES = [rule.name for rule in all_rules() if (EXAMPLES / f"{rule.name}.yaml").is_file()]
STEP = 7
"""Without `--stress`, every so many fields are left out."""
NEEDED = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name")}
"""Without these, no rule sees the object."""
Path_ = tuple[str | int, ...]


def list_fields(data: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of each field and each item."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from list_fields(value, (*path, key))


def leave_out(data: Any, path: Path_) -> Any:
    """Return a copy of a document without one field."""
    changed = copy.deepcopy(data)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return changed


def write_variants(folder: Path, step: int) -> int:
    """Write each document of the repository again without one of its fields; return how many are written."""
    number = 0
    for path in sorted((folder / "jobs").glob("*.yaml")):
        try:
            documents = [each for each in yaml.safe_load_all(path.read_text()) if isinstance(each, dict)]
        except yaml.YAMLError:
            continue
        for data in documents:
            fields = [field for field in list_fields(data) if field not in NEEDED]
            for field in fields[len(fields) % step :: step]:
                number += 1
                variant = leave_out(data, field)
                if isinstance(metadata := variant.get("metadata"), dict):
                    metadata["name"] = f"{str(metadata.get('name', 'a'))[:40]}-{number}"
                # JSON is YAML without aliases.
                (folder / f"jobs/without-{number}.yaml").write_text(json.dumps(variant, default=str))
    return number


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_does_not_need_a_field(rule: str, tmp_path: Path, stress: int) -> None:
    for at, case in enumerate(cases(EXAMPLES / f"{rule}.yaml")[: 1 if stress == 1 else None]):
        (folder := tmp_path / str(at)).mkdir()
        case.write(folder)
        if write_variants(folder, STEP if stress == 1 else 1):
            done = run_jobgen(folder, "--no-cache", "lint", "--format", "json")

            assert done.returncode in (0, 1), done.stderr.decode()
            assert b"internal-error" not in done.stdout
