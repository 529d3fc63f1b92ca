"""Schemas of values without helm: the values that are refused are those that helm refuses."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import run_jobgen
from helm_charts import GOOD, HELM, METADATA, WITHOUT_HELM, below, needs_helm, write_files
from kubectl import GO

from jobgen.features.helm.json_schema import find_violations

WITH_HELM = os.pathsep.join((str(HELM.parent), WITHOUT_HELM))
SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "port": {"$ref": "#/definitions/port"},
        "host": {"type": "string", "pattern": "^[a-z]+$"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        "name": {},
        "sub": {},
        "global": {},
    },
    "definitions": {"port": {"type": "integer", "maximum": 100}},
}
VALUES = "port: 8080\nhost: A1\nlist:\n  - a: 1\n  - a: x\nother: 1\n"
FILES = {**GOOD, "values.yaml": VALUES, "values.schema.json": json.dumps(SCHEMA)}


def lint(root: Path, path: str) -> list[tuple[str, str, str, int, str]]:
    """Return the findings about values."""
    done = run_jobgen(root, "lint", "--no-cache", "--format", "json", env={**os.environ, "PATH": path})
    found = json.loads(done.stdout)["findings"]
    wanted = ("chart-values-invalid", "chart-value-missing")
    fields = ("rule", "severity", "file", "line", "message")
    return [tuple(each[field] for field in fields) for each in found if each["rule"] in wanted]


RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec:
  interval: 1h
  chart:
    spec:
      chart: ./charts/web
      sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}
  values:
    name: a
    host: web
    list: []
    port: 101
"""
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: ml}
  source:
    repoURL: https://github.com/example/gitops
    path: charts/web
    helm:
      parameters:
        - name: port
          value: '102'
      values: |
        name: a
        host: web1
        other: null
"""


@needs_helm
@pytest.mark.parametrize(
    ("files", "places"),
    [
        ({}, {("Chart.yaml", 1), ("values.yaml", 1), ("values.yaml", 2), ("values.yaml", 5), ("values.yaml", 6)}),
        ({"values.yaml": "name: a\n"}, set()),
        ({"README.md": "helm install web . --set port=1,host=b\n", "values.yaml": "name: a\nport: 1000\n"}, set()),
        (
            {
                **below(
                    "charts/sub", {**GOOD, "Chart.yaml": METADATA.replace("web", "sub"), "values.schema.json": "false"}
                ),
                "values.yaml": "name: a\nsub: {}\n",
            },
            {("values.yaml", 2)},
        ),
    ],
    ids=["values", "none", "options", "subchart"],
)
def test_what_is_refused_without_helm_is_what_is_refused_with_it(
    tmp_path: Path, files: dict[str, str], places: set[tuple[str, int]]
) -> None:
    root = write_files(tmp_path, {**FILES, **files})
    found = lint(root, WITHOUT_HELM)

    assert found == lint(root, WITH_HELM)
    assert {each[2:4] for each in found} == places


@needs_helm
@pytest.mark.parametrize(
    ("release", "place"), [(RELEASE, ("apps/web.yaml", 14)), (APPLICATION, ("apps/web.yaml", 12))], ids=["flux", "argo"]
)
def test_values_of_releases_are_refused_on_their_lines(tmp_path: Path, release: str, place: tuple[str, int]) -> None:
    (tmp_path / ".git/refs").mkdir(parents=True)
    (tmp_path / ".git/objects").mkdir()
    config = '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@github.com:example/gitops.git\n'
    git = {".git/HEAD": "ref: refs/heads/main\n", ".git/config": config}
    good = {**FILES, "values.yaml": "name: a\nport: 1\n"}
    root = write_files(tmp_path, {**git, **below("charts/web", good), "apps/web.yaml": release})
    found = lint(root, WITHOUT_HELM)

    assert found == lint(root, WITH_HELM)
    assert ("chart-values-invalid", "error", *place) in [each[:4] for each in found]


@needs_helm
def test_each_fault_of_values_is_one_finding(tmp_path: Path) -> None:
    messages = [each[4] for each in lint(write_files(tmp_path, FILES), WITH_HELM)]

    assert len(messages) == len(set(messages)) == 5


@pytest.mark.parametrize(
    "schema",
    [
        '{"$ref": "#/nothing"}',
        '{"$ref": "#"}',
        '{"allOf": [{"$ref": "#"}]}',
        '{"anyOf": %s}' % ('[{"anyOf": ' * 200 + "[]" + "}]" * 200),
        '{"properties": {"a": {"pattern": "(?=a)"}}}',
        '{"properties": {"a": {"type": "text"}}}',
        '{"properties": {"a": {"unevaluatedItems": false, "type": "integer"}}}',
        '{"definitions": {"a": {"anyOf": [{"$ref": "#/definitions/a"}]}}, "$ref": "#/definitions/a"}',
    ],
)
def test_nothing_is_said_of_a_schema_that_is_not_certain(schema: str) -> None:
    assert find_violations(json.loads(schema), {"a": "x"}) == []


# Pairs of schemas and values, by chance.

_VALUES: list[Any] = [
    0,
    1,
    -3,
    2.5,
    7,
    "",
    "a",
    "abc",
    True,
    False,
    [],
    [1],
    [1, 1],
    ["a", 2],
    {},
    {"a": 1},
    {"a": "x", "b": [1]},
]


def make_schema(chance: random.Random, depth: int = 0) -> Any:
    def below() -> Any:
        return make_schema(chance, depth + 1) if depth < 3 else {}

    makers: list[tuple[str, Any]] = [
        (
            "type",
            lambda: chance.choice(["string", "integer", "number", "boolean", "array", "object", ["string", "integer"]]),
        ),
        ("enum", lambda: chance.sample([value for value in _VALUES if value != ""], 3)),
        ("const", lambda: chance.choice(_VALUES)),
        ("minimum", lambda: chance.choice([-1, 1, 2.5])),
        ("exclusiveMaximum", lambda: chance.choice([3, 7])),
        ("multipleOf", lambda: chance.choice([1, 2, 7])),
        ("minLength", lambda: 1),
        ("maxLength", lambda: chance.choice([1, 2])),
        ("pattern", lambda: chance.choice(["^a", "b", "^[a-z]{3}$"])),
        ("minItems", lambda: 1),
        ("maxItems", lambda: 1),
        ("uniqueItems", lambda: True),
        ("items", below),
        ("contains", below),
        ("required", lambda: [chance.choice("ab")]),
        ("properties", lambda: {name: below() for name in chance.sample("ab", 1)}),
        ("patternProperties", lambda: {"^a": below()}),
        ("additionalProperties", lambda: chance.choice([False, below()])),
        ("propertyNames", lambda: {"pattern": "^a"}),
        ("minProperties", lambda: 1),
        ("maxProperties", lambda: 1),
        ("dependencies", lambda: {"a": ["b"]}),
        ("allOf", lambda: [below(), below()]),
        ("anyOf", lambda: [below(), below()]),
        ("oneOf", lambda: [below(), below()]),
        ("not", below),
        ("if", below),
    ]
    chosen = {name: make() for name, make in chance.sample(makers, chance.choice([1, 1, 2, 3]))}
    if "if" in chosen:
        chosen |= {"then": below(), "else": below()}
    return chosen


def list_refused(root: Path) -> set[str]:
    """Return the charts whose values helm refuses."""
    done = subprocess.run(
        [HELM, "template", root], capture_output=True, check=False, env={"HOME": str(root.parent), **GO}
    )
    if done.returncode:
        assert b"don't meet the specifications" in done.stderr
    return set(re.findall(r"(?m)^(c\d+):$", done.stderr.decode()))


@needs_helm
@pytest.mark.parametrize("seed", range(8))
def test_values_by_chance_are_refused_as_helm_refuses_them(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    schemas = {f"c{number}": make_schema(chance) for number in range(150)}
    files: dict[str, str] = {"Chart.yaml": METADATA}
    wanted: set[str] = set()
    values: dict[str, Any] = {}
    for name, part in schemas.items():
        values[name] = value = chance.choice(_VALUES)
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"v": part}}
        metadata = METADATA.replace("web", name)
        files |= below(f"charts/{name}", {"Chart.yaml": metadata, "values.schema.json": json.dumps(schema)})
        files[f"charts/{name}/values.yaml"] = yaml.safe_dump({"v": value})
        wanted |= {name} if find_violations(schema, {"v": value, "global": {}}) else set()
    refused = list_refused(write_files(tmp_path / "chart", files))

    assert len(refused) > 40
    assert [(name in wanted, values[name], schemas[name]) for name in wanted ^ refused] == []
