"""The functions and macros that expressions of policies can call, each with a sentence and an example.

The first column is the type of the value before the dot; functions without one are called by their names alone.
`tests/test_completion_cel.py` compiles every example, and compares the names with those that the engine has.
"""

from __future__ import annotations

from functools import cache

from jobgen.model.named_tuple import NamedTuple


class CelFunction(NamedTuple):
    """A function or macro."""

    receiver: str
    """The type of the value before the dot: `string`, `list`, `map`, or another; empty without one."""
    name: str
    example: str
    summary: str

    @property
    def has_arguments(self) -> bool:
        """Whether something is written between its parentheses."""
        return f"{self.name}()" not in self.example


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
URL | getHostname | url('https://a.com:8').getHostname() == 'a.com' | The host of a URL.
URL | getPort | url('https://a.com:8').getPort() == '8' | The port of a URL.
URL | getEscapedPath | url('https://a.com/b').getEscapedPath() == '/b' | The path of a URL.
URL | getQuery | url('https://a.com?b=c').getQuery()['b'] == ['c'] | The parameters of a URL.
IP | family | ip('10.0.0.1').family() == 4 | 4 or 6.
IP | isLoopback | ip('127.0.0.1').isLoopback() | Whether an address is that of the machine itself.
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
    rows = (line.split(" | ") for line in f" {_TABLE}".replace("\n| ", "\n | ").splitlines() if line.strip())
    found = [CelFunction(*(part.strip() for part in row)) for row in rows]
    formats = [
        CelFunction("", f"format.{name}", f"format.{name}().validate('a').hasValue()", f"The format `{name}`.")
        for name in _list_formats()
    ]
    return (*found, *formats)


def _list_formats() -> list[str]:
    from jobgen.check.cel.signatures import FORMATS

    return FORMATS
