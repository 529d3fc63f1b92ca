"""Nothing gets out of the repository and nothing is lost: links, Git, fixes, caches, secrets and rendered files."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import blake2b, sha256
from pathlib import Path

import pytest
from linting import lint_paths
from sampling import sample

import jobgen
from jobgen import cache
from jobgen.api.fix import FixedFile, write_fixes
from jobgen.cli.commands.diff import diff_states
from jobgen.cli.main import run as run_command_line
from jobgen.cli.result import ExitCode, Result
from jobgen.cli.run_render import render
from jobgen.model.data import Location
from jobgen.model.finding import TextEdit
from jobgen.repo import git, layout
from jobgen.repo.atomic import open_scratch
from jobgen.repo.commit import CommitPath, open_commit
from jobgen.repo.files import read_file
from jobgen.repo.layout import own_layers
from jobgen.repo.named_paths import find_manifests
from jobgen.yamlio.edit import EditRefusedError, apply_edits

# --- Git ---

GIT_JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: %s}
spec: {framework: pytorch, image: 'registry.example.com/a:%s'}
"""
FILE, LINK, FOLDER, SUBMODULE = "100644", "120000", "40000", "160000"
Tree = list[tuple[str, str, "bytes | Tree"]]
"""The entries of a folder: mode, name and content."""


def run_git(folder: Path, *words: str, data: bytes = b"", **variables: str) -> str:
    who = {f"GIT_{role}_{part}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", "-c", "commit.gpgSign=false", *words],
        cwd=folder,
        input=data,
        check=True,
        capture_output=True,
        env={**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, **variables},
    )
    return done.stdout.decode().strip()


@pytest.fixture
def clone(tmp_path: Path, scratch: Path) -> Path:
    """A repository with one job and one commit."""
    assert not list(scratch.iterdir())
    folder = tmp_path / "clone"
    (folder / "jobs").mkdir(parents=True)
    (folder / "jobgen.yaml").write_text("{}\n")
    (folder / "jobs/a.yaml").write_text(GIT_JOB % ("a", "1"))
    run_git(folder, "init", "-q")
    commit_all(folder)
    return folder


def commit_all(folder: Path) -> str:
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return run_git(folder, "rev-parse", "HEAD")


def write_tree(folder: Path, entries: Tree) -> str:
    """Write a tree object with any entries, also those that Git would not write."""
    content = b""
    for mode, name, below in entries:
        if isinstance(below, list):
            found = write_tree(folder, below)
        elif mode == SUBMODULE:
            found = below.decode()
        else:
            found = run_git(folder, "hash-object", "-w", "--stdin", data=below)
        content += f"{mode} ".encode() + os.fsencode(name) + b"\0" + bytes.fromhex(found)
    return run_git(folder, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=content)


def commit_tree(folder: Path, entries: Tree) -> str:
    return run_git(folder, "commit-tree", "-m", "x", write_tree(folder, entries))


def lint_since(folder: Path, revision: str = "HEAD", *paths: str) -> Result:
    return lint_paths(folder, paths, (), format_="json", since=revision)


def diff_to(folder: Path, revisions: str = "HEAD") -> Result:
    return diff_states(folder, revisions, (), format_="json", exit_code=False)


def changed_names(result: Result) -> list[str]:
    return sorted((each["object"] or each["was"])["name"] for each in json.loads(result.out)["objects"])


def list_files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, which must be empty at the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


JOB_FILE = (GIT_JOB % ("b", "1")).encode()
ODD_TREES: dict[str, Tree] = {
    "link-and-file": [(FOLDER, "jobs", [(LINK, "b.yaml", b"../../victim"), (FILE, "b.yaml", JOB_FILE)])],
    "file-and-link": [(FOLDER, "jobs", [(FILE, "b.yaml", JOB_FILE), (LINK, "b.yaml", b"../../victim")])],
    "link-and-folder": [(LINK, "jobs", b".."), (FOLDER, "jobs", [(FILE, "victim", JOB_FILE)])],
    "two-folders": [(FOLDER, "jobs", [(LINK, "x", b"../..")]), (FOLDER, "jobs", [(FILE, "b.yaml", JOB_FILE)])],
    "parent": [(FOLDER, "jobs", [(FOLDER, "..", [(FOLDER, "..", [(FILE, "victim", JOB_FILE)])])])],
    "slash": [(FOLDER, "jobs", [(FILE, "../../victim.yaml", JOB_FILE)])],
    "absolute": [(FOLDER, "jobs", [(FILE, "/tmp/victim.yaml", JOB_FILE)])],
    "dot": [(FOLDER, "jobs", [(FILE, ".", JOB_FILE)])],
    "nameless": [(FOLDER, "jobs", [(FILE, "", JOB_FILE)])],
}


@pytest.mark.parametrize("case", ODD_TREES)
def test_odd_tree_is_an_error_and_writes_nothing(case: str, clone: Path) -> None:
    (clone.parent / "victim").write_text("kept\n")
    made = commit_tree(clone, [(FILE, "jobgen.yaml", b"{}\n"), *ODD_TREES[case]])
    before = {path: content for path, content in list_files(clone.parent).items() if "/.git/" not in path}

    for result in (lint_since(clone, made), diff_to(clone, f"HEAD..{made}"), diff_to(clone, made)):
        assert result.code == ExitCode.USAGE
        assert f"in commit {made[:10]}; check it with `git fsck`" in result.err
    after = {path: content for path, content in list_files(clone.parent).items() if "/.git/" not in path}
    assert after == before


def test_odd_entries_elsewhere_do_not_matter(clone: Path) -> None:
    jobs = [(FILE, "a.yaml", (GIT_JOB % ("a", "1")).encode())]
    other = [(LINK, "x.yaml", b"/etc/passwd"), (FILE, "x.yaml", b"a: 1\n"), (FOLDER, "..", [])]
    made = commit_tree(clone, [(FOLDER, "jobs", jobs), (FOLDER, "other", other)])

    assert lint_since(clone, made).code == ExitCode.OK
    assert diff_to(clone, made).code == ExitCode.OK


def test_names_that_collide_on_other_disks_are_separate_files(clone: Path) -> None:
    names = ["B.yaml", "b.yaml", "caf\u00e9.yaml", "cafe\u0301.yaml", "d\\e.yaml", "aux.yaml", "g\nh.yaml"]
    jobs = [(FILE, name, (GIT_JOB % (f"b{number}", "1")).encode()) for number, name in enumerate(names)]
    made = commit_tree(clone, [(FOLDER, "jobs", [*jobs, (FOLDER, ".git", [(FILE, "config.yaml", b"a: [")])])])

    assert changed_names(diff_to(clone, f"HEAD..{made}")) == ["a", "b0", "b1", "b2", "b3", "b4", "b5", "b6"]


LINKS: dict[str, tuple[str, str]] = {
    "/etc/hostname": ("link-out-of-repository", "leads out of the repository"),
    "../../victim": ("link-out-of-repository", "leads out of the repository"),
    "missing.yaml": ("unreadable-file", "leads nowhere"),
    "b.yaml": ("unreadable-file", "leads nowhere"),
    "a.yaml/x": ("unreadable-file", "leads nowhere"),
    "../jobs": ("linked-folder", "a symbolic link to a folder"),
}


@pytest.mark.parametrize("target", LINKS)
def test_links_of_a_commit_are_findings_as_on_disk(target: str, clone: Path) -> None:
    (clone.parent / "victim").write_text(GIT_JOB % ("victim", "1"))
    rule, words = LINKS[target]
    (clone / "jobs/b.yaml").symlink_to(target)
    commit_all(clone)
    on_disk = json.loads(lint_paths(clone, (), (), format_="json").out)["findings"]
    result = diff_to(clone, "HEAD~1..HEAD")

    assert [(entry["rule"], entry["file"]) for entry in on_disk if entry["rule"] == rule] == [(rule, "jobs/b.yaml")]
    assert result.code == ExitCode.ERRORS
    assert rule in result.err
    assert words in result.err


def test_links_inside_a_commit_are_followed(clone: Path) -> None:
    (clone / "shared").mkdir()
    (clone / "shared/job.yaml").write_text(GIT_JOB % ("b", "1"))
    (clone / "by").symlink_to("shared")
    (clone / "jobs/b.yaml").symlink_to("../by/../shared/./job.yaml")
    commit_all(clone)

    assert changed_names(diff_to(clone, "HEAD~1..HEAD")) == ["b"]
    assert diff_to(clone, "HEAD").code == ExitCode.OK


@pytest.mark.parametrize(
    "path", ["jobgen.yaml", "schemas/kubeflow.org/pytorchjob_v1.json", "overlays", "policies/p.yaml"]
)
def test_linked_settings_and_layers_of_a_commit_are_not_ignored(path: str, clone: Path) -> None:
    (clone.parent / "outside").write_text("{}\n")
    (clone / path).unlink(missing_ok=True)
    (clone / path).parent.mkdir(parents=True, exist_ok=True)
    (clone / path).symlink_to(clone.parent / "outside")
    made = commit_all(clone)
    (clone / path).unlink()
    with open_commit(clone, made) as there:
        files = [*layout.read_inputs(own_layers(there)), *filter(None, [layout.read_settings(own_layers(there))])]
        schema = layout.read_schema(own_layers(there), "kubeflow.org/pytorchjob_v1.json")
        files += [schema] if schema else []

    assert (path, "link-out-of-repository") in {(file.path, file.finding.rule) for file in files if file.finding}


def test_link_out_of_the_jobs_repository_is_not_followed(clone: Path) -> None:
    (clone / "inner/jobs").mkdir(parents=True)
    (clone / "inner/jobgen.yaml").write_text("{}\n")
    (clone / "inner/jobs/b.yaml").symlink_to("../../jobs/a.yaml")
    commit_all(clone)
    result = diff_to(clone / "inner", "HEAD")

    assert result.code == ExitCode.ERRORS
    assert "link-out-of-repository" in result.err


def test_submodule_is_reported(clone: Path) -> None:
    made = commit_tree(clone, [(FOLDER, "jobs", [(SUBMODULE, "sub", run_git(clone, "rev-parse", "HEAD").encode())])])
    result = diff_to(clone, made)

    assert result.code == ExitCode.ERRORS
    assert "jobs/sub" in result.err
    assert "a submodule; its files are not part of the commit" in result.err
    assert "change-not-analyzed" in lint_since(clone, made).out


def test_large_files_of_a_commit_are_not_read(clone: Path) -> None:
    large = b"#" * 9_000_000
    made = commit_tree(clone, [(FOLDER, "jobs", [(FILE, "b.yaml", large)])])

    assert "8 MiB is too large for a manifest" in diff_to(clone, f"HEAD..{made}").err
    with open_commit(clone, made) as top:
        assert (top / "jobs").is_dir()
        assert not top.commit._contents


def test_commit_that_repeats_folders_ends_in_an_error(clone: Path) -> None:
    below = write_tree(clone, [(FILE, "a.yaml", b"a: 1\n")])
    for _ in range(8):
        content = b"".join(b"40000 %03d\0" % number + bytes.fromhex(below) for number in range(100))
        below = run_git(clone, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=content)
    content = b"40000 jobs\0" + bytes.fromhex(below)
    top = run_git(clone, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=content)
    made = run_git(clone, "commit-tree", "-m", "x", top)
    result = diff_to(clone, made)

    assert result.code == ExitCode.USAGE
    assert "`jobs` has more than 300000 entries" in result.err


def test_files_of_a_commit_are_limited_together(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobgen.repo.commit._MAX_TOTAL_BYTES", 500)
    jobs = [(FILE, f"{name}.yaml", (GIT_JOB % (name, "1")).encode()) for name in "abcdefgh"]
    result = diff_to(clone, commit_tree(clone, [(FOLDER, "jobs", jobs)]))

    assert result.code == ExitCode.USAGE
    assert "are too large; the limit is" in result.err


def test_repository_with_long_object_names(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q", "--object-format=sha256")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(GIT_JOB % ("a", "1"))
    commit_all(tmp_path)
    (tmp_path / "jobs/b.yaml").write_text(GIT_JOB % ("b", "1"))

    assert changed_names(diff_to(tmp_path)) == ["b"]
    assert lint_since(tmp_path).code == ExitCode.OK


def test_path_in_a_commit_cannot_be_opened_on_disk(clone: Path) -> None:
    with open_commit(clone, run_git(clone, "rev-parse", "HEAD")) as top:
        assert isinstance(top, CommitPath)
        with pytest.raises(TypeError):
            open(top / "jobgen.yaml")  # type: ignore[call-overload] # noqa: SIM115


@pytest.mark.parametrize("prefix", ["", "deep/er"])
def test_commit_is_read_like_a_folder(prefix: str, tmp_path: Path) -> None:
    """The same files, links and findings as on disk, from the top or from a folder of the repository."""
    home = tmp_path / "repository" / prefix
    for path in (
        "jobs/a.yaml",
        "jobs/z/b.yml",
        "jobs/z.yaml",
        "jobs/.hidden.yaml",
        "jobs/c.txt",
        "overlays/dev/o.yaml",
    ):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(f"# {path}\n")
    (home / "jobs/link.yaml").symlink_to("z/b.yml")
    (home / "jobs/out.yaml").symlink_to("/etc/hostname")
    (home / "policies").symlink_to("jobs")
    (home / "schemas").symlink_to("/etc")
    run_git(tmp_path / "repository", "init", "-q")
    made = commit_all(tmp_path / "repository")

    with open_commit(home, made) as there:
        here, in_commit = (list(map(read_file, layout.find_jobs(folder))) for folder in (home, there))
        assert in_commit == here
        for read in (layout.read_overlays, layout.read_layers, layout.read_own_policies):
            here, in_commit = (list(read(own_layers(folder))) for folder in (home, there))
            assert in_commit == here
        here, in_commit = (list(map(read_file, find_manifests(folder, "."))) for folder in (home, there))
        assert in_commit == here


def test_settings_do_not_change_the_date_of_a_commit(clone: Path, tmp_path: Path) -> None:
    """`log.showSignature` makes `git log` print what gpg says before the date."""
    (tmp_path / "gpg").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho 'gpg: Good signature' >&2\n")
    (tmp_path / "gpg").chmod(0o755)
    signed = run_git(clone, "cat-file", "commit", "HEAD").replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n", 1
    )
    name = run_git(clone, "hash-object", "-w", "-t", "commit", "--stdin", data=f"{signed}\n".encode())
    run_git(clone, "reset", "-q", "--hard", name)
    expected = run_git(clone, "log", "-1", "--format=%cs")
    for setting in ("log.showSignature=true", f"gpg.program={tmp_path}/gpg", "log.date=raw", "log.follow=true"):
        run_git(clone, "config", *setting.split("="))

    assert git.read_commit_date(clone) == expected
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("committer", "date"),
    [
        ("a <a@example.com> 1800000000 +0000", "2027-01-15"),
        ("a <a@example.com> 1800054000 +1400", "2027-01-16"),
        ("a <a@example.com> 1800000000 -1200", "2027-01-14"),
        ("a <a@example.com> 99999999999 +0000", "5138-11-16"),
        ("a <a@example.com> 999999999999 +0000", ""),
        ("a <a@example.com> 1800000000 +9999", ""),
        ("a <a@example.com> soon", ""),
        ("a <a@example.com>", ""),
    ],
)
def test_date_of_a_commit_is_valid_or_absent(committer: str, date: str, clone: Path) -> None:
    tree = run_git(clone, "rev-parse", "HEAD^{tree}")
    text = f"tree {tree}\nauthor a <a@example.com> 1 +0000\ncommitter {committer}\n\ncommitter b <b> 1 +0000\n"
    made = run_git(clone, "hash-object", "-w", "-t", "commit", "--literally", "--stdin", data=text.encode())

    assert git.read_commit_date(clone, made) == date
    assert lint_since(clone, made).code == ExitCode.OK


def test_settings_of_a_repository_run_nothing(clone: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/ran\n')
    program.chmod(0o755)
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc"):
        (clone / ".git/hooks" / hook).parent.mkdir(exist_ok=True)
        (clone / ".git/hooks" / hook).symlink_to(program)
    (clone / ".gitattributes").write_text("* diff=x filter=x merge=x\n")
    commit_all(clone)
    keys = """core.fsmonitor core.pager core.editor core.sshCommand core.gitProxy core.askPass core.alternateRefsCommand
        diff.external diff.x.textconv diff.x.command filter.x.smudge filter.x.clean filter.x.process merge.x.driver
        gpg.program gpg.ssh.program credential.helper pager.log pager.cat-file interactive.diffFilter
        uploadpack.packObjectsHook remote.origin.uploadpack alias.cat-file alias.rev-parse"""
    for key in keys.split():
        run_git(clone, "config", key, str(program))
    run_git(clone, "config", "core.hooksPath", str(clone / ".git/hooks"))
    (tmp_path / "ran").unlink(missing_ok=True)
    (clone / "jobs/b.yaml").write_text(GIT_JOB % ("b", "1"))

    assert lint_since(clone).code == ExitCode.OK
    assert diff_to(clone, "HEAD~1...HEAD").code == ExitCode.OK
    assert diff_to(clone).code == ExitCode.OK
    assert not (tmp_path / "ran").exists()


def test_partial_clone_fetches_nothing(clone: Path, tmp_path: Path) -> None:
    run_git(clone, "config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    run_git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{clone}", str(partial))
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\ntouch {tmp_path}/ran\nexec git upload-pack "$@"\n')
    program.chmod(0o755)
    run_git(partial, "config", "remote.origin.uploadpack", str(program))
    run_git(partial, "config", "protocol.file.allow", "always")
    (partial / "jobs").mkdir()
    (partial / "jobs/a.yaml").write_text(GIT_JOB % ("a", "1"))

    for result in (lint_since(partial), diff_to(partial)):
        assert result.code == ExitCode.USAGE
        assert result.err.startswith("jobgen: this clone lacks files of that revision")
        assert result.err.count("\n") == 1
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("damage", ["removed", "emptied", "overwritten"])
@pytest.mark.parametrize("path", ["HEAD:jobs/a.yaml", "HEAD:jobs", "HEAD^{tree}"])
def test_damaged_objects_are_an_error(path: str, damage: str, clone: Path) -> None:
    name = run_git(clone, "rev-parse", path)
    file = clone / ".git/objects" / name[:2] / name[2:]
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(b"" if damage == "emptied" else b"x" * 50)

    for result in (lint_since(clone), diff_to(clone)):
        assert result.code == ExitCode.USAGE
        assert result.err.count("\n") == 1
        assert "internal" not in result.err


def test_replacements_and_grafts_are_ignored(clone: Path) -> None:
    first = run_git(clone, "rev-parse", "HEAD")
    (clone / "jobs/b.yaml").write_text(GIT_JOB % ("b", "1"))
    second = commit_all(clone)
    run_git(clone, "replace", first, second)

    assert changed_names(diff_to(clone, f"{first}..{second}")) == ["b"]
    run_git(clone, "replace", "-d", first)
    (clone / ".git/info/grafts").write_text(f"{second}\n")
    assert git.find_merge_base(clone, first, second) == first


def test_variables_of_hooks_do_not_choose_the_repository(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    run_git(other, "init", "-q")
    (clone / "jobs/b.yaml").write_text(GIT_JOB % ("b", "latest"))
    expected = lint_since(clone).out
    for name, value in (
        ("GIT_DIR", other / ".git"),
        ("GIT_WORK_TREE", other),
        ("GIT_INDEX_FILE", other / "index"),
        ("GIT_OBJECT_DIRECTORY", other / ".git/objects"),
        ("GIT_NAMESPACE", "x"),
        ("GIT_TRACE", tmp_path / "trace"),
        ("GIT_EXTERNAL_DIFF", "false"),
    ):
        monkeypatch.setenv(name, str(value))

    assert lint_since(clone).out == expected
    assert '"mutable-image-tag"' in expected
    assert not (tmp_path / "trace").exists()


def test_declared_safe_folders_are_respected(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, the owner of a clone is often another user; settings of the user or the machine allow that."""
    if os.geteuid() != 0:
        pytest.skip("only root can change the owner of a folder")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for folder in (clone, clone / ".git"):
        os.chown(folder, 4321, 4321)
    assert git.find_work_tree(clone) is None
    (tmp_path / "config").write_text("[safe]\n\tdirectory = *\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    assert git.find_work_tree(clone) == clone


def test_missing_git_is_a_usage_error(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    for result in (lint_since(clone), diff_to(clone)):
        assert (result.code, result.err) == (
            ExitCode.USAGE,
            "jobgen: git is not on PATH, and is needed to read revisions; install it\n",
        )
    assert lint_paths(clone, (), (), format_="text").code == ExitCode.OK


@pytest.mark.parametrize("revision", ["nowhere", "HEAD~99", "HEAD:jobs", "-x", "a\0b", "\udcff", "0" * 40, "--all", ""])
def test_revision_that_does_not_exist_is_a_usage_error(revision: str, clone: Path) -> None:
    result = diff_to(clone, f"{revision}..HEAD") if revision else diff_to(clone.parent, "HEAD")

    assert result.code == ExitCode.USAGE
    assert result.err.count("\n") == 1
    assert result.err.startswith("jobgen: ")
    assert "internal" not in result.err


def test_shallow_clone_without_merge_base_is_a_usage_error(clone: Path, tmp_path: Path) -> None:
    run_git(clone, "branch", "-M", "main")
    for branch in ("one", "two"):
        run_git(clone, "checkout", "-q", "-b", branch, "main")
        (clone / f"jobs/{branch}.yaml").write_text(GIT_JOB % (branch, "1"))
        commit_all(clone)
    shallow = tmp_path / "shallow"
    run_git(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", f"file://{clone}", str(shallow))
    result = diff_to(shallow, "origin/one...origin/two")

    assert result.code == ExitCode.USAGE
    assert result.err.startswith("jobgen: this shallow clone lacks the merge base")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_run_leaves_no_copies(number: signal.Signals, clone: Path, scratch: Path, tmp_path: Path) -> None:
    """After SIGKILL, the next run removes what the killed one left."""
    binary = tmp_path / "bin/kubeconform"
    binary.parent.mkdir()
    binary.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexec sleep 60\n")
    binary.chmod(0o755)
    environment = {**os.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}", "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "jobgen", "lint", "--second-opinion", "--no-cache"]
    (scratch / "jobgen-scratch-of-another").symlink_to(clone)
    with subprocess.Popen(command, cwd=clone, env=environment, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 300
        while not (tmp_path / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(list(scratch.iterdir())) == 2
        with open_scratch() as mine:
            assert len(list(scratch.iterdir())) == 3, "the folder of a running process stays"
            assert stat.S_IMODE(mine.stat().st_mode) == 0o700
        process.send_signal(number)
        assert process.wait(60) == (128 + number if number == signal.SIGTERM else -number)

    assert len(list(scratch.iterdir())) == (1 if number == signal.SIGTERM else 2)
    with open_scratch():
        pass
    assert [path.name for path in scratch.iterdir()] == ["jobgen-scratch-of-another"]
    assert (clone / "jobs/a.yaml").exists()
    (scratch / "jobgen-scratch-of-another").unlink()


# --- Files ---

SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml}}
spec:
  framework: pytorch
  image: registry.example.com/{image}
"""
USED = "bert:latest # jobgen: ignore[mutable-image-tag] -- follows the branch"
UNUSED = "bert:1.2.3 # jobgen: ignore[mutable-image-tag] -- it was once"
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {{{spec}}}\n"
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules:
      - {{apiGroups: [kubeflow.org], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}}
  validations: [{{expression: "{expression}", message: never}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
"""


def write_files(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def spec(name="bert", image=USED):
    return SPEC.format(name=name, image=image)


def rules_of(root, *paths, envs=(), **options):
    """The rules of all findings of a lint."""
    result = lint_paths(root, paths, envs, format_="json", **options)
    return [finding["rule"] for finding in json.loads(result.out)["findings"]] if result.out else [result.err]


def obsolete(rules):
    return [rule for rule in rules if rule in ("unused-suppression", "unknown-suppression", "expired-suppression")]


BROKEN = {
    "settings": {"jobgen.yaml": "rules: [\n"},
    "setting": {"jobgen.yaml": "no-such-setting: 1\n"},
    "overlay": {"overlays/prod/o.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {unheard: []}\n"},
    "overlay text": {"overlays/prod/o.yaml": "spec: [\n"},
    "one of two overlays": {
        "overlays/dev/o.yaml": OVERLAY.format(spec=""),
        "overlays/prod/o.yaml": OVERLAY.format(spec="unheard: []"),
    },
    "kind": {"schemas/example.com/x_v1.yaml": "kind: [\n"},
    "policy": {"policies/p.yaml": POLICY.format(name="p", expression="object.")},
    "policy text": {"policies/p.yaml": "spec: [\n"},
    "same job, other document": {"jobs/bert.yaml": f"{spec()}---\n{spec('other').replace('framework', 'framwork')}"},
    "patch that fails": {
        "overlays/prod/o.yaml": OVERLAY.format(spec="patches: [{jsonPatch: [{op: remove, path: /spec/none}]}]")
    },
    "rule that is off": {"jobgen.yaml": "rules: {mutable-image-tag: 'off'}\n"},
    "rule that is off here": {"jobgen.yaml": "rules: {mutable-image-tag: [{severity: 'off', paths: [jobs/*]}]}\n"},
    "category that is off": {"jobgen.yaml": "categories: {image: 'off'}\n"},
    "category that is off there": {
        "jobgen.yaml": "categories: {image: [{severity: 'off', environments: [prod]}]}\n",
        "overlays/dev/o.yaml": OVERLAY.format(spec="defaults: {image: 'a:1.0.0'}"),
        "overlays/prod/o.yaml": OVERLAY.format(spec=""),
    },
    "rule that is off by its former name": {"jobgen.yaml": "rules: {moving-tag: 'off'}\n"},
    "job of no environment": {"overlays/prod/o.yaml": OVERLAY.format(spec="jobs: {names: [other]}")},
    "paused job": {"jobs/bert.yaml": spec() + "  run: {state: paused}\n"},
    "expired job": {"jobs/bert.yaml": spec() + "  run: {expires: 2020-01-01}\n"},
    "wrong type hides rules": {"jobs/bert.yaml": spec() + "  podTemplate: {spec: {hostNetwork: 'yes'}}\n"},
}


@pytest.mark.parametrize("name", BROKEN)
def test_fix_keeps_suppressions_of_what_was_not_checked(name, tmp_path):
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/bert.yaml": spec(), "jobs/other.yaml": spec("other", "a:1")})
    assert "unused-suppression" not in rules_of(root)
    write_files(root, BROKEN[name])
    before = (root / "jobs/bert.yaml").read_text()

    assert obsolete(rules_of(root, fix="safe", today="2026-01-01")) == []
    assert USED in (root / "jobs/bert.yaml").read_text(), before


def test_a_rule_with_a_severity_of_its_own_is_not_off_with_its_category(tmp_path):
    settings = "rules: {mutable-image-tag: warning}\ncategories: {image: 'off'}\n"
    root = write_files(tmp_path, {"jobgen.yaml": settings, "jobs/bert.yaml": spec(image=UNUSED)})

    assert obsolete(rules_of(root)) == ["unused-suppression"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("mutable-image-tags", "mutable-image-tag"),
        ("mutable-image-tags, no-such-thing-at-all", "mutable-image-tag"),
        ("mutable-image-tags, host-network", "mutable-image-tag"),
    ],
)
def test_fix_corrects_the_name_of_a_rule_and_keeps_the_reason(tmp_path, written, expected):
    job = spec(image=USED.replace("mutable-image-tag", written))
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/bert.yaml": job})

    assert obsolete(rules_of(root, fix="safe")) == []
    assert (root / "jobs/bert.yaml").read_text() == spec(image=USED.replace("mutable-image-tag", expected))


EXPERIMENT = "apiVersion: example.com/v1\nkind: Experiment\nmetadata: {name: e, namespace: ml}\ndata: {a: b}\n"


def test_an_object_without_a_schema_exempts_only_itself(tmp_path):
    ignored = "kind: Experiment # jobgen: ignore[unknown-field] -- the schema comes later"
    files = {
        "jobgen.yaml": "rules: {missing-schema: info}\n",
        "jobs/cm.yaml": EXPERIMENT.replace("kind: Experiment", ignored),
        "jobs/bert.yaml": spec(image=UNUSED),
        "overlays/dev/o.yaml": "# jobgen: ignore-file[mutable-image-tag] -- none\n" + OVERLAY.format(spec=""),
    }
    root = write_files(tmp_path, files)

    assert obsolete(rules_of(root)) == ["unused-suppression", "unused-suppression"]


def test_an_object_without_a_schema_exempts_only_its_own_baseline_entries(tmp_path):
    files = {"jobgen.yaml": "", "jobs/cm.yaml": EXPERIMENT, "jobs/bert.yaml": spec(image="bert:latest")}
    root = write_files(tmp_path, files)
    lint_paths(root, (), (), format_="json", write_baseline=True, baseline="b.json")
    known = json.loads((root / "b.json").read_text())
    about_it = {"rule": "unknown-field", "object": "example.com/Experiment ml/e", "pointer": "/datta"}
    known["findings"].append(about_it)
    (root / "b.json").write_text(json.dumps(known))
    write_files(root, {"jobs/bert.yaml": spec(image="bert:1.0.0")})

    assert rules_of(root, baseline="b.json").count("stale-baseline") == 1
    done = lint_paths(root, (), (), format_="json", baseline="b.json", fix="safe")
    assert "1 stale entry removed from b.json" in done.err
    left = json.loads((root / "b.json").read_text())["findings"]
    assert about_it in left
    assert not [entry for entry in left if entry["rule"] in ("mutable-image-tag", "moving-tag")]


def test_fix_keeps_a_suppression_that_another_environment_needs(tmp_path):
    files = {
        "jobgen.yaml": "environments: [dev]\n",
        "jobs/bert.yaml": "# jobgen: ignore-file[mutable-image-tag] -- it follows the branch\n" + spec(image="a:1"),
        "overlays/dev/o.yaml": OVERLAY.format(spec=""),
        "overlays/prod/o.yaml": OVERLAY.format(spec=""),
    }
    root = write_files(tmp_path, files)

    assert obsolete(rules_of(root)) == []
    assert obsolete(rules_of(root, envs=["dev"])) == []
    assert obsolete(rules_of(root, envs=["dev", "prod"])) == ["unused-suppression"]


def test_fix_from_outside_keeps_suppressions_of_a_repository(tmp_path):
    root = write_files(
        tmp_path / "repository",
        {"jobgen.yaml": "", "jobs/bert.yaml": spec(image=UNUSED), "overlays/prod/o.yaml": OVERLAY.format(spec="")},
    )
    assert obsolete(rules_of(root)) == ["unused-suppression"]
    assert obsolete(rules_of(tmp_path, "repository/jobs/bert.yaml", fix="safe")) == []
    assert UNUSED in (root / "jobs/bert.yaml").read_text()


def test_unused_suppression_beside_an_unrelated_error_is_still_reported(tmp_path):
    broken = spec("broken").replace("framework", "framwork")
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/bert.yaml": spec(image=UNUSED), "jobs/broken.yaml": broken})
    assert obsolete(rules_of(root)) == ["unused-suppression"]


def test_policy_of_a_broken_file_is_not_an_unknown_rule(tmp_path):
    comment = "# jobgen: ignore-file[own-policy] -- agreed\n"
    policy = POLICY.format(name="own-policy", expression="false")
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/bert.yaml": comment + spec(), "policies/own.yaml": policy})
    assert obsolete(rules_of(root)) == []
    write_files(root, {"policies/own.yaml": policy.replace("spec:", "spec: [", 1)})
    assert obsolete(rules_of(root, fix="safe")) == []
    assert comment in (root / "jobs/bert.yaml").read_text()


BASELINE = "jobgen-baseline.json"
MANIFEST = (
    "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {{name: {name}, namespace: ml}}\n"
    "spec: {{jaxReplicaSpecs: {{Worker: {{template: {{spec: {{containers: [{{name: jax, image: '{image}'}}]}}}}}}}}}}\n"
)


@pytest.mark.parametrize("name", [name for name in BROKEN if "document" not in name and "job" not in name])
def test_baseline_keeps_entries_of_what_was_not_checked(name, tmp_path):
    root = write_files(
        tmp_path,
        {"jobgen.yaml": "", "jobs/bert.yaml": spec(image="a:latest"), "jobs/other.yaml": spec("other", "b:main")},
    )
    lint_paths(root, (), (), format_="text", write_baseline=True)
    before = (root / BASELINE).read_text()
    assert "moving-tag" in before
    write_files(root, BROKEN[name])

    assert "stale-baseline" not in rules_of(root, baseline=BASELINE, fix="safe")
    assert (root / BASELINE).read_text() == before


def test_baseline_keeps_entries_with_since(tmp_path):
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/bert.yaml": spec(image="a:latest")})
    lint_paths(root, (), (), format_="text", write_baseline=True)
    before = (root / BASELINE).read_text()
    author = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *words], cwd=root, check=True)

    assert rules_of(root, baseline=BASELINE, since="HEAD", fix="safe") == []
    assert (root / BASELINE).read_text() == before


@pytest.mark.parametrize("paths", [(), (".",), ("manifests",), ("manifests/a.yaml", "manifests/b.yaml")])
def test_baseline_of_paths_shrinks_with_the_same_paths(paths, tmp_path):
    root = write_files(
        tmp_path,
        {f"manifests/{name}.yaml": MANIFEST.format(name=name, image="a:latest") for name in ("a", "b")},
    )
    lint_paths(root, paths, (), format_="text", write_baseline=True)
    assert rules_of(root, *paths, baseline=BASELINE) == []
    write_files(root, {"manifests/a.yaml": MANIFEST.format(name="a", image="a:1.2.3")})

    # Other paths cannot show what is fixed.
    assert "stale-baseline" not in rules_of(root, "manifests/b.yaml", baseline=BASELINE)
    assert "stale-baseline" in rules_of(root, *paths, baseline=BASELINE)
    before = (root / BASELINE).read_text()
    assert rules_of(root, *paths, baseline=BASELINE, fix="safe") == []
    assert len((root / BASELINE).read_text()) < len(before)


@pytest.mark.parametrize("name", [BASELINE, "known.json"])
@pytest.mark.parametrize("repository", [True, False])
def test_baseline_is_no_manifest(name, repository, tmp_path):
    root = write_files(
        tmp_path,
        {
            "manifests/a.yaml": MANIFEST.format(name="a", image="a:latest"),
            **({"jobgen.yaml": ""} if repository else {}),
        },
    )
    paths = ("manifests",) if repository else (".",)
    (root / "manifests" if repository else root).mkdir(exist_ok=True)
    file = f"manifests/{name}" if repository else name
    before = rules_of(root, *paths)
    lint_paths(root, paths, (), format_="text", write_baseline=True, baseline=file)

    assert rules_of(root, *paths) == before
    assert rules_of(root, *paths, baseline=file) == []


def test_missing_baseline_gets_a_hint(tmp_path):
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/a.yaml": spec()})
    result = lint_paths(root, (), (), format_="text", baseline="known.json")

    assert result.code == 2
    assert (
        "there is no baseline `known.json`; write it with `jobgen lint --write-baseline --baseline known.json`"
        in result.err
    )


def run(root, *arguments, **settings):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "jobgen", *arguments],
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **settings,
    )


BLOCK = "  command: [sh, -c]\n  args:\n    - |\n      echo one\n      echo two"


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "  "])
@pytest.mark.parametrize("style", ["|", ">", "|-", "|+", ">2"])
def test_fix_of_a_block_scalar_at_the_end_of_a_file(style, end, tmp_path):
    text = spec(image=UNUSED) + BLOCK.replace("|", style) + end
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/bert.yaml": text, "jobs/other.yaml": spec("other", UNUSED)})
    result = lint_paths(root, (), (), format_="text", fix="safe")

    assert result.err.startswith("2 findings fixed in 2 files\n"), result.err
    comment = UNUSED.partition(" #")[2]
    assert (root / "jobs/bert.yaml").read_text() == text.replace(f" #{comment}", "")


def drop_rights_over_files():
    """Root may read and write everything; drop these rights."""
    for right in (1, 2):
        ctypes.CDLL(None).prctl(24, right, 0, 0, 0)


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))


def test_fix_reports_each_file_that_it_cannot_write(tmp_path):
    files = {f"jobs/{name}/a.yaml": spec(name, UNUSED) for name in ("a", "b", "c", "d")}
    root = write_files(tmp_path, {"jobgen.yaml": "", **files, "jobs/d/a.yaml": files["jobs/d/a.yaml"] + "#" * 3_000})
    (root / "jobs/a/a.yaml").chmod(0o444)
    (root / "jobs/b").chmod(0o555)

    def lose_rights():
        drop_rights_over_files()
        limit_file_size()

    done = run(root, "--no-cache", "lint", "--fix", preexec_fn=lose_rights)
    (root / "jobs/b").chmod(0o755)

    assert done.returncode == 4
    assert "1 finding fixed in 1 file\n" in done.stderr
    assert "jobs/a/a.yaml is read-only; it was not changed\n" in done.stderr
    assert "jobs/b/a.yaml cannot be written: Permission denied; it was not changed\n" in done.stderr
    assert "jobs/d/a.yaml cannot be written: File too large; it was not changed\n" in done.stderr
    left = {path for path in files if "jobgen: ignore" in (root / path).read_text()}
    assert left == {"jobs/a/a.yaml", "jobs/b/a.yaml", "jobs/d/a.yaml"}
    assert not list(root.rglob(".jobgen-*"))


def test_edit_of_a_comment_stays_on_its_line():
    edit = TextEdit("comment", Location("a.yaml", 1, 6, 1, 21), "")

    assert apply_edits(b"a: 1 # jobgen: xxxxx\n# keep\n", "a.yaml", [edit]) == b"a: 1\n# keep\n"
    with pytest.raises(EditRefusedError):
        apply_edits(b"a: 1\n# keep this comment\n", "a.yaml", [edit])


def test_fix_that_another_run_has_written_is_no_failure(tmp_path):
    write_files(tmp_path, {"same.yaml": "new", "other.yaml": "edited"})
    files = [FixedFile(name, b"old", b"new") for name in ("same.yaml", "other.yaml")]

    assert write_fixes(tmp_path, files) == {"other.yaml": "was changed in the meantime"}
    assert (tmp_path / "other.yaml").read_text() == "edited"


def test_fix_skips_a_file_that_cannot_be_read(tmp_path):
    root = write_files(
        tmp_path, {"jobgen.yaml": "", "jobs/a.yaml": spec("a", UNUSED), "jobs/b.yaml": spec("b", UNUSED)}
    )
    (root / "jobs/a.yaml").chmod(0)
    done = run(root, "--no-cache", "lint", "--fix", preexec_fn=drop_rights_over_files)
    (root / "jobs/a.yaml").chmod(0o644)

    assert done.returncode == 1
    assert "1 finding fixed in 1 file\n" in done.stderr
    assert "jobgen: ignore" not in (root / "jobs/b.yaml").read_text()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_fix_keeps_owner_permissions_and_attributes(tmp_path):
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/a.yaml": spec(image=UNUSED)})
    file = root / "jobs/a.yaml"
    os.chown(file, 12_345, 23_456)
    file.chmod(0o640)
    try:
        os.setxattr(file, "user.team", b"vision")
        attributes = {"user.team": b"vision"}
    except OSError:
        attributes = {}
    lint_paths(root, (), (), format_="text", fix="safe")
    status = file.stat()

    assert "jobgen: ignore" not in file.read_text()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (12_345, 23_456, 0o640)
    assert {name: os.getxattr(file, name) for name in os.listxattr(file) if name.startswith("user.")} == attributes


def test_fix_writes_no_copy_of_the_repository(tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir(mode=0o500)
    root = write_files(tmp_path / "repository", {"jobgen.yaml": "", "jobs/a.yaml": spec(image=UNUSED)})
    done = run(
        root,
        "--no-cache",
        "lint",
        "--fix",
        preexec_fn=drop_rights_over_files,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert "1 finding fixed in 1 file\n" in done.stderr


WATCH = """\
import os, sys
events = []
def hook(event, args):
    if event == "os.rename":
        events.append(("rename", os.fsdecode(args[1])))
sys.addaudithook(hook)
original = os.fsync
def fsync(handle):
    events.append(("fsync", os.readlink(f"/proc/self/fd/{handle}")))
    original(handle)
os.fsync = fsync
from jobgen.cli.main import run
code = run(sys.argv[1:])
for event in events:
    print(*event)
"""


def watch_disk(root, *arguments):
    """The names of files that are synced and moved by a command, in order."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", WATCH, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    events = [line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(("rename ", "fsync "))]
    return [(event, os.path.relpath(os.path.join(root, path), root)) for event, path in events]


DURABLE = {
    "fix": (("lint", "--fix"), ["jobs/a.yaml"]),
    "baseline": (("lint", "--write-baseline"), ["jobgen-baseline.json"]),
    "render": (
        ("render", "-o", "rendered"),
        ["rendered/ml/pytorchjob-a.yaml", "rendered/jobgen.lock.json", "rendered/kustomization.yaml"],
    ),
    "init": (("init", "new"), ["new/jobgen.yaml", "new/overlays/dev/overlay.yaml"]),
    "import": (("import", "m.yaml", "-o", "jobs/more"), ["jobs/more/m.yaml"]),
    "editor": (("schema", "editor"), [".vscode/settings.json"]),
    "migrate": (("migrate", "a", "--to", "trainer", "-o", "new"), ["new/a.yaml"]),
}


@pytest.mark.parametrize("command", DURABLE)
def test_written_files_survive_a_power_failure(command, tmp_path):
    root = write_files(
        tmp_path,
        {"jobgen.yaml": "", "jobs/a.yaml": spec("a", UNUSED), "m.yaml": MANIFEST.format(name="m", image="a:1")},
    )
    arguments, files = DURABLE[command]
    events = watch_disk(root, "--no-cache", *arguments)

    for file in files:
        assert (root / file).is_file()
        at = max(number for number, event in enumerate(events) if event == ("rename", file))
        # The new content was synced before; its folder, and those of a new folder, after.
        assert [event for event in events[:at] if event[0] == "fsync" and Path(event[1]).name != Path(file).parent.name]
        assert ("fsync", str(Path(file).parent)) in events[at:], events
        # A new folder is a name in its parent.
        parents = [parent for parent in Path(file).parents[:-1] if str(parent) != "jobs"]
        assert all(("fsync", str(parent.parent)) in events for parent in parents), events
    # Each folder is synced few times, however many files it has.
    synced = [path for event, path in events if event == "fsync" and (root / path).is_dir()]
    assert max(map(synced.count, synced)) <= 4


@pytest.mark.parametrize("command", ["fix", "baseline", "render"])
def test_no_fsync_skips_the_wait(command, tmp_path):
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/a.yaml": spec("a", UNUSED)})
    arguments, files = DURABLE[command]
    events = watch_disk(root, "--no-cache", *arguments, "--no-fsync")

    assert all((root / file).is_file() for file in files)
    assert [path for event, path in events if event == "fsync"] == []


def cached_run(root, home, command):
    """Run a command in this process with the cache below another folder."""
    cache.enable(home / "jobgen", "test", root)
    try:
        if command == "lint":
            return lint_paths(root, (), (), format_="concise")
        return render(root, (), (), None, format_="yaml")
    finally:
        cache.disable()


def entries_of(home):
    return [path for path in (home / "jobgen").rglob("*") if path.is_file() and path.parent.name != "jobgen"]


@pytest.fixture
def cached(tmp_path):
    """A repository with an overlay and a finding, and the cache of a lint and a render of it."""
    files = {
        "jobgen.yaml": "",
        "jobs/bert.yaml": spec(image="bert:latest"),
        "overlays/prod/o.yaml": OVERLAY.format(spec="namespace: ml-prod, patches: [{merge: {env: {A: MARK-7f3}}}]"),
    }
    root = write_files(tmp_path / "repository", files)
    for path in root.rglob("*.yaml"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    outputs = [cached_run(root, tmp_path / "home", command).out for command in ("lint", "render")]
    assert "mutable-image-tag" in outputs[0]
    return root, tmp_path / "home", outputs


def test_cache_is_for_its_user_alone_and_holds_no_manifests(cached):
    _, home, _ = cached
    modes = {path.stat().st_mode & 0o777 for path in (home / "jobgen").rglob("*") if path.is_file()}

    assert (home / "jobgen").stat().st_mode & 0o777 == 0o700
    assert modes == {0o600}
    assert not [path for path in entries_of(home) if b"MARK-7f3" in path.read_bytes()]


FORGERIES = {
    "other digest": lambda content: bytes(16) + content[16:],
    "other content": lambda content: content.replace(b"mutable", b"MUTABLE").replace(b"warning", b"error"),
    "unsigned": lambda content: blake2b(content[16:], digest_size=16).digest() + content[16:],
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "noise": lambda _: bytes(range(256)) * 8,
    "deep": lambda _: bytes(16) + b"[" * 100_000,
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_and_damaged_entries_are_not_used(name, cached):
    root, home, outputs = cached
    for path in entries_of(home):
        path.write_bytes(FORGERIES[name](path.read_bytes()))

    done = [cached_run(root, home, command) for command in ("lint", "render")]
    assert [each.out for each in done] == outputs
    assert [each.code for each in done] == [0, 0]


def test_entries_are_bound_to_their_keys(cached):
    root, home, outputs = cached
    paths = entries_of(home)
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, [*contents[1:], contents[0]], strict=True):
        path.write_bytes(content)

    assert [cached_run(root, home, command).out for command in ("lint", "render")] == outputs


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "device link", "public"])
def test_entries_that_are_no_private_files_are_not_read(kind, cached):
    root, home, outputs = cached
    for path in entries_of(home):
        content = path.read_bytes()
        if kind == "public":
            path.chmod(0o644)
            continue
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            (home / path.name).write_bytes(content)
            path.symlink_to("/dev/zero" if kind == "device link" else home / path.name)

    assert [cached_run(root, home, command).out for command in ("lint", "render")] == outputs


def replace_by_link(folder):
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


REFUSED_FOLDERS = {
    "writable by others": lambda folder: folder.chmod(0o777),
    "writable by the group": lambda folder: folder.chmod(0o770),
    "link": replace_by_link,
    "of another user": lambda folder: os.chown(folder, 12_345, -1),
    "file": lambda folder: (folder.rename(folder.with_name("elsewhere")), folder.write_text("")),
}


@pytest.mark.parametrize("name", REFUSED_FOLDERS)
def test_cache_folder_that_others_control_is_not_used(name, cached):
    if name == "of another user" and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    root, home, outputs = cached
    REFUSED_FOLDERS[name](home / "jobgen")
    before = sorted(str(path) for path in home.rglob("*"))
    write_files(root, {"jobs/other.yaml": spec("other", "a:1")})
    done = cached_run(root, home, "lint")

    assert "mutable-image-tag" in done.out
    assert sorted(str(path) for path in home.rglob("*")) == before
    assert outputs


@pytest.mark.parametrize("place", ["cache", "sub/cache", ".git/cache"])
@pytest.mark.parametrize("mark", ["jobgen.yaml", ".git/HEAD", "jobs/bert.yaml"])
def test_cache_folder_in_a_repository_is_not_used(place, mark, tmp_path):
    root = write_files(tmp_path, {mark: "", "jobs/bert.yaml": spec(image="bert:latest")})
    done = cached_run(root, root / place, "lint")

    assert "mutable-image-tag" in done.out
    assert not (root / place).exists()


def test_results_that_contain_a_secret_are_not_cached(tmp_path):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    job = spec(image=f"bert:latest # jobgen: ignore[mutable-image-tag] -- {token}") + f"  env: {{X: {token}}}\n"
    root = write_files(tmp_path / "repository", {"jobgen.yaml": "", "jobs/bert.yaml": job})
    cached_run(root, tmp_path / "home", "lint")

    assert entries_of(tmp_path / "home")
    assert not [path for path in entries_of(tmp_path / "home") if token.encode() in path.read_bytes()]


BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everybody}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: Group, name: 'system:authenticated'}]
"""


@pytest.fixture
def tree(tmp_path):
    """A repository with a rendered tree of two environments."""
    files = {"jobgen.yaml": "", "jobs/bert.yaml": spec(image="bert:1.2.3"), "jobs/c.yaml": spec("c", "bert:1.2.3")}
    files |= {f"overlays/{env}/o.yaml": OVERLAY.format(spec="namespace: ml") for env in ("dev", "prod")}
    root = write_files(tmp_path, files)
    assert render(root, (), (), root / "rendered", format_="yaml").code == 0
    assert check_tree(root).code == 0
    assert tree_findings(root) == []
    return root


def check_tree(root, *envs):
    return render(root, (), envs, root / "rendered", format_="yaml", check=True)


def tree_findings(root, *paths, **options):
    result = lint_paths(root, paths, (), format_="json", **options)
    found = json.loads(result.out)["findings"] if result.out else []
    return [(each["rule"], each["file"]) for each in found if "rendered-file" in each["rule"]]


ADDED = [
    "rendered/prod/ml/clusterrolebinding-everybody.yaml",
    "rendered/prod/ml/a.yml",
    "rendered/prod/ml/a.json",
    "rendered/prod/ml/Chart.yaml",
    "rendered/prod/ml/.hidden.yaml",
    "rendered/prod/ml/deep/er/a.yaml",
    "rendered/prod/ml/kustomization.yaml",
    "rendered/prod/new/a.yaml",
    "rendered/prod/a.yaml",
    "rendered/prod/ml/jobgen.lock.json",
]


@pytest.mark.parametrize("path", sample(ADDED, 3))
def test_file_that_was_added_to_the_rendered_tree_is_reported(path, tree):
    write_files(tree, {path: BINDING})
    checked = check_tree(tree)

    assert checked.code == 1
    assert f"{tree / path}: was not written by jobgen" in checked.err
    assert tree_findings(tree) == [("unlisted-rendered-file", path)]
    assert tree_findings(tree, ".") == tree_findings(tree, "rendered") == tree_findings(tree)
    assert tree_findings(tree, "rendered/dev") == tree_findings(tree, "jobs") == []
    assert lint_paths(tree, (), (), format_="text").code == 1


def test_environment_that_was_added_to_the_rendered_tree_is_reported(tree):
    write_files(tree, {"rendered/other/ml/a.yaml": BINDING})

    assert tree_findings(tree) == [("unlisted-rendered-file", "rendered/other/ml/a.yaml")]


def test_file_that_was_edited_in_the_rendered_tree_is_reported(tree):
    path = tree / "rendered/prod/ml/pytorchjob-bert.yaml"
    path.write_text(path.read_text() + "---\n" + BINDING)

    assert tree_findings(tree) == [("edited-rendered-file", "rendered/prod/ml/pytorchjob-bert.yaml")]
    assert f"{path}: edited by hand" in check_tree(tree).err


@pytest.mark.parametrize("path", ["ml/pytorchjob-bert.yaml", "kustomization.yaml", ".gitattributes"])
def test_file_that_was_deleted_from_the_rendered_tree_is_reported(tree, path):
    (tree / "rendered/prod" / path).unlink()

    assert tree_findings(tree) == [("edited-rendered-file", f"rendered/prod/{path}")]
    assert lint_paths(tree, (), (), format_="text").code == check_tree(tree).code == 1


def test_tree_of_a_removed_environment_is_reported_once(tree):
    (tree / "overlays/dev/o.yaml").write_text("spec: [")
    assert tree_findings(tree) == []
    (tree / "overlays/dev/o.yaml").unlink()
    checked = lint_paths(tree, (), (), format_="text")

    assert tree_findings(tree) == [("edited-rendered-file", "rendered/dev/jobgen.lock.json")]
    assert "there is no environment `dev`" in checked.out
    assert checked.code == check_tree(tree).code == 1
    assert render(tree, (), (), tree / "rendered", format_="yaml", allow_empty=True).code == 0
    assert tree_findings(tree) == []


def test_tree_of_the_unnamed_environment_is_stale_once_there_are_others(tmp_path):
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/bert.yaml": spec(image="bert:1.2.3")})
    assert render(root, (), (), root / "rendered", format_="yaml").code == 0
    assert tree_findings(root) == []
    write_files(root, {"overlays/dev/o.yaml": OVERLAY.format(spec="")})

    assert tree_findings(root) == [("edited-rendered-file", "rendered/jobgen.lock.json")]


@pytest.mark.parametrize("envs", [["dev"], ["dev", "prod"]])
def test_a_lost_lock_is_reported_once(tree, envs):
    for env in envs:
        (tree / f"rendered/{env}/jobgen.lock.json").unlink()
    checked = lint_paths(tree, (), (), format_="text")

    assert tree_findings(tree) == [("unlisted-rendered-file", f"rendered/{env}/jobgen.lock.json") for env in envs]
    assert "the lock file of environment `dev` is missing; run `jobgen render -o rendered`" in checked.out
    assert render(tree, (), (), tree / "rendered", format_="yaml").code == 0
    assert tree_findings(tree) == []


def test_file_that_was_replaced_by_a_link_is_reported(tree):
    path = tree / "rendered/prod/ml/pytorchjob-bert.yaml"
    path.rename(tree / "bert.yaml")
    path.symlink_to(tree / "bert.yaml")

    assert tree_findings(tree) == [("edited-rendered-file", "rendered/prod/ml/pytorchjob-bert.yaml")]
    assert check_tree(tree).code == 1


def test_file_that_was_added_with_its_entry_in_the_lock_is_reported(tree):
    lock = tree / "rendered/prod/jobgen.lock.json"
    document = json.loads(lock.read_text())
    document["files"]["ml/a.yaml"] = sha256(BINDING.encode()).hexdigest()
    write_files(tree, {"rendered/prod/jobgen.lock.json": json.dumps(document), "rendered/prod/ml/a.yaml": BINDING})

    checked = check_tree(tree)
    assert checked.code == 1
    assert f"{tree / 'rendered/prod/ml/a.yaml'}: stale" in checked.err


def test_rendered_tree_is_compared_since_a_revision(tree):
    write_files(tree, {"rendered/prod/ml/old.yaml": BINDING})
    run_git(tree, "init", "-q")
    commit_all(tree)
    write_files(tree, {"rendered/prod/ml/new.yaml": BINDING})

    assert tree_findings(tree, since="HEAD") == [("unlisted-rendered-file", "rendered/prod/ml/new.yaml")]


def test_change_of_the_rendered_tree_invalidates_the_cache(tree, tmp_path):
    home = tmp_path.with_name(f"{tmp_path.name}-home")
    for path in tree.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    time.sleep(2.1)
    assert [cached_run(tree, home, "lint").code for _ in range(2)] == [0, 0]
    write_files(tree, {"rendered/prod/ml/a.yaml": BINDING})

    assert "unlisted-rendered-file" in cached_run(tree, home, "lint").out


def test_unnamed_environment_and_other_folders(tmp_path):
    files = {"jobgen.yaml": "", "jobs/bert.yaml": spec(), "docs/a.yaml": "a: 1\n"}
    for folder in ("rendered", "."):
        root = write_files(tmp_path / f"to-{folder}", files)
        assert render(root, (), (), root / folder, format_="yaml").code == 0
        assert render(root, (), (), root / folder, format_="yaml", check=True).code == 0
        write_files(root / folder, {"ml/a.yaml": BINDING})
        assert render(root, (), (), root / folder, format_="yaml", check=True).code == 1
    write_files(tmp_path / "to-rendered/rendered", {"new/a.yaml": BINDING})

    assert len(tree_findings(tmp_path / "to-rendered")) == 2


ODD_PATH_COMMANDS = [
    "lint",
    "lint --since HEAD",
    "lint --since HEAD jobs/b\udcff.yaml",
    "lint --format json --since HEAD",
    "lint --write-baseline",
    "lint --write-baseline --baseline odd\udcff.json",
    "diff",
    "diff HEAD --format json",
    "diff HEAD --format markdown",
    "gitops argocd",
    "gitops flux",
    "render -o rendered",
]


@pytest.fixture
def odd_clone(tmp_path: Path) -> Path:
    """A repository in a folder and with files whose names are not UTF-8; one job is not committed."""
    folder = tmp_path / "fold\udcffer" / "inn\udcffer"
    (folder / "jobs").mkdir(parents=True)
    (folder / "overlays/prod").mkdir(parents=True)
    (folder / "jobgen.yaml").write_text("{}\n")
    (folder / "overlays/prod/o.yaml").write_text(
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: ml, cluster: {gitops: argocd}}\n"
    )
    (folder / "jobs/a\udcff.yaml").write_text(GIT_JOB % ("a", "latest"))
    run_git(folder.parent, "init", "-q")
    commit_all(folder)
    (folder / "jobs/b\udcff.yaml").write_text(GIT_JOB % ("b", "latest"))
    return folder


@pytest.mark.parametrize("command", ODD_PATH_COMMANDS)
def test_paths_that_are_not_utf8(
    command: str, odd_clone: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(odd_clone)

    assert run_command_line([*command.split(), "--no-cache"] if "gitops" not in command else command.split()) == 0
    assert b"internal" not in capsysbinary.readouterr().err


def test_baseline_of_paths_that_are_not_utf8_is_json(odd_clone: Path) -> None:
    (odd_clone / "jobs/c\udcff.yaml").write_text("a: [\n")
    assert lint_paths(odd_clone, (), (), format_="text", write_baseline=True).code == ExitCode.OK
    (json_path,) = odd_clone.glob("*baseline.json")

    assert json.loads(json_path.read_text("utf-8"))["findings"]
    with_baseline = lint_paths(odd_clone, (), (), format_="text", baseline=json_path.name)
    assert (with_baseline.code, with_baseline.out) == (ExitCode.OK, "")
    (odd_clone / "jobs/c\udcff.yaml").unlink()
    with_baseline = lint_paths(odd_clone, (), (), format_="json", baseline=json_path.name)
    assert [(each["rule"], each["line"] > 1) for each in json.loads(with_baseline.out)["findings"]] == [
        ("stale-baseline", True)
    ]


def list_imports(root, *arguments):
    """The top-level modules that a command imports, as files in the current folder would replace them."""
    script = (
        "import sys; before = set(sys.modules); from jobgen.cli.main import run; run(sys.argv[1:]); "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before}, sep=chr(10))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *arguments], cwd=root, capture_output=True, text=True, check=True
    )
    return {line for line in done.stdout.splitlines() if line.isidentifier() and line not in sys.builtin_module_names}


def test_modules_of_the_repository_are_not_imported(tmp_path):
    root = write_files(tmp_path, {"jobgen.yaml": "", "jobs/a.yaml": spec()})
    names = {"yaml", "click", "typing", "json", "sitecustomize", *list_imports(root, "--no-cache", "lint", "--fix")}
    # Python itself needs these before it runs any module.
    started = subprocess.run(
        [sys.executable, "-P", "-c", "import runpy, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    early = {name.partition(".")[0] for name in started.stdout.split()}
    assert {"yaml", "click", "typing"} <= names - early
    mark = "import os\nopen(os.environ['MARK'], 'a').write(__name__)\n"
    write_files(root, {f"{name}.py": mark for name in names - early - {"jobgen", "os"}})
    settings = {**os.environ, "MARK": str(tmp_path.with_name("mark"))}

    for options in ([], ["-P"]):
        done = subprocess.run(
            [sys.executable, *options, "-m", "jobgen", "--no-cache", "lint", "--fix"],
            cwd=root,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "1 object checked" in done.stderr, done.stderr
        assert not Path(settings["MARK"]).exists(), Path(settings["MARK"]).read_text()


def test_shipped_commands_do_not_import_from_the_current_folder():
    root = Path(__file__).parent.parent
    shipped = [root / "action.yml", root / ".pre-commit-hooks.yaml", *root.glob("ci/*"), *root.glob("deploy/*/*.yaml")]
    shipped += [*root.glob("jobgen/data/starter/**/*"), *root.glob("docs/*.md"), root / "README.md"]
    text = "\n".join(path.read_text("utf-8") for path in shipped if path.is_file())

    for quoted in ("`python -m", "`python -c`", "python -m sglang"):
        text = text.replace(quoted, "")
    assert re.findall(r"\bpython3? (?:-m|-c)\b.*", text) == []


@pytest.mark.parametrize("tampering", ["link", "stray file", "linked environment", "linked tree"])
def test_links_and_stray_files_beside_environments_are_reported(tmp_path: Path, tampering: str) -> None:
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: dev}\nspec: {namespace: ml}\n"
    job = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a}\n"
    job += "spec: {framework: pytorch, image: r.io/a:1.0}\n"
    files = {"jobgen.yaml": "", "overlays/dev/o.yaml": overlay, "jobs/a.yaml": job, "evil/b/x.yaml": "x: 1"}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    run_command_line(["-C", str(tmp_path), "render", "-o", "rendered"])
    assert not jobgen.lint(tmp_path).failed
    places = {"link": "extra", "stray file": "x.yaml", "linked environment": "dev", "linked tree": ""}
    place = f"rendered/{places[tampering]}".rstrip("/")
    if tampering == "stray file":
        (tmp_path / place).write_text("x: 1\n")
    else:
        if (tmp_path / place).exists():
            (tmp_path / place).rename(tmp_path / "evil/moved")
        (tmp_path / place).symlink_to(tmp_path / ("evil/moved" if (tmp_path / "evil/moved").exists() else "evil"))

    assert [(finding.rule, finding.location.file) for finding in jobgen.lint(tmp_path).findings] == [
        ("unlisted-rendered-file", place)
    ]


@pytest.mark.parametrize("folder", [".git", ".git/hooks/x", "sub/../.GIT", "link", "link/a"])
@pytest.mark.parametrize("command", [["render"], ["report"], ["import", "../job.json"]], ids=lambda words: words[0])
def test_nothing_is_written_to_the_folder_of_git(tmp_path, monkeypatch, command, folder):
    home = tmp_path / "repository"
    (home / "jobs").mkdir(parents=True)
    (home / "jobs/a.yaml").write_text(GIT_JOB % ("a", 1))
    manifest = jobgen.render(home).objects[0].manifest
    (tmp_path / "job.json").write_text(json.dumps(manifest))
    subprocess.run(["git", "init", "-q", home], check=True)
    (home / "link").symlink_to(".git")
    before = sorted(home.rglob("*"))
    monkeypatch.chdir(home)

    assert run_command_line([*command, "-o", folder]) == ExitCode.USAGE
    assert sorted(home.rglob("*")) == before
