"""Which files belong together, where no settings say so: the objects of each file, and those that other files use.

A folder of manifests may be meant for several clusters, so the objects of a file decide about that file only, unless
another file refers to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jobgen.check.cluster.state import CONFIG_KINDS, NAMED_KINDS, RUNTIME_KINDS, StatePart
from jobgen.check.rules import Rule
from jobgen.k8s.kinds import CLUSTER_SCOPED, qualify_kind
from jobgen.model.finding import Finding, Identity
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.files import FileEntry, read_file

REFERENCE_RULE, CLAIM_RULE = "unknown-reference", "shared-single-node-claim"
_DECIDING_KINDS = (
    frozenset(("LimitRange", "Namespace", "PriorityClass", "Queue", "ResourceQuota", *RUNTIME_KINDS))
    | CONFIG_KINDS
    | NAMED_KINDS
)


class Member(NamedTuple):
    """An object of an environment: its identity, its file, and its place there."""

    identity: Identity
    path: str
    position: int
    item: int
    companion: int = 0
    is_queued: bool = False
    """True if Kueue decides when its pods start."""


def has_decided(members: Sequence[Member], own: frozenset[str]) -> bool:
    """Return True if some objects decide about others; alone, they decide nothing, except those of features."""
    kinds = set(map(kind_of, members))
    deciding = kinds & (_DECIDING_KINDS | own)
    return bool(kinds & own) or bool(deciding and kinds - deciding)


def split_by_state(members: Sequence[Member], own: frozenset[str]) -> list[list[Member]]:
    """The objects of each file that has some which decide about others, and those of all other files together."""
    deciding = _DECIDING_KINDS | own
    files = {member.path for member in members if kind_of(member) in deciding}
    by_file = group_by_file(member for member in members if member.path in files)
    return [*by_file.values(), [member for member in members if member.path not in files]]


class Joinable(NamedTuple):
    """Objects that belong together although they are in several files, and the files that use them."""

    kinds: frozenset[str]
    required: frozenset[str]
    """Without an object of these kinds, nothing is joined."""
    may_use: Callable[[str, Sequence[str]], bool]
    """Return True if a file may use objects, from its text and their names."""
    has_rule: Callable[[Rule], bool]
    """Return True for the rules that are about them."""
    keeps_own: bool = False
    """True if the objects of a file are also checked by themselves."""


def join_part(part: StatePart) -> Joinable:
    """Return the objects of a part of the state, and what uses them."""

    def may_use(text: str, names: Sequence[str]) -> bool:
        # Imported late: few folders have such objects.
        from jobgen.model.meant import find_meant

        return any(name in names or find_meant(name, names) for name in set(part.find_used(text)))

    return Joinable(part.joined, part.kinds, may_use, lambda rule: rule.scope == part.scope)


def may_refer(text: str, names: Sequence[str] = ()) -> bool:
    """Return True if a file may refer to a ConfigMap, a Secret, a claim or an account."""
    return any(word in text for word in ("onfigMap", "ecret", "ersistentVolumeClaim", "erviceAccount"))


_REFERRED_KINDS = CONFIG_KINDS | NAMED_KINDS
CONFIGS = Joinable(_REFERRED_KINDS, _REFERRED_KINDS, may_refer, lambda rule: rule.name == REFERENCE_RULE)

_LIMITING_KINDS = frozenset(("LimitRange", "ResourceQuota"))
_LIMIT_RULES = ("exceeds-limit-range", "exceeds-quota")
# What objects of one file exceed together, they exceed whatever else there is.
LIMITS = Joinable(
    _LIMITING_KINDS, _LIMITING_KINDS, lambda *_: True, lambda rule: rule.name in _LIMIT_RULES, keeps_own=True
)


def is_of_other_folder(found: Finding, members: Sequence[Member]) -> bool:
    """Return True if a finding rests on an object in a file of another folder, unless one build has both."""
    if found.rule not in (REFERENCE_RULE, CLAIM_RULE, *_LIMIT_RULES) or len({member.path for member in members}) == 1:
        return False
    folders = {each.location.file.rpartition("/")[0] for each in found.related}
    return folders != {found.location.file.rpartition("/")[0]}


Group = tuple[list["Member"], list[Rule]]
"""Objects that are checked together, and the rules that check them."""


def join_files(groups: list[Group], joinable: Sequence[Joinable], entries: Sequence[FileEntry]) -> list[Group]:
    """Add a group for the files whose objects belong together, and for the files that use them.

    Only the rules about these objects apply to it, and no longer to these files by themselves. Files that have an
    object twice are of several clusters: then only those of one folder belong together.
    """
    texts = {entry.path: entry for entry in entries}
    members, rules = [member for several, _ in groups for member in several], groups[0][1]
    copied = _find_copied(members) if any(each.keeps_own for each in joinable) else set()
    for each in joinable:
        joined = group_by_file(member for member in members if kind_of(member) in each.kinds)
        if each.required.isdisjoint(kind_of(member) for several in joined.values() for member in several):
            continue
        # Those of a build have the path of its kustomization, and belong together in any case.
        is_one = not _has_object_twice(joined.values())
        folders = {path: "" if is_one else path.rpartition("/")[0] for path in joined}
        for folder in dict.fromkeys(folders.values()):
            files = {path: several for path, several in joined.items() if folders[path] == folder}
            names = sorted({member.identity.name for several in files.values() for member in several})
            others = {member.path for member in members if is_one or member.path.rpartition("/")[0] == folder}
            # Files with the same object are alternatives, of which only one may be applied.
            others -= copied if each.keeps_own else set()
            others = {path for path in others.difference(files) if each.may_use(read_text(texts[path]), names)}
            if not others or _has_object_twice(files.values()):
                continue
            places = others.union(files)
            groups = [
                (several, [rule for rule in own if each.keeps_own or not each.has_rule(rule)])
                if several and several[0].path in files
                else (several, own)
                for several, own in groups
                if several
            ]
            together = [member for member in members if member.path in places]
            groups.append((together, [rule for rule in rules if each.has_rule(rule)]))
    return groups


def _find_copied(members: Iterable[Member]) -> set[str]:
    """Return the files with an object that another file has, too."""
    files: dict[object, set[str]] = {}
    for each in members:
        files.setdefault((kind_of(each), each.identity.namespace, each.identity.name), set()).add(each.path)
    return set().union(*(paths for paths in files.values() if len(paths) > 1))


def _has_object_twice(files: Iterable[Sequence[Member]]) -> bool:
    names = [(kind_of(each), each.identity.namespace, each.identity.name) for several in files for each in several]
    return len(set(names)) < len(names)


def read_text(entry: FileEntry) -> str:
    """Return the text of a file, or of the objects that are built from it."""
    if entry.build is not None:
        return "\n".join(repr(built.data) for built in entry.build().objects)
    return read_file(entry).content.decode("utf-8", "replace")


def namespace_of(member: Member) -> str:
    """Return the namespace of an object; empty if its kind has none."""
    return "" if kind_of(member) in CLUSTER_SCOPED else member.identity.namespace


def kind_of(member: Member) -> str:
    """The kind of an object, with its group if a kind of another group is known by this name."""
    return qualify_kind(member.identity.api_version, member.identity.kind)


def group_by_file(members: Iterable[Member]) -> dict[str, list[Member]]:
    """Return the objects of each file."""
    found: dict[str, list[Member]] = {}
    for member in members:
        found.setdefault(member.path, []).append(member)
    return found
