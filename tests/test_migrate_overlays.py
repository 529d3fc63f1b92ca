"""Overlays of a repository that moves to TrainJobs: fields that these do not have go, and other kinds keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.features.convert.migrate.steps import LayerMigration, PatchUse, migrate_overlay, set_platform
from jobgen.rendering import config

PROJECT = config.load_own(Path(__file__).parent.parent)
KINDS = {kind.name: kind for kind in PROJECT.kinds}
MIGRATION = LayerMigration(KINDS["PyTorchJob"], KINDS["TrainJob"], "pytorch", "2.2.0", frozenset(["RANK"]))
MOVED = PatchUse(migrated=frozenset(["a", "b"]))
MIXED = MOVED._replace(others=frozenset(["TFJob"]))
SPLIT = MOVED._replace(split=frozenset(["b"]))
TFJOB = frozenset(["TFJob"])


def migrate(spec, uses=(), others=frozenset()):
    notes = []
    return migrate_overlay(spec, MIGRATION, uses, others, notes), [str(each.note).partition(":")[0] for each in notes]


@pytest.mark.parametrize(
    ("defaults", "others", "expected"),
    [
        ({"nodeSelector": {"a": "b"}}, TFJOB, {"defaults": {"nodeSelector": {"a": "b"}}}),
        ({"workingDir": "/a"}, frozenset(), {}),
        ({"run": {"identity": "hash"}}, TFJOB, {"defaults": {"run": {"identity": "hash"}}}),
        ({"workingDir": "/a", "env": {"A": "1", "RANK": "7"}}, frozenset(), {"defaults": {"env": {"A": "1"}}}),
        (
            {"workingDir": "/a", "runPolicy": {"backoffLimit": 1, "suspend": True}},
            TFJOB,
            {
                "defaults": {"runPolicy": {"suspend": True}},
                "patches": [
                    {"match": {"kinds": ["TFJob"]}, "merge": {"workingDir": "/a", "runPolicy": {"backoffLimit": 1}}}
                ],
            },
        ),
        ({"roles": {"worker": {"restartPolicy": "Never"}}}, frozenset(), {}),
        (
            {"podTemplate": {"spec": {"hostNetwork": True, "nodeSelector": {"a": "b"}}}},
            frozenset(),
            {"defaults": {"podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}}},
        ),
    ],
)
def test_defaults(defaults, others, expected):
    assert migrate({"defaults": defaults}, (), others)[0] == expected


@pytest.mark.parametrize(
    ("patch", "use", "expected"),
    [
        ({"match": {}, "merge": {"image": "a"}}, MIXED, [{"match": {}, "merge": {"image": "a"}}]),
        ({"match": {}, "merge": {"workingDir": "/a"}}, PatchUse(), [{"match": {}, "merge": {"workingDir": "/a"}}]),
        ({"match": {}, "merge": {"workingDir": "/a"}}, MOVED, []),
        (
            {"match": {"kinds": ["PyTorchJob"]}, "merge": {"workingDir": "/a", "image": "b"}},
            MOVED,
            [{"match": {"kinds": ["TrainJob"]}, "merge": {"image": "b"}}],
        ),
        (
            {"match": {"kinds": ["PyTorchJob", "TFJob"]}, "manifest": {"spec": {}}},
            MIXED,
            [{"match": {"kinds": ["TFJob"]}, "manifest": {"spec": {}}}],
        ),
        (
            {"merge": {"image": "a", "roles": {"worker": {"replicas": 4}, "master": {"image": "b"}}}},
            SPLIT,
            [
                {"merge": {"image": "a"}},
                {
                    "match": {"names": ["a"]},
                    "merge": {"roles": {"worker": {"replicas": 4}, "master": {"image": "b"}}},
                },
                {"match": {"names": ["b"]}, "merge": {"image": "b"}},
            ],
        ),
    ],
)
def test_patches(patch, use, expected):
    new, _ = migrate({"patches": [patch]}, [use])

    assert new.get("patches", []) == expected


@pytest.mark.parametrize(
    ("cluster", "mixed", "expected"),
    [
        ({"platform": "kubeflow", "gitops": "flux"}, False, {"platform": "trainer", "gitops": "flux"}),
        ({"platform": "kubeflow"}, True, {"platforms": ["trainer", "kubeflow"]}),
        ({"platforms": ["kubeflow", "ray"]}, False, {"platforms": ["trainer", "ray"]}),
        ({"platforms": ["ray", "kubeflow"]}, True, {"platforms": ["ray", "trainer", "kubeflow"]}),
        ({"platforms": ["ray", "kubeflow"]}, False, {"platforms": ["ray", "trainer"]}),
        ({"platforms": ["ray", "kubeflow", "trainer"]}, False, {"platforms": ["ray", "trainer"]}),
        ({"platforms": ["trainer", "kubeflow"]}, True, {"platforms": ["trainer", "kubeflow"]}),
        ({"platforms": ["ray"]}, True, {"platforms": ["trainer", "ray"]}),
        ({"platform": "kubeflow", "platforms": ["ray"]}, False, {"platforms": ["trainer", "ray"]}),
        ({}, False, {"platform": "trainer"}),
    ],
)
def test_platforms(cluster, mixed, expected):
    assert set_platform(cluster, "kubeflow", "trainer", is_mixed=mixed) == expected


def test_every_removed_field_has_a_note():
    spec = {"defaults": {"workingDir": "/a", "env": {"RANK": "1"}}, "patches": [{"match": {}, "jsonPatch": []}]}

    assert migrate(spec, [MOVED])[1] == ["moved", "changed", "moved"]
