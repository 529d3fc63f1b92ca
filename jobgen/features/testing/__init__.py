"""Tests of jobs: what they must be rendered as."""

from jobgen.model.features import Feature

FEATURE = Feature(
    parts={
        "editor.conditions": "evaluate:list_conditions",
    },
)
