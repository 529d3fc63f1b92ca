"""`jobgen doctor`: what was found on this machine and in this repository, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.model.named_tuple import NamedTuple

OK, NOTE, PROBLEM = "ok", "note", "problem"


class Check(NamedTuple):
    """A line of the report."""

    name: str
    found: str
    status: str = OK
    """`ok`, `note` if something could be better, or `problem` if something must be done."""
    next: str = ""
    """The command that helps; empty if nothing is to be done."""
    facts: Mapping[str, Any] = {}
    """What was measured, for programs."""
