"""What a change does to the rules that it is judged by: who may do more, and what is checked less.

Settings, teams, and the clusters and locks of overlays are compared entry by entry; policies and schemas file by file;
captured states of clusters object by object. A change that allows more or checks less is *weaker*.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from jobgen.compare.states import compare_states
from jobgen.k8s.nodes import as_list
from jobgen.k8s.team_kinds import DEFAULT, KINDS, covers
from jobgen.model.builtin_rules import canonical_rule_name
from jobgen.model.data import Location, location_of, untraced
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import may_mention
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import format_dotted
from jobgen.model.quantity import to_milli
from jobgen.rendering import config
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.files import File, read_file
from jobgen.repo.named_paths import read_first
from jobgen.repo.policy_kinds import only_validates
from jobgen.reports.suppress import Suppression, may_suppress, parse_suppressions
from jobgen.schema.shipped_kinds import read_custom
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

_RANKS = {"False": 0, "off": 0, "info": 1, "warning": 2, "error": 3}
_EXEMPTIONS = {
    "exceptions": ("findings are accepted", "findings are no longer accepted"),
    "exclude": ("files are not checked", "files are checked again"),
    "files": ("files are taken for something else", "files are no longer taken for something else"),
}
"""Lists whose entries exempt something from checks, and what adding and removing one does."""
_CHECKS = {
    "mandatory": ("comments cannot suppress the rule", "comments can suppress the rule"),
    "policies": ("the policies of the pack apply", "the policies of the pack no longer apply"),
    "locked": ("jobs cannot set the field", "jobs can set the field"),
}
"""Lists whose entries are checks, and what adding and removing one does."""
_EFFECTS = _EXEMPTIONS | _CHECKS
_GRANTS = frozenset("namespaces queues serviceAccounts priorityClasses kinds platforms folders".split())
"""Lists of what a team may use; without the list, nothing is limited."""
_MAX_SHOWN = 100
_OTHER = "it decides nothing about checks"
_HIDDEN = "…"
"""What stands for a value that decides nothing, and can be a secret."""


class Entry(NamedTuple):
    """A value of a file that decides, and where it is written."""

    value: Any
    location: Location
    items: tuple[Location, ...] = ()
    """Where the items of a list are written."""


class Change(NamedTuple):
    """A change of what a pull request is judged by."""

    file: str
    path: str
    """The entry, such as `rules.allowed-registries`; empty for a whole file."""
    old: Any
    """None if the entry is new."""
    new: Any
    is_weaker: bool
    effect: str
    location: Location

    def describe(self) -> str:
        """Return the change in one line."""
        what = f"`{self.path}` of {self.file}" if self.path else f"`{self.file}`"
        old, new = (_shorten(each) for each in (self.old, self.new))
        is_shown = bool(self.path) and _HIDDEN not in (self.old, self.new)
        if isinstance(self.old, dict) and isinstance(self.new, dict):
            return f"{what} changes {_describe_fields(self.old, self.new)}: {self.effect}"
        if is_shown and self.path.rpartition(".")[2] in _EFFECTS and None in (self.old, self.new):
            return f"{f'{new} is added to' if self.old is None else f'{old} is removed from'} {what}: {self.effect}"
        if self.old is not None and self.new is not None:
            return f"{what} changes{f' from {old} to {new}' if is_shown else ''}: {self.effect}"
        verb, value = ("is added", new) if self.old is None else ("is removed", old)
        return f"{what} {verb}{f' with {value}' if is_shown else ''}: {self.effect}"

    def to_plain(self) -> dict[str, Any]:
        """Return the change as it is in JSON."""
        return {
            "file": self.file,
            "line": self.location.line,
            "entry": self.path,
            "old": self.old,
            "new": self.new,
            "weaker": self.is_weaker,
            "effect": self.effect,
        }


def _shorten(value: Any) -> str:
    # YAML reads `off` as false.
    text = "off" if value is False else json.dumps(value, default=str, ensure_ascii=False)
    return f"`{text if len(text) <= _MAX_SHOWN else f'{text[:_MAX_SHOWN]}…'}`"


def _describe_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return which fields of an exception change, from what to what."""
    names = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    fields = (
        f"`{name}` from {_shorten(old[name]) if name in old else 'none'} to "
        f"{_shorten(new[name]) if name in new else 'none'}"
        for name in names
    )
    return f"{', '.join(fields)} for `{new.get('rule')}`"


def find_changed_files(old: Folder, new: Folder) -> set[str]:
    """Return the paths of settings, overlays, teams, policies, schemas and captured states whose content differs."""
    sides = [{(file.path, file.content) for file in _read_deciding(root)} for root in (old, new)]
    return {path for path, _ in sides[0] ^ sides[1]}


def _read_deciding(root: Folder) -> Iterator[File]:
    has_state = False
    for file in layout.read_layers(layout.own_layers(root)):
        has_state = has_state or may_mention(file.content, b"state")
        yield file
    if has_state:
        project = config.load_own(root)
        for name in project.overlays or ("",):
            yield from layout.read_state(layout.own_layers(root), project.environment(name, []).cluster.state)
    yield from (file for _, file in layout.read_own_schemas(layout.own_layers(root)))


def find_changes(old: Folder, new: Folder) -> list[Change]:
    """Return what differs between two revisions in the files that decide, the weaker first."""
    before, after = _read_entries(old), _read_entries(new)
    found = [change for path in before.keys() | after.keys() for change in _compare(path, before, after)]
    found += _compare_files(old, new)
    found += _compare_environments(old, new, found)
    return sorted(found, key=lambda each: (not each.is_weaker, each.location, each.path, each.describe()))


def find_begun(old: Folder, new: Folder, files: Iterable[File], mandatory: Collection[str]) -> list[Change]:
    """Return the comments in files of a revision that suppress a rule which none suppressed there before.

    Comments cannot suppress `mandatory` rules. A file may have moved, and lines move with those above them.
    """
    found: list[Change] = []
    gone: Counter[tuple[str, ...]] | None = None
    for file in (each for each in files if may_suppress(each.content)):
        was = read_first((old,), file.path)
        if was is None and gone is None:
            entries = (entry for entry in layout.find_jobs(old) if not (new / entry.path).is_file())
            gone = Counter(key for entry in entries for key, _ in _list_suppressions(read_file(entry)))
        known = gone if was is None and gone is not None else Counter(key for key, _ in _list_suppressions(was))
        for key, comment in _list_suppressions(file):
            rule, reason, until, *_ = key
            known[key] -= 1
            if known[key] >= 0 or rule in mandatory:
                continue
            directive, effect = ("ignore", "a comment suppresses the rule here")
            if not comment.line:
                directive, effect = ("ignore-file", "a comment suppresses the rule in the whole file")
            effect += f" until {until}" if until else ""
            found.append(Change(file.path, f"{directive}[{rule}]", None, reason, False, effect, comment.location))
    return sorted(found, key=lambda each: (each.location, each.path))


def _list_suppressions(file: File | None) -> Iterator[tuple[tuple[str, ...], Suppression]]:
    """Yield each rule that a comment of a file suppresses, with the reason, the end, and the key on its line."""
    if file is None or not may_suppress(file.content):
        return
    lines = file.content.decode("utf-8", "replace").splitlines()
    for comment in parse_suppressions(file.content, file.path)[0]:
        line = lines[comment.line - 1] if comment.line else ""
        key = line.partition(":")[0].strip(" -")
        for rule in comment.rules:
            yield (canonical_rule_name(rule), comment.reason, comment.until, key), comment


def to_findings(changes: Sequence[Change], *, is_judged: bool) -> list[Finding]:
    """Return the changes as findings: a warning for what is weaker, an info for anything else."""
    found: list[Finding] = []
    for each in changes:
        if each.is_weaker:
            # The commit is not named, so that a comment or a baseline can name the finding.
            message = f"{each.describe()}{'; it counts after the merge' if is_judged else ''}"
            found.append(Finding("weaker-governance", "meta", Severity.WARNING, message, each.location))
        else:
            found.append(Finding("governance-change", "meta", Severity.INFO, each.describe(), each.location))
    return found


def _compare_environments(old: Folder, new: Folder, known: Sequence[Change]) -> Iterator[Change]:
    """Compare what overlays amount to: the environments that are checked, their locks, clusters and captured states.

    An overlay may extend another one than before. What its own entries change is known already.
    """
    before, after = sides = [config.load_own(root) for root in (old, new)]
    is_listed = any(change.path == "environments" for change in known)
    dropped = set() if is_listed else {*before.environments()} - {*after.environments()}
    unlocked = {str(change.old) for change in known if change.path == "locked"}
    described = {(change.path, repr(change.old), repr(change.new)) for change in known}
    states: dict[tuple[str, str], list[str]] = {}
    names = sorted(before.overlays.keys() & after.overlays.keys())
    for name in names if before.overlays or after.overlays else [""]:
        change = partial(Change, f"overlays/{name}", location=Location(f"overlays/{name}/overlay.yaml", 1, 1))
        if name in dropped:
            effect = "fewer environments are checked, because another one extends it"
            yield change("", name, name, is_weaker=True, effect=effect)
        was, now = (side.environment(name, []) for side in sides)
        kept = {lock.path for lock in now.locks}
        for path in sorted({format_dotted(lock.path) for lock in was.locks if lock.path not in kept} - unlocked):
            yield change("locked", path, None, is_weaker=True, effect=_CHECKS["locked"][1])
        entries = [dict(_list_entries(each.cluster)) for each in (was, now)]
        for entry in sorted(entries[0].keys() | entries[1].keys()):
            first, second = (each.get(entry) for each in entries)
            path = ".".join(entry)
            if first != second and (path, repr(first), repr(second)) not in described:
                is_weaker, effect = _judge(entry, first, second)
                yield change(path, first, second, is_weaker=is_weaker, effect=effect)
        states.setdefault((was.cluster.state, now.cluster.state), []).append(name)
    for (first, second), names in states.items():
        found = (
            compare_states(layout.own_layers(old), first, layout.own_layers(new), second) if first and second else None
        )
        if found:
            effect = f"the captured state of {', '.join(names) or 'the cluster'} judges jobs; {found.describe()}"
            yield Change(second, "", first, second, found.is_weaker, effect, found.location)


def _list_entries(cluster: Cluster) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what decides of a cluster, by the path that it has in an overlay."""
    yield from ((("cluster", "operators", name), version) for name, version in cluster.operators.items())
    for name in ("kubernetes", "state"):
        yield from [(("cluster", name), getattr(cluster, name))] if getattr(cluster, name) else ()
    for group in ("queues", "budgets", "kueue"):
        pending: list[tuple[tuple[str, ...], Any]] = [(("cluster", group), getattr(cluster, group))]
        while pending:
            path, node = pending.pop()
            if isinstance(node, Mapping):
                pending += (((*path, str(key)), child) for key, child in node.items())
            elif path != ("cluster", "kueue", "version"):
                yield path, node


_Path = tuple[str, ...]
_TEAMS = "teams"


def _read_entries(root: Folder) -> dict[_Path, Entry]:
    """Return the entries of settings, teams and overlays, by file and path; those of teams by their names."""
    settings = layout.read_settings(layout.own_layers(root))
    found: dict[_Path, Entry] = {}
    for path, entry in _read_file(settings).items() if settings else ():
        found[path[1:] if path[1:2] == (_TEAMS,) and len(path) > 2 else path] = entry
    for file in layout.read_teams(layout.own_layers(root)):
        name = file.path.rpartition("/")[2].rpartition(".")[0]
        found |= {(_TEAMS, name, *path[1:]): entry for path, entry in _read_file(file).items()}
    for _, file in layout.read_overlays(layout.own_layers(root)):
        found |= {path: entry for path, entry in _read_file(file).items() if path[1:2] in (("cluster",), ("locked",))}
    return found


def _read_file(file: File) -> dict[_Path, Entry]:
    """Return the values and lists of a file. The name of a team or an overlay is that of its file."""
    found: dict[_Path, Entry] = {}
    documents = () if file.finding else read(file.content, file.path, traced=True).documents
    for document in (each for each in documents if isinstance(each.data, dict)):
        data = document.data.get("spec", {}) if "kind" in document.data else document.data
        pending: list[tuple[_Path, Any, Any]] = [((file.path,), data, None)]
        while pending:
            path, node, key = pending.pop()
            place = location_of(key) or location_of(node) or document.location
            if isinstance(node, dict):
                pending += (((*path, str(name)), child, name) for name, child in node.items())
            elif isinstance(node, list):
                found[path] = Entry(untraced(node), place, tuple(location_of(item) or place for item in node))
            else:
                found[path] = Entry(untraced(node), place)
    return found


def _compare(path: _Path, before: Mapping[_Path, Entry], after: Mapping[_Path, Entry]) -> Iterator[Change]:
    entries = before.get(path), after.get(path)
    old, new = (entry.value if entry else None for entry in entries)
    file, *names = path
    if file == _TEAMS:
        # A team may move to another file.
        file = next(entry for entry in reversed(entries) if entry).location.file
        names = names[1:] if file.startswith(f"{_TEAMS}/") else [_TEAMS, *names]
    if old == new or not names:
        # A document that is not a mapping has errors of its own.
        return
    name, place = ".".join(names), entries[1].location if entries[1] else _find_block(path, after, file)
    area = next((each for each in reversed(names) if each in _EFFECTS), "")
    if not area:
        is_weaker, effect = _judge(names, old, new)
        if effect == _NO_END and (*path[:-1], "severity") in after:
            is_weaker = True
        if effect == _OTHER:
            old, new = (each if each is None else _HIDDEN for each in (old, new))
        yield Change(file, name, old, new, is_weaker, effect, place)
        return
    items = list(_compare_items(*entries, place))
    for one in [item for item in items if item.is_added]:
        other = _find_former(one, [item for item in items if not item.is_added])
        if other:
            items = [each for each in items if each is not one and each is not other]
            yield Change(file, name, other.value, one.value, *_judge_exception(other.value, one.value), one.location)
    for is_added, item, where in items:
        old, new = (None, item) if is_added else (item, None)
        effect = _EFFECTS[area][0 if is_added else 1]
        yield Change(file, name, old, new, is_added == (area in _EXEMPTIONS), effect, where)


def _find_severity(names: Sequence[str]) -> str:
    """Return the severity that jobgen gives a rule; an error for categories and policies."""
    # Imported late: most changes touch no rule.
    from jobgen.check.rule_docs import all_rule_docs

    doc = all_rule_docs().get(canonical_rule_name(names[-1])) if names[0] == "rules" else None
    return doc.severity.value if doc else "error"


def _rank(value: Any) -> int:
    """Return the lowest rank of a severity, or of a list of them for paths and environments."""
    entries = value if isinstance(value, list) else [value]
    levels = [str(each.get("severity") if isinstance(each, dict) else each) for each in entries]
    return min((_RANKS.get(level, 3) for level in levels), default=3)


_NO_END = "the severity no longer expires"


def _judge_severity(names: Sequence[str], old: Any, new: Any) -> tuple[bool, str]:
    """Return whether less of a rule is reported, and what the entry does."""
    if names[-1] == "expires" and len(names) > 2:
        is_longer = old is not None and new is not None and str(new) > str(old)
        return is_longer, _NO_END if new is None else "another day on which the severity expires"
    if names[-1] == "reason" and len(names) > 2:
        return False, "another reason for the severity"
    shipped = _find_severity(names[:2])
    ranks = [_rank(shipped if each is None else each) for each in (old, new)]
    place = " in places" if isinstance(new, list) else ""
    if ranks[1] >= ranks[0]:
        return False, f"reported with another severity{place}"
    return True, f"{'reported with a lower severity' if ranks[1] else 'no longer reported'}{place}"


def _judge(names: Sequence[str], old: Any, new: Any) -> tuple[bool, str]:
    """Return whether the new value of an entry is weaker, and what it does."""
    if names[0] in ("rules", "categories"):
        return _judge_severity(names, old, new)
    if names[0] == "cluster":
        return _judge_cluster(names[1:], old, new)
    if names == ["environments"]:
        before, after = ({*map(str, each)} if isinstance(each, list) else set() for each in (old, new))
        is_weaker = new is None or old is None or not before <= after
        return is_weaker, "fewer environments are checked" if is_weaker else "more environments are checked"
    if names in (["select"], ["ignore"]):
        before, after = ({*map(str, each)} if isinstance(each, list) else set() for each in (old, new))
        # Without `select`, all findings are shown.
        is_weaker = not after <= before if names == ["ignore"] else bool(after) and (not before or not before <= after)
        return is_weaker, "fewer findings are shown" if is_weaker else "more findings are shown"
    if "pods" in names[:-1] and "defaults" not in names:
        is_counted = new is not None
        effect = "another number of pods counts" if is_counted else "a kind is refused, because its pods do not count"
        return is_counted, effect if old is not None else "a kind is allowed, because its pods count"
    if not ("budget" in names or _GRANTS & set(names)):
        return False, _OTHER
    if names[-1] == KINDS and "environments" not in names:
        # Without the entry, a team has the kinds of the default.
        old, new = ([DEFAULT] if each is None else each for each in (old, new))
    # A limit of a team: without the entry, nothing is limited. That of an environment replaces the one above it.
    if old is None or new is None:
        is_weaker = new is None or "environments" in names
        return is_weaker, "a limit is removed or replaced" if is_weaker else "a limit is added"
    if isinstance(old, list) and isinstance(new, list):
        known, items = list(map(str, old)), list(map(str, new))
        is_kinds = names[-1] == KINDS
        is_weaker = not all(covers(known, each) if is_kinds else each in known for each in items)
        is_weaker = is_weaker or (not items and not is_kinds)
    else:
        is_weaker = not (isinstance(old, (int, float)) and isinstance(new, (int, float)) and new < old)
    return is_weaker, "more is allowed" if is_weaker else "less is allowed"


_VERSIONED = frozenset(("operators", "kubernetes", "version"))


def _judge_cluster(names: Sequence[str], old: Any, new: Any) -> tuple[bool, str]:
    """Return whether a cluster is checked less, or allows more, and what the entry does."""
    area, field = names[0], names[-1]
    if area == "state":
        which = "no" if not new else "a" if old is None else "another"
        return old is not None, f"{which} captured state judges jobs"
    if area in ("queues", "budgets"):
        amounts = to_milli(old), to_milli(new)
        is_less = amounts[0] is not None and amounts[1] is not None and amounts[1] < amounts[0]
        is_added = area == "budgets" and old is None
        return not (is_less or is_added), "less is allowed" if is_less else "a limit of the cluster changes"
    if area == "authorizer":
        # A denied permission fails validations, and turns off policies whose conditions ask for it.
        return True, "policies that ask for permissions decide otherwise"
    if area == "complete":
        is_less = set(map(str, as_list(new))) < set(map(str, as_list(old)))
        return is_less, "less is checked" if is_less else "more is checked"
    is_version = bool(_VERSIONED & {area, field})
    return False, "other versions decide" if is_version else "it describes the cluster"


class _Item(NamedTuple):
    """An item that only one of two lists has, and where it is or was."""

    is_added: bool
    value: Any
    location: Location


_EXCEPTION_LIMITS = ("teams", "jobs", "environments", "namespaces", "paths")


def _find_former(item: _Item, removed: Sequence[_Item]) -> _Item | None:
    """Return the removed exception that an added one most likely was before."""
    if not isinstance(item.value, dict) or "rule" not in item.value:
        return None
    new: dict[str, Any] = item.value
    alike = [each for each in removed if isinstance(each.value, dict) and each.value.get("rule") == new["rule"]]
    return max(alike, key=lambda each: sum(new.get(key) == value for key, value in each.value.items()), default=None)


def _judge_exception(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[bool, str]:
    """Return whether an exception accepts more than before, and what changes about it."""
    for limit in _EXCEPTION_LIMITS:
        before, after = (set(map(str, as_list(each.get(limit)))) if limit in each else None for each in (old, new))
        if before is not None and (after is None or not after <= before):
            return True, "more findings are accepted"
    ends = [str(each.get("expires")) for each in (old, new)]
    if ends[0] != ends[1]:
        return ends[1] > ends[0], "an exception is extended" if ends[1] > ends[0] else "an exception ends earlier"
    return False, "no further findings are accepted"


def _compare_items(old: Entry | None, new: Entry | None, place: Location) -> Iterator[_Item]:
    """Yield the items of lists that only one side has."""
    sides = [
        {
            json.dumps(item, sort_keys=True, default=str): (item, where)
            for item, where in zip(entry.value, entry.items, strict=True)
        }
        if entry and isinstance(entry.value, list)
        else {}
        for entry in (old, new)
    ]
    yield from (_Item(True, item, where) for name, (item, where) in sides[1].items() if name not in sides[0])
    yield from (_Item(False, item, place) for name, (item, _) in sides[0].items() if name not in sides[1])


def _find_block(path: _Path, entries: Mapping[_Path, Entry], file: str) -> Location:
    """Return where an entry was that is gone: at what is left of its block, or at the top of its file."""
    for length in range(len(path) - 1, 1, -1):
        below = [entry.location for known, entry in entries.items() if known[:length] == path[:length]]
        if below:
            return min(below)
    return Location(file, 1, 1)


def _replaces_schema(path: str) -> bool:
    """Return True if a file is a schema of a custom resource whose schema jobgen ships."""
    parts, (kind, _, version) = path.split("/"), path.rpartition("/")[2].removesuffix(".json").rpartition("_")
    return len(parts) == 3 and path.endswith(".json") and bool(read_custom(f"{parts[1]}/{version}", kind))


_KINDS_OF_FILES = {"policies": "policy", "defects": "list of defects"}


def _compare_files(old: Folder, new: Folder) -> Iterator[Change]:
    """Compare policies, kinds and schemas, file by file."""
    sides = [
        {
            file.path: file.content
            for file in (
                *layout.read_own_policies(layout.own_layers(root)),
                *layout.read_own_defects(layout.own_layers(root)),
                *layout.read_own_kinds(layout.own_layers(root)),
                *(each for _, each in layout.read_own_schemas(layout.own_layers(root))),
            )
        }
        for root in (old, new)
    ]
    for path in sorted(sides[0].keys() | sides[1].keys()):
        before, after = (side.get(path) for side in sides)
        if before == after:
            continue
        what = _KINDS_OF_FILES.get(path.partition("/")[0], "schema")
        is_weaker, effect = True, f"the {what} is changed; compare its text"
        if after is None:
            effect = f"the {what} no longer applies"
        elif before is None and what not in ("policy", "schema"):
            is_weaker, effect = False, f"it is a new {what}"
        elif before is None:
            is_weaker = layout.replaces_shipped(path) or _replaces_schema(path)
            effect = f"it replaces a {what} that jobgen ships" if is_weaker else f"it is a new {what}"
            if what == "policy" and not only_validates(after):
                is_weaker, effect = True, "it changes objects or params that policies check"
            elif what == "schema" and not is_weaker:
                is_weaker, effect = True, "it decides what is checked of a kind"
        values = (None if before is None else path, None if after is None else path)
        yield Change(path, "", *values, is_weaker, effect, Location(path, 1, 1))
