"""The ready form of shipped files is what the files say, and nothing else is ever used."""

from __future__ import annotations

import importlib.util
import json
from base64 import b64decode
from pathlib import Path

import pytest

from jobgen.check import rules
from jobgen.check.cel import CompileError, compile_cel
from jobgen.check.cel.shared import NAMES
from jobgen.render import config
from jobgen.repo import layout, ready
from jobgen.repo.files import File
from jobgen.repo.shipped import BUILT_IN, read_ready
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built():
    spec = importlib.util.spec_from_file_location("build_ready", ROOT / "tools/build_ready.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build()


@pytest.mark.parametrize("name", [ready.DOCUMENTS, ready.PACKS, ready.EXPRESSIONS, ready.FRAMEWORKS, ready.RULES])
def test_ready_form_is_up_to_date(built, name):
    is_current = (ready.FOLDER / name).read_text("utf-8") == built[name]
    assert is_current, "run `python tools/build_ready.py`"


def test_every_shipped_kind_and_policy_is_ready(tmp_path):
    files = [*layout.read_kinds(tmp_path), *layout.read_shipped_policies(tmp_path, all_packs=True)]
    assert len(files) > 60
    for file in files:
        assert read_ready(file) == [document.data for document in read(file.content, file.path).documents]


def test_kinds_are_the_same_without_the_ready_form(tmp_path, monkeypatch):
    files = tuple(layout.read_kinds(tmp_path))
    with_ready, *rest = config._parse_kinds.__wrapped__(files, traced=False)
    assert ready.find_frameworks(file.content for file in files)
    monkeypatch.setattr(ready, "_load", lambda _: {})
    without, *same = config._parse_kinds.__wrapped__(files, traced=False)
    assert list(map(read_parts, with_ready)) == list(map(read_parts, without))
    assert rest == same


def read_parts(kind):
    """All parts of a kind; most are parsed when they are read."""
    names = [name for name in dir(kind) if not name.startswith("_") and not callable(getattr(kind, name))]
    assert len(names) > 30
    return {name: getattr(kind, name) for name in names}


def test_kinds_of_a_repository_change_its_frameworks(tmp_path):
    shipped = config.load(tmp_path).frameworks
    folder = tmp_path / "schemas/example.com"
    folder.mkdir(parents=True)
    text = (ROOT / "schemas/kubeflow.org/paddlejob_v1.yaml").read_text("utf-8")
    (folder / "paddlejob_v1.yaml").write_text(
        text.replace("kubeflow.org/v1", "example.com/v1").replace("paddle:", "oars:")
    )
    project = config.load(tmp_path)
    assert not project.findings
    assert [block.name for block in project.frameworks if block not in shipped] == ["oars"]


def test_listed_rules_are_those_of_the_modules():
    imported = rules.import_rules()
    listed = rules.all_rules()
    assert len(listed) > 130
    assert listed[0] is not imported[0]
    assert list(map(vars, imported)) == [
        {**vars(rule), "check": rule.check, "collect": rule.collect} for rule in listed
    ]


@pytest.mark.parametrize("change", [{"image.mutable_image_tag"}, {"image.new"}])
def test_rules_are_imported_if_a_module_was_added_or_removed(monkeypatch, change):
    modules = rules.list_modules()
    monkeypatch.setattr(rules, "list_modules", lambda: modules ^ change)
    monkeypatch.setattr(rules, "import_rules", lambda: ("imported",))
    assert rules.all_rules.__wrapped__() == ("imported",)


def test_listed_rule_that_differs_from_its_module_fails():
    rule = rules.Rule("mutable-image-tag", "image", rules.ERROR, "fleet")
    with pytest.raises(AssertionError, match="build_ready"):
        _ = rule.check


def test_file_that_was_changed_is_read():
    file = File(f"{BUILT_IN}schemas/batch/job_v1.yaml", (ROOT / "schemas/batch/job_v1.yaml").read_bytes())
    assert read_ready(file)
    assert read_ready(file._replace(content=file.content + b"\n")) is None
    # A file of a repository is checked, whatever it says.
    assert read_ready(file._replace(path="schemas/batch/job_v1.yaml")) is None


def test_expression_that_was_changed_is_compiled():
    entries = json.loads((ready.FOLDER / ready.EXPRESSIONS).read_bytes())
    assert all(b64decode(entry).partition(b":")[0].isdigit() for entry in entries.values())
    assert ready.find_expression([b"object == null", b"", b"", b"", b""]) is None
    assert isinstance(compile_cel("object +", NAMES), CompileError)
