"""The findings of an editor are those of `jobgen lint`, after any edits, whether or not files are saved."""

import os
import shutil
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from editorfiles import JOB, NEW_FILES, OVERLAY, QUOTA, edit, make_repository
from kustomize_samples import PLUGIN, install_stand_ins, read_calls
from overlayfiles import Overlay, edit_overlay, make_patch
from sampling import sample

import jobgen
from jobgen import cache
from jobgen.engine.inputs import edited, read_bytes
from jobgen.features.editor.lint_workspace import WorkspaceLinter
from jobgen.features.editor.workspace import Workspace


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


@pytest.mark.parametrize("seed", sample(range(6), 3))
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


def test_open_documents_are_not_confused_with_results_in_the_cache(tmp_path):
    folder = write(tmp_path / "repository", make_repository(Random(1)))
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
    assert [(each.environment, [str(made) for made in each.objects]) for each in job.environments] == [
        ("dev", ["PyTorchJob ml-dev/bert"]),
        ("prod", ["PyTorchJob ml-prod/bert"]),
    ]
    assert [[overlay for overlay, _ in each.patches] for each in job.environments] == [["dev"], []]
    assert ("ResourceQuota", "gpus") in workspace.index["jobs/quota.yaml"].names

    (tmp_path / "jobs/job0.yaml").unlink()
    workspace.take(linter.lint({}, lambda *_: None))
    assert "jobs/job0.yaml" not in workspace.index


@pytest.mark.parametrize("seed", sample(range(3), 3))
def test_findings_are_those_of_lint_after_random_edits_of_overlays(tmp_path, seed):
    random = Random(seed)
    overlays = {"base": Overlay("", rest=("cluster: {operators: {training-operator: 1.9.4}}",))}
    overlays |= {env: Overlay("base", patches=(make_patch(random), make_patch(random))) for env in ("dev", "prod")}
    files = {
        f"jobs/{name}.yaml": JOB.format(name=name, team=team, framework="pytorch", tag=tag, gpus=8, seed=1, replicas=4)
        for name, team, tag in (("bert", "nlp", "1.2"), ("gpt", "nlp", "latest"), ("t5", "vision", "1.2"))
    }
    files |= {"jobgen.yaml": "{}\n", "jobs/quota.yaml": QUOTA.format(gpus=4)}
    linter, workspace = WorkspaceLinter(tmp_path), Workspace(tmp_path)

    for _ in range(10):
        change_files(random, overlays, files)
        shutil.rmtree(tmp_path / "overlays", ignore_errors=True)
        write(tmp_path, files | {f"overlays/{env}/overlay.yaml": each.write() for env, each in overlays.items()})
        workspace.take(linter.lint({}, lambda *_: None))

        found = {file: sorted(each.all, key=str) for file, each in workspace.snapshot.findings.items()}
        assert found == lint_saved(tmp_path, {})
    if not workspace.snapshot.error:
        current = {runner.name for runner in workspace.load().layers.runners}
        known = keep_environments(workspace.index, current)
        workspace.take(WorkspaceLinter(tmp_path).lint({}, lambda *_: None))
        assert known == keep_environments(workspace.index, current)


EXCEPTIONS = """\
teams: {nlp: {folders: [jobs]}}
exceptions:
  - {rule: mutable-image-tag, teams: [nlp], reason: soon, owner: "@nlp", expires: "2027-01-31"}
"""


def change_files(random, overlays, files):
    """Edit an overlay; or edit a job or the settings, or add or remove an environment."""
    env = random.choice(sorted(overlays))
    match random.randrange(8):
        case 0:
            path = random.choice(sorted(path for path in files if path.startswith("jobs/")))
            files[path] = files[path].replace("1.2", random.choice(("latest", "1.3"))) + "# edited\n"
        case 1:
            settings = ("{}\n", "rules: {mutable-image-tag: off}\n", "environments: [prod]\n", "# edited\n{}\n")
            files["jobgen.yaml"] = random.choice((*settings, EXCEPTIONS, EXCEPTIONS.replace("jobs]", "jobs/nlp]")))
        case 2 if "stage" in overlays:
            del overlays["stage"]
        case 2:
            overlays["stage"] = Overlay("dev", patches=(make_patch(random),))
        case 3:
            overlays[env] = overlays[env]._replace(extends=random.choice(("base", "nowhere", "")))
        case _:
            overlays[env] = edit_overlay(random, overlays[env])


def keep_environments(index, names):
    """The index without environments that have errors, which it has as they were before."""
    found = {}
    for path, file in index.items():
        for number, job in enumerate(file.jobs):
            found[path, number] = job._replace(
                environments=sorted(env for env in job.environments if env.environment in names)
            )
    return found


@pytest.mark.parametrize(("before", "after"), [(1, 0), (0, 2)])
def test_findings_in_overlays_move_with_their_lines(tmp_path, before, after):
    image = "merge: {image: registry.example.com/other:latest}"
    cluster = ("cluster: {operators: {training-operator: 1.9.4}}",)
    overlay = Overlay("", before, rest=cluster, patches=(image,))
    job = JOB.format(name="bert", team="nlp", framework="pytorch", tag="1.2", gpus=8, seed=1, replicas=4)
    path = "overlays/dev/overlay.yaml"
    write(tmp_path, {"jobgen.yaml": "{}\n", "jobs/bert.yaml": job, path: overlay.write()})
    linter = WorkspaceLinter(tmp_path)
    found = linter.lint({}, lambda *_: None).findings[path].all
    write(tmp_path, {path: overlay._replace(comments=after).write()})

    moved = linter.lint({}, lambda *_: None).findings[path].all

    assert [finding.rule for finding in moved] == [finding.rule for finding in found] == ["mutable-image-tag"]
    assert moved[0].location.line - found[0].location.line == after - before


def test_links_to_open_documents_have_their_content(tmp_path):
    write(tmp_path, {"open.yaml": "a", "other.yaml": "b"})
    (tmp_path / "link.yaml").symlink_to("open.yaml")
    (tmp_path / "unsaved_link.yaml").symlink_to("unsaved.yaml")
    (tmp_path / "same_inode.yaml").hardlink_to(tmp_path / "open.yaml")
    drafts = {os.path.realpath(tmp_path / name): b"c" for name in ("open.yaml", "unsaved.yaml")}

    with edited(drafts):
        found = {path.name: read_bytes(str(path)) for path in tmp_path.iterdir()}

    links = {"link.yaml": b"c", "unsaved_link.yaml": b"c"}
    assert found == {"open.yaml": b"c", **links, "other.yaml": b"b", "same_inode.yaml": b"a"}


@pytest.mark.skipif(os.name == "nt", reason="the program of this test is a shell script")
def test_the_workspace_is_linted_without_other_programs(tmp_path, monkeypatch):
    """A lint starts kustomize for a plugin that is part of it; an editor opens folders that nobody has read yet."""
    bin_ = install_stand_ins(tmp_path / "bin", "kustomize", "kubectl")
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}/usr/bin{os.pathsep}/bin")
    web = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
    write(tmp_path / "repository", {"kustomization.yaml": f"resources: [web.yaml]\n{PLUGIN}", "web.yaml": web})
    found = WorkspaceLinter(tmp_path / "repository").lint({}, lambda *_: None).findings

    assert [each.rule for each in found["kustomization.yaml"].all] == ["unbuilt-kustomization"]
    assert read_calls(bin_) == []


def test_builds_use_kustomizations_that_are_not_saved(tmp_path, monkeypatch):
    """The kustomization of a folder is new, and that of another folder builds it; kubectl would read what is saved."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    saved = {
        "prod/kustomization.yaml": "resources: [../base]\nnameSuffix: -b\n",
        "base/web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: 1}\n",
    }
    write(tmp_path, saved)
    drafts = {os.path.realpath(tmp_path / "base/kustomization.yaml"): b"resources: [web.yaml]\n"}
    found = WorkspaceLinter(tmp_path).lint(drafts, lambda *_: None).findings

    expected = lint_saved(tmp_path, drafts)
    assert {file: sorted(each.all, key=str) for file, each in found.items()} == expected
    assert [each.object.name for each in expected["base/web.yaml"]] == ["web-b"]
