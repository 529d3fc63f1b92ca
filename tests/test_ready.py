"""The ready form of shipped files is what the files say, and nothing else is ever used."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import pytest

from jobgen.check.cel import CompileError, compile_cel
from jobgen.check.cel.together import NAMES
from jobgen.rendering import config
from jobgen.repo import layout, ready
from jobgen.repo.files import File
from jobgen.repo.layout import own_layers
from jobgen.repo.shipped import BUILT_IN, find_shipped, mark_built_in, read_ready, read_shipped_kinds
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
MANIFEST = """
apiVersion: batch/v1
kind: Job
metadata: {name: bert, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry.example.com/bert:latest, resources: {limits: {memory: 1Gi, cpu: 1}}}]
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the tables that a wheel has."""
    spec = importlib.util.spec_from_file_location("build_ready", ROOT / "tools/build_ready.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("ready") / "tables"
    module.write(folder)
    return folder


@pytest.fixture
def tables(built, monkeypatch):
    """Use these tables, whether this checkout has some or not."""
    load = ready._load
    monkeypatch.setattr(ready, "FOLDER", built)
    load.cache_clear()
    yield built
    load.cache_clear()


@pytest.mark.usefixtures("tables")
def test_every_kind_and_policy_that_is_always_on_is_ready(tmp_path):
    files = [*layout.read_kinds(own_layers(tmp_path)), *layout.read_shipped_policies(own_layers(tmp_path))]
    assert len(files) > 20
    for file in files:
        assert read_ready(file) == [document.data for document in read(file.content, file.path).documents]


@pytest.mark.usefixtures("tables")
def test_kinds_are_the_same_without_the_ready_form(tmp_path, monkeypatch):
    files = tuple(layout.read_kinds(own_layers(tmp_path)))
    with_ready, *rest = config._parse_kinds.__wrapped__(files, frozenset(), traced=False)
    monkeypatch.setattr(ready, "_load", lambda _: {})
    without, *same = config._parse_kinds.__wrapped__(files, frozenset(), traced=False)
    assert list(map(read_parts, with_ready)) == list(map(read_parts, without))
    assert rest == same


def read_parts(kind):
    """All parts of a kind; most are parsed when they are read."""
    names = [name for name in dir(kind) if not name.startswith("_") and not callable(getattr(kind, name))]
    assert len(names) > 30
    return {name: getattr(kind, name) for name in names}


def test_shipped_kinds_are_those_of_the_folder():
    home = find_shipped("schemas").parent
    assert read_shipped_kinds() == tuple(map(mark_built_in, layout.read_own_kinds(own_layers(home))))


def test_shipped_kinds_are_valid(tmp_path):
    """They are not validated when they are read."""
    findings = []
    for file in layout.read_kinds(own_layers(tmp_path)):
        assert config.read_valid_documents(file, "kind", findings)
    assert findings == []


def test_kinds_of_a_repository_change_its_frameworks(tmp_path):
    shipped = config.load_own(tmp_path).frameworks
    folder = tmp_path / "schemas/example.com"
    folder.mkdir(parents=True)
    text = (ROOT / "schemas/kubeflow.org/paddlejob_v1.yaml").read_text("utf-8")
    (folder / "paddlejob_v1.yaml").write_text(
        text.replace("kubeflow.org/v1", "example.com/v1").replace("paddle:", "oars:")
    )
    project = config.load_own(tmp_path)
    assert not project.findings
    assert [block.name for block in project.frameworks if block not in shipped] == ["oars"]


@pytest.mark.usefixtures("tables")
def test_file_that_was_changed_is_read():
    file = File(f"{BUILT_IN}schemas/batch/job_v1.yaml", (ROOT / "schemas/batch/job_v1.yaml").read_bytes())
    assert read_ready(file)
    assert read_ready(file._replace(content=file.content + b"\n")) is None
    # A file of a repository is checked, whatever it says.
    assert read_ready(file._replace(path="schemas/batch/job_v1.yaml")) is None


def test_expression_that_was_changed_is_compiled(tables):
    entries = ready._load(ready.EXPRESSIONS)
    assert entries
    assert all(b64decode(entry).partition(b":")[0].isdigit() for entry in entries.values())
    assert ready.find_expression([b"object == null", b"", b"", b"", b""]) is None
    assert isinstance(compile_cel("object +", NAMES), CompileError)


@pytest.fixture(scope="module")
def package(built, tmp_path_factory):
    """A copy of the package with its tables."""
    folder = tmp_path_factory.mktemp("package")
    for name in ("jobgen", "schemas", "policies"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "ready"))
    shutil.copytree(built, folder / "jobgen/data/ready")
    (folder / "job.yaml").write_text(MANIFEST)
    return folder


def run_copy(package, *arguments):
    done = subprocess.run([sys.executable, *arguments], cwd=package, capture_output=True, text=True, check=False)
    assert done.stderr.count("Traceback") == 0, done.stderr
    return done.stdout


def lint_copy(package):
    return run_copy(package, "-m", "jobgen", "--no-cache", "lint", "--format", "concise", "job.yaml")


def test_findings_are_the_same_without_the_tables(package):
    listed = lint_copy(package)
    folder = package / "jobgen/data/ready"
    folder.rename(package / "elsewhere")
    without = lint_copy(package)
    (package / "elsewhere").rename(folder)
    assert "[mutable-image-tag]" in listed
    assert listed == without


@pytest.mark.parametrize(
    ("table", "source"), [(ready.DOCUMENTS, "yamlio/read/__init__.py"), (ready.EXPRESSIONS, "check/cel/together.py")]
)
def test_code_that_was_changed_does_not_use_its_table(package, table, source):
    program = f"from jobgen.repo import ready; print(len(ready._load({table!r})) > 0)"
    path = package / "jobgen" / source
    text = path.read_text("utf-8")
    assert run_copy(package, "-c", program) == "True\n"
    path.write_text(f"{text}\n# changed\n", "utf-8")
    assert run_copy(package, "-c", program) == "False\n"
    path.write_text(text, "utf-8")


def test_a_rule_that_was_changed_runs_at_once(package):
    path = package / "jobgen/check/rules/image/images.py"
    text = path.read_text("utf-8")
    assert "[mutable-image-tag]" in lint_copy(package)
    path.write_text(text.replace("WARNING", "INFO").replace("ERROR", "INFO"), "utf-8")
    assert path.read_text("utf-8") != text
    assert "info: " in next(line for line in lint_copy(package).splitlines() if "[mutable-image-tag]" in line)
    path.write_text(text, "utf-8")
