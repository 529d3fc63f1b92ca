"""One fault never hides another: two faults in a job are found together wherever each is found alone."""

from itertools import combinations
from pathlib import Path

import pytest
from sampling import is_long_run

import jobgen

ROOT = Path(__file__).parent.parent
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata:
  name: NAME
  labels: {team: research}
spec:
  framework: pytorch
  replicas: 2
  image: registry.example.com/research/a:1.0.0
  imagePullPolicy: IfNotPresent
  restartPolicy: OnFailure
  command: [torchrun, train.py]
  args: [--epochs, "10"]
  shm: 4Gi
  env:
    USE_AMP: "yes"
    TOKEN_FILE: /run/token
  resources:
    requests: {cpu: 4, memory: 16Gi, gpu: 2}
    limits: {cpu: 4, memory: 16Gi, gpu: 2}
  nodeSelector: {zone: a}
  volumes:
    data: {pvc: data, mountPath: /data}
  runPolicy:
    backoffLimit: 3
    ttlSecondsAfterFinished: 600
  roles:
    master: {}
    worker: {}
"""
FAULTS = {
    "untagged image": ("research/a:1.0.0", "research/a"),
    "malformed image": ("registry.example.com/research/a:1.0.0", "Registry/A:1:2"),
    "image without a colon": ("  image: registry", "  image registry"),
    "unknown field": ("imagePullPolicy:", "imagePulPolicy:"),
    "unknown value": ("IfNotPresent", "Sometimes"),
    "never completes": ("OnFailure", "Always"),
    "processes": ("[torchrun, train.py]", "[torchrun, --nproc_per_node=8, train.py]"),
    "stray quote": ('"10"', '10"'),
    "no quantity": ("shm: 4Gi", "shm: 4 GB"),
    "a list": ("shm: 4Gi", "shm: [4Gi]"),
    "ambiguous": ('"yes"', "yes"),
    "secret": ("TOKEN_FILE: /run/token", "PASSWORD: hunter2secret"),
    "variable without a colon": ("TOKEN_FILE: /run", "TOKEN_FILE /run"),
    "request": ("requests: {cpu: 4", "requests: {cpu: 8"),
    "devices differ": ("16Gi, gpu: 2}\n    limits", "16Gi, gpu: 1}\n    limits"),
    "number as text": ("{zone: a}", "{zone: 1}"),
    "unmounted": ("data: {pvc: data, mountPath: /data}", "data: {pvc: data}"),
    "indentation": ("    USE_AMP", "   USE_AMP"),
    "text as a number": ("backoffLimit: 3", "backoffLimit: many"),
    "negative": ("ttlSecondsAfterFinished: 600", "ttlSecondsAfterFinished: -5"),
    "tab": ("    ttlSeconds", "\tttlSeconds"),
    "total": ("replicas: 2", "replicas: 5"),
    "two masters": ("master: {}", "master: {replicas: 2}"),
    "bracket": ("worker: {}", "worker: {"),
    "label": ("{team: research}", "{team: research, x: a b}"),
}
# Faults that concern the same value or decide about each other.
DEPENDENT = {
    frozenset(pair)
    for pair in (
        ("untagged image", "malformed image"),
        ("no quantity", "a list"),
        ("secret", "variable without a colon"),
        ("two masters", "total"),
        ("unknown field", "unknown value"),
        ("untagged image", "unknown field"),
        ("untagged image", "unknown value"),
        ("negative", "tab"),
        ("ambiguous", "indentation"),
        ("variable without a colon", "indentation"),
        ("processes", "devices differ"),
        ("processes", "request"),
        ("request", "devices differ"),
    )
}


def make_job(*names: str) -> str:
    text = JOB
    for name in names:
        old, new = FAULTS[name]
        assert text.count(old) == 1, name
        text = text.replace(old, new)
    return text


def find_findings(root: Path, jobs: dict[str, str]) -> dict[str, set[tuple[int, str]]]:
    """Lint all jobs at once, and return the lines and rules of the findings of each."""
    jobgen_yaml = root / "jobgen.yaml"
    jobgen_yaml.write_text("environments: [prod]\n", "utf-8")
    overlay = root / "overlays" / "prod" / "overlay.yaml"
    overlay.parent.mkdir(parents=True)
    overlay.write_text(
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\n"
        "spec:\n  namespace: ml\n  cluster: {platform: kubeflow, gpuResource: nvidia.com/gpu}\n",
        "utf-8",
    )
    (root / "jobs").mkdir()
    for name, text in jobs.items():
        (root / "jobs" / f"{name}.yaml").write_text(text.replace("NAME", name), "utf-8")
    found: dict[str, set[tuple[int, str]]] = {name: set() for name in jobs}
    for finding in jobgen.lint(root).findings:
        name = Path(finding.location.file).stem
        if name in found:
            found[name].add((finding.location.line, finding.rule))
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    pairs = [pair for pair in combinations(FAULTS, 2) if frozenset(pair) not in DEPENDENT]
    pairs = [pair for pair in pairs if FAULTS[pair[0]][0] != FAULTS[pair[1]][0]]
    # Each fault stands beside several others; `--stress` tries all.
    pairs = pairs if is_long_run() else pairs[::3]
    several = [(), *((name,) for name in FAULTS), *pairs]
    names = {each: f"job-{number}" for number, each in enumerate(several)}
    result = find_findings(
        tmp_path_factory.mktemp("faults"), {names[each]: make_job(*each) for each in several if can_combine(each)}
    )
    return {each: result[name] for each, name in names.items() if name in result}


def can_combine(names: tuple[str, ...]) -> bool:
    """Return False if one fault changes the text that the other is made of."""
    text = JOB
    for name in names:
        old, new = FAULTS[name]
        if old not in text:
            return False
        text = text.replace(old, new)
    return True


def test_each_fault_is_found(found):
    assert found[()] == set()
    assert [name for name in FAULTS if not found[(name,)]] == []


@pytest.mark.usefixtures("stress")
@pytest.mark.parametrize("name", FAULTS)
def test_both_of_two_faults_are_found(found, name):
    pairs = [pair for pair in found if len(pair) == 2 and name in pair]

    hidden = {pair: (found[(pair[0],)] | found[(pair[1],)]) - found[pair] for pair in pairs}

    assert len(pairs) > 3
    assert {pair: lost for pair, lost in hidden.items() if lost} == {}
