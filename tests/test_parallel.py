"""Work is shared between processes, and a share is not shared again."""

from __future__ import annotations

import os

import pytest

from jobgen.pipeline import parallel
from jobgen.pipeline.parallel import parallel_map

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
ITEMS = list(range(1000))


def list_processes(share):
    return [(item, os.getpid()) for item in share]


def test_a_share_is_not_shared_again(monkeypatch):
    monkeypatch.setattr(parallel, "_count_cores", lambda: 2)

    def share_again(share):
        inner = {process for _, process in parallel_map(ITEMS, list_processes)}
        return [(item, inner) for item in share]

    found = parallel_map(ITEMS, share_again)

    assert [item for item, _ in found] == ITEMS
    assert all(len(inner) == 1 for _, inner in found)
    assert len({process for _, inner in found for process in inner}) == 2
    assert len({process for _, process in parallel_map(ITEMS, list_processes)}) == 2
