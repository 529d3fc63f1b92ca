"""A volume that nothing mounts is reported, unless only a mistake in a mount is why."""

import pytest
from lintfiles import lint_files

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: ml}
spec:
  restartPolicy: Never
  containers:
    - name: train
      image: registry.example.com/bert:1.4.2
      MOUNTS: [{name: MOUNTED, mountPath: /data}]
  volumes:
    - name: datasets
      emptyDir: {}
    - name: scratch
      emptyDir: {}
"""


def list_about_volumes(tmp_path, **manifests):
    """Return the rules that report volumes or mounts of each manifest, with the line."""
    files = {f"jobs/{name}.yaml": text.replace("NAME", name) for name, text in manifests.items()}
    found = lint_files(tmp_path, files)
    wanted = ("unmounted-volume", "unknown-volume", "unknown-field")
    return [(each["file"][5:-5], each["line"], each["rule"]) for each in found if each["rule"] in wanted]


def write_pod(mounts="volumeMounts", mounted="datasets"):
    return POD.replace("MOUNTS", mounts).replace("MOUNTED", mounted)


def test_a_volume_that_nothing_mounts_is_reported(tmp_path):
    assert list_about_volumes(tmp_path, a=write_pod()) == [("a", 13, "unmounted-volume")]


def test_a_volume_whose_name_is_wrong_in_a_mount_is_not_reported_and_others_are(tmp_path):
    found = list_about_volumes(tmp_path, a=write_pod(mounted="dataset"))

    assert found == [("a", 9, "unknown-volume"), ("a", 13, "unmounted-volume")]


@pytest.mark.parametrize("mounts", ["volumeMount", "volumemounts"])
def test_no_volume_of_a_container_whose_mounts_are_misspelled_is_reported(tmp_path, mounts):
    assert list_about_volumes(tmp_path, a=write_pod(mounts=mounts)) == [("a", 9, "unknown-field")]


def test_a_mistake_in_one_object_hides_no_volume_of_another(tmp_path):
    found = list_about_volumes(tmp_path, a=write_pod(mounted="dataset"), b=write_pod(), c=write_pod("volumeMount"))

    assert found == [
        ("a", 9, "unknown-volume"),
        ("a", 13, "unmounted-volume"),
        ("b", 13, "unmounted-volume"),
        ("c", 9, "unknown-field"),
    ]
