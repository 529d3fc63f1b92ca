"""Known defects by version: every shipped entry with its examples and boundaries, and the entries of repositories."""

import json
from collections import Counter
from pathlib import Path

import pytest
import yaml

from jobgen.check.defects import list_shipped, read_own
from jobgen.cli.commands.explain import explain_name
from jobgen.cli.run_lint import lint_paths
from jobgen.repo import layout
from jobgen.repo.known_rules import list_defect_names
from jobgen.spec.kinds import parse_version

SHIPPED = {defect.name: defect for defect in list_shipped()}


def declare(defect, version):
    """The settings of a cluster with a version of the component, and what else the examples need."""
    cluster = dict(defect.cluster)
    if defect.component == "kubernetes":
        return {**cluster, "kubernetes": version}
    gitops = cluster.get("gitops")
    if {"argocd": "argo-cd"}.get(gitops, gitops) == defect.component:
        return {**cluster, "gitops": {"engine": gitops, "version": version}}
    return {**cluster, "operators": {**cluster.get("operators", {}), defect.component: version}}


def lint(folder, text, cluster, **more):
    """The findings of objects in a cluster."""
    (folder / "jobs").mkdir(exist_ok=True)
    (folder / "jobs/objects.yaml").write_text(text)
    (folder / "jobgen.yaml").write_text(yaml.safe_dump({"cluster": cluster, **more}))
    return json.loads(lint_paths(folder, (), (), format_="json").out)["findings"]


def list_wrong(findings):
    """What the API server would refuse, except a version of the API that only some of the versions serve."""
    refused = [each for each in findings if each["category"] in ("schema", "spec", "yaml")]
    return [each["message"] for each in refused if each["rule"] != "old-api-version"]


def test_there_are_as_many_as_promised_and_of_every_component():
    counted = Counter(defect.component for defect in SHIPPED.values())

    assert len(SHIPPED) >= 60
    assert set(counted) >= set("argo-cd flux jobset kuberay kueue leaderworkerset mpi-operator trainer".split())
    assert set(counted) >= set("training-operator volcano kubernetes".split())


@pytest.mark.parametrize("name", SHIPPED)
def test_a_defect_is_found_in_its_versions_only(name, tmp_path):
    defect = SHIPPED[name]
    broken = defect.find_last_broken()

    assert defect.red, "an example that is found"
    assert all(map(defect.affects, broken))
    for version in broken:
        found = lint(tmp_path, defect.red, declare(defect, version))
        assert list_wrong(found) == []
        [mine, *_] = [each for each in found if each["rule"] == name]
        assert (mine["file"], mine["category"]) == ("jobs/objects.yaml", "defect")
        assert mine["line"] > 1, "it points at a field, not at the file"
        assert mine["severity"] == defect.severity.value
        assert version in mine["message"]
        assert all(fixed in mine["message"] for fixed in defect.fixed if parse_version(fixed) > parse_version(version))
    for version in defect.fixed:
        assert not defect.affects(version)
        assert name not in {each["rule"] for each in lint(tmp_path, defect.red, declare(defect, version))}
    if defect.since:
        assert defect.affects(defect.since)
        major, minor, patch = (*parse_version(defect.since), 0, 0)[:3]
        before = f"{major}.{minor}.{patch - 1}" if patch else f"{major}.{minor - 1}.99"
        assert not defect.affects(before)
    if defect.green:
        found = lint(tmp_path, defect.green, declare(defect, broken[0]))
        assert list_wrong(found) == []
        assert name not in {each["rule"] for each in found}
    assert defect.fixed or defect.green, "something that is not found"


def test_shipped_files_are_valid_and_in_the_form_that_names_are_read_from():
    files = [file._replace(path=file.path.removeprefix("built-in:")) for file in layout.read_shipped_defects()]

    defects, findings = read_own(tuple(files), ())

    # Their names are known already; nothing else is wrong with them.
    assert {each.message.partition("`")[0] for each in findings} == {"there is already a rule or a defect "}
    assert len(findings) == len(SHIPPED)
    assert not defects
    assert list(list_defect_names(None)) == list(SHIPPED)
    for file in files:
        assert {
            each.component for each in SHIPPED.values() if f"component: {each.component}\n" in file.content.decode()
        } == {Path(file.path).stem}


def test_a_version_without_a_patch_is_every_patch_of_it():
    defect = SHIPPED["kueue-zero-request"]._replace(since="0.13.1", fixed=("0.14.3", "0.15.0"))

    affected = [
        each for each in ("0.13", "0.13.0", "0.13.1", "0.14", "0.14.2", "v0.14.3", "0.15", "1") if defect.affects(each)
    ]

    assert affected == ["0.13.1", "0.14.2"]
    assert not defect.affects("")


def test_without_a_declared_version_nothing_is_found(tmp_path):
    defect = SHIPPED["volcano-restart-task"]

    assert defect.name not in {each["rule"] for each in lint(tmp_path, defect.red, {})}
    assert defect.name in {each["rule"] for each in lint(tmp_path, defect.red, {"operators": {"volcano": "1.9.0"}})}


def test_a_defect_has_a_name_like_a_rule(tmp_path):
    defect = SHIPPED["volcano-restart-task"]
    cluster = {"operators": {"volcano": "1.9.0"}}

    severities = {
        each["severity"]
        for each in lint(tmp_path, defect.red, cluster, rules={defect.name: "error"})
        if each["rule"] == defect.name
    }
    off = {each["rule"] for each in lint(tmp_path, defect.red, cluster, rules={defect.name: "off"})}
    none = {each["rule"] for each in lint(tmp_path, defect.red, cluster, categories={"defect": "off"})}
    comment = defect.red.replace("policies: [", f"# jobgen: ignore[{defect.name}] -- known\n  policies: [")
    suppressed = {each["rule"] for each in lint(tmp_path, comment, cluster)}

    assert severities == {"error"}
    assert defect.name not in off | none | suppressed
    assert "unknown-suppression" not in suppressed
    said = explain_name(tmp_path, defect.name, "", (), format_="text").out
    assert "volcano-sh/volcano#1866" in said
    assert "RestartTask" in said
