"""A pull request cannot change its own judge: settings, teams, policies, schemas, baseline and date are the base's."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from command import run_jobgen
from linting import lint_paths

from jobgen.compare.governance import _judge
from jobgen.spec.overlay import Environment, parse_cluster

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, labels: {team: nlp}}
spec:
  framework: pytorch
  image: registry.example.com/nlp/bert:1.4.2
  resources: {cpu: 4, memory: 16Gi, gpu: 1}
  roles: {worker: {replicas: 2}}
"""
FILES = {
    "jobgen.yaml": "environments: [dev, prod]\nmandatory: [untagged-image]\nrules: {untagged-image: error}\n",
    "overlays/dev/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: nlp-dev}\n",
    "overlays/prod/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: nlp-prod}\n",
    "teams/nlp.yaml": """\
apiVersion: jobgen.dev/v1
kind: Team
metadata: {name: nlp}
spec:
  folders: [jobs/nlp]
  namespaces: [nlp-dev, nlp-prod]
  budget: {gpus: 4}
""",
    "jobs/nlp/bert.yaml": JOB,
}
UNTAGGED = JOB.replace(":1.4.2", "")
# `rules` of the pull request, and what it hides in a job.
SETTINGS = FILES["jobgen.yaml"]
ATTACKS = {
    "a lower severity": (
        {"jobgen.yaml": SETTINGS.replace("untagged-image: error", "untagged-image: warning")},
        {"jobs/nlp/bert.yaml": UNTAGGED},
        "untagged-image",
        "rules.untagged-image",
    ),
    "a rule that is off": (
        {"jobgen.yaml": SETTINGS.replace("untagged-image: error", "untagged-image: off")},
        {"jobs/nlp/bert.yaml": UNTAGGED},
        "untagged-image",
        "rules.untagged-image",
    ),
    "a category that is off": (
        {"jobgen.yaml": SETTINGS + "categories: {team: off}\n"},
        {"jobs/nlp/bert.yaml": JOB.replace("gpu: 1", "gpu: 8")},
        "team-budget-exceeded",
        "categories.team",
    ),
    "a larger budget": (
        {"teams/nlp.yaml": FILES["teams/nlp.yaml"].replace("gpus: 4", "gpus: 400")},
        {"jobs/nlp/bert.yaml": JOB.replace("gpu: 1", "gpu: 8")},
        "team-budget-exceeded",
        "budget.gpus",
    ),
    "no team": (
        {"teams/nlp.yaml": None},
        {"jobs/nlp/bert.yaml": JOB.replace("gpu: 1", "gpu: 8")},
        "team-budget-exceeded",
        "budget.gpus",
    ),
    "an exception": (
        {
            "jobgen.yaml": SETTINGS
            + "exceptions:\n  - {rule: untagged-image, reason: x, owner: '@me', expires: '2999-01-01'}\n"
        },
        {"jobs/nlp/bert.yaml": UNTAGGED},
        "untagged-image",
        "exceptions",
    ),
    "a wider exclude": (
        {"jobgen.yaml": SETTINGS + "exclude: [jobs/nlp/*]\n"},
        {"jobs/nlp/bert.yaml": UNTAGGED},
        "untagged-image",
        "exclude",
    ),
    "fewer environments": (
        {"jobgen.yaml": SETTINGS.replace("[dev, prod]", "[dev]")},
        {"overlays/prod/overlay.yaml": FILES["overlays/prod/overlay.yaml"].replace("nlp-prod", "cv-prod")},
        "foreign-namespace",
        "environments",
    ),
    "a shipped policy that is empty": (
        {"policies/mxjob-deprecated.yaml": "# nothing\n"},
        {"jobs/nlp/bert.yaml": JOB.replace("pytorch", "mxnet").replace("worker: {", "worker: {")},
        "mxjob-deprecated",
        "policies/mxjob-deprecated.yaml",
    ),
    "a schema that accepts everything": (
        {"schemas/kubeflow.org/pytorchjob_v1.json": "{}\n"},
        {"jobs/nlp/raw.yaml": "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: r}, spec: {bad: 1}}\n"},
        "unknown-field",
        "schemas/kubeflow.org/pytorchjob_v1.json",
    ),
}


PROD = FILES["overlays/prod/overlay.yaml"]
LOCKED = {
    "overlays/base/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {locked: [priority]}\n",
    "overlays/prod/overlay.yaml": PROD.replace("{namespace", "{extends: [base], namespace"),
}
URGENT = {"jobs/nlp/bert.yaml": JOB + "  priority: urgent\n"}
COPIED = {
    "overlays/copy/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n",
    "overlays/prod/overlay.yaml": LOCKED["overlays/prod/overlay.yaml"].replace("[base]", "[copy]"),
}


def test_a_lock_is_not_dropped_by_extending_a_copy(repository):
    commit(repository, LOCKED)
    commit(repository, {**COPIED, **URGENT})

    found = lint(repository, since="HEAD~1")

    assert "locked-field" in rules(found, "error")
    assert "locked-field" not in rules(lint(repository, since="HEAD~1", policy_from="."), "error")
    told = [each["message"] for each in found if each["rule"] == "weaker-governance"]
    assert any('`"priority"` is removed from `locked` of overlays/prod' in message for message in told), told


def test_an_environment_stays_checked_if_another_extends_it(repository):
    commit(repository, {"jobgen.yaml": "mandatory: [untagged-image]\n"})
    overlay = PROD.replace("{namespace: nlp-prod", "{extends: [prod], namespace: nlp-dev")
    wrong = PROD.replace("nlp-prod", "cv-prod")
    commit(repository, {"overlays/canary/overlay.yaml": overlay, "overlays/prod/overlay.yaml": wrong})

    found = lint(repository, since="HEAD~1")

    assert {each["env"] for each in found if each["rule"] == "foreign-namespace"} == {"prod"}
    assert "foreign-namespace" not in rules(lint(repository, since="HEAD~1", policy_from="."), "error")
    told = [each["message"] for each in found if each["rule"] == "weaker-governance"]
    assert any("fewer environments are checked" in message for message in told), told


def test_a_declared_version_of_an_overlay_is_the_one_of_the_base(repository):
    old = PROD.replace("{namespace", "{cluster: {operators: {kueue: 0.19.0}}, namespace")
    commit(repository, {"overlays/prod/overlay.yaml": old})
    queued = JOB.replace("  resources", "  queue: nlp\n  resources")
    commit(repository, {"overlays/prod/overlay.yaml": old.replace("0.19.0", "0.16.0"), "jobs/nlp/bert.yaml": queued})

    judged, unjudged = lint(repository, since="HEAD~1"), lint(repository, since="HEAD~1", policy_from=".")

    assert rules(judged, "error") - rules(unjudged, "error"), "Kueue 0.19 does not manage a PyTorchJob"
    told = [each["message"] for each in judged if each["rule"] == "governance-change"]
    assert any("cluster.operators.kueue" in message for message in told), told


def test_a_list_of_defects_that_is_removed_is_weaker(repository):
    entry = "{name: own, component: kueue, versions: {fixed: ['9.0']}, kinds: [Job], at: spec, condition: 'true', "
    text = "consequence: it waits, fix: update, source: https://example.com/1, red: {apiVersion: batch/v1, kind: Job}}"
    defects = f"apiVersion: jobgen.dev/v1\nkind: Defects\nspec: {{defects: [{entry}{text}]}}\n"
    commit(repository, {"defects/own.yaml": defects})
    assert "weaker-governance" not in rules(lint(repository, since="HEAD~1"), "warning")

    commit(repository, {"defects/own.yaml": None})
    told = [each["message"] for each in lint(repository, since="HEAD~1") if each["rule"] == "weaker-governance"]
    assert any("the list of defects no longer applies" in message for message in told), told


def test_a_team_that_moves_to_another_file_is_not_weaker(repository):
    team = "teams:\n  nlp: {folders: [jobs/nlp], namespaces: [nlp-dev, nlp-prod], budget: {gpus: %d}}\n"
    commit(repository, {"teams/nlp.yaml": None, "jobgen.yaml": SETTINGS + team % 4})
    assert "weaker-governance" not in rules(lint(repository, since="HEAD~1"), "warning")

    commit(repository, {"jobgen.yaml": SETTINGS + team % 8})
    [told] = [each for each in lint(repository, since="HEAD~2") if each["rule"] == "weaker-governance"]
    assert "`teams.nlp.budget.gpus` of jobgen.yaml changes from `4` to `8`" in told["message"]


QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: nlp-prod}
spec:
  hard: {requests.nvidia.com/gpu: 8}
"""
STATE = {
    "overlays/prod/overlay.yaml": PROD.replace("{namespace", "{cluster: {state: state/prod}, namespace"),
    "state/prod/quota.yaml": QUOTA,
}
LARGE = {"jobs/nlp/bert.yaml": JOB.replace("gpu: 1", "gpu: 8")}
NO_TEAM = {"teams/nlp.yaml": None}
STATE_ATTACKS = {
    "a larger quota": (
        {"state/prod/quota.yaml": QUOTA.replace("gpu: 8", "gpu: 800")},
        "more: ResourceQuota nlp-prod/gpus `requests.nvidia.com/gpu` 8 → 800",
    ),
    "no quota": (
        {"state/prod/quota.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: nlp-prod}\n"},
        "removed: ResourceQuota nlp-prod/gpus",
    ),
    "no amount in the quota": (
        {"state/prod/quota.yaml": QUOTA.replace("requests.nvidia.com/gpu: 8", "pods: 8")},
        "changed: ResourceQuota nlp-prod/gpus",
    ),
    "no state": (
        {"overlays/prod/overlay.yaml": PROD, "state/prod/quota.yaml": None},
        "no captured state judges jobs",
    ),
    "a state that is not named": ({"overlays/prod/overlay.yaml": PROD}, "no captured state judges jobs"),
    "another state": (
        {
            "overlays/prod/overlay.yaml": STATE["overlays/prod/overlay.yaml"].replace("state/prod", "state/other"),
            "state/other/quota.yaml": QUOTA.replace("gpu: 8", "gpu: 800"),
        },
        "another captured state judges jobs",
    ),
    "a copy of the overlay without the state": (
        {
            "overlays/copy/overlay.yaml": PROD,
            "overlays/prod/overlay.yaml": PROD.replace("{namespace: nlp-prod", "{extends: [copy]"),
        },
        "no captured state judges jobs",
    ),
}


@pytest.mark.parametrize("name", STATE_ATTACKS)
def test_the_captured_state_of_the_base_judges(repository, name):
    from jobgen import diff

    change, told = STATE_ATTACKS[name]
    commit(repository, {**STATE, **NO_TEAM})
    commit(repository, {**change, **LARGE})

    judged, unjudged = lint(repository, since="HEAD~1"), lint(repository, since="HEAD~1", policy_from=".")

    assert "exceeds-quota" in rules(judged, "error")
    assert "exceeds-quota" not in rules(unjudged, "error"), "the attack works without a judge"
    messages = [each["message"] for each in judged if each["rule"] == "weaker-governance"]
    assert any(told in message for message in messages), messages
    assert told in diff(repository, "HEAD~1").text


def test_a_smaller_quota_and_a_new_day_of_a_capture_are_not_weaker(repository):
    index = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: jobgen-capture}\ndata:\n  day: '2026-05-%s'\n"
    commit(repository, {**STATE, "state/prod/capture.yaml": index % "01"})
    commit(repository, {"state/prod/capture.yaml": index % "02"})
    assert not rules(lint(repository, since="HEAD~1"), "info") & {"governance-change"}

    commit(repository, {"state/prod/quota.yaml": QUOTA.replace("gpu: 8", "gpu: 4")})
    found = lint(repository, since="HEAD~1")

    [told] = [each for each in found if each["rule"] == "governance-change"]
    assert "the captured state of prod" in told["message"]
    assert "less: ResourceQuota nlp-prod/gpus `requests.nvidia.com/gpu` 8 → 4" in told["message"]
    assert (told["file"], told["line"]) == ("state/prod/quota.yaml", 5)
    assert "weaker-governance" not in rules(found, "warning")


CLUSTER_ATTACKS = {
    "a larger budget": ("budgets: {namespaces: {nlp-prod: {gpus: 4}}}", "gpus: 4", "gpus: 400", "gpu-budget-exceeded"),
    "a larger quota of a queue": ("queues: {nlp: {gpus: 4}}", "gpus: 4", "gpus: 400", "queue-quota-exceeded"),
    "another queue": ("queues: {cv: {gpus: 400}}", "cv: {gpus: 400}", "nlp: {gpus: 400}", "unknown-queue"),
}


@pytest.mark.parametrize("name", CLUSTER_ATTACKS)
def test_the_cluster_of_an_overlay_is_judged_by_the_base(repository, name):
    block, old, new, rule = CLUSTER_ATTACKS[name]
    overlay = PROD.replace("{namespace", f"{{cluster: {{{block}}}, namespace")
    commit(repository, {"overlays/prod/overlay.yaml": overlay, **NO_TEAM})
    queued = LARGE["jobs/nlp/bert.yaml"] + "  queue: nlp\n"
    commit(repository, {"overlays/prod/overlay.yaml": overlay.replace(old, new), "jobs/nlp/bert.yaml": queued})

    judged, unjudged = lint(repository, since="HEAD~1"), lint(repository, since="HEAD~1", policy_from=".")

    assert rule in {each["rule"] for each in judged}
    assert rule not in {each["rule"] for each in unjudged}, "the attack works without a judge"
    assert "weaker-governance" in rules(judged, "warning")


ADDED_FACTS = [
    {"authorizer": "deny"},
    {"authorizer": "allow", "kueue": {"frameworks": ["pod"]}},
    {"kueue": {"manageJobsWithoutQueueName": True}},
    {"kubernetes": "1.30"},
    {"featureGates": ["TopologyAwareScheduling"]},
    {"state": "state/prod"},
]


@pytest.mark.parametrize("added", ADDED_FACTS)
def test_a_fact_that_the_base_does_not_declare_has_its_default(added):
    """It can turn off a policy, or let Kueue manage a job that starts without quota today."""
    declared = {"operators": {"kueue": "0.14.0"}, "complete": ["LocalQueue"]}
    base, changed = (Environment("prod", parse_cluster(each)) for each in (declared, {**declared, **added}))

    assert changed.judged_by(base).cluster == base.cluster


def test_what_only_adds_checks_counts_at_once():
    added = {"operators": {"kueue": "0.14.0"}, "budgets": {"namespaces": {"a": {"gpus": 4}}}, "kueue": {"x": 1}}
    base, changed = (Environment("prod", parse_cluster(each)) for each in ({}, added))

    assert changed.judged_by(base).cluster == changed.cluster


@pytest.mark.parametrize(("old", "new"), [(None, "deny"), ("deny", None), ("deny", "allow"), (None, "allow")])
def test_another_authorizer_is_weaker(old, new):
    """Policies deny what they allowed, or no longer apply: only their texts tell."""
    assert _judge(["cluster", "authorizer"], old, new)[0]


EXCEPTION = "  - {{rule: {}, reason: x, owner: '@me', expires: '2999-01-01'{}}}\n"
FAULTS = {
    "an unknown rule": EXCEPTION.format("untaged-image", ""),
    "an unknown field": EXCEPTION.format("missing-shm", ", team: [cv]"),
    "no owner": "  - {rule: missing-shm, reason: x, expires: '2999-01-01'}\n",
    "not a mapping": "  - missing-shm\n",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_one_exception_stops_no_other_and_is_at_its_line(repository, name):
    """It is left out whole: without one of its limits, it would accept more."""
    settings = FILES["jobgen.yaml"] + "exceptions:\n" + FAULTS[name] + EXCEPTION.format("untagged-image", "")
    shared = {"jobgen.yaml": FILES["jobgen.yaml"], "jobs/nlp/bert.yaml": UNTAGGED.replace("gpu: 1", "gpu: 2")}
    commit(repository, shared)
    commit(repository, {"jobgen.yaml": settings})

    plain, judged = lint(repository), lint(repository, since="HEAD~1")

    assert "untagged-image" not in {each["rule"] for each in plain}
    assert "missing-shm" in {each["rule"] for each in plain}
    errors = [
        {(each["rule"], each["line"]) for each in found if each["file"] == "jobgen.yaml"} for found in (plain, judged)
    ]
    [(rule, line)] = errors[0]
    assert line == 5
    assert (rule, line) in errors[1]
    done = run_jobgen(repository, "diff", "HEAD~1")
    assert b"nothing was compared" in done.stderr
    assert b"Governance\n    jobgen.yaml:" in done.stderr


def git(folder: Path, *words: str, day: str = "2026-05-01") -> None:
    """Run Git at a date."""
    dates = {f"GIT_{role}_DATE": f"{day}T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
    who = {f"GIT_{role}_{what}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **dates, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env=env)


def commit(folder: Path, files: dict[str, str | None], day: str = "2026-05-01") -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).unlink() if text is None else (folder / path).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x", day=day)


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, FILES)
    return tmp_path


def lint(folder: Path, **options: str) -> list[dict[str, str]]:
    done = lint_paths(folder, (), (), format_="json", **options)
    return json.loads(done.out)["findings"] if done.out else []


def rules(findings: list[dict[str, str]], severity: str) -> set[str]:
    return {each["rule"] for each in findings if each["severity"] == severity}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_pull_request_is_judged_by_its_base(repository, name):
    weaker, change, rule, entry = ATTACKS[name]
    commit(repository, {**weaker, **change})

    judged, unjudged = lint(repository, since="HEAD~1"), lint(repository, since="HEAD~1", policy_from=".")

    assert rule in {each["rule"] for each in judged if each["severity"] in ("error", "warning")}
    assert rule not in rules(unjudged, "error"), "the attack works without a judge"
    told = [each["message"] for each in judged if each["rule"] == "weaker-governance"]
    assert any(entry in message for message in told), told


@pytest.mark.parametrize("name", ATTACKS)
def test_a_diff_says_what_changes_about_the_rules(repository, name):
    from jobgen import diff

    weaker, change, _, entry = ATTACKS[name]
    commit(repository, {**weaker, **change})

    result = diff(repository, "HEAD~1", format="json", more_formats=["text", "markdown"])

    weakened = [each for each in result.governance if each.is_weaker]
    assert any(entry in (each.path, each.file) for each in weakened)
    assert "Governance" in result.texts["text"]
    assert "#### Governance" in result.texts["markdown"]
    assert len(json.loads(result.text)["governance"]) == len(result.governance)


def test_a_commit_is_judged_by_the_last_one_in_the_hook_of_init(tmp_path):
    """Before the first commit, nothing else can judge it."""
    run_jobgen(tmp_path, "init", ".")
    [entry] = [
        each
        for each in (tmp_path / ".pre-commit-config.yaml").read_text().split("\n")
        if "jobgen lint" in each and "entry" in each
    ]
    words = entry.split()[2:]
    git(tmp_path, "init", "-q", "-b", "main")
    assert run_jobgen(tmp_path, *words).returncode == 0
    commit(tmp_path, {})
    [job] = (tmp_path / "jobs").glob("*.yaml")
    job.write_text(job.read_text().replace("spec:\n", "spec:\n  unknown: 1\n", 1))
    (tmp_path / "jobgen.yaml").write_text("rules: {unknown-field: off}\n")

    done = run_jobgen(tmp_path, *words)

    assert done.returncode == 1
    assert b"[unknown-field]" in done.stdout
    assert b"[weaker-governance]" in done.stdout
    assert b"[unknown-field]" not in run_jobgen(tmp_path, "lint").stdout


def test_what_a_pull_request_adds_counts(repository):
    """A policy, an environment and a kind that only the pull request has are used: they check more."""
    overlay = FILES["overlays/dev/overlay.yaml"].replace("nlp-dev", "cv")
    changed = {"jobgen.yaml": SETTINGS.replace("prod]", "prod, stage]"), "overlays/stage/overlay.yaml": overlay}
    commit(repository, changed)

    found = lint(repository, since="HEAD~1")

    assert {each["env"] for each in found if each["rule"] == "foreign-namespace"} == {"stage"}
    assert rules(found, "warning") & {"weaker-governance"} == set()
    assert "governance-change" in rules(found, "info")


def test_errors_of_settings_that_do_not_judge_are_reported(repository):
    commit(repository, {"jobgen.yaml": SETTINGS + "rulez: {}\n"})

    assert "unknown-field" in rules(lint(repository, since="HEAD~1"), "error")


def test_a_baseline_of_the_pull_request_hides_nothing(repository):
    commit(repository, {"jobs/nlp/bert.yaml": UNTAGGED})
    lint_paths(repository, (), (), format_="text", write_baseline=True, baseline="known.json")
    commit(repository, {})

    assert "untagged-image" in rules(lint(repository, since="HEAD~2", baseline="known.json"), "error")
    assert "untagged-image" not in rules(lint(repository, baseline="known.json"), "error")


def test_an_exception_that_is_extended_is_named(repository):
    entry = "exceptions:\n  - {{rule: plain-secret, reason: x, owner: '@me', expires: '{}'}}\n"
    commit(repository, {"jobgen.yaml": SETTINGS + entry.format("2026-06-01")})
    commit(repository, {"jobgen.yaml": SETTINGS + entry.format("2027-06-01")})

    [told] = [each["message"] for each in lint(repository, since="HEAD~1") if each["rule"] == "weaker-governance"]

    assert "an exception is extended" in told


LIMITED = "exceptions:\n" + EXCEPTION.format("plain-secret", ", teams: [nlp]")
WORDS = {
    "a pack that is removed": (
        "policies: [supply-chain]\n",
        "",
        '`"supply-chain"` is removed from `policies` of jobgen.yaml: the policies of the pack no longer apply',
    ),
    "a rule that is off": ("rules: {missing-shm: error}\n", "rules: {missing-shm: off}\n", "`off`: no longer reported"),
    "a rule that is off in places": (
        "",
        "rules: {missing-shm: [{severity: off, paths: [jobs/nlp/*]}]}\n",
        "no longer reported in places",
    ),
    "a lower severity": ("", "rules: {untagged-image: info}\n", "reported with a lower severity"),
    "a rule that is off for longer": (
        "rules: {missing-shm: {severity: off, reason: x, expires: '2026-06-01'}}\n",
        "rules: {missing-shm: {severity: off, reason: x, expires: '2027-06-01'}}\n",
        "another day on which the severity expires",
    ),
    "a rule that stays off": (
        "rules: {missing-shm: {severity: off, reason: x, expires: '2026-06-01'}}\n",
        "rules: {missing-shm: {severity: off, reason: x}}\n",
        "the severity no longer expires",
    ),
    "a wider exception": (
        LIMITED,
        LIMITED.replace("[nlp]", "['*']"),
        '`exceptions` of jobgen.yaml changes `teams` from `["nlp"]` to `["*"]` for `plain-secret`: more findings',
    ),
    "an exception without a limit": (
        LIMITED,
        LIMITED.replace(", teams: [nlp]", ""),
        'changes `teams` from `["nlp"]` to none for `plain-secret`: more findings are accepted',
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_what_is_weaker_is_said_in_words(repository, name):
    old, new, told = WORDS[name]
    commit(repository, {"jobgen.yaml": "environments: [dev, prod]\n" + old})
    commit(repository, {"jobgen.yaml": "environments: [dev, prod]\n" + new})

    [message] = [each["message"] for each in lint(repository, since="HEAD~1") if each["rule"] == "weaker-governance"]

    assert told in message


def test_a_narrower_exception_is_not_weaker(repository):
    commit(repository, {"jobgen.yaml": SETTINGS + LIMITED.replace(", teams: [nlp]", "")})
    commit(repository, {"jobgen.yaml": SETTINGS + LIMITED.replace("reason: x", "reason: y")})

    found = lint(repository, since="HEAD~1")

    assert "weaker-governance" not in rules(found, "warning")
    [message] = [each["message"] for each in found if each["rule"] == "governance-change"]
    assert '`teams` from none to `["nlp"]`' in message


def test_a_file_that_replaces_a_shipped_one_is_not_called_weaker(repository):
    params = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: allowed-registries}\ndata: {registries: ''}\n"
    commit(repository, {"jobgen.yaml": "policies: [supply-chain]\n", "policies/params/allowed-registries.yaml": params})

    summary = lint_paths(repository, (), (), format_="text", verbose=True).err

    assert "customized: policies/params/allowed-registries.yaml replaces a shipped file\n" in summary
    assert "weaker" not in summary


COMMENTED = {
    "jobs/nlp/bert.yaml": "# jobgen: ignore-file[plain-secret, untagged-image] until=2999-01-01 -- a test\n"
    + JOB.replace("gpu: 1}", "gpu: 1} # jobgen: ignore[missing-shm] -- one GPU")
}


def test_suppressions_that_begin_are_named(repository):
    from jobgen import diff

    commit(repository, COMMENTED)

    found = lint(repository, since="HEAD~1")
    told = {(each["line"], each["message"]) for each in found if each["rule"] == "governance-change"}
    shown = diff(repository, "HEAD~1").text

    start, whole = "of jobs/nlp/bert.yaml is added with", "in the whole file until 2999-01-01"
    assert told == {
        (1, f'`ignore-file[plain-secret]` {start} `"a test"`: a comment suppresses the rule {whole}'),
        (8, f'`ignore[missing-shm]` {start} `"one GPU"`: a comment suppresses the rule here'),
    }, "untagged-image is mandatory"
    assert all(message in shown for _, message in told)


def test_suppressions_that_move_do_not_begin(repository):
    text = COMMENTED["jobs/nlp/bert.yaml"]
    commit(repository, COMMENTED)
    commit(repository, {"jobs/nlp/bert.yaml": None, "jobs/nlp/moved.yaml": text.replace("  image", "  # x\n  image")})
    assert "governance-change" not in rules(lint(repository, since="HEAD~1"), "info")

    other = text.replace(" # jobgen: ignore[missing-shm] -- one GPU", "").replace(
        "replicas: 2}}", "replicas: 2}} # jobgen: ignore[missing-shm] -- one GPU"
    )
    commit(repository, {"jobs/nlp/moved.yaml": other})
    assert "governance-change" in rules(lint(repository, since="HEAD~1"), "info"), "it is on another line"


def test_no_comment_hides_what_changes_about_the_rules(repository):
    comment = "# jobgen: ignore-file[weaker-governance, governance-change] -- nothing to see\n"
    commit(repository, LOCKED)
    commit(repository, {"overlays/prod/overlay.yaml": comment + COPIED["overlays/prod/overlay.yaml"], **URGENT})

    found = lint(repository, since="HEAD~1")

    assert "weaker-governance" in rules(found, "warning")
    assert "governance-change" in rules(found, "info")


def test_the_date_of_a_commit_is_not_before_that_of_its_parent(repository, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    entry = "exceptions:\n  - {rule: untagged-image, reason: x, owner: '@me', expires: '2026-04-01'}\n"
    commit(repository, {"jobgen.yaml": SETTINGS + entry, "jobs/nlp/bert.yaml": UNTAGGED})
    commit(repository, {}, day="2026-03-01")

    found = lint(repository)
    assert "untagged-image" in rules(found, "error"), "the exception has expired"
    [told] = [each["message"] for each in lint(repository, since="HEAD~1") if each["rule"] == "backdated-commit"]
    assert "2026-03-01" in told


def test_in_ci_the_day_of_the_run_decides(repository, monkeypatch):
    entry = "exceptions:\n  - {rule: untagged-image, reason: x, owner: '@me', expires: '2026-05-02'}\n"
    commit(repository, {"jobgen.yaml": SETTINGS + entry, "jobs/nlp/bert.yaml": UNTAGGED})

    monkeypatch.delenv("CI", raising=False)
    assert "untagged-image" not in rules(lint(repository), "error")
    monkeypatch.setenv("CI", "true")
    assert "untagged-image" in rules(lint(repository), "error")


def test_the_summary_counts_what_is_weaker_than_shipped_and_verbose_names_it(repository):
    commit(repository, {"jobgen.yaml": "rules: {untagged-image: off}\nexclude: [jobs/x.yaml]\nignore: [image]\n"})

    assert "; 3 customized (list with -v)" in lint_paths(repository, (), (), format_="text").err
    told = lint_paths(repository, (), (), format_="text", verbose=True).err
    for line in ("`untagged-image` is off", "1 excluded pattern", "`ignore` names `image`"):
        assert f"customized: {line}\n" in told


VOLUME = "  podTemplate: {spec: {volumes: [{name: data, hostPath: {path: %s, type: Directory}}]}}\n"


@pytest.mark.parametrize(("path", "is_new"), [("/data", False), ("/", True), ("/data/", True)])
def test_finding_of_a_policy_about_a_worse_value_is_new(tmp_path: Path, path: str, is_new: bool) -> None:
    for name, text in {"jobgen.yaml": "policies: [pss-baseline]\n", "jobs/a.yaml": JOB + VOLUME % "/data"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "jobs/a.yaml").write_text(JOB.replace("cpu: 4", "cpu: 5") + VOLUME % path)

    done = run_jobgen(tmp_path, "lint", "--since", "HEAD", "--no-cache")
    assert (done.returncode, b"pss-baseline-host-path" in done.stdout) == (int(is_new), is_new)
