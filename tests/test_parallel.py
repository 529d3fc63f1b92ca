"""Work is handed out in pieces to processes as they become free, and what a process works on is not shared again."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from pathlib import Path

import pytest

import jobgen
from jobgen.engine import workers
from jobgen.engine.workers import PIECE, parallel_map

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from processes import list_left
from repository import write_varied

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
ITEMS = list(range(1000))
_DEADLINE = 300
"""Seconds after which a process that waits for others gives up, so that the test fails."""


@pytest.fixture(autouse=True)
def _three_cores(monkeypatch):
    monkeypatch.setattr(workers, "_count_cores", lambda: 3)


def meet(folder: Path, processes: int = 3) -> None:
    """Wait until that many processes are here: each has a piece of the work then."""
    (folder / str(os.getpid())).touch()
    end = time.monotonic() + _DEADLINE
    while len(list(folder.iterdir())) < processes:
        assert time.monotonic() < end, "the other processes have no work"
        time.sleep(0.001)


def test_every_process_gets_work(tmp_path):
    def work(piece):
        meet(tmp_path)
        return [(item, os.getpid()) for item in piece]

    found = parallel_map(ITEMS, work)

    assert [item for item, _ in found] == ITEMS
    assert len({process for _, process in found}) == 3


def test_a_free_process_takes_what_a_busy_one_leaves(tmp_path):
    """One process is busy with its first piece until the others have done all others."""
    (tmp_path / "done").mkdir()

    def work(piece):
        if piece[0] == 0:
            meet(tmp_path / "done", len(ITEMS) // PIECE)  # itself, and all other pieces
        else:
            (tmp_path / "done" / str(piece[0])).touch()
        return [(item, os.getpid()) for item in piece]

    found = parallel_map(ITEMS, work)

    assert [item for item, _ in found] == ITEMS
    assert [item for item, process in found if process == found[0][1]] == ITEMS[:PIECE]


def test_pieces_are_not_shared_again(tmp_path):
    def share_again(piece):
        meet(tmp_path)
        inner = set(parallel_map(ITEMS, lambda items: [os.getpid() for _ in items]))
        return [(item, inner) for item in piece]

    found = parallel_map(ITEMS, share_again)

    assert [item for item, _ in found] == ITEMS
    assert all(len(inner) == 1 for _, inner in found)
    assert len({process for _, inner in found for process in inner}) == 3


@pytest.mark.parametrize("count", [0, 6, 399, 400, 600, 605, 659, 660, 661, 1_999])
def test_results_keep_the_order_of_items(count):
    assert parallel_map(range(count), lambda piece: [2 * each for each in piece]) == list(range(0, 2 * count, 2))


def test_a_piece_may_have_any_number_of_results():
    assert parallel_map(ITEMS, lambda piece: [sum(piece)] * (piece[0] % 3)) == [
        sum(ITEMS[start : start + PIECE]) for start in range(0, len(ITEMS), PIECE) for _ in range(start % 3)
    ]


def test_large_results_arrive_while_the_parent_is_busy():
    texts = parallel_map(ITEMS, lambda piece: [str(item) * 20_000 for item in piece])

    assert texts == [str(item) * 20_000 for item in ITEMS]


def test_a_process_that_is_killed_loses_nothing(tmp_path):
    parent = os.getpid()

    def work(piece):
        meet(tmp_path)
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return [2 * item for item in piece]

    assert parallel_map(ITEMS, work) == [2 * item for item in ITEMS]


def test_an_exception_of_a_child_is_raised_here(tmp_path):
    parent, failed = os.getpid(), tmp_path / "failed"
    failed.mkdir()
    (tmp_path / "here").mkdir()

    def work(piece):
        meet(tmp_path / "here")
        if os.getpid() != parent or (failed / str(piece[0])).exists():
            (failed / str(piece[0])).touch()
            raise KeyError(piece[0])
        return list(piece)

    before = list_left()
    with pytest.raises(KeyError):
        parallel_map(ITEMS, work)
    assert not list_left() - before


def test_progress_is_reported_and_ends_the_work():
    class Stopped(Exception):  # noqa: N818 -- nothing is wrong
        pass

    seen = []

    def progress(done, total):
        seen.append((done, total))
        if done:
            raise Stopped

    before = list_left()
    with pytest.raises(Stopped):
        parallel_map(ITEMS, list, progress)
    assert seen[0] == (0, 1000)
    assert 0 < seen[-1][0] <= 1000
    assert not list_left() - before


def test_findings_can_be_sent_between_processes(tmp_path):
    """A finding that cannot be sent is found a second time, by the parent."""
    write_varied(tmp_path, 200, faults=0.5)
    findings = jobgen.lint(tmp_path, ["."]).findings

    assert pickle.loads(pickle.dumps(findings)) == findings
    assert {type(text) for finding in findings for text in finding.evidence or ()} == {str}
