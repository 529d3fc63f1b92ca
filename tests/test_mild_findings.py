"""Warnings that are infos where nobody will change what they are about."""

import json

import pytest

from jobgen.cli.run_lint import lint_paths

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: main, image: %s%s}]\n"
CLAIM = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: a}\nspec:\n  capacity: {storage: 1Gi}\n"
CLAIM += "  accessModes: [ReadWriteMany]\n  csi: {driver: x.example.com, volumeHandle: <BUCKET_NAME>}\n"
WORKFLOW = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: a-}\nspec:\n  entrypoint: main\n"
WORKFLOW += "  arguments: {parameters: [{name: count, value: 2}]}\n"
WORKFLOW += "  templates: [{name: main, container: {image: 'example.com/a:1.0.0'}}]\n"


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
    assert severities(tmp_path, {f"{folder}a.yaml": POD % (image, "")}, rule) == [severity]
    loaded = POD % (image, ", imagePullPolicy: IfNotPresent")
    assert severities(tmp_path, {f"{folder}a.yaml": loaded}, "stale-image") == [severity]


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
