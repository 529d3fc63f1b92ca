"""Links of the HTML page to files in Git: the form of each server, no credentials, and nothing that is false."""

import json
import re

import pytest
from gitrepository import Repository
from pagedata import PageData, find_data

from jobgen.api.diff import diff
from jobgen.api.errors import UsageError
from jobgen.features.page.page import NO_LINKS, Links, find_links, parse_repo_url
from jobgen.features.page.report import report

GITHUB = "/blob/{revision}/{file}#L{line}"
GITLAB = "/-/blob/{revision}/{file}#L{line}"
GITEA = "/src/commit/{revision}/{file}#L{line}"
BITBUCKET = "/src/{revision}/{file}#lines-{line}"
SERVER = "/browse/{file}?at={revision}#{line}"
AZURE = "?path=/{file}&version=GC{revision}&line={line}&lineEnd={line}&lineStartColumn=1&lineEndColumn=999"

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.0.0
  command: [python, train.py]
  resources: {cpu: 1, memory: 2Gi}
"""
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: dev}\nspec: {namespace: ml-dev}\n"


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("https://github.com/example/jobs", GITHUB),
        ("https://github.example.com/ml/jobs", GITHUB),
        ("https://example.ghe.com/ml/jobs", GITHUB),
        ("https://code.example.com/ml/jobs", GITHUB),
        ("http://localhost:3000/ml/jobs", GITHUB),
        ("https://gitlab.com/example/group/jobs", GITLAB),
        ("https://gitlab.example.com:8443/ml/jobs", GITLAB),
        ("https://bitbucket.org/example/jobs", BITBUCKET),
        ("https://bitbucket.example.com/projects/ML/repos/jobs", SERVER),
        ("https://git.example.com/bitbucket/users/ada/repos/jobs", SERVER),
        ("https://codeberg.org/example/jobs", GITEA),
        ("https://gitea.example.com/example/jobs", GITEA),
        ("https://forgejo.example.com/example/jobs", GITEA),
        ("https://dev.azure.com/example/ml%20team/_git/jobs", AZURE),
        ("https://example.visualstudio.com/ml/_git/jobs", AZURE),
    ],
)
def test_every_server_has_its_form_of_links(url, form):
    assert parse_repo_url(url) == Links(url, url + form)
    assert parse_repo_url(url + ".git/") == Links(url, url + form)


@pytest.mark.parametrize(
    ("remote", "home", "form"),
    [
        ("https://github.com/example/jobs.git", "https://github.com/example/jobs", GITHUB),
        ("https://ada:s3cr3t@github.com/example/jobs", "https://github.com/example/jobs", GITHUB),
        ("https://s3cr3t@github.com/example/jobs", "https://github.com/example/jobs", GITHUB),
        ("https://ada:s3cr@3t@github.com/example/jobs", "https://github.com/example/jobs", GITHUB),
        ("git@github.com:example/jobs.git", "https://github.com/example/jobs", GITHUB),
        ("github.com:example/jobs", "https://github.com/example/jobs", GITHUB),
        ("ssh://git@GitHub.com:22/example/jobs.git", "https://github.com/example/jobs", GITHUB),
        ("ssh://git@ssh.github.com:443/example/jobs.git", "https://github.com/example/jobs", GITHUB),
        ("git@github.example.com:ml/jobs.git", "https://github.example.com/ml/jobs", GITHUB),
        ("git@gitlab.com:example/group/jobs.git", "https://gitlab.com/example/group/jobs", GITLAB),
        ("https://gitlab-ci-token:s3cr3t@gitlab.example.com/ml/jobs.git", "https://gitlab.example.com/ml/jobs", GITLAB),
        ("http://gitlab.example.com:8080/ml/jobs.git", "http://gitlab.example.com:8080/ml/jobs", GITLAB),
        ("git@bitbucket.org:example/jobs.git", "https://bitbucket.org/example/jobs", BITBUCKET),
        ("https://ada@bitbucket.org/example/jobs.git", "https://bitbucket.org/example/jobs", BITBUCKET),
        ("https://codeberg.org/example/jobs.git", "https://codeberg.org/example/jobs", GITEA),
        ("git@ssh.dev.azure.com:v3/example/ml/jobs", "https://dev.azure.com/example/ml/_git/jobs", AZURE),
        ("example@vs-ssh.visualstudio.com:v3/example/ml/jobs", "https://dev.azure.com/example/ml/_git/jobs", AZURE),
        ("https://s3cr3t@dev.azure.com/example/ml/_git/jobs", "https://dev.azure.com/example/ml/_git/jobs", AZURE),
    ],
)
def test_the_remote_says_where_a_repository_is_browsed(remote, home, form):
    assert find_links(remote) == Links(home, home + form)


@pytest.mark.parametrize(
    "remote",
    [
        "",
        "/srv/git/jobs.git",
        "../jobs",
        "C:\\jobs",
        "file:///srv/github.com/jobs.git",
        "git://github.com/example/jobs.git",
        "https://ada:s3cr3t@git.example.com/ml/jobs.git",
        "git@git.example.com:ml/jobs.git",
        "git@github-work:example/jobs.git",
        "https://bitbucket.example.com/scm/ml/jobs.git",
        "https://dev.azure.com/example",
        "git@ssh.dev.azure.com:v3/example",
        "https://github.com/",
        "https://github.com/example/jobs?token=s3cr3t",
        "https://github.com:x/example/jobs",
        "https://[::1/jobs",
        "https://gith\u00fcb.github.com/example/jobs",
        "ext::sh -c touch",
        "javascript:alert(1)//github.com/a/b",
    ],
)
def test_a_remote_of_an_unknown_server_has_no_links(remote):
    assert find_links(remote) == NO_LINKS


def test_a_template_serves_other_servers():
    template = "https://git.example.com/cgit/jobs.git/tree/{file}?id={revision}#n{line}"
    assert parse_repo_url(template) == Links("", template)
    assert parse_repo_url(template.replace("git.example", "ada:s3cr3t@git.example")) == Links("", template)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//example.com",
        "https://",
        "ftp://ada:s3cr3t@example.com/jobs",
        "github.com/example/jobs",
        "https://ada:s3cr3t@[::1/jobs",
        "https://ada:s3cr3t@example.com/jobs a",
        "https://example.com/jobs?private_token=1",
        "https://example.com/jobs#L1",
        "https://example.com/{revision}",
        "https://example.com/{file}?{name}",
        "https://{file}/",
        "javascript:{file}",
    ],
)
def test_other_values_are_errors_without_credentials(url):
    with pytest.raises(UsageError) as error:
        parse_repo_url(url)
    assert "s3cr3t" not in str(error.value)


def test_no_value_turns_links_off():
    assert parse_repo_url("") == NO_LINKS


def write(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, "utf-8")


@pytest.fixture
def repository(tmp_path):
    """A repository whose jobs are in a folder of it."""
    folder = tmp_path / "work"
    write(folder / "ml", {"jobgen.yaml": "environments: [dev]\n", "overlays/dev/overlay.yaml": OVERLAY})
    write(folder / "ml/jobs", {"bert.yaml": JOB, "old.yaml": JOB.replace("bert", "old")})
    made = Repository(folder, tmp_path)
    made.commit()
    return made


def resolve(repository) -> str:
    return repository.run("git", "rev-parse", "HEAD").stdout.strip()


def describe(page: str):
    data = PageData(find_data(page))
    return data.head, [row["path"] for row in data.table("changedFiles")], re.search("<title>(.*?)</title>", page)[1]


def test_a_page_links_to_the_remote_and_says_what_is_not_committed(repository):
    repository.run("git", "remote", "add", "origin", "https://ada:s3cr3t@gitlab.com/example/jobs.git")
    root = repository.folder / "ml"

    page = report(root).page
    head, changed, title = describe(page)
    assert (head["url"], head["prefix"], changed) == ("https://gitlab.com/example/jobs", "ml", [])
    assert head["link"] == "https://gitlab.com/example/jobs" + GITLAB
    assert title == f"jobs @ {head['revision'][:10]}"
    assert "s3cr3t" not in page
    assert describe(report(root, repo_url="").page)[0]["link"] == ""
    with pytest.raises(UsageError):
        report(root, repo_url="ftp://example.com")

    (root / "jobs/bert.yaml").write_bytes(JOB.encode().replace(b"\n", b"\r\n"))
    assert describe(report(root).page)[1] == []
    write(root, {"jobs/bert.yaml": "# new\n" + JOB, "jobs/new.yaml": JOB.replace("bert", "new"), "README.md": "#\n"})
    (root / "jobs/old.yaml").unlink()
    _, changed, title = describe(report(root).page)
    assert changed == ["jobs/bert.yaml", "jobs/new.yaml", "jobs/old.yaml"]
    assert title.endswith(" + uncommitted changes")


def test_a_comparison_links_to_the_state_that_it_shows(repository):
    root = repository.folder / "ml"
    first = resolve(repository)
    write(root, {"jobs/bert.yaml": JOB.replace("1.0.0", "2.0.0")})
    repository.commit()
    second = resolve(repository)
    write(root, {"jobs/old.yaml": JOB.replace("bert", "old").replace("1.0.0", "3.0.0")})

    head, changed, _ = describe(diff(root, f"{first}..{second}", format="html").text)
    assert (head["revision"], head["baseRevision"], changed) == (second, first, [])
    head, changed, _ = describe(diff(root, first, format="html").text)
    assert (head["revision"], changed) == (second, ["jobs/old.yaml"])
    manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}})
    folders = tuple(str(repository.folder / "other" / name) for name in ("one", "two"))
    write(repository.folder / "other", {f"{name}/a.json": manifest for name in ("one", "two")})
    head, changed, _ = describe(diff(root, folders=folders, format="html").text)
    assert (head["revision"], changed) == ("", [])


def test_a_damaged_repository_has_a_page_without_links(repository):
    tree = repository.run("git", "rev-parse", "HEAD:ml/jobs").stdout.strip()
    (repository.folder / ".git/objects" / tree[:2] / tree[2:]).unlink()

    head, changed, _ = describe(report(repository.folder / "ml", repo_url="https://github.com/example/jobs").page)

    assert (head["link"], changed) == ("", [])
    assert head["revision"] == resolve(repository)
