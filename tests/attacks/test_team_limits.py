"""Teams: what they may use, their defaults and labels, and who owns what."""

from __future__ import annotations

import json
from textwrap import dedent, indent

import pytest
from command import run_jobgen_text
from gitrepository import Repository
from growth import grows_with_the_square

import jobgen
from jobgen.check.rules import rule_categories
from jobgen.features.teams.teams import teams, write_owners
from jobgen.model.builtin_rules import LIMIT_RULES
from jobgen.model.finding import Severity
from jobgen.repo.code_owners import CODE_OWNERS_FILES, find_code_owners, parse_code_owners
from jobgen.spec.teams import Teams, parse_team

LIMITED = """\
apiVersion: jobgen.dev/v1
kind: Team
metadata: {name: nlp}
spec:
  folders: [jobs/nlp]
  owners: ["@example/nlp"]
  contacts: {slack: "#nlp"}
  labels: {team: nlp}
  namespaces: [nlp, nlp-*]
  queues: [nlp]
  serviceAccounts: [nlp-*]
  priorityClasses: [low]
"""
OTHER = """\
apiVersion: jobgen.dev/v1
kind: Team
metadata: {name: vision}
spec:
  folders: [jobs/vision]
  labels: {team: vision}
  namespaces: [vision]
  queues: [vision]
  serviceAccounts: [vision]
  priorityClasses: [high]
"""
NO_TEAM = "no team owns `{}`, so no limit of a team applies; add its folder to a team"
OPEN = "apiVersion: jobgen.dev/v1\nkind: Team\nmetadata: {name: nlp}\nspec: {folders: [jobs/nlp]}\n"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: bert, namespace: {namespace}{labels}}}
spec:
  framework: {framework}
  image: registry.example.com/bert:1.4.2
  resources: {{cpu: 1, memory: 1Gi}}
{rest}"""


def write(root, files):
    for path, text in {"jobgen.yaml": "{}\n", **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def make_job(rest="", namespace="nlp", labels="", framework="pytorch"):
    return JOB.format(rest=indent(dedent(rest), "  "), namespace=namespace, labels=labels, framework=framework)


def make_object(api_version, kind, rest, namespace="nlp"):
    place = f", namespace: {namespace}" if namespace else ""
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: bert{place}}}\n{dedent(rest)}"


POD = "containers: [{name: main, image: 'registry.example.com/bert:1.4.2'}]"
TEMPLATE = f"{{spec: {{{POD}, restartPolicy: Never, %s}}}}"
NAMESPACE, QUEUE = "foreign-namespace", "foreign-queue"
ACCOUNT, PRIORITY = "foreign-service-account", "foreign-priority-class"
KIND = "kind-not-allowed"

TRESPASSES = {
    "namespace of a job": (make_job(namespace="vision"), NAMESPACE),
    "namespace of the system": (make_job(namespace="kube-system"), NAMESPACE),
    "namespace in manifest": (make_job("manifest: {metadata: {namespace: vision}}"), NAMESPACE),
    "namespace of a manifest": (make_object("v1", "ConfigMap", "data: {a: b}\n", "vision"), NAMESPACE),
    "no namespace": (make_object("v1", "ConfigMap", "data: {a: b}\n", ""), NAMESPACE),
    "namespace of a list item": (
        dedent("""\
            apiVersion: v1
            kind: List
            items:
            - apiVersion: v1
              kind: ConfigMap
              metadata: {name: a, namespace: vision}
            """),
        NAMESPACE,
    ),
    "namespace of a data source": (
        make_object(
            "v1",
            "PersistentVolumeClaim",
            """\
            spec:
              accessModes: [ReadWriteMany]
              resources: {requests: {storage: 1Gi}}
              dataSourceRef: {kind: PersistentVolumeClaim, name: data, namespace: vision}
            """,
        ),
        NAMESPACE,
    ),
    "namespace inside an AppWrapper": (
        make_object(
            "workload.codeflare.dev/v1beta2",
            "AppWrapper",
            """\
            spec:
              components:
              - template:
                  apiVersion: v1
                  kind: ConfigMap
                  metadata: {name: a, namespace: vision}
            """,
        ),
        NAMESPACE,
    ),
    "second document": (f"{make_job()}---\n{make_object('v1', 'ConfigMap', '', 'vision')}", NAMESPACE),
    "JSON file": (
        json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "vision"}}),
        NAMESPACE,
    ),
    "queue of a job": (make_job("queue: vision"), QUEUE),
    "queue of a sweep": (make_job('matrix: {place: [vision, nlp]}\nqueue: "${{ matrix.place }}"'), QUEUE),
    "queue in labels": (make_job(labels=", labels: {kueue.x-k8s.io/queue-name: vision}"), QUEUE),
    "queue in manifest": (
        make_job("manifest: {metadata: {labels: {kueue.x-k8s.io/queue-name: vision}}}"),
        QUEUE,
    ),
    "queue of a pod template": (
        make_job("podTemplate: {metadata: {labels: {kueue.x-k8s.io/queue-name: vision}}}"),
        QUEUE,
    ),
    "queue of a gang": (
        make_job("manifest: {spec: {runPolicy: {schedulingPolicy: {queue: vision}}}}"),
        QUEUE,
    ),
    "queue of Volcano": (
        make_object(
            "batch.volcano.sh/v1alpha1",
            "Job",
            f"spec: {{queue: vision, tasks: [{{name: a, replicas: 1, template: {TEMPLATE % 'priority: 0'}}}]}}\n",
        ),
        QUEUE,
    ),
    "queue in an annotation": (
        make_object("v1", "Pod", f"spec: {{{POD}}}\n").replace(
            "namespace: nlp", "namespace: nlp, annotations: {scheduling.volcano.sh/queue-name: vision}"
        ),
        QUEUE,
    ),
    "queue of a Job": (
        make_object("batch/v1", "Job", f"spec: {{template: {TEMPLATE % 'priority: 0'}}}\n").replace(
            "namespace: nlp", "namespace: nlp, labels: {kueue.x-k8s.io/queue-name: vision}"
        ),
        QUEUE,
    ),
    "own LocalQueue": (
        make_object("kueue.x-k8s.io/v1beta1", "LocalQueue", "spec: {clusterQueue: vision}\n"),
        QUEUE,
    ),
    "service account of a job": (make_job("serviceAccount: vision"), ACCOUNT),
    "service account that nobody has": (make_job("serviceAccount: admin"), ACCOUNT),
    "service account of a role": (make_job("roles: {worker: {serviceAccount: vision}}"), ACCOUNT),
    "service account of a pod template": (make_job("podTemplate: {spec: {serviceAccountName: vision}}"), ACCOUNT),
    "old field of the service account": (make_job("podTemplate: {spec: {serviceAccount: vision}}"), ACCOUNT),
    "service account in manifest": (
        make_job("manifest: {spec: {pytorchReplicaSpecs: {Master: {template: {spec: {serviceAccountName: vision}}}}}}"),
        ACCOUNT,
    ),
    "service account of a Pod": (
        make_object("v1", "Pod", f"spec: {{{POD}, serviceAccountName: vision}}\n"),
        ACCOUNT,
    ),
    "service account of a CronJob": (
        make_object(
            "batch/v1",
            "CronJob",
            "spec: {schedule: '0 0 * * *', jobTemplate: {spec: {template: "
            f"{TEMPLATE % 'serviceAccountName: vision'}}}}}}}\n",
        ),
        ACCOUNT,
    ),
    "service account of a submitter": (
        make_object(
            "ray.io/v1",
            "RayJob",
            f"spec: {{entrypoint: python, submitterPodTemplate: {TEMPLATE % 'serviceAccountName: vision'}, "
            "rayClusterSpec: {headGroupSpec: {rayStartParams: {}, template: "
            f"{TEMPLATE % 'priority: 0'}}}}}}}\n",
        ),
        ACCOUNT,
    ),
    "service account of an override": (
        make_object(
            "trainer.kubeflow.org/v1alpha1",
            "TrainJob",
            "spec: {runtimeRef: {name: torch}, podTemplateOverrides: "
            "[{targetJobs: [{name: node}], spec: {serviceAccountName: vision}}]}\n",
        ),
        ACCOUNT,
    ),
    "own ServiceAccount": (make_object("v1", "ServiceAccount", ""), ACCOUNT),
    "priority of a job": (make_job("priority: high"), PRIORITY),
    "priority of the system": (make_job("priority: system-node-critical"), PRIORITY),
    "priority of a pod template": (make_job("podTemplate: {spec: {priorityClassName: high}}"), PRIORITY),
    "priority of a gang": (
        make_job("manifest: {spec: {runPolicy: {schedulingPolicy: {priorityClass: high}}}}"),
        PRIORITY,
    ),
    "priority of a workload": (make_job(labels=", labels: {kueue.x-k8s.io/priority-class: high}"), PRIORITY),
    "label of another team": (make_job(labels=", labels: {team: vision}"), "foreign-team-label"),
    "role binding of the cluster": (
        make_object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: []\n",
            "",
        ),
        KIND,
    ),
    "role": (make_object("rbac.authorization.k8s.io/v1", "Role", "rules: []\n"), KIND),
    "secret": (make_object("v1", "Secret", "stringData: {}\n"), KIND),
    "own namespace": (make_object("v1", "Namespace", "", ""), KIND),
    "own quota": (make_object("v1", "ResourceQuota", "spec: {hard: {pods: '1000'}}\n"), KIND),
    "own ClusterQueue": (make_object("kueue.x-k8s.io/v1beta1", "ClusterQueue", "spec: {}\n", ""), KIND),
    "priority class": (make_object("scheduling.k8s.io/v1", "PriorityClass", "value: 1000000\n", ""), KIND),
    "Application of Argo CD": (
        make_object(
            "argoproj.io/v1alpha1",
            "Application",
            "spec: {project: default, destination: {namespace: vision}}\n",
        ),
        KIND,
    ),
    "kind inside an AppWrapper": (
        make_object(
            "workload.codeflare.dev/v1beta2",
            "AppWrapper",
            "spec: {components: [{template: {apiVersion: v1, kind: Secret, metadata: {name: a}}}]}\n",
        ),
        KIND,
    ),
    "queue of KAI": (make_job(labels=", labels: {kai.scheduler/queue: vision}"), QUEUE),
    "queue of pods for YuniKorn": (make_job("podTemplate: {metadata: {labels: {queue: vision}}}"), QUEUE),
    "quota of Koordinator": (
        make_job(labels=", labels: {quota.scheduling.koordinator.sh/name: vision}"),
        QUEUE,
    ),
    "queue of jobs of a JobSet": (
        make_object(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            "spec: {replicatedJobs: [{name: a, template: {metadata: {labels: {kueue.x-k8s.io/queue-name: vision}}, "
            f"spec: {{template: {TEMPLATE % 'priority: 0'}}}}}}}]}}\n",
        ),
        QUEUE,
    ),
    "queue of a runtime": (
        make_object(
            "trainer.kubeflow.org/v1alpha1",
            "TrainingRuntime",
            "spec: {template: {metadata: {annotations: {scheduling.volcano.sh/queue-name: vision}}, "
            "spec: {replicatedJobs: []}}}\n",
        ),
        QUEUE,
    ),
    "queue of the labels of a TrainJob": (
        make_object(
            "trainer.kubeflow.org/v1alpha1",
            "TrainJob",
            "spec: {runtimeRef: {name: torch}, labels: {kueue.x-k8s.io/queue-name: vision}}\n",
        ),
        QUEUE,
    ),
    "service account of a token": (
        make_object("v1", "Secret", "type: kubernetes.io/service-account-token\n").replace(
            "namespace: nlp", "namespace: nlp, annotations: {kubernetes.io/service-account.name: vision}"
        ),
        ACCOUNT,
    ),
    "service account in a reference": (
        make_object("external-secrets.io/v1", "SecretStore", "spec: {auth: {serviceAccountRef: {name: vision}}}\n"),
        ACCOUNT,
    ),
    "service account in data": (
        make_object("example.com/v1", "Run", "spec: {data: {pod: {serviceAccountName: vision}}}\n"),
        ACCOUNT,
    ),
    "service account of a runtime patch": (
        make_object(
            "trainer.kubeflow.org/v1alpha1",
            "TrainJob",
            "spec: {runtimeRef: {name: torch}, runtimePatches: [{manager: a.example.com/b, trainingRuntimeSpec: "
            "{template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: "
            "{serviceAccountName: vision}}}}}]}}}}]}\n",
        ),
        ACCOUNT,
    ),
    "priority of KubeRay": (make_job(labels=", labels: {ray.io/priority-class-name: high}"), PRIORITY),
    "priority of KAI": (make_job(labels=", labels: {priorityClassName: high}"), PRIORITY),
    "priority in a reference": (
        make_object(
            "kueue.x-k8s.io/v1beta2",
            "Workload",
            "spec: {queueName: nlp, podSets: [], priorityClassRef: {kind: PriorityClass, name: high}}\n",
        ),
        PRIORITY,
    ),
    "namespace of a target": (
        make_object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "spec: {targetNamespace: vision}\n"),
        NAMESPACE,
    ),
    "namespace of a destination": (
        make_object("argoproj.io/v1alpha1", "Application", "spec: {destination: {namespace: vision}}\n"),
        NAMESPACE,
    ),
    "namespace of a subject": (
        make_object(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            "subjects: [{kind: ServiceAccount, name: x, namespace: vision}]\n"
            "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}\n",
        ),
        NAMESPACE,
    ),
    "namespace by a merge key": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  <<: {namespace: vision}\n  name: a\n",
        NAMESPACE,
    ),
    "namespace of a typed list": (
        (
            "apiVersion: v1\nkind: ConfigMapList\nitems:\n"
            "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: vision}}\n"
        ),
        NAMESPACE,
    ),
    "label of another team on pods": (
        make_job("podTemplate: {metadata: {labels: {team: vision}}}"),
        "foreign-team-label",
    ),
    "secret in a list": (
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: nlp}}\n",
        KIND,
    ),
    "secret with a generated name": (
        make_object("v1", "Secret", "stringData: {}\n").replace("name: bert", "generateName: bert-"),
        KIND,
    ),
    "policy of the cluster": (make_object("kyverno.io/v1", "ClusterPolicy", "spec: {}\n", ""), KIND),
    "traffic for others": (
        make_object("discovery.k8s.io/v1", "EndpointSlice", "addressType: IPv4\nendpoints: []\n"),
        KIND,
    ),
    "queue of the cluster": (make_object("scheduling.volcano.sh/v1beta1", "Queue", "spec: {weight: 1}\n", ""), KIND),
    "secret of another store": (make_object("external-secrets.io/v1alpha1", "PushSecret", "spec: {}\n"), KIND),
    "policy of the network": (
        make_object("networking.k8s.io/v1", "NetworkPolicy", "spec: {podSelector: {}}\n"),
        KIND,
    ),
}


@pytest.mark.parametrize("way", TRESPASSES)
def test_reaching_for_what_belongs_to_others_is_an_error(tmp_path, way):
    text, rule = TRESPASSES[way]
    path = "jobs/nlp/bert.json" if text.startswith("{") else "jobs/nlp/bert.yaml"
    write(tmp_path, {"teams/nlp.yaml": LIMITED, "teams/vision.yaml": OTHER, path: text})

    found = [each for each in jobgen.lint(tmp_path).findings if each.rule == rule]

    assert {(each.severity, each.location.file) for each in found} == {(jobgen.Severity.ERROR, path)}
    assert all(each.location.line for each in found)


ONLY_WITH_LISTS = {
    "namespace of the system",
    "no namespace",
    "own ServiceAccount",
    "priority of the system",
    "service account that nobody has",
}
CLAIMED = [way for way, (_, rule) in TRESPASSES.items() if rule != KIND and way not in ONLY_WITH_LISTS]


@pytest.mark.parametrize("way", CLAIMED)
def test_what_another_team_lists_is_its_own_also_for_teams_without_lists(tmp_path, way):
    text, rule = TRESPASSES[way]
    path = "jobs/nlp/bert.json" if text.startswith("{") else "jobs/nlp/bert.yaml"
    write(tmp_path, {"teams/nlp.yaml": OPEN, "teams/vision.yaml": OTHER, path: text})

    assert rule in {each.rule for each in jobgen.lint(tmp_path).findings}


@pytest.mark.parametrize("comment", ["ignore", "ignore-file"])
def test_comments_do_not_lift_limits(tmp_path, comment):
    text = f"# jobgen: {comment}[{NAMESPACE}, job-without-team] -- ours\n"
    job = make_job(namespace="vision").replace("metadata:", f"{text}metadata:" if comment == "ignore" else "metadata:")
    job = f"{text}{job}" if comment == "ignore-file" else job
    files = {"jobs/nlp/bert.yaml": job, "jobs/x/bert.yaml": job.replace("bert", "gpt")}
    write(tmp_path, {"teams/nlp.yaml": LIMITED, "teams/vision.yaml": OTHER, **files})

    found = {(each.rule, each.location.file) for each in jobgen.lint(tmp_path).findings}

    assert found >= {(NAMESPACE, "jobs/nlp/bert.yaml"), ("mandatory-suppressed", "jobs/nlp/bert.yaml")}
    assert ("job-without-team", "jobs/x/bert.yaml") in found


def test_all_rules_about_teams_are_limits():
    of_teams = {name for name, category in rule_categories(()) if category == "team"}

    assert {*of_teams, "locked-field"} == LIMIT_RULES


def test_keys_that_users_choose_are_no_fields(tmp_path):
    rest = (
        "nodeSelector: {queue: vision, namespace: vision}\npodTemplate: {metadata: {annotations: {namespace: vision}}}"
    )
    config = make_object("v1", "ConfigMap", "data: {queue: vision, namespace: vision, serviceAccount: vision}\n")
    files = {"jobs/nlp/bert.yaml": make_job(rest), "jobs/nlp/config.yaml": config}
    write(tmp_path, {"teams/nlp.yaml": LIMITED, "teams/vision.yaml": OTHER, **files})

    assert [each for each in jobgen.lint(tmp_path).findings if each.category == "team"] == []


def test_labels_of_both_teams_name_a_team(tmp_path):
    files = {"teams/nlp.yaml": LIMITED.replace("labels: {team: nlp}", "labels: {example.com/unit: nlp-1}")}
    files["teams/vision.yaml"] = OTHER.replace("labels: {team: vision}", "labels: {example.com/unit: v-2, zone: a}")
    write(tmp_path, {**files, "jobs/nlp/bert.yaml": make_job(labels=", labels: {example.com/unit: v-2, zone: a}")})

    found = [each for each in jobgen.lint(tmp_path).findings if each.category == "team"]

    assert [(each.rule, each.evidence) for each in found] == [("foreign-team-label", ("v-2",))]


def test_a_team_is_found_by_folders_however_many_there_are():
    def prepare(count):
        many = [parse_team(f"t{at}", {"folders": [f"jobs/{at}/{part}" for part in "abcde"]}, "") for at in range(count)]
        known = Teams(tuple(many))

        def find():
            assert {known.find_name(f"jobs/{at}/e/{at}.yaml") for at in range(count)} == {team.name for team in many}
            assert known.find("jobs/1/f/a.yaml") is None

        return find

    assert not grows_with_the_square(prepare, 120)


def test_what_a_team_may_use_is_no_error(tmp_path):
    job = make_job("queue: nlp\nserviceAccount: nlp-train\npriority: low", namespace="nlp-prod")
    write(tmp_path, {"teams/nlp.yaml": LIMITED, "teams/vision.yaml": OTHER, "jobs/nlp/bert.yaml": job})

    assert [each for each in jobgen.lint(tmp_path).findings if each.category == "team"] == []


def test_values_of_overlays_are_found_on_their_lines(tmp_path):
    overlay = (
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  namespace: nlp\n  patches:\n"
        "    - match: {teams: [nlp]}\n      jsonPatch:\n"
        "        - {op: add, path: /spec/pytorchReplicaSpecs/Master/template/spec/serviceAccountName, value: vision}\n"
    )
    files = {"teams/nlp.yaml": LIMITED, "teams/vision.yaml": OTHER, "overlays/prod/overlay.yaml": overlay}
    write(tmp_path, {**files, "jobs/nlp/bert.yaml": make_job()})

    found = [each for each in jobgen.lint(tmp_path).findings if each.category == "team"]

    assert [(each.rule, str(each.location.file), each.location.line) for each in found] == [
        (ACCOUNT, "overlays/prod/overlay.yaml", 8)
    ]


def test_defaults_labels_and_matches_of_teams(tmp_path):
    overlay = dedent("""\
        apiVersion: jobgen.dev/v1
        kind: Overlay
        spec:
          defaults:
            - merge: {nodeSelector: {pool: all, zone: a}, priority: low}
            - match: {teams: [vision]}
              merge: {nodeSelector: {pool: vision}}
          patches:
            - match: {teams: [v*]}
              merge: {env: {TEAM: vision}}
        """)
    team = LIMITED + "  defaults: {nodeSelector: {zone: b}}\n"
    files = {"overlays/prod/overlay.yaml": overlay, "teams/nlp.yaml": team, "teams/vision.yaml": OTHER}
    jobs = {
        "jobs/nlp/bert.yaml": make_job(),
        "jobs/nlp/own.yaml": make_job("nodeSelector: {zone: c}").replace("bert", "own"),
        "jobs/vision/resnet.yaml": make_job(namespace="vision").replace("bert", "resnet"),
        "jobs/vision/config.yaml": make_object("v1", "ConfigMap", "data: {a: b}\n", "vision").replace("bert", "rates"),
    }
    made = {each.identity.name: each.manifest for each in jobgen.render(write(tmp_path, {**files, **jobs})).objects}

    def pod(name):
        return made[name]["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]

    assert pod("bert")["nodeSelector"] == {"pool": "all", "zone": "b"}
    assert pod("own")["nodeSelector"] == {"pool": "all", "zone": "c"}
    assert pod("resnet")["nodeSelector"] == {"pool": "vision", "zone": "a"}
    assert "env" not in pod("own")["containers"][0]
    assert pod("resnet")["containers"][0]["env"] == [{"name": "TEAM", "value": "vision"}]
    labels = {name: each["metadata"]["labels"]["team"] for name, each in made.items()}
    assert labels == {"bert": "nlp", "own": "nlp", "resnet": "vision", "rates": "vision"}


def test_the_longest_folder_owns_a_file():
    known = Teams((parse_team("a", {"folders": ["jobs/x"]}, ""), parse_team("b", {"folders": ["jobs/x/y/"]}, "")))

    assert [team and team.name for team in map(known.find, ("jobs/x/y/1.yaml", "jobs/x/y.yaml", "jobs/xy/1.yaml"))] == [
        "b",
        "a",
        None,
    ]


def test_teams_in_the_settings(tmp_path):
    settings = "teams:\n  nlp: {folders: [jobs/nlp], namespaces: [nlp]}\n"
    write(tmp_path, {"jobgen.yaml": settings, "jobs/nlp/bert.yaml": make_job(namespace="ml")})

    assert [each.rule for each in jobgen.lint(tmp_path).findings if each.category == "team"] == [NAMESPACE]


def test_overview_counts_what_budgets_count(tmp_path):
    team = LIMITED + "  budget: {gpus: 3, jobs: 9}\n  environments: {dev: {budget: {gpus: 100}}}\n"
    gpus = "resources: {gpu: 2}\nroles: {master: {}, worker: {replicas: 1}}"
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {}\n"
    job = make_job(gpus).replace("  resources: {cpu: 1, memory: 1Gi}\n", "")
    files = {"teams/nlp.yaml": team, "jobs/nlp/bert.yaml": job, "jobs/gpt.yaml": make_job().replace("bert", "gpt")}
    write(tmp_path, {**files, "overlays/dev/overlay.yaml": overlay, "overlays/prod/overlay.yaml": overlay})

    result = teams(tmp_path, format="json")
    shown = json.loads(result.text)["teams"]
    lines = {
        (team["name"], each["environment"]): {line["name"]: (line["used"], line["limit"]) for line in each["budget"]}
        for team in shown
        for each in team["environments"]
    }

    assert lines == {
        ("nlp", "dev"): {"gpus": (4, 100), "jobs": (1, 9), "replicas": (2, None)},
        ("nlp", "prod"): {"gpus": (4, 3), "jobs": (1, 9), "replicas": (2, None)},
        ("", "dev"): {"gpus": (0, None), "jobs": (1, None), "replicas": (1, None)},
        ("", "prod"): {"gpus": (0, None), "jobs": (1, None), "replicas": (1, None)},
    }
    exceeded = [each for each in jobgen.lint(tmp_path).findings if each.rule == "team-budget-exceeded"]
    assert [(each.env, each.location.file) for each in exceeded] == [("prod", "jobs/nlp/bert.yaml")]
    text = run_jobgen_text(tmp_path, "teams", "nlp", "-e", "prod").stdout
    assert text == (
        "nlp  jobs/nlp  @example/nlp  slack #nlp\n"
        "  prod: 4 of 3 GPUs (exceeded), 1 of 9 jobs, 2 pods; namespaces nlp nlp-*; queues nlp; "
        "serviceAccounts nlp-*; priorityClasses low\n"
    )


def test_overview_of_some_teams_and_of_broken_settings(tmp_path):
    write(tmp_path, {"teams/nlp.yaml": LIMITED, "teams/vision.yaml": OTHER, "jobs/nlp/bert.yaml": make_job()})

    assert [each.name for each in teams(tmp_path, ["nl*"]).teams] == ["nlp"]
    with pytest.raises(jobgen.UsageError, match="there is no team `x\\*`"):
        teams(tmp_path, ["x*"])
    write(tmp_path, {"jobgen.yaml": "teams: {a: {folder: [jobs/a]}}\n"})
    with pytest.raises(jobgen.UsageError, match=r"in jobgen\.yaml"):
        teams(tmp_path)


def test_code_owners_are_written_and_checked(tmp_path):
    root = write(tmp_path / "git" / "ml", {"teams/nlp.yaml": LIMITED, "jobs/nlp/bert.yaml": make_job()})
    Repository(tmp_path / "git", tmp_path).commit()
    owners = tmp_path / "git/CODEOWNERS"
    owners.write_text("* @example/platform")

    assert run_jobgen_text(root, "codeowners", "--check").returncode == 1
    assert run_jobgen_text(root, "codeowners").returncode == 0
    written = owners.read_text()
    assert written.splitlines()[0] == "* @example/platform"
    assert "/ml/jobs/nlp/ @example/nlp" in written.splitlines()
    assert run_jobgen_text(root, "codeowners", "--check").returncode == 0
    owners.write_text(f"{written}/docs/ @example/writers\n")
    (root / "teams/vision.yaml").write_text(OTHER.replace("  labels", '  owners: ["@example/vision"]\n  labels'))
    assert run_jobgen_text(root, "codeowners").returncode == 0
    assert owners.read_text().splitlines()[-1] == "/docs/ @example/writers"
    assert "/ml/jobs/vision/ @example/vision" in owners.read_text().splitlines()


def test_files_that_decide_have_owners_after_those_of_teams(tmp_path):
    root = write(tmp_path / "git" / "ml", {"jobgen.yaml": 'owners: ["@example/platform", ops@example.com]\n'})
    write(root, {"jobgen.yaml": (root / "jobgen.yaml").read_text(), "teams/nlp.yaml": LIMITED})
    Repository(tmp_path / "git", tmp_path).commit()

    assert run_jobgen_text(root, "codeowners").returncode == 0
    rules = parse_code_owners((tmp_path / "git/.github/CODEOWNERS").read_text())
    platform = "@example/platform ops@example.com"
    layers = "overlays/prod/overlay.yaml policies/x.yaml runtimes/x.yaml schemas/x.yaml teams/nlp.yaml".split()
    for file in ("jobgen.yaml", "jobgen-baseline.json", *layers):
        assert find_code_owners(rules, f"ml/{file}") == platform
    # GitHub reads the first of these that exists.
    assert {find_code_owners(rules, file) for file in CODE_OWNERS_FILES} == {platform}
    assert find_code_owners(rules, "ml/jobs/nlp/bert.yaml") == "@example/nlp"
    (root / "teams/nlp.yaml").unlink()
    assert run_jobgen_text(root, "codeowners").returncode == 0
    write(root, {"jobgen.yaml": "owners: [platform]\n"})
    assert "must be `@user`, `@org/team` or an email address" in run_jobgen_text(root, "codeowners").stderr


def test_code_owners_have_what_is_deployed(tmp_path):
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {cluster: {state: state/prod}}\n"
    files = {
        "jobgen.yaml": 'owners: ["@example/platform"]\nrendered: deploy/tree\n',
        "teams/nlp.yaml": LIMITED,
        "overlays/prod/overlay.yaml": overlay,
        "gitops/argocd.yaml": "",
    }
    root = write(tmp_path, files)

    assert run_jobgen_text(root, "codeowners").returncode == 0
    rules = parse_code_owners((root / ".github/CODEOWNERS").read_text())
    deployed = (
        "deploy/tree/prod/ml/x.yaml deploy/tree/prod/jobgen.lock.json state/prod/x.yaml gitops/argocd.yaml".split()
    )
    assert {find_code_owners(rules, file) for file in deployed} == {"@example/platform"}
    assert not find_code_owners(rules, "deploy/README.md")


def test_code_owners_of_parts_of_a_folder_come_later():
    known = [parse_team("b", {"folders": ["jobs/x/my jobs"], "owners": ["@b"]}, "")]
    known.append(parse_team("a", {"folders": ["jobs/x"], "owners": ["@a"]}, ""))

    assert write_owners("", known, "").splitlines()[1:-1] == ["/jobs/x/ @a", "/jobs/x/my\\ jobs/ @b"]


def test_a_team_without_owners_takes_no_owners_away():
    known = [
        parse_team("b", {"folders": ["jobs/x/y"]}, ""),
        parse_team("a", {"folders": ["jobs/x"], "owners": ["@a"]}, ""),
    ]

    assert write_owners("", known, "").splitlines()[1:-1] == ["/jobs/x/ @a"]


@pytest.mark.parametrize(
    "folder", ["jobs/..", "jobs/nlp/../vision", "jobs/./a", "jobs/.a", "jobs/a\r* @evil", "jobs//a"]
)
def test_odd_folders_are_errors(tmp_path, folder):
    team = {"apiVersion": "jobgen.dev/v1", "kind": "Team", "spec": {"folders": [folder]}}
    write(tmp_path, {"teams/nlp.yaml": json.dumps(team), "jobs/nlp/bert.yaml": make_job()})

    found = [each.rule for each in jobgen.lint(tmp_path).findings if each.location.file == "teams/nlp.yaml"]

    assert found == ["invalid-value"]


REQUIRED = "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: %s}}}"
NODES = {
    "selector": ("nodeSelector: {gpu: a100}", True),
    "other selector": ("nodeSelector: {gpu: h100}", False),
    "no selector": ("restartPolicy: Never", False),
    "affinity": ("[{matchExpressions: [{key: gpu, operator: In, values: [h100, a100]}]}]", True),
    "other affinity": ("[{matchExpressions: [{key: gpu, operator: In, values: [h100]}]}]", False),
    "second term": (
        "[{matchExpressions: [{key: zone, operator: Exists}]}, {matchExpressions: [{key: gpu, operator: Exists}]}]",
        True,
    ),
    "all but others": ("[{matchExpressions: [{key: gpu, operator: NotIn, values: [h100]}]}]", True),
    "all but these": ("[{matchExpressions: [{key: gpu, operator: NotIn, values: [a100]}]}]", False),
    "contradiction": (
        "[{matchExpressions: [{key: gpu, operator: Exists}, {key: gpu, operator: NotIn, values: [a100]}]}]",
        False,
    ),
    "wrong types": ("[1, {matchExpressions: [2, {key: 3, operator: [], values: 4}]}]", False),
}


@pytest.mark.parametrize("way", NODES)
def test_budgets_for_devices_count_pods_that_select_their_nodes(tmp_path, way):
    selection, counts = NODES[way]
    budget = "  budget: {devices: [{resource: nvidia.com/gpu, nodeSelector: {gpu: a100}, max: 1}]}\n"
    chosen = f"affinity: {REQUIRED % selection}" if selection.startswith("[") else selection
    pod = (
        "containers: [{name: main, image: 'registry.example.com/bert:1.4.2', resources: {limits: {nvidia.com/gpu: 2}}}]"
    )
    text = make_object("v1", "Pod", f"spec: {{{pod}, {chosen}}}\n")
    write(tmp_path, {"teams/nlp.yaml": LIMITED + budget, "jobs/nlp/bert.yaml": text})

    assert ("team-budget-exceeded" in {each.rule for each in jobgen.lint(tmp_path).findings}) is counts


GPU_POD = (
    "{spec: {containers: [{name: main, image: 'registry.example.com/bert:1.4.2', "
    "resources: {limits: {nvidia.com/gpu: 8}}}], restartPolicy: Never}}"
)
SUSPENDED = {
    "RayCluster": (
        "ray.io/v1",
        f"spec: {{suspend: true, headGroupSpec: {{rayStartParams: {{}}, template: {GPU_POD}}}}}\n",
    ),
    "AppWrapper": (
        "workload.codeflare.dev/v1beta2",
        (
            "spec: {suspend: true, components: [{template: {apiVersion: batch/v1, kind: Job, metadata: {name: a}, "
            f"spec: {{template: {GPU_POD}}}}}}}]}}\n"
        ),
    ),
    "Job": ("batch/v1", f"spec: {{suspend: true, template: {GPU_POD}}}\n"),
}


@pytest.mark.parametrize("kind", SUSPENDED)
def test_what_a_queue_starts_counts_for_the_budget(tmp_path, kind):
    api_version, spec = SUSPENDED[kind]
    text = make_object(api_version, kind, spec)
    write(tmp_path, {"teams/nlp.yaml": LIMITED + "  budget: {gpus: 4}\n", "jobs/nlp/bert.yaml": text})

    def count():
        found = [each.rule for each in jobgen.lint(tmp_path).findings].count("team-budget-exceeded")
        lines = json.loads(teams(tmp_path, format="json").text)["teams"][0]["environments"][0]["budget"]
        return found, {line["name"]: line["used"] for line in lines}["gpus"]

    assert count() == (0, 0)
    labeled = text.replace("namespace: nlp", "namespace: nlp, labels: {kueue.x-k8s.io/queue-name: nlp}")
    (tmp_path / "jobs/nlp/bert.yaml").write_text(labeled)
    assert count() == (1, 8)


@pytest.mark.parametrize(("scales", "gpus"), [("true", 40), ("false", 8)])
@pytest.mark.parametrize(
    ("kind", "field"), [("RayCluster", ""), ("RayJob", "rayClusterSpec"), ("RayService", "rayClusterConfig")]
)
def test_workers_that_ray_may_add_count_for_the_budget(tmp_path, kind, field, scales, gpus):
    head = (
        "headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: a, image: 'r.example.com/a:1'}]}}}"
    )
    group = f"{{groupName: a, replicas: 1, minReplicas: 0, maxReplicas: 5, rayStartParams: {{}}, template: {GPU_POD}}}"
    cluster = f"{{enableInTreeAutoscaling: {scales}, {head}, workerGroupSpecs: [{group}]}}"
    spec = f"{{entrypoint: python, {field}: {cluster}}}" if field else cluster
    text = make_object("ray.io/v1", kind, f"spec: {spec}\n")
    write(tmp_path, {"teams/nlp.yaml": LIMITED + "  budget: {gpus: 9}\n", "jobs/nlp/bert.yaml": text})

    lines = json.loads(teams(tmp_path, format="json").text)["teams"][0]["environments"][0]["budget"]

    assert {line["name"]: line["used"] for line in lines}["gpus"] == gpus
    assert ("team-budget-exceeded" in {each.rule for each in jobgen.lint(tmp_path).findings}) is (gpus > 9)


@pytest.mark.parametrize("layer", ["base", "team nlp"])
def test_defaults_of_some_platforms_are_in_a_block_with_match(tmp_path, layer):
    overlay = "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  cluster: {platforms: [jobset, kubeflow]}\n"
    policy = "{runPolicy: {cleanPodPolicy: None}}"
    team = LIMITED + (f"  defaults: {policy}\n" if layer == "team nlp" else "")
    files = {"teams/nlp.yaml": team, "jobs/nlp/bert.yaml": make_job(namespace="nlp")}
    whole = f"  defaults: {policy}\n" if layer == "base" else ""
    write(tmp_path, {**files, "overlays/base/overlay.yaml": overlay + whole})

    found = [each.message for each in jobgen.lint(tmp_path).findings if each.rule == "unsupported-by-kind"]
    assert len(found) == 1
    assert f"it is among the defaults of {layer}: set it in a block of" in found[0]
    block = f"  defaults:\n    - match: {{platforms: [kubeflow]}}\n      merge: {policy}\n"
    write(tmp_path, {"teams/nlp.yaml": LIMITED, "overlays/base/overlay.yaml": overlay + block})
    assert not [each for each in jobgen.lint(tmp_path).findings if each.rule == "unsupported-by-kind"]


@pytest.mark.parametrize("command", ["teams", "codeowners"])
def test_commands_about_teams_agree_about_exit_codes(command, tmp_path):
    write(tmp_path, {"jobgen.yaml": ""})
    assert run_jobgen_text(tmp_path, command).returncode == 3
    write(tmp_path, {"teams/nlp.yaml": "apiVersion: jobgen.dev/v1\nkind: Team\nspec: {folders: [jobs], ownerz: []}\n"})
    assert run_jobgen_text(tmp_path, command).returncode == 1


def find_messages(root):
    found = [each for each in jobgen.lint(root).findings if each.severity is not Severity.INFO]
    return [(each.location.file, each.location.line, each.rule, each.message) for each in found]


PATCH = """\
apiVersion: jobgen.dev/v1
kind: Overlay
metadata: {name: prod}
spec:
  jobs: {teams: [vision]}
  patches: [{match: {teams: [vision]}, merge: {labels: {tier: gold}}}]
"""


def test_a_team_that_cannot_be_read_is_the_only_finding(tmp_path):
    files = {
        "teams/nlp.yaml": OPEN,
        "teams/vision.yaml": "apiVersion: jobgen.dev/v1\nkind: Team\nspec:\n  folders: [jobs/vision\n",
        "overlays/prod/overlay.yaml": PATCH,
        "jobs/vision/bert.yaml": make_job(),
    }
    found = find_messages(write(tmp_path, files))
    assert [each[:3] for each in found] == [("teams/vision.yaml", 4, "yaml-syntax")]


def test_a_team_that_cannot_be_read_hides_nothing_if_that_is_turned_off(tmp_path):
    files = {
        "jobgen.yaml": "rules: {yaml-syntax: off}\n",
        "teams/nlp.yaml": OPEN,
        "teams/vision.yaml": "apiVersion: jobgen.dev/v1\nkind: Team\nspec:\n  folders: [jobs/vision\n",
        "jobs/vision/bert.yaml": make_job(),
    }
    found = find_messages(write(tmp_path, files))
    assert [each[:3] for each in found] == [("jobs/vision/bert.yaml", 1, "job-without-team")]


def test_a_suppressed_error_of_a_team_does_not_hide_that_no_team_owns_its_jobs(tmp_path):
    files = {
        "teams/nlp.yaml": OPEN,
        "teams/vision.yaml": "# jobgen: ignore-file[unknown-field] -- known\n"
        "apiVersion: jobgen.dev/v1\nkind: Team\nspec: {folders: [jobs/vision], ownerz: []}\n",
        "jobs/vision/bert.yaml": make_job(),
    }
    found = find_messages(write(tmp_path, files))
    assert [each[:3] for each in found] == [("jobs/vision/bert.yaml", 1, "job-without-team")]


def test_a_folder_of_a_team_that_is_almost_that_of_a_job_is_named(tmp_path):
    files = {
        "teams/nlp.yaml": OPEN.replace("jobs/nlp", "jobs/nlpp"),
        "jobs/nlp/gpt.yaml": make_job().replace("bert", "gpt"),
        "jobs/vision/bert.yaml": make_job(),
    }
    assert find_messages(write(tmp_path, files)) == [
        ("jobs/nlp/gpt.yaml", 1, "job-without-team", f"{NO_TEAM.format('jobs/nlp/gpt.yaml')}; `nlp` owns `jobs/nlpp`"),
        ("jobs/vision/bert.yaml", 1, "job-without-team", NO_TEAM.format("jobs/vision/bert.yaml")),
    ]


def test_what_no_team_owns_is_rendered(tmp_path):
    """The owner of a job has no effect on its object, and a lint reports it."""
    write(tmp_path, {"teams/nlp.yaml": OPEN.replace("jobs/nlp", "jobs/nlpp"), "jobs/nlp/bert.yaml": make_job()})
    assert [made.identity.name for made in jobgen.render(tmp_path).objects] == ["bert"]


def test_a_folder_without_jobs_yet_is_no_finding(tmp_path):
    files = {
        "teams/nlp.yaml": OPEN,
        "teams/nlq.yaml": OPEN.replace("nlp", "nlq"),
        "jobs/nlp/bert.yaml": make_job(),
    }
    assert find_messages(write(tmp_path, files)) == []


def test_one_of_something_is_singular(tmp_path):
    job = make_job("resources: {gpu: 1, cpu: 1, memory: 1Gi}\n").replace("  resources: {cpu: 1, memory: 1Gi}\n", "")
    files = {
        "teams/nlp.yaml": OPEN.replace("[jobs/nlp]", "[jobs/nlp], budget: {gpus: 1}"),
        "jobs/nlp/bert.yaml": job,
        "jobs/nlp/gpt.yaml": job.replace("name: bert", "name: gpt"),
    }
    write(tmp_path, files)
    found = next(each for each in jobgen.lint(tmp_path).findings if each.rule == "team-budget-exceeded")
    assert [each.message for each in found.related] == ["`gpt`: 1 GPU"]
    (tmp_path / "jobs/nlp/gpt.yaml").unlink()
    assert "1 of 1 GPU, 1 job, 1 pod\n" in run_jobgen_text(tmp_path, "teams").stdout
