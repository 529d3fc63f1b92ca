"""Nothing gets out of the repository and nothing is lost: links, Git, fixes, caches, secrets and rendered files."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobgen.cli.commands.diff import diff_states
from jobgen.cli.result import ExitCode, Result
from jobgen.cli.run_lint import lint_paths
from jobgen.repo import git, layout
from jobgen.repo.commit import CommitPath, open_commit

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
        for read in (layout.find_jobs, layout.read_overlays, layout.read_layers, layout.read_own_policies):
            here, in_commit = (
                [layout.read_file(entry) if isinstance(entry, layout.FileEntry) else entry for entry in read(folder)]
                for folder in (home, there)
            )
            assert in_commit == here
        here, in_commit = (list(map(layout.read_file, layout.find_manifests(folder, "."))) for folder in (home, there))
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
            "jobgen: git is not installed; it is needed to read revisions\n",
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
