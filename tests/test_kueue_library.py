"""`jobgen.kueue`: decisions about plain objects, their JSON form, and the runner of conformance cases."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import jsonschema
import pytest

import jobgen
from jobgen import kueue
from jobgen.api.errors import UsageError
from jobgen.features.kueue import nominate
from jobgen.features.kueue.cluster_objects import GATES, NOT_SIMULATED

DOCS = Path(__file__).parent.parent / "docs"
GPU = "nvidia.com/gpu"


def make_object(kind, name, spec, **metadata):
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def make_queue(name, gpus, **spec):
    flavors = [{"name": "h100", "resources": [{"name": GPU, "nominalQuota": gpus}]}]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    return [
        make_object("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": groups, **spec}),
        make_object("LocalQueue", name, {"clusterQueue": name}, namespace="ml"),
    ]


def make_workload(name, queue, gpus, *, runs=False, priority=0):
    pods = {"containers": [{"name": "main", "resources": {"requests": {GPU: gpus}}}]}
    spec = {
        "queueName": queue,
        "priority": priority,
        "podSets": [{"name": "main", "count": 1, "template": {"spec": pods}}],
    }
    found = make_object("Workload", name, spec, namespace="ml", creationTimestamp="2026-01-01T00:00:00Z")
    if runs:
        assigned = [{"name": "main", "count": 1, "flavors": {GPU: "h100"}, "resourceUsage": {GPU: gpus}}]
        reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        found["status"] = {
            "admission": {"clusterQueue": queue, "podSetAssignments": assigned},
            "conditions": [reserved],
        }
    return found


CLUSTER = [make_object("ResourceFlavor", "h100", {}), *make_queue("a", 8)]


def list_decisions(objects, **settings):
    return {each.workload: each.decision for each in kueue.decide(objects, **settings).workloads}


@pytest.mark.parametrize(
    ("objects", "settings", "message"),
    [
        ([42], {}, "`42` is neither a Kubernetes object nor a path"),
        ([{"knd": "ClusterQueue"}], {}, "object 1 has no `kind`"),
        ([], {"version": "latest"}, "`latest` is not a version of Kueue; write one such as `0.19`"),
        ([], {"version": 0.19}, "write it as text"),
        ([], {"configuration": {"fairSharng": True}}, "did you mean `fairSharing`?"),
        ([], {"configuration": {"fairSharing": "yes"}}, "must be true or false"),
        (["nowhere.yaml"], {}, "cannot be read: No such file"),
    ],
)
def test_what_is_mistyped_is_an_error(objects, settings, message):
    with pytest.raises((UsageError, TypeError)) as error:
        kueue.decide(objects, **settings)
    assert message in str(error.value)


def test_workloads_keep_the_quota_that_they_have():
    waiting = [make_workload("small", "a", 2), make_workload("next", "a", 3), make_workload("huge", "a", 9)]

    found = kueue.decide([*CLUSTER, *waiting, make_workload("first", "a", 4, runs=True)], version="0.19")

    assert {each.workload: each.decision for each in found.workloads} == {
        "ml/small": "waits",
        "ml/next": "admitted",
        "ml/huge": "never",
        "ml/first": "running",
    }
    by_name = {each.workload: each for each in found.workloads}
    assert by_name["ml/next"].flavors == (("main", GPU, "h100"),)
    assert by_name["ml/huge"].change
    assert (found.settles, found.is_complete) == (True, True)


def test_files_and_objects_decide_the_same(tmp_path):
    objects = [*CLUSTER, make_workload("first", "a", 4)]
    path = tmp_path / "cluster.yaml"
    path.write_text("\n---\n".join(map(json.dumps, objects)))

    assert list_decisions([path]) == list_decisions(objects) == {"ml/first": "admitted"}
    assert list_decisions([{"apiVersion": "v1", "kind": "List", "items": objects}]) == {"ml/first": "admitted"}


def test_the_json_form_has_the_documented_schema():
    found = kueue.decide([*CLUSTER, make_workload("first", "a", 9)], configuration={"fairSharing": True})
    document = {"version": 1, "environments": [json.loads(json.dumps(found.to_plain()))]}

    jsonschema.validate(document, json.loads((DOCS / "queue_v1.json").read_text()))
    assert document["environments"][0]["summary"] == {"never": 1}


@pytest.mark.parametrize("content", [None, b"a: [", b"\xff\xfe\x00"])
def test_what_cannot_be_read_is_an_error_of_the_caller(tmp_path, content):
    path = tmp_path / "cluster.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read"):
        kueue.decide([path])


def run(folder, *words):
    command = [sys.executable, "-m", "jobgen.kueue", *words]
    found = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    return found.returncode, found.stdout, found.stderr


def test_the_runner_says_where_answers_differ(tmp_path):
    given = {"objects": [*CLUSTER, make_workload("first", "a", 4)], "version": "0.19"}
    cases = [
        {"name": "right", "given": given, "expect": {"decisions": {"ml/first": "admitted"}}},
        {"name": "wrong", "given": given, "expect": {"decisions": {"ml/first": "waits"}}},
    ]
    (tmp_path / "clusters.json").write_text(json.dumps(cases))
    (tmp_path / "right.json").write_text(json.dumps(cases[:1]))

    assert run(tmp_path, "right.json") == (0, "1 of 1 cases agree\n", "")
    assert run(tmp_path, "clusters.json") == (
        1,
        "clusters/wrong: .decisions.ml/first: 'admitted' instead of 'waits'\n1 of 2 cases agree\n",
        "",
    )


def test_another_module_can_answer(tmp_path):
    (tmp_path / "sums.json").write_text(json.dumps([{"name": "one", "given": {"a": 1}, "expect": {"sum": "1k"}}]))
    (tmp_path / "my_answers.py").write_text("def answer(table, given):\n    return {'sum': f'{given[\"a\"]}000'}\n")
    code = "import sys; sys.path.insert(0, '.'); from jobgen.kueue import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--answers", "my_answers", "sums.json"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (found.returncode, found.stdout) == (0, "1 of 1 cases agree\n")


@pytest.mark.parametrize(
    ("tried", "differs"),
    [
        ({"a": "NoMatchingFlavor"}, []),
        ({"a": "NoMatchingFlavor", "c": ""}, []),
        ({"a": "", "b": "WaitingForQuota"}, [".flavorAttempts.a: '' instead of 'NoMatchingFlavor'"]),
    ],
)
def test_reasons_compare_for_flavors_that_were_tried(tried, differs):
    case = {"given": {}, "expect": {"flavorAttempts": {"a": "NoMatchingFlavor", "b": "WaitingForQuota"}}}
    (verdict,) = kueue.run_cases({"reasons": [case]}, lambda table, given: {"flavorAttempts": tried})

    assert list(verdict.differences) == differs


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[{}]", "is not a list of cases"),
        ("{", "cannot be read"),
        ('[{"given": {}, "expect": {}}]', "give no `objects`"),
    ],
)
def test_files_that_are_no_cases_are_named(tmp_path, content, message):
    (tmp_path / "odd.json").write_text(content)
    code, _, error = run(tmp_path, "odd.json")
    assert (code, message in error) == (2, True)


def test_documented_gates_are_those_of_the_table():
    section = (DOCS / "kueue_rules.md").read_text().partition("\n### Feature gates\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", section, re.MULTILINE)
    assert dict(rows) == {name: "no" if name in NOT_SIMULATED else "yes" for name in GATES}


def test_public_names_are_documented():
    page = (DOCS / "kueue_library.md").read_text()
    assert [name for name in kueue.__all__ if f"`{name}" not in page] == []
    assert jobgen.__name__ == "jobgen"


def count_assignments(monkeypatch, waiting):
    """Decide about this many workloads that preempt in 20 queues, and count how often flavors are assigned."""
    calls = Counter()
    assign = nominate.assign_flavors
    with monkeypatch.context() as patch:
        patch.setattr(nominate, "assign_flavors", lambda *each: calls.update(["assign"]) or assign(*each))
        random = Random(1)
        policies = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        queues = [each for n in range(20) for each in make_queue(f"q{n}", 8, cohortName="c", preemption=policies)]
        workloads = [
            make_workload(
                f"w{n:03}", f"q{random.randrange(20)}", random.choice([2, 4, 8]), priority=random.randrange(4)
            )
            for n in range(waiting)
        ]
        running = [make_workload(f"r{n}", "q0", 8, runs=True) for n in range(20)]
        found = kueue.decide([CLUSTER[0], *queues, *running, *workloads], version="0.19")
    assert found.is_complete
    assert sum(each.decision == "preempts" for each in found.workloads) >= 10
    return calls["assign"]


def test_what_stays_blocked_is_not_assigned_again(monkeypatch):
    # Each eviction tries everything that waits again: without the look before, each new workload costs 10 assignments.
    assert count_assignments(monkeypatch, 400) - count_assignments(monkeypatch, 200) < 4 * 200
