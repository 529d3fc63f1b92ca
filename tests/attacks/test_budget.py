"""A run has one budget: work on user data takes steps and bytes, and a file that takes too many ends in one finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from limitedrun import run_limited
from linting import lint_paths
from sampling import leave
from transcripts import write_files

from jobgen.cli.result import Result
from jobgen.features.launch.shell.patterns import parse_pattern
from jobgen.model import budget
from jobgen.model.budget import (
    FREE_FILE_STEPS,
    MAX_FILE_BYTES,
    MAX_FILE_STEPS,
    MAX_RUN_STEPS,
    RUN,
    FileBudget,
    OverBudgetError,
    Work,
    charge,
)
from jobgen.repo.walk import parse_patterns

Files = dict[str, str]
KUSTOMIZATION = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
SECONDS = 40
"""CPU time, far more than any case takes: the assertions are about steps."""
SHARE = 8
"""Which part of the budget a case has."""


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "b"}, "data": data}


def join(documents: list[dict[str, Any]]) -> str:
    return "\n---\n".join(map(json.dumps, documents))


def build(objects: list[dict[str, Any]], **fields: Any) -> Files:
    return {
        "kustomization.yaml": json.dumps({**KUSTOMIZATION, "resources": ["c.yaml"], **fields}),
        "c.yaml": join(objects),
    }


def replacement(path: str, *targets: str, **options: Any) -> dict[str, Any]:
    source = {"kind": "ConfigMap", "name": "c", "fieldPath": path}
    target = {"select": {"kind": "ConfigMap"}, "fieldPaths": list(targets), "options": options}
    return {"source": source, "targets": [target]}


def doubled(number: int) -> dict[str, Any]:
    return replacement("data", f"data.x{number}", create=True)


def added(number: int) -> dict[str, Any]:
    return {"patch": json.dumps(config_map("c", **{f"k{number}": ""}))}


def diamonds(levels: int) -> Files:
    files = {"k0a/c.yaml": json.dumps(config_map("a")), "k0b/c.yaml": json.dumps(config_map("b"))}
    files |= {f"k0{side}/kustomization.yaml": json.dumps({**KUSTOMIZATION, "resources": ["c.yaml"]}) for side in "ab"}
    for level in range(1, levels + 1):
        below = [f"../k{level - 1}a", f"../k{level - 1}b"]
        for side in "ab":
            fields = {**KUSTOMIZATION, "resources": below, "namePrefix": f"{side}{level}-"}
            files[f"k{level}{side}/kustomization.yaml"] = json.dumps(fields)
    return files


def workflow(parameter: str, templates: int) -> Files:
    container = {"name": "main", "image": "example.com/a:1"}
    listed = [
        {"name": f"m{number}", "podSpecPatch": "{{workflow.parameters.p}}", "container": container}
        for number in range(templates)
    ]
    spec = {"entrypoint": "m0", "arguments": {"parameters": [{"name": "p", "value": parameter}]}, "templates": listed}
    made = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "a", "namespace": "b"}}
    team = "apiVersion: jobgen.dev/v1\nkind: Team\nmetadata: {name: t}\nspec: {folders: [jobs/t], budget: {gpus: 16}}\n"
    return {"jobgen.yaml": "", "teams/t.yaml": team, "jobs/t/a.yaml": json.dumps({**made, "spec": spec})}


def job(name: str = "a", **spec: Any) -> str:
    own = {"framework": "pytorch", "image": "registry.example.com/a:1.0.0", **spec}
    metadata = {"name": name, "namespace": "b"}
    return json.dumps({"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": metadata, "spec": own})


def run_script(script: str) -> Files:
    command = ["bash", "-c", f"X={'a' * 1000}\n{script}\ntorchrun a.py"]
    return {"jobgen.yaml": "", "jobs/a.yaml": job(replicas=2, command=command, resources={"gpu": 8})}


def overlay(**spec: Any) -> str:
    return json.dumps({"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": spec})


def overlays(count: int, jobs: int, **spec: Any) -> Files:
    files = {f"overlays/o{number}/o.yaml": overlay(**spec) for number in range(count)}
    return {"jobgen.yaml": "", **files, **{f"jobs/j{number}.yaml": job(f"j{number}") for number in range(jobs)}}


def flux(value: str, expression: str) -> Files:
    """A Kustomization of Flux that fills in a variable 300 times."""
    source = {"kind": "GitRepository", "name": "a"}
    build = {"substitute": {"A": value}}
    spec = {"interval": "1m", "prune": True, "path": "./apps", "sourceRef": source, "postBuild": build}
    version = "kustomize.toolkit.fluxcd.io/v1"
    made = {"apiVersion": version, "kind": "Kustomization", "metadata": {"name": "a", "namespace": "b"}, "spec": spec}
    texts = {f"k{number}": f"${{A{expression}}}" for number in range(300)}
    return {"clusters/k.yaml": json.dumps(made), "apps/a.yaml": json.dumps(config_map("a", **texts))}


def lint(root: Path, files: Files) -> Result:
    write_files(root, {path: text.encode() for path, text in files.items()})
    result: Result = run_limited(lambda: lint_paths(root, (), (), format_="concise"), seconds=SECONDS)
    assert "internal" not in result.out + result.err
    return result


def refer(value: str) -> dict[str, Any]:
    """The part of a Job with a container whose argument has variables."""
    return {"template": {"spec": {"containers": [{"name": "a", "image": "a:1", "args": [value]}]}}}


def in_namespace(namespace: str) -> list[dict[str, Any]]:
    """A ConfigMap with a name that every namespace has, and a pod that refers to it."""
    spec = {"containers": [{"name": "a", "image": "a:1"}], "volumes": [{"name": "c", "configMap": {"name": "c"}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": spec}
    return [{**config_map("c"), "metadata": {"name": "c", "namespace": namespace}}, pod]


CRON = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a", "namespace": "b"}}
NAMES = [f"{'a' * 55}{number}" for number in range(1000)]
MANY = [config_map(f"c{number}") for number in range(600)]
PARTS = json.dumps({"containers": [{"name": f"c{number}", "image": "a"} for number in range(8000)]})
ITEMS = {"op": "add", "path": "/spec/x", "value": []}
ITEM = {"op": "add", "path": "/spec/x/0", "value": 1}
LABEL = {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}
# Each case: the files of a repository, the file of the finding, and what took the most.
OVER: dict[str, tuple[Files, str, Work]] = {
    "a parameter with 8,000 containers in 500 templates": (workflow(PARTS, 500), "jobs/t/a.yaml", Work.WORKFLOW),
    "replacements that double an object": (
        build([config_map("c", a="b")], replacements=[doubled(n) for n in range(22)]),
        "kustomization.yaml",
        Work.BUILD,
    ),
    "replacements that double a text": (
        build(
            [config_map("c", a="b" * 10, b="c")],
            replacements=[
                replacement(f"data.{one}", f"data.{other}", delimiter="/", index=-1)
                for _ in range(30)
                for one, other in ("ab", "ba")
            ],
        ),
        "kustomization.yaml",
        Work.BUILD,
    ),
    "1,000 replacements in 600 objects": (
        build(
            [config_map("c", a="b"), *MANY],
            replacements=[replacement("data.a", "data.a", "data.b", "data.c", create=True)] * 1000,
        ),
        "kustomization.yaml",
        Work.BUILD,
    ),
    "3,000 patches of one object": (
        build([config_map("c")], patches=[added(n) for n in range(3000)]),
        "kustomization.yaml",
        Work.BUILD,
    ),
    "400 generators of a large file": (
        {
            "kustomization.yaml": json.dumps(
                {**KUSTOMIZATION, "configMapGenerator": [{"name": f"g{n}", "files": ["big"]} for n in range(400)]}
            ),
            "big": ("x" * 99 + "\n") * 10_000,
        },
        "kustomization.yaml",
        Work.BUILD,
    ),
    "patches with a pattern for 1,000 objects each": (
        build(
            list(map(config_map, NAMES)),
            patches=[
                {"target": {"name": f"(a+)+(a+)+b{n}$"}, "patch": "- {op: add, path: /data/x, value: y}"}
                for n in range(300)
            ],
        ),
        "kustomization.yaml",
        Work.BUILD,
    ),
    "a prefix of a megabyte for 600 objects": (
        build(MANY, namePrefix="a" * 1_000_000),
        "kustomization.yaml",
        Work.BUILD,
    ),
    "2,000 labels for 600 objects": (
        build(MANY, labels=[{"pairs": {f"a{n}": "b"}} for n in range(2000)]),
        "kustomization.yaml",
        Work.BUILD,
    ),
    "2,000 images that no object has": (
        build(MANY, images=[{"name": f"a{n}", "newTag": "1"} for n in range(2000)]),
        "kustomization.yaml",
        Work.BUILD,
    ),
    "a text in 100,000 places of a variable": (
        build(
            [config_map("c", a="b" * 1_000_000), {**CRON, "spec": {"jobTemplate": {"spec": refer("$(A)" * 100_000)}}}],
            vars=[
                {
                    "name": "A",
                    "objref": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"},
                    "fieldref": {"fieldpath": "data.a"},
                }
            ],
        ),
        "kustomization.yaml",
        Work.BUILD,
    ),
    "references to one name in 500 namespaces": (
        build([each for n in range(500) for each in in_namespace(f"n{n}")], namePrefix="a-"),
        "kustomization.yaml",
        Work.BUILD,
    ),
    "40,000 documents": ({"jobgen.yaml": "", "jobs/a.yaml": "---\na: b\n" * 40_000}, "jobs/a.yaml", Work.DOCUMENTS),
    "a list of 60,000 items": (
        {"jobgen.yaml": "", "jobs/a.yaml": json.dumps({"apiVersion": "v1", "kind": "List", "items": [{}] * 60_000})},
        "jobs/a.yaml",
        Work.DOCUMENTS,
    ),
    "wildcards of a team's file in nested lists": (
        {
            "jobgen.yaml": "",
            "teams/t.yaml": "apiVersion: jobgen.dev/v1\nkind: Team\nmetadata: {name: t}\nspec: {folders: [jobs/t], "
            "kinds: [Fleet.example.com], budget: {gpus: 16}, "
            "pods: {Fleet.example.com: [{at: 'spec.*.*.*.*', optional: true, count: [.a, spec.n]}]}}\n",
            "jobs/t/a.json": json.dumps(
                {
                    "apiVersion": "example.com/v1",
                    "kind": "Fleet",
                    "metadata": {"name": "a"},
                    "spec": [[[[{"a": 1}] * 10] * 10] * 10] * 15,
                }
            ),
        },
        "jobs/t/a.json",
        Work.PODS,
    ),
    "diamonds of 20 levels": (diamonds(20), "k20a/kustomization.yaml", Work.BUILD),
    "patterns that remove a part of a variable": (
        flux("a" * 1990, f"##{'*a' * 15}b"),
        "clusters/k.yaml",
        Work.BUILD,
    ),
    "texts in a variable that become long": (flux("a" * 1000, f"//a/{'b' * 900}"), "clusters/k.yaml", Work.BUILD),
    "1,000 JSON patches of a large object": (
        overlays(1, 0, patches=[{"jsonPatch": [LABEL]}] * 1000)
        | {"jobs/a.yaml": job(args=[f"--a{n}" for n in range(20_000)])},
        "jobs/a.yaml",
        Work.PATCHES,
    ),
}


@pytest.mark.parametrize("case", OVER)
def test_a_file_over_its_budget_is_one_finding_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    # The work that the full budget allows takes one to four seconds.
    monkeypatch.setattr(budget, "MAX_FILE_STEPS", MAX_FILE_STEPS // SHARE)
    monkeypatch.setattr(budget, "MAX_FILE_BYTES", MAX_FILE_BYTES // SHARE)
    files, file, work = OVER[case]
    is_repository = "jobgen.yaml" in files
    beside = "jobs/other.yaml" if is_repository else "other.yaml"
    wrong = json.dumps({**config_map("other"), "dat": {}})
    result = lint(tmp_path, {**files, beside: wrong})
    lines = [line for line in result.out.splitlines() if "[too-many-steps]" in line and line.startswith(f"{file}:")]

    assert len(lines) == 1
    assert f"the {work} needed more than" in lines[0]
    assert "steps of a run" not in lines[0]
    assert f"{beside}:1:" in result.out
    assert result.code == 4


def name_rule(number: int) -> str:
    return f"rule-{number}"


def repeat_stars(count: int, end: object) -> str:
    return f"{'*a' * count}b{end}"


SLIP = "kind: A\nspec:\n  env:\n" + "".join(f"    A{number}: b\n" for number in range(2000)) + "  args: [a\n"
# Each case: the files of a repository, and what a finding says; empty for none.
WITHIN: dict[str, tuple[Files, str]] = {
    "a pattern with stars for one end of a text": (run_script("Y=${X##*a*a*b}\n" * 100), ""),
    "such patterns of a case": (run_script("case $X in *a*a*b) exit;; esac\n" * 100), ""),
    "such patterns that are replaced": (run_script("Y=${X//*a*a*b/}\n" * 100), ""),
    "such patterns for the other end": (run_script("Y=${X%%b*a*a*}\n" * 100), ""),
    "variables that hold others three times": (
        {
            "jobgen.yaml": "",
            "jobs/a.yaml": job(
                command=["torchrun", "$(A19)", "a.py"],
                env={"A0": "a" * 10, **{f"A{n}": f"$(A{n - 1})" * 3 for n in range(1, 20)}},
            ),
        },
        "",
    ),
    "a parameter that contains itself": (workflow('{"a": "' + "{{workflow.parameters.p}}" * 40 + '"}', 1), ""),
    "excluded folders with many stars": (
        {
            "jobgen.yaml": json.dumps({"exclude": [f"{'**/a/' * 30}b{n}" for n in range(100)]}),
            **{f"jobs/{'a/' * 60}x{n}.yaml": job(f"x{n}") for n in range(30)},
        },
        "exclude-matches-nothing",
    ),
    "a comment that names 50,000 rules": (
        {
            "jobgen.yaml": "",
            "jobs/a.yaml": f"# jobgen: ignore[{','.join(map(name_rule, range(50_000)))}] -- x\n{job()}",
        },
        "names more than `50` rules",
    ),
    "patterns of patches that are close to many names": (
        {
            "jobgen.yaml": "",
            "overlays/p/o.yaml": json.dumps(
                {
                    "apiVersion": "jobgen.dev/v1",
                    "kind": "Overlay",
                    "spec": {
                        "patches": [
                            {"match": {"names": [repeat_stars(50, n)]}, "merge": {"image": "a:1"}} for n in range(500)
                        ]
                    },
                }
            ),
            **{f"jobs/j{n}.yaml": job("a" * 50 + str(n)) for n in range(100)},
        },
        "patch-matches-nothing",
    ),
    "commands that are nested, repeated and long": (
        {
            "jobgen.yaml": "",
            "jobs/a.yaml": job("a", command=["bash", "-c", "$(" * 500 + "torchrun a.py" + ")" * 500]),
            "jobs/b.yaml": job("b", command=["bash", "-c", "if true; then " * 2000 + "a" + "; fi" * 2000]),
            "jobs/c.yaml": job("c", command=["bash", "-c", "cat <<A\n" * 3000 + "torchrun a.py"]),
            "jobs/d.yaml": job("d", command=["bash", "-c", "torchrun a.py\n" * 20_000]),
        },
        "",
    ),
    "a schema whose references double": (
        {
            "jobgen.yaml": "",
            "schemas/example.com/case_v1.json": json.dumps(
                {
                    "type": "object",
                    "properties": {"spec": {"$ref": "#/$defs/d0"}},
                    "$defs": {
                        **{
                            f"d{n}": {"properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "ab"}} for n in range(40)
                        },
                        "d40": {"type": "object"},
                    },
                }
            ),
            "jobs/a.yaml": json.dumps(
                {"apiVersion": "example.com/v1", "kind": "Case", "metadata": {"name": "a"}, "spec": {"a": {"b": {}}}}
            ),
        },
        "",
    ),
    "quantities of 100,000 digits": (
        {
            "jobgen.yaml": "",
            "jobs/a.yaml": job(resources={"cpu": "9" * 100_000, "memory": "1e999999999", "gpu": 10**22}),
        },
        "invalid-quantity",
    ),
    "lines of megabytes, and deep nesting": (
        {
            "jobgen.yaml": "",
            "jobs/a.yaml": job(args=["x " * 1_000_000]),
            "jobs/b.yaml": "- " * 1_000_000,
            "jobs/c.yaml": f"a: {'[' * 200_000}{']' * 200_000}",
            "jobs/d.yaml": '{"a":' * 100_000 + "1" + "}" * 100_000,
        },
        "nesting-too-deep",
    ),
    "a matrix of a million jobs": (
        {"jobgen.yaml": "", "jobs/a.yaml": job(matrix={name: list(range(100)) for name in "abc"})},
        "the matrix makes 1000000 jobs",
    ),
    "a schedule of 20,000 parts": (
        {
            "jobgen.yaml": "",
            "jobs/a.yaml": json.dumps(
                {
                    "apiVersion": "batch/v1",
                    "kind": "CronJob",
                    "metadata": {"name": "a", "namespace": "b"},
                    "spec": {"schedule": "0-59/1," * 20_000 + "1 * * * *", "jobTemplate": {"spec": {}}},
                }
            ),
        },
        "",
    ),
    "two billion pods of frameworks that name all hosts": (
        {
            "jobgen.yaml": "",
            **{
                f"jobs/{name}.yaml": job(name, framework=name, platform="jobset", replicas=2_000_000_000)
                for name in ("tensorflow", "pytorch", "jax")
            },
        },
        "",
    ),
    "a document of JSON with 210,000 nodes": (
        {"jobgen.yaml": "", "jobs/a.json": json.dumps({**config_map("c"), "spec": [[]] * 210_000})},
        "more than `200000` nodes",
    ),
    "a document of JSON with 210,000 nodes and a fault": (
        {"jobgen.yaml": "", "jobs/a.json": '{"a": 1e999, "b": [' + "{}," * 210_000 + "{}]}"},
        "more than `200000` nodes",
    ),
    "5,000 values that are inserted in a list": (
        overlays(1, 1, patches=[{"jsonPatch": [ITEMS, *[ITEM] * 5_000]}]),
        "",
    ),
    # The time grows with the square.
    "20,000 values that are inserted in a list": (
        overlays(1, 1, patches=[{"jsonPatch": [ITEMS, *[ITEM] * 20_000]}]),
        "",
    ),
    "3,000 operations for 50 jobs": (
        overlays(
            1, 50, patches=[{"jsonPatch": [LABEL, *[LABEL | {"path": "/metadata/labels/a", "value": "b"}] * 3000]}]
        ),
        "",
    ),
    "an overlay of JSON with 400,000 nodes": (
        overlays(1, 1, patches=[{"merge": {"env": {f"A{n}": "b" for n in range(1000)}}}] * 200),
        "overlays/o0/o.yaml:1:1: error: the document has more than `200000` nodes",
    ),
    "60,000 arguments": ({"jobgen.yaml": "", "jobs/a.yaml": job(args=[f"--a{n}" for n in range(60_000)])}, ""),
    "a slip at the end of long files": (
        {
            "jobgen.yaml": "",
            **{
                f"jobs/{n}.yaml": "kind: A\nspec:\n  env:\n"
                + "".join(f"    A{k}: b\n" for k in range(2000))
                + "  args: [a\n"
                for n in range(6)
            },
        },
        "has a `[` that is not closed",
    ),
}


@pytest.mark.parametrize("case", leave(WITHIN, "20,000 values that are inserted in a list".__eq__))
def test_what_is_bounded_by_itself_needs_no_budget(tmp_path: Path, case: str) -> None:
    files, expected = WITHIN[case]
    result = lint(tmp_path, files)

    assert expected in result.out
    assert "too-many-steps" not in result.out
    assert result.err


def test_locks_of_many_environments_are_limited_for_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MAX_RUN_STEPS", MAX_RUN_STEPS // SHARE)
    result = lint(tmp_path, overlays(40, 5, locked=[f"env.A{number}" for number in range(600)]))
    named = {line.partition(":")[0] for line in result.out.splitlines() if f"the {Work.LOCKS} needed more" in line}

    assert named
    assert named <= {f"jobs/j{number}.yaml" for number in range(5)}
    assert result.code == 4


def test_every_limit_ends_the_work_on_a_file() -> None:
    for steps, size in ((MAX_FILE_STEPS + 1, 0), (0, MAX_FILE_BYTES + 1)):
        with pytest.raises(OverBudgetError, match=r"the matrix needed more than .*; split the file, or simplify it"):
            FileBudget().charge(Work.SWEEP, steps, size)


def test_the_excesses_of_all_files_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MAX_RUN_STEPS", 10 * FREE_FILE_STEPS)
    RUN.reset()
    try:
        for number in range(5):
            RUN.open(f"{number}.yaml")
            charge(Work.PATCHES, 2 * FREE_FILE_STEPS)
            assert [(each.steps, each.costliest) for each in RUN.file.take_excesses()] == [
                (2 * FREE_FILE_STEPS, Work.PATCHES)
            ]
        RUN.open("last.yaml")
        charge(Work.PATCHES, FREE_FILE_STEPS)
        with pytest.raises(OverBudgetError, match="steps of a run"):
            charge(Work.PATCHES, 1)
        assert not RUN.file.take_excesses()[0].is_whole
    finally:
        RUN.reset()


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("*a*a*b", "xaxab", True),
        ("*a*a*b", "a" * 1000, False),
        ("a?c", "abc", True),
        ("[!a-c]*", "dx", True),
        ("[!a-c]*", "bx", False),
        ("ab", "abc", False),
        ("a*", "a", True),
        ("a*a", "a", False),
        (r"\*", "*", True),
    ],
)
def test_patterns_of_a_shell_match_whole_texts(pattern: str, text: str, expected: bool) -> None:
    parsed = parse_pattern(pattern)
    assert parsed is not None
    assert parsed.matches(text) is expected


def test_excluded_folders_are_matched_as_their_files(tmp_path: Path) -> None:
    (pattern,) = parse_patterns(["jobs/**/old"])
    assert [pattern.matches(path) for path in ("jobs/old", "jobs/a/b/old/c.yaml", "jobs/a/older", "old")] == [
        True,
        True,
        False,
        False,
    ]
