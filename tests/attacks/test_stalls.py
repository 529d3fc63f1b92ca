"""Nothing stalls and nothing swells: time grows with the size of a repository, and sums of small steps are limited."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import run_jobgen_text
from gitrepository import Repository
from growth import grows_with_the_square
from helm_charts import HELM, needs_helm
from limitedrun import run_limited
from linting import lint_paths
from sampling import leave, sample

from jobgen.check import cel
from jobgen.check.cel import steps
from jobgen.check.idle_services import find_idle_services
from jobgen.cli.result import Result
from jobgen.engine import workers
from jobgen.features.helm import run_helm
from jobgen.model import budget
from jobgen.model.limits import MAX_DEPTH, MAX_OBJECT_STEPS, MAX_PARAMS
from jobgen.yamlio.read import json_text, read

Files = dict[str, str]
HEAD = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\n"


def job(name: str, more: str = "") -> str:
    spec = f"{{framework: pytorch, image: 'example.com/a:1'{more}}}"
    return f"{HEAD}metadata: {{name: {name}, namespace: b}}\nspec: {spec}\n"


def overlay(**spec: Any) -> str:
    return f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {json.dumps(spec)}\n"


def config_map(number: int) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}, namespace: b}}\ndata: {{a: b}}\n"


def chain(count: int, last: str = "{}") -> Files:
    """Overlays that each extend the next one."""
    files = {f"overlays/o{number}/o.yaml": overlay(extends=[f"o{number + 1}"]) for number in range(count)}
    return files | {f"overlays/o{count}/o.yaml": overlay(**json.loads(last)), "jobs/a.yaml": job("a")}


def patches(count: int) -> Files:
    listed = [{"match": {"names": [f"x{number}"]}, "merge": {"image": "x"}} for number in range(count)]
    return {"jobs/a.yaml": job("a"), "overlays/p/o.yaml": overlay(patches=listed)}


def cluster_queues(count: int) -> Files:
    start = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: "
    made = [f"{start}ResourceFlavor\nmetadata: {{name: f}}\n"]
    for number in range(count):
        flavor = "{name: f, resources: [{name: cpu, nominalQuota: 1}]}"
        groups = f"[{{coveredResources: [cpu], flavors: [{flavor}]}}]"
        spec = f"{{cohort: c, namespaceSelector: {{}}, resourceGroups: {groups}}}"
        made += [f"{start}ClusterQueue\nmetadata: {{name: q{number}}}\nspec: {spec}\n"]
        name = f"{{name: l{number}, namespace: b}}"
        made += [f"{start}LocalQueue\nmetadata: {name}\nspec: {{clusterQueue: q{number}}}\n"]
    return {"jobs/q.yaml": "---\n".join(made), "jobs/a.yaml": job("a", ", queue: l0")}


def in_list(count: int) -> Files:
    items = [json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n}"}}) for n in range(count)]
    return {"jobs/l.yaml": "apiVersion: v1\nkind: List\nitems:\n" + "".join(f"- {item}\n" for item in items)}


def policy(validations: list[str], params: int = 0, failure: str = "Fail") -> Files:
    """A job, a policy with some validations, and its params."""
    group = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["kubeflow.org"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    spec: dict[str, Any] = {
        "failurePolicy": failure,
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": text} for text in validations],
    }
    bound: dict[str, Any] = {"policyName": "costly", "validationActions": ["Deny"]}
    if params:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
        bound["paramRef"] = {"selector": {}, "namespace": "b", "parameterNotFoundAction": "Allow"}
    documents = [
        {"apiVersion": group, "kind": f"ValidatingAdmissionPolicy{more}", "metadata": {"name": "costly"}, "spec": each}
        for more, each in (("", spec), ("Binding", bound))
    ]
    return {
        "jobs/a.yaml": job("a"),
        "policies/p.yaml": "\n---\n".join(map(json.dumps, documents)),
        "policies/params/p.yaml": "---\n".join(map(config_map, range(params))) or "# none\n",
    }


def teams(count: int) -> Files:
    """Teams that each have a folder and patterns of namespaces."""
    spec = {"queues": ["*"], "serviceAccounts": ["*a*"]}
    specs = [{**spec, "folders": [f"jobs/t{n}"], "namespaces": [f"n{n}", "b*"]} for n in range(count)]
    head = {"apiVersion": "jobgen.dev/v1", "kind": "Team"}
    return {
        f"teams/t{n}.yaml": json.dumps({**head, "metadata": {"name": f"t{n}"}, "spec": each})
        for n, each in enumerate(specs)
    }


def crd(schema: dict[str, Any], value: Any) -> Files:
    whole = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"l": schema}}}}
    case = {"apiVersion": "example.com/v1", "kind": "Case", "metadata": {"name": "a"}, "spec": {"l": value}}
    return {"schemas/example.com/case_v1.json": json.dumps(whole), "jobs/a.yaml": json.dumps(case)}


def write(root: Path, files: Files) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def lint(root: Path, files: Files, **limits: int) -> Result:
    write(root, files)
    result: Result = run_limited(lambda: lint_paths(root, (), (), format_="text"), **limits)
    assert "internal" not in result.out + result.err
    return result


def pod_of(containers: list[dict[str, Any]], **spec: Any) -> Files:
    template = {"spec": {"restartPolicy": "Never", "containers": containers, **spec}}
    data = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "b"}}
    return {"jobs/a.yaml": json.dumps({**data, "spec": {"parallelism": 2, "template": template}})}


def folders(count: int) -> Files:
    """Return a pod of many containers, of which each names paths and mounts volumes of its own."""
    containers = [
        {
            "name": f"c{number}",
            "image": "a:1",
            "command": ["x", *(f"/q{number}/{path}" for path in range(10))],
            "volumeMounts": [{"name": f"v{number}", "mountPath": f"/d{number}"}],
        }
        for number in range(count)
    ]
    return pod_of(containers, volumes=[{"name": f"v{number}", "emptyDir": {}} for number in range(count)])


def terms(count: int) -> Files:
    """Return a pod that has to be with and without many groups of pods."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {
        name: {required: [{"topologyKey": f"{name}{number}", "labelSelector": {}} for number in range(count)]}
        for name in ("podAffinity", "podAntiAffinity")
    }
    return pod_of([{"name": "a", "image": "a:1"}], affinity=affinity)


# Each case: the files for a size, and the size. A lint of four times as much makes at most six times the calls.
GROWING: dict[str, tuple[Callable[[int], Files], int]] = {
    "patches that match nothing": (patches, 15),
    "separators": (lambda count: {"jobs/a.yaml": job("a") + "---\n" * count}, 8_000),
    "comments between separators": (lambda count: {"jobs/a.yaml": job("a") + "---\n# a\n" * count}, 2_000),
    "queues": (cluster_queues, 15),
    "ConfigMaps in a file": (lambda count: {"jobs/c.yaml": "---\n".join(map(config_map, range(count)))}, 100),
    "a List": (in_list, 100),
    "jobs in a file": (lambda count: {"jobs/a.yaml": "---\n".join(job(f"a{n}") for n in range(count))}, 25),
    "empty files": (lambda count: {f"jobs/{number}.yaml": "" for number in range(count)}, 60),
    "teams": (lambda count: teams(count) | {f"jobs/t{n}/a.yaml": job(f"a{n}") for n in range(20)}, 15),
    "environments": (
        lambda count: {"jobs/a.yaml": job("a")} | {f"overlays/o{n}/o.yaml": overlay() for n in range(count)},
        10,
    ),
    "folders of containers": (folders, 60),
    "terms of an affinity": (terms, 200),
    # What is compiled for one size must not be known for the other.
    "validations": (lambda count: policy([f"object.metadata.name != 'x{count}-{n}'" for n in range(count)]), 15),
    "overlays in a cycle": (lambda count: chain(count, '{"extends": ["o0"]}'), 40),
}


@pytest.mark.parametrize("case", leave(GROWING, "overlays in a cycle".__eq__))
def test_time_grows_with_the_size(tmp_path: Path, case: str) -> None:
    make, size = GROWING[case]

    def prepare(count: int) -> Callable[[], object]:
        root = write(tmp_path / str(count), make(count))
        return lambda: lint_paths(root, (), (), format_="concise")

    assert not grows_with_the_square(prepare, size)


def test_requirements_of_one_label_have_a_budget(tmp_path: Path) -> None:
    expressions = [{"key": "a", "operator": "NotIn", "values": [f"v{number}"]} for number in range(2_000)]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}

    result = lint(tmp_path, pod_of([{"name": "a", "image": "a:1"}], affinity=affinity))

    assert "the requirements of nodes needed more than" in result.out


def test_extends_of_500_overlays_is_a_finding(tmp_path: Path) -> None:
    result = lint(tmp_path, chain(500), seconds=30)

    assert f"`extends` leads to more than {MAX_DEPTH} overlays below each other" in result.out
    assert result.code == 1


def test_extends_of_99_overlays_is_followed(tmp_path: Path) -> None:
    result = lint(tmp_path, chain(MAX_DEPTH - 1, '{"namespace": "far"}'))

    assert "nesting-too-deep" not in result.out
    assert result.code == 0


def test_revision_with_an_environment_without_overlay_is_an_error(tmp_path: Path) -> None:
    files = {"jobs/a.yaml": job("a"), "overlays/prod/o.yaml": overlay(), "jobgen.yaml": "environments: [prod, gone]\n"}
    repository = Repository(write(tmp_path / "repository", files), tmp_path)
    repository.run("git", "add", ".")
    repository.run("git", "commit", "--message=a")
    write(repository.folder, {"jobgen.yaml": "environments: [prod]\n"})
    compared = run_jobgen_text(repository.folder, "diff", "HEAD")
    rendered = run_jobgen_text(repository.folder, "render", "--since", "HEAD")

    assert (compared.returncode, rendered.returncode) == (1, 0)
    assert "there is no overlay `gone`; there is `prod` [unknown-overlay]" in compared.stderr
    assert "HEAD has 1 error; the objects that it cannot render count as changed" in rendered.stderr


DIGITS = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
REPEATED = "[0].map(x, object)" + ".map(x, [x, x, x, x, x, x, x, x])" * 7
LOOPS = f"{DIGITS}.all(a, {DIGITS}.all(b, {DIGITS}.all(c, LAST.all(d, '%s %s'.format([a, b]) != 'BODY'))))"


@pytest.mark.parametrize(("last", "failure"), [(DIGITS, "Fail"), ("[0, 1, 2, 3, 4, 5, 6, 7]", "Ignore")])
def test_validations_of_an_object_have_a_budget_together(tmp_path: Path, last: str, failure: str) -> None:
    """Each is below the limits of one expression; with eight items, the engine evaluates them in one go."""
    texts = [LOOPS.replace("LAST", last).replace("BODY", str(number)) for number in range(80)]
    result = lint(tmp_path, policy(texts, failure=failure), seconds=30)

    assert f"more than {MAX_OBJECT_STEPS} steps together" in result.out
    assert "simplify the policy `costly`, which took the most" in result.out
    assert result.code == 1


def test_rules_of_an_object_have_a_budget_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_OBJECT_STEPS", MAX_OBJECT_STEPS // 5)
    rules = [{"rule": f"self.all(a, self.exists(b, b + {number} > 0) || a > {number})"} for number in range(40)]
    schema = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rules}
    result = lint(tmp_path, crd(schema, list(range(5000))), seconds=40)

    assert "simplify the rule `self.all(a, " in result.out
    assert result.code == 1


def test_params_of_a_binding_are_limited(tmp_path: Path) -> None:
    many = lint(tmp_path / "many", policy(["params.data.a != ''"], 3000, failure="Ignore"))
    few = lint(tmp_path / "few", policy(["params.data.a != 'b'"], MAX_PARAMS))

    assert f"selects `3000` objects of the kind ConfigMap as params; select at most {MAX_PARAMS}" in many.out
    assert many.code == 1
    assert "failed expression: params.data.a != 'b'" in few.out


@pytest.mark.parametrize("word", sample(["oneOf", "anyOf", "allOf"], 2))
def test_alternatives_of_a_long_text_take_little_memory(tmp_path: Path, word: str) -> None:
    few, many = ("[too-many-errors]",) * 2 if word == "allOf" else ("[invalid-form]", "[broken-schema]")
    for count, expected in ((700, few), (10_000, many)):
        schema = {"type": "string", word: [{"pattern": f"^x{number}$"} for number in range(count)]}
        result = lint(tmp_path / str(count), crd(schema, "y" * 100_000))

        assert expected in result.out
        assert result.code


def test_objects_of_a_run_have_a_budget_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is reported depends neither on the number of processes nor on the results that are kept."""
    costly = policy([f"{DIGITS}.all(a, {DIGITS}.all(b, '%s'.format([a]) != '{number}x'))" for number in range(9)])
    files = costly | {f"jobs/{number}.yaml": job(f"j{number}") for number in range(80)}
    write(tmp_path, files)
    monkeypatch.setattr(steps, "FREE_STEPS", 3000)
    texts = []
    for cores, limit in ((1, 30_000), (3, 30_000), (3, 30_000), (3, 10_000_000)):
        monkeypatch.setattr(budget, "MAX_RUN_STEPS", limit)
        monkeypatch.setattr(workers, "_count_cores", lambda cores=cores: cores)
        result = lint_paths(tmp_path, (), (), format_="concise")
        texts.append(result.out)
        assert result.code == (0 if limit > 30_000 else 4)
    assert texts[0] == texts[1] == texts[2]
    assert texts[0].count("[too-many-steps]") == 81
    assert "simplify the policy `costly`, which took the most [too-many-steps]" in texts[0]
    assert texts[3] == ""


@pytest.mark.parametrize("is_variable", [False, True])
def test_loops_that_the_engine_evaluates_count(
    tmp_path: Path, is_variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in Python counts their steps: 8,000 in each, of forty comparisons."""
    monkeypatch.setattr(steps, "MAX_OBJECT_STEPS", MAX_OBJECT_STEPS // 20)
    body = " && ".join(f"{name} < 100" for name in "abcd" * 10)
    texts = [LOOPS.partition("LAST")[0] + f"[0, 1, 2, 3, 4, 5, 6, {n}].all(d, {body}))))" for n in range(15)]
    files = policy([f"variables.v{number}" for number in range(15)] if is_variable else texts)
    first, last = (json.loads(text) for text in files["policies/p.yaml"].split("\n---\n"))
    first["spec"]["variables"] = [{"name": f"v{number}", "expression": text} for number, text in enumerate(texts)]
    files["policies/p.yaml"] = f"{json.dumps(first)}\n---\n{json.dumps(last)}"
    result = lint(tmp_path, files, seconds=30)

    assert "simplify the policy `costly`, which took the most" in result.out
    assert result.code == 1


@pytest.mark.parametrize("text", [f"{REPEATED} == [[]]", f"{REPEATED}.size() > 1", f"type({REPEATED}) == list"])
@pytest.mark.parametrize("is_interpreted", [False, True])
def test_values_that_repeat_the_data_are_not_walked(text: str, is_interpreted: bool) -> None:
    """A list of lists with the same items takes little memory and has millions of values."""
    expression = cel.compile_cel(text, ("object",))
    assert isinstance(expression, cel.Expression)
    bound = cel.Bound({"object": {"a": list(range(30))}})
    result = expression._interpret(bound, cel.MAX_CALL_COST) if is_interpreted else expression(bound)

    assert "costs more than the API server allows" in result.message


def test_values_that_repeat_the_data_a_few_times_are_compared() -> None:
    expression = cel.compile_cel(
        "[0].map(x, object).map(x, [x, x]).map(x, [x, x]) == [[[object, object]]]", ("object",)
    )
    assert isinstance(expression, cel.Expression)

    assert expression({"object": {"a": 1}}) is False
    assert not expression.is_interpreted


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"kind": "a", "data": {%s}}' % ", ".join(['"a": "1"'] * 200_000), "too-many-errors"),  # noqa: UP031
        ('{"a":' * 150_000 + "1" + "}" * 150_000, "too-many-nodes"),
    ],
)
def test_json_with_too_many_faults_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, text: str, rule: str
) -> None:
    tokens = []
    read_token = json_text._Reader.token
    monkeypatch.setattr(json_text._Reader, "token", lambda self: tokens.append(1) or read_token(self))
    source = read(text.encode(), "a.json")

    assert source.documents == ()
    assert source.findings[-1].rule == rule
    assert len(tokens) < 450_000


def many_services(count: int, **labels: str) -> list[dict[str, Any]]:
    listed = []
    for number in range(count):
        own = {**labels, "app": f"y{number}"}
        template = {"metadata": {"labels": own}}
        listed.append({"apiVersion": "v1", "kind": "Service", "spec": {"selector": {**labels, "app": f"x{number}"}}})
        spec = {"selector": {"matchLabels": own}, "template": template}
        listed.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"d{number}"}, "spec": spec})
    return listed


def test_services_are_compared_only_with_workloads_that_share_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a common label, no pair is looked at; with one, each pair is a step of the budget of the file."""
    budget.RUN.reset()
    monkeypatch.setattr(budget, "MAX_FILE_STEPS", 60_000)
    apart = list(find_idle_services(many_services(400)))
    budget.RUN.open("a.yaml")
    together = list(find_idle_services(many_services(100, part="a")))

    assert (len(apart), len(together)) == (0, 100)
    assert budget.RUN.file.steps == 100 * 100
    budget.RUN.open("b.yaml")
    with pytest.raises(budget.OverBudgetError):
        list(find_idle_services(many_services(250, part="a")))
    budget.RUN.reset()


@needs_helm
def test_the_time_of_helm_counts_for_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two charts that never end take the steps of a run; helm is not started for the rest."""
    monkeypatch.setattr(run_helm, "_CPU_SECONDS", 1)
    monkeypatch.setattr(budget, "MAX_RUN_STEPS", budget.MAX_RUN_STEPS // 2)
    monkeypatch.setattr(workers, "_count_cores", lambda: 1)
    # Each start of helm is one line.
    program = f'#!/bin/sh\necho >> {tmp_path}/starts\nexec {HELM} "$@"\n'
    write(tmp_path, {"bin/helm": program})
    (tmp_path / "bin/helm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    loop = "{{ range $a := until 100000 }}{{ range $b := until 100000 }}{{ end }}{{ end }}a: 1\n"
    chart = {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n", "templates/a.yaml": loop}
    charts = {f"c{n}/{path}": text for n in range(5) for path, text in {**chart, "values.yaml": f"a: {n}\n"}.items()}
    root = write(tmp_path / "r", charts)
    out = lint_paths(root, (".",), (), format_="concise").out

    assert (tmp_path / "starts").read_text().count("\n") == 2
    assert "the render of this chart needed more than the 3,000,000 steps of a run" in out


def test_arguments_of_functions_are_freed() -> None:
    """The engine never frees the list of arguments of a call, so it must not hold a list of 1,000 numbers."""
    expression = cel.compile_cel(f"{DIGITS}.all(a, {DIGITS}.all(b, object.sum() > a + b))", ("object",))
    assert isinstance(expression, cel.Expression)
    data = {"object": list(range(1000, 2000))}
    expression(data)
    before = sys.getallocatedblocks()

    assert expression(data) is True
    assert sys.getallocatedblocks() - before < 10_000


def launch(script: str) -> Files:
    spec = {"framework": "pytorch", "replicas": 2, "image": "example.com/a:1", "command": ["bash", "-c", script]}
    job = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": "a", "namespace": "b"}}
    return {"jobs/a.yaml": json.dumps({**job, "spec": {**spec, "resources": {"gpu": 8}}})}


@pytest.mark.parametrize(
    "start",
    [
        'f() { "$@" "$@"; }; f f f f',
        "set -- a b" + '; set -- "$@" "$@"' * 25,
        "x=" + "a" * 300_000,
        "x=$((" + "1+" * 200_000 + "1))",
        "x=" + "$((" * 2000 + "1" + "))" * 2000,
    ],
)
def test_commands_that_make_too_much_are_not_read(tmp_path: Path, start: str) -> None:
    assert "torchrun waits" not in lint(tmp_path, launch(f"{start}; torchrun --nnodes=4 a.py")).out


def test_costly_conditions_of_defects_end_with_a_finding(tmp_path: Path) -> None:
    numbers = str(list(range(20)))
    loops = f"{numbers}.exists(a, {numbers}.exists(b, {numbers}.exists(c, a + b + c == 9999)))"
    entry = {"versions": {"from": "1.0.0", "fixed": ["1.9.9"]}, "kinds": ["*"], "condition": loops}
    entry |= {
        "at": "metadata.name",
        "consequence": "`{value}` fails",
        "fix": "rename",
        "source": "https://example.com/x",
    }
    spec = {"component": "training-operator", "defects": [{"name": f"our-{n}", **entry} for n in range(499)]}
    files = {f"jobs/{number}.yaml": config_map(number) for number in range(60)}
    files["defects/x.yaml"] = json.dumps({"apiVersion": "jobgen.dev/v1", "kind": "Defects", "spec": spec})
    files["overlays/p/o.yaml"] = overlay(cluster={"operators": {"training-operator": "1.7.0"}})
    assert "[too-many-steps]" in lint(tmp_path, files).out
