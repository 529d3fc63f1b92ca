"""The packs of policies that come with jobgen: off by default, turned on by the settings, replaced by a repository."""

import functools
import importlib.util
import json
import random
import tempfile
from collections import Counter
from copy import deepcopy
from pathlib import Path

import pytest
from sampling import leave

import jobgen
from jobgen.check.pod_security.checks import find_breaches
from jobgen.check.policy import ClusterFacts, PolicyEvaluator, compile_policies
from jobgen.check.policy.type_check import find_type_problems
from jobgen.cli.commands.policy import list_policies
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.pipeline.policies import load_policies
from jobgen.pipeline.policy_types import list_resources
from jobgen.rendering import config
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.repo import layout
from jobgen.repo.layout import PACK_NAMES, PACKS, own_layers
from jobgen.repo.shipped import find_shipped
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
HOME = ROOT / "policies" / "packs"
IN_ONE_PROCESS = True
"""To compile all packs takes seconds."""
FILES = sorted(HOME.glob("*/*.yaml"))
PARAMS = sorted(HOME.glob("*/params/*.yaml"))
CASES = ROOT / "policies" / "tests"


def load_build_packs():
    spec = importlib.util.spec_from_file_location("build_packs", ROOT / "tools/build_packs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build_packs = load_build_packs()
PARTS = build_packs.read_parts()


@pytest.mark.parametrize(("name", "path"), build_packs.list_policies(), ids=lambda each: str(each).rpartition("/")[2])
def test_policies_have_the_parts_of_the_table(name, path):
    text = path.read_text("utf-8")

    assert build_packs.build_policy(name, text, PARTS) == text, "run `python tools/build_packs.py`"
    # What the table changes reaches each policy that has the part.
    other = {"rules": [], "variables": {"spec": "- name: spec\n  expression: dyn(object).other\n"}}
    changed = build_packs.build_policy(name, text, other)
    assert ("dyn(object).other" in changed) == ("    - name: spec\n" in text)
    emptied = {**PARTS, "rules": [{**each, "text": "- resources: [others]\n"} for each in PARTS["rules"]]}
    has_rules = any(name in each["policies"] for each in PARTS["rules"])
    assert ("resources: [others]" in build_packs.build_policy(name, text, emptied)) == has_rules


def test_what_many_policies_repeat_is_in_the_table():
    texts = [path.read_text("utf-8") for _, path in build_packs.list_policies()]
    variables = Counter((found[1], found[0]) for text in texts for found in build_packs.VARIABLE.finditer(text))
    rules = Counter(found[0] for text in texts for found in build_packs.RULES.finditer(text))

    assert {name for (name, _), count in variables.items() if count > 3} <= PARTS["variables"].keys()
    assert sum(count for count in rules.values() if count > 1) == sum(len(each["policies"]) for each in PARTS["rules"])


def documents(path):
    source = read(path.read_bytes(), path.name)

    assert source.findings == ()
    return [document.data for document in source.documents]


def repository(folder, *packs):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "jobs").mkdir(exist_ok=True)
    (folder / "jobgen.yaml").write_text(f"policies: [{', '.join(packs)}]\n" if packs else "")
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@functools.cache
def load(*packs):
    with tempfile.TemporaryDirectory() as folder:
        return PolicyEvaluator(load_policies(own_layers(repository(Path(folder), *packs))).policies, ClusterFacts())


def problems(obj, *packs):
    found = list(load(*packs).find_problems(obj))

    assert [str(problem.sentence) for problem in found if "could not be evaluated" in str(problem.sentence)] == []
    return found


def pod(template):
    return {"apiVersion": "v1", "kind": "Pod", **template}


def pytorch_job(template):
    role = {"replicas": 1, "template": template}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "a"},
        "spec": {"pytorchReplicaSpecs": {"Worker": role}},
    }


# What Pod Security reads, with values that it allows and values that it forbids.
_CONTEXT = {
    "seLinuxOptions": [{"type": "container_t"}, {"type": "spc_t"}, {"user": "u"}, {"role": ""}, {}],
    "seccompProfile": [{"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost"}],
    "appArmorProfile": [{"type": "RuntimeDefault"}, {"type": "Unconfined"}],
    "windowsOptions": [{"hostProcess": True}, {"hostProcess": False}, {}],
    "runAsNonRoot": [True, False],
    "runAsUser": [0, 1000],
}
_CONTAINER_CONTEXT = {
    **_CONTEXT,
    "privileged": [True, False],
    "allowPrivilegeEscalation": [True, False],
    "procMount": ["Default", "Unmasked"],
    "capabilities": [
        {"drop": ["ALL"]},
        {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        {"drop": ["ALL"], "add": ["CHOWN"]},
        {"add": ["SYS_ADMIN"]},
        {"drop": ["KILL"]},
    ],
}
_PROBES = {
    "livenessProbe": [{"httpGet": {"port": 80, "host": "10.0.0.1"}}, {"exec": {"command": ["a"]}}],
    "startupProbe": [{"tcpSocket": {"port": 80, "host": ""}}, {"tcpSocket": {"port": 80, "host": "a"}}],
    "lifecycle": [{"preStop": {"httpGet": {"port": 80, "host": "a"}}}, {"postStart": {"exec": {}}}],
    "ports": [[{"containerPort": 80}], [{"containerPort": 80, "hostPort": 80}], [{"containerPort": 80, "hostPort": 0}]],
}
_VOLUMES = [
    {"name": "a", "hostPath": {"path": "/"}},
    {"name": "b", "emptyDir": {}},
    {"name": "c"},
    {"name": "d", "nfs": {"server": "s", "path": "/"}},
    {"name": "e", "persistentVolumeClaim": {"claimName": "e"}},
]
_POD = {
    "hostNetwork": [True, False],
    "hostPID": [True, False],
    "hostIPC": [True],
    "hostUsers": [True, False],
    "os": [{"name": "windows"}, {"name": "linux"}],
    "volumes": [[volume] for volume in _VOLUMES] + [_VOLUMES],
}
_POD_CONTEXT = {
    **_CONTEXT,
    "sysctls": [[{"name": "kernel.shm_rmid_forced", "value": "1"}], [{"name": "a", "value": "1"}]],
}
_SAFE_CONTEXT = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/main"


def draw(rng, choices, odds):
    return {key: deepcopy(rng.choice(values)) for key, values in choices.items() if rng.random() < odds}


def draw_pod(seed):
    rng = random.Random(seed)
    odds = rng.choice((0.02, 0.1, 0.3))
    containers = [
        {
            "name": name,
            "image": "a:1",
            **draw(rng, _PROBES, odds),
            "securityContext": {**_SAFE_CONTEXT, **draw(rng, _CONTAINER_CONTEXT, odds)},
        }
        for name in ("main", "other")
    ]
    if rng.random() < odds:
        del containers[1]["securityContext"]
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, **draw(rng, _POD_CONTEXT, odds)}
    for field in list(context):
        if rng.random() < odds:
            del context[field]
    annotations = {_ANNOTATION: rng.choice(("unconfined", "runtime/default", "localhost/a"))}
    spec = {**draw(rng, _POD, odds), "securityContext": context, "containers": containers[:1]}
    spec[rng.choice(("initContainers", "containers"))] = [containers[1]]
    spec.setdefault("containers", containers[:1])
    return {"metadata": {"name": "a", "annotations": annotations if rng.random() < odds else {}}, "spec": spec}


def names(*packs):
    """The policies of packs, with those that they include."""
    included = [pack for pack in PACKS if pack.name in packs]
    every = {path.stem for pack in included for path in (HOME / pack.name).glob("*.yaml")}
    for pack in included:
        every |= {path.stem for path in (HOME / pack.includes).glob("*.yaml")} if pack.includes else set()
        every -= {name.removesuffix(".yaml") for name in pack.replaces}
    return every


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_pods_are_refused_as_by_pod_security(level, stress):
    counts = {True: 0, False: 0}
    for seed in range(100 * stress):
        template = draw_pod(seed)
        expected = bool(find_breaches(template["metadata"], template["spec"], level))
        counts[expected] += 1
        obj = pod(template) if seed % 2 else pytorch_job(template)
        assert bool(problems(obj, f"pss-{level}")) == expected, (seed, obj)

    assert min(counts.values()) > 20, "both verdicts are frequent"


def test_policies_and_params_are_accepted_by_the_api_server():
    _, found = compile_policies(document for path in (*FILES, *PARAMS) for document in documents(path))

    assert [str(problem.sentence) for problem in found] == []
    assert len(FILES) >= 20


def test_packs_are_the_folders_and_the_names_of_the_schema():
    schema = json.loads((ROOT / "schemas/jobgen.dev/settings_v1.json").read_text())

    assert {path.name for path in HOME.iterdir()} == set(PACK_NAMES)
    assert tuple(schema["properties"]["policies"]["items"]["enum"]) == PACK_NAMES
    for pack in PACKS:
        assert all((HOME / pack.includes / name).is_file() for name in pack.replaces)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_holds_a_policy_and_its_binding(path):
    policy, binding = documents(path)
    params = documents(path.parent / "params" / path.name) if "paramKind" in policy["spec"] else []

    assert policy["metadata"]["name"] == binding["metadata"]["name"] == binding["spec"]["policyName"] == path.stem
    assert policy["metadata"]["annotations"]["jobgen.dev/description"].count("\n\n") == 1
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert [each["kind"] for each in params] == (["Namespace", "ConfigMap"] if params else [])
    if params:
        reference = binding["spec"]["paramRef"]
        assert reference["name"] == params[1]["metadata"]["name"] == path.stem
        assert reference["namespace"] == params[1]["metadata"]["namespace"] == params[0]["metadata"]["name"]


def test_policies_share_the_expressions_that_find_pods():
    found = {}
    for path in FILES:
        for variable in documents(path)[0]["spec"].get("variables", ()):
            # Policies that forbid something also see the pods of other controllers, of which not all is known.
            expression = variable["expression"].removesuffix("+ variables.made").rstrip()
            found.setdefault(variable["name"], set()).add(expression)

    names = ("spec", "templates", "pods", "containers", "contexts", "images", "parts", "made")
    assert {name: len(found[name]) for name in names} == {
        "spec": 1,
        "templates": 1,
        "pods": 1,
        "containers": 1,
        "contexts": 1,
        "images": 1,
        "parts": 1,
        "made": 1,
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_policy_has_cases_that_fail_and_cases_that_pass(path):
    texts = [text for case in sorted((CASES / path.stem).glob("*.yaml")) for text in case.read_text().split("---\n")]
    objects = [text for text in texts if "kind: ConfigMap" not in text]

    assert [text for text in objects if f"# expect: {path.stem}" in text]
    assert [text for text in objects if "# expect: " not in text]


@pytest.mark.parametrize("pack", PACK_NAMES)
def test_lint_finds_the_bad_cases_of_a_pack_that_is_on(pack, tmp_path):
    expected = names(pack)
    for name in expected:
        # The cases for other params are left to `jobgen policy test`.
        for case in sorted(set((CASES / name).glob("*.yaml")) - {CASES / name / "params.yaml"}):
            write(tmp_path / "jobs" / name / case.name, case.read_text())
    on = jobgen.lint(repository(tmp_path, pack)).findings
    every = {path.stem for path in FILES}

    assert {finding.rule for finding in on} & every == expected
    for name in expected:
        for case in (tmp_path / "jobs" / name).iterdir():
            lines = [number for number, line in enumerate(case.read_text().splitlines(), 1) if "# expect: " in line]
            file = f"jobs/{name}/{case.name}"
            assert (
                sorted(each.location.line for each in on if each.rule == name and each.location.file == file) == lines
            )


def test_lint_finds_no_bad_case_of_a_pack_that_is_off(tmp_path):
    for name in names("cost"):
        for case in (CASES / name).glob("*.yaml"):
            write(tmp_path / "jobs" / name / case.name, case.read_text())
    found = {finding.rule for finding in jobgen.lint(repository(tmp_path)).findings}

    assert found
    assert found & {path.stem for path in FILES} == set()


def test_packs_that_are_off_are_not_read(tmp_path):
    repository(tmp_path)

    assert [
        file.path for file in layout.read_shipped_policies(own_layers(tmp_path)) if "policies/packs" in file.path
    ] == []
    repository(tmp_path, "kueue")
    paths = [file.path for file in layout.read_shipped_policies(own_layers(tmp_path))]
    assert any("policies/packs/kueue/" in path for path in paths)
    assert [path for path in paths if "policies/packs/cost/" in path] == []


def test_restricted_has_one_finding_where_baseline_finds_the_same():
    unconfined = {"seccompProfile": {"type": "Unconfined"}}
    spec = {"securityContext": unconfined, "containers": [{"name": "a", "image": "a:1"}]}
    template = {"metadata": {"name": "a"}, "spec": spec}

    assert [each.rule for each in problems(pod(template), "pss-baseline")] == ["pss-baseline-seccomp"]
    for packs in (("pss-restricted",), ("pss-baseline", "pss-restricted")):
        rules = [each.rule for each in problems(pod(template), *packs) if "seccomp" in each.rule]
        assert rules == ["pss-restricted-seccomp"]


def test_unknown_pack_is_an_error_with_a_suggestion(tmp_path):
    [finding] = config.load(own_layers(repository(tmp_path, "pss-restrict")), traced=True).findings

    assert (finding.rule, finding.location.file, finding.location.line) == ("invalid-value", "jobgen.yaml", 1)
    assert "did you mean `pss-restricted`?" in finding.message


def test_policy_of_a_pack_that_is_off_is_no_rule_of_the_settings(tmp_path):
    settings = repository(tmp_path) / "jobgen.yaml"
    settings.write_text("rules: {max-gpus: warning}\n")

    assert [finding.message for finding in config.load(own_layers(tmp_path), traced=True).findings] == [
        "the policy `max-gpus` is in the pack `cost`, which is off; add the pack to `policies`"
    ]
    settings.write_text("policies: [cost]\nrules: {max-gpus: warning}\n")
    assert config.load(own_layers(tmp_path), traced=True).findings == ()


def test_expressions_fit_the_types_of_the_kinds():
    """The API server writes to the status of a policy what does not fit."""
    config_of_root = config.load_own(ROOT)
    checker = EnvironmentChecker(EnvironmentRunner(config_of_root, "")).checker
    some = [each for each in list_resources(config_of_root) if each.kind in ("Pod", "PyTorchJob", "TrainJob")]
    found = [
        (path.stem, str(problem.sentence))
        for path in FILES
        for problem in find_type_problems(documents(path)[0], some, checker.read_schema)
    ]

    assert len(some) >= 3
    assert found == []


def queued(queue):
    labels = f"{{kueue.x-k8s.io/queue-name: {queue}}}"
    text = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: a, labels: {labels}}}\nspec:\n"
    return text + "  template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'a:1'}]}}\n"


def rules(folder):
    return {finding.rule for finding in jobgen.lint(folder).findings}


@pytest.mark.parametrize("file", ["policies/params/allowed-queues.yaml", "policies/params/teams.yaml"])
def test_repository_replaces_params_of_a_pack(tmp_path, file):
    repository(tmp_path, "kueue")
    write(tmp_path / "jobs/a.yaml", queued("gold"))

    assert "allowed-queues" in rules(tmp_path)
    metadata = "{name: allowed-queues, namespace: jobgen-policies}"
    write(tmp_path / file, f"apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\ndata: {{queues: gold}}\n")
    assert "allowed-queues" not in rules(tmp_path)
    write(tmp_path / "jobs/a.yaml", queued("research"))
    assert "allowed-queues" in rules(tmp_path)


@pytest.mark.parametrize("file", ["policies/queue-required.yaml", "policies/packs/kueue/queue-required.yaml"])
def test_repository_replaces_a_policy_of_a_pack(tmp_path, file):
    repository(tmp_path, "kueue")
    write(tmp_path / "jobs/a.yaml", queued('""'))
    shipped = (HOME / "kueue/queue-required.yaml").read_text()

    assert "queue-required" in rules(tmp_path)
    write(tmp_path / file, shipped.replace("validationActions: [Deny]", "validationActions: [Warn]"))
    assert [each.severity for each in jobgen.lint(tmp_path).findings if each.rule == "queue-required"] == ["warning"]


def test_a_missing_label_is_a_fault_of_the_job_not_of_its_team(tmp_path):
    repository(tmp_path, "kueue")
    write(
        tmp_path / "teams/nlp.yaml",
        "apiVersion: jobgen.dev/v1\nkind: Team\nspec: {folders: [jobs], labels: {cost-center: nlp}}\n",
    )
    write(
        tmp_path / "jobs/a.yaml",
        "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata:\n  name: a\n"
        "spec: {framework: pytorch, image: 'registry.example.com/a:1.4.2'}\n",
    )

    found = next(each for each in jobgen.lint(tmp_path).findings if each.rule == "queue-required")
    assert (found.location.file, found.location.line) == ("jobs/a.yaml", 4)
    assert found.message.endswith("; set it, or `queue` of a job spec, to a LocalQueue")


def test_list_shows_packs_and_whether_they_are_on(tmp_path):
    result = list_policies(repository(tmp_path, "pss-restricted"))
    packs = [line.split()[1:3] for line in result.out.splitlines() if line.startswith("pack ")]

    assert dict(packs) == {
        "pss-baseline": "included",
        "pss-restricted": "on",
        "supply-chain": "off",
        "cost": "off",
        "kueue": "off",
    }
    assert "pss-restricted-seccomp" in result.out
    assert "queue-required" not in result.out


def test_object_with_a_wrong_type_has_one_finding(tmp_path):
    repository(tmp_path, "pss-restricted", "supply-chain")
    write(tmp_path / "jobs/a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: {a: b}\n")

    assert rules(tmp_path) == {"wrong-type"}


def jobset(jobs, containers, **container):
    listed = [
        {"name": f"c{number}", "image": "a:1", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": 8}}, **container}
        for number in range(containers)
    ]
    job = {"template": {"spec": {"activeDeadlineSeconds": 60, "template": {"spec": {"containers": listed}}}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "a"},
        "spec": {"replicatedJobs": [{"name": f"job-{number}", **deepcopy(job)} for number in range(jobs)]},
    }


@pytest.mark.parametrize(
    ("jobs", "containers", "variables"), leave([(4, 4, 0), (10, 1, 20), (25, 2, 200)], lambda case: case[2] > 100)
)
def test_large_job_is_within_the_costs_that_the_api_server_allows(jobs, containers, variables):
    """Its GPUs cost the API server about 7,000 of 1,000,000 for 20 jobs with two containers."""
    env = [{"name": f"VARIABLE_{number}", "value": "x"} for number in range(variables)]
    found = {each.rule: str(each.sentence) for each in problems(jobset(jobs, containers, env=env), *PACK_NAMES)}

    assert "resource-requests" in found
    assert f"the job has {jobs * containers * 8} GPUs" in found["max-gpus"]


@pytest.mark.parametrize("is_checkout", [True, False])
def test_packs_of_a_checkout_of_jobgen_are_off_for_an_installed_jobgen(tmp_path, is_checkout):
    """A repository may have a folder with this name, too; its policies are in force."""
    root = repository(tmp_path)
    pack = next((find_shipped("policies") / "packs/cost").glob("*.yaml"))
    write(root / "policies/packs/cost" / pack.name, pack.read_text("utf-8"))
    if is_checkout:
        write(root / "jobgen/repo/layout.py", "")

    own = [file.path for file in layout.read_own_policies(own_layers(root))]

    assert own == ([] if is_checkout else [f"policies/packs/cost/{pack.name}"])


def test_message_names_each_value_once():
    image = {"spec": {"containers": [{"name": "pytorch", "image": "quay.io/a:1"}]}}
    sidecar = {"spec": {"containers": [*image["spec"]["containers"], {"name": "b", "image": "quay.io/b:1"}]}}
    job = pytorch_job(image)
    job["spec"]["pytorchReplicaSpecs"]["Master"] = {"template": sidecar}
    found = [each for each in problems(job, "supply-chain") if each.rule == "allowed-registries"]
    [message] = {str(each.sentence) for each in found}
    assert message.startswith("not from an allowed registry: `quay.io/a:1`, `quay.io/b:1`")
    # The image that both roles have is one problem.
    assert [each.evidence[0] for each in found] == ["quay.io/a:1", "quay.io/b:1"]


@pytest.mark.parametrize(
    ("labels", "messages"),
    [
        ({"team": "a"}, ["the label `cost-center` is missing; set it in `metadata.labels`"]),
        ({"b": "c"}, ["the labels `team` and `cost-center` are missing; set them in `metadata.labels`"]),
        ({"team": "", "cost-center": "a"}, ["the label `team` is empty; give it a value"]),
        ({"team": "", "cost-center": ""}, ["the labels `team` and `cost-center` are empty; give them values"]),
    ],
)
def test_missing_labels_are_one_label_or_several(labels, messages):
    job = pytorch_job({"spec": {"containers": [{"name": "pytorch", "image": "a"}]}})
    job["metadata"]["labels"] = labels
    found = [str(each.sentence) for each in problems(job, "cost") if each.rule == "required-labels"]
    assert [*dict.fromkeys(found)] == messages


def test_three_missing_labels_are_a_list(tmp_path):
    params = next(path for path in PARAMS if path.stem == "required-labels").read_text()
    write(tmp_path / "policies" / "params" / "labels.yaml", params.replace("team", "team, owner", 1))
    evaluator = PolicyEvaluator(load_policies(own_layers(repository(tmp_path, "cost"))).policies, ClusterFacts())
    found = evaluator.find_problems(pytorch_job({"spec": {"containers": [{"name": "pytorch", "image": "a"}]}}))
    [message] = [str(each.sentence) for each in found if each.rule == "required-labels"]
    assert message.startswith("the labels `team`, `owner` and `cost-center` are missing")
