"""What is deployed is what the sources say: no edit of a declared tree, its lock files or its declaration passes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from linting import lint_paths

from jobgen.cli.commands.diff import diff_states
from jobgen.cli.run_render import render

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: NAME}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  command: [python, train.py]
  resources: {cpu: 1, memory: 1Gi, gpu: 1}
"""
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: ml-ENV}\n"
FILES = {
    "jobgen.yaml": "rendered: deploy/tree\n",
    "jobs/bert.yaml": JOB.replace("NAME", "bert"),
    "jobs/gpt.yaml": JOB.replace("NAME", "gpt"),
    "overlays/dev/overlay.yaml": OVERLAY.replace("ENV", "dev"),
    "overlays/prod/overlay.yaml": OVERLAY.replace("ENV", "prod"),
}
TREE = "deploy/tree"
BERT = f"{TREE}/prod/ml-prod/pytorchjob-bert.yaml"
GPT = f"{TREE}/prod/ml-prod/pytorchjob-gpt.yaml"
LOCK = f"{TREE}/prod/jobgen.lock.json"
EXTRA = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: ml-prod}\n"


def git(folder: Path, *words: str) -> str:
    names = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(["git", *words], cwd=folder, env=kept | names | quiet, check=True, capture_output=True)
    return done.stdout.decode()


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")


def commit(folder: Path) -> None:
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "change")


def render_tree(folder: Path, *envs: str, tree: str = TREE) -> None:
    done = render(folder, (), envs, folder / tree, format_="yaml")
    assert done.code == 0, done.err


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose tree is up to date, under Git, on a branch for a change."""
    write(tmp_path, FILES)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    render_tree(tmp_path)
    commit(tmp_path)
    git(tmp_path, "switch", "--quiet", "--create", "change")
    return tmp_path


def lint(folder: Path, *paths: str, envs: tuple[str, ...] = (), **options: str) -> list[dict[str, str]]:
    done = lint_paths(folder, paths, envs, format_="json", **options)
    assert done.out, done.err
    found: list[dict[str, str]] = json.loads(done.out)["findings"]
    return [each for each in found if each["severity"] != "info"]


def places(findings: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [(each["rule"], each["file"]) for each in findings if "rendered" in each["rule"]]


def forge(folder: Path, path: str, text: str | None) -> None:
    """Edit, add or remove a file of the tree together with its entry in the lock file."""
    env = folder / "/".join(path.split("/")[:3])
    name = path.split("/", 3)[3]
    lock = json.loads((env / "jobgen.lock.json").read_text("utf-8"))
    if text is None:
        (folder / path).unlink()
        del lock["files"][name]
    else:
        write(folder, {path: text})
        lock["files"][name] = sha256(text.encode()).hexdigest()
    (env / "jobgen.lock.json").write_text(json.dumps(lock), "utf-8")


def edit_image(folder: Path) -> str:
    return (folder / BERT).read_text("utf-8").replace("bert:1.4.2", "evil:1")


def edit_lock(folder: Path, **fields: str) -> None:
    lock = json.loads((folder / LOCK).read_text("utf-8"))
    (folder / LOCK).write_text(json.dumps(lock | fields), "utf-8")


def edit_with_forged_origin(folder: Path) -> None:
    forge(folder, BERT, edit_image(folder))
    edit_lock(folder, tool="99.0.0", layers="0" * 64, source="0" * 40)


def replace_by_link(folder: Path) -> None:
    shutil.move(folder / TREE, folder / "elsewhere")
    (folder / TREE).symlink_to(folder / "elsewhere")


def replace_above_by_link(folder: Path) -> None:
    shutil.move(folder / "deploy", folder / "elsewhere")
    (folder / "deploy").symlink_to(folder / "elsewhere")


def replace_by_submodule(folder: Path) -> None:
    forge(folder, BERT, edit_image(folder))
    write(folder, {f"{TREE}/.git": "gitdir: /nowhere\n"})


def lose_declaration(folder: Path) -> None:
    forge(folder, BERT, edit_image(folder))
    write(folder, {"jobgen.yaml": ""})


def move_declaration(folder: Path) -> None:
    """Declare a tree that is right, and edit the one that is deployed."""
    shutil.copytree(folder / TREE, folder / "other")
    forge(folder, BERT, edit_image(folder))
    write(folder, {"jobgen.yaml": "rendered: other\n"})


def break_settings(folder: Path) -> None:
    forge(folder, BERT, edit_image(folder))
    write(folder, {"jobgen.yaml": "rendered: [deploy/tree]\n"})


def turn_rules_off(folder: Path) -> None:
    forge(folder, BERT, edit_image(folder))
    rules = "edited-rendered-file stale-rendered-tree unlisted-rendered-file rendered-tree-not-compared".split()
    text = FILES["jobgen.yaml"] + "rules:\n" + "".join(f"  {rule}: off\n" for rule in rules)
    write(folder, {"jobgen.yaml": text})


def suppress(folder: Path) -> None:
    shutil.rmtree(folder / TREE)
    comment = "# jobgen: ignore-file[stale-rendered-tree] -- nothing to see\n"
    write(folder, {"jobgen.yaml": comment + FILES["jobgen.yaml"]})


def leave_environment_out(folder: Path) -> None:
    forge(folder, BERT, edit_image(folder))
    write(folder, {"jobgen.yaml": "rendered: deploy/tree\nenvironments: [dev]\n"})


def rename_environment(folder: Path) -> None:
    """The folder of an environment keeps its edited files, and the overlay has another name."""
    forge(folder, BERT, edit_image(folder))
    shutil.move(folder / "overlays/prod", folder / "overlays/live")
    render_tree(folder, "live", "dev")


def swap_environments(folder: Path) -> None:
    shutil.rmtree(folder / TREE / "prod")
    shutil.copytree(folder / TREE / "dev", folder / TREE / "prod")


def hide_behind_error(folder: Path) -> None:
    forge(folder, BERT, edit_image(folder))
    write(folder, {"jobs/broken.yaml": JOB.replace("NAME", "broken").replace("cpu: 1", "cpu: x")})


ATTACKS = {
    "edited file": (lambda folder: write(folder, {BERT: edit_image(folder)}), "edited-rendered-file", BERT),
    "edited with the lock": (lambda folder: forge(folder, BERT, edit_image(folder)), "edited-rendered-file", BERT),
    "edited with all of the lock": (edit_with_forged_origin, "stale-rendered-tree", "jobgen.yaml"),
    "added file": (lambda folder: write(folder, {f"{TREE}/prod/ml-prod/x.yaml": EXTRA}), "unlisted-rendered-file", ""),
    "added with the lock": (
        lambda folder: forge(folder, f"{TREE}/prod/ml-prod/configmap-extra.yaml", EXTRA),
        "edited-rendered-file",
        f"{TREE}/prod/ml-prod/configmap-extra.yaml",
    ),
    "added environment": (
        lambda folder: write(folder, {f"{TREE}/stage/ml/configmap-x.yaml": EXTRA}),
        "unlisted-rendered-file",
        f"{TREE}/stage/ml/configmap-x.yaml",
    ),
    "deleted file": (lambda folder: (folder / BERT).unlink(), "edited-rendered-file", BERT),
    "deleted with the lock": (lambda folder: forge(folder, BERT, None), "stale-rendered-tree", "jobgen.yaml"),
    "deleted environment": (
        lambda folder: shutil.rmtree(folder / TREE / "prod"),
        "stale-rendered-tree",
        "jobgen.yaml",
    ),
    "deleted tree": (lambda folder: shutil.rmtree(folder / TREE), "stale-rendered-tree", "jobgen.yaml"),
    "deleted lock": (lambda folder: (folder / LOCK).unlink(), "unlisted-rendered-file", LOCK),
    "empty lock": (lambda folder: write(folder, {LOCK: "{}"}), "unlisted-rendered-file", LOCK),
    "stale tree": (
        lambda folder: write(folder, {"jobs/bert.yaml": FILES["jobs/bert.yaml"].replace("1.4.2", "1.4.3")}),
        "stale-rendered-tree",
        "jobgen.yaml",
    ),
    "linked tree": (replace_by_link, "unlisted-rendered-file", TREE),
    "linked folder above": (replace_above_by_link, "unlisted-rendered-file", "jobgen.yaml"),
    "submodule": (replace_by_submodule, "unlisted-rendered-file", "jobgen.yaml"),
    "double in other case": (
        lambda folder: write(folder, {"deploy/Tree/prod/ml-prod/x.yaml": EXTRA}),
        "unlisted-rendered-file",
        "jobgen.yaml",
    ),
    "swapped environments": (swap_environments, "stale-rendered-tree", "jobgen.yaml"),
    "removed environment": (leave_environment_out, "edited-rendered-file", BERT),
    "hidden behind an error": (hide_behind_error, "rendered-tree-not-compared", "jobgen.yaml"),
}
OF_THE_JUDGE = {
    "removed declaration": (lose_declaration, "edited-rendered-file", BERT),
    "moved declaration": (move_declaration, "edited-rendered-file", BERT),
    "rules that are off": (turn_rules_off, "edited-rendered-file", BERT),
    "broken settings": (break_settings, "rendered-tree-not-compared", "jobgen.yaml"),
    "renamed environment": (rename_environment, "edited-rendered-file", f"{TREE}/prod/jobgen.lock.json"),
    "comment": (suppress, "stale-rendered-tree", "jobgen.yaml"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_tree_that_is_not_what_its_sources_render_is_an_error(repository, name):
    attack, rule, file = ATTACKS[name]
    assert places(lint(repository)) == []
    attack(repository)

    for found in (lint(repository), lint(repository, policy_from="main"), lint(repository, since="main")):
        assert rule in {each for each, where in places(found) if where == file or not file}, found
    assert lint_paths(repository, (), (), format_="text", since="main").code == 1
    assert compare(repository).code == 1


@pytest.mark.parametrize("name", OF_THE_JUDGE)
def test_a_change_cannot_remove_what_its_tree_is_checked_by(repository, name):
    attack, rule, file = OF_THE_JUDGE[name]
    attack(repository)

    for found in (lint(repository, policy_from="main"), lint(repository, since="main")):
        assert (rule, file) in places(found), found
    assert compare(repository).code == 1


def compare(folder: Path, revisions: str = "main"):
    return diff_states(folder, revisions, (), format_="text", exit_code=False)


@pytest.mark.parametrize("name", ATTACKS | OF_THE_JUDGE)
def test_a_comparison_of_two_commits_finds_it_too(repository, name):
    if name == "submodule":
        pytest.skip("Git commits no file that is named .git")
    attack, *_ = (ATTACKS | OF_THE_JUDGE)[name]
    attack(repository)
    commit(repository)
    # An edit after the commit hides nothing.
    git(repository, "switch", "--quiet", "--detach", "main")

    assert compare(repository, "main...change").code == 1


def test_a_fault_of_the_base_hides_no_edit(repository):
    git(repository, "switch", "--quiet", "main")
    forge(repository, BERT, edit_image(repository))
    write(
        repository, {GPT: (repository / GPT).read_text() + "# edited\n", "jobs/late.yaml": JOB.replace("NAME", "late")}
    )
    commit(repository)
    git(repository, "switch", "--quiet", "--create", "second")
    assert places(lint(repository, since="main")) == []
    assert compare(repository).code == 0
    forge(repository, BERT, edit_image(repository).replace("evil:1", "evil:2"))

    assert places(lint(repository, since="main")) == [("edited-rendered-file", BERT)]
    assert compare(repository).code == 1
    write(repository, {GPT: (repository / GPT).read_text() + "# again\n"})
    found = lint(repository, since="main")
    assert sorted(places(found)) == [("edited-rendered-file", BERT), ("edited-rendered-file", GPT)]


def test_an_error_of_the_base_hides_no_edit(repository):
    git(repository, "switch", "--quiet", "main")
    write(repository, {"jobs/broken.yaml": JOB.replace("NAME", "broken").replace("cpu: 1", "cpu: x")})
    commit(repository)
    git(repository, "switch", "--quiet", "--create", "second")
    assert places(lint(repository, since="main")) == []
    forge(repository, BERT, edit_image(repository))

    assert places(lint(repository, since="main")) == [("rendered-tree-not-compared", "jobgen.yaml")]


def test_files_with_one_cause_are_one_finding_with_the_command(repository):
    write(repository, {f"jobs/{name}.yaml": FILES[f"jobs/{name}.yaml"] + "  tty: false\n" for name in ("bert", "gpt")})
    write(repository, {f"jobs/{n}.yaml": FILES[f"jobs/{n}.yaml"].replace("1.4.2", "1.4.3") for n in ("bert", "gpt")})
    found = lint(repository)

    assert places(found) == [("stale-rendered-tree", "jobgen.yaml")] * 2
    first = "`deploy/tree` has an old file `dev/ml-dev/pytorchjob-bert.yaml`: the sources render something else"
    rest = "and so it is with 1 other file in `deploy/tree/dev`; run `jobgen render -e dev -o deploy/tree`"
    assert found[0]["message"] == f"{first}, {rest}"
    render_tree(repository)
    assert places(lint(repository)) == []


def test_the_command_of_a_finding_repairs_the_tree(repository):
    forge(repository, BERT, edit_image(repository))
    (repository / GPT).unlink()
    render_tree(repository, "prod")

    assert places(lint(repository)) == []
    shutil.rmtree(repository / TREE)
    render_tree(repository)
    assert places(lint(repository)) == []


def test_an_interrupted_render_is_a_stale_tree(repository):
    """While files are replaced, the lock file lists old and new ones."""
    write(repository, {"jobs/late.yaml": JOB.replace("NAME", "late")})
    lock = json.loads((repository / LOCK).read_text("utf-8"))
    lock["files"]["ml-prod/pytorchjob-late.yaml"] = "0" * 64
    write(repository, {LOCK: json.dumps(lock), f"{TREE}/prod/.jobgen-stage/0": "kind: x"})

    assert {rule for rule, _ in places(lint(repository))} >= {"edited-rendered-file", "stale-rendered-tree"}
    render_tree(repository)
    assert places(lint(repository)) == []


def test_other_line_ends_are_named(repository):
    # The attributes in the tree keep its line ends, whatever the settings of a machine are.
    git(repository, "config", "core.autocrlf", "true")
    shutil.rmtree(repository / TREE)
    git(repository, "checkout", "--", TREE)
    assert places(lint(repository)) == []
    path = repository / BERT
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    [found] = lint(repository)
    assert found["message"].startswith("the file has other line ends than jobgen wrote")


def test_a_tree_that_git_ignores_is_a_warning(repository):
    home = repository / ".git/info/exclude"
    home.parent.mkdir(exist_ok=True)
    for path in (repository / ".gitignore", repository / "deploy/.gitignore", home):
        path.write_text("tree/\n")
        [found] = lint(repository)
        path.unlink()
        assert (found["rule"], found["severity"], found["file"]) == ("ignored-rendered-tree", "warning", "jobgen.yaml")
        assert "hides 6 files of `deploy/tree`" in found["message"]
        assert lint(repository) == []


def test_named_files_are_compared_with_what_they_render(repository):
    write(repository, {"jobs/bert.yaml": FILES["jobs/bert.yaml"].replace("1.4.2", "1.4.3")})
    stale = [("stale-rendered-tree", "jobgen.yaml")] * 2

    assert places(lint(repository, "jobs/bert.yaml")) == places(lint(repository, "jobs")) == stale
    assert places(lint(repository, "overlays/dev/overlay.yaml")) == places(lint(repository, "jobgen.yaml")) == stale
    assert places(lint(repository, f"{TREE}/dev")) == stale[:1]
    assert places(lint(repository, "jobs/gpt.yaml")) == []
    assert places(lint(repository, envs=("dev",))) == stale[:1]
    said = [lint_paths(repository, paths, (), format_="text").err for paths in ((), ("jobs/gpt.yaml",))]
    assert said[0].endswith("; deploy/tree/ compared with the sources\n")
    assert said[1].endswith("; deploy/tree/ compared with the sources for the named files only\n")


def test_without_a_declaration_nothing_changes(repository):
    """Only the folder `rendered` is compared, with its lock files."""
    write(repository, {"jobgen.yaml": ""})
    shutil.move(repository / TREE, repository / "rendered")
    shutil.rmtree(repository / "deploy")
    said = lint_paths(repository, (), (), format_="text")
    assert (said.code, "compared" in said.err) == (0, False)
    write(repository, {"jobs/bert.yaml": FILES["jobs/bert.yaml"].replace("1.4.2", "1.4.3")})
    assert places(lint(repository)) == []
    (repository / "rendered/prod/ml-prod/pytorchjob-gpt.yaml").unlink()

    assert [each["message"] for each in lint(repository)] == [
        "the file was deleted after jobgen wrote it; run `jobgen render -o rendered`"
    ]


@pytest.mark.parametrize("folder", ["/tmp/tree", "../tree", "jobs/tree", "overlays", ".git/tree", "a/../b", "."])
def test_a_declared_folder_is_one_of_the_repository(repository, folder):
    write(repository, {"jobgen.yaml": f"rendered: {folder}\n"})

    assert {each["rule"] for each in lint(repository)} & {"invalid-value", "invalid-format"}, lint(repository)
