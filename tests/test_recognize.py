"""What a file is, decided before it is judged: each sort, ways to correct a guess, and values for variables."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from command import run_jobgen, run_jobgen_text
from hypothesis import given
from hypothesis import strategies as st

from jobgen import cache
from jobgen.api.lint import lint_request
from jobgen.api.lint_answers import LINT, name_lint
from jobgen.api.lint_files import LintRequest
from jobgen.recognize import SORTS
from jobgen.recognize.substituted import substitute
from jobgen.repo.root import open_store

DOCS = Path(__file__).parent.parent / "docs"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: ml
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:1.2.3
"""
PARTIAL = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n"


def write_all(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def lint(folder: Path, *arguments: str) -> tuple[int, dict]:
    done = run_jobgen(folder, "lint", "--no-cache", "--format", "json", *(arguments or (".",)))
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def list_taken(report: dict) -> dict[str, str]:
    return {each["file"]: each["takenFor"] for each in report.get("files", ())}


def list_errors(report: dict) -> list[tuple[str, str]]:
    return [(each["file"], each["rule"]) for each in report["findings"] if each["severity"] == "error"]


NOT_JUDGED = [
    ("testdata", "internal/testdata/out.yaml", PARTIAL, "test data"),
    ("golden name", "cases/expected-web.yaml", PARTIAL, "test data"),
    ("kuttl assertion", "e2e/01-assert.yaml", PARTIAL, "test data"),
    ("matchers of a test", "cases/a.yaml", PARTIAL.replace("web}", '"$glob:web-*"}'), "test data"),
    ("Go template", "deploy/a.yaml", PARTIAL.replace("{name: web}", "{name: {{ .Name }}}"), "template"),
    ("Jinja statement", "deploy/a.yaml", f"{PARTIAL}{{% if x %}}\nb: 1\n{{% endif %}}\n", "template"),
    ("block variable", "deploy/a.yaml", f"{PARTIAL}${{EXTRA_BLOCK}}\n", "template"),
    ("template of an Ansible role", "roles/x/templates/a.yaml", PARTIAL, "template"),
    (
        "Template of OpenShift",
        "x/a.yaml",
        "apiVersion: v1\nkind: Template\nmetadata: {name: a}\nobjects: []\n",
        "template",
    ),
    ("filled by a program", "x/a.yaml", PARTIAL.replace("web}", '"FILLED_BY_THE_VALIDATOR"}'), "operator asset"),
    ("filled by the operator", "x/a.yaml", PARTIAL.replace("web}", '"FILLED BY THE OPERATOR"}'), "operator asset"),
    ("directive of a patch", "x/a.yaml", PARTIAL.replace("spec:", "$patch: delete\nspec:"), "kustomize fragment"),
    ("JSON 6902", "x/a.yaml", "- op: add\n  path: /spec/replicas\n  value: 2\n", "kustomize fragment"),
    ("tasks of Ansible", "x/a.yaml", "- hosts: all\n  tasks:\n    - kind: x\n", "config of another program"),
    ("list in JSON", "x/a.json", '[{"kind": "x", "spec": {}}]', "config of another program"),
    (
        "no metadata",
        "x/a.yaml",
        "apiVersion: config.example.org/v1\nkind: XConfig\ninit: {}\n",
        "config of another program",
    ),
    (
        "version of a program",
        "x/a.yaml",
        "apiVersion: 0.3.0\nkind: ksonnet.io/app\nname: a\n",
        "config of another program",
    ),
    (
        "version of a program in JSON",
        "x/a.yaml",
        '{\n  "name": "a",\n  "apiVersion": "0.0.1",\n  "kind": "ksonnet.io/parts"\n}\n',
        "config of another program",
    ),
    (
        "policy of the scheduler",
        "x/a.json",
        '{\n  "kind": "Policy",\n  "apiVersion": "v1",\n  "predicates": []\n}\n',
        "config of another program",
    ),
    (
        "pods of Spark",
        "x/a.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n    - name: spark-kubernetes-driver\n",
        "operator asset",
    ),
    (
        "version of a format",
        "x/a.yaml",
        "version: 1\nmetadata: {name: a}\nentries: []\n",
        "config of another program",
    ),
    (
        "Butane",
        "x/a.yaml",
        "variant: openshift\nversion: 4.16.0\nmetadata: {name: a}\nstorage: {}\n",
        "config of another program",
    ),
    (
        "IstioOperator",
        "x/a.yaml",
        "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec: {}\n",
        "config of another program",
    ),
]


@pytest.mark.parametrize(
    ("path", "text", "sort"), [case[1:] for case in NOT_JUDGED], ids=[case[0] for case in NOT_JUDGED]
)
def test_a_file_that_is_no_finished_object_is_not_judged(tmp_path: Path, path: str, text: str, sort: str) -> None:
    write_all(tmp_path, {path: text, "good.yaml": DEPLOYMENT})
    _, report = lint(tmp_path)

    assert list_taken(report) == {path: sort}
    assert list_errors(report) == []
    assert report["summary"]["skipped"] == {sort: 1}
    assert all(each["why"] for each in report["files"])


@pytest.mark.parametrize(
    "path", ["a.yaml", "deploy/web.yaml", "tests/a.yaml", "examples/b.yaml", "manifests/x.yaml", "error-pages.yaml"]
)
def test_an_object_is_judged_wherever_it_is(tmp_path: Path, path: str) -> None:
    write_all(tmp_path, {path: PARTIAL})
    code, report = lint(tmp_path)

    assert code == 1
    assert "missing-field" in {rule for _, rule in list_errors(report)}
    assert list_taken(report) == {}


@pytest.mark.parametrize(
    "text",
    [
        PARTIAL.replace("metadata:", "metdata:"),
        PARTIAL.replace("apps/v1", "apps/v1beta9"),
        PARTIAL.replace("spec: {replicas: 3}", "spec: {replicas: [}"),
        "apiVersion: v1\nkind: Pod\nspec: {containers: []}\n",
        "- apiVersion: v1\n  kind: Pod\n",
        PARTIAL.replace("apps/v1", "apps.v1"),
        f"# {{{{ x }}}}\n{PARTIAL}kind: Deployment\n",
        f"{PARTIAL}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a: |\n    $patch: delete\n",
        f"# filled in by the operator\n{PARTIAL}",
    ],
)
def test_a_mistake_does_not_make_an_object_something_else(tmp_path: Path, text: str) -> None:
    write_all(tmp_path, {"a.yaml": text})
    code, report = lint(tmp_path)

    assert code == 1
    assert list_errors(report)


def test_assets_are_those_of_programs_in_go(tmp_path: Path) -> None:
    write_all(
        tmp_path,
        {"op/assets/a.yaml": PARTIAL, "op/Makefile": "build:\n\tgo build ./...\n", "web/assets/b.yaml": PARTIAL},
    )
    _, report = lint(tmp_path)

    assert list_taken(report) == {"op/assets/a.yaml": "operator asset"}
    assert {file for file, _ in list_errors(report)} == {"web/assets/b.yaml"}


def test_a_bundle_is_installed_by_olm(tmp_path: Path) -> None:
    metadata = {"bundle/metadata/annotations.yaml": "annotations: {a: b}\n"}
    write_all(tmp_path, {"bundle/manifests/a.yaml": PARTIAL, "a.yaml": DEPLOYMENT} | metadata)
    _, report = lint(tmp_path)

    assert list_taken(report)["bundle/manifests/a.yaml"] == "operator asset"
    assert list_errors(report) == []


def test_settings_correct_a_guess(tmp_path: Path) -> None:
    settings = "files:\n  object: [testdata/]\n  template: ['*.in.yaml']\n"
    write_all(tmp_path, {"testdata/a.yaml": PARTIAL, "b.in.yaml": PARTIAL, "jobgen.yaml": settings})
    _, report = lint(tmp_path)

    assert {file for file, _ in list_errors(report)} == {"testdata/a.yaml"}
    assert list_taken(report) == {"b.in.yaml": "template"}


def test_a_correction_must_be_a_sort(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.yaml": DEPLOYMENT, "jobgen.yaml": "files: {objects: [a.yaml]}\n"})
    done = run_jobgen_text(tmp_path, "lint")

    assert done.returncode == 1
    assert done.stdout.startswith("jobgen.yaml:1:9: error: `objects` is not a field of `files`; did you mean `object`?")


def test_strict_files_report_what_is_not_judged(tmp_path: Path) -> None:
    write_all(tmp_path, {"testdata/a.yaml": PARTIAL, "values.yaml": "a: 1\n", "b.yaml": DEPLOYMENT})
    code, report = lint(tmp_path, ".", "--strict-files")

    assert code == 1
    assert list_errors(report) == [("testdata/a.yaml", "unjudged-file"), ("values.yaml", "unjudged-file")]


def test_explain_files_lists_every_file(tmp_path: Path) -> None:
    write_all(tmp_path, {"testdata/a.yaml": PARTIAL, "b.yaml": DEPLOYMENT})
    done = run_jobgen_text(tmp_path, "lint", ".", "--explain-files", "--no-cache")

    assert done.stdout.splitlines()[-2:] == [
        "b.yaml: object: nothing says that it is anything else",
        "testdata/a.yaml: test data: it is in a folder `testdata`",
    ]
    _, report = lint(tmp_path, ".", "--explain-files")
    assert list_taken(report) == {"b.yaml": "object", "testdata/a.yaml": "test data"}


FOREIGN = {
    "policies/a.yaml": "apiVersion: example.org/v1\nkind: Rule\nmetadata: {name: a}\nspec: {}\n",
    "schemas/x/a.yaml": "a: 1\n",
    "teams/a.yaml": "members: [x]\n",
    "runtimes/a.yaml": DEPLOYMENT,
    "overlays/prod/kustomization.yaml": "resources: [../../base]\n",
    "base/kustomization.yaml": "resources: [a.yaml]\n",
    "base/a.yaml": DEPLOYMENT,
}


@pytest.mark.parametrize("more", [{}, {"jobs/a.yaml": DEPLOYMENT}])
def test_folders_that_are_not_those_of_jobgen_are_like_any_other(tmp_path: Path, more: dict[str, str]) -> None:
    write_all(tmp_path, FOREIGN | more)
    code, report = lint(tmp_path)

    assert (code, list_errors(report)) == (0, [])
    assert report["summary"]["objects"] == 3 + ("jobs/a.yaml" in more)


def test_overlays_of_kustomize_are_not_those_of_jobgen(tmp_path: Path) -> None:
    kustomize = {path: text for path, text in FOREIGN.items() if path.startswith(("base/", "overlays/"))}
    write_all(tmp_path, kustomize | {"jobgen.yaml": "rules: {missing-schema: off}\n"})
    code, report = lint(tmp_path)

    assert (code, list_errors(report)) == (0, [])
    assert report["summary"]["objects"] == 1


def test_variables_that_a_program_fills_in_are_one_info(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace("namespace: ml", "namespace: ${NAMESPACE}").replace("web:1.2.3", "web:${TAG}")
    write_all(tmp_path, {"a.yaml": text})
    code, report = lint(tmp_path)

    assert code == 0
    assert [(each["rule"], each["severity"]) for each in report["findings"]] == [("unjudged-variable", "info")]
    assert "`${NAMESPACE}`" in report["findings"][0]["message"]


def test_other_faults_beside_variables_are_errors(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace("namespace: ml", "namespace: ${NAMESPACE}").replace("selector:", "selektor:")
    write_all(tmp_path, {"a.yaml": text})
    code, report = lint(tmp_path)

    assert code == 1
    assert {rule for _, rule in list_errors(report)} == {"unknown-field"}


@pytest.mark.parametrize(
    ("script", "rule"),
    [("sed -i s/TRAIN_QUEUE/$NS/ a.yaml", "unjudged-variable"), ("echo TRAIN_QUEUE", "invalid-name")],
)
def test_a_script_that_replaces_capitals(tmp_path: Path, script: str, rule: str) -> None:
    write_all(tmp_path, {"a.yaml": DEPLOYMENT.replace("namespace: ml", "namespace: TRAIN_QUEUE"), "run.sh": script})
    _, report = lint(tmp_path)

    assert [each["rule"] for each in report["findings"]] == [rule]


def test_a_key_that_kustomize_accepts_twice(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.yaml": DEPLOYMENT, "kustomization.yaml": "resources: [b.yaml]\nresources: [a.yaml]\n"})
    code, report = lint(tmp_path)

    assert code == 0
    assert [(each["rule"], each["severity"]) for each in report["findings"]] == [("duplicate-key", "warning")]


@pytest.mark.parametrize(
    "path", ["a.yaml.template", "a.yaml-template", "x/a.tpl.yaml", ".tekton/a.yaml", ".github/x/a.yaml"]
)
def test_a_whole_object_in_an_unusual_place_is_judged(tmp_path: Path, path: str) -> None:
    write_all(tmp_path, {path: DEPLOYMENT.replace("name: web\n          image", "name: ${NAME}\n          imagee")})
    _, report = lint(tmp_path)

    assert list_errors(report) == [(path, "unknown-field")]


def test_a_template_by_its_name_is_not_judged(tmp_path: Path) -> None:
    write_all(
        tmp_path, {"a.yaml.template": DEPLOYMENT.replace("name: web", "name: '{{ name }}'"), "b.yaml": DEPLOYMENT}
    )
    _, report = lint(tmp_path)

    assert list_taken(report) == {"a.yaml.template": "template"}


def test_objects_of_a_component_that_no_build_uses_are_judged(tmp_path: Path) -> None:
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [a.yaml]\n"
    write_all(tmp_path, {"kustomization.yaml": component, "a.yaml": DEPLOYMENT.replace("image:", "imagee:")})
    _, report = lint(tmp_path)

    assert ("a.yaml", "unknown-field") in list_errors(report)


def test_a_build_writes_the_namespace_of_an_account_of_a_component(tmp_path: Path) -> None:
    binding = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: a}
subjects: [{kind: ServiceAccount, name: a}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
"""
    write_all(tmp_path, {"c/a.yaml": binding})
    assert list_errors(lint(tmp_path)[1]) == [("c/a.yaml", "missing-field")]

    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [a.yaml]\n"
    write_all(tmp_path, {"c/kustomization.yaml": component})
    assert list_errors(lint(tmp_path)[1]) == []


def test_a_file_among_patches_and_a_patch_of_a_command_are_no_objects(tmp_path: Path) -> None:
    files = {
        "kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p/one.yaml}, {path: p/two.yaml}]\n",
        "a.yaml": DEPLOYMENT,
        "p/one.yaml": PARTIAL.replace("web}", "web, namespace: ml}"),
        "p/two.yaml": PARTIAL.replace("web}", "web, namespace: ml}"),
        "p/three.yaml": PARTIAL,
        "q/sa.patch.yaml": "apiVersion: v1\nkind: ServiceAccount\nimagePullSecrets: [{name: a}]\n",
        "q/README.md": 'kubectl patch sa default --patch "$(cat sa.patch.yaml)"\n',
    }
    write_all(tmp_path, files)
    _, report = lint(tmp_path)

    taken = list_taken(report)
    assert [taken[path] for path in ("p/three.yaml", "q/sa.patch.yaml")] == ["kustomize fragment"] * 2
    assert list_errors(report) == []


def test_variables_that_a_broken_build_would_set_are_one_info(tmp_path: Path) -> None:
    kustomization = (
        "resources: [a.yaml]\nconfigMapGenerator: [{name: c, envs: [params.env]}]\nvars:\n"
        "- name: cpu\n  objref: {apiVersion: v1, kind: ConfigMap, name: c}\n  fieldref: {fieldpath: data.cpu}\n"
    )
    text = f"{DEPLOYMENT}          resources: {{requests: {{cpu: $(cpu), memory: $(other)}}}}\n"
    write_all(tmp_path, {"kustomization.yaml": kustomization, "a.yaml": text})
    _, report = lint(tmp_path)

    assert sorted(list_errors(report)) == [
        ("a.yaml", "invalid-quantity"),
        ("kustomization.yaml", "kustomization-file-missing"),
    ]
    assert [each["line"] for each in report["findings"] if each["rule"] == "unjudged-variable"] == [14]


REPLACED = """\
resources: [a.yaml]
configMapGenerator: [{name: c, envs: [params.env]}]
replacements:
- source: {kind: ConfigMap, name: c, fieldPath: data.tag}
  targets:
  - select: {kind: Deployment}
    fieldPaths: [metadata.labels.tag]
"""


def test_values_that_a_broken_build_would_replace_are_one_info(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace("namespace: ml", "namespace: ml\n  labels: {tag: AUTOMATIC REPLACE, other: not a label}")
    write_all(tmp_path, {"kustomization.yaml": REPLACED, "a.yaml": text})
    _, report = lint(tmp_path)

    assert sorted(list_errors(report)) == [
        ("a.yaml", "invalid-label"),
        ("kustomization.yaml", "kustomization-file-missing"),
    ]
    assert [each["message"] for each in report["findings"] if each["rule"] == "unjudged-variable"] == [
        "`${tag}` is filled in before the file is applied, so these values were not checked"
    ]


def test_a_source_that_is_in_no_complete_build_is_an_error(tmp_path: Path) -> None:
    text = REPLACED.replace("envs: [params.env]", "literals: [a=b]")
    write_all(tmp_path, {"kustomization.yaml": text, "a.yaml": DEPLOYMENT})

    assert list_errors(lint(tmp_path)[1]) == [("kustomization.yaml", "kustomize-build-fails")]


MOUNTED = f"{DEPLOYMENT}          volumeMounts: [{{name: data, mountPath: /data}}]\n"


@pytest.mark.parametrize(
    ("patch", "severity"),
    [
        ("[{path: env/p.yaml}]", "info"),
        ("[{path: env/p.yaml, target: {kind: Deployment}}]", "info"),
        ("[{path: env/p.yaml, target: {kind: Service}}]", "error"),
        ("[{path: p.yaml}]", "error"),
    ],
)
def test_what_a_patch_may_add_that_does_not_exist_is_an_info(tmp_path: Path, patch: str, severity: str) -> None:
    files = {
        "kustomization.yaml": f"resources: [base]\npatches: {patch}\n",
        "base/kustomization.yaml": "resources: [a.yaml]\n",
        "base/a.yaml": MOUNTED,
        "p.yaml": DEPLOYMENT.replace("image:", "# image:"),
    }
    write_all(tmp_path, files)
    _, report = lint(tmp_path)

    found = [(each["file"], each["severity"]) for each in report["findings"] if each["rule"] == "unknown-volume"]
    assert found == [("base/a.yaml", severity)]


def test_a_key_of_a_file_that_does_not_exist_is_not_missing(tmp_path: Path) -> None:
    text = f"""{DEPLOYMENT}          volumeMounts: [{{name: c, mountPath: /etc/a.ini, subPath: a.ini}}]
      volumes: [{{name: c, configMap: {{name: c}}}}]
"""
    kustomization = "resources: [a.yaml]\nconfigMapGenerator: [{name: c, files: [a.ini=x/y.ini], literals: [a=b]}]\n"
    write_all(tmp_path, {"kustomization.yaml": kustomization, "a.yaml": text})

    assert list_errors(lint(tmp_path)[1]) == [("kustomization.yaml", "kustomization-file-missing")]


def test_words_of_a_template(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace("namespace: ml", "namespace: service_namespace")
    write_all(tmp_path, {"template.yaml": text, "b.yaml": text.replace("name: web", "name: b", 1)})
    _, report = lint(tmp_path)

    assert list_errors(report) == [("b.yaml", "invalid-name")]


def test_an_argument_of_a_template_is_not_empty(tmp_path: Path) -> None:
    command = "accelerate launch --num_machines=$NODES --num_processes=1 --main_process_ip=a train.py"
    text = f"{DEPLOYMENT}          command: [bash, -c, '{command}']\n"
    write_all(tmp_path, {"a.yaml-template": text, "a.yaml": text.replace("name: web", "name: b", 1)})
    _, report = lint(tmp_path)

    assert list_errors(report) == [("a.yaml", "launch-refused")]


def test_a_field_is_not_missing_because_a_variable_is_its_value(tmp_path: Path) -> None:
    text = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a}
spec: {defaultBackend: {service: {name: a, port: {number: "${PORT}"}}}}
"""
    write_all(tmp_path, {"a.yaml": text})
    _, report = lint(tmp_path)

    assert [each["rule"] for each in report["findings"]] == ["unjudged-variable"]


AUTOSCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a}
spec: {minReplicas: 0, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}
"""


@pytest.mark.parametrize("line", ["feature-gates: HPAScaleToZero=true", "HPAScaleToZero: true"])
def test_a_feature_gate_that_the_repository_turns_on(tmp_path: Path, line: str) -> None:
    write_all(tmp_path, {"a.yaml": AUTOSCALER})
    assert list_errors(lint(tmp_path)[1]) == [("a.yaml", "out-of-range")]

    write_all(tmp_path, {"talos/cluster.yaml.j2": f"cluster:\n  apiServer:\n    extraArgs:\n      {line}\n"})
    assert list_errors(lint(tmp_path)[1]) == []


def test_kinds_of_openshift(tmp_path: Path) -> None:
    write_all(
        tmp_path, {"a.yaml": "apiVersion: user.openshift.io/v1\nkind: Group\nmetadata: {name: demo_team}\nusers: []\n"}
    )
    _, report = lint(tmp_path)

    assert [(each["severity"], each["rule"]) for each in report["findings"]] == [("info", "missing-schema")]
    assert "there is no CRD to add" in report["findings"][0]["message"]


ROUTE = """\
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: a}
spec: {host: '', path: '', to: {kind: Service, name: a, weight: 100}, tls: {termination: Reencrypt}}
"""


def test_a_host_that_openshift_generates(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.yaml": ROUTE})
    [finding] = [each for each in lint(tmp_path)[1]["findings"] if each["severity"] == "error"]

    assert finding["pointer"] == "/spec/tls/termination"


PARENT = """apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 1h
  prune: true
  sourceRef: {kind: %s, name: flux-system}
  path: ./apps/all
  patches:
    - target: {kind: Kustomization, group: kustomize.toolkit.fluxcd.io}
      patch: |
        apiVersion: kustomize.toolkit.fluxcd.io/v1
        kind: Kustomization
        metadata: {name: all}
        spec: {interval: 1h, prune: true}
"""
CHILD = """apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: flux-system}
spec: {sourceRef: {kind: ExternalArtifact, name: web}, path: ./apps/web}
"""


@pytest.mark.parametrize(("kind", "count"), [("OCIRepository", 0), ("GitRepository", 2)])
def test_an_artifact_has_a_part_of_the_repository(tmp_path: Path, kind: str, count: int) -> None:
    files = {
        "kubernetes/clusters/one/apps.yaml": PARENT % kind,
        "kubernetes/apps/all/kustomization.yaml": "resources: [web.yaml]\n",
        "kubernetes/apps/all/web.yaml": CHILD,
    }
    write_all(tmp_path, files)
    found = [rule for _, rule in list_errors(lint(tmp_path)[1])]

    assert found.count("missing-field") == count


SEALED = """apiVersion: ENC[AES256_GCM,data:TBo=,iv:NmQ=,tag:a1w+Lh==,type:str]
kind: ENC[AES256_GCM,data:5g8R,iv:TxA=,tag:rUpd/z==,type:str]
metadata: {name: "ENC[AES256_GCM,data:l,iv:L,tag:V,type:str]"}
sops: {mac: "ENC[AES256_GCM,data:a,iv:b,tag:c,type:str]"}
"""


@pytest.mark.parametrize("more", [{}, {"kustomization.yaml": "resources: [a.sops.yaml]\n"}])
def test_an_object_whose_kind_is_encrypted_is_not_judged(tmp_path: Path, more: dict[str, str]) -> None:
    write_all(tmp_path, {"a.sops.yaml": SEALED, "b.yaml": DEPLOYMENT, **more})
    _, report = lint(tmp_path)

    assert report["findings"] == []
    assert more or list_taken(report) == {"a.sops.yaml": "template"}


def test_a_variable_in_one_of_several_forms(tmp_path: Path) -> None:
    text = """apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: a}
spec:
  gatewayClassName: a
  addresses:
    - type: IPAddress
      value: %s
  listeners: [{name: http, protocol: HTTP, port: 80}]
"""
    write_all(tmp_path, {"a.yaml": text % "${ADDRESS}", "b.yaml": text.replace("name: a}", "name: b}") % "no address"})
    _, report = lint(tmp_path)

    assert list_errors(report) == [("b.yaml", "invalid-form")]
    assert [each["file"] for each in report["findings"] if each["rule"] == "unjudged-variable"] == ["a.yaml"]


def test_metadata_at_the_top_of_an_object(tmp_path: Path) -> None:
    text = """apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
labels: {a: b}
metadata: {name: a}
spec: {containers: [{name: a, image: "example.com/a:1"}]}
"""
    write_all(tmp_path, {"a.yaml": text})
    messages = [each["message"] for each in lint(tmp_path)[1]["findings"] if each["rule"] == "unknown-field"]

    assert messages == ["`labels` is not a field of `ServingRuntime`; it belongs in `metadata`"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (DEPLOYMENT.replace("apps/v1", "1.0"), "wrong-type"),
        (DEPLOYMENT.replace("apps/v1", "1e3"), "wrong-type"),
        (f"%YAML 1.2\n---\n{DEPLOYMENT}", "yaml-syntax"),
    ],
)
def test_a_fault_in_the_head_makes_an_object_nothing_else(tmp_path: Path, text: str, rule: str) -> None:
    write_all(tmp_path, {"a.yaml": text})
    assert list_errors(lint(tmp_path)[1]) == [("a.yaml", rule)]


def test_a_link_to_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.yaml": DEPLOYMENT})
    (tmp_path / "base").symlink_to("../gone")
    (found,) = lint(tmp_path)[1]["findings"]

    assert (found["file"], found["severity"], found["rule"]) == ("base", "warning", "unreadable-file")


def test_a_renamed_group_is_named(tmp_path: Path) -> None:
    text = "apiVersion: traefik.containo.us/v1alpha1\nkind: IngressRoute\nmetadata: {name: a}\n"
    write_all(tmp_path, {"a.yaml": text})
    (found,) = lint(tmp_path)[1]["findings"]

    assert (found["severity"], found["rule"]) == ("warning", "old-api-version")
    assert "as one of `traefik.io`" in found["message"]


def test_kinds_of_one_group_without_schemas_are_one_finding(tmp_path: Path) -> None:
    text = "apiVersion: example.org/v1\nkind: {}\nmetadata: {{name: a}}\n"
    write_all(tmp_path, {f"{kind.lower()}.yaml": text.format(kind) for kind in ("Thing", "Gadget", "Widget")})
    _, report = lint(tmp_path)

    (found,) = report["findings"]
    assert "no schemas for `Gadget`, `Thing` and `Widget` of `example.org`" in found["message"]
    assert "the fields of 3 objects in 3 files were not checked" in found["message"]


def test_builds_with_one_remote_address_are_one_finding(tmp_path: Path) -> None:
    text = "resources: ['https://example.org/a?ref=main']\n"
    write_all(tmp_path, {f"{name}/kustomization.yaml": text for name in "abc"})
    _, report = lint(tmp_path)

    assert [each["message"].rpartition(" in ")[2] for each in report["findings"]] == ["3 kustomizations"]


@pytest.mark.parametrize(("path", "severity"), [("examples/a.yaml", "info"), ("deploy/a.yaml", "warning")])
def test_tags_of_images_in_examples(tmp_path: Path, path: str, severity: str) -> None:
    synced = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  project: default\n"
    synced += "  destination: {name: in-cluster}\n  source: {repoURL: 'https://example.com/a/b.git', path: deploy}\n"
    write_all(tmp_path, {path: DEPLOYMENT.replace(":1.2.3", ":latest"), "app.yaml": synced})
    assert [each["severity"] for each in lint(tmp_path)[1]["findings"]] == [severity]


@pytest.mark.parametrize(("script", "severity"), [("deploy.sh", "info"), ("README.md", "error"), ("other.sh", "error")])
def test_a_script_that_replaces_a_placeholder(tmp_path: Path, script: str, severity: str) -> None:
    line = "sed s/OTHER_TEXT/a/ a.yaml" if script == "other.sh" else "sed -i s/your-namespace/$NS/ a.yaml"
    write_all(tmp_path, {"a.yaml": DEPLOYMENT.replace("namespace: ml", "namespace: <your-namespace>"), script: line})
    _, report = lint(tmp_path)

    assert [each["severity"] for each in report["findings"]] == [severity]


def test_the_page_lists_every_sort() -> None:
    page = (DOCS / "any_repository.md").read_text("utf-8")

    for sort in SORTS:
        assert f"| `{sort.name}` | {sort.treatment} | {sort.meaning} |\n" in page
        assert not sort.setting or f"\n  {sort.setting}: [" in page


# Variables that are filled in with values of the repository


VALUES = {"name": "trainer", "path": "/data/sets/a.b.tar", "UPPER": "ABC", "empty": "", "é1": "x"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$name and $(name)", "$name and $(name)"),
        ("${name}-0", "trainer-0"),
        ("${é1}", "x"),
        ("$${name} $$ $$$${name}", "${name} $ $${name}"),
        ("a$${b${name}", "a${btrainer"),
        ("${none}|", "|"),
        ("${none:-a b}|${none:=c}|${none=d}|${name:-e}|${empty:-f}", "a b|c|d|trainer|f"),
        # Flux takes all of these for a default.
        ("${none:?fails}|${name:+other}", "fails|trainer"),
        ("${none:-${name}-x}", "trainer-x"),
        ("${none:=pre${UPPER,,}post}", "preabcpost"),
        ("${#name}|${#none}", "7|0"),
        ("${name^}|${name^^}|${UPPER,}|${UPPER,,}", "Trainer|TRAINER|aBC|abc"),
        ("${name:2}|${name:1:3}|${name:-2}|${name:20}|${name:x}", "ainer|rai|trainer||trainer"),
        ("${path#*/}|${path##*/}|${path%.*}|${path%%.*}", "data/sets/a.b.tar|a.b.tar|/data/sets/a.b|/data/sets/a"),
        ("${path/a/A}|${path//a/A}", "/dAta/sets/a.b.tar|/dAtA/sets/A.b.tAr"),
        ("${path//\\//-}|${name/t/}", "-data-sets-a.b.tar|rainer"),
        ("${name/#tr/f}|${name/%er/ing}|${name/#x/y}", "fainer|training|trainer"),
    ],
)
def test_text(text: str, expected: str) -> None:
    assert substitute(text, lambda name: VALUES.get(name, "")).text == expected


@pytest.mark.parametrize(
    "text",
    ["${list[@]}", "${name", "${}", "${!name}", "${name-x}", "${name@Q}", "${#}", "${name#}", "${name:}", "${ name }"],
)
def test_unreadable_text(text: str) -> None:
    found = substitute(f"a {text} b", lambda _: "x")
    assert found.fault.startswith("${")
    assert found.text == f"a {text} b"


@pytest.mark.parametrize("text", ["${a}", "${a:-b}", "${a:-${b}}", "${a/${b}/c}", "${#a}", "${a^^}"])
def test_unknown_stays(text: str) -> None:
    assert substitute(f"x{text}y", lambda _: None).text == f"x{text}y"


@given(st.text(alphabet="${}:-=#%/^,ab\\ \n", max_size=60))
def test_text_without_values_stays(text: str) -> None:
    """What is not known changes nothing, except for escapes."""
    found = substitute(text, lambda _: None)
    assert found.text == text if found.fault else found.text == text.replace("$$", "$")


@given(st.text(alphabet="${}:-=#%/^,ab\\ \n", max_size=60))
def test_text_ends(text: str) -> None:
    found = substitute(text, lambda name: name * 2)
    assert found.fault or "${" not in text or found.text != text or "$$" in text or "${#" in text


def test_hostile_text() -> None:
    assert substitute("${a:-" * 5_000, lambda _: "").fault
    assert substitute("${a//a/" + "b" * 10_000 + "}", lambda _: "a" * 10_000).text
    assert substitute("${a%%" + "*a" * 500 + "}", lambda _: "a" * 1_900).text
    assert substitute("${a}" * 100_000, lambda _: "a" * 100).fault


FLUX = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: flux-system}
spec:
  interval: 10m
  prune: true
  path: ./apps/web
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild:
    substitute:
      APP: web
      REPLICAS: "2"
"""
TEMPLATE = DEPLOYMENT.replace("name: web", "name: ${APP}", 1).replace("spec:\n", "spec:\n  replicas: ${REPLICAS}\n", 1)
KUSTOMIZATION = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [web.yaml]\n"
SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: flux-system}
data: {REPLICAS: many}
"""
SOURCE = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: NAME, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/NAME"}
---
"""


def list_found(report: dict) -> list[tuple[str, int, str, str]]:
    return [
        (each["file"], each["line"], each["severity"], each["rule"])
        for each in report["findings"]
        if each["rule"] in ("wrong-type", "unjudged-variable", "flux-substitution-fails", "missing-field")
    ]


@pytest.mark.parametrize("is_built", [True, False], ids=["kustomization", "generated"])
class TestFlux:
    """The folder has a kustomization, or Flux generates one."""

    def lint(self, folder: Path, flux: str, template: str, *, is_built: bool, **more: str) -> dict:
        files = {"clusters/a/web.yaml": flux, "apps/web/web.yaml": template}
        files |= {"apps/web/kustomization.yaml": KUSTOMIZATION} if is_built else {}
        write_all(folder, files | {name.replace("_", "/") + ".yaml": text for name, text in more.items()})
        return lint(folder)[1]

    def test_values_are_filled_in(self, tmp_path: Path, is_built: bool) -> None:
        report = self.lint(tmp_path, FLUX, TEMPLATE, is_built=is_built)
        assert list_found(report) == []
        shown = {each["file"]: each["why"] for each in report["files"]}
        assert "clusters/a/web.yaml substitutes its variables" in shown["apps/web/web.yaml"]
        assert list_taken(report)["apps/web/web.yaml"] == ("kustomize resource" if is_built else "template with values")

    def test_quotes_are_lost(self, tmp_path: Path, is_built: bool) -> None:
        """Flux writes the object anew before it fills in values, and YAML needs no quotes for a variable."""
        template = TEMPLATE.replace("${REPLICAS}", '"${REPLICAS}"').rstrip()
        template += '\n          env: [{name: A, value: "${REPLICAS}"}, {name: B, value: "n: ${REPLICAS}"}]\n'
        report = self.lint(tmp_path, FLUX, template, is_built=is_built)
        assert list_found(report) == [("apps/web/web.yaml", 15, "error", "wrong-type")]

    def test_wrong_value(self, tmp_path: Path, is_built: bool) -> None:
        report = self.lint(tmp_path, FLUX.replace('"2"', '"two"'), TEMPLATE, is_built=is_built)
        assert list_found(report) == [("apps/web/web.yaml", 7, "error", "wrong-type")]
        (finding,) = [each for each in report["findings"] if each["rule"] == "wrong-type"]
        assert "`two`" in finding["message"]
        assert ("clusters/a/web.yaml", 12) in [(each["file"], each["line"]) for each in finding["related"]]

    def test_undefined_is_empty(self, tmp_path: Path, is_built: bool) -> None:
        report = self.lint(tmp_path, FLUX.replace("APP: web", "OTHER: web"), TEMPLATE, is_built=is_built)
        assert list_found(report) == [("apps/web/web.yaml", 4, "error", "missing-field")]

    def test_secret_is_unknown(self, tmp_path: Path, is_built: bool) -> None:
        flux = FLUX.replace("      APP: web\n", "") + "    substituteFrom: [{kind: Secret, name: s}]\n"
        report = self.lint(tmp_path, flux, TEMPLATE, is_built=is_built)
        assert {each[3] for each in list_found(report)} == {"unjudged-variable"}

    def test_config_map(self, tmp_path: Path, is_built: bool) -> None:
        flux = FLUX.replace('      REPLICAS: "2"\n', "") + "    substituteFrom: [{kind: ConfigMap, name: settings}]\n"
        report = self.lint(tmp_path, flux, TEMPLATE, is_built=is_built, clusters_a_settings=SETTINGS)
        assert list_found(report) == [("apps/web/web.yaml", 7, "error", "wrong-type")]

    def test_nearest_config_map(self, tmp_path: Path, is_built: bool) -> None:
        flux = FLUX.replace('      REPLICAS: "2"\n', "") + "    substituteFrom: [{kind: ConfigMap, name: settings}]\n"
        near, far = SETTINGS.replace("many", "'3'"), SETTINGS
        report = self.lint(
            tmp_path, flux, TEMPLATE, is_built=is_built, clusters_a_settings=near, clusters_b_settings=far
        )
        assert list_found(report) == []

    def test_own_value_over_config_map(self, tmp_path: Path, is_built: bool) -> None:
        flux = FLUX + "    substituteFrom: [{kind: ConfigMap, name: settings}]\n"
        report = self.lint(tmp_path, flux, TEMPLATE, is_built=is_built, clusters_a_settings=SETTINGS)
        assert list_found(report) == []

    def test_disabled(self, tmp_path: Path, is_built: bool) -> None:
        template = TEMPLATE.replace(
            "  namespace: ml\n", "  namespace: ml\n  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n"
        )
        report = self.lint(tmp_path, FLUX, template, is_built=is_built)
        assert list_found(report) != []

    def test_without_values_nothing_is_filled_in(self, tmp_path: Path, is_built: bool) -> None:
        report = self.lint(tmp_path, FLUX.partition("  postBuild")[0], TEMPLATE, is_built=is_built)
        assert {each[3] for each in list_found(report)} == {"unjudged-variable"}

    def test_each_kustomization_is_judged(self, tmp_path: Path, is_built: bool) -> None:
        other = FLUX.replace("name: web,", "name: other,").replace('"2"', '"x"')
        report = self.lint(tmp_path, f"{FLUX}---\n{other}", TEMPLATE, is_built=is_built)
        assert list_found(report) == [("apps/web/web.yaml", 7, "error", "wrong-type")]

    def test_unreadable_expression(self, tmp_path: Path, is_built: bool) -> None:
        script = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: ml}\ndata: {a: 'run ${x[@]}'}\n"
        report = self.lint(tmp_path, FLUX, TEMPLATE + script, is_built=is_built)
        (found,) = list_found(report)
        assert found[2:] == ("error", "flux-substitution-fails")

    def test_other_repository(self, tmp_path: Path, is_built: bool) -> None:
        sources = "".join(SOURCE.replace("NAME", name) for name in ("flux-system", "elsewhere"))
        flux = FLUX.replace("name: flux-system}\n  post", "name: elsewhere}\n  post").replace('"2"', '"two"')
        report = self.lint(tmp_path, flux, TEMPLATE, is_built=is_built, sources=sources)
        assert "wrong-type" not in [each[3] for each in list_found(report)]

    def test_target_namespace(self, tmp_path: Path, is_built: bool) -> None:
        flux = FLUX.replace("  postBuild", "  targetNamespace: team-a\n  postBuild").replace("APP: web", "APP: WEB")
        report = self.lint(tmp_path, flux, TEMPLATE, is_built=is_built)
        (finding,) = [each for each in report["findings"] if each["severity"] == "error"]
        assert "`WEB`" in finding["message"]
        assert finding["object"]["namespace"] == "team-a"
        assert finding["file"] == "apps/web/web.yaml"

    def test_parent_changes_children(self, tmp_path: Path, is_built: bool) -> None:
        """The values of a Kustomization come from a patch of the one that applies it."""
        parent = FLUX.partition("  postBuild")[0].replace("name: web,", "name: all,").replace("apps/web", "clusters/a")
        parent += """\
  patches:
    - target: {kind: Kustomization}
      patch: |
        apiVersion: kustomize.toolkit.fluxcd.io/v1
        kind: Kustomization
        metadata: {name: all}
        spec: {postBuild: {substituteFrom: [{kind: Secret, name: secrets}]}}
"""
        flux = FLUX.replace('      REPLICAS: "2"\n', "")
        alone = self.lint(tmp_path, flux, TEMPLATE, is_built=is_built)
        assert "unjudged-variable" not in [each[3] for each in list_found(alone)]
        report = self.lint(tmp_path, flux, TEMPLATE, is_built=is_built, top=parent)
        assert {each[3] for each in list_found(report)} <= {"unjudged-variable"}

    def test_folder_of_a_git_repository(self, tmp_path: Path, is_built: bool) -> None:
        write_all(tmp_path, {".git/HEAD": "ref: refs/heads/main\n"})
        flux = FLUX.replace("./apps/web", "./deploy/apps/web").replace('"2"', '"two"')
        report = self.lint(tmp_path / "deploy", flux, TEMPLATE, is_built=is_built)
        assert list_found(report) == [("apps/web/web.yaml", 7, "error", "wrong-type")]


class TestCommands:
    """What Flux builds is judged in every way to lint."""

    FILES: ClassVar = {
        "clusters/a/web.yaml": FLUX.replace('"2"', '"two"'),
        "apps/web/web.yaml": TEMPLATE,
        "apps/web/kustomization.yaml": KUSTOMIZATION,
    }
    FOUND: ClassVar = [("apps/web/web.yaml", 7, "error", "wrong-type")]

    def test_named_files(self, tmp_path: Path) -> None:
        write_all(tmp_path, self.FILES)
        assert list_found(lint(tmp_path, "apps/web/web.yaml")[1]) == self.FOUND
        assert list_found(lint(tmp_path, "clusters/a/web.yaml")[1]) == self.FOUND

    def test_since(self, tmp_path: Path) -> None:
        write_all(tmp_path, self.FILES | {"clusters/a/web.yaml": FLUX})
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
            subprocess.run([*git, *command], cwd=tmp_path, check=True)
        write_all(tmp_path, self.FILES)
        assert list_found(lint(tmp_path, "--since", "HEAD", ".")[1]) == self.FOUND
        subprocess.run([*git, "commit", "-q", "-a", "-m", "two"], cwd=tmp_path, check=True)
        assert list_found(lint(tmp_path, "--since", "HEAD", ".")[1]) == []

    def test_settings_come_first(self, tmp_path: Path) -> None:
        write_all(tmp_path, {**self.FILES, "jobgen.yaml": "files: {object: [apps/web/web.yaml]}\n"})
        (tmp_path / "apps/web/kustomization.yaml").unlink()
        assert {each[3] for each in list_found(lint(tmp_path)[1])} == {"unjudged-variable"}

    def test_many_kustomizations_of_one_folder(self, tmp_path: Path) -> None:
        """The build is repeated only so often; each Kustomization applies itself, too."""
        large = "# " + "x" * 400_000 + "\n"
        every = "---\n".join(FLUX.replace("name: web,", f"name: k{at},").replace("apps/web", ".") for at in range(100))
        write_all(tmp_path, {"all.yaml": large + every, "web.yaml": TEMPLATE})
        report = lint(tmp_path)[1]
        assert list_taken(report)["web.yaml"] == "template with values"
        assert report["summary"]["objects"] < 100 * 30


class TestEnvFile:
    """A script fills in a manifest with envsubst."""

    SCRIPT = "#!/bin/sh\nset -a; source ./.env; set +a\nenvsubst < web.yaml | kubectl apply -f -\n"

    def lint(self, folder: Path, env: str, template: str = TEMPLATE, script: str = SCRIPT, **more: str) -> dict:
        write_all(folder, {"web.yaml": template, "deploy.sh": script, ".env": env, **more})
        return lint(folder)[1]

    def test_values_are_filled_in(self, tmp_path: Path) -> None:
        report = self.lint(tmp_path, "# values\nAPP=web\nexport REPLICAS='2' # two\n")
        assert list_found(report) == []
        assert list_taken(report)["web.yaml"] == "template with values"
        (why,) = [each["why"] for each in report["files"] if each["file"] == "web.yaml"]
        assert why == "checked in one build: .env sets its variables"

    def test_wrong_value(self, tmp_path: Path) -> None:
        report = self.lint(tmp_path, "APP=web\nREPLICAS=two\n")
        assert list_found(report) == [("web.yaml", 7, "error", "wrong-type")]
        (finding,) = [each for each in report["findings"] if each["rule"] == "wrong-type"]
        assert [(each["file"], each["line"]) for each in finding["related"]] == [(".env", 2)]

    def test_quotes_in_the_manifest_count(self, tmp_path: Path) -> None:
        report = self.lint(tmp_path, "APP=web\nREPLICAS=2\n", TEMPLATE.replace("${REPLICAS}", '"${REPLICAS}"'))
        assert list_found(report) == [("web.yaml", 7, "error", "wrong-type")]

    @pytest.mark.parametrize(
        ("env", "script"),
        [
            ("APP=web\n", SCRIPT),
            ("APP=web\nREPLICAS=$COUNT\n", SCRIPT),
            ("APP=web\nREPLICAS=`nproc`\n", SCRIPT),
            ("APP=web\nREPLICAS=two\n", SCRIPT.replace("source ./.env", "true")),
            ("APP=web\nREPLICAS=two\n", SCRIPT.replace("envsubst", "cat")),
            ("APP=web\nREPLICAS=two\n", SCRIPT.replace("envsubst <", "REPLICAS=3\nenvsubst <")),
            ("APP=web\nREPLICAS=two\n", SCRIPT.replace("web.yaml", "other.yaml")),
        ],
    )
    def test_not_all_is_known(self, tmp_path: Path, env: str, script: str) -> None:
        report = self.lint(tmp_path, env, script=script)
        assert "wrong-type" not in [each[3] for each in list_found(report)]
        assert "web.yaml" not in list_taken(report)

    def test_only_some_variables(self, tmp_path: Path) -> None:
        """The others are variables of a shell in the container."""
        script = self.SCRIPT.replace("envsubst", "envsubst '$APP ${REPLICAS}'")
        template = TEMPLATE.rstrip() + '\n          args: ["$HOME/run"]\n'
        report = self.lint(tmp_path, "APP=web\nREPLICAS=two\n", template, script)
        assert list_found(report) == [("web.yaml", 7, "error", "wrong-type")]

    def test_makefile_and_other_folder(self, tmp_path: Path) -> None:
        make = "include settings.env\nexport\ndeploy:\n\tenvsubst < k8s/web.yaml | kubectl apply -f -\n"
        write_all(tmp_path, {"k8s/web.yaml": TEMPLATE, "Makefile": make, "settings.env": "APP=web\nREPLICAS=two\n"})
        assert list_found(lint(tmp_path)[1]) == [("k8s/web.yaml", 7, "error", "wrong-type")]

    def test_secret_is_not_shown(self, tmp_path: Path) -> None:
        self.lint(tmp_path, "APP=web\nDB_PASSWORD=hunter2-Zx9\n", TEMPLATE.replace("${REPLICAS}", "${DB_PASSWORD}"))
        done = run_jobgen(tmp_path, "lint", "--no-cache", ".")
        # A value that is not shown counts as one that is filled in later.
        assert b"${DB_PASSWORD}" in done.stdout
        assert b"hunter2" not in done.stdout

    def test_hostile_env_file(self, tmp_path: Path) -> None:
        """A value cannot become more than one document, and a link out of the folder is not read."""
        assert self.lint(tmp_path, 'APP=web\nREPLICAS="[' + "[" * 5_000 + '"\n')["findings"]
        (tmp_path / ".env").unlink()
        (tmp_path / ".env").symlink_to("/etc/passwd")
        assert "web.yaml" not in list_taken(lint(tmp_path)[1])


class TestCache:
    """A whole lint is remembered only as long as nothing changes that it depends on."""

    @pytest.fixture(autouse=True)
    def remembering(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        cache.enable(tmp_path_factory.mktemp("memory"), "test")
        yield
        cache.disable()

    def lint(self, folder: Path) -> tuple[bool, set[str]]:
        """Lint as the command does; return whether the result was remembered, and the rules of the findings."""
        request = LintRequest(folder, ["."])
        known = open_store(folder).find(LINT, name_lint(request))
        return known is not None, {each.rule for each in lint_request(request).findings}

    def write(self, folder: Path, **files: str) -> None:
        write_all(folder, {name.replace("_", "."): text for name, text in files.items()})

    def test_script(self, tmp_path: Path) -> None:
        template = TEMPLATE.replace("${REPLICAS}", "<replica-count>").replace("${APP}", "web")
        self.write(tmp_path, web_yaml=template, run_sh="echo web\n")
        assert self.lint(tmp_path) == (False, {"unfilled-placeholder"})
        self.write(tmp_path, run_sh="sed -i 's/<replica-count>/3/' web.yaml\n")
        known, rules = self.lint(tmp_path)
        assert not known
        assert "unjudged-variable" in rules

    def test_same_files_are_remembered(self, tmp_path: Path) -> None:
        self.write(tmp_path, web_yaml=DEPLOYMENT.replace("name: web", "name: web # $X", 1), run_sh="envsubst\n")
        assert not self.lint(tmp_path)[0]
        assert self.lint(tmp_path)[0]
        self.write(tmp_path, run_sh="envsubst < web.yaml\n")
        assert not self.lint(tmp_path)[0]

    def test_builds_are_not_remembered(self, tmp_path: Path) -> None:
        self.write(tmp_path, web_yaml=TEMPLATE, deploy_sh=TestEnvFile.SCRIPT, _env="APP=web\nREPLICAS=2\n")
        assert self.lint(tmp_path) == (False, self.lint(tmp_path)[1])
        self.write(tmp_path, _env="APP=web\nREPLICAS=two\n")
        known, rules = self.lint(tmp_path)
        assert not known
        assert "wrong-type" in rules
