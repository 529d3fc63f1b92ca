"""What all tests share: `pytest --accept` rewrites golden files with what is true now, to be reviewed in the diff."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="rewrite golden files with what is true now")


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Whether expectations are to be rewritten rather than held."""
    return bool(request.config.getoption("--accept"))
