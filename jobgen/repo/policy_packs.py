"""The packs of policies that come with jobgen and are off by default, and which of them the settings turn on."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.model.data import value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import File
from jobgen.repo.shipped import PACKS_FOLDER

FOLDER = PACKS_FOLDER

SETTING = "policies"
"""The list of packs in the settings."""


class Pack(NamedTuple):
    """A pack of policies: with another pack that it includes, except the policies that its own make stricter."""

    name: str
    description: str
    includes: str = ""
    replaces: frozenset[str] = frozenset()


PACKS = (
    Pack("pss-baseline", "the level baseline of the Pod Security Standards"),
    Pack(
        "pss-restricted",
        "the level restricted of the Pod Security Standards, with baseline",
        includes="pss-baseline",
        replaces=frozenset(
            f"pss-baseline-{control}.yaml" for control in ("capabilities", "host-path", "proc-mount", "seccomp")
        ),
    ),
    Pack("supply-chain", "where images come from, and how they are pinned"),
    Pack("cost", "labels, GPUs, deadlines, node pools and overcommitment"),
    Pack("kueue", "queues, priorities and requests"),
)
PACK_NAMES = tuple(pack.name for pack in PACKS)


def read_packs(settings: File | None) -> tuple[str, ...]:
    """The packs that a settings file turns on. Names that are not packs have findings of their own."""
    if settings is None or SETTING.encode() not in settings.content:
        return ()
    # Imported late: most repositories turn on no pack.
    from jobgen.yamlio.read import read

    for document in read(settings.content, settings.path).documents[:1]:
        listed = document.data.get(SETTING)
        named = {value_of(node) for node in listed if isinstance(node, str)} if isinstance(listed, list) else set()
        return tuple(name for name in PACK_NAMES if name in named)
    return ()


def list_folders(names: Iterable[str]) -> dict[str, frozenset[str]]:
    """The folders of packs and of those that they include, each with the files that are left out of it."""
    wanted = set(names)
    folders = {FOLDER + pack.name: frozenset[str]() for pack in PACKS if pack.name in wanted}
    for pack in PACKS:
        if pack.name in wanted and pack.includes:
            folders[FOLDER + pack.includes] = pack.replaces
    return folders


def list_all_folders() -> dict[str, frozenset[str]]:
    """The folders of all packs, with all their files."""
    return {FOLDER + name: frozenset() for name in PACK_NAMES}


def list_replacements(path: str) -> tuple[str, str]:
    """The paths of files of a repository that replace a file of a pack: the same, or without the folder of the pack."""
    inside = path.removeprefix(FOLDER).partition("/")[2]
    return path, f"policies/{inside}"
