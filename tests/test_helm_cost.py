"""How often helm is started, and how the processes of a run share what it prints."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command import run_jobgen
from helm_charts import CHART, below, count_helm, needs_helm, read_calls, write_app, write_files

from jobgen.engine import workers
from jobgen.engine.shared_results import SharedResults

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")


@needs_helm
@needs_fork
def test_no_process_renders_a_chart_again_that_another_one_has_rendered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules about several objects read those of all charts, whichever process has rendered them."""
    monkeypatch.setattr(workers, "_MIN_ITEMS", 1)
    monkeypatch.setattr(workers, "_count_cores", lambda: 3)
    monkeypatch.setattr(workers, "PIECE", 1)
    programs, names = tmp_path / "bin", [f"app{number}" for number in range(8)]
    files = {path: text for name in names for path, text in below(name, write_app(name)).items()}
    root = write_files(tmp_path / "charts", files)
    path = count_helm(programs)

    done = run_jobgen(root, "lint", "--no-cache", ".", env={**os.environ, "PATH": path})

    assert b"8 infos in 16 files; 32 objects checked" in done.stderr
    assert sorted(call.split()[1] for call in read_calls(programs)) == names


@needs_helm
@needs_fork
def test_charts_that_are_equal_are_rendered_once(tmp_path: Path) -> None:
    """What helm prints depends on nothing else: copies of a chart in many folders cost one start."""
    programs = tmp_path / "bin"
    files = {path: text for name in ("a", "b", "c") for path, text in below(name, CHART).items()}
    root = write_files(tmp_path / "charts", files)
    path = count_helm(programs)

    done = run_jobgen(root, "lint", "--no-cache", "--format", "json", env={**os.environ, "PATH": path})
    found = [each["file"] for each in json.loads(done.stdout)["findings"]]

    assert [len([file for file in found if file.startswith(name)]) for name in "abc"] == [4, 4, 4]
    assert len(read_calls(programs)) == 1


@needs_fork
def test_a_process_finds_what_another_one_has_added() -> None:
    shared = SharedResults[list[int]]()
    shared.add(b"own", [0])
    for number in range(1, 4):
        pid = os.fork()
        if not pid:
            shared.add(b"%d" % number, [number] * 100_000)
            os._exit(0)
        os.waitpid(pid, 0)

    assert shared.find(b"own") == [0]
    assert [shared.find(b"%d" % number) for number in range(1, 4)] == [[number] * 100_000 for number in range(1, 4)]
    assert shared.find(b"4") is None


@needs_fork
@pytest.mark.parametrize("left", [0, 10, 39, 41, 60])
def test_what_was_not_written_whole_is_not_there(left: int) -> None:
    shared = SharedResults[str]()
    shared.add(b"one", "a")
    assert shared._file is not None
    whole = os.fstat(shared._file).st_size
    shared.add(b"two", "b" * 1000)
    os.ftruncate(shared._file, whole + left)
    shared.add(b"three", "c")

    assert [shared.find(key) for key in (b"one", b"two")] == ["a", None]
    assert shared.find(b"three") in {None, "c"}
