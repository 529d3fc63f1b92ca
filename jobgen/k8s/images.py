"""Image names: their parts, and the grammar of container runtimes (distribution/reference)."""

from __future__ import annotations

from functools import cache

from jobgen.k8s.placeholders import has_placeholder
from jobgen.model.lazy_re import has_any, lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_IPV6_DOMAIN = lazy_pattern(r"\[[a-fA-F0-9:]+\](?::[0-9]+)?")
_REPOSITORY = lazy_pattern(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*")
_DIGEST = lazy_pattern(r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}")
_MAX_LENGTH = 255
_SEPARATORS = lazy_pattern(r"[-_.+]")

_FOR_GPUS = lazy_pattern(r"gpu|cuda[0-9]*|cu1[0-9]{2}|cudnn[0-9]*|rocm[0-9]*")
# The frameworks that NVIDIA publishes for its GPUs.
_NVIDIA = frozenset(f"nvidia/{name}" for name in "jax mxnet nemo paddlepaddle pyg pytorch tensorflow".split())

MUTABLE_TAGS = frozenset(("latest", "nightly", "dev", "main", "master", "edge"))


class ImageName(NamedTuple):
    """The parts of an image name. A missing part is empty; `has_tag` distinguishes `repo:` from `repo`."""

    domain: str
    repository: str
    tag: str
    digest: str
    has_tag: bool

    @property
    def is_mutable(self) -> bool:
        """Return True if the name may refer to another image later. A name without a tag means `latest`."""
        return not self.digest and (not self.tag or self.tag in MUTABLE_TAGS)

    @property
    def name_tokens(self) -> frozenset[str]:
        """The words in the tag and in the last part of the repository."""
        return frozenset(_SEPARATORS.split(f"{self.repository.rpartition('/')[2]}-{self.tag}".lower()))


@cache
def parse_image_name(image: str) -> ImageName:
    """Split an image name into its parts; an invalid name is split as far as possible."""
    rest, at, digest = image.partition("@")
    first, slash, path = rest.partition("/")
    # As in Docker: the first part is a registry if it can be a host name.
    is_domain = bool(slash) and ("." in first or ":" in first or first == "localhost" or first != first.lower())
    domain, path = (first, path) if is_domain else ("", rest)
    repository, colon, tag = path.partition(":")
    return ImageName(domain, repository, tag, digest or at, bool(colon))


@cache
def find_gpu_word(image: str) -> str:
    """Return the part of an image name that says that the image is built for GPUs; empty if none does."""
    name = parse_image_name(image)
    if name.domain == "nvcr.io" and name.repository in _NVIDIA:
        return f"nvcr.io/{name.repository}"
    return next(filter(_FOR_GPUS.fullmatch, sorted(name.name_tokens)), "")


@cache
def find_image_error(image: str) -> str:
    """Return why container runtimes reject the name of an image; empty if they accept it."""
    name = parse_image_name(image)
    if len(image) == 64 and set(image) <= set("0123456789abcdef"):
        return "64 hexadecimal digits are an image ID, not a name"
    if name.domain and not _is_domain(name.domain):
        return f"`{name.domain}` is not a valid registry"
    if name.repository != name.repository.lower():
        return "the repository must be lowercase"
    if not _REPOSITORY.fullmatch(name.repository):
        return f"`{name.repository}` is not a valid repository" if name.repository else "the repository is missing"
    if name.has_tag and not _is_tag(name.tag):
        return f"`{name.tag}` is not a valid tag" if name.tag else "the tag is empty"
    if name.digest and not _DIGEST.fullmatch(name.digest):
        return _describe_digest(name.digest)
    return f"the repository must have at most {_MAX_LENGTH} characters" if len(name.repository) > _MAX_LENGTH else ""


_DIGITS = {"sha256": 64, "sha384": 96, "sha512": 128}
"""The number of hexadecimal digits of a digest, by its algorithm."""


def _describe_digest(digest: str) -> str:
    """Say what is wrong with a digest, and what to write."""
    algorithm, _, digits = digest.partition(":")
    start = f"`{digest}` is not a valid digest"
    wanted = _DIGITS.get(algorithm)
    if wanted is None:
        return f"{start}; write `sha256:` and 64 hexadecimal digits"
    if len(digits) != wanted:
        return f"{start}, because it has {len(digits)} of {wanted} hexadecimal digits; copy the whole digest"
    return f"{start}, because it has other signs than `0` to `9` and `a` to `f`; copy the whole digest"


def lower_repository(image: str) -> str:
    """Return an image with its repository in lower case, and its tag as it is."""
    repository = parse_image_name(image).repository
    return image.replace(repository, repository.lower(), 1) if repository else image


def is_go_package(image: str) -> bool:
    """Return True if the image is a Go package, which ko builds and replaces with the name of its image."""
    return image.startswith("ko://")


def is_unresolved(image: str) -> bool:
    """Return True if a person or a tool must fill in a part of the name, so that its tag is not known yet."""
    return is_go_package(image) or has_placeholder(image)


# Short runs see few images: to compile patterns for them would take longer than these functions.


def _is_domain(text: str) -> bool:
    """Return True if a text is a host name or an address of IPv6 in brackets, maybe with a port."""
    host, colon, port = text.partition(":")
    if text.startswith("["):
        return _IPV6_DOMAIN.fullmatch(text) is not None
    # Its labels have letters and digits, and hyphens inside.
    letters = host.replace(".", "").replace("-", "")
    has_labels = letters.isascii() and letters.isalnum() and not has_any(f".{host}.", ("..", ".-", "-."))
    return has_labels and (not colon or (port.isascii() and port.isdigit()))


def _is_tag(text: str) -> bool:
    """True if a text has letters, digits and underscores, and after the first character dots and hyphens, too."""
    is_word = text.isascii() and text.replace(".", "_").replace("-", "_").replace("_", "a").isalnum()
    return is_word and len(text) <= 128 and text[0] not in ".-"
