"""What a finding shows of a file with secrets, case by case; tests/test_redaction.py has the laws."""

from __future__ import annotations

import pytest

from jobgen.k8s.redaction import MASK
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Fix, Related, Severity, TextEdit
from jobgen.rendering.redact import hide_quoted, redact_diff, redact_file, redact_findings, redact_lines
from jobgen.repo.files import File

LONG = "Zq7xW2v9LpKd4Tn"
PHRASE = "the first words of a long text that nobody may read"
TEXT = f"""\
apiVersion: v1
kind: Secret
metadata: {{name: a}}
stringData:
  password: latest
  token: {LONG}
  phrase: {PHRASE}
"""
FILE = File("a.yaml", TEXT.encode())
AT = Location("a.yaml", 5, 13)
BEFORE = Location("a.yaml", 4, 1)
FAR = Location("a.yaml", 900, 1)


def find(message: str = "x", location: Location = AT, **fields: object) -> Finding:
    return Finding("r", "schema", Severity.ERROR, message, location)._replace(**fields)


def show(finding: Finding) -> Finding:
    [shown] = redact_findings([finding], [FILE])
    return shown


# The message of a finding at the value `latest`, and what is shown of it.
MESSAGES = {
    "`latest` is wrong": f"`{MASK}` is wrong",
    "`password` is wrong": "`password` is wrong",
    "`latest` of `password`, not `other`": f"`{MASK}` of `password`, not `other`",
    "the latest release": "the latest release",
    "`${latest}` or `<latest>`": f"`${{latest}}` or `{MASK}`",
    "`{latest}` alone": f"`{MASK}` alone",
    "latest": MASK,
    "`late…` goes on": f"`{MASK}` goes on",
    "`early…` goes on": "`early…` goes on",
    "`late` goes on": "`late` goes on",
    "`[latest, other]`": f"`[{MASK}, other]`",
    "`{a: latest, b: latest}`": f"`{{a: {MASK}, b: {MASK}}}`",
    "`[x]` and `latests`": "`[x]` and `latests`",
    f"the text {LONG} anywhere": f"the text {MASK} anywhere",
}


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_shows_all_but_the_value_at_its_place(message: str) -> None:
    assert show(find(message)).message == MESSAGES[message]


@pytest.mark.parametrize(
    ("location", "message", "shown"),
    [
        (BEFORE, "`[latest]`", f"`[{MASK}]`"),
        (BEFORE, "`latest`", "`latest`"),
        (FAR, "`[latest]`", "`[latest]`"),
        (FAR, f"`{LONG}`", f"`{MASK}`"),
        (Location("b.yaml", 5, 13), "`latest`", "`latest`"),
        (Location("b.yaml", 5, 13), LONG, MASK),
        (Location("a.yaml", 7, 11), f"`{PHRASE[:20]}…`", f"`{MASK}`"),
        (Location("a.yaml", 7, 11), f"`{PHRASE}`", f"`{MASK}`"),
    ],
)
def test_a_common_value_is_hidden_near_its_place_and_another_everywhere(
    location: Location, message: str, shown: str
) -> None:
    assert show(find(message, location)).message == shown


@pytest.mark.parametrize("lines", [0, 49, 50, 51])
def test_a_collection_is_near_the_values_of_fifty_lines(lines: int) -> None:
    text = TEXT.replace("stringData:\n", "stringData:\n" + "  # x\n" * lines, 1)
    at = Location("a.yaml", 5, 1)
    [shown] = redact_findings([find("`[latest]`", at)], [File("a.yaml", text.encode())])

    assert (MASK in shown.message) is (lines <= 50)


def test_every_field_of_a_finding_is_redacted() -> None:
    shown = show(
        find(
            "x",
            related=(Related(FAR, f"see {LONG}"), Related(AT, "`latest` here")),
            evidence=("latest", "other", LONG),
            meant=LONG,
            pointer="/stringData/latest",
            place=f"Secret a/{LONG}",
        )
    )

    assert [note.message for note in shown.related] == [f"see {MASK}", f"`{MASK}` here"]
    assert shown.evidence == (MASK, "other", MASK)
    assert (shown.meant, shown.pointer, shown.place) == (MASK, f"/stringData/{MASK}", f"Secret a/{MASK}")


def test_what_holds_no_secret_is_the_same_value() -> None:
    finding = find("`password` is wrong", pointer="/stringData/password", fix=write_fix("other"))

    assert show(finding) is finding


def write_fix(value: str, was: str = "") -> Fix:
    return Fix((TextEdit("set", AT, value, was=was),), safe=True)


@pytest.mark.parametrize(
    ("fix", "is_kept"),
    [
        (write_fix("other"), True),
        (write_fix("latest"), False),
        (write_fix("other", "latest"), False),
        (write_fix(f"a {LONG}"), False),
        (write_fix("latests"), True),
    ],
)
def test_a_fix_that_would_write_a_secret_is_left_out(fix: Fix, is_kept: bool) -> None:
    assert show(find("x", fix=fix)).fix == (fix if is_kept else None)


@pytest.mark.parametrize(
    ("message", "shown"),
    [("`b` and `c`", f"`{MASK}` and `c`"), ("`'b'`", f"`{MASK}`"), ("b and `bb`", "b and `bb`")],
)
def test_a_quoted_value_of_a_run_is_hidden(message: str, shown: str) -> None:
    finding = find(message, related=(Related(AT, message),), evidence=("b", "c"), meant="b", fix=write_fix("c"))
    [hidden] = hide_quoted([finding], frozenset("b"))

    assert (hidden.message, hidden.related[0].message) == (shown, shown)
    assert (hidden.evidence, hidden.meant, hidden.fix) == ((MASK, "c"), "", None)
    assert hide_quoted([finding], frozenset()) == [finding]
    assert hide_quoted([find("x", meant="c")], frozenset("b"))[0].meant == "c"


def test_lines_have_stars_for_the_characters_of_secrets() -> None:
    hidden = [
        *TEXT.splitlines()[:4],
        f"  password: {'*' * 6}",
        f"  token: {'*' * 15}",
        f"  phrase: {'*' * len(PHRASE)}",
    ]

    assert list(redact_lines(TEXT.splitlines())) == hidden
    assert list(redact_file(FILE)) == [*hidden, ""]
    assert redact_lines(TEXT.splitlines())[4:6] == hidden[4:6]
    assert redact_lines(TEXT.splitlines())[-1] == hidden[-1]
    # A value of an env file may be a secret, whatever its name is.
    assert list(redact_file(File("a.env", b"# x\nA=b=c\n"))) == ["# x", "A=…", ""]


def test_an_escaped_secret_hides_its_line() -> None:
    escaped = LONG.replace("Z", "\\x5A")
    text = f'{TEXT}---\nkind: ConfigMap\ndata:\n  a: "{escaped}"\n  b: "\\x5Aq"\n'

    assert redact_lines(text.splitlines())[-2:] == ["  " + "*" * len(f'a: "{escaped}"'), '  b: "\\x5Aq"']


def test_a_difference_shows_no_secret_of_either_text() -> None:
    old, new = TEXT, TEXT.replace("latest", "newest").replace("token", "other")
    shown = redact_diff(["-  password: latest", "+  password: newest", " kind: Secret", f"+  x: {LONG}"], old, new)

    assert shown == ["-  password: ******", "+  password: ******", " kind: Secret", f"+  x: {'*' * len(LONG)}"]
    assert redact_diff(["+  password: latest"], "a: b") == ["+  password: latest"]
