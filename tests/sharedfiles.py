"""Folders of test material that are not part of the repository: ../shared/<name>, beside it or one level up.

A worktree is often one folder deeper than the repository. Tests skip with a reason where a folder is missing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def shared_folder(name: str) -> Path:
    """Return a folder of shared material, or skip the test."""
    for above in (ROOT.parent, ROOT.parent.parent):
        if (above / "shared" / name).is_dir():
            return above / "shared" / name
    pytest.skip(f"there is no ../shared/{name} beside the repository")
