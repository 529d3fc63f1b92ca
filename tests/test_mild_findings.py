"""Warnings that are infos where nobody will change what they are about."""

import json

import pytest
from linting import lint_paths

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: main, image: %s%s}]\n"
CLAIM = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: a}\nspec:\n  capacity: {storage: 1Gi}\n"
CLAIM += "  accessModes: [ReadWriteMany]\n  csi: {driver: x.example.com, volumeHandle: <BUCKET_NAME>}\n"
WORKFLOW = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: a-}\nspec:\n  entrypoint: main\n"
WORKFLOW += "  arguments: {parameters: [{name: count, value: 2}]}\n"
WORKFLOW += "  templates: [{name: main, container: {image: 'example.com/a:1.0.0'}}]\n"


APP = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a, namespace: argocd}\nspec:\n"
APP += "  project: default\n  destination: {name: in-cluster, namespace: a}\n"
APP += "  source: {repoURL: 'https://example.com/a/b.git', targetRevision: main, path: deploy}\n"
TRAINING = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\nspec:\n  pytorchReplicaSpecs:\n"
TRAINING += "    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: %s}]}}}\n"


def severities(tmp_path, files, rule):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = json.loads(lint_paths(tmp_path, ["."], (), format_="json").out)["findings"]
    return [each["severity"] for each in found if each["rule"] == rule]


@pytest.mark.parametrize(
    ("folder", "severity"), [("deploy/local/e2e/", "info"), ("kind/", "info"), ("deploy/", "warning"), ("", "warning")]
)
@pytest.mark.parametrize(
    ("rule", "image"),
    [("mutable-image-tag", "'example.com/a:latest'"), ("untagged-image", "example.com/a")],
)
def test_the_image_of_a_local_cluster_is_an_info(tmp_path, folder, severity, rule, image):
    assert severities(tmp_path, {f"{folder}a.yaml": POD % (image, ""), "app.yaml": APP}, rule) == [severity]
    loaded = POD % (image, ", imagePullPolicy: IfNotPresent")
    assert severities(tmp_path, {f"{folder}a.yaml": loaded}, "stale-image") == [severity]


@pytest.mark.parametrize(
    "path",
    """examples/a.yaml 2.sample_jobs/a.yaml tutorials-and-examples/a.yaml mpi/test/a.yaml tests/a.yaml docs/a.yaml
    micro-benchmarks/nccl/a.yaml""".split(),
)
def test_advice_about_an_example_is_an_info(tmp_path, path):
    files = {path: POD % ("example.com/a", ", securityContext: {privileged: true}"), "app.yaml": APP}
    assert severities(tmp_path, files, "untagged-image") == ["info"]
    assert severities(tmp_path, files, "privileged-container") == ["info"]
    assert severities(tmp_path, {path: CLAIM}, "unfilled-placeholder") == ["info"]


@pytest.mark.parametrize("path", ["overlays/test/a.yaml", "envs/test/a.yaml", "latest/a.yaml", "contests/a.yaml"])
def test_an_environment_for_tests_is_no_example(tmp_path, path):
    files = {path: POD % ("example.com/a", ""), "app.yaml": APP}
    assert severities(tmp_path, files, "untagged-image") == ["warning"]


def test_an_image_matters_where_it_can_change_without_a_commit(tmp_path):
    """What somebody applies by hand runs what was there on that day; a tool does the same in any version."""
    assert severities(tmp_path, {"a.yaml": POD % ("example.com/a", "")}, "untagged-image") == ["info"]
    assert severities(tmp_path, {"a.yaml": TRAINING % "example.com/a"}, "untagged-image") == ["warning"]
    (tmp_path / "app.yaml").write_text(APP)
    assert severities(tmp_path, {"a.yaml": POD % ("example.com/a", "")}, "untagged-image") == ["warning"]
    assert severities(tmp_path, {"a.yaml": POD % ("busybox", "")}, "untagged-image") == ["info"]


def test_advice_that_several_files_need_is_a_warning_once(tmp_path):
    pod = POD % ("'example.com/a:1.0.0'", ", securityContext: {privileged: true}")
    files = {f"{name}.yaml": pod.replace("name: a}", f"name: {name}}}") for name in "abc"}
    assert severities(tmp_path, files, "privileged-container") == ["warning", "info", "info"]
    found = json.loads(lint_paths(tmp_path, ["."], (), format_="json").out)["findings"]
    assert [each["message"].rpartition("; ")[2] for each in found if each["severity"] == "warning"] == [
        "the same holds in 2 other places"
    ]


def test_another_image_is_another_decision(tmp_path):
    images = {name: TRAINING.replace("name: a}", f"name: {name}}}") % f"example.com/{name}:latest" for name in "ab"}
    files = {f"{name}.yaml": text for name, text in images.items()}
    assert severities(tmp_path, files, "mutable-image-tag") == ["warning", "warning"]


def test_whether_services_pin_images_is_one_decision(tmp_path):
    images = {
        f"{name}.yaml": (POD % (f"example.com/{name}", "")).replace("name: a}", f"name: {name}}}") for name in "abc"
    }
    assert severities(tmp_path, {**images, "app.yaml": APP}, "untagged-image") == ["warning", "info", "info"]


STREAM = (
    "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {name: a}\nspec: {lookupPolicy: {local: %s}}\n"
)


@pytest.mark.parametrize(
    ("is_local", "image", "severity"),
    [
        ("true", "a", []),
        ("true", "'a:latest'", []),
        ("false", "a", ["warning"]),
        ("true", "example.com/a", ["warning"]),
    ],
)
def test_an_image_stream_decides_which_image_a_pod_gets(tmp_path, is_local, image, severity):
    files = {"stream.yaml": STREAM % is_local, "a.yaml": POD % (image, ""), "app.yaml": APP}
    found = [*severities(tmp_path, files, "untagged-image"), *severities(tmp_path, files, "mutable-image-tag")]
    assert found == severity


JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n"
JOB += "      restartPolicy: OnFailure\n"
JOB += "      containers:\n      - {name: main, image: 'example.com/a:1.0.0', env: [{name: %s, value: '1'}],"
JOB += " resources: {limits: {nvidia.com/gpu: 1}}}\n"
COLLECTOR = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\n"
COLLECTOR += "metadata: {name: fluent-bit, namespace: flux-system}\n"
COLLECTOR += "spec: {interval: 1h, url: 'oci://example.com/fluent-bit', ref: {tag: 0.48.0}}\n"


@pytest.mark.parametrize(
    ("variable", "others", "severity"),
    [("SEED", {}, "warning"), ("WANDB_PROJECT", {}, "info"), ("SEED", {"logs.yaml": COLLECTOR}, "info")],
)
def test_logs_that_are_kept_elsewhere_are_not_lost(tmp_path, variable, others, severity):
    assert severities(tmp_path, {"a.yaml": JOB % variable, **others}, "lost-logs") == [severity]


SECRET = "apiVersion: external-secrets.io/v1beta1\nkind: ExternalSecret\nmetadata: {name: %s}\nspec:\n"
SECRET += "  secretStoreRef: {name: a, kind: ClusterSecretStore}\n  target: {name: a}\n"
SECRET += "  data: [{secretKey: a, remoteRef: {key: a}}]\n"
SUBSCRIPTION = (
    "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: a}\nspec:\n"
)
SUBSCRIPTION += "  {channel: %s, name: %s, source: community-operators, sourceNamespace: openshift-marketplace%s}\n"
RELEASE = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: a}\nspec:\n"
RELEASE += "  interval: 1h\n  chart:\n"
RELEASE += "    spec: {chart: external-secrets, version: %s, sourceRef: {kind: HelmRepository, name: a}}\n"


@pytest.mark.parametrize(
    ("install", "severity"),
    [
        ("", ["warning"]),
        (RELEASE % "0.9.11", []),
        (RELEASE % "0.16.2", []),
        (RELEASE % "0.17.0", ["warning"]),
        (RELEASE % "'>=0.9'", ["info"]),
        # The catalog has no later release than 0.11.
        (SUBSCRIPTION % ("stable", "external-secrets-operator", ""), []),
        (SUBSCRIPTION % ("stable", "another-operator", ""), ["warning"]),
    ],
)
def test_a_version_that_the_installed_release_serves_is_not_old(tmp_path, install, severity):
    files = {"a.yaml": SECRET % "a", **({"install.yaml": install} if install else {})}
    assert severities(tmp_path, files, "old-api-version") == severity


def test_an_old_version_is_said_once_for_each_kind(tmp_path):
    files = {f"{name}.yaml": SECRET % name for name in "abc"}
    assert severities(tmp_path, files, "old-api-version") == ["warning"]
    found = json.loads(lint_paths(tmp_path, ["."], (), format_="json").out)["findings"]
    assert [each["message"].rpartition("; ")[2] for each in found if each["rule"] == "old-api-version"] == [
        "3 objects in 3 files have this version"
    ]


def test_the_image_of_a_pod_template_that_nothing_runs_is_an_info(tmp_path):
    template = "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: a}\n"
    template += "template:\n  spec:\n    containers: [{name: main, image: perl}]\n"
    assert severities(tmp_path, {"a.yaml": template}, "untagged-image") == ["info"]


@pytest.mark.parametrize(
    ("page", "severity"),
    [
        ("In `volume.yaml`, write the name of your bucket in place of `<BUCKET_NAME>`.\n", "info"),
        ("Write the name of your bucket in place of `<BUCKET_NAME>`.\n", "warning"),
        ("Apply `volume.yaml`.\n", "warning"),
    ],
)
def test_a_placeholder_that_a_page_explains_is_an_info(tmp_path, page, severity):
    assert severities(tmp_path, {"a/volume.yaml": CLAIM, "README.md": page}, "unfilled-placeholder") == [severity]


def test_a_number_as_the_argument_of_a_workflow_is_an_info(tmp_path):
    assert severities(tmp_path, {"a.yaml": WORKFLOW}, "wrong-type") == ["info"]
    entry = WORKFLOW.replace("entrypoint: main", "entrypoint: 2")
    assert sorted(severities(tmp_path, {"a.yaml": entry}, "wrong-type")) == ["info", "warning"]


def test_a_kind_without_a_schema_stays_a_warning_in_a_jobs_repository(tmp_path):
    widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"
    assert severities(tmp_path, {"a.yaml": widget}, "missing-schema") == ["info"]
    assert severities(tmp_path, {"a.yaml": widget, "jobgen.yaml": "{}\n"}, "missing-schema") == ["warning"]


def test_severities_of_the_settings_come_before_the_place(tmp_path):
    files = {"local/a.yaml": POD % ("example.com/a", ""), "jobgen.yaml": "rules: {untagged-image: error}\n"}
    assert severities(tmp_path, files, "untagged-image") == ["error"]


VARIABLE = "[{name: LD_LIBRARY_PATH, value: '${LD_LIBRARY_PATH}:/usr/local/nvidia/lib64'}]"


@pytest.mark.parametrize(("names", "expected"), [("ab", ["warning"] * 2), ("abcd", ["warning", *["info"] * 3])])
def test_a_fault_that_was_copied_to_many_files_is_a_warning_once(tmp_path, names, expected):
    pod = POD % ("'example.com/a:1.0.0'", f", env: {VARIABLE}")
    files = {f"{name}.yaml": pod.replace("name: a}", f"name: {name}}}") for name in names}
    assert severities(tmp_path, files, "unexpanded-variable") == expected
    assert severities(tmp_path, {"jobgen.yaml": "{}\n"}, "unexpanded-variable") == ["warning"] * len(names)


def test_copies_that_replace_each_other_are_a_warning_once(tmp_path):
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n"
    role += "rules: [{apiGroups: [''], resources: [%s], verbs: [get]}]\n"
    text = f"{role % 'pods'}---\n{role % 'nodes'}"
    assert severities(tmp_path, {"a.yaml": text}, "conflicting-copies") == ["warning", "info"]


def test_whether_containers_are_privileged_is_one_decision(tmp_path):
    pod = POD % ("'example.com/a:1.0.0'", ", securityContext: {privileged: true}")
    files = {f"{name}.yaml": pod.replace("name: a}", f"name: {name}}}").replace("main", name) for name in "abc"}
    assert severities(tmp_path, files, "privileged-container") == ["warning", "info", "info"]


@pytest.mark.parametrize(
    ("folder", "severity"),
    [("_archived", "info"), ("a/third-party/b", "info"), ("vendor", "info"), ("archives-api", "warning")],
)
def test_warnings_about_what_nobody_changes_are_infos(tmp_path, folder, severity):
    pod = POD % ("'example.com/a:1.0.0'", f", env: {VARIABLE}")
    assert severities(tmp_path, {f"{folder}/a.yaml": pod}, "unexpanded-variable") == [severity]


SERVICE = "---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  selector: {app: a}\n  ports: [%s]\n"


@pytest.mark.parametrize(
    ("container", "ports", "expected"),
    [
        ("", "{port: 80, targetPort: 8000}", ["warning"]),
        (", args: ['--listen=:8000']", "{port: 80, targetPort: 8000}", []),
        (", readinessProbe: {tcpSocket: {port: 8000}}", "{port: 80, targetPort: 8000}", []),
        ("", "{name: http, port: 80, targetPort: 8080}, {name: metrics, port: 81, targetPort: 8000}", []),
        ("", "{name: http, port: 8080}, {name: metrics, port: 81, targetPort: 8000}", []),
        (", args: ['--batch=80001']", "{port: 80, targetPort: 8000}", ["warning"]),
    ],
)
def test_a_container_may_listen_on_ports_that_it_does_not_declare(tmp_path, container, ports, expected):
    pod = POD % ("'example.com/a:1.0.0'", f", ports: [{{containerPort: 8080}}]{container}")
    text = pod.replace("name: a}", "name: a, labels: {app: a}}") + SERVICE % ports
    assert severities(tmp_path, {"a.yaml": text}, "service-selects-nothing") == expected


@pytest.mark.parametrize(
    ("path", "mount", "expected"),
    [
        ("/data", ", volumeMounts: [{name: v, mountPath: /v}]", ["warning"]),
        ("/data", "", ["info"]),
        ("/home/kubernetes/bin/gib", ", volumeMounts: [{name: v, mountPath: /v}]", ["info"]),
        ("/usr/local/nvidia", ", volumeMounts: [{name: v, mountPath: /v}]", ["info"]),
    ],
)
def test_a_folder_of_the_node_matters_if_data_is_in_it(tmp_path, path, mount, expected):
    pod = POD % ("'example.com/a:1.0.0'", mount) + f"  volumes: [{{name: v, hostPath: {{path: {path}}}}}]\n"
    assert severities(tmp_path, {"a.yaml": pod}, "host-path") == expected
