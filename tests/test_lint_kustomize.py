"""A lint of kustomizations: what they build is judged, on the lines that somebody wrote."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from command import run_jobgen
from kustomize_samples import PLUGIN, install_stand_ins, read_calls

BIN = Path(sys.executable).parent
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:1.2.3
"""
BASE = {"base/kustomization.yaml": "resources:\n  - web.yaml\n", "base/web.yaml": DEPLOYMENT}
PROD = "resources:\n  - ../../base\nnamespace: prod\n"


def write_all(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def _link_programs() -> str:
    """A folder with the programs that a lint and the stand-ins use; the system may have a kubectl beside them."""
    folder = Path(tempfile.mkdtemp(prefix="jobgen-tests-"))
    for name in ("cat", "git", "sh"):
        (folder / name).symlink_to(shutil.which(name) or name)
    return str(folder)


PROGRAMS = _link_programs()


def run(folder: Path, *arguments: str, path: str = PROGRAMS) -> subprocess.CompletedProcess[str]:
    done = run_jobgen(folder, "lint", "--no-cache", *arguments, env={**os.environ, "PATH": path})
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def lint(folder: Path, *arguments: str, path: str = PROGRAMS) -> dict:
    done = run(folder, "--format", "json", *(arguments or (".",)), path=path)
    assert done.stdout, done.stderr
    report: dict = json.loads(done.stdout)
    return report


def found_in(report: dict) -> list[tuple[str, int, str]]:
    return [(each["file"], each["line"], each["rule"]) for each in report["findings"]]


needs_kubectl = pytest.mark.skipif(not (BIN / "kubectl").exists(), reason="kubectl is not installed beside Python")
needs_shell = pytest.mark.skipif(os.name == "nt", reason="the tool of this test is a shell script")
# What is added to a kustomization, so that jobgen or kubectl builds it.
BUILDERS = [pytest.param("", id="jobgen"), pytest.param(PLUGIN, id="kubectl", marks=needs_kubectl)]
WITH_KUBECTL = f"{BIN}:{PROGRAMS}"


def note_builds(more: str, *roots: str) -> list[tuple[str, int, str]]:
    """The notes about kustomizations that kubectl built."""
    return [(f"{root}/kustomization.yaml", 1, "tool-built-kustomization") for root in roots if more]


@pytest.mark.parametrize("more", BUILDERS)
def test_a_finding_is_on_the_line_of_the_patch(tmp_path: Path, more: str) -> None:
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: -1\n"
    prod = f"{PROD}patches:\n  - path: replicas.yaml\n{more}"
    write_all(tmp_path, BASE | {"overlays/prod/kustomization.yaml": prod, "overlays/prod/replicas.yaml": patch})
    report = lint(tmp_path, path=WITH_KUBECTL)

    notes = note_builds(more, "overlays/prod")
    assert found_in(report) == [*notes, ("overlays/prod/replicas.yaml", 5, "out-of-range")]
    assert report["findings"][-1]["object"]["namespace"] == "prod"
    assert report["summary"]["objects"] == 1


@pytest.mark.parametrize("more", BUILDERS)
def test_a_finding_is_on_the_line_of_the_transformer(tmp_path: Path, more: str) -> None:
    write_all(tmp_path, BASE | {"overlays/prod/kustomization.yaml": PROD.replace("prod\n", "Not_A_Name\n") + more})

    notes = note_builds(more, "overlays/prod")
    found = found_in(lint(tmp_path, path=WITH_KUBECTL))
    assert found == [*notes, ("overlays/prod/kustomization.yaml", 3, "invalid-name")]


@pytest.mark.parametrize("more", BUILDERS)
def test_a_fault_of_a_base_is_reported_once(tmp_path: Path, more: str) -> None:
    faulty = {"base/web.yaml": DEPLOYMENT.replace("spec:\n  selector", "spec:\n  replicas: -1\n  selector")}
    overlays = {f"overlays/{env}/kustomization.yaml": PROD.replace("prod", env) + more for env in ("dev", "prod")}
    write_all(tmp_path, BASE | faulty | overlays)
    report = lint(tmp_path, path=WITH_KUBECTL)

    notes = note_builds(more, "overlays/dev", "overlays/prod")
    assert found_in(report) == [("base/web.yaml", 6, "out-of-range"), *notes]
    assert report["findings"][0]["related"][-1]["message"] == "in the build of `overlays/dev`, `overlays/prod`"
    assert report["summary"]["objects"] == 2


@needs_shell
def test_the_report_says_what_another_program_built(tmp_path: Path) -> None:
    bin_ = install_stand_ins(tmp_path / "bin", "kubectl", built=DEPLOYMENT)
    folder = tmp_path / "repository"
    write_all(
        folder,
        BASE | {"overlays/prod/kustomization.yaml": PROD + PLUGIN, "a/kustomization.yaml": "resources: [../base]\n"},
    )
    done = run(folder, ".", path=f"{bin_}:{PROGRAMS}")

    assert read_calls(bin_) == [f"kubectl kustomize {folder / 'overlays/prod'}"]
    assert done.stdout.startswith(
        "overlays/prod/kustomization.yaml:1:1: info: `apiVersion: builtin` in `transformers` of `overlays/prod/"
        "kustomization.yaml` is a plugin, so kubectl built this kustomization [tool-built-kustomization]\n"
    )
    assert done.returncode == 0


@needs_shell
def test_what_another_program_built_is_built_again_if_the_program_changes(tmp_path: Path) -> None:
    bin_ = install_stand_ins(tmp_path / "bin", "kubectl", built=DEPLOYMENT)
    write_all(
        tmp_path / "repository", {"kustomization.yaml": f"resources: [web.yaml]\n{PLUGIN}", "web.yaml": DEPLOYMENT}
    )

    def lint_cached() -> list[tuple[str, int, str]]:
        env = {**os.environ, "PATH": f"{bin_}:{PROGRAMS}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return found_in(
            json.loads(run_jobgen(tmp_path / "repository", "lint", "--format", "json", ".", env=env).stdout)
        )

    note = ("kustomization.yaml", 1, "tool-built-kustomization")
    assert lint_cached() == lint_cached() == [note]
    assert len(read_calls(bin_)) == 1
    (bin_ / "built.yaml").write_text(DEPLOYMENT.replace("spec:\n", "spec:\n  replicas: -1\n", 1))
    os.utime(bin_ / "kubectl", (1, 1))
    assert lint_cached() == [note, ("web.yaml", 6, "out-of-range")]
    (bin_ / "kubectl").unlink()
    assert lint_cached() == [("kustomization.yaml", 1, "unbuilt-kustomization")]


def test_what_kustomize_completes_is_complete(tmp_path: Path) -> None:
    bare = DEPLOYMENT.replace("  selector: {matchLabels: {app: web}}\n", "").replace(":1.2.3", "")
    rest = "commonLabels: {app: web}\nimages:\n  - {name: registry.example.com/web, newTag: 1.2.3}\n"
    write_all(tmp_path, BASE | {"base/web.yaml": bare, "overlays/prod/kustomization.yaml": PROD + rest})

    assert found_in(lint(tmp_path)) == []


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["base/web.yaml"], []),
        (["overlays/prod/replicas.yaml"], ["overlays/prod/replicas.yaml"]),
        (["overlays/prod"], ["overlays/prod/replicas.yaml"]),
        (["base"], []),
    ],
)
def test_a_named_file_is_judged_in_the_builds_that_use_it(
    tmp_path: Path, arguments: list[str], found: list[str]
) -> None:
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: -1}\n"
    bare = {"base/web.yaml": DEPLOYMENT.replace("  selector: {matchLabels: {app: web}}\n", "")}
    prod = f"{PROD}commonLabels: {{app: web}}\npatches:\n  - path: replicas.yaml\n"
    write_all(tmp_path, BASE | bare | {"overlays/prod/kustomization.yaml": prod, "overlays/prod/replicas.yaml": patch})
    report = lint(tmp_path, *arguments)

    assert [file for file, *_ in found_in(report)] == found
    assert report["summary"]["objects"] == 1


@pytest.mark.parametrize("spelling", ["{}", "./{}", "{folder}/{}", "../repo/{}"])
def test_the_spelling_of_a_path_changes_nothing(tmp_path: Path, spelling: str) -> None:
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: -1}\n"
    prod = f"{PROD}patches:\n  - path: replicas.yaml\n"
    folder = tmp_path / "repo"
    write_all(folder, BASE | {"overlays/prod/kustomization.yaml": prod, "overlays/prod/replicas.yaml": patch})
    report = lint(folder, spelling.format("overlays/prod/replicas.yaml", folder=folder))

    assert found_in(report) == [("overlays/prod/replicas.yaml", 4, "out-of-range")]


def test_a_base_above_the_linted_folder_is_read_in_a_repository_only(tmp_path: Path) -> None:
    faulty = {"base/web.yaml": DEPLOYMENT.replace("spec:\n  selector", "spec:\n  replicas: -1\n  selector")}
    write_all(tmp_path, BASE | faulty | {"overlays/prod/kustomization.yaml": PROD})
    outside = lint(tmp_path / "overlays/prod", "--explain-files", ".")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    inside = lint(tmp_path / "overlays/prod")

    assert found_in(outside) == [("kustomization.yaml", 1, "unbuilt-kustomization")]
    assert found_in(inside) == [("../../base/web.yaml", 6, "out-of-range")]


def test_what_fails_the_build_is_an_error(tmp_path: Path) -> None:
    listed = "resources:\n  - web.yaml\n  - wbe2.yaml\npatches:\n  - patch.yaml\n"
    write_all(tmp_path, {"kustomization.yaml": listed, "web.yaml": DEPLOYMENT, "patch.yaml": "spec: {replicas: 2}\n"})
    report = lint(tmp_path)

    assert found_in(report) == [
        ("kustomization.yaml", 3, "kustomization-file-missing"),
        ("kustomization.yaml", 5, "invalid-kustomization"),
    ]
    assert report["summary"]["objects"] == 1


@pytest.mark.parametrize(
    "creator", [{".gitignore": "web2.yaml\n"}, {"build.sh": "helm template . > web2.yaml\n"}], ids=["ignored", "script"]
)
def test_a_file_that_something_creates_is_an_info(tmp_path: Path, creator: dict[str, str]) -> None:
    listed = {"kustomization.yaml": "resources:\n  - web.yaml\n  - web2.yaml\n", "web.yaml": DEPLOYMENT}
    write_all(tmp_path, listed | creator)
    [finding] = lint(tmp_path)["findings"]

    assert (finding["rule"], finding["severity"]) == ("kustomization-file-missing", "info")
    assert f"`{next(iter(creator))}`" in finding["message"]


def test_a_comment_suppresses_a_finding_of_a_build(tmp_path: Path) -> None:
    comment = "  replicas: -1 # jobgen: ignore[out-of-range] -- a test\n"
    faulty = {"base/web.yaml": DEPLOYMENT.replace("spec:\n  selector", f"spec:\n{comment}  selector")}
    write_all(tmp_path, BASE | faulty | {"overlays/prod/kustomization.yaml": PROD})
    report = lint(tmp_path)

    assert (found_in(report), report["summary"]["suppressed"]) == ([], 1)


def test_secrets_of_generators_are_not_printed(tmp_path: Path) -> None:
    listed = "secretGenerator:\n  - name: Bad_Name\n    envs: [secret.env]\n"
    write_all(tmp_path, {"kustomization.yaml": listed, "secret.env": "password=correct-horse-battery\n"})
    done = run(tmp_path, ".")

    assert "Bad_Name" in done.stdout
    assert "correct-horse" not in done.stdout + done.stderr


def test_inputs_of_plugins_are_no_objects(tmp_path: Path) -> None:
    generator = (
        "apiVersion: policy.open-cluster-management.io/v1\nkind: PolicyGenerator\nmetadata: {name: a}\n"
        "policies:\n  - name: a\n    manifests:\n      - path: input/part.yaml\n"
    )
    part = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    files = {"kustomization.yaml": "generators:\n  - gen.yaml\n", "gen.yaml": generator, "input/part.yaml": part}
    write_all(tmp_path, files | {"web/a.yaml": DEPLOYMENT})
    report = lint(tmp_path)

    assert [rule for _, _, rule in found_in(report)] == ["unbuilt-kustomization"]
    assert {each["file"]: each["takenFor"] for each in report["files"]}["input/part.yaml"] == "kustomize input"


def test_since_compares_builds_of_two_revisions(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    old = DEPLOYMENT.replace("spec:\n  selector", "spec:\n  replicas: -1\n  selector")
    write_all(tmp_path, BASE | {"base/web.yaml": old, "overlays/prod/kustomization.yaml": PROD})
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "a")
    same = lint(tmp_path, ".", "--since", "HEAD", path=f"{BIN}:{PROGRAMS}")
    write_all(tmp_path, {"overlays/prod/kustomization.yaml": f"{PROD}commonAnnotations: {{a b: c}}\n"})
    changed = lint(tmp_path, ".", "--since", "HEAD", path=f"{BIN}:{PROGRAMS}")

    assert found_in(same) == []
    assert [rule for _, _, rule in found_in(changed)] == ["invalid-annotation"]


SECRET = "correct-horse-battery"
ENV_SECRET = {
    "kustomization.yaml": (
        "resources: [web.yaml]\nsecretGenerator: [{name: s, envs: [e]}]\nreplacements:\n"
        "  - source: {kind: Secret, name: s, fieldPath: data.P}\n"
        "    targets: [{select: {kind: Deployment}, fieldPaths: [spec.strategy.type], options: {create: true}}]\n"
    ),
    "e": f"P={SECRET}\n",
    "web.yaml": DEPLOYMENT,
}
SECRETS = {
    "copied by a replacement": ENV_SECRET,
    "a line of a key": {"kustomization.yaml": "secretGenerator: [{name: s, envs: [e]}]\n", "e": f"P=a\n{SECRET}/x+\n"},
    "a literal without a key": {"kustomization.yaml": f"secretGenerator:\n  - name: s\n    literals: [{SECRET}]\n"},
    "in a patch": {
        "kustomization.yaml": (
            "resources: [s.yaml]\npatches:\n  - patch: |-\n      apiVersion: v1\n      kind: Secret\n"
            f"      metadata: {{name: s}}\n      stringData: [{SECRET}]\n"
        ),
        "s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
    },
}


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ("", ()),
        pytest.param(PLUGIN, (), marks=needs_kubectl),
        pytest.param("", ("--second-opinion",), marks=needs_kubectl),
    ],
    ids=["jobgen", "kubectl", "second opinion"],
)
@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_of_a_build_is_printed(tmp_path: Path, name: str, more: str, options: tuple[str, ...]) -> None:
    write_all(tmp_path, SECRETS[name] | {"kustomization.yaml": SECRETS[name]["kustomization.yaml"] + more})
    done = run(tmp_path, ".", *options, path=WITH_KUBECTL)
    encoded = base64.b64encode(SECRET.encode()).decode().rstrip("=")[:-1]

    assert done.returncode == 1
    assert SECRET not in done.stdout + done.stderr
    assert encoded not in done.stdout + done.stderr


HOSTILE = {
    "a pattern": "patches:\n  - {patch: '[]', target: {name: '(((.|){100}){100}){100}z'}}\n",
    "a selector": "patches:\n  - {patch: '[]', target: {labelSelector: '" + "!a," * 100_000 + "'}}\n",
    "a long name": f"configurations: [{'a' * 5000}.yaml]\n",
    "a deep path": "configurations: [deep.yaml]\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_kustomization_ends_in_a_finding(tmp_path: Path, name: str) -> None:
    deep = f"commonLabels: [{{path: {'a/' * 3000}a, create: true}}]\n"
    files = {"kustomization.yaml": f"resources: [web.yaml]\ncommonLabels: {{a: b}}\n{HOSTILE[name]}", "deep.yaml": deep}
    write_all(tmp_path, files | {"web.yaml": DEPLOYMENT.replace("name: web\nspec", f"name: {'a' * 63}\nspec")})

    assert found_in(lint(tmp_path))


def test_many_resources_are_built(tmp_path: Path) -> None:
    names = [f"c{number}.yaml" for number in range(500)]
    write_all(tmp_path, {"kustomization.yaml": "resources:\n" + "".join(f"  - {name}\n" for name in names)})
    write_all(tmp_path, {n: f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {n[:-5]}}}\n" for n in names})

    assert lint(tmp_path)["summary"]["objects"] == 500
