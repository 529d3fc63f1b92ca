"""The KRM function follows the functions specification; and runs in kustomize, where that is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import run_jobgen
from findings import without_infos

from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_json, to_yaml

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  framework: pytorch
  image: registry.example.com/train:1.0.0
  resources: {{cpu: 1, memory: 1Gi}}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml-{env}
  defaults: {{env: {{STAGE: {env}}}}}
  patches:
    - match: {{kinds: [PyTorchJob]}}
      manifest: {{spec: {{runPolicy: {{backoffLimit: 5}}}}}}
"""
RAW = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {
        "name": "raw",
        "namespace": "ml",
        "annotations": {
            "internal.config.kubernetes.io/path": "manifests/raw.yaml",
            "internal.config.kubernetes.io/index": "1",
            "config.k8s.io/id": "3",
        },
    },
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "pytorch", "image": "registry.example.com/a:1.0.0"}]}},
            }
        }
    },
}
SECRETS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"a": "1e3", "b": "no"}}
KINDS = {"generate": "JobGenerator", "transform": "JobTransformer", "validate": "JobValidator"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in ("bert", "gpt"):
        (tmp_path / "jobs").mkdir(exist_ok=True)
        (tmp_path / f"jobs/{name}.yaml").write_text(JOB.format(name=name))
    for env in ("dev", "prod"):
        (tmp_path / f"overlays/{env}").mkdir(parents=True)
        (tmp_path / f"overlays/{env}/overlay.yaml").write_text(OVERLAY.format(env=env))
    (tmp_path / "jobgen.yaml").touch()
    return tmp_path


def config(mode: str, **spec: object) -> dict[str, object]:
    return {"apiVersion": "jobgen.dev/v1", "kind": KINDS[mode], "metadata": {"name": "jobs"}, "spec": spec}


def resources(items: list[object], function_config: object = None, version: str = "v1") -> dict[str, object]:
    wrapped = {"apiVersion": f"config.kubernetes.io/{version}", "kind": "ResourceList", "items": items}
    return wrapped if function_config is None else {**wrapped, "functionConfig": function_config}


def fn(cwd: Path, given: object, *words: str) -> tuple[int, dict[str, object], str]:
    """The function's exit code, its ResourceList, and its error output."""
    text = given if isinstance(given, str) else to_yaml(given)
    done = run_jobgen(cwd, "fn", *words, given=text.encode())
    documents = read(done.stdout, "stdout").documents
    assert len(documents) == (1 if done.stdout else 0)
    return done.returncode, documents[0].data if documents else {}, done.stderr.decode()


def rendered(cwd: Path, env: str) -> list[object]:
    done = run_jobgen(cwd, "render", "-e", env)
    done.check_returncode()
    return [document.data for document in read(done.stdout, "").documents]


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_generator_adds_the_rendered_jobs(repository: Path, version: str) -> None:
    asked = config("generate", env="prod")
    code, out, err = fn(repository, resources([SECRETS], asked, version))

    assert (code, err) == (0, "")
    assert out == {**resources([SECRETS, *rendered(repository, "prod")], asked, version)}


def test_json_input_is_accepted(repository: Path) -> None:
    given = resources([SECRETS], config("generate", env="prod"))

    assert fn(repository, to_json(given)) == fn(repository, given)


def test_generator_selects_jobs_by_pattern(repository: Path) -> None:
    _, out, _ = fn(repository, resources([], config("generate", env="prod", jobs=["b*"])))

    assert [item["metadata"]["name"] for item in out["items"]] == ["bert"]


def test_generator_updates_items_in_place_and_keeps_annotations(repository: Path) -> None:
    asked = config("generate", env="prod")
    _, first, _ = fn(repository, resources([], asked))
    noted = [
        {**item, "metadata": {**item["metadata"], "annotations": {"internal.config.kubernetes.io/path": f"{n}.yaml"}}}
        for n, item in enumerate(first["items"])
    ]
    old = [{**item, "spec": {}} for item in noted]
    code, second, _ = fn(repository, resources([*old, SECRETS], asked))

    assert code == 0
    assert second["items"] == [*noted, SECRETS]


def test_function_config_item_is_returned(repository: Path) -> None:
    asked = config("generate", env="prod")
    local = {**asked, "metadata": {"name": "jobs", "annotations": {"config.kubernetes.io/local-config": "true"}}}
    code, out, _ = fn(repository, resources([local], local))

    assert code == 0
    assert out["items"] == [local, *rendered(repository, "prod")]


def test_transformer_applies_overlays_without_renaming(repository: Path) -> None:
    homeless = {**RAW, "metadata": {"name": "homeless"}}
    spec = read(JOB.format(name="new").encode(), "").documents[0].data
    code, out, err = fn(repository, resources([RAW, SECRETS, homeless, spec], config("transform", env="prod")))
    raw, other, still_homeless, made = out["items"]

    assert (code, err) == (0, "")
    assert raw["metadata"] == RAW["metadata"]
    assert raw["spec"] == {**RAW["spec"], "runPolicy": {"backoffLimit": 5}}
    assert other == SECRETS
    assert still_homeless["metadata"] == homeless["metadata"]
    assert (made["kind"], made["metadata"]) == ("PyTorchJob", {"name": "new", "namespace": "ml-prod"})
    assert made["spec"]["runPolicy"] == {"backoffLimit": 5}


def test_transformer_refuses_an_overlay_that_renames(repository: Path) -> None:
    overlay = repository / "overlays/prod/overlay.yaml"
    overlay.write_text(overlay.read_text() + "    - match: {names: [raw]}\n      manifest: {metadata: {name: b}}\n")
    code, out, err = fn(repository, resources([RAW], config("transform", env="prod")))

    assert (code, out) == (2, {})
    assert (
        err
        == "jobgen: an overlay renames `PyTorchJob ml/raw` to `PyTorchJob ml/b`; a function must not rename objects\n"
    )


def bad_item() -> dict[str, object]:
    item = json.loads(json.dumps(RAW))
    item["spec"]["cleanPodPolicy"] = "Running"
    return item


def test_validator_returns_its_items_with_results(repository: Path) -> None:
    given = resources([bad_item(), SECRETS], config("validate", env="prod"))
    code, out, err = fn(repository, given)
    results = without_infos(out.pop("results"))

    assert code == 1
    assert out == given
    assert results[0] == {
        "message": "`cleanPodPolicy` is not a field of `spec`; it belongs in `spec.runPolicy`",
        "severity": "error",
        "resourceRef": {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "raw", "namespace": "ml"},
        "field": {"path": "spec.cleanPodPolicy"},
        "tags": {"rule": "unknown-field", "category": "schema", "line": "11", "column": "3"},
    }
    assert "PyTorchJob ml/raw:11:3: error: `cleanPodPolicy` is not a field" in err


def test_result_lines_refer_to_the_file_of_the_item(repository: Path) -> None:
    item = bad_item()
    plain = {**item, "metadata": {"name": "raw", "namespace": "ml"}}
    text = f"# two objects\n{to_yaml(SECRETS)}---\n# the second\n{to_yaml(plain)}"
    (repository / "manifests").mkdir()
    (repository / "manifests/raw.yaml").write_text(text)
    code, out, err = fn(repository, resources([item], config("validate", env="prod")))
    line = next(number for number, row in enumerate(text.splitlines(), 1) if "cleanPodPolicy" in row)

    assert code == 1
    assert without_infos(out["results"])[0]["file"] == {"path": "manifests/raw.yaml", "index": 1}
    assert without_infos(out["results"])[0]["tags"]["line"] == str(line)
    assert f"manifests/raw.yaml:{line}:3: error" in err


@pytest.mark.parametrize("path", ["../outside.yaml", "/etc/passwd", "missing.yaml"])
def test_item_path_outside_is_not_read(repository: Path, path: str) -> None:
    item = bad_item()
    item["metadata"]["annotations"]["internal.config.kubernetes.io/path"] = path
    code, out, _ = fn(repository, resources([item], config("validate", env="prod")))

    assert code == 1
    assert all("file" not in result for result in out["results"])


def test_valid_items_have_no_results(repository: Path) -> None:
    given = resources(rendered(repository, "prod"), config("validate", env="prod"))
    code, out, _ = fn(repository, given)

    assert without_infos(out.pop("results", [])) == []
    assert (code, out) == (0, given)


def test_validator_needs_no_repository(tmp_path: Path) -> None:
    code, out, _ = fn(tmp_path, resources([bad_item()]), "validate")

    assert (code, without_infos(out["results"])[0]["tags"]["rule"]) == (1, "unknown-field")


def test_function_config_may_be_a_config_map(repository: Path) -> None:
    mapped = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x"},
        "data": {"env": "prod", "jobs": "bert"},
    }
    worded = {**mapped, "data": {**mapped["data"], "mode": "generate"}}
    _, by_word, _ = fn(repository, resources([], mapped), "generate")
    _, by_mode, _ = fn(repository, resources([], worded))

    assert [item["metadata"]["name"] for item in by_word["items"]] == ["bert"]
    assert by_mode["items"] == by_word["items"]


def test_generator_fails_with_results_for_invalid_jobs(repository: Path) -> None:
    (repository / "jobs/bad.yaml").write_text(JOB.format(name="bad") + "  imagee: x\n")
    code, out, err = fn(repository, resources([SECRETS], config("generate", env="prod")))

    assert code == 1
    assert out["items"] == [SECRETS]
    assert [result["tags"]["line"] for result in out["results"]] == ["8"]
    assert "jobs/bad.yaml:8:3: error" in err


@pytest.mark.parametrize(
    ("given", "words", "message"),
    [
        ("", (), "standard input is not a ResourceList; run the function with kustomize or kpt"),
        ("a: [\n", (), "<stdin>:1:1: "),
        ("kind: ResourceList\napiVersion: v9\nitems: []\n", (), "`v9` is not a known apiVersion of ResourceList"),
        (resources([1]), (), "`items` of the ResourceList must be a list of objects"),
        (resources([], "x"), (), "`functionConfig` of the ResourceList must be an object"),
        (resources([]), (), "the mode is missing"),
        (resources([], {"kind": "Deployment"}), (), "`Deployment` is not a functionConfig that jobgen knows"),
        (resources([], {"kind": ["x"]}), (), "`['x']` is not a functionConfig that jobgen knows"),
        (resources([], config("generate", env="prod")), ("validate",), "`JobGenerator` cannot be used with"),
        (
            resources([], config("generate", evn="prod")),
            (),
            "`evn` is not a field of a JobGenerator; did you mean `env`?",
        ),
        (resources([], config("generate", env="qa")), (), "there is no environment `qa` (known: dev, prod)"),
        (resources([], config("generate")), (), "set `env` to one environment (known: dev, prod)"),
        (resources([], config("generate", env=1)), (), "`env` must be the name of an environment"),
        (resources([], config("generate", env="prod", jobs=1)), (), "`jobs` must be a list of names or patterns"),
    ],
)
def test_invalid_input_is_reported_in_one_line(
    repository: Path, given: object, words: tuple[str, ...], message: str
) -> None:
    code, out, err = fn(repository, given, *words)

    assert (code, out) == (2, {})
    assert err.startswith(f"jobgen: {message}")
    assert err.count("\n") == 1


def test_generator_without_jobs_fails(repository: Path) -> None:
    code, out, err = fn(repository, resources([SECRETS], config("generate", env="prod", jobs=["nobody"])))

    assert (code, out, err) == (3, {}, "jobgen: there is no job to generate\n")


in_kustomize = pytest.mark.skipif(
    not shutil.which("kustomize"), reason="the standalone kustomize is not on PATH; that of kubectl runs no functions"
)


def build(repository: Path, **lists: str) -> subprocess.CompletedProcess[bytes]:
    """`kustomize build` of a kustomization with these lists, next to a file for each function."""
    function = "config.kubernetes.io/function: |\n      exec: {path: jobgen, args: [fn]}\n"
    for mode, kind in KINDS.items():
        (repository / f"{mode}.yaml").write_text(
            f"apiVersion: jobgen.dev/v1\nkind: {kind}\nmetadata:\n  name: {mode}\n  annotations:\n    {function}"
            "spec: {env: prod}\n"
        )
    text = "".join(f"{name}: [{file}]\n" for name, file in lists.items())
    (repository / "kustomization.yaml").write_text(text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["kustomize", "build", "--enable-alpha-plugins", "--enable-exec", "."],
        cwd=repository,
        env={**os.environ, "PATH": path},
        capture_output=True,
        check=False,
    )


def objects(stream: bytes) -> list[object]:
    return [document.data for document in read(stream, "").documents]


@in_kustomize
def test_kustomize_runs_generator_transformer_and_validator(repository: Path) -> None:
    built = build(repository, generators="generate.yaml", transformers="transform.yaml", validators="validate.yaml")

    assert built.returncode == 0, built.stderr.decode()
    assert objects(built.stdout) == rendered(repository, "prod")


@in_kustomize
def test_kustomize_transforms_specs_and_manifests(repository: Path) -> None:
    plain = {**RAW, "metadata": {"name": "raw", "namespace": "ml"}}
    (repository / "raw.yaml").write_text(to_yaml(plain))
    built = build(repository, resources="jobs/bert.yaml, raw.yaml", transformers="transform.yaml")
    bert = next(item for item in rendered(repository, "prod") if item["metadata"]["name"] == "bert")
    made = {item["metadata"]["name"]: item for item in objects(built.stdout)}

    assert built.returncode == 0, built.stderr.decode()
    assert made == {"bert": bert, "raw": {**plain, "spec": {**plain["spec"], "runPolicy": {"backoffLimit": 5}}}}


@in_kustomize
def test_kustomize_stops_at_validator_results(repository: Path) -> None:
    (repository / "raw.yaml").write_text(to_yaml({**bad_item(), "metadata": {"name": "raw", "namespace": "ml"}}))
    built = build(repository, resources="raw.yaml", validators="validate.yaml")

    assert built.returncode == 1
    assert b"`cleanPodPolicy` is not a field of `spec`" in built.stderr
