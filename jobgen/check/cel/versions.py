"""Semantic versions in CEL."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jobgen.check.cel.values import NO_OVERLOAD, strings, tagged, untagged
from jobgen.model.lazy_re import lazy_pattern

TAG = "semver"
_NUMBER = r"0|[1-9][0-9]*"
_LABEL = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = lazy_pattern(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_LABEL}(?:\.{_LABEL})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_LARGEST = 2**64 - 1


def semver(text: object, normalize: object = False) -> bytes:  # noqa: FBT002
    """`semver(string)`, and `semver(string, bool)`, which reads `v1.2` as `1.2.0`."""
    return tagged(TAG, _parsed(_text(text, normalize)))


def is_semver(text: object, normalize: object = False) -> bool:  # noqa: FBT002
    """`isSemver(string)` and `isSemver(string, bool)`."""
    try:
        semver(text, normalize)
    except ValueError:
        return False
    return True


def compare(version: object, other: object) -> int:
    """`semver.compareTo(semver)`."""
    ours, theirs = _order(untagged(version, TAG)), _order(untagged(other, TAG))
    return (ours > theirs) - (ours < theirs)


def major(version: object) -> int:
    """`semver.major()`."""
    return int(_order(untagged(version, TAG))[0])


def minor(version: object) -> int:
    """`semver.minor()`."""
    return int(_order(untagged(version, TAG))[1])


def patch(version: object) -> int:
    """`semver.patch()`."""
    return int(_order(untagged(version, TAG))[2])


def _text(text: object, normalize: object) -> str:
    if type(normalize) is not bool:
        raise TypeError(NO_OVERLOAD)
    (found,) = strings(text)
    return _normal(found) if normalize else found


def _normal(text: str) -> str:
    parts = [_unpadded(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and set("+-") & set(parts[-1]):
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, *["0"] * (3 - len(parts))])


def _unpadded(part: str) -> str:
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if rest[:1] in tuple("0123456789") else f"0{rest}"


def _parsed(text: str) -> str:
    """The version without its build metadata, which comparisons ignore."""
    match = _VERSION.fullmatch(text)
    if match is None or any(int(part) > _LARGEST for part in match.groups()[:3] if len(part) < 30):
        raise ValueError(f"`{text}` is not a semantic version")
    return text.partition("+")[0]


@lru_cache(maxsize=1024)
def _order(text: str) -> tuple[Any, ...]:
    """The sort key of a version: a release follows its prereleases, numbers precede words."""
    numbers, _, before = text.partition("-")
    labels = tuple((0, int(label), "") if label.isdigit() else (1, 0, label) for label in before.split("."))
    return (*(int(part) for part in numbers.split(".")), (0, labels) if before else (1, ()))
