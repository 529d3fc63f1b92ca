"""One report in every format: transcripts in report/ show what each format makes of the same findings."""

from __future__ import annotations

import functools
import gzip
import json as stdjson
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import yaml
from growth import grows_with_the_square
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import examples, laws
from transcripts import find_transcripts, read_transcript

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Fix, Identity, Related, Severity
from jobgen.reports import Report, RuleText, Suppressed
from jobgen.reports.entries import count_rules, entries, fingerprints, format_findings, summarize
from jobgen.reports.escape import visible
from jobgen.reports.formats import FORMATS, describe, github, gitlab, resolve, sarif
from jobgen.reports.formats.text import make_snippet

ROOT = Path(__file__).parent.parent
SCHEMA = stdjson.loads((ROOT / "docs/report_v1.json").read_text())
ERROR, WARNING, INFO = Severity
ANSI = re.compile(r"\x1b\[[0-9;]*m")

JOB = Identity("kubeflow.org/v1", "PyTorchJob", "research", "bert")
LINES = {
    "jobs/bert.yaml": (
        "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata:\n  name: bert\nspec:\n"
        "  image: registry/bert:latest\r\n\tresources: {gpus: 8}\n  # 学習ジョブ\n"
        "  description: 学習ジョブ, très grand\n  args: ["
        + ", ".join(f"--option-{number}={number}" for number in range(40))
        + "]\n  script: |\n    train\n    done"
    ).split("\n"),
    "overlays/prod/overlay.yaml": ["defaults:", "  resources:", "    gpus: 16"],
}
RULES = {
    "gpu-request-limit-mismatch": RuleText(
        "pod", ERROR, "GPU requests and limits differ", "Make them equal.\n\nThe `kubelet` insists."
    ),
    "mutable-image-tag": RuleText(
        "image",
        WARNING,
        "an image is not pinned by digest",
        "Pin it.",
        "https://example.com/rules.md#mutable-image-tag",
    ),
    "privileged-container": RuleText("security", ERROR, "a container is privileged", "Drop `privileged`."),
    "never-seen": RuleText("spec", INFO, "a rule that found nothing", ""),
}


def option(number):
    """The place of an option in a long line."""
    column = LINES["jobs/bert.yaml"][9].index(f"--option-{number}=") + 1
    return Location("jobs/bert.yaml", 10, column, 10, column + len(f"--option-{number}"))


def found(rule, severity, message, location, category="pod", **more):
    return Finding(rule, category, severity, message, location, **more)


GPUS = "`nvidia.com/gpu` requests `8` and is limited to `16`"
CHAIN = (Related(Location("overlays/prod/overlay.yaml", 3, 11), "was set here by overlay `prod`"),)
FOUND = [
    *(
        found(
            "gpu-request-limit-mismatch",
            ERROR,
            GPUS,
            Location("jobs/bert.yaml", 7, 20, 7, 21),
            object=job,
            env=env,
            pointer="/spec/pytorchReplicaSpecs/Worker",
            related=CHAIN,
        )
        for env, job in (("prod", JOB._replace(namespace="live")), ("dev", JOB))
    ),
    found(
        "mutable-image-tag",
        WARNING,
        "`registry/bert:latest` is not pinned by digest",
        Location("jobs/bert.yaml", 6, 10, 6, 30),
        "image",
        object=JOB,
        env="dev",
        pointer="/spec/image",
        fix=Fix((), safe=True),
    ),
    found(
        "long-description",
        INFO,
        "a description in `学習`",
        Location("jobs/bert.yaml", 9, 16, 9, 21),
        "spec",
        fix=Fix((), safe=False),
    ),
    found("unknown-option", WARNING, "`--option-27` is no option", option(27), "spec"),
    found("unknown-option", WARNING, "`--option-0` is no option", option(0), "spec"),
    found("unknown-option", WARNING, "`--option-39` is no option", option(39), "spec"),
    found(
        "shell-without-errexit",
        INFO,
        "a script goes on after a failure",
        Location("jobs/bert.yaml", 11, 11, 13, 9),
        "spec",
    ),
    found(
        "privileged-container",
        ERROR,
        "container `<b>` says\n`privileged: true` | 100%",
        Location("<stdin>", 3, 5),
        "security",
    ),
    *(
        found(
            "gpus-over-quota",
            WARNING,
            "`16` GPUs are more than a node has",
            Location("overlays/prod/overlay.yaml", 3, 11, 3, 13),
            "scheduling",
            object=JOB._replace(name=name),
            env="prod",
            pointer="/spec",
        )
        for name in ("bert", "gpt", "t5")
    ),
    found("not-yaml", ERROR, "line 2: `]]>` cannot stand here", Location("./raw/a, b:c.yaml", 2, 1), "yaml"),
]
SILENT = [
    Suppressed(
        found("mutable-image-tag", WARNING, "`a:b` is not pinned by digest", Location("jobs/bert.yaml", 4, 3)),
        "a test image",
    ),
    Suppressed(
        found("privileged-container", ERROR, "`x` is privileged", Location("raw/old.yaml", 1, 1), "security"),
        "",
        "baseline",
    ),
]


def find_line(file, number):
    lines = LINES.get(file, ())
    return lines[number - 1] if 0 < number <= len(lines) else None


REPORT = Report(FOUND, SILENT, 12, 214, ("dev", "prod", "test"), RULES, find_line)
REPORTS = {
    "found": REPORT,
    "shown": REPORT._replace(show_suppressed=True),
    "clean": Report([], [], 1, 1, [""], {"never-seen": RULES["never-seen"]}),
}
OUTPUTS = {
    **{name: lambda report, name=name: FORMATS.render(name, report) for name in FORMATS.names()},
    "text-160": lambda report: FORMATS.render("text", report._replace(width=160)),
    "text-color": lambda report: FORMATS.render("text", report._replace(color=True)),
    "text-160-color": lambda report: FORMATS.render("text", report._replace(width=160, color=True)),
    "github-step-summary": github.summary,
    "statistics": count_rules,
    "summary": lambda report: summarize(report) + "\n",
}


@pytest.mark.parametrize("path", find_transcripts("report"), ids=lambda path: path.stem)
def test_report_transcript(path, accept, monkeypatch):
    monkeypatch.setattr(sarif, "__version__", "0.0.0")
    transcript = read_transcript(path)
    sections = {name: write(REPORTS[transcript.name]).encode() for name, write in OUTPUTS.items()}
    output = {name: content for name, content in sections.items() if content}
    if accept:
        transcript = transcript.accept([output])

    assert output == transcript.expected


@pytest.mark.parametrize("output", [name for name in OUTPUTS if name != "json"])
@pytest.mark.parametrize("name", REPORTS)
def test_report_does_not_depend_on_the_order_of_findings(name, output):
    """JSON keeps the order that it is given."""
    backwards = REPORTS[name]._replace(findings=REPORTS[name].findings[::-1])

    assert OUTPUTS[output](backwards) == OUTPUTS[output](REPORTS[name])


def test_every_report_has_a_transcript():
    assert {path.stem for path in find_transcripts("report")} == REPORTS.keys()


def test_colors_change_no_text():
    assert ANSI.sub("", FORMATS.render("text", REPORT._replace(color=True))) == FORMATS.render("text", REPORT)


def test_text_report_has_one_line_per_finding_in_order():
    told = format_findings([FOUND[2], FOUND[0]])

    assert told == (
        "jobs/bert.yaml:6:10: warning: `registry/bert:latest` is not pinned by digest (in dev) [mutable-image-tag]\n"
        f"jobs/bert.yaml:7:20: error: {GPUS} (in prod) [gpu-request-limit-mismatch]\n"
        "    overlays/prod/overlay.yaml:3:11: was set here by overlay `prod`\n"
    )


@pytest.mark.parametrize(
    ("name", "environ", "format_"),
    [
        ("auto", {}, "text"),
        ("auto", {"GITHUB_ACTIONS": "true"}, "github"),
        ("auto", {"GITHUB_ACTIONS": "false"}, "text"),
        ("auto", {"GITLAB_CI": "true"}, "text"),
        ("json", {"GITHUB_ACTIONS": "true"}, "json"),
    ],
)
def test_auto_format_follows_the_environment(name, environ, format_):
    assert resolve(name, environ) == format_


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (Report([]), "nothing found in 0 files; 0 objects checked"),
        (
            Report([], (), 1, 1, ("dev",), {"a": RULES["never-seen"]}),
            "nothing found in 1 file; 1 object in 1 environment checked by 1 rule",
        ),
        (
            Report(FOUND[:2], SILENT[:1], 1, 2, ("", "a", "b")),
            "1 error in 1 file; 2 objects in 2 environments checked; 1 suppressed",
        ),
        (
            Report(FOUND, (), 1, 2),
            "3 errors, 5 warnings, 2 infos (2 fixable, 1 with --fix-unsafe) in 1 file; 2 objects checked",
        ),
    ],
)
def test_summary_line(report, line):
    assert summarize(report) == line


# Snippets


@pytest.mark.parametrize(
    ("line", "columns", "room", "shown", "below"),
    [
        ("a: b", (4, 5), 80, "a: b", "   ^"),
        ("a: b", (4, 0), 80, "a: b", "   ^"),
        ("a: b", (9, 12), 80, "a: b", "    ^"),
        ("a: b  \r", (1, 5), 80, "a: b", "^^^^"),
        ("", (1, 1), 80, "", "^"),
        ("\ufeffa: b", (4, 5), 80, "a: b", "   ^"),
        ("\ta: b", (2, 3), 80, "    a: b", "    ^"),
        ("学: 習b", (4, 5), 80, "学: 習b", "    ^^"),
        ("e\u0301: b", (4, 5), 80, "e\u0301: b", "  ^"),
        ("a\x1b[31m: b", (2, 3), 80, r"a\x1b[31m: b", " ^^^^"),
        ("0123456789" * 4, (1, 2), 20, "012345678901234567…", "^"),
        ("0123456789" * 4, (40, 41), 20, "…234567890123456789", " " * 18 + "^"),
        ("0123456789" * 4, (21, 23), 20, "…456789012345678901…", " " * 7 + "^^"),
        ("0123456789" * 4, (11, 41), 20, "…012345678901234567…", " ^^^^^^^^^^^^^^^^^^"),
    ],
)
def test_snippet_carets(line, columns, room, shown, below):
    part = make_snippet(line, Location("f", 1, columns[0], 1, columns[1]), room)

    assert (part.line, part.blank + part.carets) == (shown, below)


# Fingerprints


def known(findings):
    return fingerprints(entries(Report(findings)))


def test_fingerprint_ignores_lines_environments_and_messages():
    one = found("r", ERROR, "`8` is wrong", Location("a.yaml", 3, 1), object=JOB, env="dev", pointer="/spec/x")
    moved = found("r", ERROR, "it cannot be `9`", Location("b.yaml", 99, 7), object=JOB, env="dev", pointer="/spec/x")
    more = found(
        "r",
        ERROR,
        "`8` is wrong",
        Location("a.yaml", 3, 1),
        object=JOB._replace(namespace="b"),
        env="prod",
        pointer="/spec/x",
    )

    assert known([one]) == known([moved]) == known([one, more]) == known([more])


@pytest.mark.parametrize(
    "change",
    [
        {"rule": "s"},
        {"pointer": "/spec/y"},
        {"object": JOB._replace(name="other")},
        {"object": JOB._replace(namespace="other")},
        {"object": None},
    ],
)
def test_fingerprints_of_different_findings_differ(change):
    same = {
        "rule": "r",
        "category": "pod",
        "severity": ERROR,
        "message": "`8` is wrong",
        "location": Location("a.yaml"),
        "object": JOB,
    }

    assert known([Finding(**same)]) != known([Finding(**{**same, **change})])


def test_equal_fingerprints_are_numbered():
    twins = [found("r", ERROR, "`8` is wrong", Location("a.yaml", line)) for line in (1, 2, 3)]

    assert [one.partition(":")[2] for one in known(twins)] == ["1", "2", "3"]
    assert len({one.partition(":")[0] for one in known(twins)}) == 1


# What each format promises


def assert_valid_json(told):
    errors = jsonschema.Draft202012Validator(SCHEMA).iter_errors(stdjson.loads(told))
    assert [error.message for error in errors] == []


def assert_valid_sarif(told):
    """What the specification and GitHub ask of the parts that we write."""
    log = stdjson.loads(told)
    (run,) = log["runs"]
    driver = run["tool"]["driver"]

    assert (log["$schema"], log["version"]) == (sarif.SCHEMA, "2.1.0")
    assert driver["name"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert re.fullmatch(r"[^/]+/", run["automationDetails"]["id"])
    assert len(run["results"]) <= sarif.MAX_RESULTS
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    for rule in driver["rules"]:
        assert_valid_sarif_rule(rule)
    for result in run["results"]:
        assert_valid_sarif_result(result, driver["rules"], run["originalUriBaseIds"])
    prints = [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]
    assert len(set(prints)) == len(prints)
    order = [
        (bool(one.get("suppressions")), ["error", "warning", "note"].index(one["level"])) for one in run["results"]
    ]
    assert order == sorted(order)
    assert len(gzip.compress(told.encode(), 1)) < 10_000_000


def assert_valid_sarif_rule(rule):
    assert all(rule[part] for part in ("id", "name"))
    assert all(0 < len(rule[part]["text"]) <= 1024 for part in ("shortDescription", "fullDescription"))
    assert all(rule["help"][part] for part in ("text", "markdown"))
    assert rule.get("helpUri", "https://").startswith("https://")
    assert rule["defaultConfiguration"]["level"] in ("note", "warning", "error")
    assert rule["properties"]["precision"] in ("very-high", "high", "medium", "low")
    assert rule["properties"]["problem.severity"] in ("error", "warning", "recommendation")
    assert ("security" in rule["properties"]["tags"]) == ("security-severity" in rule["properties"])
    assert 0 < float(rule["properties"].get("security-severity", "1.0")) <= 10


def assert_valid_sarif_result(result, rules, bases):
    places = [*result["locations"], *result.get("relatedLocations", ())]
    links = re.findall(r"\[(?:[^\[\]\\]|\\[\[\]\\])*\]\((\d+)\)", result["message"]["text"])

    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["message"]["text"]
    assert links == [str(place["id"]) for place in places[1:]]
    assert len(result["locations"]) == 1
    assert {one["kind"] for one in result.get("suppressions", ())} <= {"inSource", "external"}
    assert all(one.get("justification", "-") for one in result.get("suppressions", ()))
    for place in (each["physicalLocation"] for each in places):
        assert_valid_sarif_place(place, bases)


def assert_valid_sarif_place(place, bases):
    uri, region = place["artifactLocation"]["uri"], place["region"]

    assert re.fullmatch(r"(?:file:///)?(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+", uri)
    assert not uri.startswith(("/", "./"))
    assert uri.startswith("file:") or place["artifactLocation"]["uriBaseId"] in bases
    assert all(value >= 1 for value in region.values())
    assert (region["startLine"], region["startColumn"]) <= (region["endLine"], region["endColumn"])


def assert_valid_github(told):
    """Reads the log as the runner does: commands at the start of a line, unless they are stopped."""
    counts: Counter[str] = Counter()
    stopped = None
    for line in told.splitlines():
        if stopped:
            stopped = None if line == f"::{stopped}::" else stopped
            continue
        name, properties = re.fullmatch(r"::([a-z-]+)(?: ([^\n]*?))?::.*", line).groups()
        counts[name] += 1
        if name == "stop-commands":
            stopped = line.rpartition("::")[2]
        if name in ("error", "warning") or properties:
            keys = [one.partition("=")[0] for one in properties.split(",")]
            assert set(keys) <= {"file", "line", "endLine", "col", "endColumn", "title"}
    assert not stopped
    assert set(counts) <= {"error", "warning", "notice", "group", "stop-commands", "endgroup"}
    assert all(counts[name] <= 10 for name in ("error", "warning", "notice"))


def assert_valid_gitlab(told):
    items = stdjson.loads(told)

    assert not told.startswith("\ufeff")
    assert len({item["fingerprint"] for item in items}) == len(items) <= gitlab.MAX_ITEMS + 1
    for item in items:
        assert set(item) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert item["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert item["location"]["path"]
        assert not item["location"]["path"].startswith("./")
        assert item["location"]["lines"]["begin"] >= 1


def assert_valid_junit(told):
    root = ET.fromstring(told.encode())
    assert root.tag == "testsuites"
    for suite in (root, *root.iter("testsuite")):
        cases = list(suite.iter("testcase"))
        names = [(case.get("classname"), case.get("name")) for case in cases]
        assert int(suite.get("tests")) == len(cases) > 0
        assert int(suite.get("failures")) == sum(case.find("failure") is not None for case in cases)
        assert int(suite.get("skipped")) == sum(case.find("skipped") is not None for case in cases)
        assert suite is root or len(set(names)) == len(names)


def assert_valid_tap(told):
    version, plan, *rest = told.splitlines()
    points = [line for line in rest if not line.startswith("  ")]
    blocks = re.findall(r"^  ---\n((?:  .*\n)*?)  \.\.\.$", told, re.MULTILINE)

    assert version == "TAP version 14"
    assert plan == f"1..{len(points)}"
    for number, point in enumerate(points, 1):
        assert re.fullmatch(rf"(not )?ok {number} - (?:[^\\#]|\\[\\#])*(?: # (?:SKIP|TODO)(?: .*)?)?", point)
    assert len(blocks) == len(points) - 1
    for block in blocks[:200]:  # enough for what is generated here
        assert "message" in yaml.load(block, yaml.CSafeLoader)


def assert_valid_policyreport(told):
    """Check what the CRD of wgpolicyk8s.io/v1alpha2 requires."""
    reports = stdjson.loads(told)["items"]

    assert reports
    for report in reports:
        assert report["apiVersion"] == "wgpolicyk8s.io/v1alpha2"
        assert report["kind"] == ("PolicyReport" if "namespace" in report["metadata"] else "ClusterPolicyReport")
        assert sum(report["summary"].values()) == len(report["results"])
        for result in report["results"]:
            assert result["result"] in ("pass", "fail", "warn", "error", "skip")
            assert result["severity"] in ("critical", "high", "medium", "low", "info")
            assert result["policy"]
            assert all(isinstance(value, str) for value in result["properties"].values())
            namespaces = {one.get("namespace") for one in result.get("resources", ())}
            assert namespaces <= {report["metadata"].get("namespace")}


def assert_valid_text(told):
    assert all(line.isprintable() for line in told.split("\n"))


FORMAT_CHECKS = {
    "json": assert_valid_json,
    "sarif": assert_valid_sarif,
    "junit": assert_valid_junit,
    "github": assert_valid_github,
    "gitlab": assert_valid_gitlab,
    "tap": assert_valid_tap,
    "policyreport": assert_valid_policyreport,
}
"""Checks of what a format specifies; lines of any other format are printable."""


def assert_valid(name, report):
    """Check a report by the rules of its format."""
    FORMAT_CHECKS.get(name, assert_valid_text)(report)


every_format = pytest.mark.parametrize("name", FORMATS.names())


@every_format
@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_report_is_valid_in_every_format(name, report):
    assert_valid(name, FORMATS.render(name, report))


def test_junit_report_is_read_by_junitparser():
    junitparser = pytest.importorskip("junitparser")
    suites = junitparser.JUnitXml.fromstring(FORMATS.render("junit", REPORT).encode())

    assert (suites.tests, suites.failures, suites.errors, suites.skipped) == (13, 3, 0, 2)
    assert [case.is_passed for case in next(iter(suites))] == [True]


# What others wrote cannot break a format

HOSTILE = st.one_of(
    st.sampled_from(
        [
            "::error::x",
            "\n::set-env name=A::b",
            "]]>",
            "<!--",
            "\x1b[31mred",
            "a\r\nb",
            "\u202egnp.exe",
            "a | b",
            "`",
            "``",
            "<script>",
            "\udc80",
            "\ud83d",
            "# SKIP",
            "\\",
            "%0A",
            "{0}",
            "[x](http://y)",
            "[x](1)",
            "\x00",
            "\u2028",
            "\x85",
            "\ufeff",
            "\uffff",
            "  ...",
            "\n  ---",
            "not ok 7",
            '"',
            "a\tb",
            "##[error]x",
            "/etc/passwd",
            "../x",
            "//host/x",
            "./",
            "",
            "~~~",
            "$(x)",
        ]
    ),
    st.text(st.characters(exclude_categories=()), max_size=8),
)
WORDS = st.lists(HOSTILE, min_size=1, max_size=3).map("".join)
NAMES = WORDS.filter(bool)
NUMBER = st.integers(0, 12)
MARKS = st.builds(Location, WORDS, NUMBER, NUMBER, NUMBER, NUMBER)
IDENTITIES = st.builds(Identity, WORDS, WORDS, WORDS, WORDS)
FINDINGS = st.builds(
    Finding,
    NAMES,
    WORDS,
    st.sampled_from(Severity),
    WORDS,
    MARKS,
    st.none() | IDENTITIES,
    st.sampled_from(["", "dev", "prod"]) | WORDS,
    WORDS,
    st.lists(st.builds(Related, MARKS, WORDS), max_size=2).map(tuple),
    st.none() | st.tuples(WORDS),
    WORDS,
    st.lists(WORDS, max_size=2).map(tuple),
    fix=st.none() | st.builds(Fix, st.just(()), st.booleans()),
)
RULE_TEXTS = st.builds(
    RuleText, WORDS, st.sampled_from(Severity), WORDS, WORDS, page=st.sampled_from(["", "https://a"])
)
HOSTILE_REPORTS = st.builds(
    Report,
    st.lists(FINDINGS, max_size=6),
    st.lists(st.builds(Suppressed, FINDINGS, WORDS, NAMES), max_size=2),
    NUMBER,
    NUMBER,
    st.lists(WORDS, max_size=2),
    st.dictionaries(NAMES, RULE_TEXTS, max_size=2),
    WORDS.map(lambda line: lambda _, number: line if 0 < number <= 6 else None),
    st.booleans(),
    st.just(80),
    st.just(False),
    skipped=st.dictionaries(st.sampled_from(("hidden", "Helm chart")), st.integers(1)),
    link=st.none(),
)


@settings(max_examples=examples(8), phases=[Phase.explicit, Phase.generate])
@given(report=HOSTILE_REPORTS)
def test_hostile_texts_do_not_break_report_formats(report):
    for name in FORMATS.names():
        told = FORMATS.render(name, report)

        assert told.encode().decode() == told, name
        assert told == "" or told.endswith("\n"), name
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", told), name
        assert_valid(name, told)


def spelt(words):
    """Text as JSON keeps it: lone surrogates are escaped."""
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", words)


def unescaped(words):
    """What GitHub makes of the message of a command."""
    return words.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


@laws(10)
@given(finding=FINDINGS)
def test_messages_survive_every_format(finding):
    report = Report([finding])
    command = next(line for line in FORMATS.render("github", report).splitlines() if line.startswith("::"))
    case = ET.fromstring(FORMATS.render("junit", report).encode()).findall("testsuite")[1].find("testcase")
    block = re.search(r"^  ---\n(.*?)^  \.\.\.$", FORMATS.render("tap", report), re.MULTILINE | re.DOTALL)[1]
    seen = "\n".join(map(visible, finding.message.split("\n")))

    assert stdjson.loads(FORMATS.render("json", report))["findings"][0]["message"] == spelt(finding.message)
    assert stdjson.loads(FORMATS.render("gitlab", report))[0]["description"].startswith(spelt(finding.message))
    assert yaml.load(block, yaml.CSafeLoader)["message"] == spelt(finding.message)
    assert unescaped(command.split("::", 2)[2]).startswith(seen)
    assert visible(finding.message) in FORMATS.render("text", report)
    assert case.find("failure" if finding.severity is ERROR else "system-out") is not None


@laws(10)
@given(report=HOSTILE_REPORTS)
def test_summary_rows_are_single_lines(report):
    told = github.summary(report)
    rows = [line for line in told.splitlines() if line.startswith("|")][2:]
    silent = report.suppressed if report.show_suppressed else ()

    assert told.encode().decode() == told
    assert len(rows) == len(entries(report)) + len(entries(Report([one.finding for one in silent]))) or silent
    assert all(row.count("|") == 5 for row in rows)
    assert set(re.findall(r"<[^>]*>", "".join(rows))) <= {"<br>", "<code>", "</code>"}


@laws(10)
@given(report=HOSTILE_REPORTS, width=st.integers(0, 200))
def test_colors_and_width_lose_no_finding(report, width):
    plain = FORMATS.render("text", report._replace(width=width))

    assert ANSI.sub("", FORMATS.render("text", report._replace(width=width, color=True))) == plain
    assert len(re.findall(r"^.*: (?:suppressed )?(?:error|warning|info): ", plain, re.MULTILINE)) >= len(
        entries(report)
    )


# Many


@functools.cache
def make_many(count=30_000):
    """Many findings, made when a test first needs them."""
    return Report(
        [
            found(
                f"rule-{number % 60}",
                list(Severity)[number % 3],
                f"`value-{number}` is not what `field-{number % 7}` takes",
                Location(f"jobs/team-{number % 50}/job-{number // 3}.yaml", number % 90 + 1, 3, number % 90 + 1, 12),
                object=JOB._replace(name=f"job-{number // 3}"),
                env="dev",
                pointer=f"/spec/{number % 7}",
                related=CHAIN,
            )
            for number in range(count)
        ],
        SILENT,
        10_000,
        30_000,
        ("dev", "prod"),
        RULES,
        lambda _, number: "  field: value" if number <= 100 else None,
    )


@every_format
def test_many_findings_take_linear_time(name):
    def prepare(count):
        report = make_many(count)
        return lambda: FORMATS.render(name, report)

    assert not grows_with_the_square(prepare, 120)


LIMITED = {"sarif": 2_700, "github": 300, "gitlab": 2_700}
"""More findings than each format may have."""


def test_findings_beyond_the_limit_are_counted(monkeypatch):
    assert (sarif.MAX_RESULTS, gitlab.MAX_ITEMS, github._MAX_SUMMARY_BYTES) == (25_000, 25_000, 1024 * 1024)
    monkeypatch.setattr(sarif, "MAX_RESULTS", 2_500)
    monkeypatch.setattr(gitlab, "MAX_ITEMS", 2_500)
    monkeypatch.setattr(github, "_MAX_SUMMARY_BYTES", 100 * 1024)
    # The other formats have no limits.
    told = {name: FORMATS.render(name, make_many(count)) for name, count in LIMITED.items()}
    (run,) = stdjson.loads(told["sarif"])["runs"]
    notice = told["github"].splitlines()[-1]
    page = github.summary(make_many(1_200))
    left = int(re.search(r"and (\d+) more", page)[1])

    for name, text in told.items():
        assert_valid(name, text)
    assert Counter(one["level"] for one in run["results"]) == {"error": 900, "warning": 900, "note": 700}
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].startswith(
        "200 results were left out"
    )
    assert stdjson.loads(told["gitlab"])[-1]["description"].startswith("and 200 more")
    assert notice.startswith("::notice::and 90 errors, 90 warnings, 91 infos more")
    assert len(page.encode()) <= 100 * 1024
    assert page.count("\n| ") - 1 + left == 1_200


def test_a_snippet_does_not_take_longer_for_a_longer_line():
    def prepare(count):
        line = "x" * count * 1_000
        report = make_many(count)._replace(find_line=lambda _, number: line if number <= 100 else None)
        return lambda: FORMATS.render("text", report)

    told = prepare(1_000)()
    assert max(len(line) for line in told.splitlines() if " | " in line) <= 80
    assert not grows_with_the_square(prepare, 60)


def test_concise_is_text_without_snippets():
    heads = [
        line
        for line in FORMATS.render("text", REPORT).splitlines()
        if re.match(r"\S+.*: (?:error|warning|info): ", line)
    ]

    assert [line for line in FORMATS.render("concise", REPORT).splitlines() if not line.startswith(" ")] == heads
    assert all(one <= two for one, two in pairwise([entry.finding.location for entry in entries(REPORT)]))


# One list of formats


def test_the_formats_page_lists_every_format(accept):
    page = (ROOT / "docs/formats.md").read_text("utf-8")
    head = "| format | for | a finding of several environments | suppressed findings |\n|---|---|---|---|\n"
    before, _, rest = page.partition(head)
    after = rest[rest.index("\n\n") + 1 :]
    rows = [(name, describe(name)) for name in FORMATS.names()]
    table = "".join(f"| [`{name}`](#{name}) | {i.audience} | {i.grouping} | {i.suppressed} |\n" for name, i in rows)
    if accept:
        (ROOT / "docs/formats.md").write_text(f"{before}{head}{table}{after}", "utf-8")
        page = (ROOT / "docs/formats.md").read_text("utf-8")

    assert head + table in page
    assert [name for name in FORMATS.names() if f"\n## {name}\n" not in page] == []
