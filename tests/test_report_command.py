"""`jobgen report` on the command line: where it writes, what it refuses, and its exit codes."""

from __future__ import annotations

import os
import re
from base64 import b64decode
from pathlib import Path

import pytest
from gitrepository import Repository
from jobgenprocess import run_here
from pagedata import PageData, find_data

import jobgen

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml}}
spec: {{framework: pytorch, image: "registry.example.com/bert:1.4.2"{more}}}
"""
BERT = JOB.format(name="bert", more="")
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {state: cluster}}\n"
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: broken}
spec: {validations: [{expression: "1 +"}]}
"""
NOT_YAML = "a: [\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, "utf-8")
    return folder


@pytest.fixture
def repository(tmp_path):
    return write(tmp_path / "training", {"jobgen.yaml": "", "jobs/bert.yaml": BERT})


def run(folder, *words):
    code, out, err = run_here(["-C", str(folder), "report", *map(str, words)])
    return code, b64decode(out).decode(), err


def title_of(page: str) -> str:
    return re.search("<title>(.*)</title>", page)[1]


def test_objects_without_pods_are_not_counted_as_jobs(repository):
    write(repository, {"jobs/notes.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\n"})
    assert run(repository, "-o", "-")[2].startswith("1 job, ")


def test_other_files_of_the_folder_stay(repository):
    write(repository, {"site/index.html": "old", "site/keep.txt": "mine"})
    code, out, err = run(repository, "-o", "site")

    assert (code, out) == (0, "")
    assert re.fullmatch(r".*/site/index\.html: 1 job, \d+ findings?, \d+ KiB\n", err)
    assert sorted(os.listdir(repository / "site")) == ["index.html", "keep.txt"]
    assert (repository / "site/keep.txt").read_text() == "mine"
    assert (repository / "site/index.html").read_text("utf-8").startswith("<!doctype html>")


def test_the_folder_may_be_new_outside_and_behind_a_link_that_the_user_names(repository, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "target").mkdir()
    for folder in (tmp_path / "a/b/c", tmp_path / "link"):
        assert run(repository, "-o", folder)[0] == 0
        assert (folder / "index.html").is_file()
    assert (tmp_path / "target/index.html").is_file()


def test_a_repository_without_overlays_has_its_jobs_in_the_page(repository):
    data = PageData(jobgen.report(repository).data)

    assert [row["name"] for row in data.table("environments")] == [""]
    assert [(row["name"], row["state"]) for row in data.table("cells")] == [("bert", "active")]


def test_a_dash_prints_the_page(repository):
    code, out, err = run(repository, "-o", "-")

    assert code == 0
    assert out == jobgen.report(repository).page
    assert re.fullmatch(r"1 job, \d+ findings?, \d+ KiB\n", err)
    assert sorted(os.listdir(repository)) == ["jobgen.yaml", "jobs"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", ""), "`-o` is empty; name a folder, or `-` for standard output"),
        (("-o", "report.html"), "`report.html` names a file; name the folder for index.html, or `-` for standard"),
        (("-o", "jobgen.yaml"), "jobgen.yaml` is not a folder; choose another one"),
        (("-o", "jobgen.yaml/site"), "jobgen.yaml` is not a folder; choose another one"),
        (("-o", "blocked"), "index.html` is a folder; choose a folder other than `blocked`"),
        (("-o", "outside"), "outside` is outside the repository through a symbolic link; choose another folder"),
        (("-o", "linked"), "linked/index.html` is not a regular file; remove it, or choose another folder"),
        ((), "`-o DIR` is missing; write `jobgen report -o DIR`"),
        (("-o", "site", "-e", "prodd"), "there is no environment `prodd`; did you mean `prod`?"),
        (("-o", "site", "--since", "HEAD"), "this is not a Git repository, so it has no revisions"),
        (("-o", "site", "--prices", "no.yaml"), "there is no file `no.yaml`"),
        (("-o", "site", "--repo-url", "example"), "`example` is not the address of a repository"),
        (("-o", "site", "--today", "now"), "`now` is not a date"),
        (("-o", "site", "bert"), "`jobgen report` takes no further argument `bert`; remove it"),
    ],
)
def test_wrong_usage_writes_nothing(repository, tmp_path, words, message):
    (repository / "outside").symlink_to(tmp_path / "elsewhere")
    write(repository, {"blocked/index.html/file": "", "overlays/prod/overlay.yaml": OVERLAY})
    (repository / "linked").mkdir()
    (repository / "linked/index.html").symlink_to("../overlays/prod/overlay.yaml")
    before = sorted(tmp_path.rglob("*"))
    code, out, err = run(repository, *words)

    assert (code, out) == (2, "")
    assert message in err
    assert sorted(tmp_path.rglob("*")) == before
    assert (repository / "overlays/prod/overlay.yaml").read_text() == OVERLAY


@pytest.mark.parametrize("files", [{"jobgen.yaml": ""}, {"jobs/a.yaml": "# nothing\n"}, {"jobs/README.md": ""}])
def test_a_repository_without_jobs_has_no_page(tmp_path, files):
    code, out, err = run(write(tmp_path, files), "-o", "site")

    assert (code, out, err.partition("see: ")[0]) == (
        3,
        "",
        "jobgen: there is no job under jobs/; write one with `jobgen new NAME`\n",
    )
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("files", "code", "messages"),
    [
        ({"jobs/gpt.yaml": JOB.format(name="gpt", more=", replicas: 1")}, 0, ()),
        ({"jobs/gpt.yaml": JOB.format(name="gpt", more=", env: {A: [1]}")}, 1, ("jobs/gpt.yaml:4:", "1 error, so the")),
        (
            {"jobs/gpt.yaml": NOT_YAML},
            1,
            ("jobs/gpt.yaml:1:1: error: `a: [` has a `[` that is not closed", "1 error, so the page is not complete"),
        ),
        (
            {"overlays/prod/overlay.yaml": NOT_YAML},
            1,
            ("overlays/prod/overlay.yaml:1:1: error: `a: [` has a `[` that is not closed", "1 error, so"),
        ),
        (
            {"overlays/prod/overlay.yaml": OVERLAY, "cluster/state.json": "{"},
            *(1, ("the queues of `prod` are unknown: cluster/state.json:1: not JSON", "1 error, so the page")),
        ),
        (
            {"policies/a.yaml": NOT_YAML},
            1,
            ("policies/a.yaml:1:1: error: `a: [` has a `[` that is not closed", "1 error, so the page is not"),
        ),
        ({"policies/a.yaml": POLICY}, 4, ("a broken schema or policy prevented checks, see the findings",)),
    ],
)
def test_the_exit_code_says_whether_the_page_is_complete(repository, files, code, messages):
    """Findings do not change it; what cannot be read or rendered does."""
    found, _, err = run(write(repository, files), "-o", "site")

    assert (found, (repository / "site/index.html").is_file()) == (code, True)
    assert [message for message in messages if message not in err] == []
    page = PageData(find_data((repository / "site/index.html").read_text("utf-8")))
    gaps = [*page.table("errors"), *(note for note in page.table("notes") if note["level"] == "error")]
    assert (bool(gaps), page.head["unchecked"]) == (code == 1, code == 4)
    assert ("so the page is not complete" in err) == (code == 1)


def test_broken_settings_end_before_anything_is_written(repository):
    code, _, err = run(write(repository, {"jobgen.yaml": NOT_YAML}), "-o", "site")

    assert code == 2
    assert "jobgen.yaml:1:1: error: `a: [` has a `[` that is not closed" in err
    assert not (repository / "site").exists()


def test_the_title_has_the_revision_of_any_checkout(repository, tmp_path):
    """Also of a detached HEAD and a shallow clone; without Git, and without a commit, it is the name alone."""
    assert title_of(jobgen.report(repository).page) == "training"
    git = Repository(repository, tmp_path)
    assert title_of(jobgen.report(repository).page) == "training"
    git.commit()
    git.run("git", "checkout", "--detach")
    git.run("git", "commit", "--allow-empty", "-m", "second")
    revision = git.run("git", "rev-parse", "HEAD").stdout.strip()
    assert title_of(jobgen.report(repository).page) == f"training @ {revision[:10]}"
    shallow = tmp_path / "shallow"
    git.run("git", "clone", "--quiet", "--depth=1", repository.as_uri(), str(shallow))

    code, _, err = run(shallow, "-o", "site", "--since", "HEAD~1")
    assert code == 2
    assert "`HEAD~1` is not in this shallow clone; fetch it first" in err
    assert run(shallow, "-o", "site", "--since", "HEAD")[0] == 0
    assert title_of((shallow / "site/index.html").read_text("utf-8")) == f"shallow @ {revision[:10]}"
