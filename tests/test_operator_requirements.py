"""Operator requirements in kind descriptions refer to existing fields and roles."""

from pathlib import Path

import pytest
from shippedschemas import shipped_schema

from jobgen.check.operators import KINDS as CHECKED_KINDS
from jobgen.rendering import config

ROOT = Path(__file__).parent.parent
KINDS = {f"{kind.name} {kind.api_version}": kind for kind in config.load_own(ROOT).kinds if kind.requirements.known}


def schema(kind):
    return shipped_schema(str(kind.api_version), kind.name)


def field(root, steps):
    """The schema of the field at a path."""
    node = root
    for step in steps:
        while "$ref" in node or "anyOf" in node:
            node = root["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node["anyOf"][0]
        node = node["properties"][step]
    return node


@pytest.mark.parametrize("name", KINDS)
def test_requirements_refer_to_fields_of_the_kind(name):
    kind = KINDS[name]
    root = schema(kind)

    for demands, wanted in ((kind.requirements.choices, "string"), (kind.requirements.bounds, "integer")):
        for place, fields in demands.items():
            for last in fields:
                assert wanted in field(root, (*place, last)).get("type", ()), (*place, last)


@pytest.mark.parametrize("name", KINDS)
def test_requirements_refer_to_roles_of_the_kind(name):
    kind = KINDS[name]
    named = {
        *kind.requirements.written,
        *kind.requirements.bounds_since,
        *kind.requirements.unchecked,
        *kind.requirements.scaled,
    }

    assert named <= set(kind.roles)


@pytest.mark.parametrize("name", KINDS)
def test_reserved_variables_belong_to_a_runtime_policy(name):
    demands = KINDS[name].requirements

    assert set(demands.reserved) <= {runtime.policy for runtime in demands.runtimes.values()}


def test_every_rendered_kind_lists_its_requirements_or_has_checks_of_its_operator():
    silent = [kind.name for kind in config.load_own(ROOT).kinds if kind.roles and not kind.requirements.known]

    assert set(silent) <= set(CHECKED_KINDS)
