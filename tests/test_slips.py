"""Slips of the keyboard in YAML: the first finding is on the line of the slip, and the rest of the file is checked."""

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from sampling import examples

import jobgen
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
JOBS = sorted(ROOT.joinpath("jobs").rglob("*.yaml"))
CASES = 30
SHARE = 0.95


def replace_first(pattern: str, new: str) -> Callable[[str, random.Random], str]:
    return lambda line, _: re.sub(pattern, new, line, count=1)


def dedent(line: str, chosen: random.Random) -> str:
    return line[chosen.choice((1, 2)) :] if line.startswith("  ") else line


def indent(line: str, chosen: random.Random) -> str:
    return " " * chosen.choice((1, 2)) + line


def add_character(line: str, chosen: random.Random) -> str:
    at = chosen.randrange(len(line) + 1)
    return line[:at] + chosen.choice("}]\"'&*%@`,:{[") + line[at:]


SLIPS: dict[str, Callable[[str, random.Random], str]] = {
    "missing colon": replace_first(r"^(\s*(?:- )?[\w./-]+):(?=\s|$)", r"\1"),
    "missing space": replace_first(r"^(\s*(?:- )?[\w./-]+): (?=\S)", r"\1:"),
    "missing closing quote": replace_first(r'("[^"]*)"', r"\1"),
    "missing opening quote": replace_first(r'"([^"]*")', r"\1"),
    "missing closing bracket": replace_first(r"[\]}](?=[^\]}]*$)", ""),
    "missing opening bracket": replace_first(r"[\[{]", ""),
    "tab": replace_first(r"^ {2,}(?=\S)", "\t"),
    "dedent": dedent,
    "indent": indent,
    "two dashes": replace_first(r"^(\s*)- ", r"\1- - "),
    "missing dash": replace_first(r"^(\s*)- ", r"\1"),
    "stray character": add_character,
}


def load(text: str) -> object:
    try:
        return list(yaml.load_all(text, yaml.CSafeLoader))
    except yaml.YAMLError:
        return None


def make_slips(count: int, seed: str) -> list[tuple[str, Path, int, str]]:
    """Return slips that change what is read: their names, the jobs, the lines and the texts."""
    chosen = random.Random(seed)
    made: list[tuple[str, Path, int, str]] = []
    while len(made) < count:
        name, path = list(SLIPS)[len(made) % len(SLIPS)], chosen.choice(JOBS)
        text = path.read_text("utf-8")
        lines = text.split("\n")
        numbers = [number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")]
        chosen.shuffle(numbers)
        for number in numbers:
            line = SLIPS[name](lines[number], chosen)
            changed = "\n".join([*lines[:number], line, *lines[number + 1 :]])
            if line != lines[number] and load(changed) != load(text):
                made.append((name, path, number + 1, changed))
                break
    return made


def find_first_lines(root: Path, texts: dict[str, str]) -> dict[str, set[tuple[int, str]]]:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    found: dict[str, set[tuple[int, str]]] = {name: set() for name in texts}
    # A file is read the same for each environment.
    for finding in jobgen.lint(root, environments=("prod",)).findings:
        if finding.location.file in found and finding.rule != "duplicate-job":
            found[finding.location.file].add((finding.location.line, finding.rule))
    return found


def test_the_first_finding_is_on_the_line_of_the_slip(tmp_path):
    # Policies are not about slips: a repository of which all packs are its own takes seconds to compile them.
    shutil.copytree(ROOT / "overlays", tmp_path / "overlays")
    shutil.copy(ROOT / "jobgen.yaml", tmp_path)
    slips = make_slips(examples(CASES), "slips")
    names = [f"jobs/{path.parent.name}/{number:03}.yaml" for number, (_, path, _, _) in enumerate(slips)]
    before = find_first_lines(
        tmp_path, {name: path.read_text("utf-8") for name, (_, path, _, _) in zip(names, slips, strict=True)}
    )

    after = find_first_lines(tmp_path, {name: text for name, (_, _, _, text) in zip(names, slips, strict=True)})

    missed = []
    for name, (slip, path, line, _) in zip(names, slips, strict=True):
        known = {rule for _, rule in before[name]}
        lines = sorted(number for number, rule in after[name] if rule not in known)
        if lines[:1] != [line]:
            missed.append((slip, path.name, line, lines[:1]))
    assert len(missed) <= len(slips) * (1 - SHARE), missed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("framework: pytorch", "framework pytorch", "has no colon; write `framework: pytorch`"),
        ("framework: pytorch", "framework:pytorch", "has no space after its colon; write `framework: pytorch`"),
        ("  image: a:1", "image: a:1", "is not aligned with the lines around it; indent it by 2 spaces"),
        ("  image: a:1", "\timage: a:1", "is indented with a tab, which YAML does not allow; indent it by 2 spaces"),
        (
            "[python, train.py]",
            "[python, train.py",
            "has a `[` that is not closed; write `command: [python, train.py]`",
        ),
        ('"10"', '"10', 'has a `"` that is not closed; write `- "10"`'),
        ("[python, train.py]", "[python, train.py]]", "has an extra `]`; write `command: [python, train.py]`"),
        ("master: {}", "master: {", "has a `{` that is not closed; write `master: {}`"),
    ],
)
def test_the_message_shows_what_was_meant(old, new, message):
    text = (
        "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata:\n  name: a\n"
        "spec:\n  framework: pytorch\n  image: a:1\n"
        '  command: [python, train.py]\n  args:\n    - --epochs\n    - "10"\n  roles:\n    master: {}\n    worker: {}\n'
    )
    changed = text.replace(old, new)

    source = read(changed.encode(), "job.yaml")

    line = next(number for number, line in enumerate(changed.split("\n"), 1) if new in line)
    assert [(each.location.line, each.rule) for each in source.findings] == [(line, "yaml-syntax")]
    assert source.findings[0].message.endswith(message)
    assert not source.documents
    assert [each.data for each in source.repaired] == load(text)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a:\n-   x: 1\n  y: 2\n", 2, "has too many spaces after its dash; write `- x: 1`"),
        (
            "a:\n  b:\n    - x: 1\n      y: 2\n  - x: 3\n    y: 4\n  c: 5\n",
            5,
            "is not aligned with the lines around it; indent it by 2 more spaces, and move the line below with it",
        ),
    ],
)
def test_an_item_is_one_slip(text, line, message):
    (finding,) = read(text.encode(), "a.yaml").findings

    assert finding.location.line == line
    assert finding.message.endswith(message)


def test_large_and_hopeless_texts_end_soon():
    for text in (
        "{" * 5000,
        "a: [" + "x, " * 50_000,
        'a: "' + "b: c\n" * 20_000,
        "\n".join(["a b"] * 3 + ["c: d: e"] * 2000),
    ):
        source = read(text.encode(), "job.yaml")

        assert [each.rule for each in source.findings][:1] in (["yaml-syntax"], ["nesting-too-deep"]), text[:20]
        assert not source.documents


def test_a_slip_in_a_later_document_is_on_its_line_of_the_file():
    text = (
        "kind: ConfigMap\nmetadata: {name: a}\n---\nkind: Job\nspec:\n  command: [torchrun,\n    train.py\n  image: a\n"
    )

    [finding] = read(text.encode(), "job.yaml").findings

    assert (finding.location.line, finding.location.column) == (7, 5)
    assert finding.message == "`train.py` does not close the bracket that was opened above; write `train.py]`"


def test_an_apostrophe_inside_single_quotes_needs_double_quotes():
    [finding] = read(b"env:\n  MSG: 'it's'\n  B: c\n", "job.yaml").findings

    assert finding.message == """`MSG: 'it's'` has a `'` inside single quotes; write `MSG: "it's"`"""


@pytest.mark.parametrize(
    ("text", "line", "advice"),
    [
        ("args:\n  - --lr=0.1\n   - --epochs=3\n", 3, "indent it by 2 spaces, as the item above"),
        ("a:\n  args:\n  - b\n    - c\n", 4, "indent it by 2 spaces, as the item above"),
        ("note: first\n  - second\n", 2, "put each item below its key, or write `|` after the colon to keep the lines"),
        ("args:\n  - b\n    -c\n", 0, ""),
        ("args: [a\n  - b]\n", 0, ""),
        ("note: |\n  a\n   - b\nother: >\n  a\n  - b\n", 0, ""),
        ('note: "a\n  - b"\n', 0, ""),
    ],
)
def test_an_item_that_is_read_as_text_is_a_warning(text, line, advice):
    found = read(text.encode(), "job.yaml").findings

    assert [(each.rule, each.location.line, each.message.rpartition("; ")[2]) for each in found] == [
        ("folded-item", line, advice)
    ] * bool(line)


def test_a_long_line_is_shown_where_it_differs():
    text = b"metadata: {name: a0, namespace: ml, labels: {kueue.x-k8s.io/queue-name: a}}}\nspec: {a: 1}\n"
    (found,) = read(text, "x").findings
    assert found.message == "`\u2026s.io/queue-name: a}}}` has an extra `}`; write `\u2026s.io/queue-name: a}}`"


@pytest.mark.parametrize(
    ("lines", "end", "moved"),
    [
        (["GRANT a TO b;", 'EOF"'], ["    echo done"], "line"),
        (
            ["#!/usr/bin/env python3", "import os", "", "def main():", "    print(os)", "EOF"],
            ["    echo done"],
            "5 lines",
        ),
        (["GRANT a TO b;", "EOF"], ["  env: []"], "line"),
        (["GRANT a TO b;", "EOF"], [], "line"),
    ],
)
def test_a_text_that_is_indented_less_is_one_finding(lines, end, moved):
    text = ["spec:", "  args:", "  - |", "    set -e", "    cat <<EOF", *lines, *end, ""]
    [finding] = read("\n".join(text).encode(), "a.yaml").findings

    assert finding.location.line == 6
    more = f", and move the {moved} below with it"
    assert finding.message == (
        f"`{lines[0]}` is indented less than the text that it belongs to; indent it by 4 spaces{more}"
    )


def test_a_key_below_a_text_is_no_text():
    [finding] = read(b"data:\n  a: |\n    text\n b: x\n", "a.yaml").findings

    assert finding.message == "`b: x` is not aligned with the lines around it; indent it by 1 more space"


def test_spaces_after_dashes_are_those_of_the_author():
    text = b"""\
spec:
  terms:
  -   match:
    -   key: a
      operator: In
  ports:
  -   name: http
    port: 80
"""
    found = read(text, "a.yaml").findings

    assert [(each.location.line, each.message.partition("; ")[2]) for each in found] == [
        (3, "write `- match:`, and correct the line below in the same way"),
        (7, "write `- name: http`"),
    ]
