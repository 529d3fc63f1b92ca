"""The result cache only saves time: findings are the same with and without it."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from linting import lint_paths
from sampling import sample
from shippedschemas import shipped_schema

from jobgen import cache, load, render
from jobgen.api.lint_answers import ask_findings
from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_run import find_findings
from jobgen.engine import inputs
from jobgen.engine.store import Store

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  framework: pytorch
  image: registry.example.com/{image}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml
  defaults: {labels: {team: nlp}}
  patches:
    - match: {names: [b*]}
      merge: {env: {LOG: debug}}
"""


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    for number, image in enumerate(["a:1", "b:latest", "c", "d:main", "e:2"]):
        write(folder, f"jobs/{number}.yaml", JOB.format(name=f"b{number}", image=image))
    write(folder, "jobs/same.yaml", JOB.format(name="b1", image="x:1"))
    write(folder, "jobs/broken.yaml", "a: [\n")
    write(
        folder, "jobs/silent.yaml", JOB.format(name="s", image="s:latest # jobgen: ignore[mutable-image-tag] -- a demo")
    )
    write(folder, "overlays/prod/o.yaml", OVERLAY)
    return folder


@pytest.fixture
def remembering(tmp_path):
    cache.enable(tmp_path / "memory", "test")
    yield tmp_path / "memory"
    cache.disable()


def write(folder, path, text):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


def exchange(path):
    """Replace an empty file by a link that leads out, or the other way round."""
    was_link = path.is_symlink()
    path.unlink(missing_ok=True)
    if was_link:
        path.write_text("")
    else:
        path.symlink_to(path.parent.parent.parent.parent)


def told(folder, *paths):
    return lint_paths(folder, paths, (), format_="json").out


def forgetting(folder, *paths):
    on = cache._folder
    cache.disable()
    said = told(folder, *paths)
    cache._folder = on
    return said


def test_lint_output_is_the_same_with_and_without_cache(repository, remembering):
    without = forgetting(repository)

    assert [told(repository) for _ in range(3)] == [without] * 3
    assert told(repository, "jobs") == forgetting(repository, "jobs")
    assert json.loads(without)["summary"]["errors"] > 0


def test_standalone_files_are_cached(repository, remembering):
    loose = repository / "loose"
    for number in range(3):
        write(loose, f"{number}.yaml", "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: A}\n")

    assert told(loose, ".") == told(loose, ".") == forgetting(loose, ".")
    assert told(repository, "loose/1.yaml") == forgetting(repository, "loose/1.yaml")


@pytest.mark.parametrize("seed", sample(range(5), 3))
def test_random_changes_invalidate_the_cache(seed, repository, remembering):
    chance = random.Random(seed)
    for _ in range(6):
        told(repository)
        change = chance.choice(["job", "gone", "overlay", "settings", "policy", "JSON", "a link", "same size"])
        number = chance.randint(0, 4)
        if change == "job":
            image = chance.choice(["a:1", "b:latest", "c"])
            write(repository, f"jobs/{number}.yaml", JOB.format(name=f"b{number}", image=image))
        elif change == "gone":
            (repository / f"jobs/{number}.yaml").unlink(missing_ok=True)
        elif change == "overlay":
            deleting = chance.choice(["", "    - merge: {env: {LOG: null}}\n", "    - merge: {env: {OLD: null}}\n"])
            write(repository, "overlays/prod/o.yaml", OVERLAY.replace("LOG", chance.choice(["LOG", "RANK"])) + deleting)
        elif change == "settings":
            write(repository, "jobgen.yaml", chance.choice(["", "rules: {mutable-image-tag: off}\n"]))
        elif change == "policy":
            policy = (Path(__file__).parent.parent / "policies/replica-totals.yaml").read_text()
            write(repository, "policies/own.yaml", policy.replace("replica-totals", chance.choice(["one", "two"])))
        elif change == "JSON":
            image = chance.choice(["one", "two"])
            text = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": {"defaults": {"labels": {"a": image}}}}
            write(repository, "overlays/prod/p.json", json.dumps(text if image == "one" else {**text, "spec": []}))
        elif change == "a link":
            exchange(repository / "overlays/prod/q.yaml")
        else:
            path = repository / f"jobs/{number}.yaml"
            if path.exists():
                before = path.stat()
                path.write_text(path.read_text().replace("latest", "1.2.34"))
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

        assert told(repository) == forgetting(repository)


def test_damaged_cache_is_rebuilt(repository, remembering):
    without = told(repository)
    entries = [path for path in remembering.rglob("*") if path.is_file()]

    assert entries
    for damage in (
        lambda old: b"",
        lambda old: old[:-1],
        lambda old: os.urandom(len(old)),
        lambda old: old[:20] + b"x" + old[21:],
    ):
        for path in entries:
            path.write_bytes(damage(path.read_bytes()))
        assert told(repository) == without


def test_unwritable_cache_folder_is_not_an_error(repository, tmp_path):
    (tmp_path / "file").write_text("")
    cache.enable(tmp_path / "file/below", "test")
    try:
        assert told(repository) == forgetting(repository)
    finally:
        cache.disable()


def test_cache_is_bound_to_the_version(remembering):
    cache.put(cache.make_key("x"), b"y")
    cache.enable(remembering, "another")

    assert cache.get(cache.make_key("x")) is None


def test_concurrent_runs_share_the_cache(repository):
    command = [sys.executable, "-m", "jobgen", "-C", str(repository), "lint", "--format", "json"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(4)]
    said = {run.communicate()[0] for run in runs}

    assert len(said) == 1
    assert json.loads(said.pop()) == json.loads(told(repository))


@pytest.mark.parametrize("words", [("--no-cache", "lint"), ("lint", "--no-cache")])
def test_cache_can_be_disabled(words, repository, tmp_path):
    command = [sys.executable, "-m", "jobgen", "-C", str(repository), *words]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path / "home")}
    subprocess.run(command, check=False, capture_output=True, env=environment)

    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("key", ["expires", r'"expire\x73"'])
def test_cached_result_of_an_expiring_job_depends_on_the_date(key, tmp_path, remembering):
    write(tmp_path, "jobs/a.yaml", JOB.format(name="a", image="a:latest") + f"  run: {{{key}: 2026-01-31}}\n")
    write(tmp_path, "jobs/b.yaml", JOB.format(name="b", image="b:1"))
    days = ("2026-01-01", "2026-02-01", "2026-01-02")
    told = [json.loads(lint_paths(tmp_path, (), (), format_="json", today=day).out)["findings"] for day in days]

    assert ["mutable-image-tag" in {finding["rule"] for finding in findings} for findings in told] == [
        True,
        False,
        True,
    ]


OPENED = """
import os, sys
opened = set()
sys.addaudithook(lambda event, about: opened.add(about[0]) if event in ("open", "os.scandir", "os.listdir") else None)
from pathlib import Path
from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_answers import ask_findings
from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_run import find_findings
from jobgen.engine.inputs import record
from jobgen.engine.store import Store
with record() as recording:
    find_findings(LintRequest(Path(os.getcwd()), sys.argv[1:]), Store())
assert recording.is_whole
here = os.getcwd() + os.sep
names = {os.fspath(path) for path in opened if isinstance(path, (str, os.PathLike))}
print(*sorted(name.removeprefix(here) for name in names if name.startswith(here)), sep="\\n")
print()
reads = {argument.partition(" ")[2] if " " in argument else argument for _, argument in recording.reads}
print(*sorted(name.removeprefix(here) for name in reads if name.startswith(here)), sep="\\n")
"""


@pytest.mark.parametrize("paths", [(), ("loose",), ("jobs/0.yaml",)])
def test_every_file_that_a_lint_reads_is_recorded(paths, repository):
    root = Path(__file__).parent.parent
    policy = (root / "policies/replica-totals.yaml").read_text().replace("replica-totals", "own")
    write(repository, "jobgen.yaml", "cluster: {state: state}\n")
    write(repository, "state/a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: ml}\n")
    write(repository, "overlays/prod/p.json", '{"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": {}}')
    write(repository, "overlays/other/o.yml", OVERLAY)
    write(repository, "policies/own.yml", policy)
    write(repository, "policies/params/p.json", '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}}')
    write(repository, "policies/namespaces/n.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: ml}\n")
    described = (root / "schemas/kubeflow.org/pytorchjob_v1.yaml").read_text()
    write(repository, "schemas/kubeflow.org/pytorchjob_v1.yaml", described)
    schema = json.dumps(shipped_schema("kubeflow.org/v1", "PyTorchJob"))
    write(repository, "schemas/kubeflow.org/pytorchjob_v1.json", schema)
    write(repository, "loose/base/kustomization.yaml", "resources: [a.yaml]\n")
    write(repository, "loose/base/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    write(repository, "loose/run.sh", "envsubst < base/a.yaml\n")
    command = [sys.executable, "-c", OPENED, *paths]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    opened, recorded = (set(part.split("\n")) for part in done.stdout.strip().split("\n\n"))

    assert {"policies/params/p.json", "schemas/kubeflow.org/pytorchjob_v1.json", "overlays/prod/p.json"} <= opened
    assert opened <= recorded


def test_a_file_that_changes_during_a_lint_is_linted_again(repository, remembering, monkeypatch):
    """The lint may have read it before and after the change, so its answers belong to neither content."""
    write(repository, "jobgen.yaml", "")
    started = []

    def change_layer(*words, **options):
        if not started:
            started.append(words)
            write(repository, "overlays/prod/o.yaml", OVERLAY.replace("team: nlp", "team: '${nowhere}'"))
        return find_findings(*words, **options)

    monkeypatch.setattr("jobgen.api.lint_run.find_findings", change_layer)
    write(repository, "overlays/prod/o.yaml", OVERLAY)
    told(repository)

    assert started
    assert told(repository) == forgetting(repository)


def test_paths_with_unusual_names_have_lints_of_their_own(repository, remembering):
    write(repository, "jobs/a', 'jobs", JOB.format(name="odd", image="a:latest"))
    for paths in (["jobs/0.yaml", "jobs/1.yaml"], ["jobs/0.yaml"], ["jobs/1.yaml"], [], ["jobs"], ["jobs/a', 'jobs"]):
        assert told(repository, *paths) == forgetting(repository, *paths), paths


LIGHT = """
import sys
from jobgen.cli.main import run
code = run(["lint", *sys.argv[1:]])
print(sorted({"jobgen.check.checker", "jobgen.rendering.config"} & set(sys.modules)))
sys.exit(code)
"""


def test_lint_of_unchanged_files_repeats_its_output_without_checking(tmp_path):
    folder = tmp_path / "repository"
    for number, image in enumerate(["a:1", "b:latest", "c"]):
        write(folder, f"jobs/{number}.yaml", JOB.format(name=f"b{number}", image=image))
    write(folder, "overlays/prod/o.yaml", OVERLAY)
    write(folder, "jobgen.yaml", "")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*paths):
        command = [sys.executable, "-c", LIGHT, *paths]
        done = subprocess.run(command, capture_output=True, cwd=folder, env=environment, text=True, check=False)
        said, _, modules = done.stdout.rstrip("\n").rpartition("\n")
        return (done.returncode, said, done.stderr), modules

    for paths in ((), ("jobs/1.yaml",)):
        first, once = run(*paths)
        second, again = run(*paths)

        assert first == second
        assert "mutable-image-tag" in first[1]
        assert "jobgen.rendering.config" in once
        assert again == "[]"

    write(folder, "overlays/prod/o.yaml", OVERLAY.replace("ml", "other"))
    assert "jobgen.rendering.config" in run()[1]
    assert run()[1] == "[]"
    write(folder, "jobgen.yaml", "rules: {mutable-image-tag: off}\n")
    changed, modules = run()
    assert "jobgen.rendering.config" in modules
    assert "mutable-image-tag" not in changed[1]
    (folder / "jobs/1.yaml").unlink()
    fewer, modules = run()
    assert "jobgen.rendering.config" in modules
    assert "in 2 files; 2 objects" in fewer[2]


def test_findings_with_fixes_are_cached(tmp_path, remembering):
    write(
        tmp_path,
        "a.yaml",
        "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: a}\nstatus: {}\n"
        "spec:\n  jaxReplicaSpecs: {worker: {}}\n",
    )

    assert told(tmp_path, "a.yaml") == told(tmp_path, "a.yaml") == forgetting(tmp_path, "a.yaml")
    assert '"fixable": true' in told(tmp_path, "a.yaml")


def test_old_and_excess_cache_entries_are_removed(remembering):
    def kept(name, *, days, size=0):
        cache.put(cache.make_key(name), name.encode())
        path = Path(cache._path(cache.make_key(name)))
        # A hole in a file takes no room on the disk.
        os.truncate(path, size or path.stat().st_size)
        os.utime(path, (time.time() - days * 86400,) * 2)
        return path

    paths = [kept("young", days=1), kept("old", days=31)]
    paths += [kept(f"large {days}", days=days, size=200 * 1024 * 1024) for days in (2, 3, 4)]
    cache.put(cache.make_key("today"), b"nobody looks a second time")
    assert [path.exists() for path in paths] == [True] * 5

    os.utime(remembering / "tidied", (0, 0))
    cache.put(cache.make_key("tomorrow"), b"")

    assert [path.exists() for path in paths] == [True, False, True, True, False]
    assert cache.get(cache.make_key("young")) == b"young"
    assert cache.get(cache.make_key("tomorrow")) == b""


def test_a_program_is_asked_once_for_an_answer_and_again_for_the_next(monkeypatch):
    monkeypatch.setattr(inputs, "_probes", {})
    asked = []

    @inputs.slow_probe
    def look(argument):
        asked.append(argument)
        return f"answer {len(asked)}"

    with inputs.record(), inputs.record():
        assert look("a") == "answer 1"
    for count in (2, 3):
        with inputs.record() as around:
            with inputs.record():
                look("b")
            with inputs.record() as inner:
                assert look("b") == f"answer {count}"
        # The second one depends on the answer, too.
        assert inner.list_reads() == around.list_reads() == [("look", "b", f"answer {count}")]
    assert asked == ["a", "b", "b"]
    assert look("b") == "answer 4"


BEFORE, AFTER = "2026-05-30", "2026-06-02"
SCRIPTS = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: scripts}
spec:
  framework: pytorch
  image: registry.example.com/train:1
  command: [sleep, infinity]
  run: {expires: 2026-06-01}
  resources: {cpu: 1, memory: 1Gi}
  configs: {start: {mountPath: /etc/start, data: {run.sh: "torchrun --nproc_per_node=3 train.py\\n"}}}
"""
READER = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: reader}
spec:
  framework: pytorch
  image: registry.example.com/train:1
  command: [bash, /etc/start/run.sh]
  resources: {cpu: 1, memory: 1Gi, gpu: 1}
  podTemplate:
    spec:
      containers: [{name: pytorch, volumeMounts: [{name: start, mountPath: /etc/start}]}]
      volumes: [{name: start, configMap: {name: NAME}}]
"""


def test_what_another_file_reads_counts_for_those_that_use_it(tmp_path):
    """A script of a job is in the ConfigMap of another job that expires, so what is found in it depends on the day."""
    (tmp_path / "overlays/dev").mkdir(parents=True)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "overlays/dev/overlay.yaml").write_text("apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n")
    (tmp_path / "jobs/a.yaml").write_text(SCRIPTS)
    objects = render(load(tmp_path, today=BEFORE)).objects
    [name] = (each.identity.name for each in objects if each.identity.kind == "ConfigMap")
    (tmp_path / "jobs/b.yaml").write_text(READER.replace("NAME", name))
    store = Store()

    def find_rules(day: str, store: Store) -> list[str]:
        return [each.rule for each in ask_findings(LintRequest(tmp_path, today=day), store).findings]

    assert "nproc-gpu-mismatch" in find_rules(BEFORE, store)
    assert find_rules(AFTER, store) == find_rules(AFTER, Store())
