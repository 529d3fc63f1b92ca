"""Inputs that would take very long or very much memory end in a finding, in time and with little memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from limitedrun import run_limited
from linting import lint_paths
from sampling import sample

from jobgen.cli.result import Result

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: b}
spec:
  framework: pytorch
  image: example.com/a:1
"""
JSON_JOB = '{"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "a"}, "spec": {"imag": 1}}'
Files = dict[str, str]


def lint(root: Path, files: Files) -> Result:
    """The lint of a repository, with limits."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    result: Result = run_limited(lambda: lint_paths(root, (), (), format_="text"))
    assert "internal" not in result.out + result.err
    return result


def job(more: str, name: str = "a") -> str:
    return JOB.replace("name: a", f"name: {name}") + more


def manifest(container: str) -> str:
    return (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a, namespace: b}\nspec: {pytorchReplicaSpecs: "
        f"{{Worker: {{template: {{spec: {{containers: [{{name: pytorch, image: a, {container}}}]}}}}}}}}}}\n"
    )


def overlay(operations: list[Any]) -> str:
    patch = json.dumps(operations)
    return f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  patches:\n  - jsonPatch: {patch}\n"


def listed(count: int, form: str = "{}") -> str:
    return "[" + ", ".join(form.format(number) for number in range(count)) + "]"


def policy(expression: str, **variables: str) -> Files:
    """A job, and a policy with an expression and its variables."""
    listed_variables = "".join(
        f"  - {{name: {name}, expression: {json.dumps(value)}}}\n" for name, value in variables.items()
    )
    return {
        "jobs/a.yaml": JOB,
        "policies/p.yaml": (
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: costly}\n"
            "spec:\n  matchConstraints:\n    resourceRules:\n"
            '    - {apiGroups: ["kubeflow.org"], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}\n'
            + (f"  variables:\n{listed_variables}" if variables else "")
            + f"  validations:\n  - expression: {json.dumps(expression)}\n---\n"
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n"
            "metadata: {name: costly}\nspec: {policyName: costly, validationActions: [Deny]}\n"
        ),
    }


def doubled(first: str, form: str, times: int = 40) -> dict[str, str]:
    """Variables that are each made of the one before."""
    return {"v0": first} | {f"v{number}": form.replace("V", f"variables.v{number - 1}") for number in range(1, times)}


def crd(rule: str, items: str) -> Files:
    """An object with a list, and its schema with a rule."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"l": {"type": "array", "items": {"type": "integer"}}},
                "x-kubernetes-validations": [{"rule": rule}],
            }
        },
    }
    return {
        "schemas/example.com/case_v1.json": json.dumps(schema),
        "jobs/a.yaml": f"apiVersion: example.com/v1\nkind: Case\nmetadata: {{name: a}}\nspec: {{l: {items}}}\n",
    }


DIGITS = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
LOOPS = f"{DIGITS}.all(a, {DIGITS}.all(b, {DIGITS}.all(c, {DIGITS}.all(d, BODY))))"
FORMATTED = "'%s %s'.format([a, b]) != ''"
TOO_EXPENSIVE = "than the API server allows"

# Each case: the files of a repository, and what a finding says.
CASES: dict[str, tuple[Callable[[], Files], str]] = {
    "spaces after the start of an expression": (
        lambda: {"jobs/a.yaml": job("  args: ['${{" + " " * 20_000 + "']\n  imag: x\n")},
        "`imag` is not a field",
    ),
    "many starts of expressions": (
        lambda: {"jobs/a.yaml": job("  args: ['" + "${{ matrix" * 30_000 + "']\n  imag: x\n")},
        "`imag` is not a field",
    ),
    "500 invalid specs in one file": (
        lambda: {"jobs/a.yaml": "---\n".join(job("  imag: x\n", f"a{number}") for number in range(500))},
        "jobs/a.yaml:3999:3: error: `imag` is not a field",
    ),
    "500 manifests with errors in one file": (
        lambda: {
            "jobs/a.yaml": "---\n".join(
                manifest("imag: x").replace("name: a,", f"name: a{number},") for number in range(500)
            )
        },
        "`imag` is not a field",
    ),
    "20,000 suppressions alone on a line": (
        lambda: {"jobs/a.yaml": "# jobgen: ignore[moving-tag] -- x\n" * 20_000 + JOB},
        "more than `500` comments that suppress findings",
    ),
    "20,000 suppressions beside values": (
        lambda: {"jobs/a.yaml": job("  args:\n" + "  - a # jobgen: ignore[moving-tag] -- x\n" * 20_000)},
        "more than `500` comments that suppress findings",
    ),
    "2,000 roles": (
        lambda: {
            "jobs/a.yaml": (
                "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a, namespace: b}\n"
                "spec: {pytorchReplicaSpecs: {"
                + ", ".join(
                    f"r{n}: {{template: {{spec: {{containers: [{{name: pytorch, image: a}}]}}}}}}" for n in range(2000)
                )
                + "}}\n"
            )
        },
        "[unknown-role]",
    ),
    "copies of copies": (
        lambda: {
            "jobs/a.yaml": JOB,
            "overlays/p/o.yaml": overlay(
                [{"op": "copy", "from": "/spec", "path": f"/spec/c{number}"} for number in range(24)]
            ),
        },
        "copy more than `100000` values",
    ),
    "copies of long text": (
        lambda: {
            "jobs/a.yaml": job(f"  args: [{'x' * 1_000_000}]\n"),
            "overlays/p/o.yaml": overlay(
                [{"op": "copy", "from": "/spec", "path": f"/metadata/c{number}"} for number in range(500)]
            ),
        },
        "copy more than `100000` values",
    ),
    "a pointer of 20,000 steps": (
        lambda: {
            "jobs/a.yaml": JOB,
            "overlays/p/o.yaml": overlay([{"op": "add", "path": "/a" * 20_000, "value": 1}]),
        },
        "more than 4096 characters",
    ),
    "pointers that each go a step deeper": (
        lambda: {
            "jobs/a.yaml": JOB,
            "overlays/p/o.yaml": overlay(
                [{"op": "add", "path": f"/spec/x{'/a' * number}", "value": {}} for number in range(1000)]
            ),
        },
        "more than 100 levels deep",
    ),
    "an index of 4,000 digits": (
        lambda: {
            "jobs/a.yaml": JOB,
            "overlays/p/o.yaml": overlay([{"op": "add", "path": f"/spec/{'9' * 4000}/a", "value": 1}]),
        },
        "[json-patch-failed]",
    ),
    "a sweep of 2 MB": (
        lambda: {
            "jobs/a.yaml": job(f"  matrix: {{lr: {listed(200)}}}\n  args: ['{'x' * 2_000_000} ${{{{ matrix.lr }}}}']\n")
        },
        "the 200 members have more than 32 MiB of text together",
    ),
    "a sweep whose values are long": (
        lambda: {"jobs/a.yaml": job(f"  matrix: {{a: [{'x' * 1_000_000}]}}\n  args: ['{'${{ matrix.a }}' * 1000}']\n")},
        "the 1 members have more than 32 MiB of text together",
    ),
    "a sweep of many values": (
        lambda: {"jobs/a.yaml": job(f"  matrix: {{lr: {listed(60_000)}}}\n")},
        "the matrix has 60000 values; the limit is 20000",
    ),
    "a sweep of many inclusions": (
        lambda: {
            "jobs/a.yaml": job(f"  matrix: {{a: {listed(200)}, include: {listed(20_000, '{{a: {0}, b: 1}}')}}}\n")
        },
        "`include` has 20000 entries; the limit is 1000",
    ),
    "a sweep of the most exclusions": (
        lambda: {
            "jobs/a.yaml": job(
                f"  matrix: {{a: {listed(64)}, b: {listed(64)}, exclude: {listed(1000, '{{a: {0}, b: 0}}')}}}\n"
            )
        },
        "this leaves out nothing",
    ),
    "nesting of 195 levels": (
        lambda: {"jobs/a.yaml": job(f"  podTemplate: {'{a: ' * 195}{'}' * 195}\n")},
        "jobs/a.yaml:7:408: error: this is nested more than `100` levels deep",
    ),
    "nesting of 195 levels in JSON": (
        lambda: {"jobs/a.json": '{"kind": ' + "[" * 195 + "]" * 195 + "}"},
        "nested more than `100` levels deep",
    ),
    "JSON of 100,000 levels": (
        lambda: {"jobs/a.json": '{"a":' * 100_000 + "1" + "}" * 100_000},
        "nested more than `100` levels deep",
    ),
    "nesting of 98 levels": (
        lambda: {
            "jobs/a.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {'{a: ' * 97}{'}' * 97}\n",
            "jobs/b.yaml": job(f"  podTemplate: {'{a: ' * 95}{'}' * 95}\n"),
        },
        "`a` is a mapping, and must be a string",
    ),
    "aliases of lists": (
        lambda: {
            "jobs/a.yaml": "x0: &x0 [a, a]\n"
            + "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 12))
        },
        "[excessive-aliases]",
    ),
    "aliases of long text": (
        lambda: {"jobs/a.yaml": job(f"  args: [&x {'x' * 1_000_000}, {', '.join(['*x'] * 5000)}]\n")},
        "expand the document to more than 8388608 characters",
    ),
    "a document of 300,000 nodes": (
        lambda: {"jobs/a.yaml": job(f"  args: {listed(300_000)}\n")},
        "more than `200000` nodes",
    ),
    "a document of 300,000 lines": (
        lambda: {"jobs/a.yaml": job("  args:\n" + "  - a\n" * 300_000)},
        "more than `200000` nodes",
    ),
    "a file of 20 MB": (lambda: {"jobs/a.yaml": job(f"  args: ['{'x' * 20_000_000}']\n")}, "[file-too-large]"),
    "a line of 7 MB": (lambda: {"jobs/a.yaml": job(f"  args: ['{'x' * 7_000_000}']\n")}, "[object-too-large]"),
    "2,000 documents": (
        lambda: {"jobs/a.yaml": "---\n".join(job("", f"a{number}") for number in range(2000)) + "  imag: x\n"},
        "`imag` is not a field",
    ),
    "a misspelled name of a megabyte": (
        lambda: {"jobs/a.json": JSON_JOB.replace("imag", "x" * 1_000_000)},
        "[unknown-field]",
    ),
    "quantities with huge exponents": (
        lambda: {
            "jobs/a.yaml": manifest("resources: {limits: {cpu: 1e1000000000, memory: 1e-1000000000}}"),
            "jobs/b.yaml": job("  resources: {limits: {cpu: 1e1000000000, nvidia.com/gpu: 1e1000000000}}\n", "b"),
        },
        "",
    ),
    "integers of 100,000 digits": (
        lambda: {
            "jobs/a.yaml": job(f"  replicas: {'9' * 100_000}\n"),
            "jobs/b.yaml": manifest(f"tty: 0x{'f' * 100_000}"),
        },
        "[wrong-type]",
    ),
    "floats beyond all limits": (
        lambda: {"jobs/a.yaml": job("  replicas: 1e999999999\n"), "jobs/b.json": '{"kind": 1e999999999}'},
        "too large for a number",
    ),
    "text that doubles": (lambda: policy("variables.v39 != ''", **doubled("'0123456789'", "V + V")), TOO_EXPENSIVE),
    "lists that double": (lambda: policy("variables.v39.size() > 0", **doubled("[1, 2, 3]", "V + V")), TOO_EXPENSIVE),
    "formats of formats": (
        lambda: policy("variables.v29[0] != ''", **doubled("['0123456789']", "['%s%s'.format([V[0], V[0]])]", 30)),
        "nested more deeply",
    ),
    "sorting in loops": (lambda: policy(LOOPS.replace("BODY", f"{listed(1000)}.isSorted()")), TOO_EXPENSIVE),
    "formatting in loops": (lambda: policy(f"{DIGITS}.all(e, {LOOPS.replace('BODY', FORMATTED)})"), TOO_EXPENSIVE),
    "three loops over 300 items": (
        lambda: policy("variables.l.all(a, variables.l.all(b, variables.l.all(c, a + b + c >= 0)))", l=listed(300)),
        TOO_EXPENSIVE,
    ),
    "a rule of three loops over 5,000 items": (
        lambda: crd("self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))", listed(5000)),
        TOO_EXPENSIVE,
    ),
    "a rule of two loops over 5,000 items": (
        lambda: crd("self.l.all(a, self.l.exists_one(b, a == b))", listed(5000)),
        TOO_EXPENSIVE,
    ),
    "an expression of a megabyte": (lambda: policy(f"'{'x' * 1_000_000}' != ''"), "size exceeds codepoint limit"),
    "an expression of 2,000 parentheses": (lambda: policy("(" * 2000 + "true" + ")" * 2000), "nested more deeply"),
}


def test_loops_that_the_api_server_affords_are_evaluated(tmp_path: Path) -> None:
    """Ten thousand steps cost about a quarter of the budget of the API server for one expression."""
    result = lint(tmp_path, policy(LOOPS.replace("BODY", f"{FORMATTED} && d < 9")))

    assert TOO_EXPENSIVE not in result.out
    assert "failed expression: " in result.out


def test_rule_of_one_loop_over_many_items_is_evaluated(tmp_path: Path) -> None:
    """Estimates are of the data at hand: a loop over each of many lists is no loop over all of them."""
    result = lint(tmp_path, crd("self.l.all(a, a < 4000)", listed(5000)))

    assert "failed rule: `self.l.all(a, a < 4000)`" in result.out


@pytest.mark.parametrize("case", sample(CASES, 6))
def test_repository_is_linted_in_time(tmp_path: Path, case: str) -> None:
    files, message = CASES[case]
    result = lint(tmp_path, files())

    assert message in result.out, result.out[:2000] + result.err[:2000]


def test_many_stale_entries_of_a_baseline_are_counted(tmp_path):
    entries = [{"rule": "x", "file": str(number)} for number in range(20_000)]
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(JOB)
    (tmp_path / "known.json").write_text(json.dumps({"version": 1, "findings": entries}))

    result = run_limited(lambda: lint_paths(tmp_path, (), (), format_="text", baseline="known.json"))

    assert "19900 more entries no longer find anything; rewrite the baseline" in result.out


@pytest.mark.parametrize("patterns", [["[" * 60_000], ["**/" * 30 + f"x{number}*" for number in range(3_000)]])
def test_hostile_exclude_patterns_are_errors_of_the_settings(tmp_path, patterns):
    folder = tmp_path / "jobs" / "/".join("a" * 30)
    folder.mkdir(parents=True)
    for number in range(20):
        (folder / f"{number}.yaml").write_text(JOB)
    (tmp_path / "jobgen.yaml").write_text(json.dumps({"exclude": patterns}))

    result = run_limited(lambda: lint_paths(tmp_path, (), (), format_="text"))

    assert result.code == 1
    first = result.out.partition("\n")[0]
    assert first.startswith("jobgen.yaml:1:")
    assert "and must" in first
