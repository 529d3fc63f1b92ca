"""The CustomResourceDefinitions among the files of a run: what they define, and the check of objects by them.

A tree may hold several copies of a definition: of other releases, or minimal ones for tests. What all of them refuse is
an error, because one of them is in the cluster. What only some refuse is a warning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from jobgen.check.schema.build import convert_crd
from jobgen.check.schema.shipped import ShippedSchema
from jobgen.check.schema.untrusted import BrokenSchemaError, compile_untrusted
from jobgen.k8s.kinds import DEFINITION_KIND, KEEPS_UNKNOWN, DefinedVersion, Definition, Release
from jobgen.model.data import Location, Plain, TracedScalar
from jobgen.model.finding import FixStep, Problem, Severity
from jobgen.model.limits import MALFORMED_DATA_ERRORS
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At
from jobgen.model.sentence import Sentence, fault_of
from jobgen.repo.files import File

SchemaCheck = Callable[[Mapping[str, Plain]], list[Problem]]

_MAX_COPIES = 10
"""How many definitions that differ are compared with an object; a tree has a few."""
_NOT_OWN_FIELDS = frozenset(("apiVersion", "kind", "metadata", "status"))


class _Copy(NamedTuple):
    """What definitions with the same content say about a version of a kind."""

    locations: tuple[Location, ...]
    content: bytes
    """The JSON Schema; empty if the definitions do not serve the version, or cannot be used."""
    check: SchemaCheck | None
    is_open: bool = False
    """True if the schema says nothing about the kind's own fields."""
    reason: str = ""

    def find_nearest(self, folder: str) -> Location:
        """Return the location of the definition that is nearest to a folder."""
        return max(self.locations, key=lambda each: _count_shared(folder, each.file))


_Verdict: TypeAlias = tuple[_Copy | None, list[Problem]]
"""A copy, or None for the schema that jobgen ships, and its problems with an object."""


class TreeKind:
    """A version of a kind that definitions of the tree define."""

    def __init__(
        self,
        api_version: str,
        definitions: Sequence[Definition],
        release: Release,
        shipped: ShippedSchema | None = None,
    ) -> None:
        self._kind = definitions[0].kind
        self._shipped = None if shipped is None or shipped.missing or shipped.is_documented else shipped
        """What a newer or older release than that of the tree has."""
        copies = list(_list_copies(api_version, definitions, release))
        is_closed = any(copy.content and not copy.is_open for copy in copies)
        self._copies = [copy for copy in copies if not (copy.is_open and is_closed)]

    @property
    def is_open(self) -> bool:
        """Return True if its definitions say nothing about its fields."""
        return all(copy.is_open for copy in self._copies)

    @property
    def schema(self) -> File | None:
        """The schema with the most fields, and the path of its definition; None if no definition serves the version."""
        largest = max(self._copies, key=lambda copy: len(copy.content))
        return File(largest.locations[0].file, largest.content) if largest.content else None

    def check(self, folder: str, obj: Mapping[str, Plain]) -> list[Problem]:
        """Report what the cluster refuses of an object. If definitions differ, that nearest to its folder counts."""
        broken: list[_Copy] = []
        found = list(self._judge(folder, obj, broken))
        if not found:
            head = f"the schema of `{self._kind}` in this CRD cannot be used"
            faults = [(TracedScalar(self._kind, copy.locations[0]), copy.reason) for copy in broken]
            return [
                Problem("broken-schema", Sentence("{}: {}", head, reason), node, category="meta")
                for node, reason in faults
            ]
        accepting = [verdict for verdict in found if not _is_refused(verdict)]
        if not accepting and self._shipped:
            accepting = [verdict for verdict in ((None, self._shipped.check(obj)),) if not _is_refused(verdict)]
        refusing = [verdict for verdict in found if _is_refused(verdict)]
        if not accepting:
            return next((problems for copy, problems in refusing if copy and copy.content), refusing[0][1])
        return [*accepting[0][1], *(_report_difference(obj, refusing[0], accepting[0], folder) for _ in refusing[:1])]

    def _judge(self, folder: str, obj: Mapping[str, Plain], broken: list[_Copy]) -> Iterator[_Verdict]:
        """The verdict of each copy that can be used, the nearest and largest first; the others go to `broken`."""

        def rank(copy: _Copy) -> tuple[int, int]:
            return -_count_shared(folder, copy.find_nearest(folder).file), -len(copy.content)

        for copy in sorted(self._copies, key=rank):
            if copy.check is None:
                broken.append(copy)
                continue
            try:
                yield copy, copy.check(obj)
            except BrokenSchemaError as error:
                broken.append(copy._replace(reason=str(error)))


def _is_refused(verdict: _Verdict) -> bool:
    return any(problem.severity is Severity.ERROR for problem in verdict[1])


def _count_shared(folder: str, file: str) -> int:
    steps = folder.split("/")
    pairs = enumerate(zip(steps, file.split("/"), strict=False))
    return next((number for number, (one, other) in pairs if one != other), len(steps))


def _list_copies(api_version: str, definitions: Iterable[Definition], release: Release) -> Iterator[_Copy]:
    """What the definitions say about a version, each content once."""
    same: dict[bytes | str, list[Definition]] = {}
    for definition in definitions:
        version = _find_version(definition, api_version)
        same.setdefault(_convert(definition, version) if version else _name_served(definition), []).append(definition)
    for content, several in islice(same.items(), _MAX_COPIES):
        locations = tuple(definition.location for definition in several)
        version = _find_version(several[0], api_version)
        if version is None or isinstance(content, str):
            yield _Copy(locations, b"", _refuse_version(api_version, several[0]))
            continue
        try:
            check = compile_untrusted(content, release)
        except BrokenSchemaError as error:
            yield _Copy(locations, b"", None, reason=str(error))
        else:
            yield _Copy(locations, content, check, version.keeps_unknown or _is_open(version.schema))


def _find_version(definition: Definition, api_version: str) -> DefinedVersion | None:
    """The version of a definition that an object has, if it is served."""
    name = api_version.rpartition("/")[2]
    return next((version for version in definition.versions if version.name == name and version.is_served), None)


def _convert(definition: Definition, version: DefinedVersion) -> bytes:
    """The JSON Schema of a version; `null`, which is none, if it has errors."""
    schema = {"openAPIV3Schema": version.schema}
    described = {"name": version.name, "schema": schema, "subresources": version.subresources}
    spec = {"group": definition.group, "names": {"kind": definition.kind}, "versions": [described]}
    try:
        ((_, made),) = convert_crd({"spec": spec})
        return json.dumps(_allow_unknown(made) if version.keeps_unknown else made, sort_keys=True).encode()
    except (*MALFORMED_DATA_ERRORS, RecursionError):
        return b"null"


def _allow_unknown(schema: Any) -> Any:
    """A JSON Schema that allows unknown fields everywhere."""
    if isinstance(schema, dict):
        return {
            key: _allow_unknown(node) for key, node in schema.items() if (key, node) != ("additionalProperties", False)
        }
    return [_allow_unknown(node) for node in schema] if isinstance(schema, list) else schema


def _is_open(schema: Mapping[str, Any]) -> bool:
    """Return True if a schema says nothing about the fields of a kind, as that of a minimal definition."""
    fields = schema.get("properties")
    own = [fields[name] for name in fields if name not in _NOT_OWN_FIELDS] if isinstance(fields, dict) else []
    spec = fields.get("spec") if isinstance(fields, dict) else None
    is_any = isinstance(spec, dict) and (spec.get(KEEPS_UNKNOWN) is True or not spec.get("properties"))
    return schema.get(KEEPS_UNKNOWN) is True or not own or (is_any and len(own) == 1)


def _name_served(definition: Definition) -> str:
    served = [f"`{definition.group}/{version.name}`" for version in definition.versions if version.is_served]
    return " or ".join(filter(None, (", ".join(served[:-1]), *served[-1:])))


def _refuse_version(api_version: str, definition: Definition) -> SchemaCheck:
    served = [f"{definition.group}/{version.name}" for version in definition.versions if version.is_served]
    hint = f"; use {_name_served(definition)}" if served else ""
    file = definition.location.file
    message = f"the CRD of `{definition.kind}` in `{file}` does not serve `{api_version}`{hint}"

    def check(obj: Mapping[str, Plain]) -> list[Problem]:
        place = At(obj, "apiVersion")
        steps = (FixStep("set", place, served[0]),) if len(served) == 1 else ()
        return [Problem("old-api-version", message, place, category="schema", fix_steps=steps, safe=False)]

    return check


def _report_difference(obj: Mapping[str, Plain], refusing: _Verdict, accepting: _Verdict, folder: str) -> Problem:
    old, problems = refusing
    new = accepting[0]
    assert old is not None
    reason = fault_of(next(problem for problem in problems if problem.severity is Severity.ERROR).sentence)
    old_place = old.find_nearest(folder)
    message = Sentence("the CRD in `{}` refuses this object: {}", old_place.file, reason) if old.content else reason
    places = [(old_place, "this CRD refuses the object")]
    if new is None:
        message += "; the schema of the operator that jobgen has accepts it; update the CRD, or use what it accepts"
    else:
        new_place = new.find_nearest(folder)
        message += f"; the CRD in `{new_place.file}` accepts it; update the older CRD"
        places.append((new_place, "this CRD accepts it"))
    related = tuple((TracedScalar(DEFINITION_KIND, place), text) for place, text in places)
    at = At(obj, "apiVersion")
    return Problem("crd-copies-differ", message, at, related, category="schema", severity=Severity.WARNING)
