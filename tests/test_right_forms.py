"""A value of a wrong type and a field of a wrong name are reported with the right form, in one line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from lintfiles import JOB, lint_files, overlay

import jobgen
from jobgen.model.finding import Problem
from jobgen.rendering.config import compile_format, complete_schemas, load_frameworks
from jobgen.repo.layout import own_layers

ROOT = Path(__file__).parent.parent
FRAMEWORKS = load_frameworks(own_layers(ROOT))
RULES = ("wrong-type", "unknown-field", "invalid-value")
FORMATS = ("trainingjob", "overlay", "settings", "team")


def write_job(field: str, old: str = "") -> dict[str, str]:
    """A job with one field more, or with another one."""
    assert old in JOB
    text = JOB.replace(old, f"  {field}\n") if old else JOB.replace("  roles:", f"  {field}\n  roles:")
    return {"jobs/bert.yaml": text}


FORMS = {
    "volumes: [{name: data, mountPath: /d}]": "write `volumes: {data: {mountPath: /d}}`",
    "volumes: data": "for example, write `volumes: {data: {pvc: datasets, mountPath: /data, readOnly: true}}`",
    "env: [NCCL_DEBUG: INFO]": "write `- {name: NCCL_DEBUG, value: INFO}`",
    "env: [NCCL_DEBUG=INFO]": "write `env: {NCCL_DEBUG: INFO}`",
    "runPolicy: {activeDeadlineSeconds: 24h}": "write `activeDeadlineSeconds: 86400`",
    "nnodes: 2": "write `replicas`, the number of all pods; or `replicas` of each role",
    "nproc_per_node: 8": "write `resources.gpu`, or `pytorch.nprocPerNode` for another number of processes",
    "shm: {size: 4Gi}": "write `shm: 4Gi`",
    "volumes: {out: results:/out}": "write `out: {pvc: results, mountPath: /out}`",
    "ports: 8080": "write `ports: {metrics: 8080}`",
    "ports: [23456]": "write `ports: {metrics: 23456}`",
    "replicas: two": "; for example, write `replicas: 9`",
    "tolerations: {operator: Exists}": "write `tolerations: [{operator: Exists}]`",
    "nodeSelector: pool=a100": "write `nodeSelector: {pool: a100}`",
    "nodeSelector: [{key: pool, value: a100}]": "write `nodeSelector: {pool: a100}`",
    "annotations: [{name: a.example/b, value: c}]": "write `annotations: {a.example/b: c}`",
    "secrets: {hub: {env: [HF_TOKEN]}}": "write `env: {HF_TOKEN: …}`",
    "secrets: {hub: {env: [{HF_TOKEN: token}]}}": "write `env: {HF_TOKEN: …}`",
    "secrets: {HF_TOKEN: hub/token}": "the name of the Secret as the key, and `{env: {HF_TOKEN: …}}` as its value",
    "secrets: {t: {secretKeyRef: {name: hub, key: t}}}": "write it below `env`, as the value of the variable",
    "configs: [train]": "write `configs: {train: {mountPath: /etc/train}}`",
    "runPolicy: {backoffLimit: [3]}": "write `backoffLimit: 3`",
    "runPolicy: {cleanPodPolicy: no}": "did you mean `None`?",
    "scratch: {emptyDir: {}, mountPath: /scratch}": "indent it below `volumes`, or write `volumes:` above it",
    "NCCL_DEBUG: INFO": "indent it below `env`, or write `env:` above it",
    "hub: {env: {HF_TOKEN: token}}": "indent it below `configs` or `secrets`, or write `configs:` above it",
    "volumes: {a: {emptyDir: {}, mountPath: /a, b: {emptyDir: {}, mountPath: /b}}}": (
        "it is a volume of its own; write it one level to the left"
    ),
    "configs: {a: {mountPath: /a, b.yaml: 'c: 1'}}": "indent it below `data`, or write `data:` above it",
}
FORMS |= {
    f'runPolicy: {{activeDeadlineSeconds: "{text}"}}': f"write `activeDeadlineSeconds: {seconds}`"
    for text, seconds in {
        " 86400": 86400,
        "1d12h": 129600,
        "1.5h": 5400,
        "2 hours": 7200,
        "1:00:00": 3600,
        "86_400": 86400,
        "24*3600": 86400,
        "PT1H30M": 5400,
    }.items()
}
REPLACED = {
    "command: torchrun --nnodes=2 train.py": (
        "  command: [torchrun, train.py]\n",
        "write `command: [torchrun, --nnodes=2, train.py]`",
    ),
    "command: cd /x && torchrun train.py": (
        "  command: [torchrun, train.py]\n",
        "write `command: [bash, -c]`, and the script as the only item of `args`, below `- |`",
    ),
    "command:\n    -torchrun\n    -train.py": (
        "  command: [torchrun, train.py]\n",
        "write `command: [torchrun, train.py]`",
    ),
    "command: [bash, -c, echo step: 1]": (
        "  command: [torchrun, train.py]\n",
        'write `"echo step: 1"`',
    ),
    "image: {name: registry.example.com/bert, tag: 1.0.0}": (
        "  image: registry.example.com/bert:1.4.2\n",
        "write `image: registry.example.com/bert:1.0.0`",
    ),
    "  worker:\n    replicas: 2": (
        "    worker: {replicas: 3}\n",
        "`replicas` belongs to `worker`, which has no value; indent what belongs to `worker` below it",
    ),
    "  worker: {count: 2}": ("    worker: {replicas: 3}\n", "write `replicas`"),
    "roles: [master, worker]": (
        "  roles:\n    master: {}\n    worker: {replicas: 3}\n",
        "write `roles: {master: {}, worker: {}}`",
    ),
    "  worker: 3": ("    worker: {replicas: 3}\n", "write `worker: {replicas: 3}`"),
}


@pytest.mark.parametrize("field", [*FORMS, *REPLACED])
def test_a_mistake_in_a_job_is_reported_with_the_right_form(field, tmp_path):
    old, advice = REPLACED.get(field) or ("  shm: 8Gi\n" if "shm" in field else "", FORMS[field])

    [found] = [each for each in lint_files(tmp_path, write_job(field, old)) if each["rule"] in RULES]

    assert found["message"].endswith(advice)


OVERLAYS = {
    "{patches: [{match: {jobs: [bert]}, merge: {shm: 4Gi}}]}": "write `names: [bert]`",
    "{patches: [{match: {name: bert}, merge: {shm: 4Gi}}]}": "write `names: [bert]`",
    "{patches: [{match: {names: [bert]}, merge: {spec: {shm: 4Gi}}}]}": "write its fields directly below `merge`",
    "{cluster: {queues: [gpu-a, gpu-b]}}": "write `queues: {gpu-a: {}, gpu-b: {}}`",
    "{cluster: {operators: [training-operator]}}": 'for example, write `operators: {training-operator: "1.9.3"}`',
}


@pytest.mark.parametrize("spec", OVERLAYS)
def test_a_mistake_in_an_overlay_is_reported_with_the_right_form(spec, tmp_path):
    found = [each for each in lint_files(tmp_path, {"jobs/bert.yaml": JOB, **overlay(spec)}) if each["rule"] in RULES]

    assert [each["message"].partition("; ")[2] for each in found] == [OVERLAYS[spec]]
    # One word that means a list of one.
    assert [each.get("fixable") for each in found] == ["name: bert" in spec]


@pytest.mark.parametrize("value", ["dev, prod", "dev prod", "{dev: {}, prod: {}}", "\n  -dev\n  -prod"])
def test_environments_that_are_no_list_are_shown_as_one(value, tmp_path):
    (tmp_path / "jobgen.yaml").write_text(f"environments: {value}\n")

    assert jobgen.lint(tmp_path).findings[0].message.endswith("; write `environments: [dev, prod]`")


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("{cpu: 8, memory 64Gi, gpu: 8}", "`memory 64Gi` has no colon; write `memory: 64Gi`"),
        ("{cpu: 8, memory=64Gi, gpu: 8}", "`memory=64Gi` has no colon; write `memory: 64Gi`"),
    ],
)
def test_an_entry_without_its_colon_is_shown_with_it(field, message, tmp_path):
    found = lint_files(tmp_path, write_job(f"resources: {field}", "  resources: {cpu: 8, memory: 64Gi, gpu: 8}\n"))

    assert found[0]["message"] == message


@pytest.mark.parametrize("field", ["volumes: {d: {pvc: a, configMap: b, mountPath: /x}}"])
def test_two_sources_in_one_mapping_are_removed_and_not_deleted(field, tmp_path):
    found = [each for each in lint_files(tmp_path, write_job(field)) if each["rule"] == "conflicting-volume"]

    assert [each["message"].partition("; ")[2] for each in found] == ["remove all but one"]


def test_an_exception_with_an_end_is_told_the_name_of_the_field(tmp_path):
    entry = "{rule: missing-shm, reason: measured, owner: ml, until: 2027-01-01}"
    (tmp_path / "jobgen.yaml").write_text(f"exceptions: [{entry}]\n")

    assert [each.message for each in jobgen.lint(tmp_path).findings] == [
        "`until` is not a field of an exception; write `expires`"
    ]


ADVICE = {
    "replicas: 3": (
        "{cluster: {platform: kubeflow}}",
        "`replicas` is 3, but the roles add up to 4 (master 1 + worker 3); write `replicas: 4`, or change a role",
    ),
    "replicas: 4": (
        "{cluster: {platform: kubeflow}, patches: [{match: {names: [bert]}, merge: {roles: {worker: {replicas: 8}}}}]}",
        "add up to 9 (master 1 + worker 8); add `replicas: 9` to the patch",
    ),
    "priority: 5": (
        "{cluster: {platform: kubeflow}}",
        "`priority` is `5`; PyTorchJob supports only the name of a PriorityClass",
    ),
    "framework: ray": (
        "{cluster: {platform: kubeflow}}",
        "framework `ray` has no kind on platform `kubeflow`; use `platform: ray`",
    ),
    "description: a job": (
        "{cluster: {platform: kubeflow, queues: {a: {gpus: 1}, b: {gpus: 64}, c: {}}}}",
        "the job requests GPUs but names no queue; use queue `b` or `c`",
    ),
    "labels: {}": (
        "\n  namespace: {team}-{env}",
        'has a value that needs quotes; write `namespace: "{team}-{env}"`',
    ),
}


@pytest.mark.parametrize("field", ADVICE)
def test_advice_is_right_when_it_is_followed(field, tmp_path):
    spec, message = ADVICE[field]
    files = write_job(field, "  framework: pytorch\n" if "framework" in field else "")
    found = lint_files(tmp_path, files | overlay(spec))

    assert any(each["message"].endswith(message) for each in found), found


def test_misspelled_requests_and_limits_are_named(tmp_path):
    field = "resources: {request: {cpu: 4}, limit: {cpu: 4, memory: 8Gi}}"
    found = lint_files(tmp_path, write_job(field, "  resources: {cpu: 8, memory: 64Gi, gpu: 8}\n"))

    assert [each["message"] for each in found] == [
        "`request` is not a field of resources; did you mean `requests`?",
        "`limit` is not a field of resources; did you mean `limits`?",
    ]


def test_a_framework_that_runs_as_another_names_it(tmp_path):
    files = write_job("framework: deepspeed", "  framework: pytorch\n") | overlay("{cluster: {platform: kubeflow}}")

    [found] = lint_files(tmp_path, files)

    assert found["message"].endswith("; use `framework: mpi`")


def test_digits_and_letters_that_look_alike_are_one_name(tmp_path):
    files = write_job("queue: h1oo") | overlay("{cluster: {queues: {h100: {}, cpu: {}}}}")

    assert [each["message"] for each in lint_files(tmp_path, files)] == [
        "the cluster declares no queue `h1oo`, so the job never starts; did you mean `h100`?"
    ]


RAW = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: a, namespace: ml}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: registry.example.com/a:1.0.0
          resources: {{requests: {{cpu: 1, memory: 1Gi}}, limits: {{memory: 1Gi}}}}
          {field}
"""
RAW_FORMS = {
    "command: python train.py": "write `command: [python, train.py]`",
    "env: {A: b}": "write `env: [{name: A, value: b}]`",
    "env: [NCCL_DEBUG: INFO]": "write `- {name: NCCL_DEBUG, value: INFO}`",
    "volumeMounts: data": "write `volumeMounts: [{name: data, mountPath: /data}]`",
}


@pytest.mark.parametrize("field", RAW_FORMS)
def test_a_mistake_in_a_manifest_is_reported_with_the_right_form(field, tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": RAW.format(field=field)})

    assert found["message"].endswith(RAW_FORMS[field])


def list_fields(schema: Any, schemas: Any, file: str, depth: int = 0) -> Iterator[tuple[str, Any, str]]:
    """Every field of a schema that has an example, with its schema and its file."""
    where, _, pointer = schema.get("$ref", "").partition("#")
    if pointer and depth < 6:
        file, target = where or file, schemas[where or file]
        for step in pointer.split("/")[1:]:
            target = target[step]
        yield from list_fields(target, schemas, file, depth + 1)
    for name, field in schema.get("properties", {}).items():
        if isinstance(field, dict):
            yield name, field, file
            yield from list_fields(field, schemas, file, depth + 1)
    for each in (schema.get("additionalProperties"), schema.get("items"), *schema.get("anyOf", ())):
        if isinstance(each, dict):
            yield from list_fields(each, schemas, file, depth + 1)


@pytest.mark.parametrize("name", FORMATS)
def test_every_field_has_a_right_form(name):
    from jobgen.schema.own_formats import compile_schema

    schemas = complete_schemas(FRAMEWORKS)
    compile_format(name, FRAMEWORKS)
    silent = set()
    for field, schema, file in list_fields(schemas[f"{name}_v1.json"], schemas, f"{name}_v1.json"):
        holder = {"type": "object", "properties": {field: schema}}
        check = compile_schema("holder", {**schemas, "holder": _absolute(holder, file)})
        for wrong in ([[]], {"x": [[]]}, 1.5, "a b"):
            problems: list[Problem] = []
            check({field: wrong}, "x", None, problems)
            for problem in problems:
                if problem.rule == "wrong-type" and str(problem.sentence).startswith(f"`{field}` is"):
                    text = str(problem.sentence).partition("write `")[2].removesuffix("`")
                    found: list[Problem] = []
                    if text and "…" not in text:
                        check(yaml.safe_load(text), "x", None, found)
                    if found or ("; " not in str(problem.sentence)):
                        silent.add(f"{field}: {problem.sentence}")
    assert not silent, "\n".join(sorted(silent))


def _absolute(schema: Any, file: str) -> Any:
    """A schema whose references name their file."""
    if isinstance(schema, list):
        return [_absolute(each, file) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: file + each if key == "$ref" and str(each).startswith("#") else _absolute(each, file)
        for key, each in schema.items()
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("entrypoint: [python, tune.py, --trials, '20']", '; write `entrypoint: "python tune.py --trials 20"`'),
        ("runtimeEnvYAML: {pip: [torch]}", "; write `runtimeEnvYAML: |`, and keep the lines below it as its text"),
    ],
)
def test_a_value_of_a_manifest_with_a_wrong_type_is_shown_as_it_is_meant(line, message, tmp_path):
    head = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: tune, namespace: ml}\nspec:\n"
    found = lint_files(tmp_path, {"ray.yaml": f"{head}  {line}\n"})

    assert [each["message"].partition(" string")[2] for each in found if each["rule"] == "wrong-type"] == [message]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (
            "env: [{name: T, secretKeyRef: {name: hub, key: token}}]",
            "; it belongs in `spec.containers[0].env[0].valueFrom`",
        ),
        ("args: [{--epochs: 3}]", "; write `--epochs=3`, or two items"),
    ],
)
def test_a_part_of_a_container_in_a_wrong_place_is_shown_where_it_belongs(item, message, tmp_path):
    head = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ml}\nspec:\n  containers:\n"
    found = lint_files(tmp_path, {"pod.yaml": f"{head}    - {{name: a, image: 'a:1', {item}}}\n"})

    assert any(each["message"].endswith(message) for each in found)


def test_an_entry_in_braces_without_a_space_is_shown_with_it(tmp_path):
    job = {"jobs/bert.yaml": JOB.partition("  roles:")[0] + "  roles: {worker: {replicas:3}}\n"}
    manifest = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, namespace: ml}\nspec: {parallelism:3}\n"
    found = lint_files(tmp_path, {**job, "m.yaml": manifest, "jobs/m.yaml": manifest})
    messages = [each["message"] for each in found if each["rule"] == "unknown-field"]

    assert "`replicas:3` has no space after its colon; write `replicas: 3`" in messages
    assert "`parallelism:3` has no space after its colon; write `parallelism: 3`" in messages
