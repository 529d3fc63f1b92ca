"""Lints as the command runs them, with its options by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobgen.cli import run_lint
from jobgen.cli.result import Result


def lint_paths(directory: Path, paths: Sequence[str], envs: Sequence[str], **options: Any) -> Result:
    """Return what `jobgen lint` writes, and its exit code."""
    return run_lint.lint_paths(*run_lint.sort_options(directory, paths, envs, options))
