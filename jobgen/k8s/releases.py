"""The releases of Kubernetes that jobgen knows."""

from __future__ import annotations

from jobgen.model.quantity import parse_digits

Release = tuple[int, int]
"""A minor release of Kubernetes, such as (1, 36)."""

NEWEST_RELEASE: Release = (1, 36)
OLDEST_RELEASE: Release = (1, 30)


def parse_release(text: str) -> Release:
    """Return the minor release of a version such as `1.33` or `v1.33.4-gke.100`; the newest if the text is empty."""
    major, _, rest = text.removeprefix("v").partition(".")
    minor = rest.partition(".")[0].partition("-")[0].partition("+")[0]
    numbers = parse_digits(major), parse_digits(minor)
    return NEWEST_RELEASE if None in numbers else (numbers[0] or 0, numbers[1] or 0)


def format_release(release: Release) -> str:
    """Return a release as users write it."""
    return f"{release[0]}.{release[1]}"


def list_releases() -> list[str]:
    """Return the releases whose kinds jobgen knows, the newest first."""
    major, newest = NEWEST_RELEASE
    return [format_release((major, minor)) for minor in range(newest, OLDEST_RELEASE[1] - 1, -1)]
