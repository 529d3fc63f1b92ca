"""Owners of files by CODEOWNERS: the examples of GitHub's documentation, and what it skips."""

from __future__ import annotations

import pytest

from jobgen.repo.code_owners import find_code_owners, parse_code_owners


@pytest.mark.parametrize(
    ("pattern", "matches", "differs"),
    [
        ("*", ("a.yaml", "jobs/a.yaml", ".github/x"), ()),
        ("*.yaml", ("a.yaml", "jobs/vision/a.yaml"), ("a.yml", "a.yaml.txt")),
        ("/build/logs/", ("build/logs/a.txt", "build/logs/b/c.txt"), ("build/logs", "x/build/logs/a.txt")),
        ("docs/*", ("docs/a.md",), ("docs/build/a.md", "x/docs/a.md")),
        ("apps/", ("apps/a", "x/apps/a", "x/apps/y/a"), ("apps", "x/apps")),
        ("/docs/", ("docs/a", "docs/b/c"), ("x/docs/a",)),
        ("/scripts", ("scripts", "scripts/a"), ("x/scripts", "scripts2")),
        ("**/logs", ("logs/a", "build/logs/a", "x/y/logs"), ("catalogs/a",)),
        ("/jobs/**/prod.yaml", ("jobs/prod.yaml", "jobs/a/b/prod.yaml"), ("prod.yaml", "jobs/a/prod.yml")),
        ("/jobs/**", ("jobs/a", "jobs/a/b"), ("jobs", "x/jobs/a")),
        ("jobs/vision/*.yaml", ("jobs/vision/a.yaml",), ("jobs/vision/x/a.yaml", "jobs/a.yaml")),
        ("run-?.yaml", ("run-1.yaml", "x/run-2.yaml"), ("run-10.yaml", "run-/.yaml")),
        (r"/my\ jobs/", ("my jobs/a.yaml",), ("my/a.yaml",)),
        ("a.b+(c)", ("a.b+(c)",), ("axb+(c)", "a.bb(c)")),
        ("*.YAML", ("a.YAML",), ("a.yaml",)),
    ],
)
def test_patterns(pattern, matches, differs):
    rules = parse_code_owners(f"{pattern} @team")
    assert [find_code_owners(rules, path) for path in matches] == ["@team"] * len(matches)
    assert [find_code_owners(rules, path) for path in differs] == [""] * len(differs)


def test_the_last_match_wins_and_a_line_without_owners_removes_them():
    rules = parse_code_owners(
        """# The platform team owns what has no other owner.
* @platform   # by default

/jobs/ @ml/training ada@example.com
/jobs/vision/ @vision
/jobs/vision/legacy/
"""
    )
    assert find_code_owners(rules, "README.md") == "@platform"
    assert find_code_owners(rules, "jobs/a.yaml") == "@ml/training ada@example.com"
    assert find_code_owners(rules, "jobs/vision/a.yaml") == "@vision"
    assert find_code_owners(rules, "jobs/vision/legacy/a.yaml") == ""


def test_lines_that_github_skips_are_skipped():
    rules = parse_code_owners(
        "* @platform\n!jobs/ @none\n[Section] @section\n^[Optional][2] @two\n#/jobs/ @comment\n\n"
    )
    assert len(rules) == 1
    assert find_code_owners(rules, "jobs/a.yaml") == "@platform"


def test_no_pattern_takes_long():
    rules = parse_code_owners("\n".join(("**/" * 200 + "x @a", "*a" * 200 + "b @b")))
    assert find_code_owners(rules, "/".join(["a" * 100] * 100)) == ""
