"""Formats, multiples and enums in the schemas of custom resources, as the API server reads them."""

from __future__ import annotations

import pytest

from jobgen.check.schema.crd_schema import compile_structural
from jobgen.check.schema.formats import find_format, parse_duration
from jobgen.k8s.kinds import NEWEST_RELEASE

VALUES = {
    "date": ["2026-01-31 2024-02-29 0000-02-29", "2026-02-29 26-01-31 2026-1-31 2026-01-31T00:00:00Z"],
    "date-time": [
        "2026-01-31T12:00:00Z 2026-01-31t12:00:00z 2026-01-31T12:00:00.5+01:00 2026-01-31T12:00:00,5Z",
        "2026-01-31 2026-01-31T12:00:00 2026-01-31T24:00:00Z 2026-01-31T12:00:60Z 2026-02-30T12:00:00Z T",
    ],
    "duration": ["1h30m 1.5h -3s 0 3d 2weeks 5min .5s 1.s P1D", "PTD 1x h 1 99999999999999999999days"],
    "ipv4": ["10.0.0.1 010.000.0.1 ::ffff:1.2.3.4", "10.0.0 10.0.0.256 10.0.0.1.2 ::1 1.2.3.4/8"],
    "ipv6": ["::1 2001:db8::1 ::ffff:1.2.3.4", "10.0.0.1 ::1%eth0 1:2:3:4:5:6:7:8:9 12345::"],
    "cidr": ["10.0.0.0/8 ::/0 010.0.0.1/032 00001::/64", "10.0.0.0 10.0.0.0/33 ::/129 10.0.0.0/"],
    "mac": [
        "01:23:45:67:89:ab 01-23-45-67-89-AB 0123.4567.89ab 01:23:45:67:89:ab:cd:ef 0123.4567.89ab.cdef",
        "01:23:45:67:89 01:23-45:67:89:ab 0123.4567 0123456789ab",
    ],
    "hostname": ["a train.example.com 1a ☃.net a-b.example a-", "-a a_b a.b.c. a..b example.c0m " + "a" * 65],
    "uri": ["https://example.com/a /a http: urn:x:y *", "example.com :// https://[::1 http://a.b:c/ http://a^b/ %41"],
    "email": [
        'a@b.c a.b@c "a\\b"@c a@[127.0.0.1] a@[IPv6:::1] é@c',
        "a a@ @b a..b@c .a@b a@b@c a@[1.2.3] a@[::1] <a@b",
    ],
    "uuid": [
        "123e4567-e89b-12d3-a456-426614174000 123E4567E89B12D3A456426614174000",
        "123 g23e4567-e89b-12d3-a456-426614174000",
    ],
    "uuid3": ["6fa459ea-ee8a-3ca4-894e-db77e160355e", "16fd2706-8baf-433b-82eb-8c7fada847da"],
    "uuid4": ["16fd2706-8baf-433b-82eb-8c7fada847da", "16fd2706-8baf-433b-c2eb-8c7fada847da"],
    "uuid5": ["886313e1-3b8a-5372-9b90-0c9aee199e5d", "16fd2706-8baf-433b-82eb-8c7fada847da"],
    "isbn": ["978-0321751041 0321751043", "978-0321751042 0321751044 1"],
    "isbn10": ["0-306-40615-2 097522980X", "978-0321751041"],
    "isbn13": ["978-0321751041", "0321751043"],
    "creditcard": ["4111-1111-1111-1111", "4111-1111-1111-1112 1"],
    "ssn": ["111-22-3333", "111223333 111-22-333"],
    "hexcolor": ["#fff #FF8800 fff", "#ffff red"],
    "rgbcolor": ["rgb(1,2,255)", "rgb(1,2,256) rgb(1,2)"],
    "byte": ["aGVsbG8= YQ==", "a YQ= aGVsbG8"],
    "bsonobjectid": ["507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901"],
    "k8s-short-name": ["a-1 1", "a.b A -a"],
    "k8s-long-name": ["a.b-1", "a..b A.b"],
    "int32": ["x", ""],
}


@pytest.mark.parametrize("name", VALUES)
def test_strings_of_each_format(name):
    valid, invalid = (texts.split() for texts in VALUES[name])
    check = compile_structural({"properties": {"a": {"type": "string", "format": name}}})

    assert [text for text in valid if check({"a": text})] == []
    assert [text for text in invalid if not check({"a": text})] == []


@pytest.mark.parametrize("name", VALUES)
def test_the_message_states_a_valid_value(name):
    form = find_format(name, NEWEST_RELEASE)

    assert form is None or form.is_valid(form.example)


def test_the_empty_string_is_no_value_of_a_format():
    (problem,) = compile_structural({"properties": {"a": {"type": "string", "format": "date-time"}}})({"a": ""})

    assert str(problem.sentence) == "`a` is ``, and must be a date and time such as `2026-01-31T12:00:00Z`"


def test_newer_formats_are_ignored_by_older_releases():
    assert find_format("k8s-short-name", (1, 33)) is None
    assert find_format("date", (1, 30)) is not None


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h30m", 5400), ("-1.5s", -1.5), ("3 days", 259200), ("2wks", None), ("1d2h", 93600)]
)
def test_durations_are_parsed_like_in_go(text, seconds):
    assert parse_duration(text) == (None if seconds is None else seconds * 10**9)


def test_long_texts_take_little_time():
    check = compile_structural({"properties": {"a": {"type": "string", "format": "duration"}}})

    for text in ("1" * 300_000, "1 " * 150_000, "1." * 150_000, "1" * 150_000 + " " * 150_000):
        assert check({"a": text})


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        ({"multipleOf": 0.0001}, [0.0075, 1.0, 0.0], [0.00751, 1]),
        ({"multipleOf": 1.5}, [3.0, 4.5, 35], [4.0]),
        ({"multipleOf": 2}, [4, 4.0, -2], [3, 1e300]),
        ({"minimum": 1.5}, [1, 2, 1.5], [0, 1.4]),
        ({"enum": [True]}, [True], [1, 1.0, "true"]),
        ({"enum": [1]}, [1, 1.0, 1.9], [True, 2]),
        ({"enum": [[0]]}, [[0]], [[False], [0.0]]),
        ({"enum": ["A"]}, ["A", 65], ["B", 66]),
        ({"enum": []}, [1, "a"], []),
        ({"format": "date"}, ["2026-01-31", []], [1, True, {}, "x"]),
        ({"items": {"type": "integer"}}, [[1], "x", 1], [["x"]]),
        ({"properties": {"b": {"type": "integer"}}, "required": ["b"]}, [1, [], {"b": 1}], [{"b": "x"}, {}]),
        ({"type": "string", "pattern": r"^\p{Letter}+$"}, ["aé"], ["1"]),
        ({"type": "integer", "format": "date"}, [1], []),
    ],
    ids=str,
)
def test_constraints_of_a_value(schema, accepted, refused):
    check = compile_structural({"properties": {"a": schema}}) if "pattern" not in schema else untrusted(schema)

    assert [value for value in accepted if check({"a": value})] == []
    assert [value for value in refused if not check({"a": value})] == []


def untrusted(schema):
    from jobgen.model.budget import Budget, Work

    return compile_structural({"properties": {"a": schema}}, Budget(1000, Work.SCHEMA))
