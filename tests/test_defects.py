"""Known defects by version: every shipped entry with its examples and boundaries, and the entries of repositories."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from linting import lint_paths

from jobgen.check.defects import list_shipped, read_own
from jobgen.cli.commands.explain import explain_name
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
    return [each["message"] for each in refused if each["rule"] != "old-api-version" and each["severity"] == "error"]


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


PAGE = Path(__file__).parent.parent / "docs/defects.md"
OWN = re.search(r"```yaml\n(# defects/volcano\.yaml\n.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[1]
EMPTY_QUEUE = SHIPPED["volcano-restart-task"].green.replace("minAvailable: 2", 'minAvailable: 2\n  queue: ""')


def add(folder, text, name="volcano.yaml"):
    (folder / "defects").mkdir(exist_ok=True)
    (folder / "defects" / name).write_text(text)


def test_a_repository_adds_the_defect_of_the_documentation(tmp_path):
    add(tmp_path, OWN)
    versions = ("1.8.2", "1.9.0", "1.12.2", "1.12.3", "1.13.0", "1.13.1")

    found = {version: lint(tmp_path, EMPTY_QUEUE, {"operators": {"volcano": version}}) for version in versions}

    named = [
        version for version, several in found.items() if "our-volcano-empty-queue" in {each["rule"] for each in several}
    ]
    assert named == ["1.9.0", "1.12.2", "1.13.0"]
    assert "invalid-defect" not in {each["rule"] for several in found.values() for each in several}
    [mine] = [each for each in found["1.13.0"] if each["rule"] == "our-volcano-empty-queue"]
    assert mine["message"] == (
        "a job with an empty queue stays Pending: a defect of Volcano `1.13.0`, fixed in 1.13.1;"
        " name a queue, or leave the field out, or use Volcano 1.13.1 or newer"
    )
    said = explain_name(tmp_path, "our-volcano-empty-queue", "", (), format_="text").out
    assert "https://example.com/release-notes#1.13.1" in said


@pytest.mark.parametrize(
    ("before", "after", "rule", "line", "message"),
    [
        ("      fix: name", "      fixes: name", "unknown-field", 13, "did you mean `fix`?"),
        ("      source: https://example.com/release-notes#1.13.1\n", "", "missing-field", 7, "`source`"),
        (
            "object.spec.queue == ''",
            "object.spec.queue ==",
            "invalid-defect",
            10,
            "`condition` of `our-volcano-empty-queue`",
        ),
        ("object.spec.queue == ''", "objekt.spec.queue == ''", "invalid-defect", 10, "undeclared reference"),
        ("object.spec.queue == ''", "object.spec.queue + 'x'", "invalid-defect", 10, "`condition`"),
        ("at: spec.queue", "at: spec..queue", "invalid-defect", 11, "is not a path"),
        ("from: 1.9.0", "from: 1.13.1", "invalid-defect", 8, "is not after `1.13.1`"),
        ("from: 1.9.0", "from: 1.9", "wrong-type", 8, "must be a string"),
        ("component: volcano", "component: vulcano", "invalid-defect", 5, "did you mean `volcano`?"),
        ("our-volcano-empty-queue", "volcano-restart-task", "invalid-defect", 7, "there is already a rule or a defect"),
        ("our-volcano-empty-queue", "mutable-image-tag", "invalid-defect", 7, "there is already a rule or a defect"),
        ('spec: {queue: ""}', "spec: {queue: a}", "invalid-defect", 15, "does not find its example `red`"),
        ("spec: {queue: research}", 'spec: {queue: ""}', "invalid-defect", 19, "also finds its example `green`"),
        ("kind: Defects", "kind: Defect", "invalid-value", 3, "`Defects`"),
    ],
)
def test_what_is_wrong_with_an_entry_is_found_on_its_line(before, after, rule, line, message, tmp_path):
    assert before in OWN
    add(tmp_path, OWN.replace(before, after))

    found = lint(tmp_path, EMPTY_QUEUE, {"operators": {"volcano": "1.12.0"}})

    wrong = [each for each in found if each["file"] == "defects/volcano.yaml"]
    assert [(each["rule"], each["line"]) for each in wrong] == [(rule, line)]
    assert message in wrong[0]["message"]
    assert "our-volcano-empty-queue" not in {each["rule"] for each in found}


def test_a_hostile_entry_ends_soon_and_finds_nothing(tmp_path):
    numbers = "[" + ",".join(map(str, range(100))) + "]"
    loops = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, {numbers}.all(d, a + b + c + d >= 0))))"
    red = OWN.index("      red: |")
    entry = OWN[:red].replace("object.spec.queue == ''", loops)
    add(tmp_path, entry)

    found = {each["rule"] for each in lint(tmp_path, EMPTY_QUEUE, {"operators": {"volcano": "1.12.0"}})}

    assert not found & {"our-volcano-empty-queue", "internal-error"}


def test_an_entry_may_ask_for_what_is_not_there(tmp_path):
    red = OWN.index("      red: |")
    for condition in (
        "object.a.b.c == 1",
        "item.x == 1",
        "clusterQueue.spec.a == 1",
        "cluster.objects.Node[9].a == 1",
        "1 / 0 == 1",
    ):
        add(tmp_path, OWN[:red].replace("object.spec.queue == ''", condition))

        found = {each["rule"] for each in lint(tmp_path, EMPTY_QUEUE, {"operators": {"volcano": "1.12.0"}})}

        assert not found & {"our-volcano-empty-queue", "internal-error", "invalid-defect"}


def test_an_entry_reads_other_objects_of_the_cluster(tmp_path):
    red = OWN.index("      red: |")
    condition = "object.spec.queue == '' && cluster.objects.Namespace.exists(n, n.metadata.name == 'ml')"
    add(tmp_path, OWN[:red].replace("object.spec.queue == ''", condition))
    labels = "{pod-security.kubernetes.io/enforce: baseline}"
    namespace = f"\n---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: ml, labels: {labels}}}\n"
    cluster = {"operators": {"volcano": "1.12.0"}}

    alone = {each["rule"] for each in lint(tmp_path, EMPTY_QUEUE, cluster)}
    together = {each["rule"] for each in lint(tmp_path, EMPTY_QUEUE + namespace, cluster)}

    assert "our-volcano-empty-queue" in together - alone
