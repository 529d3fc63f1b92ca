"""`jobgen upgrade`: its facts, the order of steps, and what `--fix` commits. Transcripts of upgrades are in cli/."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from command import run_jobgen
from hypothesis import given
from hypothesis import strategies as st
from transcripts import read_transcript

from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.features.upgrade.facts import ORDER, find_broken, order_changes, read_actions, read_requirements
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

ROOT = Path(__file__).parent.parent
FILES = {
    "jobgen.yaml": 'environments: [dev, prod]\ncluster: {kubernetes: "1.30"}\n',
    "overlays/dev/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: dev}\n",
    "overlays/prod/overlay.yaml": """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: prod
  cluster:
    operators: {training-operator: "1.8.1"} # as installed
""",
    "jobs/policy.yaml": """\
apiVersion: autoscaling/v2beta2
kind: HorizontalPodAutoscaler
metadata: {name: a}
spec: {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: a}}
""",
    "jobs/bert.yaml": """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: "<bert>"}
spec: {framework: pytorch, image: "registry.example.com/bert:1", resources: {cpu: 1, memory: 1Gi}}
""",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text.replace("<bert>", "bert"))
    for words in (
        ("init", "-q", "-b", "main"),
        ("config", "user.email", "a@example.com"),
        ("config", "user.name", "a"),
        ("add", "-A"),
        ("commit", "-q", "-m", "jobs"),
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_every_fact_has_a_source_and_known_versions():
    facts = [*read_requirements(), *read_actions()]

    assert len(facts) > 40
    for fact in facts:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+(#\d+|(@[\w.]+)?:[\w./-]+)", fact.source), fact
        assert fact.component in ORDER
    for each in read_requirements():
        assert each.needs in ORDER
        assert each.at_least or each.below
        assert all(
            parse_version(version) for version in filter(None, (each.since, each.until, each.at_least, each.below))
        )
    assert {each.when for each in read_actions()} == {"before", "with", "after", "running"}


@pytest.mark.parametrize(
    ("old", "new", "is_passed"),
    [
        ("0.17.0", "0.19", True),
        ("0.17.0", "0.17.7", True),
        ("0.17.6", "0.18.3", True),
        ("0.16", "0.17", True),
        ("0.17", "0.19.2", True),
        ("0.17.7", "0.19", False),
        ("0.18.4", "0.19.0", False),
        ("0.16", "0.17.6", False),
        ("0.17.0", "0.18.2", False),
        # A later minor release without the patch loses the change, and its next patch has it again.
        ("0.18.2", "0.18.3", True),
    ],
)
def test_a_change_is_dated_by_the_patch_releases_that_have_it(old, new, is_passed):
    (action,) = (each for each in read_actions() if "SidecarMode" in each.text)

    assert action.concerns(old, new, ["RayJob"]) is is_passed


def test_a_field_is_written_with_the_upgrade_if_no_version_has_both():
    """A field that the old schema does not know cannot be written before, and one that the new one drops not kept."""
    names = re.compile(r"write `(\w+)` in place of `(\w+)`")
    found = [
        (each, match) for each in read_actions() if (match := names.match(each.text)) and each.component == "trainer"
    ]

    assert found
    for action, match in found:
        shipped = find_shipped_schema(
            "trainer.kubeflow.org/v1alpha1", "TrainJob", Cluster(operators={"trainer": f"{action.version}.0"})
        )
        spec = shipped.schema["properties"]["spec"]["properties"]
        assert match[1] in spec
        assert action.when == ("after" if match[2] in spec else "with"), action


VERSIONS = {
    "kubernetes": ["1.30", "1.31", "1.34", "1.36"],
    "kueue": ["0.12", "0.16", "0.17", "0.19"],
    "trainer": ["2.0", "2.1", "2.2", "2.3"],
    "jobset": ["0.8.2", "0.10.1", "0.12"],
    "volcano": ["1.10", "1.12", "1.15"],
}
STATES = st.fixed_dictionaries({name: st.sampled_from(several) for name, several in VERSIONS.items()})


@given(STATES, STATES)
def test_steps_lead_from_the_old_versions_to_the_new_ones(old, new):
    state = dict(old)
    for name, broken in order_changes(old, new):
        already = find_broken(state)
        others = [other for other in new if state[other] != new[other]]
        state[name] = new[name]
        assert broken == [each for each in find_broken(state) if each not in already]
        # No other step would have broken less.
        del state[name]
        state[name] = old[name]
        for other in others:
            tried = [each for each in find_broken({**state, other: new[other]}) if each not in already]
            assert len(broken) <= len(tried)
        state[name] = new[name]
    assert state == new


def test_the_release_of_kueue_after_0_19_needs_trainer_2_3():
    """Its note asks for it, in pull request 14504; jobgen does not know that release yet, but what it needs."""
    (broken,) = find_broken({"kueue": "0.20", "trainer": "2.2"})

    assert (broken.at_least, broken.source) == ("2.3", "kubernetes-sigs/kueue#14504")
    assert find_broken({"kueue": "0.20", "trainer": "2.3"}) == find_broken({"kueue": "0.19", "trainer": "2.2"}) == []


def test_kueue_follows_trainer_and_trainer_follows_jobset():
    old = {"kueue": "0.16", "trainer": "2.1", "jobset": "0.10.1"}

    assert [name for name, _ in order_changes(old, {"kueue": "0.19", "trainer": "2.3", "jobset": "0.12"})] == [
        "jobset",
        "trainer",
        "kueue",
    ]


def test_fix_declares_the_versions_and_commits_each_step(repository):
    done = run_jobgen(repository, "upgrade", "--kubernetes", "1.36", "--operator", "training-operator=1.9.3", "--fix")

    assert b"committed kubernetes 1.36: jobgen.yaml" in done.stderr
    assert b"committed training-operator 1.9.3: overlays/prod/overlay.yaml" in done.stderr
    assert git(repository, "log", "--format=%s").split("\n")[:2] == [
        "Upgrade training-operator to 1.9.3",
        "Upgrade kubernetes to 1.36",
    ]
    assert git(repository, "status", "--porcelain") == ""
    assert 'kubernetes: "1.36"' in (repository / "jobgen.yaml").read_text()
    assert 'training-operator: "1.9.3"} # as installed' in (repository / "overlays/prod/overlay.yaml").read_text()


def test_fix_needs_a_clean_repository(repository):
    (repository / "jobgen.yaml").write_text("environments: [dev]\n")
    done = run_jobgen(repository, "upgrade", "--kubernetes", "1.36", "--fix")

    assert done.returncode == 2
    assert b"without uncommitted changes" in done.stderr
    assert (repository / "jobgen.yaml").read_text() == "environments: [dev]\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--kubernetes", "1.99"], "jobgen knows Kubernetes 1.30 to 1.36, and not `1.99`"),
        (["--kubernetes", "1.28"], "and not `1.28`"),
        (["--to", "new.yaml"], "`kubernetes` in `new.yaml` is not a text; write its version in quotes"),
        (["--operator", "training-operator=1.7.0", "--fix"], "training-operator 1.8.1 is newer than 1.7.0"),
    ],
)
def test_versions_that_are_not_known_are_refused(repository, words, text):
    (repository / "new.yaml").write_text("kubernetes: 1.30\n")
    done = run_jobgen(repository, "upgrade", *words)

    assert done.returncode == 2
    assert text in done.stderr.decode()
    assert git(repository, "log", "--format=%s") == "jobs\n"


def test_a_warning_that_becomes_an_error_is_fixed_or_counted(repository):
    """The old release warns of the same line."""
    policy = """\
apiVersion: admissionregistration.k8s.io/v1beta1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "true"}]
"""
    (repository / "jobs/vap.yaml").write_text(policy)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "policy")
    done = run_jobgen(repository, "upgrade", "--kubernetes", "1.36", "--fix")

    assert b"jobs/vap.yaml" in done.stderr
    assert (repository / "jobs/vap.yaml").read_text().startswith("apiVersion: admissionregistration.k8s.io/v1\n")


def test_nothing_is_written_without_fix(repository):
    before = git(repository, "rev-parse", "HEAD")
    done = run_jobgen(repository, "upgrade", "--kubernetes", "1.36", "--format", "html")

    assert git(repository, "rev-parse", "HEAD") == before
    assert git(repository, "status", "--porcelain") == ""
    assert done.stdout.startswith(b"<!doctype html>")
    assert b"<script" not in done.stdout


def test_text_of_a_job_is_no_markup(tmp_path):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text.replace("framework: pytorch", 'framework: "<script>"'))
    done = run_jobgen(tmp_path, "upgrade", "--kubernetes", "1.36", "--format", "html")

    assert done.returncode == 1
    assert b"<script>" not in done.stdout
    assert b"&lt;bert&gt;" in done.stdout


def test_the_page_shows_what_the_transcripts_show():
    page = (ROOT / "docs/upgrade.md").read_text()
    shown = re.findall(r"```text\n\$ (jobgen upgrade [^\n]*)\n(.*?)\n```", page, re.DOTALL)
    expected = [
        (step.command, step.expected["stdout"].decode().rstrip())
        for path in sorted((ROOT / "tests/cli").glob("upgrade-*.txt"))
        for step in read_transcript(path).steps
        if "stdout" in step.expected
    ]

    assert len(shown) == 4
    assert all(block in expected for block in shown)


REPLAYED = {
    "jobgen.yaml": "environments: [prod]\n",
    "overlays/prod/overlay.yaml": """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml
  cluster:
    state: cluster/prod
    kubernetes: "1.35"
    platforms: [trainer, kubeflow]
    operators: {{{operator}, jobset: "0.12.0", kueue: "{kueue}"}}
""",
    "cluster/prod/queues.yaml": """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: ml}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: h100
          resources:
            - {name: cpu, nominalQuota: 400}
            - {name: memory, nominalQuota: 4Ti}
            - {name: nvidia.com/gpu, nominalQuota: 16}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: ml, namespace: ml}
spec: {clusterQueue: ml}
""",
    "jobs/bert.yaml": """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: bert}}
spec:
  framework: pytorch
  platform: {platform}
  queue: ml
  image: registry.example.com/bert:1.4.2
  command: [torchrun, train.py]
  resources: {{cpu: 4, memory: 16Gi, gpu: 2}}
  shm: 8Gi
  roles: {{worker: {{replicas: 2}}}}
""",
}


@pytest.mark.parametrize(
    ("declared", "upgraded", "fixed", "words"),
    [
        # kueue#14722: a TrainJob of Trainer 2.1 is never admitted by Kueue 0.17 and newer.
        ({"trainer": "2.1.0", "kueue": "0.16.0"}, "--kueue 0.17.3", "--operator trainer=2.2.0", "admitted → never"),
        # By default, Kueue 0.19 no longer manages the kinds of training-operator.
        ({"training-operator": "1.9.3", "kueue": "0.18.0"}, "--kueue 0.19.0", "", "admitted → unmanaged"),
    ],
)
def test_public_reports_turn_red_and_green_again(tmp_path, declared, upgraded, fixed, words):
    operator = next(f'{name}: "{version}"' for name, version in declared.items() if name != "kueue")
    values = {
        "platform": "trainer" if "trainer" in declared else "kubeflow",
        "operator": operator,
        "kueue": declared["kueue"],
    }
    for path, text in REPLAYED.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text.format(**values) if "{{" in text else text)

    assert run_jobgen(tmp_path, "queue", "-e", "prod", "--exit-code").returncode == 0
    red = run_jobgen(tmp_path, "upgrade", *upgraded.split())
    assert words in red.stdout.decode(), red.stdout.decode() + red.stderr.decode()
    if not fixed:
        overlay = tmp_path / "overlays/prod/overlay.yaml"
        managed = overlay.read_text().replace(
            "cluster:", "cluster:\n    kueue: {frameworks: [kubeflow.org/pytorchjob]}"
        )
        overlay.write_text(managed)
    green = run_jobgen(tmp_path, "upgrade", *upgraded.split(), *fixed.split())
    assert words not in green.stdout.decode()
    assert (red.returncode, green.returncode) == (1, 0)
