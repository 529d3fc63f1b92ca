"""Completion in the expressions of policies: variables, fields of objects, functions and macros."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from jobgen.check.cel.admission_scope import list_typed_fields
from jobgen.features.editor.completion.items import Item, ItemKind, Rank
from jobgen.features.editor.completion.names import Known
from jobgen.features.editor.completion.schemas import (
    SchemaNode,
    find_object_schema,
    list_fields,
    list_kinds,
    list_types,
    walk_path,
)
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.lazy_re import lazy_pattern, possessive_pattern
from jobgen.model.path import Step


class CelFunction(NamedTuple):
    """A function or macro."""

    receiver: str
    """The type of the value before the dot: `string`, `list`, `map`, or another; empty without one."""
    name: str
    example: str
    summary: str


_TABLE = """
| has | has(object.metadata.labels) | Whether a field is set.
| size | size(object.metadata.name) > 3 | The length of a text, list or map.
| int | int('8') == 8 | Converts a value to a whole number.
| uint | uint(8) == 8u | Converts a value to a whole number that is not negative.
| double | double('1.5') > 1.0 | Converts a value to a number.
| string | string(8) == '8' | Converts a value to text.
| bool | bool('true') | Converts text to true or false.
| bytes | bytes('abc') == b'abc' | Converts text to bytes.
| type | type(1) == int | The type of a value.
| dyn | dyn(1) == 1 | Turns off the type check of a value.
| duration | duration('1h') > duration('30m') | A period of time from text.
| timestamp | timestamp('2026-01-01T00:00:00Z') > timestamp('2025-01-01T00:00:00Z') | A point in time from text.
| optional.ofNonZeroValue | optional.ofNonZeroValue(1).hasValue() | An optional of a value that is not empty.
| sets.contains | sets.contains([1, 2], [1]) | Whether a list has all items of another.
| sets.equivalent | sets.equivalent([1, 2], [2, 1]) | Whether two lists have the same items.
| sets.intersects | sets.intersects([1, 2], [2, 3]) | Whether two lists share an item.
| lists.range | lists.range(2) == [0, 1] | The numbers below a number.
| quantity | quantity('64Gi').isGreaterThan(quantity('1Gi')) | An amount of a resource from text.
| isQuantity | isQuantity('64Gi') | Whether text is an amount of a resource.
| sign | sign(quantity('-1')) == -1 | The sign of an amount: -1, 0 or 1.
| semver | semver('1.2.3').major() == 1 | A semantic version from text.
| isSemver | isSemver('1.2.3') | Whether text is a semantic version.
| url | url('https://example.com/a').getHost() == 'example.com' | A URL from text.
| isURL | isURL('https://example.com') | Whether text is a URL.
| ip | ip('10.0.0.1').family() == 4 | An IP address from text.
| isIP | isIP('10.0.0.1') | Whether text is an IP address.
| ip.isCanonical | ip.isCanonical('10.0.0.1') | Whether an IP address is written in its canonical form.
| cidr | cidr('10.0.0.0/8').containsIP('10.0.0.1') | A range of IP addresses from text.
| isCIDR | isCIDR('10.0.0.0/8') | Whether text is a range of IP addresses.
| format.named | format.named('dns1123Label').hasValue() | A format by its name, if there is one.
| strings.quote | strings.quote('a') == '"a"' | Text in quotes, with escapes.
| optional.of | optional.of(1).hasValue() | An optional with a value.
| optional.none | !optional.none().hasValue() | An optional without a value.
| optional.unwrap | optional.unwrap([optional.of(1)]) == [1] | The values of optionals that have one.
list | all | [1, 2].all(each, each > 0) | Whether a condition holds for all items.
list | exists | [1, 2].exists(each, each > 1) | Whether a condition holds for at least one item.
list | exists_one | [1, 2].exists_one(each, each > 1) | Whether a condition holds for exactly one item.
list | filter | [1, 2].filter(each, each > 1) == [2] | The items for which a condition holds.
list | map | [1, 2].map(each, each + 1) == [2, 3] | The results of an expression for all items.
list | size | [1, 2].size() == 2 | The number of items.
list | join | ['a', 'b'].join(',') == 'a,b' | The items, which are texts, as one text.
list | sum | [1, 2].sum() == 3 | The sum of the items.
list | min | [1, 2].min() == 1 | The smallest item.
list | max | [1, 2].max() == 2 | The greatest item.
list | isSorted | [1, 2].isSorted() | Whether the items are in order.
list | indexOf | [1, 2].indexOf(2) == 1 | The first position of an item; -1 if there is none.
list | lastIndexOf | [1, 2].lastIndexOf(2) == 1 | The last position of an item; -1 if there is none.
list | unwrapOpt | [optional.of(1)].unwrapOpt() == [1] | The values of optionals that have one.
map | all | {'a': 1}.all(key, key != '') | Whether a condition holds for all keys.
map | exists | {'a': 1}.exists(key, key == 'a') | Whether a condition holds for at least one key.
map | exists_one | {'a': 1}.exists_one(key, key == 'a') | Whether a condition holds for exactly one key.
map | filter | {'a': 1}.filter(key, key == 'a') == ['a'] | The keys for which a condition holds.
map | map | {'a': 1}.map(key, key) == ['a'] | The results of an expression for all keys.
map | size | {'a': 1}.size() == 1 | The number of entries.
string | contains | 'abc'.contains('b') | Whether text contains other text.
string | startsWith | 'abc'.startsWith('a') | Whether text starts with other text.
string | endsWith | 'abc'.endsWith('c') | Whether text ends with other text.
string | matches | 'abc'.matches('^[a-c]+$') | Whether a regular expression (RE2) matches a part of the text.
string | find | 'abc'.find('[bc]') == 'b' | The first part that a regular expression matches.
string | findAll | 'abc'.findAll('[bc]') == ['b', 'c'] | All parts that a regular expression matches.
string | size | 'abc'.size() == 3 | The number of characters.
string | charAt | 'abc'.charAt(1) == 'b' | The character at a position.
string | indexOf | 'abc'.indexOf('b') == 1 | The first position of other text; -1 if there is none.
string | lastIndexOf | 'abc'.lastIndexOf('b') == 1 | The last position of other text; -1 if there is none.
string | lowerAscii | 'ABC'.lowerAscii() == 'abc' | The text in lower case.
string | upperAscii | 'abc'.upperAscii() == 'ABC' | The text in upper case.
string | replace | 'abc'.replace('b', 'x') == 'axc' | The text with other text replaced.
string | split | 'a,b'.split(',') == ['a', 'b'] | The parts between a separator.
string | substring | 'abc'.substring(1) == 'bc' | The text from a position on.
string | trim | ' a '.trim() == 'a' | The text without spaces around it.
string | format | '%s has %d'.format(['a', 1]) == 'a has 1' | The text with values in the place of `%s` and `%d`.
Quantity | isGreaterThan | quantity('2').isGreaterThan(quantity('1')) | Whether an amount is greater than another.
Quantity | isLessThan | quantity('1').isLessThan(quantity('2')) | Whether an amount is less than another.
Quantity | compareTo | quantity('1').compareTo(quantity('2')) == -1 | Compares two amounts: -1, 0 or 1.
Quantity | add | quantity('1').add(quantity('2')) == quantity('3') | The sum of two amounts.
Quantity | sub | quantity('3').sub(quantity('2')) == quantity('1') | The difference of two amounts.
Quantity | isInteger | quantity('1').isInteger() | Whether an amount is a whole number.
Quantity | asInteger | quantity('1').asInteger() == 1 | An amount as a whole number.
Quantity | asApproximateFloat | quantity('1').asApproximateFloat() > 0.5 | An amount as a number.
Semver | major | semver('1.2.3').major() == 1 | The first number of a version.
Semver | minor | semver('1.2.3').minor() == 2 | The second number of a version.
Semver | patch | semver('1.2.3').patch() == 3 | The third number of a version.
Semver | isGreaterThan | semver('1.2.3').isGreaterThan(semver('1.2.0')) | Whether a version is newer than another.
Semver | isLessThan | semver('1.2.0').isLessThan(semver('1.2.3')) | Whether a version is older than another.
Semver | compareTo | semver('1.2.0').compareTo(semver('1.2.3')) == -1 | Compares two versions: -1, 0 or 1.
URL | getScheme | url('https://a.com').getScheme() == 'https' | The scheme of a URL.
URL | getHost | url('https://a.com:8').getHost() == 'a.com:8' | The host and the port of a URL.
list | slice | [1, 2, 3].slice(0, 2) == [1, 2] | A part of a list.
list | flatten | [[1], [2]].flatten() == [1, 2] | The items of lists in a list.
list | sort | [2, 1].sort() == [1, 2] | A list in order.
list | reverse | [1, 2].reverse() == [2, 1] | A list in reverse order.
list | distinct | [1, 1].distinct() == [1] | A list without repeated items.
list | first | [1].first().hasValue() | The first item, if there is one.
list | last | [1].last().hasValue() | The last item, if there is one.
timestamp | getFullYear | timestamp('2026-01-01T00:00:00Z').getFullYear() < 9999 | The year of a time.
timestamp | getMonth | timestamp('2026-01-01T00:00:00Z').getMonth() < 9999 | The month of a time, from 0.
timestamp | getDate | timestamp('2026-01-01T00:00:00Z').getDate() < 9999 | The day of the month, from 1.
timestamp | getDayOfMonth | timestamp('2026-01-01T00:00:00Z').getDayOfMonth() < 9999 | The day of the month, from 0.
timestamp | getDayOfWeek | timestamp('2026-01-01T00:00:00Z').getDayOfWeek() < 9999 | The day of the week, from Sunday.
timestamp | getDayOfYear | timestamp('2026-01-01T00:00:00Z').getDayOfYear() < 9999 | The day of the year, from 0.
timestamp | getHours | timestamp('2026-01-01T00:00:00Z').getHours() < 9999 | The hours of a time.
timestamp | getMinutes | timestamp('2026-01-01T00:00:00Z').getMinutes() < 9999 | The minutes of a time.
timestamp | getSeconds | timestamp('2026-01-01T00:00:00Z').getSeconds() < 9999 | The seconds of a time.
timestamp | getMilliseconds | timestamp('2026-01-01T00:00:00Z').getMilliseconds() < 9999 | The milliseconds of a time.
URL | getHostname | url('https://a.com:8').getHostname() == 'a.com' | The host of a URL.
URL | getPort | url('https://a.com:8').getPort() == '8' | The port of a URL.
URL | getEscapedPath | url('https://a.com/b').getEscapedPath() == '/b' | The path of a URL.
URL | getQuery | url('https://a.com?b=c').getQuery()['b'] == ['c'] | The parameters of a URL.
IP | family | ip('10.0.0.1').family() == 4 | 4 or 6.
IP | isLoopback | ip('127.0.0.1').isLoopback() | Whether an address belongs to the machine itself.
IP | isGlobalUnicast | ip('10.0.0.1').isGlobalUnicast() | Whether an address is global unicast.
IP | isLinkLocalMulticast | ip('224.0.0.1').isLinkLocalMulticast() | Whether an address is link-local multicast.
IP | isLinkLocalUnicast | ip('169.254.1.1').isLinkLocalUnicast() | Whether an address is link-local unicast.
IP | isUnspecified | ip('0.0.0.0').isUnspecified() | Whether an address is the unspecified one.
CIDR | containsIP | cidr('10.0.0.0/8').containsIP('10.0.0.1') | Whether an address is in a range.
CIDR | containsCIDR | cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') | Whether a range is in another.
CIDR | ip | cidr('10.0.0.0/8').ip() == ip('10.0.0.0') | The address of a range.
CIDR | masked | cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8') | A range with the bits behind its prefix cleared.
CIDR | prefixLength | cidr('10.0.0.0/8').prefixLength() == 8 | The number of bits of the prefix.
NamedFormat | validate | !format.dns1123Label().validate('a').hasValue() | What is wrong with text, if anything is.
optional | hasValue | optional.of(1).hasValue() | Whether an optional has a value.
optional | value | optional.of(1).value() == 1 | The value of an optional.
optional | orValue | optional.of(1).orValue(2) == 1 | The value of an optional, or another if it has none.
optional | or | optional.none().or(optional.of(1)).hasValue() | The first of two optionals that has a value.
Authorizer | group | authorizer.group('').resource('pods').check('create').allowed() | Permissions for an API group.
Authorizer | path | authorizer.path('/healthz').check('get').allowed() | Permissions for a path.
Authorizer | serviceAccount | authorizer.serviceAccount('ns', 'sa').path('/').check('get').allowed() | \
Permissions of a service account.
GroupCheck | resource | authorizer.group('').resource('pods').check('create').allowed() | Permissions for a resource.
ResourceCheck | subresource | authorizer.requestResource.subresource('status').check('get').allowed() | \
Permissions for a subresource.
ResourceCheck | namespace | authorizer.requestResource.namespace('a').check('get').allowed() | \
Permissions in a namespace.
ResourceCheck | name | authorizer.requestResource.name('a').check('get').allowed() | \
Permissions for an object with a name.
ResourceCheck | fieldSelector | authorizer.requestResource.fieldSelector('a=b').check('list').allowed() | \
Permissions for some objects.
ResourceCheck | labelSelector | authorizer.requestResource.labelSelector('a=b').check('list').allowed() | \
Permissions for some objects.
ResourceCheck | check | authorizer.requestResource.check('get').allowed() | Whether a verb is permitted.
Decision | allowed | authorizer.requestResource.check('get').allowed() | Whether it is permitted.
Decision | reason | authorizer.requestResource.check('get').reason() == '' | Why it is permitted or not.
Decision | errored | !authorizer.requestResource.check('get').errored() | Whether the question could not be answered.
Decision | error | authorizer.requestResource.check('get').error() == '' | Why the question could not be answered.
"""


@cache
def list_functions() -> tuple[CelFunction, ...]:
    """Return all functions and macros."""
    from jobgen.check.cel.signatures import FORMATS

    rows = (line.split(" | ") for line in f" {_TABLE}".replace("\n| ", "\n | ").splitlines() if line.strip())
    found = [CelFunction(*(part.strip() for part in row)) for row in rows]
    formats = [
        CelFunction("", f"format.{name}", f"format.{name}().validate('a').hasValue()", f"The format `{name}`.")
        for name in FORMATS
    ]
    return (*found, *formats)


EXPRESSIONS = frozenset(("expression", "messageExpression", "valueExpression"))
"""The fields of a policy that hold an expression."""

_STRING = possessive_pattern(r"""'(?:[^'\\\n]++|\\.)*+'|"(?:[^"\\\n]++|\\.)*+\"""")
_WORD = lazy_pattern(r"[A-Za-z_]\w*\Z")
_NUMBER = lazy_pattern(r"(?<!\w)\d+\Z")
_SEGMENT = lazy_pattern(r"(?:\.\??)?([A-Za-z_]\w*)((?:\[\??[^\[\]]*\])*)\Z")
_MACRO = lazy_pattern(r"\.(?:all|exists|exists_one|filter|map)\(\s*([A-Za-z_]\w*)\s*,")
_VARIABLES = {
    "object": "The object of the request; null if it is deleted.",
    "oldObject": "The object before the change; null if it is created.",
    "request": "The request: its operation, user, name and namespace.",
    "namespaceObject": "The namespace of the object; null if it has none.",
    "authorizer": "Permissions of the user, as `cluster.authorizer` states them.",
    "params": "The object that the binding names in `paramRef`.",
    "variables": "The variables of this policy.",
}
_TYPED = {"request": "AdmissionRequest", "namespaceObject": "Namespace"}
_MAX_KINDS = 20
"""Of more kinds that a policy matches, these have their fields offered."""
_METHODS = {"array": "list", "object": "map", "string": "string"}


class Policy(NamedTuple):
    """What the expressions of a policy can use."""

    object: Sequence[SchemaNode] = ()
    """The schemas of the objects that it matches; empty if none is known."""
    params: Sequence[SchemaNode] | None = None
    """The schema of its parameters; None without parameters."""
    variables: tuple[str, ...] = ()


def read_policy(document: Mapping[str, Any], known: Known) -> Policy:
    """Read what the expressions of a policy can use; it may be half typed."""
    spec = as_mapping(document.get("spec"))
    rules = [as_mapping(rule) for rule in as_list(as_mapping(spec.get("matchConstraints")).get("resourceRules"))]
    resources = [
        tuple(as_text(part) for part in parts)
        for rule in rules
        for parts in product(*(as_list(rule.get(key)) for key in ("apiGroups", "apiVersions", "resources")))
    ]
    kinds = {
        (kind.api_version, kind.plural): kind.name for kind in reversed([*list_kinds(known.kinds, known.clusters)])
    }
    found: list[SchemaNode] = []
    for group, version, resource in resources[:_MAX_KINDS]:
        api_version = f"{group}/{version}" if group else version
        if name := kinds.get((api_version, resource)):
            found += find_object_schema(known.root, api_version, name, known.clusters)
    kind = as_mapping(spec.get("paramKind"))
    named = as_text(kind.get("apiVersion")), as_text(kind.get("kind"))
    params = find_object_schema(known.root, *named, known.clusters) if kind else None
    names = (as_text(as_mapping(each).get("name")) for each in as_list(spec.get("variables")))
    return Policy(found, params, tuple(filter(None, names)))


def complete_expression(before: str, policy: Policy) -> tuple[int, list[Item]]:
    """Return what an expression can go on with, and how many characters before the cursor that replaces."""
    masked = _STRING.sub(lambda found: "'" + "_" * (len(found[0]) - 2) + "'", before)
    if masked.count("'") % 2 or masked.count('"') % 2:
        return 0, []
    word = _WORD.search(masked)
    typed = len(word[0]) if word else 0
    head = masked[: len(masked) - typed]
    if head.endswith((".", ".?")):
        start = before[: len(head)].removesuffix("?").removesuffix(".")
        found = [] if _NUMBER.search(start) else [*_list_members(start, policy)]
    else:
        found = [] if head[-1:].isdigit() else [*_list_names(head, policy)]
    return typed, list({item.label: item for item in reversed(found)}.values())[::-1]


def _list_names(before: str, policy: Policy) -> Iterator[Item]:
    for name, _ in reversed(list(_find_bound(before))):
        yield Item(name, ItemKind.VARIABLE, "", "variable", "The item or key of this macro.", Rank.REQUIRED)
    for name, summary in _VARIABLES.items():
        if (name != "params" or policy.params is not None) and (name != "variables" or policy.variables):
            yield Item(name, ItemKind.VARIABLE, "", "variable", summary, Rank.COMMON)
    for function in list_functions():
        if not function.receiver and "." not in function.name:
            yield _make_function(function)
    for name in dict.fromkeys(each.name.partition(".")[0] for each in list_functions() if "." in each.name):
        yield Item(name, ItemKind.VARIABLE, "", "library", "", Rank.OTHER)


def _make_function(function: CelFunction) -> Item:
    label = function.name.rpartition(".")[2]
    has_arguments = f"{function.name}()" not in function.example
    insert = f"{label}($1)" if has_arguments else f"{label}()"
    documentation = f"{function.summary}\n\n```cel\n{function.example}\n```"
    return Item(label, ItemKind.FUNCTION, insert, function.receiver, documentation, Rank.OTHER, is_snippet=True)


def _list_members(receiver: str, policy: Policy) -> Iterator[Item]:
    path = _read_path(receiver)
    if path and path[0] == "variables" and len(path) == 1:
        yield from (Item(name, ItemKind.VARIABLE, "", "variable of the policy") for name in policy.variables)
        return
    libraries = [each for each in list_functions() if len(path) == 1 and each.name.startswith(f"{path[0]}.")]
    if libraries:
        yield from map(_make_function, libraries)
        return
    forms = _find_forms(path, receiver, policy) if path else ()
    for field in list_fields(forms):
        detail = " or ".join(field.types)
        # A field with another name than a word is written in brackets, which needs the dot to be removed.
        if field.name.isidentifier():
            rank = Rank.REQUIRED if field.is_required else Rank.COMMON
            yield Item(field.name, ItemKind.FIELD, "", detail, field.description, rank)
    if path == ("authorizer",):
        wanted = ["Authorizer"]
    elif receiver.endswith(("'", '"', "}")):
        wanted = ["map" if receiver.endswith("}") else "string"]
    else:
        known = [_METHODS[kind] for kind in list_types(forms) if kind in _METHODS]
        # A mapping with fields is not a map. If the type is not known, it may have any function.
        wanted = [name for name in known if name != "map" or not [*list_fields(forms)]]
        wanted = wanted or (["object"] if known else [])
    for function in list_functions():
        if function.receiver and (function.receiver in wanted or not wanted):
            yield _make_function(function)


def _read_path(text: str) -> tuple[Step, ...]:
    """Return the fields and indexes at the end of an expression, such as `object.spec.containers[0]`; empty if none."""
    steps: list[Step] = []
    while found := _SEGMENT.search(text):
        indexes = [index.strip() for index in re.findall(r"\[\??([^\[\]]*)\]", found[2])]
        # The name of a variable stands for any key.
        keys = (index[1:-1] if index[:1] in ("'", '"') else 0 if index.isdigit() else index for index in indexes)
        steps[:0] = [found[1], *keys]
        text = text[: found.start()]
        if not found[0].startswith("."):
            return () if text.endswith((")", "]", "'", '"')) else tuple(steps)
    return ()


def _walk(forms: Sequence[SchemaNode], path: Iterable[Step]) -> Sequence[SchemaNode]:
    """Return the schema at a path; the items of lists have no names, so any key leads to them."""
    for step in path:
        below = walk_path(forms, (step,))
        forms = below or walk_path([form for form in forms if "array" in list_types([form])], (0,))
    return forms


def _find_forms(path: Sequence[Step], before: str, policy: Policy, depth: int = 0) -> Sequence[SchemaNode]:
    """Return the schema of the value at a path, which begins with a variable."""
    first = path[0]
    bound = dict(_find_bound(before))
    if first in bound and depth < 8:
        receiver = _read_path(bound[str(first)])
        forms = _find_forms(receiver, bound[str(first)], policy, depth + 1) if receiver else ()
        return _walk(forms, (0, *path[1:]))
    if first in _TYPED:
        return _walk(_read_typed(_TYPED[str(first)]), path[1:])
    roots = {"object": policy.object, "oldObject": policy.object, "params": policy.params or ()}
    return _walk(roots.get(str(first), ()), path[1:])


def _find_bound(before: str) -> Iterator[tuple[str, str]]:
    """Yield the variables of the macros around the end of an expression, each with what is before the macro."""
    for found in _MACRO.finditer(before):
        rest = before[found.end() :]
        if rest.count("(") >= rest.count(")"):
            yield found[1], before[: found.start()]


@cache
def _read_typed(name: str) -> tuple[SchemaNode, ...]:
    group = "kubernetes."
    types: dict[str, dict[str, Any]] = {}
    for owner, field, kind in list_typed_fields():
        properties = types.setdefault(owner.removeprefix(group), {"type": "object", "properties": {}})["properties"]
        properties[field] = _write_type(kind, group)

    def resolve(ref: str) -> SchemaNode | None:
        return SchemaNode(types[ref], resolve) if ref in types else None

    return (SchemaNode(types[name], resolve),)


def _write_type(kind: str, group: str) -> dict[str, Any]:
    if kind.startswith(group):
        return {"$ref": kind.removeprefix(group)}
    if kind.startswith("list<"):
        return {"type": "array", "items": _write_type(kind[5:-1], group)}
    if kind.startswith("map<"):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    return {"type": {"int": "integer", "bool": "boolean"}.get(kind, "string")} if kind != "dyn" else {}
