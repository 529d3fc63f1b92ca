"""Short forms of jobs and overlays: mistakes are findings on their lines, and no value raises an exception."""

import json

import pytest
from transcripts import write_files

import jobgen

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  resources: {cpu: 4, memory: 16Gi}
  volumes: {data: {pvc: datasets, mountPath: /data}}
"""
FETCH = 'image: "registry.example.com/fetch:1"'


def list_problems(folder, job, overlays=()):
    """The errors and warnings of a repository, as `line: message [rule]`."""
    files = {"jobgen.yaml": "{}\n", "jobs/job.yaml": job}
    for name, spec in dict(overlays).items():
        files[f"overlays/{name}/overlay.yaml"] = f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n{spec}"
    write_files(folder, {path: text.encode() for path, text in files.items()})
    found = jobgen.lint(folder).findings
    return [f"{each.location.line}: {each.message} [{each.rule}]" for each in found if each.severity.value != "info"]


CONTAINERS = {
    "no image": ("fetch: {command: [a]}", "9: container `fetch` requires `image`; set it [missing-pod-field]"),
    "unknown volume": (
        f"fetch: {{{FETCH}, mounts: {{dat: /data}}}}",
        "9: the pod has no volume `dat`; did you mean `data`? [unknown-volume]",
    ),
    "mount without a path": (
        f"fetch: {{{FETCH}, mounts: {{data: {{readOnly: true}}}}}}",
        "9: a mount needs `mountPath` [missing-field]",
    ),
    "mount of a list": (
        f"fetch: {{{FETCH}, mounts: {{data: [/data]}}}}",
        "9: `data` is a list, and must be a mapping or a string [wrong-type]",
    ),
    "unknown field": (
        f"fetch: {{{FETCH}, comand: [a]}}",
        "9: `comand` is not a field of a container; did you mean `command`? [unknown-field]",
    ),
    "text": (
        "fetch: registry.example.com/fetch:1",
        "9: `fetch` is `registry.example.com/fetch:1`, and must be a mapping [wrong-type]",
    ),
    "unknown resource": (
        f"fetch: {{{FETCH}, resources: {{gpus: 1}}}}",
        "9: containers cannot request the resource `gpus`; write `gpu` [unknown-resource]",
    ),
    "no quantity": (
        f"fetch: {{{FETCH}, resources: {{memory: 4 GB}}}}",
        "9: `memory` is `4 GB`, which is not a quantity; write one such as `500m` or `4Gi` [invalid-quantity]",
    ),
    "two sources": (
        f"fetch: {{{FETCH}, env: {{A: {{secretKeyRef: {{name: a, key: b}}, fieldRef: {{fieldPath: c}}}}}}}}",
        "9: `A` of `env` has 2 sources, `secretKeyRef` and `fieldRef`; set all but one to null [conflicting-env]",
    ),
    "name of the main container": (
        f"pytorch: {{{FETCH}}}",
        "9: two containers of the pod are named `pytorch`; rename one of them [duplicate-container-name]",
    ),
    "deletion of nothing": (
        f"fetch: {{{FETCH}}}, none: null",
        "9: `none: null` deletes nothing; remove it [deletes-nothing]",
    ),
}


@pytest.mark.parametrize("field", ["initContainers", "sidecars"])
@pytest.mark.parametrize("case", CONTAINERS)
def test_mistake_in_a_container_is_one_finding_on_its_line(tmp_path, field, case):
    text, message = CONTAINERS[case]

    [problem] = list_problems(tmp_path, f"{JOB}  {field}: {{{text}}}\n")

    assert problem == message


def test_container_that_is_listed_twice_is_reported(tmp_path):
    item = "{name: fetch, image: registry.example.com/fetch:1}"

    [problem] = list_problems(tmp_path, f"{JOB}  initContainers:\n    - {item}\n    - {item}\n")

    assert problem == "11: `fetch` is listed twice; rename one [duplicate-container-name]"


HOSTILE = [
    "x",
    1,
    0.5,
    True,
    None,
    [],
    {},
    [None],
    [[]],
    [{}],
    {"a": None},
    {"a": {"b": {"c": [{}]}}},
    {"": ""},
    [1, "a"],
]


def nest(fields, value):
    """A value at the end of a path of fields; `-` is an item of a list."""
    for field in reversed(fields.split(".")):
        value = [value] if field == "-" else {field: value}
    return value


CONTAINER_PATHS = """
    a - a.env a.env.B a.resources a.resources.limits a.ports a.mounts a.mounts.data a.mounts.data.mountPath a.image
    a.$patch a.securityContext a.volumeMounts
""".split()
JOB_PATHS = [
    path
    for field in ("initContainers", "sidecars")
    for path in (field, *(f"{field}.{below}" for below in CONTAINER_PATHS))
]


@pytest.mark.parametrize("path", JOB_PATHS)
def test_hostile_value_in_a_job_raises_nothing(tmp_path, path):
    for number, value in enumerate(HOSTILE):
        spec = {"framework": "pytorch", "image": "a:1", **nest(path, value)}
        job = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": f"j{number}"}, "spec": spec}
        write_files(tmp_path, {"jobgen.yaml": b"{}\n", f"jobs/{number}.yaml": json.dumps(job).encode()})

    assert jobgen.lint(tmp_path).findings is not None


def test_gpus_of_sidecars_count_beside_those_of_the_main_container(tmp_path):
    container = "{image: registry.example.com/a:1, resources: {gpu: 2}}"
    job = f"{JOB}  queue: small\n  initContainers: {{fetch: {container}}}\n  sidecars: {{eval: {container}}}\n"
    job = job.replace("memory: 16Gi}", "memory: 16Gi, gpu: 1}\n  shm: 1Gi")

    problems = list_problems(tmp_path, job, {"prod": "  cluster: {queues: {small: {gpus: 3}}}\n"})
    assert [problem for problem in problems if "quota" in problem] == []
    problems = list_problems(tmp_path, job, {"prod": "  cluster: {queues: {small: {gpus: 2}}}\n"})
    assert [problem for problem in problems if "3 GPUs" in problem]


MATCHES = {
    "names": ("{exclude: {names: [bert-debug]}}", ["config", "bert", "gpt"]),
    "labels": ("{frameworks: [pytorch], exclude: {labels: {tier: free}}}", ["bert"]),
    "several fields must all match": ("{exclude: {names: ['bert*'], labels: {tier: free}}}", ["config", "bert", "gpt"]),
    "platforms": ("{platforms: [kube*]}", ["bert", "bert-debug", "gpt"]),
    "excluded platforms": ("{exclude: {platforms: [kubeflow]}}", ["config"]),
    "excluded kinds and names": ("{names: ['bert*', gpt], exclude: {kinds: [TFJob]}}", ["bert", "bert-debug"]),
}
MANY = "---\n".join(
    f"""\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml, labels: {labels}}}
spec: {{framework: {framework}, image: "registry.example.com/a:1", resources: {{cpu: 1, memory: 1Gi}}}}
"""
    for name, labels, framework in [
        ("bert", "{}", "pytorch"),
        ("bert-debug", "{tier: free}", "pytorch"),
        ("gpt", "{tier: paid}", "tensorflow"),
    ]
)
CONFIG = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: ml}\n"


@pytest.mark.parametrize("place", ["jobs", "patches"])
@pytest.mark.parametrize("case", MATCHES)
def test_match_excludes_jobs(tmp_path, place, case):
    match, expected = MATCHES[case]
    patch = f"  patches: [{{match: {match}, manifest: {{metadata: {{annotations: {{patched: 'true'}}}}}}}}]\n"
    overlay = f"  jobs: {match}\n" if place == "jobs" else patch
    write_files(tmp_path, {"jobgen.yaml": b"{}\n", "jobs/job.yaml": (MANY + CONFIG).encode()})
    overlay = f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n{overlay}"
    write_files(tmp_path, {"overlays/prod/overlay.yaml": overlay.encode()})

    metadata = [made.manifest["metadata"] for made in jobgen.render(tmp_path).objects]

    assert [each["name"] for each in metadata if place == "jobs" or "annotations" in each] == expected


MATCH_MISTAKES = {
    "excludes nothing": (
        "{frameworks: [pytorch], exclude: {names: [gpt]}}",
        "4: `exclude` excludes none of the jobs that match: no job has the name `gpt`; change or remove it",
    ),
    "misspelled": (
        "{exclude: {names: [gt]}}",
        "4: `exclude` excludes none of the jobs that match: no job has the name `gt`; did you mean `gpt`?",
    ),
    "one of two": (
        "{exclude: {names: [bert-debug, gtp]}}",
        "4: no job has the name `gtp`; did you mean `gpt`?",
    ),
    "label": (
        "{exclude: {labels: {teir: free}}}",
        "4: `exclude` excludes none of the jobs that match: no job has the label `teir`; did you mean `tier`?",
    ),
    "misspelled platform": (
        "{platforms: [kubeflow, kubefow]}",
        "4: no job has the platform `kubefow`; did you mean `kubeflow`?",
    ),
}


@pytest.mark.parametrize("place", ["jobs", "patches"])
@pytest.mark.parametrize("case", MATCH_MISTAKES)
def test_exclude_that_excludes_nothing_is_a_warning(tmp_path, place, case):
    match, message = MATCH_MISTAKES[case]
    patch = f"  patches: [{{match: {match}, merge: {{labels: {{a: b}}}}}}]\n"

    problems = list_problems(
        tmp_path, MANY, {"prod": f"  jobs: {match}\n" if place == "jobs" else patch, "all": "  {}\n"}
    )

    assert problems == [f"{message} [selector-matches-nothing]"]


WRONG_MATCHES = {
    "excludes all": ("{names: [gpt], exclude: {names: ['g*']}}", ": `exclude` excludes all jobs that match"),
    "empty": ("{exclude: {}}", "an exclude is empty"),
    "nested": ("{exclude: {exclude: {names: [gpt]}}}", "`exclude` is not a field of an exclude"),
    "list": ("{exclude: [gpt]}", "`exclude` is a list, and must be a mapping"),
    "unknown framework": ("{exclude: {frameworks: [pytorh]}}", "did you mean `pytorch`?"),
    "text": ("{platforms: kubeflow}", "`platforms` is `kubeflow`, and must be a list"),
}


@pytest.mark.parametrize("case", WRONG_MATCHES)
def test_wrong_exclude_is_an_error(tmp_path, case):
    match, message = WRONG_MATCHES[case]

    [problem] = list_problems(
        tmp_path, MANY, {"prod": f"  patches: [{{match: {match}, merge: {{labels: {{a: b}}}}}}]\n"}
    )

    assert problem.startswith("4: ")
    assert message in problem
