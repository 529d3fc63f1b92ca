"""`jobgen init` for a platform, a GitOps engine, and with the manifests that are there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from command import run_jobgen_text
from findings import without_infos
from gitrepository import Repository
from sampling import sample
from sharedfiles import shared_folder

from jobgen.cli.starter import CI, PLATFORMS, list_supported
from jobgen.rendering import config

ROOT = Path(__file__).parent.parent
KINDS = config.load_own(Path(__file__).parent / "nowhere").kinds
SUPPORTED = [(platform, name) for platform in PLATFORMS for name in list_supported(platform, KINDS)]
GITOPS = ["", "argocd", "flux"]


def jobgen(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_jobgen_text(cwd, *words)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def gitops_option(engine: str) -> list[str]:
    return ["--gitops", engine] if engine else []


@pytest.mark.parametrize(("platform", "framework"), sample([*SUPPORTED, ("kubeflow", "mxnet")], 8))
def test_every_combination_is_a_repository_without_findings(tmp_path: Path, platform: str, framework: str) -> None:
    """What lint and render read does not depend on the CI, so equal repositories are linted once.

    The framework of a platform is tried with all engines and CIs. The others are tried with Argo CD, which most rules
    about GitOps are for, and one CI.
    """
    seen: set[str] = set()
    is_default = framework == PLATFORMS[platform].framework
    for gitops in GITOPS if is_default else ["argocd"]:
        for ci, files in CI.items() if is_default else [*CI.items()][:1]:
            folder = tmp_path / f"{gitops or 'default'}-{ci}"
            words = ["--platform", platform, "--framework", framework, "--ci", ci, *gitops_option(gitops)]
            done = jobgen(tmp_path, "init", folder.name, *words)
            assert done.returncode == 0, done.stderr
            written = contents(folder)
            others = {file for name in CI for file in CI[name]} - {*files}
            assert (set(files) <= set(written), others & set(written)) == (True, set())
            key = json.dumps({path: str(text) for path, text in written.items() if path.startswith(("jobs", "over"))})
            if key not in seen:
                seen.add(key)
                check_repository(folder)
    assert len(seen) == (2 if is_default else 1)


def check_repository(folder: Path) -> None:
    rendered = jobgen(folder, "render", "-o", "rendered")
    linted = jobgen(folder, "lint", "--format", "json")

    assert linted.returncode == 0, linted.stdout
    assert without_infos(json.loads(linted.stdout)["findings"]) == []
    assert rendered.returncode == 0, rendered.stderr


@pytest.mark.parametrize("platform", PLATFORMS)
def test_platform_alone_works_and_declares_known_operators(tmp_path: Path, platform: str) -> None:
    assert jobgen(tmp_path, "init", "--platform", platform).returncode == 0
    base = (tmp_path / "overlays/base/overlay.yaml").read_text()
    known = json.loads((ROOT / "schemas/operators.json").read_text())

    assert f"    platform: {PLATFORMS[platform].name}\n" in base
    assert {name for name, _ in PLATFORMS[platform].operators} <= set(known)
    assert all(f"{name}: {version}" in base for name, version in PLATFORMS[platform].operators)
    check_repository(tmp_path)


def test_default_is_kubeflow(tmp_path: Path) -> None:
    jobgen(tmp_path, "init", "default")
    jobgen(tmp_path, "init", "named", "--platform", "kubeflow")

    assert contents(tmp_path / "default") == contents(tmp_path / "named")


def test_framework_that_a_platform_does_not_run_is_a_usage_error(tmp_path: Path) -> None:
    refused = jobgen(tmp_path, "init", "--platform", "trainer", "--framework", "paddle")

    assert (refused.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "`trainer` does not run `paddle`; it runs jax, mpi, pytorch, xgboost" in refused.stderr


@pytest.mark.parametrize("engine", ["argocd", "flux"])
def test_gitops_files_are_what_the_command_prints(tmp_path: Path, engine: str) -> None:
    """Also in a folder of a Git repository that does not exist yet, and without the password of its remote."""
    (tmp_path / "git").mkdir()
    repository = Repository(tmp_path / "git", tmp_path / "home")
    remote = "https://someone:password@git.example.org/ml.git"
    assert repository.run("git", "remote", "add", "origin", remote).returncode == 0
    done = jobgen(repository.folder, "init", "ml/jobs", "--gitops", engine)
    url = ["--repo", "https://git.example.org/ml.git"] if engine == "argocd" else []
    printed = jobgen(repository.folder / "ml/jobs", "gitops", engine, *url)
    written = (repository.folder / f"ml/jobs/gitops/{engine}.yaml").read_text()

    assert done.returncode == 0
    assert written == printed.stdout
    assert "ml/jobs/rendered" in written
    assert "password" not in written
    assert (
        "; next: `jobgen render -o rendered`, `jobgen lint`, add the hooks, `pre-commit install`; "
        f"then apply gitops/{engine}.yaml" in (done.stderr)
    )
    assert f"gitops: {engine}\n" in (repository.folder / "ml/jobs/overlays/base/overlay.yaml").read_text()


MANIFESTS = """\
# The model of the search team.
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml}
spec:
  runPolicy: {backoffLimit: 3, cleanPodPolicy: Running}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/bert:1.2.3 # pinned
              resources: {limits: {cpu: 4, memory: 8Gi}}
---
# Settings of all jobs.
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ml}
data: {level: info}
"""


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    (tmp_path / "manifests/deep").mkdir(parents=True)
    (tmp_path / "manifests/deep/jobs.yaml").write_text(MANIFESTS)
    return tmp_path / "manifests"


@pytest.mark.parametrize(("gitops", "ci"), list(zip(GITOPS, CI, strict=True)))
def test_manifests_are_imported_and_render_to_the_same(tmp_path: Path, manifests: Path, gitops: str, ci: str) -> None:
    before = contents(manifests)
    done = jobgen(tmp_path, "init", "new", "--from", "manifests", "--ci", ci, *gitops_option(gitops))
    files = contents(tmp_path / "new")

    assert done.returncode == 0, done.stderr
    assert "1 object imported, 1 of other kinds kept as manifests in jobs/\n" in done.stderr
    assert contents(manifests) == before
    check_repository(tmp_path / "new")
    compared = json.loads(jobgen(tmp_path, "diff", "--folders", "manifests", "new/rendered", "--format", "json").stdout)
    # The tree names the job of an object.
    assert {field["field"] for one in compared["objects"] for field in one["fields"]} <= {
        'metadata.annotations["jobgen.dev/job"]'
    }
    assert (compared["summary"]["added"], compared["summary"]["removed"]) == (0, 0)
    assert files["jobs/configmap-settings.yaml"].decode() == MANIFESTS.partition("---\n")[2]
    assert files["jobs/bert.yaml"].startswith(b"# The model of the search team.\n")
    assert b"# pinned" in files["jobs/bert.yaml"]
    # There is no policy to test.
    assert [path for path, text in files.items() if b"policy test" in text] == []


def test_what_is_not_imported_is_listed_with_its_reason(tmp_path: Path, manifests: Path) -> None:
    (tmp_path / "outside.yaml").write_text(MANIFESTS.replace("bert", "outside"))
    (manifests / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (manifests / "broken.yaml").write_text("a: [\n")
    (manifests / "kustomization.yaml").write_text("resources: [deep/jobs.yaml]\n")
    (manifests / "chart").mkdir()
    (manifests / "chart/kustomization.yaml").write_text("resources: [https://example.com/jobs.yaml]\n")
    (manifests / "notes.txt").write_text("text\n")
    (manifests / "empty.yaml").write_text("")
    (manifests / "comment.yaml").write_text("# later\n---\n")
    (manifests / "list.yaml").write_text("apiVersion: v1\nkind: List\nitems: []\n")
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")

    assert done.returncode == 1
    for line in (
        "manifests/broken.yaml:1:1: not imported: `a: [` has a `[` that is not closed; ",
        "manifests/chart/kustomization.yaml:1:1: not imported: the kustomization is not built: ",
        "manifests/link.yaml:1:1: not imported: a symbolic link that leads out",
        "manifests/notes.txt: not read: ",
        "manifests/empty.yaml:1:1: nothing to import: the file holds no object\n",
        "manifests/comment.yaml:1:1: nothing to import: the file holds no object\n",
        "manifests/list.yaml:1:1: nothing to import: the `List` has no items\n",
        "1 object imported, 1 of other kinds kept as manifests in jobs/, 3 not imported\n",
    ):
        assert line in done.stderr
    assert not (tmp_path / "new/jobs/outside.yaml").exists()
    check_repository(tmp_path / "new")


def test_manifests_of_several_platforms_get_an_environment_each(tmp_path: Path, manifests: Path) -> None:
    (manifests / "job.yaml").write_text(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: prepare, namespace: ml}\n"
        "spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: 'a.example.com/a:1',"
        " resources: {limits: {cpu: 1, memory: 1Gi}}}]}}}\n"
    )
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")

    assert done.returncode == 0, done.stderr
    assert "environments: [kubeflow, kubernetes]\n" in (tmp_path / "new/jobgen.yaml").read_text()
    check_repository(tmp_path / "new")


RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-small, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template: {spec: {replicatedJobs: [{name: node, template: {
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
    spec: {template: {spec: {containers: [{name: node, image: "a.example.com/a:1"}]}}}}}]}}
"""


def test_manifests_that_are_no_jobs_are_selected_beside_jobs(tmp_path: Path, manifests: Path) -> None:
    (manifests / "runtime.yaml").write_text(RUNTIME)
    (manifests / "deep/jobs.yaml").write_text(
        MANIFESTS.replace("kubeflow.org/v1\nkind: PyTorchJob", "batch/v1\nkind: Job").partition("spec:\n")[0]
        + "spec: {template: {spec: {restartPolicy: Never, containers: [{name: main,"
        " image: 'a.example.com/a:1', resources: {limits: {cpu: 1, memory: 1Gi}}}]}}}\n"
    )
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")
    linted = jobgen(tmp_path, "-C", "new", "lint")

    assert done.returncode == 0, done.stderr
    assert "`ClusterTrainingRuntime` is not a job; it is kept as a manifest, in jobs/" in done.stderr
    assert "job-without-environment" not in linted.stdout
    assert "kind: ClusterTrainingRuntime" in jobgen(tmp_path, "-C", "new", "render").stdout


EXPORTED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: exported # by hand
  namespace: ml
  uid: 8a7f
  resourceVersion: "12"
  creationTimestamp: "2026-01-01T00:00:00Z"
data:
  level:   info # spaces stay
"""


def test_fields_of_the_cluster_are_left_out_and_comments_stay(tmp_path: Path, manifests: Path) -> None:
    (manifests / "exported.yaml").write_text(EXPORTED)
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")
    kept = [line for line in EXPORTED.splitlines() if not line.startswith(("  uid", "  res", "  crea"))]

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new/jobs/configmap-exported.yaml").read_text().splitlines() == kept
    assert "left out: `metadata.creationTimestamp`, `metadata.resourceVersion`, `metadata.uid`\n" in done.stderr
    check_repository(tmp_path / "new")


LISTED = """\
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: first, namespace: ml}
    data: &shared {a: b}
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: second, namespace: ml, uid: 1b}
    data: *shared
"""


def test_items_of_a_list_become_files(tmp_path: Path, manifests: Path) -> None:
    (manifests / "list.yaml").write_text(LISTED)
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")

    assert done.returncode == 0, done.stderr
    for name in ("first", "second"):
        assert (tmp_path / f"new/jobs/configmap-{name}.yaml").read_text() == (
            f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: ml\ndata:\n  a: b\n"
        )
    check_repository(tmp_path / "new")


def test_names_of_objects_do_not_lead_out_of_the_repository(tmp_path: Path, manifests: Path) -> None:
    (manifests / "a.yaml").write_text("apiVersion: example.com/v1\nkind: ../../../Evil\nmetadata: {name: a}\n")
    (manifests / "b.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../../evil}\n")
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")

    assert done.returncode == 1
    assert "manifests/a.yaml:1:1: not imported: " in done.stderr
    assert "manifests/b.yaml:1:1: not imported: " in done.stderr
    assert "2 not imported\n" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"manifests", "new"}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--from", "nowhere"], 2, "there is no folder `nowhere`"),
        (["--from", "empty/a.yaml"], 2, "`empty/a.yaml` is a file; name its folder: `empty`\n"),
        (["--from", "manifests", "--platform", "ray"], 2, "`--from` takes frameworks and platforms from the manifests"),
        (["--from", "empty"], 3, "there is nothing to import in `empty`"),
    ],
)
def test_wrong_folders_are_refused(tmp_path: Path, manifests: Path, words: list[str], code: int, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/a.yaml").touch()
    done = jobgen(tmp_path, "init", "new", *words)

    assert (done.returncode, (tmp_path / "new").exists()) == (code, False)
    assert message in done.stderr


def test_imported_files_do_not_replace_others(tmp_path: Path, manifests: Path) -> None:
    (tmp_path / "new/jobs").mkdir(parents=True)
    (tmp_path / "new/jobs/bert.yaml").write_text("mine: true\n")
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")

    assert done.returncode == 1
    assert "new/jobs/bert.yaml: exists\n" in done.stderr
    assert contents(tmp_path / "new") == {"jobs/bert.yaml": b"mine: true\n"}


def test_second_run_completes_the_first(tmp_path: Path, manifests: Path) -> None:
    """A run that was killed leaves any part of its files, of which none may be in the way."""
    (manifests / "new.yaml").write_text(TRAINJOB)
    (manifests / "other.yaml").write_text(TRAINJOB.replace("bert", "gpt"))
    words = ("init", "new", "--from", "manifests", "--gitops", "argocd")
    first = jobgen(tmp_path, *words)
    files = contents(tmp_path / "new")

    assert (first.returncode, jobgen(tmp_path, *words).returncode) == (0, 0), first.stderr
    for lost in list(files)[::3]:
        (tmp_path / "new" / lost).unlink(missing_ok=True)
        done = jobgen(tmp_path, *words)
        assert done.returncode == 0, done.stderr
        assert contents(tmp_path / "new") == files


def test_command_for_a_kustomization_is_quoted(tmp_path: Path, manifests: Path) -> None:
    (manifests / "a b").mkdir()
    (manifests / "a b/kustomization.yaml").write_text("resources: [https://example.com/jobs.yaml]\n")
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")

    assert "run `kubectl kustomize 'manifests/a b' | jobgen import - -o jobs`\n" in done.stderr


TRAINJOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert, namespace: ml}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {image: "registry.example.com/bert:1.2.3", numNodes: 2, resourcesPerNode: {limits: {cpu: 4, memory: 8Gi}}}
"""


def rendered_kinds(folder: Path) -> list[str]:
    """Render a repository, and list environment and kind of each object."""
    assert jobgen(folder, "render", "-o", "rendered").returncode == 0
    found = (path.relative_to(folder / "rendered") for path in (folder / "rendered").rglob("*-*.yaml"))
    return sorted(f"{path.parts[0]}/{path.name}" for path in found)


def test_jobs_of_one_name_on_two_platforms_render_on_their_own(tmp_path: Path, manifests: Path) -> None:
    (manifests / "new.yaml").write_text(TRAINJOB)
    (manifests / "settings.yaml").write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: bert, namespace: ml}\nstringData: {a: b}\n"
    )
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")

    assert done.returncode == 0, done.stderr
    assert "2 objects imported, 2 of other kinds kept" in done.stderr
    check_repository(tmp_path / "new")
    assert rendered_kinds(tmp_path / "new") == [
        "kubeflow/configmap-settings.yaml",
        "kubeflow/pytorchjob-bert.yaml",
        "kubeflow/secret-bert.yaml",
        "trainer/trainjob-bert.yaml",
    ]


def test_overlays_that_import_writes_exclude_paths_of_its_folder(tmp_path: Path, manifests: Path) -> None:
    """Also if the name of the folder has characters that mean something in a pattern."""
    (manifests / "new.yaml").write_text(TRAINJOB)
    (tmp_path / "jobgen.yaml").write_text("")
    done = jobgen(tmp_path, "import", "manifests/deep/jobs.yaml", "manifests/new.yaml", "-o", "jobs/[nlp]*")

    assert "2 objects imported, 1 not\n" in done.stderr
    assert rendered_kinds(tmp_path) == ["kubeflow/pytorchjob-bert.yaml", "trainer/trainjob-bert.yaml"]


def test_jobs_of_one_name_on_two_platforms_need_new_overlays(tmp_path: Path, manifests: Path) -> None:
    (manifests / "new.yaml").write_text(TRAINJOB)
    for platform in ("kubeflow", "trainer"):
        (tmp_path / f"overlays/{platform}").mkdir(parents=True)
        (tmp_path / f"overlays/{platform}/overlay.yaml").write_text(
            f"apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {{name: {platform}}}\n"
            f"spec: {{cluster: {{platform: {platform}}}}}\n"
        )
    done = jobgen(tmp_path, "import", "manifests", "-o", "jobs")

    assert done.returncode == 1
    assert (
        "manifests/new.yaml:1:1: not imported: `bert` is also a job of platform `kubeflow`"
        " in manifests/deep/jobs.yaml:2, and the overlays of the repository would select both; rename one of them\n"
    ) in done.stderr


def test_second_object_of_a_name_is_left_out_unless_it_is_the_same(tmp_path: Path, manifests: Path) -> None:
    (manifests / "prod.yaml").write_text(MANIFESTS.replace("1.2.3", "1.2.4").replace("info", "debug"))
    (manifests / "same.yaml").write_text(MANIFESTS)
    (manifests / "link.yaml").symlink_to("prod.yaml")
    (manifests / "other-group.yaml").write_text(
        "apiVersion: example.com/v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: ml}\n"
    )
    (manifests / "broken.yaml").write_text("a: [\n")
    (manifests / "linked.yaml").symlink_to("broken.yaml")
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")
    advice = (
        "delete the one that is not used, import each folder as an environment with `--environment NAME=FOLDER`, or "
        "rename one of them"
    )

    assert done.returncode == 1
    for kind, line in (("PyTorchJob ml/bert", 2), ("ConfigMap ml/settings", 19)):
        where = f"manifests/deep/jobs.yaml:{line}"
        assert (
            f"manifests/prod.yaml:{line}:1: not imported: `{kind}` is also in {where}, with other content; {advice}\n"
        ) in done.stderr
    assert (
        "manifests/same.yaml:2:1: nothing to import: the same object is in manifests/deep/jobs.yaml:2\n" in done.stderr
    )
    assert "manifests/link.yaml: not read: a symbolic link to another of these files\n" in done.stderr
    assert "not imported: `ConfigMap ml/settings` would be rendered to the same file as `ConfigMap ml/" in done.stderr
    assert "1 object imported, 1 of other kinds kept as manifests in jobs/, 4 not imported\n" in done.stderr
    check_repository(tmp_path / "new")


def test_manifest_without_image_is_not_imported(tmp_path: Path, manifests: Path) -> None:
    (manifests / "other.yaml").write_text(
        MANIFESTS.partition("---\n")[0]
        .replace("bert", "gpt")
        .replace("- name: pytorch\n              image: registry.example.com/gpt:1.2.3 # pinned\n", "-\n")
    )
    done = jobgen(tmp_path, "init", "new", "--from", "manifests")

    assert done.returncode == 1
    assert (
        "manifests/other.yaml:15:15: not imported: `containers[0]` of role `Master` requires `image`; set it\n"
    ) in done.stderr
    check_repository(tmp_path / "new")


@pytest.mark.parametrize("folder", ["GenericJob", "MPIJob"])
def test_public_manifests_make_a_repository_that_renders(tmp_path: Path, folder: str) -> None:
    done = jobgen(tmp_path, "init", "new", "--from", str(shared_folder("corpus") / folder))
    rendered = jobgen(tmp_path / "new", "render", "-o", "rendered")

    assert done.returncode == 1
    assert rendered.returncode == 0, rendered.stderr


def test_render_names_a_container_without_name_and_image(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/gpt.yaml").write_text(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: gpt}\nspec:\n  pytorchReplicaSpecs:\n"
        "    Master:\n      template:\n        spec:\n          containers:\n            - command: [a]\n"
    )
    done = jobgen(tmp_path, "render")

    assert done.returncode == 1
    assert done.stderr.startswith(
        "jobs/gpt.yaml:10:15: error: `containers[0]` of role `Master` requires `image`; set it"
    )


def test_old_versions_are_listed_with_what_changes_them(tmp_path: Path, manifests: Path) -> None:
    job = MANIFESTS.partition("---\n")[0]
    (manifests / "old.yaml").write_text(job.replace("kubeflow.org/v1", "kubeflow.org/v1beta1").replace("bert", "old"))
    (manifests / "xgboost.yaml").write_text(
        job.replace("kubeflow.org/v1\nkind: PyTorchJob", "xgboostjob.kubeflow.org/v1\nkind: XGBoostJob")
    )
    listed = jobgen(tmp_path, "init", "first", "--from", "manifests").stderr
    jobgen(tmp_path, "lint", "manifests", "--fix-unsafe")
    done = jobgen(tmp_path, "init", "second", "--from", "manifests")
    advice = "known versions: `kubeflow.org/v1`; `jobgen lint --fix-unsafe` changes the version if the rest fits; "

    assert f"`kubeflow.org/v1beta1` `PyTorchJob` is not a kind that jobgen knows; {advice}" in listed
    assert "XGBoostJob" not in listed
    assert (tmp_path / "first/jobs/xgboostjob-bert.yaml").is_file()
    assert "2 objects imported, 2 of other kinds kept as manifests in jobs/\n" in done.stderr


def test_gitops_is_declared_only_if_it_is_chosen(tmp_path: Path, manifests: Path) -> None:
    without = jobgen(tmp_path, "init", "without", "--from", "manifests")
    chosen = jobgen(tmp_path, "init", "chosen", "--from", "manifests", "--gitops", "argocd")
    advice = "replace `https://git.example.com/jobs.git` in gitops/argocd.yaml before you apply it\n"

    assert "gitops" not in (tmp_path / "without/jobgen.yaml").read_text()
    assert "cluster: {gitops: argocd}\n" in (tmp_path / "chosen/jobgen.yaml").read_text()
    assert (advice in without.stderr, advice in chosen.stderr) == (False, True)


@pytest.mark.parametrize("name", ["bert-old", "bert.bak", "Copy of bert", "bert_backup"])
def test_an_old_copy_is_named_as_what_to_delete(tmp_path: Path, name: str) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/bert.yaml").write_text(MANIFESTS)
    (tmp_path / f"m/{name}.yaml").write_text(MANIFESTS.replace("1.2.3", "1.2.2"))
    done = jobgen(tmp_path, "init", "new", "--from", "m")

    assert done.returncode == 1
    assert f"with other content; delete `m/{name}.yaml` if it is an old copy, import each folder" in done.stderr
