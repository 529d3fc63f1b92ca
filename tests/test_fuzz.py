"""Fuzzing: for any bytes in a repository, lint and render end with findings and without internal errors.

They do so in limited time and memory.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from limitedrun import MEMORY
from linting import lint_paths
from shippedschemas import shipped_schema

from jobgen.cli.result import ExitCode, Result
from jobgen.cli.run_render import render

ROOT = Path(__file__).parent.parent
SECONDS = 10
STATM = Path("/proc/self/statm")
"""The memory of this process; only Linux has it."""
SEEDS = {
    "jobgen.yaml": "jobgen.yaml",
    "jobs/a.yaml": "jobs/kubeflow/pytorch-simple.yaml",
    "jobs/b.yaml": "jobs/t9k/mnist.yaml",
    "overlays/prod/overlay.yaml": "overlays/prod/overlay.yaml",
    "overlays/base/overlay.yaml": "overlays/base/overlay.yaml",
    "policies/replica-totals.yaml": "policies/replica-totals.yaml",
    "schemas/kubeflow.org/pytorchjob_v1.yaml": "schemas/kubeflow.org/pytorchjob_v1.yaml",
}
SCHEMA = "schemas/kubeflow.org/pytorchjob_v1.json"
HEAD = "apiVersion: example.com/v1\nkind: Dance\nmetadata: {name: a}\n"
JOB = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n  framework: pytorch\n"


class TooLongError(Exception):
    """The time is over."""


@contextmanager
def within_limits(seconds: float = SECONDS) -> Iterator[None]:
    """Limit CPU time, not time spent waiting for other tests, and how much memory is taken in addition."""

    def stop(*_: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    memory = resource.getrlimit(resource.RLIMIT_AS)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    if STATM.exists():
        used = int(STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, memory[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, memory)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def lint(repository: Path, **options: Any) -> Result:
    with within_limits():
        result = lint_paths(repository, (), (), format_="text", **options)
    assert "[internal-error]" not in result.out, result.out[:2000]
    assert "internal error" not in result.err, result.err[:2000]
    return result


def assert_ends_in_findings(repository: Path) -> None:
    """Check that a lint, a render and a fix end with a message for people."""
    results = [lint(repository), lint(repository, fix="unsafe", diff=True)]
    with within_limits():
        results.append(render(repository, (), (), None, format_="yaml"))
    assert not [result.err for result in results if "internal error" in result.err or "internal-error" in result.err]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for path, seed in SEEDS.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / seed, tmp_path / path)
    (tmp_path / SCHEMA).write_text(json.dumps(shipped_schema("kubeflow.org/v1", "PyTorchJob")))
    return tmp_path


def tried(strategy: st.SearchStrategy[Any], times: int, act: Callable[[Any], None]) -> None:
    """Hypothesis, with as many examples as this run has time for."""
    limits = settings(
        max_examples=times,
        database=None,
        derandomize=times < 100,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    limits(given(strategy)(act))()


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Bytes lost, doubled, moved, replaced."""
    for _ in range(rng.randint(1, 4)):
        start, length = rng.randrange(len(content) + 1), rng.choice((1, 1, 2, 8, 60))
        piece = content[start : start + length]
        other = rng.choice(
            (
                b"",
                piece * 2,
                rng.randbytes(length),
                b"\t",
                b"&a",
                b"*a",
                b"!!python/object:os.system ",
                b": ",
                b"[",
                b"\0",
            )
        )
        content = content[:start] + other + content[start + length :]
    return content


def nested(depth: int) -> Any:
    value: Any = "x"
    for number in range(depth):
        value = {"a": value} if number % 2 else [value]
    return value


ODD = (None, True, "", "x" * 3000, "\x00\ud7ff\u2028", "..", "../../x", "/etc", -1, 0, 2**63, 10**400, 1e308, [], {})
ODDER = (
    [[]],
    {"": {}},
    {"null": None},
    nested(30),
    nested(150),
    "2001-01-01",
    ["a"] * 500,
    "*" * 50,
    "${{ matrix.a }}",
)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every holder and key of a tree."""
    for key, child in list(
        node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    ):
        yield node, key
        yield from places(child)


def twisted(content: bytes, rng: random.Random) -> bytes:
    """The same documents with values of other types, subtrees swapped, doubled or renamed."""
    documents = list(yaml.safe_load_all(content))
    for _ in range(rng.randint(1, 3)):
        found = list(places(documents))
        (holder, key), (other, name) = rng.choice(found), rng.choice(found)
        match rng.randrange(4):
            case 0:
                holder[key] = deepcopy(rng.choice(ODD))
            case 1:
                holder[key] = deepcopy(rng.choice(ODDER))
            case 2:
                holder[key], other[name] = json.loads(json.dumps([other[name], holder[key]], default=str))
            case _ if isinstance(holder, dict):
                holder[rng.choice(("", "a b", "null", "1", "$patch", "matrix", str(name)))] = holder.pop(key)
    return yaml.safe_dump_all(documents, allow_unicode=True).encode()


@pytest.mark.parametrize("path", [*SEEDS, SCHEMA])
def test_damaged_bytes_end_in_findings(repository: Path, path: str, stress: int) -> None:
    whole = (repository / path).read_bytes()

    def act(seed: int) -> None:
        (repository / path).write_bytes(damaged(whole, random.Random(seed)))
        assert_ends_in_findings(repository)

    tried(st.integers(0, 2**64), stress, act)


@pytest.mark.parametrize("path", [path for path in (*SEEDS, SCHEMA) if path != "jobgen.yaml"])
def test_mutated_documents_end_in_findings(repository: Path, path: str, stress: int) -> None:
    whole = (repository / path).read_bytes()

    def act(seed: int) -> None:
        made = twisted(whole, random.Random(seed))
        if path.endswith(".json"):
            made = json.dumps(yaml.safe_load(made), default=str).encode()
        (repository / path).write_bytes(made)
        assert_ends_in_findings(repository)

    tried(st.integers(0, 2**64), (1 if path.endswith(".json") else 2) * stress, act)


@pytest.mark.parametrize("folder", ["jobs/x.yaml", "overlays/x/x.yaml", "policies/x.json", "schemas/x/x_v1.yaml"])
def test_any_bytes_end_in_findings(tmp_path: Path, folder: str, stress: int) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(JOB + "  image: a/b:1\n")
    (tmp_path / folder).parent.mkdir(parents=True, exist_ok=True)

    def act(content: bytes) -> None:
        (tmp_path / folder).write_bytes(content)
        assert_ends_in_findings(tmp_path)

    tried(
        st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")),
        3 * stress,
        act,
    )


def chain(length: int, form: Callable[[str], Any]) -> dict[str, Any]:
    """Types that each refer to the next one, as often as they like."""
    types = {f"t{number}": form(f"#/$defs/t{number + 1}") for number in range(length)}
    return {"$ref": "#/$defs/t0", "$defs": {**types, f"t{length}": {}}}


def text_of(**schema: Any) -> Any:
    return {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"x": {"type": "string", **schema}}}},
    }


def spec_of(schema: Any) -> Any:
    return {"type": "object", "properties": {"spec": schema}}


def doubled_defaults(ref: str) -> Any:
    """Values that double with every level, for the rules to look at."""
    return {"type": "object", "properties": {name: {"$ref": ref, "default": {}} for name in ("a", "b")}}


LONG = "a" * 5000 + "!"
SCHEMAS: dict[str, tuple[Any, str]] = {
    "backtracking": (text_of(pattern="^(a+)+$"), "[invalid-value]"),
    "more backtracking": (text_of(pattern="^(a|a|b?)*$"), "[invalid-value]"),
    "a pattern that is none": (text_of(pattern="("), "is not a pattern"),
    "a pattern that only Python has": (text_of(pattern="(?<=a)b"), "is not a pattern"),
    "a pattern that grows": (text_of(pattern="((a{100}){100}){100}"), "is not a pattern"),
    "a pattern that is a number": (text_of(pattern=5), "[broken-schema]"),
    "types in a circle": (chain(3, lambda _: {"$ref": "#/$defs/t0"}), "refers to itself without end"),
    "a type that is not there": ({"$ref": "#/$defs/nowhere"}, "[broken-schema]"),
    "all of two, forty times": (chain(40, lambda ref: {"allOf": [{"$ref": ref}, {"$ref": ref}]}), "300000 steps"),
    "not, in a circle": ({"$ref": "#/$defs/t", "$defs": {"t": {"not": {"$ref": "#/$defs/t"}}}}, "without end"),
    "defaults that double": ({**chain(30, doubled_defaults), "x-kubernetes-validations": [{"rule": "true"}]}, "steps"),
    "a huge enum": (text_of(enum=[f"word-{number}" for number in range(200_000)]), "or one of 199800 more"),
    "a huge list of required": ({"type": "object", "required": [str(number) for number in range(400_000)]}, "steps"),
    "many fields of many types": (
        spec_of({"$ref": "#/$defs/t"})
        | {"$defs": {"t": {"type": "object", "additionalProperties": False, "properties": {
            str(number): {"$ref": "#/$defs/t"} for number in range(50)}}}},
        "[unknown-field]",
    ),
    "references in a circle beside an unknown field": (
        {**spec_of({"type": "object", "additionalProperties": False, "properties": {"y": {"$ref": "#/$defs/t"}}}),
         "$defs": {"t": {"$ref": "#/$defs/t"}}},
        "[unknown-field]",
    ),
    "a multiple of nothing": ({"type": "object", "properties": {"n": {"multipleOf": 0}}}, ""),
    "types that are none": ({"type": "dance"}, "[broken-schema]"),
    "a list": ([], "[broken-schema]"),
    "a word": ("x", "[broken-schema]"),
    "properties that are a list": ({"type": "object", "properties": []}, "[broken-schema]"),
    "rules that loop": (
        {"type": "object", "x-kubernetes-validations": [
            {"rule": f"{'[1,2,3,4,5,6,7,8,9].all(a, ' * 12}true{')' * 12}"}]},
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SCHEMAS)
def test_hostile_schema_is_reported_in_time(tmp_path: Path, case: str) -> None:
    schema, told = SCHEMAS[case]
    (tmp_path / "schemas/example.com").mkdir(parents=True)
    (tmp_path / "schemas/example.com/dance_v1.json").write_text(json.dumps(schema))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(f"{HEAD}spec: {{x: {LONG}}}\nn: 4\n")
    result = lint(tmp_path)

    assert result.code in (ExitCode.OK, ExitCode.ERRORS, ExitCode.INTERNAL_ERROR)
    assert told in result.out, result.out[:500]
    assert len(result.out) < 50_000


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a":' * 50_000, "\xff", "nul", '{"type": NaN}'])
def test_schema_that_is_not_json_is_reported_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "schemas/example.com").mkdir(parents=True)
    (tmp_path / "schemas/example.com/dance_v1.json").write_bytes(text.encode("latin-1"))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(HEAD)
    result = lint(tmp_path)

    assert result.code is ExitCode.INTERNAL_ERROR
    assert "jobs/a.yaml:2:7: error: the schema `schemas/example.com/dance_v1.json` cannot be used: " in result.out


POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: hostile}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}}]
  validations:
    - expression: {expression}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: hostile}}
spec: {{policyName: hostile, validationActions: [Deny]}}
"""
NUMBERS = "[0,1,2,3,4,5,6,7,8,9]"
EXPRESSIONS = {
    "loops in loops": f"{f'{NUMBERS}.all(x, ' * 10}true{')' * 10}",
    "lists that grow": f"{NUMBERS}.map(a, {NUMBERS}.map(b, {NUMBERS}.map(c, {NUMBERS}.map(d, {NUMBERS})))).size() > 0",
    "text that doubles": " + ".join(["'" + "x" * 1000 + "'"] * 500) + " != ''",
    "backtracking": f"!'{'a' * 3000}!'.matches('^(a+)+$')",
    "depth": "(" * 2000 + "true" + ")" * 2000,
    "length": " && ".join(["true"] * 20_000),
    "not CEL": "import os",
    "nul": "'\\\\0' == ''",
}


@pytest.mark.parametrize("case", EXPRESSIONS)
def test_hostile_policy_ends_in_time(tmp_path: Path, case: str) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/hostile.yaml").write_text(POLICY.format(expression=json.dumps(EXPRESSIONS[case])))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(JOB + "  image: a/b:1\n")

    assert lint(tmp_path).code in (ExitCode.OK, ExitCode.ERRORS, ExitCode.INTERNAL_ERROR)


PUMPED = (
    "curl ",
    "curl|/",
    "pip -",
    "{{",
    "${a",
    "-----BEGIN ",
    "--output-dir ",
    "TOKEN=",
    "mpirun -n ",
    "a.",
    "'",
    "(",
)


@pytest.mark.parametrize("field", ["command", "env", "image", "annotations"])
def test_time_grows_linearly_with_text_length(tmp_path: Path, field: str, stress: int) -> None:
    (tmp_path / "jobs").mkdir()
    for number, piece in enumerate(PUMPED):
        text = json.dumps(piece * ((600_000 if stress > 1 else 60_000) // len(piece)))
        value = {"command": f"[sh, -c, {text}]", "image": text}.get(field, f"{{A: {text}}}")
        (tmp_path / f"jobs/{number}.yaml").write_text(
            f"{JOB}  {field}: {value}\n".replace("name: a", f"name: a{number}")
        )
    result = lint(tmp_path)

    assert result.code in (ExitCode.OK, ExitCode.ERRORS)


def test_very_many_errors_take_little_memory(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\n"
        "spec: {pytorchReplicaSpecs: {Worker: {template: "
        f"{{spec: {{containers: [{{name: pytorch, image: a, args: [{'1,' * 10_000}1]}}]}}}}}}}}}}\n"
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with within_limits(2 * SECONDS):
        result = lint_paths(tmp_path, ["a.yaml"], (), format_="text")

    assert result.code is ExitCode.ERRORS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000
    assert len(result.out) < 1_000_000
