"""The law of `jobgen import` and `jobgen init --from`: a render of what was written equals the input, everywhere.

Manifests of every shipped kind and framework are imported into repositories with one to three environments, whose
overlays list platforms in any order and set defaults. The real `jobgen render` then prints the same objects in every
environment, and the files that were named are all that changed. If equality cannot be reached, nothing is written.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command import run_jobgen_text
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import laws
from sharedfiles import shared_folder
from test_import import meaning

from jobgen.features.convert.importing.pod_fields import remove_server_fields
from jobgen.features.convert.importing.verify import render_spec, renderer_for
from jobgen.rendering import config
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
KINDS = [kind for kind in config.load_own(ROOT / "tests").kinds if kind.frameworks]
CASES = [(kind, str(framework)) for kind in KINDS for framework in kind.frameworks]
PLATFORMS = sorted({kind.platform for kind in KINDS})


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put(folder: Path, files: dict[str, Any]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content if isinstance(content, str) else json.dumps(content))


def render(repository: Path, env: str) -> list[Any]:
    done = run_jobgen_text(repository, "render", *(["-e", env] if env else []))
    assert done.returncode == 0, done.stderr
    return [remove_server_fields(each.data)[0] for each in read(done.stdout.encode(), "").documents]


def identity(manifest: Any) -> str:
    return f"{manifest['apiVersion']} {manifest['kind']} {manifest['metadata'].get('name')}"


def assert_same(found: list[Any], wanted: list[Any]) -> None:
    by_identity = {identity(each): each for each in found}
    for manifest in wanted:
        clean = remove_server_fields(manifest)[0]
        assert identity(clean) in by_identity
        assert meaning(by_identity[identity(clean)]) == meaning(clean)
    assert len(found) == len(wanted)


def list_written(told: str) -> set[str]:
    return {line.removesuffix(" written") for line in told.splitlines() if line.endswith(" written")}


def make_manifest(number: int, fields: dict[str, Any]) -> dict[str, Any]:
    """A manifest of a kind and a framework, with some fields of a job."""
    kind, framework = CASES[number]
    renderer = renderer_for(kind.platform, [each for each in KINDS if each is kind])
    spec = {"framework": framework, "image": "registry.example.com/a:1.0.0", "command": ["python", "train.py"]}
    if (kind.name, framework) == ("TrainJob", "mpi"):
        spec["mpi"] = {"runtime": "deepspeed-distributed"}
    document = {
        "apiVersion": "jobgen.dev/v1",
        "kind": "TrainingJob",
        "metadata": {"name": f"job-{number}", "namespace": "ml"},
        "spec": {**spec, **fields},
    }
    made, problems = render_spec(document, renderer)
    if problems:  # not every platform has every field
        document["spec"] = spec
        made, problems = render_spec(document, renderer)
    assert not problems
    return json.loads(json.dumps(made))


def optional(**fields):
    return st.fixed_dictionaries({}, optional=fields)


AMOUNTS = {"cpu": 4, "memory": "8Gi"}
job_fields = optional(
    resources=st.sampled_from([AMOUNTS, {**AMOUNTS, "gpu": 2}, {"limits": {"nvidia.com/gpu": 1}}]),
    env=st.dictionaries(st.sampled_from(["MODE", "SEED", "LEVEL"]), st.sampled_from(["a", "7", ""]), min_size=1),
    labels=st.just({"team": "nlp", "own": "x"}),
    queue=st.sampled_from(["q", "other"]),
    nodeSelector=st.just({"pool": "gpu"}),
    restartPolicy=st.sampled_from(["Never", "OnFailure"]),
    serviceAccount=st.just("train"),
    shm=st.just("4Gi"),
    volumes=st.just({"data": {"pvc": "data", "mountPath": "/data"}}),
)
defaults = optional(
    queue=st.just("q"),
    restartPolicy=st.sampled_from(["Never", "OnFailure"]),
    labels=st.dictionaries(st.sampled_from(["team", "cost"]), st.sampled_from(["a", "b"]), min_size=1),
    annotations=st.just({"a.example.com/b": "c"}),
    nodeSelector=st.sampled_from([{"pool": "gpu"}, {"zone": "a", "pool": "cpu"}]),
    tolerations=st.just([{"key": "gpu", "operator": "Exists"}]),
    env=st.sampled_from([{"MODE": "b"}, {"HTTP_PROXY": "http://proxy", "SEED": "1"}]),
    resources=st.sampled_from([{"cpu": 2}, {"gpu": 1}, {"limits": {"memory": "4Gi"}}]),
    runPolicy=st.sampled_from([{"backoffLimit": 2}, {"ttlSecondsAfterFinished": 60, "cleanPodPolicy": "None"}]),
    priority=st.just("high"),
    serviceAccount=st.just("default"),
    imagePullSecrets=st.just(["registry"]),
    shm=st.just("1Gi"),
    volumes=st.just({"data": {"pvc": "shared", "mountPath": "/data"}}),
    securityContext=st.just({"runAsUser": 1000}),
)


@st.composite
def repositories(draw) -> dict[str, Any]:
    """The files of a repository with one to three environments."""
    envs = draw(st.lists(st.sampled_from(["dev", "prod", "stage"]), min_size=1, max_size=3, unique=True))
    cluster = {"platforms": draw(st.permutations(PLATFORMS)), "operators": {"training-operator": "1.8.1"}}
    cluster |= draw(optional(gitops=st.sampled_from(["argocd", "flux"])))

    def overlay(name: str, spec: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "metadata": {"name": name}, "spec": spec}

    files: dict[str, Any] = {
        "jobgen.yaml": f"environments: {json.dumps(envs)}\n",
        "jobs/.keep": "",
        "overlays/base/overlay.yaml": overlay("base", {"cluster": cluster, "defaults": draw(defaults)}),
    }
    for env in envs:
        own = draw(optional(namespace=st.sampled_from(["ml", "other"]), defaults=defaults))
        gpu = draw(optional(gpuResource=st.sampled_from(["nvidia.com/gpu", "amd.com/gpu"])))
        spec = {"extends": ["base"], **own, **({"cluster": gpu} if gpu else {})}
        files[f"overlays/{env}/overlay.yaml"] = overlay(env, spec)
    return files


def test_every_kind_has_a_case() -> None:
    assert {kind.name for kind in KINDS} == {make_manifest(number, {})["kind"] for number in range(len(CASES))}


def start(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


numbers = st.lists(st.integers(0, len(CASES) - 1), min_size=1, max_size=6, unique=True)


@settings(laws(12), phases=[Phase.explicit, Phase.generate])
@given(repositories(), numbers, st.data())
def test_an_import_into_a_repository_renders_to_the_same(tmp_path_factory, files, chosen, data) -> None:
    # MXJob and JAXJob are of different releases of one operator.
    wanted = [make_manifest(at, data.draw(job_fields)) for at in chosen if CASES[at][0].name != "JAXJob"]
    top = start(tmp_path_factory.getbasetemp() / "law")
    put(top / "repo", files)
    put(top, {"in/all.yaml": "---\n".join(json.dumps(each) + "\n" for each in wanted) or "{}"})
    before = files_of(top)
    done = run_jobgen_text(top / "repo", "import", "../in/all.yaml", "-o", "jobs/imported")
    if not wanted:
        return

    assert done.returncode == 0, done.stderr
    written = files_of(top).keys() - before.keys()
    assert {f"repo/{path}" for path in list_written(done.stderr)} == written
    assert all(path.startswith("repo/jobs/imported/") for path in written)
    assert {path: text for path, text in files_of(top).items() if path in before} == before
    envs = [path.split("/")[1] for path in files if path.startswith("overlays/") and "base" not in path]
    for env in envs:
        assert_same(render(top / "repo", env), wanted)


FOREIGN = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "ml"}, "data": {"a": "b"}},
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "ml"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    },
]


@pytest.mark.stress
@settings(laws(6), phases=[Phase.explicit, Phase.generate])
@given(numbers, st.data())
def test_a_new_repository_renders_to_the_same(tmp_path_factory, chosen, data) -> None:
    chosen = [at for at in chosen if CASES[at][0].name != "JAXJob"] or [0]
    wanted = [*(make_manifest(at, data.draw(job_fields)) for at in chosen), *FOREIGN]
    top = start(tmp_path_factory.getbasetemp() / "law")
    put(top, {f"in/{number}.yaml": each for number, each in enumerate(wanted)})
    before = files_of(top)
    done = run_jobgen_text(top, "init", "repo", "--from", "in")

    assert done.returncode == 0, done.stderr
    written = files_of(top).keys() - before.keys()
    assert {f"repo/{path}" for path in list_written(done.stderr)} == written
    # Each platform has an environment, and no object is in two of them.
    assert_same(render(top / "repo", ""), wanted)


@settings(laws(3), phases=[Phase.explicit, Phase.generate])
@given(numbers, st.lists(st.sampled_from(["dev", "prod", "stage"]), min_size=2, unique=True), st.data())
def test_copies_for_environments_render_to_the_same(tmp_path_factory, chosen, envs, data) -> None:
    chosen = [at for at in chosen if CASES[at][0].name != "JAXJob"] or [0]
    wanted = {env: [make_manifest(at, data.draw(job_fields)) for at in chosen] for env in envs}
    top = start(tmp_path_factory.getbasetemp() / "law")
    put(top, {f"in/{env}/{number}.yaml": each for env in envs for number, each in enumerate(wanted[env])})
    done = run_jobgen_text(top, "init", "repo", "--from", "in")

    assert done.returncode == 0, done.stderr
    for env in envs:
        assert_same(render(top / "repo", env), wanted[env])


MERGES = [
    {"merge": {"image": "registry.example.com/other:1"}},
    {"merge": {"resources": {"gpu": 8}}},
    {"merge": {"roles": {"worker": {"replicas": 7}}}},
]
PATCHES = [
    {"manifest": {"metadata": {"labels": {"patched": "yes"}}}},
    {"manifest": {"spec": {"runPolicy": {"suspend": True}}}},
    {"jsonPatch": [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]},
]


@pytest.mark.parametrize("patch", [*MERGES, *PATCHES])
def test_nothing_is_written_if_a_patch_would_change_a_job(tmp_path: Path, patch: dict[str, Any]) -> None:
    wanted = make_manifest(number_of("PyTorchJob"), {})
    patches = json.dumps([{"match": {"names": ["*"]}, **patch}])
    put(tmp_path, overlays("kubeflow, jobset", dev="", prod=f", patches: {patches}"))
    put(tmp_path, {"in/a.yaml": wanted})
    before = files_of(tmp_path)
    done = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs")

    if patch in MERGES and done.returncode == 0:
        # What a job says about its object is above what an overlay says about the job.
        assert_same(render(tmp_path, "prod"), [wanted])
        assert_same(render(tmp_path, "dev"), [wanted])
        return
    assert done.returncode == 1
    assert "in/a.yaml:1: not imported: it would not render to this object in `prod`\n  `" in done.stderr
    assert "nothing was written" in done.stderr
    assert files_of(tmp_path) == before


def number_of(kind: str) -> int:
    return next(number for number, (each, _) in enumerate(CASES) if each.name == kind)


def overlays(platforms: str, **envs: str) -> dict[str, str]:
    """The files of a repository with a base and environments; the rest of the spec of each is text."""
    head = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: %s}\nspec:\n  %s\n"
    base = head % ("base", f"cluster: {{platforms: [{platforms}]}}")
    own = {f"overlays/{env}/overlay.yaml": head % (env, f"{{extends: [base]{rest}}}") for env, rest in envs.items()}
    return {"jobgen.yaml": f"environments: [{', '.join(envs)}]\n", "overlays/base/overlay.yaml": base, **own}


def mpi_job(version: str) -> dict[str, Any]:
    [number] = [at for at, (kind, _) in enumerate(CASES) if (kind.name, kind.api_version) == ("MPIJob", version)]
    return make_manifest(number, {})


@pytest.mark.parametrize("version", ["kubeflow.org/v1", "kubeflow.org/v2beta1"])
def test_a_kind_of_two_platforms_keeps_its_version(tmp_path: Path, version: str) -> None:
    put(tmp_path, overlays("kubeflow, mpi-operator, trainer, jobset, ray", dev="", prod=""))
    put(tmp_path, {"in/mpi.yaml": mpi_job(version)})
    done = run_jobgen_text(tmp_path, "import", "in/mpi.yaml", "-o", "jobs/imported")

    assert done.returncode == 0
    assert list_written(done.stderr) == {f"jobs/{path}" for path in files_of(tmp_path / "jobs")}
    assert sorted(path.name for path in (tmp_path / "overlays").iterdir()) == ["base", "dev", "prod"]
    assert [each["apiVersion"] for env in ("dev", "prod") for each in render(tmp_path, env)] == [version] * 2
    # A cluster with the MPI operator has its CustomResourceDefinition, which serves no v1.
    is_served = version != "kubeflow.org/v1"
    assert ("error" not in run_jobgen_text(tmp_path, "lint").stdout) == is_served
    assert ("jobs/imported/job-16.yaml:5:14: error:" not in done.stderr) == is_served


def test_what_overlays_add_is_kept_out_and_named(tmp_path: Path) -> None:
    put(tmp_path, overlays("kubeflow", dev=", namespace: ml, defaults: {queue: q, labels: {a: b}}"))
    put(tmp_path, {"in/a.yaml": BASE})
    done = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs")
    [file] = files_of(tmp_path / "jobs").values()

    assert "in/a.yaml:1: `labels`, `queue` of the spec keep out what overlays add\n" in done.stderr
    assert b"  labels: null\n  queue: null\n" in file
    assert_same(render(tmp_path, "dev"), [BASE])


@pytest.mark.parametrize("resources", [{"cpu": 4, "gpu": 2}, {"limits": {"nvidia.com/gpu": 1}}])
@pytest.mark.parametrize("default", ["{gpu: 1}", "{limits: {gpu: 1}}", "{requests: {gpu: 1}, limits: {gpu: 1}}"])
def test_an_amount_of_gpus_is_not_set_twice_where_environments_name_them_differently(
    tmp_path: Path, resources: dict[str, Any], default: str
) -> None:
    wanted = make_manifest(number_of("PyTorchJob"), {"resources": resources})
    other = f", cluster: {{gpuResource: amd.com/gpu}}, defaults: {{resources: {default}}}"
    put(tmp_path, overlays("kubeflow", dev=f", defaults: {{resources: {default}}}", prod=other))
    put(tmp_path, {"in/a.yaml": wanted})
    done = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs")

    assert done.returncode == 0, done.stderr
    for env in ("dev", "prod"):
        assert_same(render(tmp_path, env), [wanted])


def test_what_overlays_set_and_lock_is_named(tmp_path: Path) -> None:
    put(tmp_path, overlays("kubeflow", dev=", defaults: {queue: q, labels: {a: b}}, locked: [queue]"))
    put(tmp_path, {"in/a.yaml": BASE})
    before = files_of(tmp_path)
    done = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs")

    assert (done.returncode, files_of(tmp_path)) == (1, before)
    assert "would become {kueue.x-k8s.io/queue-name: q}\n" in done.stderr
    assert "`queue` is locked by overlay `dev`, so a job cannot do without its value; write it in the" in done.stderr
    assert "remove it from the job" not in done.stderr


def test_a_missing_platform_is_named_with_the_line_that_must_change(tmp_path: Path) -> None:
    put(tmp_path, overlays("kubeflow, trainer", dev="", prod=""))
    put(tmp_path, {"in/a.yaml": make_manifest(number_of("JobSet"), {})})
    before = files_of(tmp_path)
    done = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs")

    assert done.returncode == 1
    line = "add `jobset` to `cluster.platforms` in overlays/base/overlay.yaml:5\n"
    assert f"in/a.yaml:1: not imported: `dev`, `prod` have no platform `jobset` for this JobSet; {line}" in done.stderr
    assert files_of(tmp_path) == before


def test_an_environment_that_selects_other_jobs_is_named(tmp_path: Path) -> None:
    put(tmp_path, overlays("kubeflow", dev=", jobs: {names: [x]}"))
    put(tmp_path, {"in/a.yaml": make_manifest(number_of("PyTorchJob"), {})})
    done = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs")

    assert done.returncode == 1
    assert "in/a.yaml:1: not imported: no environment selects it" in done.stderr
    assert "; add it to `jobs` in overlays/dev/overlay.yaml:5\n" in done.stderr
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize("output", ["../out", "out", "../other/jobs"])
def test_a_folder_outside_of_the_jobs_gets_specs_alone(tmp_path: Path, output: str) -> None:
    put(tmp_path / "repo", {"jobgen.yaml": "", "jobs/.keep": ""})
    put(tmp_path, {"in/a.yaml": make_manifest(number_of("JobSet"), {})})
    before = files_of(tmp_path)
    done = run_jobgen_text(tmp_path / "repo", "import", "../in", "-o", output)
    written = files_of(tmp_path).keys() - before.keys()

    assert done.returncode == 0, done.stderr
    [path] = list_written(done.stderr)
    assert path.startswith(f"{output}/")
    assert len(written) == 1
    assert (tmp_path / "repo" / path).is_file()
    assert (
        f"`{output}` is not in the folder `jobs` of the repository, so jobgen does not render these jobs" in done.stderr
    )
    assert "jobs of platform `jobset` need `cluster: {platform: jobset}` in an overlay\n" in done.stderr


def test_a_new_overlay_that_the_settings_do_not_list_is_reported_with_its_line(tmp_path: Path) -> None:
    put(tmp_path, {"jobgen.yaml": "\nenvironments: [prod]\n", "in/a.yaml": make_manifest(number_of("JobSet"), {})})
    done = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs")

    assert "jobgen.yaml:2" in done.stderr


def test_files_are_replaced_only_with_force_and_named(tmp_path: Path) -> None:
    put(tmp_path, {"in/a.yaml": make_manifest(number_of("PyTorchJob"), {})})
    first = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs")
    [path] = list_written(first.stderr)
    refused = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs")
    forced = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs", "--force")

    assert (refused.returncode, f"`{path}` exists; nothing was written" in refused.stderr) == (1, True)
    assert (forced.returncode, forced.stderr.splitlines()[0]) == (0, f"{path} replaced")


def test_an_object_that_the_repository_has_is_not_imported_again(tmp_path: Path) -> None:
    put(tmp_path, {"jobgen.yaml": "", "in/a.yaml": make_manifest(number_of("PyTorchJob"), {})})
    first = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs")
    before = files_of(tmp_path)
    again = run_jobgen_text(tmp_path, "import", "in", "-o", "jobs/more")

    assert (first.returncode, again.returncode) == (0, 1)
    assert "in/a.yaml:1: not imported: it cannot be rendered" in again.stderr
    assert files_of(tmp_path) == before


# Kustomizations are built; files that are no finished objects are left out, with the reason.

NAMES = {"dev": "nlp-dev", "prod": "nlp-prod"}
BASE = make_manifest(number_of("PyTorchJob"), {"resources": {"cpu": 4, "memory": "8Gi", "gpu": 1}})


def kustomizations() -> dict[str, Any]:
    """A base, and an overlay of kustomize for each of two environments."""
    files: dict[str, Any] = {
        "k/base/job.yaml": BASE,
        "k/base/kustomization.yaml": "resources: [job.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\n",
    }
    for env, namespace in NAMES.items():
        files[f"k/overlays/{env}/kustomization.yaml"] = (
            f"resources: [../../base]\nnamespace: {namespace}\npatches: [{{path: size.yaml}}]\n"
            f"images: [{{name: registry.example.com/a, newTag: {env}}}]\n"
        )
        files[f"k/overlays/{env}/size.yaml"] = {**BASE, "spec": {"runPolicy": {"backoffLimit": len(env)}}}
    return files


def assert_built(repository: Path, env: str) -> None:
    by_kind = {each["kind"]: each for each in render(repository, env)}
    job = by_kind["PyTorchJob"]
    [role] = job["spec"]["pytorchReplicaSpecs"].values()
    assert job["metadata"]["namespace"] == NAMES[env]
    assert role["template"]["spec"]["containers"][0]["image"] == f"registry.example.com/a:{env}"
    assert job["spec"]["runPolicy"] == {"backoffLimit": len(env)}
    assert by_kind.keys() <= {"PyTorchJob", "ConfigMap"}


@pytest.mark.parametrize("source", ["k", "k/overlays", "../top/k"])
def test_overlays_of_kustomize_become_environments(tmp_path: Path, source: str) -> None:
    put(tmp_path / "top", kustomizations())
    done = run_jobgen_text(tmp_path / "top", "init", "repo", "--from", source)

    assert done.returncode == 0, done.stderr
    assert "2 objects imported, 2 of other kinds kept as manifests in jobs/\n" in done.stderr
    for env in NAMES:
        assert_built(tmp_path / "top/repo", env)
    assert "error" not in run_jobgen_text(tmp_path / "top/repo", "lint").stdout


def test_a_folder_elsewhere_is_the_top_of_its_kustomizations(tmp_path: Path) -> None:
    put(tmp_path, kustomizations())
    put(tmp_path, {"work/.keep": ""})
    done = run_jobgen_text(tmp_path / "work", "init", "repo", "--from", "../k")
    told = run_jobgen_text(tmp_path / "work", "import", "../k/overlays/prod", "-o", "jobs")

    assert done.returncode == 0, done.stderr
    for env in NAMES:
        assert_built(tmp_path / "work/repo", env)
    assert "../k/overlays/prod/kustomization.yaml:1:1: not imported: the kustomization is not built: " in told.stderr
    assert "; run `kubectl kustomize ../k/overlays/prod | jobgen import - -o jobs`\n" in told.stderr


@pytest.mark.parametrize("source", ["k/overlays/prod", "k/overlays/prod/kustomization.yaml"])
def test_a_kustomization_is_built_and_imported(tmp_path: Path, source: str) -> None:
    put(tmp_path, kustomizations())
    done = run_jobgen_text(tmp_path, "import", source, "-o", "jobs")

    # The ConfigMap is no job.
    assert "1 object imported, 1 not\n" in done.stderr
    assert list_written(done.stderr) == {f"jobs/{BASE['metadata']['name']}.yaml"}
    [job] = render(tmp_path, "")
    assert (job["metadata"]["namespace"], job["spec"]["runPolicy"]) == ("nlp-prod", {"backoffLimit": 4})


def test_environments_that_are_named_are_built(tmp_path: Path) -> None:
    put(tmp_path, kustomizations())
    folders = [f"--environment={env}=k/overlays/{env}" for env in NAMES]
    done = run_jobgen_text(tmp_path, "import", *folders, "-o", "jobs")

    assert done.returncode == 0, done.stderr
    assert list_written(done.stderr) == {path for path in files_of(tmp_path) if path.startswith(("jobs/", "overlays/"))}
    for env in NAMES:
        assert_built(tmp_path, env)


def test_a_kustomization_that_cannot_be_built_is_not_imported(tmp_path: Path) -> None:
    put(
        tmp_path, {**kustomizations(), "m/a.yaml": BASE, "m/k/kustomization.yaml": "resources: [none.yaml, job.yaml]\n"}
    )
    put(tmp_path, {"m/k/job.yaml": make_manifest(number_of("TFJob"), {})})
    done = run_jobgen_text(tmp_path, "init", "repo", "--from", "m")

    assert done.returncode == 1
    assert (
        "m/k/kustomization.yaml:1:1: not imported: the kustomization is not built: m/k/kustomization.yaml:1: `none"
        in (done.stderr)
    )
    assert "1 object imported, 1 not imported\n" in done.stderr


LEFT_OUT = {
    "values.yaml": ("image: {tag: a}\n", "nothing to import", "config of another program"),
    ".github/dependabot.yml": ("version: 2\nupdates: []\n", "", ""),
    "testdata/job.yaml": (BASE, "nothing to import", "test data"),
    "templates/job.yaml": (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n",
        "not imported",
        "template",
    ),
    "pkg/assets/job.yaml": (make_manifest(number_of("TFJob"), {}), "nothing to import", "operator asset"),
    "spark/executor.yaml": (
        "apiVersion: v1\nkind: Pod\nmetadata: {labels: {a: b}}\nspec: {containers: [{name: executor}]}\n",
        "not imported",
        "",
    ),
}


def test_what_lint_does_not_judge_is_left_out_with_the_reason(tmp_path: Path) -> None:
    put(tmp_path, {"m/bert.yaml": BASE, "m/pkg/main.go": "package main\n//go:embed assets/job.yaml\n"})
    put(tmp_path, {f"m/{path}": content for path, (content, _, _) in LEFT_OUT.items()})
    done = run_jobgen_text(tmp_path, "init", "repo", "--from", "m")

    for path, (_, verdict, sort) in LEFT_OUT.items():
        lines = [line for line in done.stderr.splitlines() if line.startswith(f"m/{path}:")]
        assert not verdict or (lines and f": {verdict}: " in lines[0]), done.stderr
        assert not sort or f"it is treated as `{sort}`, because" in lines[0]
    assert [path.name for path in (tmp_path / "repo/jobs").iterdir()] == [f"{BASE['metadata']['name']}.yaml"]
    assert_same(render(tmp_path / "repo", ""), [BASE])


def test_a_file_that_is_named_is_imported_whatever_its_folder_is_called(tmp_path: Path) -> None:
    put(tmp_path, {"testdata/job.yaml": BASE})

    assert run_jobgen_text(tmp_path, "import", "testdata/job.yaml", "-o", "jobs").returncode == 0
    assert_same(render(tmp_path, ""), [BASE])


@pytest.mark.parametrize("kind", ["PyTorchJob", "MPIJob", "TFJob", "TrainJob", "GenericJob", "DeepSpeedJob"])
def test_public_manifests_render_to_themselves(tmp_path: Path, kind: str, stress: int) -> None:
    folder = shared_folder("corpus") / kind
    put(tmp_path, overlays(", ".join(PLATFORMS), dev=", namespace: ml", prod=", defaults: {queue: q, shm: 1Gi}"))
    for file in sorted(folder.glob("*.yaml"))[: 4 * stress]:
        done = run_jobgen_text(tmp_path, "import", str(file), "-o", "jobs")
        if not list_written(done.stderr):
            assert not (tmp_path / "jobs").exists(), done.stderr
            continue
        # What is not imported is named; all that is rendered is in the file.
        wanted = [remove_server_fields(each.data)[0] for each in read(file.read_bytes(), "").documents]
        for env in ("dev", "prod"):
            for found in render(tmp_path, env):
                assert meaning(found) in map(meaning, wanted)
        shutil.rmtree(tmp_path / "jobs")
