"""Exit codes and small faults: wrong arguments, closed and full outputs, limits of the system."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from processes import list_left

import jobgen
from jobgen import cache
from jobgen.cli.commands.schema import build
from jobgen.cli.main import run
from jobgen.cli.run_render import render
from jobgen.engine import workers as parallel
from jobgen.repo import atomic

ROOT = Path(__file__).parent.parent
SPEC = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml}}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.2.3
"""
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n"


def write_files(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.fixture
def repository(tmp_path):
    files = {"jobgen.yaml": "", "jobs/bert.yaml": SPEC.format(name="bert"), "jobs/c.yaml": SPEC.format(name="c")}
    return write_files(tmp_path / "repository", files)


# --- The Python API ---


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda root: jobgen.render(root, "bert"), "`jobs` must be a list of strings, got one string; write ['bert']"),
        (lambda root: jobgen.render(root, environments="dev"), "`environments` must be a list of strings, got one"),
        (lambda root: jobgen.render(root, [1]), "`jobs` must be a list of strings, got 1 in it"),
        (lambda root: jobgen.render(root, None), "`jobs` must be a list of strings, got NoneType"),
        (lambda root: jobgen.lint(root, "jobs"), "`paths` must be a list of strings, got one string; write ['jobs']"),
        (lambda root: jobgen.lint(root, environments="dev"), "`environments` must be a list of strings"),
        (lambda root: jobgen.explain(root, "bert", environments="dev"), "`environments` must be a list of strings"),
        (lambda root: jobgen.diff(root, environments="dev"), "`environments` must be a list of strings"),
    ],
)
def test_arguments_of_wrong_types_are_type_errors(call, error, repository):
    with pytest.raises(TypeError) as raised:
        call(repository)
    assert error in str(raised.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda root: jobgen.render(root, format="x"),
        lambda root: jobgen.diff(root, format="x"),
        lambda root: jobgen.lint(root).to_text("x"),
    ],
)
def test_unknown_format_is_a_value_error(call, repository):
    with pytest.raises(ValueError, match="there is no format `x` \\(known: ") as raised:
        call(repository)
    assert isinstance(raised.value, jobgen.UsageError)


# --- What render prints ---


def test_unfiltered_stream_names_its_environments(repository):
    write_files(repository, {f"overlays/{env}/o.yaml": OVERLAY for env in ("dev", "prod")})
    dev, prod = (render(repository, (), [env], None, format_="yaml").out for env in ("dev", "prod"))

    assert "# environment" not in dev + prod
    both = render(repository, (), (), None, format_="yaml").out
    assert both == f"# environment: dev\n{dev}---\n# environment: prod\n{prod}"
    assert render(repository, (), ["dev", "prod"], None, format_="yaml").out == f"{dev}---\n{prod}"


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        ("{state: done}", "`bert` is done: its `run.state` is `done`"),
        ("{state: paused}", "`bert` is paused: its `run.state` is `paused`"),
        ("{expires: 2026-01-01}", "`bert` expired on `2026-01-01`; it is `2026-02-01`, the date of the commit or"),
    ],
)
def test_job_that_is_not_rendered_gets_a_reason(run, reason, repository):
    write_files(repository, {"jobs/bert.yaml": SPEC.format(name="bert") + f"  run: {run}\n"})
    result = render(repository, ("bert",), (), None, format_="yaml", today="2026-02-01")

    assert result.code == 3
    assert result.err.startswith(f"jobgen: {reason}")
    write_files(repository, {"overlays/dev/o.yaml": OVERLAY})
    assert " in dev\n" in render(repository, ("be*",), (), None, format_="yaml", today="2026-02-01").err


def test_image_of_the_plugin_has_git():
    lines = (ROOT / "deploy/argocd/Dockerfile").read_text().splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM "))

    assert any("apt-get install" in line and " git " in line for line in lines[last:])


# --- Inputs and outputs of a process ---


def shell(root: Path, command: str, **settings) -> subprocess.CompletedProcess[str]:
    """Run a shell command in which `jobgen` is this jobgen."""
    prefix = f'jobgen() {{ "{sys.executable}" -P -m jobgen "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", prefix + command], cwd=root, capture_output=True, text=True, timeout=60, check=False, **settings
    )


OUTPUTS = {
    "render": "render",
    "render as JSON": "render --format json",
    "lint": "lint --format json",
    "explain": "explain bert",
    "help": "--help",
    "help of a command": "render --help",
    "version": "--version",
    "schemas": "schema list",
    "gitops": "gitops argocd",
    "plugin": "cmp parameters",
}


@pytest.mark.parametrize("command", OUTPUTS)
def test_output_that_cannot_be_written_is_exit_code_4(command, repository):
    script = f"for to in '>&-' '>/dev/full'; do eval \"jobgen {OUTPUTS[command]} $to\"; echo \"code $?\" >&2; done"
    done = shell(repository, script)

    assert done.stderr.count("code 4\n") == 2, done.stderr
    assert "jobgen: the output cannot be written: standard output is closed\n" in done.stderr
    assert "jobgen: the output cannot be written: No space left on device\n" in done.stderr
    assert "internal error" not in done.stderr


@pytest.mark.parametrize("command", ["render -o rendered", "lint"])
def test_closed_standard_error_is_no_failure(command, repository):
    assert shell(repository, f"jobgen {command} 2>&-").returncode == 0


@pytest.mark.parametrize("command", ["fn generate", "import -", "lint -"])
def test_closed_input_is_a_usage_error(command, repository):
    done = shell(repository, f"jobgen {command} <&-")

    assert done.returncode == 2
    assert done.stderr.startswith("jobgen: standard input "), done.stderr


LONG = "x" * 300


@pytest.mark.parametrize(
    "command",
    [
        f"lint {LONG}",
        f"lint {LONG}/a.yaml",
        f"-C {LONG} lint",
        f"-C {LONG} render",
        f"lint --baseline {LONG}",
        f"lint --baseline {LONG} --write-baseline",
        f"render -o {LONG}",
        f"render -o {LONG} --check",
        f"import {LONG}",
        f"import jobs -o {LONG}",
        f"migrate {LONG} --to trainer",
        f"migrate bert --to trainer -o {LONG}",
        f"diff {LONG}",
        f"explain {LONG}",
        f"init {LONG}",
        f"schema import {LONG}",
        f"policy test {LONG}",
        f"lint --since {LONG}",
        f"render -e {LONG}",
    ],
)
def test_long_path_is_no_internal_error(command, repository, monkeypatch, capfd):
    monkeypatch.chdir(repository)
    code = run(["--no-cache", *shlex.split(command)])
    cache.disable()
    said = capfd.readouterr().err

    assert code in (1, 2, 3, 4), said
    assert said.strip()
    assert "internal error" not in said
    assert len(said) < 1_000


def drop_rights_over_files() -> None:
    """Root may read and write everything; drop these rights."""
    for right in (1, 2):
        ctypes.CDLL(None).prctl(24, right, 0, 0, 0)


def test_unreadable_parents_do_not_matter(tmp_path):
    root = write_files(tmp_path / "closed/repository", {"jobs/bert.yaml": SPEC.format(name="bert")})
    (tmp_path / "closed").chmod(0o111)
    try:
        for command in ("lint", "render", "diff"):
            done = shell(root, f"jobgen --no-cache {command}", preexec_fn=drop_rights_over_files)
            assert "internal error" not in done.stderr, (command, done.stderr)
            assert done.returncode in (0, 2), (command, done.stderr)
    finally:
        (tmp_path / "closed").chmod(0o755)


@pytest.mark.parametrize("value", ["1e18", "inf", "1e400", "nan", "-1", "0", "soon", "", "1e-400"])
def test_odd_deadline_of_the_plugin_is_no_fault(value, repository, monkeypatch, capfd):
    monkeypatch.chdir(repository)
    monkeypatch.setenv("JOBGEN_CMP_TIMEOUT", value)
    code = run(["--no-cache", "cmp", "generate"])
    out, err = capfd.readouterr()

    assert (code, err) == (0, "")
    assert out.count("kind: PyTorchJob") == 2


def test_limit_of_processes_is_no_fault(monkeypatch):
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    monkeypatch.setattr(parallel, "_count_cores", lambda: 4)
    before = list_left()

    assert parallel.parallel_map(list(range(2_000)), lambda part: [2 * each for each in part]) == list(
        range(0, 4_000, 2)
    )
    assert not list_left() - before


def test_work_beside_has_its_own_process(monkeypatch):
    monkeypatch.setattr(parallel, "_count_cores", lambda: 2)
    before = list_left()
    with parallel.run_beside(os.getpid, 100) as wait:
        assert wait() != os.getpid()
    with parallel.run_beside(os.getpid, 99) as wait:
        assert wait() == os.getpid()
    with pytest.raises(ZeroDivisionError), parallel.run_beside(lambda: 1 // 0, 200) as wait:
        wait()
    with pytest.raises(KeyError), parallel.run_beside(lambda: "a" * 100_000, 200):
        raise KeyError
    assert not list_left() - before


def test_limit_of_threads_is_no_fault(tmp_path, monkeypatch):
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    paths = [tmp_path / str(number) for number in range(40)]
    for path in paths:
        path.write_text("")
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    atomic.sync_files(paths)

    assert len(synced) == len(paths)


# --- Faults of jobs and kinds ---


@pytest.mark.parametrize(
    "command", ["render", "render -o rendered", "render --format json", "cmp generate", "fn generate < list.yaml"]
)
def test_job_without_image_is_not_rendered(command, repository):
    job = SPEC.format(name="bert").replace("  image: registry.example.com/bert:1.2.3\n", "")
    listed = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"
    write_files(repository, {"jobs/bert.yaml": job, "list.yaml": listed})
    done = shell(repository, f"jobgen {command}")

    assert done.returncode == 1
    assert "containers:" not in done.stdout
    assert "missing-pod-field" in done.stderr
    assert "jobs/bert.yaml:5:" in done.stderr
    assert not (repository / "rendered").exists()


def test_image_from_a_patch_or_a_runtime_is_enough(repository):
    job = SPEC.format(name="bert").replace("  image: registry.example.com/bert:1.2.3\n", "")
    patch = "spec: {patches: [{merge: {image: 'a:1'}}]}"
    write_files(repository, {"jobs/bert.yaml": job, "overlays/dev/o.yaml": OVERLAY.replace("spec: {}", patch)})
    assert render(repository, (), (), None, format_="yaml").code == 0
    trainer = "spec: {cluster: {platform: trainer}}"
    write_files(repository, {"overlays/dev/o.yaml": OVERLAY.replace("spec: {}", trainer)})
    result = render(repository, (), (), None, format_="yaml")
    assert (result.code, "TrainJob" in result.out) == (0, True), result.err


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{size: int33}", "there is no type `int33`; did you mean `int32`?"),
        ("{size: io.k8s.api.core.v1.Nothing}", "there is no type `io.k8s.api.core.v1.Nothing`"),
        ("{size: [int33]}", "there is no type `int33`"),
        ("{size: {=: int33}}", "there is no type `int33`"),
        ("{size: []}", "there is no type `[]`"),
        ("{size: 5}", "there is no type `5`"),
        ("{size: null}", "there is no type `None`"),
        ("{size: true}", "there is no type `True`"),
    ],
)
def test_schema_of_an_unknown_type_is_a_finding(spec, message, repository):
    kind = """\
apiVersion: example.com/v1
kind: DanceJob
plural: dancejobs
platform: kubeflow
operator: {name: dance-operator}
frameworks: {dance: {}}
replicas: {at: spec.replicaSpecs, shape: map}
roles: {worker: {spelling: Worker, replicas: 1, min: 1}}
single: worker
container: dance
nameSuffix: "-{role}-{index}"
spec: SPEC
"""
    write_files(repository, {"schemas/example.com/dancejob_v1.yaml": kind.replace("SPEC", spec)})
    result = build(repository, check=False)

    assert result.code == 1, result.err
    assert "schemas/example.com/dancejob_v1.yaml:" in result.err
    assert message in result.err or "wrong-type" in result.err, result.err
    assert "nothing was built" in result.err


# --- Inputs without an end


@pytest.mark.parametrize("command", [["lint", "-"], ["fn"], ["import", "-"]])
def test_endless_standard_input_is_a_usage_error(tmp_path: Path, command: list[str]) -> None:
    with open("/dev/zero", "rb") as endless:
        done = subprocess.run(
            [sys.executable, "-m", "jobgen", *command],
            cwd=tmp_path,
            stdin=endless,
            capture_output=True,
            text=True,
            check=False,
        )

    message, *page = done.stderr.splitlines()
    assert (done.returncode, message) == (2, "jobgen: standard input is larger than 64 MiB; write it to several files")
    assert all(line.startswith("see: https://") for line in page)
