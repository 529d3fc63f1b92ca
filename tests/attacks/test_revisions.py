"""A revision that is not what it seems: a tag with the name of a branch."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitrepository import Repository

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec: {framework: pytorch, image: "registry.example.com/bert:1.0.0"}
"""
WARNING = "jobgen: warning: `main` is a tag and a branch; the tag is used; write `refs/heads/main` for the branch\n"


@pytest.mark.parametrize("command", ["lint --since", "diff", "render --since", "lint --policy-from"])
def test_a_tag_with_the_name_of_a_branch_is_a_warning(tmp_path: Path, command: str) -> None:
    """Git warns, too. The settings of the repository cannot turn the warning off."""
    (tmp_path / "new/jobs").mkdir(parents=True)
    repository = Repository(tmp_path / "new", tmp_path / "home")
    (repository.folder / "jobs/bert.yaml").write_text(JOB)
    repository.commit()
    plain = repository.run("jobgen", *command.split(), "main")
    repository.run("git", "tag", "main")
    repository.run("git", "config", "core.warnAmbiguousRefs", "false")
    doubtful = repository.run("jobgen", *command.split(), "main")
    clear = repository.run("jobgen", *command.split(), "refs/heads/main")

    assert (plain.stderr.count("warning: `main`"), clear.stderr.count("warning: `")) == (0, 0)
    assert doubtful.stderr.startswith(WARNING)
    assert doubtful.stderr.count("warning: `main`") == 1
