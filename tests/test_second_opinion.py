"""`--second-opinion`: real programs where they are installed, stand-ins elsewhere."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import run_jobgen_text
from findings import without_infos
from kustomize_samples import KUBECTL, install_stand_ins, read_calls, write_files
from linting import lint_paths
from sampling import sample
from sharedfiles import shared_folder

import jobgen
from jobgen.features.second_opinion import check_run as tools
from jobgen.features.second_opinion.json_schema_process import _compile

ROOT = Path(__file__).parent.parent
JOB = """\
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: %s, namespace: ml}
spec:
  jaxReplicaSpecs:
    Worker:
      replicas: 1
      template: {spec: {containers: [{name: jax, image: "a:1"%s}]}}
"""
SMALL = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good, namespace: ml}\ndata: {a: b}\n"
"""An object whose schema is read in no time."""
REAL = shutil.which("kubeconform")


@pytest.fixture
def stand_in(monkeypatch, tmp_path_factory):
    bin_ = tmp_path_factory.mktemp("bin")
    script = (ROOT / "tests/standin/kubeconform").read_text("utf-8")
    (bin_ / "kubeconform").write_text(script.replace("/usr/bin/env python3", sys.executable, 1))
    (bin_ / "kubeconform").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def binary(request):
    """The real kubeconform; a stand-in if there is none."""
    if not REAL:
        request.getfixturevalue("stand_in")


def found(folder):
    out = lint_paths(folder, ["."], (), format_="json", second_opinion=True).out
    return [(entry["rule"], entry["category"], entry["file"]) for entry in without_infos(json.loads(out)["findings"])]


@pytest.mark.parametrize("program", ["binary", "stand_in"])
def test_agreement_with_kubeconform_is_silent(request, program, tmp_path):
    request.getfixturevalue(program)
    (tmp_path / "good.yaml").write_text(JOB % ("good", ""))
    (tmp_path / "bad.yaml").write_text(JOB % ("bad", ", imagee: x"))

    assert found(tmp_path) == [("unknown-field", "schema", "bad.yaml")]


def test_disagreement_with_kubeconform_is_reported(binary, tmp_path):
    group = tmp_path / "schemas/kubeflow.org"
    group.mkdir(parents=True)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/good.yaml").write_text(JOB % ("good", ""))
    # A keyword that only one of the two knows.
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "propertyNames": {"maxLength": 4}}
    (group / "jaxjob_v1.json").write_text(json.dumps(schema))

    out = lint_paths(tmp_path, (), (), format_="json", second_opinion=True).out
    [finding] = [each for each in json.loads(out)["findings"] if each["rule"].startswith("kubeconform")]

    assert (finding["rule"], finding["category"], finding["file"]) == (
        "kubeconform-disagrees",
        "meta",
        "jobs/good.yaml",
    )
    assert finding["message"].startswith("kubeconform rejects `JAXJob ml/good`, but jobgen does not: ")


def test_kubeconform_gets_the_schema_of_the_declared_operator(binary, tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "overlays/old").mkdir(parents=True)
    (tmp_path / "overlays/old/o.yaml").write_text(
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {platform: trainer, operators: {trainer: 2.0.0}}}\n"
    )
    (tmp_path / "jobs/a.yaml").write_text(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a, namespace: ml}\n"
        "spec: {runtimeRef: {name: torch-distributed}, podSpecOverrides: [{targetJobs: [{name: node}]}]}\n"
    )
    out = lint_paths(tmp_path, (), (), format_="json", second_opinion=True).out

    assert [entry for entry in json.loads(out)["findings"] if entry["category"] in ("meta", "schema")] == []


@pytest.mark.stress
def test_since_gives_kubeconform_the_schemas_of_the_commit(binary, tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "schemas/kubeflow.org").mkdir(parents=True)
    (tmp_path / "jobs/good.yaml").write_text(JOB % ("good", ""))
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "propertyNames": {"maxLength": 4}}
    (tmp_path / "schemas/kubeflow.org/jaxjob_v1.json").write_text(json.dumps(schema))
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    since = partial(lint_paths, tmp_path, (), (), format_="json", second_opinion=True, since="HEAD")

    assert "kubeconform" not in since().out
    (tmp_path / "jobs/other.yaml").write_text(JOB % ("other", ""))
    assert [entry["file"] for entry in json.loads(since().out)["findings"] if "kubeconform" in entry["rule"]] == [
        "jobs/other.yaml"
    ]


DIALECT = "https://json-schema.org/draft/2020-12/schema"


@pytest.fixture
def without_kubeconform(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("empty")))


def write_schema(folder, schema):
    """A repository with one job, and a schema of its own for the kind."""
    (folder / "schemas/kubeflow.org").mkdir(parents=True)
    (folder / "jobs").mkdir()
    (folder / "jobs/good.yaml").write_text(JOB % ("good", ""))
    (folder / "schemas/kubeflow.org/jaxjob_v1.json").write_text(json.dumps({"$schema": DIALECT, **schema}))


def second_opinion(folder, *paths, **options):
    done = lint_paths(folder, paths, (), format_="json", second_opinion=True, **options)
    findings = json.loads(done.out)["findings"] if done.out else []
    return done, [entry for entry in findings if entry["rule"].endswith(("-disagrees", "-failed"))]


def test_both_tools_agree_and_are_counted(binary, tmp_path):
    (tmp_path / "good.yaml").write_text(JOB % ("good", ""))
    (tmp_path / "bad.yaml").write_text(JOB % ("bad", ", imagee: x"))
    (tmp_path / "unknown.yaml").write_text("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n")
    done, found = second_opinion(tmp_path, ".")

    assert found == []
    assert done.code == 1
    assert done.err.splitlines()[:2] == [
        "second opinion: jsonschema checked 2 objects; 1 had no schema",
        "second opinion: kubeconform checked 2 objects; 1 had no schema",
    ]


def test_missing_kubeconform_is_said_and_jsonschema_checks(without_kubeconform, tmp_path):
    write_schema(tmp_path, {"propertyNames": {"maxLength": 4}})
    done, [finding] = second_opinion(tmp_path)

    assert (finding["rule"], finding["file"], finding["line"], finding["severity"]) == (
        "jsonschema-disagrees",
        "jobs/good.yaml",
        1,
        "warning",
    )
    assert finding["message"] == (
        "jsonschema rejects `JAXJob ml/good`, but jobgen does not: /: 'apiVersion' is too long"
    )
    assert "second opinion: jsonschema checked 1 object\n" in done.err
    assert "second opinion: kubeconform checked nothing: kubeconform is not on PATH; get it from" in done.err
    assert done.code == 0
    assert second_opinion(tmp_path, fail_on="warning")[0].code == 1


@pytest.mark.stress
def test_both_tools_can_disagree(binary, tmp_path):
    write_schema(tmp_path, {"propertyNames": {"maxLength": 4}})
    _, found = second_opinion(tmp_path)

    assert [entry["rule"] for entry in found] == ["jsonschema-disagrees", "kubeconform-disagrees"]
    assert tempfile.gettempdir() not in found[1]["message"]
    sarif = json.loads(lint_paths(tmp_path, (), (), format_="sarif", second_opinion=True).out)
    assert {"jsonschema-disagrees", "kubeconform-disagrees"} <= {
        result["ruleId"] for result in sarif["runs"][0]["results"]
    }


# A condition, which jobgen does not evaluate, about a count and about a name with a slash.
CONDITIONS: dict[str, Any] = {"properties": {"metadata": {}, "spec": {}}}
for at, name, condition in (
    (["metadata", "annotations"], "a.example.com/b", {"maxLength": 2}),
    (["spec", "jaxReplicaSpecs", "Worker"], "replicas", {"maximum": 2}),
):
    schema = CONDITIONS
    for step in (*at, name):
        schema = schema.setdefault("properties", {}).setdefault(step, {})
    schema |= {"if": True, "then": condition}
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  cluster: {platform: kubeflow}
  patches:
    - match: {names: [patched]}
      merge: {roles: {worker: {replicas: 4}}}
"""


def test_disagreement_points_at_the_field(tmp_path):
    """Also in an item of a List, in the overlay that sets a value, and if the name of the field has a slash."""
    if not REAL:
        pytest.skip("kubeconform is not on PATH, and only the real one has paths")
    write_schema(tmp_path, CONDITIONS)
    spec = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: patched, namespace: ml}\nspec:\n"
    item = (JOB % ("listed", "")).replace("replicas: 1", "replicas: 5")
    annotated = (JOB % ("annotated", "")).replace("ml}", "ml, annotations: {a.example.com/b: long}}")
    indented = "".join(f"    {line}\n" for line in item.splitlines()).replace("    a", "  - a", 1)
    for path, text in {
        "jobs/patched.yaml": f'{spec}  framework: jax\n  image: "a:1"\n  roles: {{worker: {{replicas: 1}}}}\n',
        "jobs/list.yaml": f"apiVersion: v1\nkind: List\nitems:\n{indented}",
        "jobs/annotated.yaml": annotated,
        "overlays/prod/overlay.yaml": OVERLAY,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    _, found = second_opinion(tmp_path)
    replicas = "/spec/jaxReplicaSpecs/Worker/replicas"

    for tool in ("jsonschema", "kubeconform"):
        places = [
            (each["file"], each["line"], each["pointer"]) for each in found if each["rule"] == f"{tool}-disagrees"
        ]
        assert places == [
            ("jobs/annotated.yaml", 3, "/metadata/annotations/a.example.com~1b"),
            ("jobs/list.yaml", 10, replicas),
            ("overlays/prod/overlay.yaml", 7, replicas),
        ]


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("echo garbage; exit 3", 4, "kubeconform could not be run: garbage"),
        ("printf '\\377\\376'", 4, "kubeconform could not be run: "),
        ("echo '{\"resources\": null}'", 4, "kubeconform could not be run: "),
        ("echo '{\"resources\": [1]}'", 4, "kubeconform printed something other than a result: 1"),
        ('echo \'{"resources": [{"filename": "a", "status": "statusValid"}]}\'', 4, "something other than"),
        ("kill -9 $$", 4, "kubeconform could not be run: exit -9"),
    ],
)
def test_kubeconform_that_fails_is_an_error(monkeypatch, tmp_path, script, code, message):
    install_kubeconform(monkeypatch, tmp_path / "bin", script)
    (tmp_path / "good.yaml").write_text(SMALL)
    done = lint_paths(tmp_path, ["good.yaml"], (), format_="text", second_opinion=True)

    assert done.code == code
    assert message in done.err


def test_object_about_which_kubeconform_says_nothing_is_a_finding(monkeypatch, tmp_path):
    install_kubeconform(monkeypatch, tmp_path / "bin", "echo '{\"resources\": []}'")
    (tmp_path / "good.yaml").write_text(SMALL)
    done = lint_paths(tmp_path, ["good.yaml"], (), format_="concise", second_opinion=True)

    assert "warning: kubeconform could not check it: it said nothing about it [kubeconform-failed]\n" in done.out


def install_kubeconform(monkeypatch, folder, script):
    folder.mkdir()
    (folder / "kubeconform").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "kubeconform").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_severity_of_a_disagreement_can_be_set(without_kubeconform, tmp_path):
    write_schema(tmp_path, {"propertyNames": {"maxLength": 4}})
    (tmp_path / "jobgen.yaml").write_text("rules: {jsonschema-disagrees: error}\n")

    assert second_opinion(tmp_path)[0].code == 1
    (tmp_path / "jobgen.yaml").write_text("rules: {jsonschema-disagrees: off}\n")
    done, found = second_opinion(tmp_path)
    assert (done.code, found) == (0, [])


def test_missing_jsonschema_is_an_error_that_says_how_to_install_it(tmp_path):
    """In a Python without the package: a process whose search for it fails."""
    (tmp_path / "good.yaml").write_text(JOB % ("good", ""))
    script = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'jsonschema' else find(name, *rest)\n"
        "from jobgen.cli.main import main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "lint", "--second-opinion", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "`jsonschema` is not installed; run `pip install 'jobgen[second-opinion]'`" in done.stderr


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "file:///etc/hostname"}, "its schema refers to `file:///etc/hostname`"),
        ({"properties": {"spec": {"$ref": "http://127.0.0.1:1/x.json"}}}, "its schema refers to `http://127"),
        ({"$schema": "http://127.0.0.1:1/dialect"}, "its schema is written in the dialect `http://127"),
    ],
)
def test_schema_that_leads_elsewhere_is_given_to_no_tool(binary, tmp_path, schema, reason):
    write_schema(tmp_path, schema)
    _, found = second_opinion(tmp_path)

    assert [entry["rule"] for entry in found] == ["jsonschema-failed", "kubeconform-failed"]
    assert all(f"could not check it: {reason}" in entry["message"] for entry in found)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (
            {"properties": {"kind": {"type": "string", "pattern": r"^\p{Greek}+$"}}},
            "is not a pattern that Python can read",
        ),
        ({"properties": {"spec": {"$ref": "#/nowhere"}}}, "something that does not exist"),
        ({"properties": {"spec": {"type": "thing"}}}, "its schema is not valid"),
    ],
)
def test_schema_that_jsonschema_cannot_use_is_a_finding(without_kubeconform, tmp_path, schema, reason):
    write_schema(tmp_path, schema)
    _, [finding] = second_opinion(tmp_path)

    assert finding["rule"] == "jsonschema-failed"
    assert reason in finding["message"]


def test_endless_check_ends(without_kubeconform, monkeypatch, tmp_path):
    """An expression that Python takes forever to match, and Go does not."""
    write_schema(tmp_path, {"properties": {"metadata": {"properties": {"name": {"pattern": "^(a+)+$"}}}}})
    (tmp_path / "jobs/good.yaml").write_text(JOB % ("a" * 50 + "-b", ""))
    monkeypatch.setattr(tools, "SECONDS", 0.8)
    done, _ = second_opinion(tmp_path)

    assert done.code == 4
    assert "jsonschema did not finish within 1 seconds" in done.err


def test_process_that_ends_early_is_an_error(monkeypatch, tmp_path):
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects/0.json").write_text("{")

    with pytest.raises(jobgen.ToolError, match=r"(?s)jsonschema checked 0 of 1 objects: .*JSONDecodeError"):
        tools.run_jsonschema(tmp_path, [0])


EXPECTED = """\
apiVersion: v1
kind: Pod
metadata: {name: formats, namespace: b, creationTimestamp: yesterday}
spec:
  activeDeadlineSeconds: 99999999999999999999
  priority: 9999999999
  containers: [{name: a, image: "a:1", resources: {limits: {memory: 4GB}}}]
---
apiVersion: v1
kind: Service
metadata: {name: code, namespace: b}
spec: {ports: [{port: 80}, {port: 81, name: b}]}
---
apiVersion: v1
kind: Secret
metadata: {name: bytes, namespace: b}
data: {a: "not base64"}
"""


def test_what_a_schema_cannot_express_is_no_disagreement(binary, tmp_path):
    """The page docs/lint.md lists them."""
    (tmp_path / "a.yaml").write_text(EXPECTED)
    done, found = second_opinion(tmp_path, ".")

    assert found == []
    assert {entry["rule"] for entry in json.loads(done.out)["findings"] if entry["category"] == "schema"} >= {
        "invalid-quantity",
        "invalid-value",
        "missing-field",
        "out-of-range",
        "wrong-type",
    }


VALID = """\
apiVersion: v1
kind: Service
metadata: {name: either, namespace: b, labels: null}
spec: {ports: [{port: 80, name: a, targetPort: http}, {port: 81, name: b, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: quantities, namespace: b}
spec:
  containers:
    - {name: a, image: "a:1", command: null, resources: {limits: {cpu: 1.5, memory: 4Gi, "example.com/gpu": 1}}}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: kept, namespace: b}
spec:
  headGroupSpec: {rayStartParams: {}, template: {metadata: {}, spec: {containers: [{name: a, image: "a:1"}]}}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: AdmissionCheck
metadata: {name: flags}
spec: {controllerName: example.com/a, parameters: {apiGroup: example.com, kind: AbC, name: a}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: whole, namespace: b}
spec: {parallelism: 1.0, template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}}}
"""


def test_valid_objects_of_special_types_are_no_disagreement(binary, tmp_path):
    (tmp_path / "a.yaml").write_text(VALID)
    done, found = second_opinion(tmp_path, ".")

    assert found == []
    assert [entry for entry in json.loads(done.out)["findings"] if entry["category"] == "schema"] == []


@pytest.mark.stress
def test_tools_agree_on_the_corpus(binary):
    folder = shared_folder("corpus")
    done, found = second_opinion(folder, *sorted(path.name for path in folder.iterdir() if "Job" in path.name)[::6])

    assert found == []
    assert "second opinion: jsonschema checked " in done.err


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        (r"^a\z", "a", True),
        ("(?m)^a$", "a\nb", True),
        ("^(?i)ab$", "AB", True),
        ("^[$]$", "$", True),
        (r"^\$$", "$", True),
        (r"^\d$", "٣", False),
        (r"^[]$]$", "$", True),
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern, text, matches):
    assert bool(_compile(pattern).search(text)) == matches


def test_command_line_takes_the_option(tmp_path):
    (tmp_path / "good.yaml").write_text(JOB % ("good", ""))
    done = run_jobgen_text(tmp_path, "lint", "--second-opinion", "good.yaml")

    assert done.returncode == 0
    assert "second opinion: jsonschema checked 1 object\n" in done.stderr


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "registry.example.com/web:1.2.3"}
"""
PATCHED = DEPLOYMENT.replace("replicas: 2", "replicas: 3")
KUSTOMIZATION = {
    "prod/kustomization.yaml": "resources: [../base]\npatches: [{path: p.yaml}]\n",
    "prod/p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 3\n",
    "base/kustomization.yaml": "resources: [web.yaml]\n",
    "base/web.yaml": DEPLOYMENT,
}
needs_shell = pytest.mark.skipif(os.name == "nt", reason="the tool of this test is a shell script")


@pytest.fixture
def kustomize(monkeypatch, tmp_path_factory):
    """The folder of a program that plays kustomize, alone on PATH with what a shell needs."""
    bin_ = install_stand_ins(tmp_path_factory.mktemp("bin"), "kustomize", built=PATCHED)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return bin_


@needs_shell
def test_another_program_builds_each_kustomization_once_and_agrees(kustomize, tmp_path):
    write_files(tmp_path, KUSTOMIZATION)
    done, found = second_opinion(tmp_path, ".")

    assert found == []
    assert read_calls(kustomize) == [f"kustomize build {tmp_path / 'prod'}"]
    assert "second opinion: kustomize built 1 kustomization with 1 object\n" in done.err
    assert done.code == 0


# What the program prints, and the finding: file, line, pointer and message.
OTHER_BUILDS = {
    "another value": (
        PATCHED.replace("replicas: 3", "replicas: 2"),
        (
            "prod/p.yaml",
            5,
            "/spec/replicas",
            "kustomize builds `Deployment web` with something else than jobgen at `/spec/replicas`",
        ),
    ),
    "another type": (
        PATCHED.replace("replicas: 3", 'replicas: "3"'),
        (
            "prod/p.yaml",
            5,
            "/spec/replicas",
            "kustomize builds `Deployment web` with something else than jobgen at `/spec/replicas`",
        ),
    ),
    "another field": (
        PATCHED.replace("spec:\n  replicas", "spec:\n  paused: true\n  replicas"),
        (
            "base/web.yaml",
            6,
            "/spec/paused",
            "kustomize builds `Deployment web` with something else than jobgen at `/spec/paused`",
        ),
    ),
    "another item": (
        PATCHED + '        - {name: side, image: "registry.example.com/web:1.2.3"}\n',
        (
            "base/web.yaml",
            12,
            "/spec/template/spec/containers/1",
            "kustomize builds `Deployment web` with something else than jobgen at `/spec/template/spec/containers/1`",
        ),
    ),
    "another object": (
        f"{PATCHED}---\napiVersion: v1\nkind: Service\nmetadata: {{name: web}}\n",
        ("prod/kustomization.yaml", 1, "", "kustomize builds `Service web`, but jobgen does not"),
    ),
    "no object": ("", ("base/web.yaml", 1, "", "jobgen builds `Deployment web`, but kustomize does not")),
}


@pytest.mark.parametrize("name", sample(OTHER_BUILDS, 3))
@needs_shell
def test_what_another_program_builds_differently_is_a_warning(kustomize, tmp_path, name):
    built, expected = OTHER_BUILDS[name]
    write_files(tmp_path, KUSTOMIZATION)
    (kustomize / "built.yaml").write_text(built)
    done, [finding] = second_opinion(tmp_path, ".")

    assert (finding["rule"], finding["severity"]) == ("kustomize-disagrees", "warning")
    assert (finding["file"], finding["line"], finding["pointer"] or "", finding["message"]) == expected
    assert done.code == 0


@needs_shell
def test_a_build_that_another_program_refuses_or_accepts_is_a_warning(kustomize, tmp_path):
    write_files(tmp_path, KUSTOMIZATION)
    (kustomize / "fails").write_text("Error: accumulating resources: no\n")
    _, [refused] = second_opinion(tmp_path, ".")
    write_files(tmp_path, {"prod/kustomization.yaml": "resources: [../base]\npatches: [{path: q.yaml}]\n"})
    _, agreed = second_opinion(tmp_path, ".")
    (kustomize / "fails").unlink()
    _, [accepted] = second_opinion(tmp_path, ".")
    (kustomize / "dies").touch()
    _, [died] = second_opinion(tmp_path, ".")

    assert refused["message"] == "jobgen builds this kustomization, but kustomize does not: no"
    assert agreed == []
    assert accepted["message"].startswith("kustomize builds this kustomization, but jobgen does not: `q.yaml` does not")
    assert (died["rule"], died["file"]) == ("kustomize-failed", "prod/kustomization.yaml")


@needs_shell
def test_no_other_program_builds_what_is_remote_or_compared_with_a_commit(kustomize, tmp_path):
    write_files(tmp_path, KUSTOMIZATION)
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    compared, _ = second_opinion(tmp_path, ".", since="HEAD")
    write_files(tmp_path, {"prod/kustomization.yaml": "resources: [../base, 'https://example.com/a.yaml']\n"})
    remote, _ = second_opinion(tmp_path, ".")

    assert read_calls(kustomize) == []
    assert "second opinion: kustomize checked nothing: with `--since`, only jobgen builds" in compared.err
    assert "second opinion: kustomize built 0 kustomizations with 0 objects\n" in remote.err


def test_missing_kustomize_is_said_where_there_are_kustomizations(without_kubeconform, tmp_path):
    (tmp_path / "good.yaml").write_text(JOB % ("good", ""))
    without, _ = second_opinion(tmp_path, ".")
    write_files(tmp_path, KUSTOMIZATION)
    done, _ = second_opinion(tmp_path, ".")

    assert "kustomize" not in without.err
    assert "second opinion: kustomize checked nothing: neither kustomize nor kubectl is on PATH; run `pip" in done.err


def test_objects_of_builds_that_both_reject_are_no_disagreement(without_kubeconform, tmp_path):
    """Each build has the fault, which jobgen reports once, in the patch."""
    patch = {"base/p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replica: 1}\n"}
    base = {
        "base/kustomization.yaml": "resources: [web.yaml]\npatches: [{path: p.yaml}]\n",
        "base/web.yaml": DEPLOYMENT,
    }
    overlays = {f"{env}/kustomization.yaml": f"resources: [../base]\nnamespace: {env}\n" for env in ("dev", "prod")}
    write_files(tmp_path, base | patch | overlays)
    done, found = second_opinion(tmp_path, ".")

    assert found == []
    assert [each["rule"] for each in json.loads(done.out)["findings"]] == ["unknown-field"]


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_kubectl_builds_what_jobgen_builds(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f"{Path(KUBECTL).parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    generator = "configMapGenerator: [{name: settings, literals: [a=1]}]\ncommonLabels: {team: ml}\nnamePrefix: a-\n"
    write_files(tmp_path, KUSTOMIZATION | {"dev/kustomization.yaml": f"resources: [../base]\n{generator}"})
    done, found = second_opinion(tmp_path, ".")

    assert found == []
    assert "second opinion: kubectl built 2 kustomizations with 3 objects\n" in done.err
