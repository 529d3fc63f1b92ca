"""The findings of an editor are those of `jobgen lint`, after any edits, whether or not files are saved."""

import os
import shutil
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from editorfiles import JOB, NEW_FILES, OVERLAY, edit, make_repository

import jobgen
from jobgen import cache
from jobgen.editor.lint_workspace import WorkspaceLinter
from jobgen.editor.workspace import Workspace
from jobgen.pipeline import result_cache
from jobgen.repo.drafts import edited


def write(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def lint_saved(folder, drafts):
    """The findings of `jobgen lint` by file, in a copy of the folder where all open documents are saved."""
    with TemporaryDirectory() as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True, symlinks=True)
        write(Path(copy), {os.path.relpath(path, folder): content for path, content in drafts.items()})
        try:
            findings = jobgen.lint(copy).findings
        except jobgen.JobgenError as error:
            findings = error.findings
    found = {}
    for finding in findings:
        found.setdefault(finding.location.file, []).append(finding)
    return {file: sorted(several, key=str) for file, several in found.items()}


def edit_at_random(random, folder, files, workspace):
    """Edit, create, save, discard or delete a file, and return its path."""
    path = random.choice(sorted(files if random.randrange(3) else NEW_FILES))
    files[path] = edit(random, path, files.get(path, NEW_FILES.get(path)))
    action = random.randrange(8)
    if action < 5:
        workspace.open(folder / path, files[path])
    elif action < 7:
        workspace.close(folder / path)
        write(folder, {path: files[path]})
    else:
        # The document of a deleted file stays open, if it is; one that was never saved is lost when it is closed.
        (folder / path).unlink(missing_ok=True)
        if random.randrange(2):
            workspace.close(folder / path)
    return path


@pytest.mark.parametrize("seed", range(6))
def test_findings_are_those_of_lint_after_random_edits(tmp_path, seed):
    random = Random(seed)
    files = make_repository(random)
    write(tmp_path, files)
    linter, workspace = WorkspaceLinter(tmp_path), Workspace(tmp_path)

    for _ in range(12):
        path = edit_at_random(random, tmp_path, files, workspace)
        workspace.take(linter.lint(workspace.drafts, lambda *_: None))
        expected = lint_saved(tmp_path, workspace.drafts)

        found = {file: sorted(each.all, key=str) for file, each in workspace.snapshot.findings.items()}
        assert found == expected
        alone = workspace.lint_file(path)
        assert sorted(alone.all, key=str) == expected.get(path, []), os.fspath(path)


def test_open_documents_are_not_confused_with_results_in_the_cache(tmp_path, monkeypatch):
    folder = write(tmp_path / "repository", make_repository(Random(1)))
    monkeypatch.setattr(result_cache, "_RACY_NS", 0)
    cache.enable(tmp_path / "cache", "test")
    try:
        before = jobgen.lint(folder).findings
        job = JOB.format(name="bert", team="nlp", framework="pytorhc", tag="1.2", gpus=1, seed=1, replicas=4)
        with edited({str(folder / "jobs/job0.yaml"): job.encode()}):
            found = [each.rule for each in jobgen.lint(folder).findings if each.location.file == "jobs/job0.yaml"]
        after = jobgen.lint(folder).findings
    finally:
        cache.disable()
    assert found == ["invalid-value"]
    assert before == after


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
