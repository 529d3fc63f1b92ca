"""The findings of an editor are those of `jobgen lint`, after any edits, whether or not files are saved."""

import os
from random import Random

import pytest
from editorfiles import JOB, OVERLAY, edit, make_repository

import jobgen
from jobgen.editor.lint_workspace import WorkspaceLinter
from jobgen.editor.workspace import Workspace
from jobgen.repo.files import edited


def write(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def lint_fresh(folder, drafts):
    """The findings of `jobgen lint` by file, with the contents of open documents."""
    with edited(drafts):
        try:
            findings = jobgen.lint(folder).findings
        except jobgen.JobgenError as error:
            findings = error.findings
    found = {}
    for finding in findings:
        found.setdefault(finding.location.file, []).append(finding)
    return {file: sorted(several, key=str) for file, several in found.items()}


@pytest.mark.parametrize("seed", range(6))
def test_findings_are_those_of_lint_after_random_edits(tmp_path, seed):
    random = Random(seed)
    files = make_repository(random)
    write(tmp_path, files)
    linter, workspace = WorkspaceLinter(tmp_path), Workspace(tmp_path)

    for _ in range(12):
        path = random.choice(sorted(files))
        files[path] = edit(random, path, files[path])
        if random.randrange(3):
            workspace.open(tmp_path / path, files[path])
        else:
            workspace.close(tmp_path / path)
            (tmp_path / path).write_text(files[path])
        workspace.take(linter.lint(workspace.drafts, lambda *_: None))
        expected = lint_fresh(tmp_path, workspace.drafts)

        found = {file: sorted(each.all, key=str) for file, each in workspace.snapshot.findings.items()}
        assert found == expected
        alone = workspace.lint_file(path)
        assert sorted(alone.all, key=str) == expected.get(path, []), os.fspath(path)


def test_index_knows_jobs_objects_patches_and_names(tmp_path):
    random = Random(5)
    files = make_repository(random)
    files["jobs/job0.yaml"] = JOB.format(
        name="bert", team="nlp", framework="pytorch", tag="1.2", gpus=1, seed=1, replicas=4
    )
    files["overlays/dev/overlay.yaml"] = OVERLAY.format(env="dev", pattern="b", gpus=2)
    files["overlays/prod/overlay.yaml"] = OVERLAY.format(env="prod", pattern="zzz", gpus=2)
    linter, workspace = WorkspaceLinter(write(tmp_path, files)), Workspace(tmp_path)
    workspace.take(linter.lint({}, lambda *_: None))

    [job] = workspace.index["jobs/job0.yaml"].jobs

    assert (job.name, job.kind, job.framework, job.location.line) == ("bert", "TrainingJob", "pytorch", 1)
    assert [(each.environment, [str(made) for made in each.objects], each.patches) for each in job.environments] == [
        ("dev", ["PyTorchJob ml-dev/bert"], (("dev", 0),)),
        ("prod", ["PyTorchJob ml-prod/bert"], ()),
    ]
    assert ("ResourceQuota", "gpus") in workspace.index["jobs/quota.yaml"].names

    (tmp_path / "jobs/job0.yaml").unlink()
    workspace.take(linter.lint({}, lambda *_: None))
    assert "jobs/job0.yaml" not in workspace.index
