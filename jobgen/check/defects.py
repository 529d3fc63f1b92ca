"""Known defects of components by version: data in `defects/`, of jobgen and of repositories, evaluated as rules.

Each defect is a rule with its own name. Which of them apply to a cluster is decided by its declared versions, and which
of those to an object by its kind, before any expression is evaluated. An expression that fails, because a field does
not exist, finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from jobgen.check.cel import Bound, CompileError, EvaluationBudget, Expression, Failed, available, compile_cel
from jobgen.check.cluster.state import ClusterState, name_object
from jobgen.check.rules import Rule, Scope, Violation
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.k8s.nodes import as_list, as_mapping, as_text, find_nodes, find_places, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain, ValidFields, untraced
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_DEFECT_ITEMS, MAX_DEFECTS
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import InvalidPathError, Step, parse_dotted
from jobgen.model.place import At, Place, node_at
from jobgen.model.sentence import Sentence, Words
from jobgen.model.suggest import did_you_mean
from jobgen.rendering.config import complete_schemas, read_valid_documents
from jobgen.rendering.locate import locate
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.repo.known_rules import list_known_rules
from jobgen.repo.layout import Layers
from jobgen.repo.shipped import read_ready
from jobgen.spec.kinds import Kind, parse_version
from jobgen.spec.overlay import Cluster, parse_cluster
from jobgen.yamlio.read import read

NAMES = ("object", "item", "cluster", "clusterQueue", "flavors")
"""What a condition can read."""
CATEGORY = "defect"
_ANY, _QUEUED = "*", "queued"
_STATE = lazy_pattern(r"\b(?:cluster\s*\.\s*objects|clusterQueue|flavors)\b")
_KINDS_READ = lazy_pattern(r"\bcluster\s*\.\s*objects\s*\.\s*\??\s*(\w+)")
_MAX_OBJECTS = 1000
# Conditions of defects are short. Those of a hostile repository end within seconds, which policies need not do.
_WEIGHT = 5
_LAST = 10**6
_MAX_SHOWN = 200
TITLES = {
    "argo-cd": "Argo CD",
    "flux": "Flux",
    "jobset": "JobSet",
    "kubernetes": "Kubernetes",
    "kuberay": "KubeRay",
    "kueue": "Kueue",
    "leaderworkerset": "LeaderWorkerSet",
    "trainer": "Trainer",
    "volcano": "Volcano",
}

_APPOSITION = lazy_pattern(r",(?: as in)? `\{value\}`, ")
_AFTER_NOUN = lazy_pattern(r"\b(the|variable|flavor|class|hook|queue|service) `\{value\}`")


class Defect(NamedTuple):
    """A defect of some versions of a component."""

    name: str
    component: str
    since: str
    fixed: tuple[str, ...]
    kinds: tuple[str, ...]
    each: tuple[str, ...]
    """The parts for which the condition is evaluated; none means the object."""
    condition: str
    at: str
    severity: Severity
    value: str
    """An expression for the value in the message; empty for the field that findings point at."""
    consequence: str
    fix: str
    source: str
    cluster: Mapping[str, Any]
    """What else the cluster of the examples declares."""
    red: str
    green: str

    @property
    def title(self) -> str:
        """The name of the component in messages."""
        return TITLES.get(self.component, self.component)

    @property
    def reads_state(self) -> bool:
        """Return True if its condition reads other objects of the cluster."""
        return _STATE.search(self.condition) is not None

    def affects(self, declared: str) -> bool:
        """Return True if a declared version has the defect. A version without a patch is every patch of it."""
        low = parse_version(declared)
        numbers = declared.removeprefix("v").split("-")[0].split("+")[0].split(".")
        high = low if len(numbers) > 2 else (*_pad(low, len(numbers)), _LAST)
        return bool(declared) and self._has(low) and self._has(high)

    def _has(self, version: tuple[int, ...]) -> bool:
        fixed = sorted(map(parse_version, self.fixed))
        if version < parse_version(self.since) or (fixed and version >= fixed[-1]):
            return False
        line = _pad(version, 2)
        return not any(_pad(each, 2) == line and version >= each for each in fixed)

    def find_last_broken(self) -> list[str]:
        """The last version with the defect before each fix; the first version if it is not fixed."""
        return [_step_back(parse_version(fixed)) for fixed in self.fixed] or [self.since or "1.0.0"]

    def concerns(self, manifest: Manifest) -> bool:
        """Return True if it is about objects of this kind."""
        if _QUEUED in self.kinds and QUEUE_LABEL in manifest.labels:
            return True
        return bool({_ANY, manifest.kind_name, f"{manifest.kind_name}.{manifest.group}"} & {*self.kinds})

    def describe(self) -> str:
        """What happens, without a value: `the flavor {value}` becomes the flavor."""
        said = _APPOSITION.sub(" ", self.consequence)
        said = _AFTER_NOUN.sub(r"\1", said.replace("exactly `{value}`", "exactly so many"))
        return said.replace("zero of `{value}`", "zero of a resource").replace("`{value}`", "the value")

    def explain(self) -> str:
        """The versions, the fix and the source, in sentences."""
        versions = f"It is fixed in {_join(self.fixed)}." if self.fixed else "It is not fixed."
        since = f"{self.title} has it from {self.since} on. " if self.since else ""
        advice = f" To avoid it, {self.fix}." if self.fix else ""
        return f"{since}{versions}{advice}\n\nSource: {self.source}"

    def write_message(self, declared: str, value: object) -> str:
        """The message of a finding."""
        said = self.consequence.replace("{value}", str(value)[:_MAX_SHOWN])
        if not self.fixed:
            return f"{said}: a defect of {self.title}, also of `{declared}`; {self.fix}"
        later = [each for each in self.fixed if parse_version(each) > parse_version(declared)]
        upgrade = f"use {self.title} {later[0]} or newer"
        advice = f"{self.fix}, or {upgrade}" if self.fix else upgrade
        return f"{said}: a defect of {self.title} `{declared}`, fixed in {_join(later)}; {advice}"


def _join(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _pad(version: tuple[int, ...], length: int) -> tuple[int, ...]:
    return (*version, 0, 0, 0)[:length]


def _step_back(version: tuple[int, ...]) -> str:
    major, minor, patch = _pad(version, 3)
    if patch:
        return f"{major}.{minor}.{patch - 1}"
    return f"{major}.{minor - 1}.99" if minor else f"{major - 1}.99.99"


# Read the files.


def parse_defects(document: ValidFields) -> Iterator[Defect]:
    """The defects of a valid document."""
    spec: Any = untraced(document)["spec"]
    for entry in spec["defects"]:
        versions = entry["versions"]
        yield Defect(
            entry["name"],
            spec["component"],
            versions.get("from", ""),
            _as_tuple(versions.get("fixed", ())),
            tuple(entry["kinds"]),
            _as_tuple(entry.get("each", ())),
            entry["condition"],
            entry.get("at", ""),
            Severity(entry.get("severity", "warning")),
            entry.get("value", ""),
            entry["consequence"],
            entry.get("fix", ""),
            entry["source"],
            entry.get("cluster", {}),
            entry.get("red", ""),
            entry.get("green", ""),
        )


def _as_tuple(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@lru_cache(maxsize=32)
def _read_shipped(file: File) -> tuple[Defect, ...]:
    documents = read_ready(file) or [each.data for each in read(file.content, file.path).documents]
    return tuple(defect for document in documents for defect in parse_defects(document))


def list_shipped(components: Iterable[str] | None = None) -> list[Defect]:
    """The defects that come with jobgen: all, or those of some components."""
    return [defect for file in layout.read_shipped_defects(components) for defect in _read_shipped(file)]


def list_defects(layers: Layers | None) -> list[Defect]:
    """The defects that come with jobgen, and those of a repository if there is one, whether they are right or not."""
    found = list_shipped()
    for file in layout.read_own_defects(layers) if layers else ():
        found += (defect for each in read_valid_documents(file, "defects", []) for defect in parse_defects(each))
    return found


@lru_cache(maxsize=8)
def read_own(files: tuple[File, ...], kinds: tuple[Kind, ...]) -> tuple[tuple[Defect, ...], tuple[Finding, ...]]:
    """The defects of a repository's files, and what is wrong with them; a defect with an error is left out."""
    findings: list[Finding] = []
    found: dict[str, Defect] = {}
    shipped = frozenset(list_known_rules(None)) if files else frozenset[str]()
    for file in files:
        for document in read_valid_documents(file, "defects", findings, traced=True):
            nodes = document["spec"]["defects"]
            for node, defect in zip(nodes, parse_defects(document), strict=True):
                problem = _find_problem(defect, document["spec"], node, {*shipped, *found}, kinds)
                if problem is None and len(found) == MAX_DEFECTS:
                    problem = _report(
                        node["name"], Sentence("there are more than {} defects; remove some", MAX_DEFECTS)
                    )
                if problem is None:
                    found[defect.name] = defect
                else:
                    findings.append(locate(problem, file.path))
    return tuple(found.values()), tuple(findings)


def _report(node: Plain, message: Words) -> Problem:
    return Problem("invalid-defect", message, node)


def _find_problem(
    defect: Defect, spec: Mapping[str, Any], node: Mapping[str, Any], names: set[str], kinds: Sequence[Kind]
) -> Problem | None:
    """What is wrong with a defect that the schema accepts."""
    declared = complete_schemas(())["overlay_v1.json"]["properties"]["spec"]["properties"]["cluster"]["properties"]
    components = ("kubernetes", *declared["operators"]["properties"])
    if defect.component not in components:
        hint = did_you_mean(defect.component, list(components)) or "; use a name of `cluster.operators`"
        return _report(
            spec["component"],
            Sentence("`{}` is not a component whose version can be declared{}", defect.component, hint),
        )
    if defect.name in names:
        return _report(
            node["name"], Sentence("there is already a rule or a defect `{}`; use another name", defect.name)
        )
    if not defect.fixed and not defect.fix:
        return _report(
            node["name"], Sentence("`{}` has neither `fix` nor `versions.fixed`; say what to do about it", defect.name)
        )
    for fixed in defect.fixed:
        if defect.since and parse_version(fixed) <= parse_version(defect.since):
            message = Sentence(
                "`{}` is not after `{}`, so no version has the defect; correct `versions`", fixed, defect.since
            )
            return _report(node["versions"]["fixed"], message)
    for field, path in (("at", defect.at), *(("each", path) for path in defect.each)):
        try:
            parse_dotted(path)
        except InvalidPathError as error:
            return _report(node[field], Sentence("{}; write a path such as `spec.tasks.*`", error))
    for field, returns in (("condition", "bool"), ("value", "string")):
        compiled = compile_cel(getattr(defect, field), NAMES, returns=returns) if getattr(defect, field) else None
        if isinstance(compiled, CompileError):
            return _report(node[field], Sentence("`{}` of `{}` is not valid: {}", field, defect.name, compiled.message))
    return _check_examples(defect, node, kinds)


def _check_examples(defect: Defect, node: Mapping[str, Any], kinds: Sequence[Kind]) -> Problem | None:
    if defect.red and not any(find_in_examples(defect, defect.red, kinds)):
        message = Sentence("`{}` does not find its example `red`; correct the condition or the example", defect.name)
        return _report(node["red"], message)
    if defect.green and any(find_in_examples(defect, defect.green, kinds)):
        message = Sentence("`{}` also finds its example `green`; correct the condition or the example", defect.name)
        return _report(node["green"], message)
    return None


def find_in_examples(defect: Defect, text: str, kinds: Sequence[Kind]) -> Iterator[Violation]:
    """What a defect finds in the objects of an example, in the last version that has it."""
    version = defect.find_last_broken()[0]
    block = dict(defect.cluster)
    block |= {"kubernetes": version} if defect.component == "kubernetes" else {}
    block["operators"] = {**block.get("operators", {}), defect.component: version}
    cluster = parse_cluster(block)
    known = {(str(kind.api_version), kind.name): kind for kind in kinds}
    objects = [each.data for each in read(text.encode(), defect.name).documents if isinstance(each.data, dict)]
    found: dict[str, list[Mapping[str, Plain]]] = {}
    for obj in objects:
        found.setdefault(name_object(obj)[0], []).append(obj)
    evaluator = _Evaluator(cluster)
    for obj in objects:
        kind = known.get((as_text(obj.get("apiVersion")), as_text(obj.get("kind"))))
        yield from evaluator.check(defect, Manifest(obj, kind, cluster), found)


# Evaluate them.


def make_rules(layers: Layers, kinds: tuple[Kind, ...], cluster: Cluster) -> list[Rule]:
    """The defects of the declared versions of a cluster, as rules."""
    declared = {*cluster.operators, *(("kubernetes",) if cluster.kubernetes else ())}
    if not declared or available():
        return []
    every = (*list_shipped(declared), *read_own(tuple(layout.read_own_defects(layers)), kinds)[0])
    defects = [each for each in every if each.affects(cluster.find_version(each.component))]
    evaluator = _Evaluator(cluster)
    rules: list[Rule] = []
    for defect in defects:
        named = () if {_ANY, _QUEUED} & {*defect.kinds} else tuple(kind.partition(".")[0] for kind in defect.kinds)
        scope: Scope = "cluster" if defect.reads_state else "manifest"
        check = evaluator.check_in_state if defect.reads_state else evaluator.check
        rules.append(Rule(defect.name, CATEGORY, defect.severity, scope, partial(check, defect), kinds=named))
    return rules


class _Evaluator:
    """Evaluates the conditions of one cluster; they share what they read of an object, and its budget."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._facts = {
            "versions": {**cluster.operators, **({"kubernetes": cluster.kubernetes} if cluster.kubernetes else {})},
            "gitops": cluster.gitops,
            "kueue": untraced(dict(cluster.kueue)),
            "featureGates": list(cluster.feature_gates or ()),
        }
        self._manifest: Manifest | None = None
        self._object: Any = None
        self._bound: Bound | None = None
        self._budget = EvaluationBudget(weight=_WEIGHT)

    def check_in_state(self, defect: Defect, manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
        """Find a defect that depends on other objects."""
        return self.check(defect, manifest, state.objects)

    def check(
        self, defect: Defect, manifest: Manifest, known: Mapping[str, Sequence[Mapping[str, Plain]]] | None = None
    ) -> Iterator[Violation]:
        """Find a defect in an object."""
        if not defect.concerns(manifest):
            return
        at = _parse_at(defect.at) if defect.at else ()
        places = (
            (item, node)
            for item in islice(_list_items(defect.each, manifest), MAX_DEFECT_ITEMS)
            for node in islice(find_places(item, at), 1)
        )
        first = next(places, None)
        if first is None:
            # No field that it could be about, so nothing is evaluated.
            return
        if manifest is not self._manifest:
            self._manifest, self._object = manifest, untraced(manifest.object)
            self._budget.reset()
            self._bound = None
        compiled = _compile(defect.condition)
        # What is bound is converted, so an object that the condition does not read is left out.
        reads_object = not defect.each or "object" in f"{defect.condition} {defect.value}"
        values: dict[str, Any] = {
            "object": self._object if reads_object else None,
            "item": None,
            "cluster": self._facts,
            "clusterQueue": {},
            "flavors": [],
        }
        if known is not None and defect.reads_state:
            kinds = _KINDS_READ.findall(defect.condition)
            listed = {kind: [untraced(each) for each in known.get(kind, ())[:_MAX_OBJECTS]] for kind in kinds}
            queue = _find_cluster_queue(manifest, known)
            values["cluster"] = {**self._facts, "objects": listed}
            values |= {"clusterQueue": untraced(queue), "flavors": untraced(_find_flavors(queue, known))}
        declared = self._cluster.find_version(defect.component)
        for item, place in (first, *places):
            if defect.each:
                values["item"] = untraced(item)
            if defect.each or defect.reads_state:
                bound = Bound(values, self._budget)
            else:
                # The conditions about an object as a whole share what is converted.
                bound = self._bound = self._bound or Bound(values, self._budget)
            if compiled(bound) is True:
                at_fault: Place = At(manifest.object, "kind") if place is manifest.object else place
                value = node_at(at_fault)
                if defect.value:
                    value = _compile(defect.value, "string")(bound)
                yield Violation(at_fault, defect.write_message(declared, "" if isinstance(value, Failed) else value))


def _compile(text: str, returns: str = "bool") -> Expression:
    compiled = compile_cel(text, NAMES, returns=returns)
    assert isinstance(compiled, Expression), f"checked before: {compiled.message}: {text}"
    return compiled


def _list_items(each: tuple[str, ...], manifest: Manifest) -> Iterator[Plain]:
    """The parts of an object for which a condition is evaluated."""
    if not each:
        yield manifest.object
    for path in each:
        if path == "pods":
            yield from (pod.template for pod in manifest.pods)
        elif path == "containers":
            pods = manifest.pods
            yield from (container.data for pod in pods for container in (*pod.containers, *pod.init_containers))
        else:
            yield from find_nodes(manifest.object, _parse_at(path))


@lru_cache(maxsize=1024)
def _parse_at(path: str) -> tuple[Step, ...]:
    return parse_dotted(path)


def _find_cluster_queue(manifest: Manifest, known: Mapping[str, Sequence[Mapping[str, Plain]]]) -> Mapping[str, Plain]:
    """The ClusterQueue of an object's queue; empty if it is not known."""
    name = as_text(manifest.labels.get(QUEUE_LABEL))
    for local in known.get("LocalQueue", ()) if name else ():
        if name_object(local)[1:] == (manifest.namespace, name):
            wanted = as_text(get_path(local, "spec", "clusterQueue"))
            return next((each for each in known.get("ClusterQueue", ()) if name_object(each)[2] == wanted), {})
    return {}


def _find_flavors(queue: Mapping[str, Plain], known: Mapping[str, Sequence[Mapping[str, Plain]]]) -> list[Any]:
    groups = map(as_mapping, as_list(get_path(queue, "spec", "resourceGroups")))
    names = {as_text(as_mapping(each).get("name")) for group in groups for each in as_list(group.get("flavors"))}
    return [each for each in known.get("ResourceFlavor", ()) if name_object(each)[2] in names]
