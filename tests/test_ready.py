"""The ready form of shipped files is what the files say, and nothing else is ever used."""

from __future__ import annotations

import importlib.util
import json
from base64 import b64decode
from pathlib import Path

import pytest

from jobgen.check.cel import CompileError, compile_cel
from jobgen.check.policy.expressions import NAMES
from jobgen.pipeline import config
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


@pytest.mark.parametrize("name", [ready.DOCUMENTS, ready.PACKS, ready.EXPRESSIONS])
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
    with_ready = config._parse_kinds.__wrapped__(files, traced=False)
    monkeypatch.setattr(ready, "_load", lambda _: {})
    assert config._parse_kinds.__wrapped__(files, traced=False) == with_ready


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
