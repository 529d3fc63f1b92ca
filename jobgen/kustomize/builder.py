"""Build a kustomization as `kubectl kustomize` does, on data that knows the line of every value.

Each kustomization reads its resources and those of the folders that it lists, generates ConfigMaps and Secrets, lets
its components change all of them, and then applies its own patches and transformers. Names that refer to renamed
objects are updated at the end. What cannot be built is named, and the rest is built.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.kustomize import transformers
from jobgen.kustomize.field_specs import FieldSpec, Reference
from jobgen.kustomize.generators import absorb, add_hash, generate
from jobgen.kustomize.kustomization import Kustomization, check_replacements, load, read_traced, text_of
from jobgen.kustomize.lost_references import find_lost_references
from jobgen.kustomize.patches import Patch, Schemas, apply_patch, read_openapi
from jobgen.kustomize.replacements import replace
from jobgen.kustomize.resource import Id, Resource, read_documents, read_inline
from jobgen.kustomize.select import PatternError
from jobgen.kustomize.transformers import parse_references, parse_spec, replace_variables, update_references
from jobgen.kustomize.tree import SourceTree, find_kustomizations, resolve_path
from jobgen.model.budget import RUN, TOO_MANY_STEPS, OverBudgetError, Work, charge
from jobgen.model.data import Location, Node, TracedScalar, location_of, untraced, value_of, with_value
from jobgen.model.finding import Finding, Problem, Related, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import find_closest
from jobgen.repo.files import BuiltObject, is_kustomization
from jobgen.spec.json_patch import copy_containers

_FILE_STEPS, _OBJECT_STEPS = 200, 2
"""The steps of a file that is read, and of an object that is looked at."""
# A file that is missing is looked for in so many folders, and among so many names of each.
_MOST_FOLDERS, _MOST_NAMES = 64, 1000
_MAX_DEPTH = 50
_MAX_SHOWN = 60
_LOCAL = "config.kubernetes.io/local-config"
_FIRST = """Namespace ResourceQuota StorageClass CustomResourceDefinition ServiceAccount PodSecurityPolicy Role
    ClusterRole RoleBinding ClusterRoleBinding ConfigMap Secret Endpoints Service LimitRange PriorityClass
    PersistentVolume PersistentVolumeClaim Deployment StatefulSet CronJob PodDisruptionBudget""".split()
_LAST = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
_CONFIGURED = """namePrefix nameSuffix namespace commonLabels labels templateLabels commonAnnotations varReference
    images replicas""".split()


# What kustomize fetches: an address, or a repository of a well-known host.
_REMOTE = lazy_pattern(
    r"[a-zA-Z][a-zA-Z0-9+.-]*+://|git::|gh:|[\w.-]++@[\w.-]++:|(?:www\.)?(?:github|gitlab|bitbucket)\.[a-z]+[/:]"
    r"|[^?]*+\?(?:[^?]*&)?(?:ref|version|timeout|submodules)=|[^/.]++\.[^/]++/[^\n]*(?:\.git(?:/|$)|//)"
)


class Build(NamedTuple):
    """What a kustomization builds, and what is wrong with it."""

    root: str
    objects: tuple[BuiltObject, ...] = ()
    findings: tuple[Finding, ...] = ()
    unbuilt: tuple[str, ...] = ()
    """Sentences: what could not be built, and why."""
    files: frozenset[str] = frozenset()
    by: str = "jobgen"
    """Who built the values: `jobgen`, `kubectl` or `kustomize`."""
    needs_tool: frozenset[str] = frozenset()
    """The sentences of `unbuilt` about what kubectl or kustomize can build from the same files."""
    charts: Mapping[str, str] = MappingProxyType({})
    """The sentences of `unbuilt` about charts, each with the kustomization that names them."""

    @property
    def is_refused(self) -> bool:
        """Return True if it is known that kubectl and kustomize refuse to build it."""
        return any(each.rule == "kustomization-load-restricted" for each in self.findings)

    @property
    def errors(self) -> list[Finding]:
        """The mistakes of the user because of which it cannot be built."""
        return [each for each in self.findings if each.severity is Severity.ERROR]

    @property
    def is_left_to_tool(self) -> bool:
        """Return True if jobgen cannot build it, and kubectl or kustomize probably can, without a network."""
        needs_only_files = self.needs_tool.issuperset(self.unbuilt)
        return bool(self.unbuilt) and needs_only_files and not self.is_refused and not self.errors


Charts: TypeAlias = Mapping[str, Callable[[], Sequence[BuiltObject]]]
"""What renders the charts of kustomizations, by their paths."""


class _Accumulator:
    """The objects that are built so far, and the configurations and variables that belong to them."""

    def __init__(self) -> None:
        self.resources: list[Resource] = []
        self.config: dict[str, list[FieldSpec]] = {name: [] for name in _CONFIGURED}
        self.references: list[Reference] = []
        self.variables: list[Any] = []


def build_own(tree: SourceTree, root: str, charts: Charts = MappingProxyType({})) -> Build:
    """Build a kustomization without another program; `charts` render the charts of kustomizations, by their paths."""
    builder = _Builder(tree, root, charts)
    try:
        with RUN.begin_file():
            resources = builder.build()
    except OverBudgetError as error:
        builder.findings = [Finding(TOO_MANY_STEPS, "meta", Severity.ERROR, str(error), Location(root))]
        resources = []
    objects = tuple(
        BuiltObject(untraced(each.node), each.node, each.file, each.position, each.location) for each in resources
    )
    findings = tuple(dict.fromkeys(builder.findings))
    files, needs_tool = frozenset(builder.files), frozenset(builder.needs_tool)
    named = dict(builder.charts)
    return Build(root, objects, findings, tuple(builder.unbuilt), files, needs_tool=needs_tool, charts=named)


def _copy_built(built: BuiltObject) -> Resource:
    return Resource(copy_containers(built.traced), built.file, built.position, built.location)


class _Builder:
    def __init__(self, tree: SourceTree, root: str, rendered: Charts) -> None:
        self.tree = tree
        self.root = root
        self.rendered = rendered
        self.findings: list[Finding] = []
        self.unbuilt: dict[str, None] = {}
        self.needs_tool: set[str] = set()
        self.charts: dict[str, str] = {}
        self.files: set[str] = set()
        self.above: list[str] = []
        """The kustomizations that are being read: each one lists the next."""
        self.has_gaps = False
        """True if objects may be missing, because something could not be read."""
        self.has_definitions = False
        """True if `crds` say in which fields of custom resources names stand."""
        self.schemas: Schemas | None = None

    @property
    def is_complete(self) -> bool:
        return not (self.has_gaps or self.unbuilt)

    def build(self) -> list[Resource]:
        """Build all objects, in the order in which kubectl prints them."""
        top = _Accumulator()
        kustomization = self.accumulate(self.root, top)
        for resource in top.resources:
            if resource.needs_hash:
                add_hash(resource)
        update_references(top.resources, top.references)
        problems: list[Problem] = []
        replace_variables(top.resources, top.variables, top.config["varReference"], problems)
        self.report(problems if self.is_complete else ())
        if not self.has_definitions:
            self.report(find_lost_references(top.resources))
        kept = []
        for resource in top.resources:
            annotations: Any = as_mapping(resource.metadata.get("annotations"))
            if _LOCAL in annotations and text_of(annotations[_LOCAL]) != "false":
                continue
            kept.append(resource)
            # kustomize rewrites all annotations to remove its own: values become text, an empty mapping is left out.
            for key, node in annotations.items():
                if not isinstance(value_of(node), (str, dict, list)):
                    annotations[key] = with_value(node, "null" if value_of(node) is None else text_of(node))
            if not annotations:
                resource.metadata.pop("annotations", None)
        return _sort(kept, as_mapping(kustomization.fields.get("sortOptions")))

    def accumulate(self, path: str, into: _Accumulator) -> Kustomization:
        """Add what a kustomization builds to the objects of the one that lists it."""
        self.above.append(path)
        self.files.add(path)
        charge(Work.BUILD, _FILE_STEPS)
        kustomization = load(self.tree, path)
        self.findings += kustomization.findings
        if kustomization.is_other:
            message = "this is not a kustomization of kustomize; write `apiVersion: kustomize.config.k8s.io/v1beta1`"
            self.add_finding("invalid-kustomization", message, Location(path))
        self.has_gaps = self.has_gaps or bool(kustomization.findings) or kustomization.is_other
        self.read_openapi(kustomization)
        own = into if kustomization.is_component else _Accumulator()
        for item in kustomization.items("resources", "bases"):
            self.add_resource(kustomization, item, own)
        self.drop_conflicts(own, kustomization)
        self.configure(kustomization, own)
        self.run_generators(kustomization, own)
        for item in kustomization.items("components"):
            self.add_folder(kustomization, "components", item, own)
        self.transform(kustomization, own)
        own.variables += kustomization.items("vars")
        if own is not into:
            charge(Work.BUILD, _OBJECT_STEPS * len(own.resources))
            into.resources += own.resources
            for name, specs in own.config.items():
                into.config[name] += specs
            into.references += own.references
            into.variables += own.variables
        self.above.pop()
        return kustomization

    def read_openapi(self, kustomization: Kustomization) -> None:
        node = as_mapping(kustomization.fields.get("openapi")).get("path")
        if node is None or self.schemas is not None:
            return
        content = self.read(kustomization, "openapi", node)
        documents = read_traced(content[1], content[0]).documents if content else ()
        if documents:
            self.schemas = read_openapi(untraced(documents[0].data))

    # Reading

    def add_resource(self, kustomization: Kustomization, item: Node, into: _Accumulator) -> None:
        path = resolve_path(self.tree, kustomization.folder, text_of(item))
        if path is None or not self.tree.exists(path) or self.tree.is_folder(path):
            self.add_folder(kustomization, "resources", item, into)
            return
        file = self.read(kustomization, "resources", item)
        if file is None:
            return
        path, content = file
        documents, findings, locations, is_whole = read_documents(content, path, "manifest")
        self.has_gaps = self.has_gaps or not is_whole
        if findings:
            self.has_gaps = True
            self.cannot_build(f"`{path}` cannot be read")
        found: list[Resource] = []
        # The items of a List are objects of their own.
        pending: list[tuple[Any, int, Location]] = [
            (data, position, location)
            for position, (data, location) in enumerate(zip(documents, locations, strict=False))
        ]
        while pending:
            data, position, location = pending.pop(0)
            items = data.get("items") if text_of(data.get("kind")).endswith("List") else None
            if isinstance(items, list):
                pending += [(each, position, location_of(each) or location) for each in items if isinstance(each, dict)]
            elif missing := _find_missing(data):
                self.has_gaps = True
                self.report_incomplete(path, missing, location, item)
            else:
                found.append(Resource(copy_containers(data), path, position, location))
        charge(Work.BUILD, 2 * _OBJECT_STEPS * len(found))
        into.resources += found

    def report_incomplete(self, path: str, missing: str, location: Location, item: Node) -> None:
        """Report a document that is no object, so kustomize refuses it as a resource."""
        listed = location_of(item)
        if is_kustomization(path):
            folder = posixpath.dirname(text_of(item)) or "."
            message = f"`{text_of(item)}` is a kustomization, not an object; list its folder: `{folder}`"
            self.add_finding("invalid-kustomization", message, listed or location)
            return
        message = f"a resource of a kustomization needs `{missing}`; add it, or remove the file from `resources`"
        related = (Related(listed, "listed here"),) if listed else ()
        self.add_finding("kustomize-build-fails", message, location, related=related)

    def add_folder(self, kustomization: Kustomization, field: str, item: Node, into: _Accumulator) -> None:
        path = resolve_path(self.tree, kustomization.folder, text_of(item))
        if path is None or not self.tree.exists(path):
            self.report_absent(kustomization, field, item, path)
            return
        files = find_kustomizations(self.tree, path) if self.tree.is_folder(path) else []
        if len(files) != 1:
            self.has_gaps = True
            fault = "has more than one kustomization file; keep one"
            if not files:
                fault = "has no `kustomization.yaml`; add one"
            if not self.tree.is_folder(path):
                fault = "is a file; list the folder of a component"
            rule = "invalid-kustomization" if files else "kustomization-file-missing"
            self.add_finding(rule, f"`{text_of(item)}` {fault}", item)
        elif files[0] in self.above:
            self.has_gaps = True
            cycle = (*self.above[self.above.index(files[0]) :], files[0])
            chain = " → ".join(f"`{posixpath.dirname(each) or '.'}`" for each in cycle)
            self.add_finding("kustomization-cycle", f"`{text_of(item)}` leads back to itself: {chain}", item)
        elif len(self.above) >= _MAX_DEPTH:
            self.cannot_build(f"`{path}` is more than {_MAX_DEPTH} levels of folders deep")
        else:
            listed = load(self.tree, files[0])
            if listed.findings or listed.is_component == (field == "components"):
                self.accumulate(files[0], into)
                return
            self.has_gaps = True
            fault = "a component; list it in `components`"
            if not listed.is_component:
                fault = "not a component; list it in `resources`"
            self.add_finding("invalid-kustomization", f"`{text_of(item)}` is {fault}", item)

    def read(self, kustomization: Kustomization, field: str, item: Node, text: str = "") -> tuple[str, bytes] | None:
        """Read a file that a kustomization names; None if it is reported that it cannot be read."""
        text = text or text_of(item)
        path = resolve_path(self.tree, kustomization.folder, text)
        if path is None or not self.tree.exists(path):
            self.report_absent(kustomization, field, item, path, text)
            return None
        charge(Work.BUILD, _FILE_STEPS)
        file = self.tree.read(path)
        self.files.add(path)
        if file.finding is not None:
            self.has_gaps = True
            self.cannot_build(f"`{path}` cannot be read: {file.finding.message}")
            return None
        if kustomization.folder and not path.startswith(f"{kustomization.folder}/"):
            message = (
                f"`{text}` is outside the kustomization's folder, which kubectl and kustomize refuse by default;"
                " move the file, or build with `--load-restrictor LoadRestrictionsNone`"
            )
            self.add_finding("kustomization-load-restricted", message, item, Severity.WARNING)
        return path, file.content

    def report_absent(
        self, kustomization: Kustomization, field: str, item: Node, path: str | None, text: str = ""
    ) -> None:
        """Report a path that leads nowhere, or name what only kustomize can get."""
        text = text or text_of(item)
        self.has_gaps = True
        is_remote = _REMOTE.match(text) is not None
        finding = None if is_remote or path is None else self.tree.read(path).finding
        if is_remote:
            self.cannot_build(f"`{text}` is remote")
        elif path is None or (finding is not None and finding.rule == "link-out-of-repository"):
            self.cannot_build(f"`{text}` of `{kustomization.path}` is outside the linted folder")
        else:
            hint = self.suggest(kustomization.folder, text)
            message = f"`{text}` does not exist; {hint or f'correct the path, or remove it from `{field}`'}"
            self.add_finding("kustomization-file-missing", message, item)

    def suggest(self, folder: str, text: str) -> str:
        """Return the path that was probably meant: in a folder below, with another extension, or of the same folder."""
        below = self.find_below(folder, posixpath.basename(text))
        if below:
            return f"did you mean `{below}`?"
        stem, extension = posixpath.splitext(text)
        others = [f"{stem}{each}" for each in (".yaml", ".yml", ".json", "") if each != extension]
        paths = [*others, f"../{text}", posixpath.basename(text), text.replace("_", "-"), text.replace("-", "_")]
        for other in paths:
            path = resolve_path(self.tree, folder, other)
            if other and path is not None and path != folder and self.tree.exists(path):
                return f"did you mean `{other}`?"
        # Another extension is another file.
        known = sorted(each for each in self.tree.list_names(folder)[:_MOST_NAMES] if each.endswith(extension))
        closest = find_closest(text, known, 0.8)
        return f"did you mean `{closest}`?" if closest else ""

    def find_below(self, folder: str, name: str) -> str:
        """Return the only file of a name in the folders below one; empty if there is none, or if there are more."""
        found: list[str] = []
        folders = [folder]
        for above in folders:
            for each in self.tree.list_names(above)[:_MOST_NAMES]:
                path = posixpath.join(above, each)
                if each[:1] != "." and len(folders) < _MOST_FOLDERS and self.tree.is_folder(path):
                    folders.append(path)
                elif each == name and above != folder:
                    found.append(posixpath.relpath(path, folder or "."))
        return found[0] if len(found) == 1 else ""

    # Generating and transforming

    def configure(self, kustomization: Kustomization, into: _Accumulator) -> None:
        """Read the files of `configurations`, and name what only kustomize can run."""
        for item in kustomization.items("configurations"):
            content = self.read(kustomization, "configurations", item)
            for document in read_traced(content[1], content[0]).documents if content else ():
                for name in _CONFIGURED:
                    into.config[name] += map(parse_spec, as_list(document.data.get(name)))
                into.references += parse_references(as_list(document.data.get("nameReference")))
        for item in kustomization.items("crds"):
            self.has_definitions = True
            self.read(kustomization, "crds", item)
        for field in ("helmCharts", "helmChartInflationGenerator"):
            if kustomization.fields.get(field) and (field != "helmCharts" or kustomization.path not in self.rendered):
                sentence = f"`{field}` of `{kustomization.path}` needs helm"
                self.cannot_build(sentence)
                if field == "helmCharts":
                    self.charts[sentence] = kustomization.path
        for field in ("generators", "transformers", "validators"):
            for item in kustomization.items(field):
                self.name_plugin(kustomization, field, item)

    def name_plugin(self, kustomization: Kustomization, field: str, item: Node) -> None:
        """Name a plugin, which jobgen cannot run; kustomize can run its own ones."""
        content: tuple[str, bytes] | None = (kustomization.path, text_of(item).encode("utf-8", "replace"))
        if ":" not in text_of(item):
            path = resolve_path(self.tree, kustomization.folder, text_of(item))
            is_file = path is not None and self.tree.exists(path) and not self.tree.is_folder(path)
            content = self.read(kustomization, field, item) if is_file else None
        documents, findings = read_documents(*content[::-1], "")[:2] if content else ((), ())
        shown = text_of(item).partition("\n")[0][:_MAX_SHOWN]
        sentence = f"`{shown}` in `{field}` of `{kustomization.path}` is a plugin"
        is_built_in = bool(documents) and not findings and all(map(_is_built_in, documents))
        self.cannot_build(sentence, needs_tool=is_built_in)

    def cannot_build(self, sentence: str, *, needs_tool: bool = False) -> None:
        self.unbuilt[sentence] = None
        if needs_tool:
            self.needs_tool.add(sentence)

    def run_generators(self, kustomization: Kustomization, into: _Accumulator) -> None:
        for field in ("configMapGenerator", "secretGenerator"):
            for item in kustomization.items(field):
                problems: list[Problem] = []

                def read(node: Node, text: str, field: str = field) -> tuple[str, bytes] | None:
                    return self.read(kustomization, field, node, text)

                made = generate(kustomization, field, item, read, problems)
                self.report(problems)
                if made is not None:
                    self.absorb(made, item, into)
        if kustomization.path in self.rendered:
            built = self.rendered[kustomization.path]()
            self.has_gaps = self.has_gaps or not built
            into.resources += map(_copy_built, built)
            charge(Work.BUILD, _OBJECT_STEPS * len(built))

    def absorb(self, made: Resource, item: Any, into: _Accumulator) -> None:
        """Add a generated object, or merge it into the one with its name."""
        wanted = made.id
        charge(Work.BUILD, _OBJECT_STEPS * len(into.resources))
        found = [each for each in into.resources if wanted == each.id or wanted in each.previous_ids]
        if len(found) == 1 and made.behavior in ("merge", "replace"):
            absorb(made, found[0])
            into.resources[into.resources.index(found[0])] = made
        elif not found and made.behavior in ("merge", "replace"):
            if self.is_complete:
                message = f"{wanted} does not exist, so it cannot be changed; write `behavior: create`"
                self.add_finding("kustomize-build-fails", message, item["behavior"])
        elif found:
            message = f"{wanted} is already in this build; use another name, or write `behavior: merge`"
            self.add_finding("kustomization-id-conflict", message, item["name"])
        else:
            into.resources.append(made)

    def transform(self, kustomization: Kustomization, into: _Accumulator) -> None:
        """Apply the transformers of a kustomization, in the order of kustomize."""
        self.patch(kustomization, into, "patchesStrategicMerge")
        self.patch(kustomization, into, "patches")
        if kustomization.fields.get("namespace"):
            charge(Work.BUILD, _OBJECT_STEPS * len(into.resources))
            before = len({each.id for each in into.resources})
            transformers.set_namespace(kustomization, into.resources, into.config)
            if len({each.id for each in into.resources}) < before:
                self.drop_conflicts(into)
        transformers.add_affixes(kustomization, into.resources, into.config)
        transformers.add_metadata(kustomization, into.resources, into.config)
        self.patch(kustomization, into, "patchesJson6902")
        problems: list[Problem] = []
        changed = 1 + len(kustomization.items("replicas", "images", "imageTags"))
        charge(Work.BUILD, _OBJECT_STEPS * len(into.resources) * changed)
        transformers.set_replicas(kustomization, into.resources, into.config, problems)
        self.report(problems if self.is_complete else ())
        problems = []
        for sentence in transformers.set_images(kustomization, into.resources, into.config, problems):
            self.cannot_build(sentence, needs_tool=True)
        self.report(problems if self.is_complete else ())
        self.replace(kustomization, into)

    def patch(self, kustomization: Kustomization, into: _Accumulator, field: str) -> None:
        for item in kustomization.items(field):
            patch = self.read_patch(kustomization, field, item)
            if patch is None or not patch.documents:
                continue
            charge(Work.BUILD, _OBJECT_STEPS * (1 + len(into.resources) * len(patch.documents)))
            applied = apply_patch(into.resources, patch, self.schemas, is_complete=self.is_complete)
            into.resources = applied.resources
            self.report(applied.problems)
            for sentence in applied.unbuilt:
                self.cannot_build(sentence, needs_tool=True)

    def read_patch(self, kustomization: Kustomization, field: str, item: Any) -> Patch | None:
        if isinstance(item, dict):
            path, inline = item.get("path"), item.get("patch")
            if inline is not None and path is None and not text_of(inline) and kustomization.findings:
                # Its type is wrong.
                return None
            if bool(text_of(path)) == bool(text_of(inline).strip()):
                fault = "has both; keep one" if text_of(path) else "has neither; add one"
                message = f"an entry of `{field}` needs `path` or `patch`, and this one {fault}"
                self.add_finding("invalid-kustomization", message, item)
                return None
            is_inline = not text_of(path)
        else:
            path, inline = item, item
            is_inline = "\n" in text_of(item) or ": " in text_of(item)
        if is_inline and isinstance(inline, TracedScalar):
            layer = f"patch in {kustomization.path}"
            documents, findings = read_inline(inline, kustomization.text.split("\n"), layer)
        else:
            content = self.read(kustomization, field, path)
            if content is None:
                return None
            found, findings = read_documents(content[1], content[0], f"patch {content[0]}")[:2]
            documents = list(found)
        for finding in findings[:1]:
            if is_inline:
                self.add_finding("invalid-kustomization", finding.message, finding.location)
            else:
                self.cannot_build(f"`{text_of(path)}` cannot be read")
        if findings:
            return None
        if not isinstance(item, dict):
            return Patch(documents, item)
        options = as_mapping(item.get("options"))
        name, kind = (value_of(options.get(field)) is True for field in ("allowNameChange", "allowKindChange"))
        listed = path if text_of(path) else inline
        return Patch(documents, listed, item.get("target"), name, kind, stores_names=field == "patches")

    def replace(self, kustomization: Kustomization, into: _Accumulator) -> None:
        layer = f"`replacements` of {kustomization.path}"
        for item in kustomization.items("replacements"):
            listed = [item]
            if text_of(item.get("path")):
                content = self.read(kustomization, "replacements", item["path"])
                documents, findings = read_documents(content[1], content[0], layer)[:2] if content else ((), ())
                if findings:
                    self.cannot_build(f"`{text_of(item['path'])}` cannot be read")
                listed = [each for document in documents[:1] for each in check_replacements(document, self.findings)]
            for replacement in listed:
                charge(
                    Work.BUILD, _OBJECT_STEPS * (1 + len(into.resources) * (1 + len(replacement.get("targets") or ())))
                )
                problems: list[Problem] = []
                try:
                    replace(into.resources, replacement, layer, problems, is_complete=self.is_complete)
                except PatternError as error:
                    self.cannot_build(f"`replacements` of `{kustomization.path}`: {error}", needs_tool=True)
                self.report(problems if self.is_complete else ())

    # Objects and findings

    def drop_conflicts(self, into: _Accumulator, kustomization: Kustomization | None = None) -> None:
        """Keep the first of objects with the same identity; kustomize refuses a second one.

        A file that the kustomization lists beside a base with its object, or in its patches, is meant as a patch.
        """
        known: dict[Id, Resource] = {}
        for resource in into.resources:
            first = known.setdefault(resource.id, resource)
            if first is resource:
                continue
            same = first.file == resource.file and first.location == resource.location
            how = "is listed twice; list it once" if same else "is in this build twice; remove one of them"
            related = () if same else (Related(first.location, "the other one"),)
            misplaced = (
                self.find_misplaced_patch(kustomization, first, resource) if kustomization and not same else None
            )
            if misplaced is not None:
                self.add_finding("kustomization-id-conflict", *misplaced, related=related)
                continue
            self.add_finding("kustomization-id-conflict", f"{resource.id} {how}", resource.location, related=related)
        into.resources = list(known.values())

    def find_misplaced_patch(
        self, kustomization: Kustomization, first: Resource, second: Resource
    ) -> tuple[str, Node] | None:
        """What to say of an entry of `resources` that is a patch of an object from elsewhere, and the entry."""
        folder = kustomization.folder
        listed = {resolve_path(self.tree, folder, text_of(item)): item for item in kustomization.items("resources")}
        direct = [each for each in (second, first) if each.file in listed]
        patches = {
            resolve_path(self.tree, folder, text_of(item.get("path") if isinstance(item, dict) else item))
            for item in kustomization.items("patches", "patchesStrategicMerge")
        }
        chosen = [each for each in direct if each.file in patches] or (direct if len(direct) == 1 else [])
        if len(chosen) != 1:
            return None
        item = listed[chosen[0].file]
        if chosen[0].file in patches:
            return f"`{text_of(item)}` is a patch, and as a resource it adds {second.id} twice; remove it here", item
        advice = f"to change that object, list the file in `patches`: `- path: {text_of(item)}`"
        return f"`{text_of(item)}` adds {second.id}, which another entry has already; {advice}", item

    def add_finding(
        self,
        rule: str,
        message: str,
        at: Node | Location,
        severity: Severity = Severity.ERROR,
        related: tuple[Related, ...] = (),
    ) -> None:
        location = at if isinstance(at, Location) else location_of(at) or Location(self.root)
        self.findings.append(Finding(rule, "gitops", severity, message, location, related=related))

    def report(self, problems: Iterable[Problem]) -> None:
        for each in problems:
            location = each.location or Location(self.root)
            others = ((location_of(node), message) for node, message in each.related)
            related = tuple(Related(other, message) for other, message in others if other)
            self.findings.append(
                Finding(each.rule, each.category, each.severity, str(each.sentence), location, related=related)
            )


def _find_missing(data: Any) -> str:
    """Return the field without which a document is no object; empty if it has all."""
    if not text_of(data.get("kind")):
        return "kind"
    if text_of(data.get("kind")).endswith("List"):
        return ""
    return "" if text_of(as_mapping(data.get("metadata")).get("name")) else "metadata.name"


def _is_built_in(plugin: Node) -> bool:
    """Return True if a plugin is a part of kustomize that needs only files: it neither runs helm nor fetches a file."""
    data = as_mapping(plugin)
    kind, version = text_of(data.get("kind")), text_of(data.get("apiVersion"))
    return version == "builtin" and kind != "HelmChartInflationGenerator" and not _has_address(plugin)


def _has_address(node: Node) -> bool:
    if isinstance(node, (dict, list)):
        return any(map(_has_address, node.values() if isinstance(node, dict) else node))
    return "://" in text_of(node)


def _sort(resources: list[Resource], options: Any) -> list[Resource]:
    """Order objects as kubectl prints them: by kind, unless `sortOptions` keeps their order."""
    if text_of(options.get("order")) == "fifo":
        return resources
    legacy = as_mapping(options.get("legacySortOptions"))
    first = [text_of(each) for each in as_list(legacy.get("orderFirst"))] if legacy else _FIRST
    last = [text_of(each) for each in as_list(legacy.get("orderLast"))] if legacy else _LAST
    ranks = {kind: at - len(first) for at, kind in enumerate(first)} | {kind: 1 + at for at, kind in enumerate(last)}

    def rank(resource: Resource) -> tuple[int, str, str]:
        found = resource.id
        group = "_".join((found.group or "~G", found.version or "~V", found.kind or "~K"))
        # The namespace and the name are one text: `a-b` is before `a`.
        return ranks.get(found.kind, 0), group, f"{resource.namespace or '~X'}|{found.name}"

    return sorted(resources, key=rank)
