"""Names that a repository knows: objects by kind, jobs and their folders, environments, teams, values of labels.

They come from the index of the workspace, which the background process keeps up to date, and from overlays, runtimes
and the exported state of clusters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from jobgen.check.rule_docs import RuleDoc, all_docs, policy_docs
from jobgen.features.editor.completion.items import MAX_ITEMS, Item, ItemKind, Rank
from jobgen.features.editor.index import LABEL, REFERRED_KINDS, USED_KINDS, FileIndex, list_names
from jobgen.features.editor.lint_workspace import Snapshot
from jobgen.features.editor.workspace import Ready, Workspace, load_ready
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.k8s.nodes import as_mapping
from jobgen.model.builtin_rules import former_rule_names
from jobgen.model.data import untraced, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.rendering import config
from jobgen.rendering.build import split_list
from jobgen.rendering.config import ProjectConfig, read_documents
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.shipped import read_data
from jobgen.spec.frameworks import Frameworks
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster

FOLDER, JOB, OVERLAY, POLICY, TEAM = "folder", "job", "overlay", "policy", "team"
"""The kinds of names that are not those of objects."""

_PATTERNS = {
    ("budgets", "namespaces"): "Namespace",
    ("budgets", "teams"): f"{LABEL}team",
    ("cluster", "queues"): "LocalQueue",
    ("spec", "configs"): "ConfigMap",
    ("spec", "secrets"): "Secret",
}
"""Mappings whose keys are names, by the last two steps of their paths."""
_LISTS: Mapping[str, str] = read_data("fields.yaml")["lists"]
"""Lists of names."""
_OTHER_FIELDS: Mapping[str, str] = read_data("fields.yaml")["others"]
KINDS_WITH_SCOPES = {"ClusterTrainingRuntime": ("TrainingRuntime",), "PriorityClass": ("WorkloadPriorityClass",)}
"""Other kinds that a field may name as well."""


def _list_index_names(index: Mapping[str, FileIndex]) -> Iterator[tuple[str, str]]:
    """Yield kind and name of all that the files of an index define or use."""
    for names in {file.names for file in index.values()}:
        yield from names
    for path, file in index.items():
        parts = path.split("/")[:-1]
        if parts[:1] == ["jobs"]:
            yield from ((FOLDER, "/".join(parts[:end])) for end in range(1, len(parts) + 1))
        for job in file.jobs:
            yield JOB, job.name
            for rendered in job.environments:
                yield from ((made.kind, made.name) for made in rendered.objects[1:])


def _list_layer_names(project: ProjectConfig, states: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield kind and name of what overlays, runtimes and exported states define or use."""
    for name, overlay in project.overlays.items():
        yield OVERLAY, name
        for spec in overlay.specs:
            yield from list_names({"spec": untraced(spec)})
            yield from (
                ("LocalQueue", str(queue)) for queue in as_mapping(as_mapping(spec.get("cluster")).get("queues"))
            )
    yield from ((TEAM, team.name) for team in project.teams.all)
    for name, runtime in project.runtimes.items():
        yield str(value_of(runtime.get("kind"))), name
    for kind in project.kinds:
        # The runtimes that an operator brings are the defaults of its kinds.
        yield from list_names({name: untraced(each.defaults) for name, each in kind.frameworks.items()})
    for file in (file for folder in states for file in layout.read_state(project.layers, folder)):
        for document in read_documents(file, [], shared=True).documents:
            for each in split_list(document.data):
                yield from list_names(each) if isinstance(each, dict) else ()


def find_named_kind(path: Sequence[Step], holder: Any) -> str:
    """Return the kind of names that a value has; empty if it is not a name. `holder` is the mapping around it."""
    keys = [step for step in path if isinstance(step, str)]
    if not keys:
        return ""
    last, before = keys[-1], keys[-2] if len(keys) > 1 else ""
    if last == QUEUE_LABEL:
        return "LocalQueue"
    if before in ("labels", "matchLabels"):
        return f"{LABEL}{last}"
    if isinstance(path[-1], int):
        return _LISTS.get(last, "") or USED_KINDS.get(last, "")
    if last == "name":
        # A reference such as `secretKeyRef` or `roleRef`.
        kind = value_of(as_mapping(holder).get("kind"))
        return kind if before.endswith("Ref") and isinstance(kind, str) else REFERRED_KINDS.get(before, "")
    return USED_KINDS.get(last, "") or _OTHER_FIELDS.get(last, "")


def find_keyed_kind(path: Sequence[Step]) -> str:
    """Return the kind of names that the keys of the mapping at a path are; empty if they are fields."""
    keys = [step for step in path if isinstance(step, str)]
    if keys and keys[-1] in ("labels", "matchLabels"):
        return LABEL
    if keys and keys[-1] == "environments":
        return OVERLAY
    last = tuple(keys[-2:])
    if last and last[-1] in ("configs", "secrets") and "roles" in keys:
        last = ("spec", last[-1])
    return _PATTERNS.get((last[0], last[1]), "") if len(last) == 2 else ""


class Known(NamedTuple):
    """What a repository knows."""

    root: Folder
    kinds: tuple[Kind, ...]
    frameworks: Frameworks
    clusters: tuple[Cluster, ...]
    """Those of its environments; the newest releases if it has none."""
    names: Mapping[str, tuple[str, ...]] = {}
    """Sorted, by kind."""
    read_docs: Callable[[], dict[str, RuleDoc]] = dict
    """Reads the documentation of all rules and policies."""
    read_policies: Callable[[], dict[str, RuleDoc]] = dict
    """Reads that of all policies."""

    def find_names(self, kind: str, typed: str = "") -> Sequence[str]:
        """Return the names of a kind; of very many, only some, first those that match what is typed."""
        kinds = (kind, *KINDS_WITH_SCOPES.get(kind, ()))
        found = [name for each in kinds for name in self.names.get(each, ())]
        if len(found) <= MAX_ITEMS:
            return found
        # One more than are shown, so that the editor asks again when other letters are typed.
        matching = (name for name in found if typed.lower() in name.lower())
        return list(dict.fromkeys((*islice(matching, MAX_ITEMS + 1), *found[: MAX_ITEMS + 1])))

    def list_job_kinds(self, framework: str) -> list[Kind]:
        """Return the kinds that a job of a framework, or of any if it is empty, becomes in some environment."""
        platforms = {platform for cluster in self.clusters for platform in cluster.list_platforms()}
        return [
            kind
            for kind in sorted(self.kinds, key=lambda kind: kind.name)
            if kind.platform in platforms and (framework in kind.frameworks if framework else kind.frameworks)
        ]


class KnownCache:
    """What a workspace knows, collected again when its layers or its index have changed."""

    def __init__(self) -> None:
        self._project: ProjectConfig | None = None
        self._snapshot: Snapshot | None = None
        self._known: Known | None = None

    def find(self, workspace: Workspace) -> Known:
        """Return what a workspace knows now. While its settings have errors, what it knew before stays."""
        with workspace.reading():
            ready = load_ready(workspace)
            is_same = ready is None or ready.project is self._project
            if self._known is None or not is_same or self._snapshot is not workspace.snapshot:
                self._known = self._collect(workspace, ready)
                self._snapshot = workspace.snapshot
        return self._known

    def _collect(self, workspace: Workspace, ready: Ready | None) -> Known:
        if ready is not None:
            project, clusters = ready.project, ready.clusters
        else:
            # Without settings, the clusters have the newest releases.
            project = self._project or config.load_own(workspace.root)
            clusters = self._known.clusters if self._known else (Cluster(),)
        states = sorted({cluster.state for cluster in clusters if cluster.state})
        found: dict[str, set[str]] = {}
        for kind, name in chain(_list_index_names(workspace.index), _list_layer_names(project, states)):
            found.setdefault(kind, set()).add(name)
        names = {kind: tuple(sorted(several)) for kind, several in found.items()}
        self._project = project
        home = layout.own_layers(workspace.root) if workspace.is_repository else None
        docs, policies = cache(partial(all_docs, home)), cache(partial(policy_docs, home))
        return Known(Path(workspace.root), project.kinds, project.frameworks, tuple(clusters), names, docs, policies)


_NAMES = lazy_pattern(r"#\s*jobgen\s*:\s*ignore(?:-file)?\[(?P<names>[^\]]*)\Z", re.IGNORECASE)
_DIRECTIVE = lazy_pattern(r"#\s*jobgen\s*:\s*(?P<word>[\w-]*)\Z", re.IGNORECASE)
_START = lazy_pattern(r"#\s*(?P<word>[\w]*)\Z")
_NAME = lazy_pattern(r"[\w-]*\Z")


def complete_comment(
    before: str, read_docs: Callable[[], Mapping[str, RuleDoc]], found: Iterable[str]
) -> tuple[int, list[Item]]:
    """Return what a comment can go on with, and how many characters before the cursor that replaces.

    `before` is the comment up to the cursor; `found` has the rules that the line below, or this one, breaks.
    """
    names = _NAMES.search(before)
    if names:
        typed = _NAME.search(names["names"])
        given = {name.strip() for name in names["names"].split(",")[:-1]}
        return len(typed[0]) if typed else 0, [
            item for item in list_rules(read_docs().values(), found) if item.label not in given
        ]
    directive = _DIRECTIVE.search(before)
    if directive:
        return len(directive["word"]), list(_list_directives(""))
    start = _START.search(before)
    return (len(start["word"]), list(_list_directives("jobgen: "))) if start else (0, [])


def _list_directives(head: str) -> Iterator[Item]:
    for word, scope in (("ignore", "on this line, or on the next one"), ("ignore-file", "in this file, at its top")):
        text = f"{head}{word}"
        insert = f"{text}[${{1:rule}}] -- ${{2:reason}}"
        documentation = f"Suppresses findings of rules {scope}. A reason is required."
        yield Item(text, ItemKind.RULE, insert, "suppression", documentation, is_snippet=True)


def list_rules(docs: Iterable[RuleDoc], found: Iterable[str] = ()) -> Iterator[Item]:
    """Yield all rules and policies; those that were found here come first, former names last."""
    first = frozenset(found)
    for doc in sorted(docs, key=lambda doc: doc.name):
        rank = Rank.REQUIRED if doc.name in first else Rank.COMMON
        detail = f"{doc.severity} ({doc.category})"
        yield Item(doc.name, ItemKind.RULE, "", detail, f"{doc.summary}\n\n{doc.text}".strip(), rank)
        for former in former_rule_names(doc.name):
            reason = f"the former name of `{doc.name}`; use that"
            yield Item(former, ItemKind.RULE, "", detail, doc.summary, Rank.DEPRECATED, reason)
