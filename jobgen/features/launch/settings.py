"""Variables of a container against its devices and network."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.features.launch.read_job import Launch
from jobgen.features.launch.values import Fault


def check_settings(launch: Launch) -> Iterator[Fault]:
    """Yield what is wrong with the variables of a container."""
    yield from ()
