"""What all tests share: `pytest --accept` rewrites golden files with what is true now, to be reviewed in the diff."""

from __future__ import annotations

import os
import tempfile

import pytest

# What another run has worked out must not decide whether a test passes.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="jobgen-tests-")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stress", action="store_true", help="try hundreds of times what is else tried a few times")
    parser.addoption("--accept", action="store_true", help="rewrite golden files with what is true now")


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Whether expectations are to be rewritten rather than held."""
    return bool(request.config.getoption("--accept"))


@pytest.fixture
def stress(request: pytest.FixtureRequest) -> int:
    """How many times as often as usual a test shall try."""
    return 40 if request.config.getoption("--stress") else 1
