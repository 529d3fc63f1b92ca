"""Findings in manifests are on their lines: `# expect: rule` marks them in the fixtures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from findings import without_infos
from growth import grows_with_the_square
from linting import lint_paths

from jobgen import cache
from jobgen.check.checker import Checker
from jobgen.cli.run_render import render
from jobgen.model.finding import Severity
from jobgen.rendering import config
from jobgen.repo.layout import own_layers
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
# Checks of the API server, and errors that prevent them; other rules have cases of their own.
SERVER = ("yaml", "schema", "pod", "meta", "gitops")
FIXTURES = sorted((ROOT / "tests/lint").glob("*.yaml"))


def found(folder: Path, *paths: str) -> list[dict]:
    return without_infos(json.loads(lint_paths(folder, paths, (), format_="json").out)["findings"])


def expected(text: str) -> list[tuple[int, str]]:
    return [
        (number, rule)
        for number, line in enumerate(text.splitlines(), start=1)
        for rule in re.findall(r"# expect: (\S+)", line)
    ]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_errors_are_found_on_their_lines_only(fixture):
    findings = [entry for entry in found(fixture.parent, fixture.name) if entry["category"] in SERVER]

    assert [(entry["line"], entry["rule"]) for entry in findings] == expected(fixture.read_text())


def test_misplaced_field_names_its_location():
    messages = {entry["line"]: entry["message"] for entry in found(ROOT / "tests/lint", "unknown-fields.yaml")}

    assert messages[5] == "`cleanPodPolicy` is not a field of `spec`; it belongs in `spec.runPolicy`"
    assert messages[8] == "`replicass` is not a field of `Worker`; did you mean `replicas`?"
    assert messages[13].endswith("it belongs in `spec.pytorchReplicaSpecs.Worker.template.spec.containers[]`")
    assert messages[17].endswith("did you mean `imagePullPolicy`?")


def test_finding_points_at_the_overlay_that_set_the_value(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "overlays/prod").mkdir(parents=True)
    (tmp_path / "jobs/a.yaml").write_text(
        "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a}\nspec: {framework: jax, image: a:1}\n"
    )
    (tmp_path / "overlays/prod/o.yaml").write_text(
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  patches:\n"
        "    - merge:\n        resources:\n          limits: {gpu: 2, memory: 1Gi}\n          requests: {gpu: 1}\n"
    )
    findings = found(tmp_path)

    assert found(tmp_path, "jobs/a.yaml") == findings
    assert [(entry["file"], entry["line"], entry["rule"]) for entry in findings] == [
        ("overlays/prod/o.yaml", 8, "gpu-request-limit-mismatch"),
    ]
    assert findings[0]["env"] == "prod"
    assert findings[0]["object"]["kind"] == "JAXJob"
    assert findings[0]["pointer"].startswith("/spec/jaxReplicaSpecs/Worker/template/spec/containers/0/resources")


@pytest.mark.parametrize(
    ("operator", "field", "accepted"),
    [
        ("2.0.0", "podSpecOverrides", True),
        ("2.0.0", "podTemplateOverrides", False),
        ("2.1.0", "podTemplateOverrides", True),
        ("2.1.0", "runtimePatches", False),
        ("2.2.0", "runtimePatches", True),
        ("2.3.0", "podTemplateOverrides", False),
        ("", "runtimePatches", True),
        ("", "podSpecOverrides", False),
    ],
)
def test_declared_operator_selects_the_trainjob_schema(operator, field, accepted):
    project = config.load_own(ROOT)
    checker = Checker(own_layers(ROOT), project.kinds, Cluster(operators={"trainer": operator} if operator else {}))
    text = f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: a}}
spec:
  runtimeRef: {{name: torch-distributed}}
  {field}: []
"""
    rules = [problem.rule for problem in checker(read(text.encode(), "").documents[0].data)]

    assert rules == ([] if accepted else ["unknown-field"])


def test_findings_of_the_tutorial_manifests():
    assert sorted({(entry["file"].rpartition("/")[2], entry["severity"], entry["rule"]) for entry in found(ROOT)}) == [
        ("mnist.yaml", "warning", "misspelled-kind"),
        ("mxnet-job.yaml", "warning", "idle-gpus"),
        ("mxnet-job.yaml", "warning", "mutable-image-tag"),
        ("mxnet-job.yaml", "warning", "mxjob-deprecated"),
        ("mxnet-single-job.yaml", "warning", "mutable-image-tag"),
        ("mxnet-single-job.yaml", "warning", "mxjob-deprecated"),
        ("overlay.yaml", "warning", "lost-logs"),
        ("tensorflow-benchmarks.yaml", "warning", "mutable-image-tag"),
    ]


def test_lint_of_standard_input():
    manifest = b"apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: A}\n"
    done = subprocess.run(
        [sys.executable, "-m", "jobgen", "lint", "-"], input=manifest, capture_output=True, check=False
    )

    assert done.returncode == 1
    assert "<stdin>:3:18: error: `A` is not a valid object name;" in done.stdout.decode()


def test_severities_are_error_warning_or_info():
    report = json.loads(lint_paths(ROOT / "tests/lint", ["."], (), format_="json").out)

    assert {entry["severity"] for entry in report["findings"]} <= {severity.value for severity in Severity}


def test_findings_that_differ_only_in_their_object_have_the_order_of_the_files(tmp_path):
    (tmp_path / "overlays/prod").mkdir(parents=True)
    (tmp_path / "overlays/prod/o.yaml").write_text(
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  cluster: {platform: kubeflow}\n"
        "  patches: [{merge: {restartPolicy: Never, runPolicy: {backoffLimit: 3}}}]\n"
    )
    (tmp_path / "jobs").mkdir()
    names = [f"job{number}" for number in range(8)]
    for name in names:
        (tmp_path / f"jobs/{name}.yaml").write_text(
            f"apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {{name: {name}}}\n"
            "spec: {framework: pytorch, image: 'registry.example.com/a:1'}\n"
        )

    listed = json.loads(lint_paths(tmp_path, (), (), format_="json").out)["findings"]
    in_overlay = [entry["object"]["name"] for entry in listed if entry["rule"] == "backoff-without-restarts"]

    assert in_overlay == names


def test_lint_of_a_path_leaves_out_findings_of_other_jobs(tmp_path):
    (tmp_path / "jobs").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"jobs/{name}.yaml").write_text(
            f"apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {{name: {name.upper()}}}\n"
        )
    told = json.loads(lint_paths(tmp_path, ("jobs/a.yaml",), (), format_="json").out)

    assert {entry["file"] for entry in told["findings"]} == {"jobs/a.yaml"}
    assert (told["summary"]["files"], told["summary"]["objects"]) == (2, 2)


def test_error_in_one_overlay_keeps_other_environments(tmp_path):
    job = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a}\n"
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: ml%s}\n"
    for path, text in {
        "jobs/a.yaml": job + "spec: {framework: pytorch, image: 'registry.example.com/a:latest'}\n",
        "overlays/dev/o.yaml": overlay % ", namespce: x",
        "overlays/prod/o.yaml": overlay % "",
        "overlays/canary/o.yaml": overlay % ", extends: [dev]",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    told = {(finding["rule"], finding["env"]) for finding in found(tmp_path)}
    assert told == {("unknown-field", ""), ("mutable-image-tag", "prod")}
    rendered = [render(tmp_path, (), [env], None, format_="yaml") for env in ("prod", "dev", "canary")]
    assert [bool(done.out) for done in rendered] == [True, False, False]


def test_nested_repository_is_linted_whole_or_not_at_all(tmp_path):
    (tmp_path / "ml/jobs").mkdir(parents=True)
    (tmp_path / "ml/jobgen.yaml").write_text("")

    done = lint_paths(tmp_path, ["ml"], (), format_="text")

    assert (done.code, done.err) == (
        2,
        "jobgen: `ml` is another jobs repository; lint it with `jobgen -C ml lint`\n",
    )


OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: ml}\n"
JOB = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a}\nspec: {framework: pytorch, image: a:1}\n"


def write_repository(folder):
    for path, text in {"jobgen.yaml": "", "jobs/a.yaml": JOB, "overlays/prod/overlay.yaml": OVERLAY}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "`ml` is another jobs repository; lint it with `jobgen -C ml lint`"),
        (["."], "`ml` is another jobs repository; lint it with `jobgen -C ml lint`"),
        (["ml/jobs"], "`ml/jobs` is in another jobs repository, `ml`; lint it with `jobgen -C ml lint jobs`"),
        (
            ["ml/overlays/prod"],
            "`ml/overlays/prod` is in another jobs repository, `ml`; lint it with `jobgen -C ml lint overlays/prod`",
        ),
        (["ml/jobgen.yaml"], "`ml/jobgen.yaml` is in another jobs repository, `ml`; lint it with `jobgen -C ml lint`"),
    ],
)
@pytest.mark.parametrize("cached", [True, False])
def test_folder_above_a_repository_says_where_to_lint(tmp_path, paths, message, cached):
    write_repository(tmp_path / "ml")
    if cached:
        cache.enable(tmp_path.with_name("cache"), "")
    try:
        done = lint_paths(tmp_path, paths, (), format_="text")
    finally:
        cache.disable()

    assert (done.code, done.err) == (2, f"jobgen: {message}\n")
    assert lint_paths(tmp_path / "ml", (), (), format_="text").code == 0


def test_folder_above_several_repositories_names_them(tmp_path):
    for name in ("a b", "c/d", "e", "f", "g"):
        write_repository(tmp_path / name)
    (tmp_path / "services").mkdir()
    (tmp_path / "services/manifest.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")

    done = lint_paths(tmp_path, (), (), format_="text")
    assert done.code == 2
    assert done.err == (
        "jobgen: `a b`, `c/d`, `e` and 2 more are other jobs repositories; lint each of them, the first with "
        "`jobgen -C 'a b' lint`; to lint other manifests, name their folders\n"
    )
    assert lint_paths(tmp_path, ["services"], (), format_="text").code == 0


def test_files_of_other_repositories_that_are_rendered_or_objects_are_linted(tmp_path):
    write_repository(tmp_path / "ml")
    for path in ("ml/rendered/prod/a.yaml", "k8s/tools/jobgen.yaml"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")

    done = lint_paths(tmp_path, ["ml/rendered"], (), format_="text")
    assert (done.code, done.err[:27]) == (0, "nothing found in 1 file; 1 "), done
    assert lint_paths(tmp_path, ["k8s"], (), format_="text").code == 0


def test_commands_above_a_repository_name_it(tmp_path):
    write_repository(tmp_path / "team/a b")

    done = render(tmp_path, (), (), None, format_="yaml")
    assert done.code == 2
    assert done.err.endswith(", and no jobs/ here; `team/a b` is one: use `jobgen -C 'team/a b'`\n")


def test_lint_of_many_paths_with_many_findings_takes_linear_time(tmp_path):
    """Each path is looked up once, not once for each finding."""

    def prepare(count):
        root = tmp_path / str(count)
        paths = write_wrong_jobs(root, count)[1:]
        assert {finding["file"] for finding in found(root, *paths)} == set(paths)
        return lambda: found(root, *paths)

    assert not grows_with_the_square(prepare, 12)


def write_wrong_jobs(root, count):
    job = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a%d}\nspec: {framework: pytorch, imag: x}\n"
    (root / "jobs").mkdir(parents=True)
    (root / "jobgen.yaml").write_text("")
    paths = [f"jobs/{number}.yaml" for number in range(count)]
    for number, path in enumerate(paths):
        (root / path).write_text(job % number)
    return paths
