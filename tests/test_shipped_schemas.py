"""The shipped schemas: all releases of a kind in one file, and what each release has."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from linting import lint_paths
from sampling import laws, sample
from sharedfiles import shared_folder
from shippedschemas import shipped_schema

from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.schema.shipped_kinds import list_shipped_kinds
from jobgen.schema.types_of_release import OTHER_RELEASES, Types, merge_history, select_release
from jobgen.spec.overlay import Cluster

ROOT = Path(__file__).parent.parent
RELEASES = ["1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36"]
KINDS = list(list_shipped_kinds())

SCALARS = st.sampled_from(
    [{"type": "string"}, {"type": "string", "maxLength": 3}, {"type": "integer"}, {"$ref": "Quantity"}]
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(
            lambda fields: {"type": "object", "properties": fields}, st.dictionaries(st.sampled_from("abc"), inner)
        ),
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda item: {"type": "object", "additionalProperties": item}, inner),
    ),
    max_leaves=6,
)


def without_hints(node):
    if isinstance(node, dict):
        return {word: without_hints(value) for word, value in node.items() if word != OTHER_RELEASES}
    return node


@laws(50)
@given(st.lists(SCHEMAS, min_size=1, max_size=3))
def test_every_release_can_be_selected_from_the_merged_history(schemas):
    # A field that comes, goes and comes again cannot be expressed; with three releases, start and end with it.
    releases = ["1.0", "1.1", "2.0"][: len(schemas)]
    if len(schemas) == 3:
        schemas = [schemas[0], schemas[0], schemas[2]]
    merged = merge_history(list(zip(releases, schemas, strict=True)))

    for release, schema in zip(releases, schemas, strict=True):
        assert without_hints(select_release(merged, release)) == schema
    assert without_hints(select_release(merged, "")) == schemas[-1]


@pytest.mark.parametrize("release", RELEASES)
def test_every_kind_has_a_schema_in_the_releases_that_have_it(release):
    cluster = Cluster(kubernetes=release)
    found = {kind: find_shipped_schema(kind.api_version, kind.name, cluster) for kind in KINDS}

    assert all(found.values())
    served = [kind for kind, shipped in found.items() if shipped.missing is None]
    assert len(served) > 120
    for kind in served:
        obj = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "a"}, "surplus": 1}
        assert "unknown-field" in [problem.rule for problem in found[kind].check(obj)]


@pytest.mark.parametrize(
    "kind", sample([kind for kind in KINDS if kind.source != "kubernetes"] + KINDS[:40], 21), ids=str
)
def test_bundled_schema_is_self_contained_json_schema(kind):
    schema = shipped_schema(kind.api_version, kind.name)
    text = json.dumps(schema)

    # Go has flags inside of a pattern, which Python does not have.
    Draft202012Validator.check_schema(json.loads(text.replace("^(?i)", "(?i)^")))
    assert all(f'"{name}"' in text for name in schema["$defs"])
    assert "x-jobgen" not in text
    assert '"since"' not in text


@pytest.mark.parametrize("release", ["1.27", "1.29", "1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36"])
def test_pods_in_crds_have_the_fields_of_their_release(release):
    known = json.loads((shared_folder("facts") / f"crds/pods/podspec_k8s-{release}.json").read_bytes())

    assert reduce_pod(expand(Types(release, in_crd=True), {"$ref": "core_v1.PodSpec"})) == reduce_pod(
        known["openAPIV3Schema"]
    )


def expand(types, node):
    node = {**types[node["$ref"]], **node} if "$ref" in node else node
    children = {word: expand(types, node[word]) for word in ("items", "additionalProperties") if node.get(word)}
    fields = {name: expand(types, child) for name, child in node.get("properties", {}).items()}
    return {**node, **children, "properties": fields}


def reduce_pod(node):
    """What a schema says about the fields of a pod, without defaults and annotations."""
    if node.get("x-kubernetes-int-or-string"):
        return "pattern" in node
    kept = {word: node.get(word) for word in ("type", "format", "x-kubernetes-list-map-keys")}
    children = {word: reduce_pod(node[word]) for word in ("items", "additionalProperties") if node.get(word)}
    fields = {name: reduce_pod(child) for name, child in node.get("properties", {}).items()}
    return kept, children, fields, sorted(node.get("required", ()))


def lint(tmp_path, *documents, cluster=""):
    (tmp_path / "a.yaml").write_text("---\n".join(documents))
    if cluster:
        (tmp_path / "jobgen.yaml").write_text(f"cluster: {cluster}\n")
    found = json.loads(lint_paths(tmp_path, ["a.yaml"], (), format_="json").out)["findings"]
    return [
        (each["rule"], each["line"], each["message"])
        for each in found
        if each["severity"] != "info" or each["rule"] == "missing-schema"
    ]


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: b}
spec:
  %s
  containers: [{name: a, image: "a:1"}]
"""
HEAD = "apiVersion: %s\nkind: %s\nmetadata: {name: a%s}\n"


def test_field_of_another_release_says_since_when_it_exists(tmp_path):
    pod = POD % "hostnameOverride: x"

    assert lint(tmp_path, pod) == []
    [(rule, line, message)] = lint(tmp_path, pod, cluster='{kubernetes: "1.33"}')
    assert (rule, line) == ("unknown-field", 5)
    assert message == "`hostnameOverride` is not a field of `spec` in this release; it exists since Kubernetes 1.34"


def test_removed_field_says_when_it_was_removed(tmp_path):
    [(rule, line, message)] = lint(tmp_path, POD % "workloadRef: {name: x}")

    assert (rule, line) == ("unknown-field", 5)
    assert message.endswith("it exists since Kubernetes 1.35 and was removed in 1.36")


GATE = "feature-gate-off"
NOT_SERVED = {
    ("batch/v1beta1", "CronJob", ""): "Kubernetes 1.25 removed `CronJob` of `batch/v1beta1`; use `batch/v1`",
    ("extensions/v1beta1", "Ingress", ""): (
        "Kubernetes 1.22 removed `Ingress` of `extensions/v1beta1`; use `networking.k8s.io/v1`"
    ),
    ("policy/v1beta1", "PodSecurityPolicy", ""): "Kubernetes 1.25 removed `PodSecurityPolicy` of `policy/v1beta1`",
    ("apps/v9", "Deployment", ""): "Kubernetes has no version `apps/v9`; use `apps/v1`",
    ("v1", "Configmap", ""): "Kubernetes has no kind `Configmap` of `v1`; did you mean `ConfigMap`?",
    ("resource.k8s.io/v1", "DeviceClass", '{kubernetes: "1.33"}'): (
        "`DeviceClass` of `resource.k8s.io/v1` exists since Kubernetes 1.34; the cluster has Kubernetes 1.33"
    ),
    ("kueue.x-k8s.io/v1alpha1", "Cohort", ""): (
        "`Cohort` of `kueue.x-k8s.io/v1alpha1` exists since kueue 0.9.0 and was removed in 0.13.0;"
        " use `kueue.x-k8s.io/v1beta2`"
    ),
    ("ray.io/v1", "RayCronJob", "{operators: {kuberay: 1.5.0}}"): (
        "`RayCronJob` of `ray.io/v1` exists since kuberay 1.6.0; the cluster has kuberay 1.5.0"
    ),
}


@pytest.mark.parametrize(("api_version", "kind", "cluster"), NOT_SERVED)
def test_kind_that_the_cluster_does_not_have_is_one_error(tmp_path, api_version, kind, cluster):
    [found] = (each for each in lint(tmp_path, HEAD % (api_version, kind, ""), cluster=cluster) if each[0] != GATE)
    is_kind = kind == "Configmap"

    assert found == (
        "unknown-kind" if is_kind else "old-api-version",
        2 if is_kind else 1,
        NOT_SERVED[api_version, kind, cluster],
    )


def test_pod_fields_depend_on_the_release_of_the_operator(tmp_path):
    job = (
        "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: a, namespace: b}\n"
        "spec: {jaxReplicaSpecs: {Worker: {replicas: 1, restartPolicy: Never, template: {spec: {hostnameOverride: x,\n"
        "  containers: [{name: jax, image: 'a:1'}]}}}}}\n"
    )

    assert "unknown-field" not in [rule for rule, _, _ in lint(tmp_path, job)]
    found = lint(tmp_path, job, cluster="{operators: {training-operator: 1.9.3}}")
    assert [line for rule, line, _ in found if rule == "unknown-field"] == [4]


def test_kinds_without_a_schema_are_reported_once_with_their_number(tmp_path):
    objects = [HEAD % ("example.com/v1", "Experiment", index) for index in range(3)]
    [(rule, line, message)] = lint(tmp_path, *objects)

    assert (rule, line) == ("missing-schema", 2)
    assert message == (
        "there is no schema for `Experiment` of `example.com/v1`, so the fields of 3 objects in this file were not"
        " checked; run `kubectl get crd experiments.example.com -o yaml > experiment.yaml` and"
        " `jobgen schema import experiment.yaml`"
    )


def test_missing_schema_can_be_an_error(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("rules: {missing-schema: error}\n")
    (tmp_path / "a.yaml").write_text(HEAD % ("example.com/v1", "Experiment", ""))

    assert lint_paths(tmp_path, ["a.yaml"], (), format_="text").code == 1


OPENED = """
import sys
opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
from linting import lint_paths
from pathlib import Path
lint_paths(Path(sys.argv[1]), ["a.yaml"], (), format_="text")
folders = ("/schemas/kubernetes/", "/schemas/crds/", "/schemas/foreign/")
found = [Path(name) for name in opened if any(folder in name for folder in folders)]
print(*sorted(path.name for path in found if path.is_file()))
"""


@pytest.mark.parametrize(
    ("api_version", "kind", "files"),
    [
        ("v1", "ConfigMap", "core_v1.json"),
        ("kueue.x-k8s.io/v1beta2", "Topology", "topology_v1beta2.json"),
        ("eventing.knative.dev/v1", "Broker", "broker_v1.json"),
    ],
)
def test_lint_of_one_kind_reads_its_schema_alone(tmp_path, api_version, kind, files):
    (tmp_path / "a.yaml").write_text(HEAD % (api_version, kind, ""))
    done = subprocess.run(
        [sys.executable, "-c", OPENED, tmp_path], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )

    assert done.stdout.split() == files.split()


@pytest.mark.parametrize("command", ["kubernetes", "kinds"])
def test_files_are_what_the_tool_builds(command):
    """What is added to a file by hand would be lost when it is built again."""
    tool = runpy.run_path(str(ROOT / "tools/build_schemas.py"))
    built = {name: tool["format_file"](content) for name, content in tool[f"build_{command}"]()}
    differing = [name for name, text in built.items() if (ROOT / "schemas" / name).read_text("utf-8") != text]

    assert built
    assert differing == []


def test_defaults_of_a_kind_description_are_in_its_schema():
    spec = shipped_schema("trainer.kubeflow.org/v1alpha1", "TrainJob")["properties"]["spec"]["properties"]

    assert spec["suspend"]["default"] is False
    assert spec["runtimeRef"]["properties"]["kind"]["default"] == "ClusterTrainingRuntime"


def test_kinds_that_only_documentation_describes_may_have_more_fields():
    """Policies read their unknown fields, which the API server drops from other objects."""
    documented = {
        (kind.api_version, kind.name)
        for kind in KINDS
        if find_shipped_schema(kind.api_version, kind.name, Cluster(), any_release=True).is_documented
    }
    of_tensorstack = {(kind.api_version, kind.name) for kind in KINDS if "tensorstack" in kind.api_version}

    assert len(of_tensorstack) == 8
    assert documented == of_tensorstack
