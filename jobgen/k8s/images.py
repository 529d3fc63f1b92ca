"""Names of images: their parts, and the grammar that container runtimes read them by (distribution/reference)."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from jobgen.model.lazy_re import lazy_pattern

_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = lazy_pattern(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_REPOSITORY = lazy_pattern(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*")
_TAG = lazy_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = lazy_pattern(r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}")
_IDENTIFIER = lazy_pattern(r"[a-f0-9]{64}")
_LONGEST = 255
_SEPARATORS = lazy_pattern(r"[-_.+]")

MUTABLE_TAGS = frozenset(("latest", "nightly", "dev", "main", "master", "edge"))
"""Tags that are moved from image to image."""


class ImageName(NamedTuple):
    """The parts of an image's name; a part that is not written is empty, `tagged` tells `repo:` from `repo`."""

    domain: str
    repository: str
    tag: str
    digest: str
    has_tag: bool

    @property
    def is_mutable(self) -> bool:
        """Whether the same name may mean another image tomorrow; without a tag it is `latest`."""
        return not self.digest and (not self.tag or self.tag in MUTABLE_TAGS)

    @property
    def name_tokens(self) -> frozenset[str]:
        """The words of which the last part of the repository and the tag are made."""
        return frozenset(_SEPARATORS.split(f"{self.repository.rpartition('/')[2]}-{self.tag}".lower()))


@cache
def parse_image_name(image: str) -> ImageName:
    """The parts of an image's name, as far as it has any."""
    rest, at, digest = image.partition("@")
    first, slash, path = rest.partition("/")
    # As Docker does: what could be a host is one.
    host = bool(slash) and (any(char in first for char in ".:") or first == "localhost" or first != first.lower())
    domain, path = (first, path) if host else ("", rest)
    repository, colon, tag = path.partition(":")
    return ImageName(domain, repository, tag, digest or at, bool(colon))


@cache
def find_image_error(image: str) -> str:
    """Why no container runtime takes this for the name of an image; empty if it would."""
    name = parse_image_name(image)
    if _IDENTIFIER.fullmatch(image):
        return "64 hexadecimal digits are an identifier, not a name"
    if name.domain and not _DOMAIN.fullmatch(name.domain):
        return f"`{name.domain}` is not a registry"
    if name.repository != name.repository.lower():
        return "a repository is written in lower case"
    if not _REPOSITORY.fullmatch(name.repository):
        return f"`{name.repository}` is not a repository" if name.repository else "it names no repository"
    if name.has_tag and not _TAG.fullmatch(name.tag):
        return f"`{name.tag}` is not a tag" if name.tag else "its tag is empty"
    if name.digest and not _DIGEST.fullmatch(name.digest):
        return f"`{name.digest}` is not a digest"
    return f"a repository has at most {_LONGEST} characters" if len(name.repository) > _LONGEST else ""
