"""Other tools that build and check the same objects with the same schemas, and where they disagree with jobgen."""

from jobgen.model.features import Feature

FEATURE = Feature(
    parts={
        "lint.other_builds": "check_builds:check_builds",
        "lint.other_tools": "check_run:check_run",
        "lint.other_tools.missing": "check_run:find_missing",
    }
)
