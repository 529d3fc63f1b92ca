"""A repository with nested cohorts, whose jobs are admitted, preempt, wait, are never admitted or not managed."""

import json

GPU = "nvidia.com/gpu"
ENVIRONMENTS = ("prod", "dev", "local")


def write(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, "utf-8")
    return folder


def make_kueue(kind, name, **spec):
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def make_queue(name, cohort, flavors, **spec):
    """Make a ClusterQueue; `flavors` has the quota of GPUs of each, as fields."""
    group = {
        "coveredResources": ["cpu", "memory", GPU],
        "flavors": [
            {
                "name": flavor,
                "resources": [
                    {"name": "cpu", "nominalQuota": 400},
                    {"name": "memory", "nominalQuota": "2Ti"},
                    {"name": GPU, **quota},
                ],
            }
            for flavor, quota in flavors.items()
        ],
    }
    return make_kueue("ClusterQueue", name, cohortName=cohort, namespaceSelector={}, resourceGroups=[group], **spec)


def make_job(name, queue, pods, gpus, *, labels="", rest="", framework="pytorch"):
    """Return a job spec."""
    return f"""\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: {name[:1]}-team{labels}}}}}
spec:
  framework: {framework}
  {f"queue: {queue}" if queue else "shm: 1Gi"}
  image: registry.example.com/{name}:1.0.0
  command: [python, train.py]
  resources: {{cpu: 2, memory: 4Gi{f", gpu: {gpus}" if gpus else ""}}}
  roles: {{worker: {{replicas: {pods}}}}}
{rest}"""


OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml
  cluster:
    state: cluster/{name}
    budgets: {{namespaces: {{ml: {{gpus: 40}}}}, teams: {{b-team: {{gpus: 100}}}}}}
    kueue: {{version: "0.19", frameworks: [kubeflow.org/pytorchjob]}}
"""
PRODUCTION = [
    make_kueue("Cohort", "research", parentName="company"),
    make_kueue("Cohort", "company"),
    make_kueue("ResourceFlavor", "h100", nodeLabels={"gpu": "h100"}),
    make_kueue("ResourceFlavor", "a100", nodeLabels={"gpu": "a100"}),
    make_queue(
        "team-a",
        "research",
        {"h100": {"nominalQuota": 8, "borrowingLimit": 16}, "a100": {"nominalQuota": 4}},
        preemption={"reclaimWithinCohort": "Any"},
    ),
    make_queue(
        "team-b",
        "research",
        {"h100": {"nominalQuota": 16, "lendingLimit": 12}},
        preemption={"reclaimWithinCohort": "Any"},
    ),
    make_queue("platform", "company", {"a100": {"nominalQuota": 8}}),
    *(
        {**make_kueue("LocalQueue", name, clusterQueue=name), "metadata": {"name": name, "namespace": "ml"}}
        for name in ("team-a", "team-b", "platform")
    ),
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    },
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "compute", "namespace": "ml"},
        "spec": {"hard": {f"requests.{GPU}": "80", "requests.cpu": "200", "pods": "100"}},
    },
]
DEVELOPMENT = [
    make_kueue("ResourceFlavor", "a100", nodeLabels={"gpu": "a100"}),
    make_queue("team-a", "", {"a100": {"nominalQuota": 64}}),
    {**make_kueue("LocalQueue", "team-a", clusterQueue="team-a"), "metadata": {"name": "team-a", "namespace": "ml"}},
]
HIGH = ", kueue.x-k8s.io/priority-class: high"
HOUR = "  runPolicy: {activeDeadlineSeconds: 3600}\n"
FILES = {
    "jobgen.yaml": "environments: [prod, dev, local]\n",
    "overlays/prod/overlay.yaml": OVERLAY.format(name="prod"),
    "overlays/dev/overlay.yaml": OVERLAY.format(name="dev"),
    "overlays/local/overlay.yaml": "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {namespace: ml}\n",
    "cluster/prod/state.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": PRODUCTION}),
    "cluster/dev/state.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": DEVELOPMENT}),
    "jobs/a-first.yaml": make_job("a-first", "team-a", 2, 8, labels=HIGH, rest=HOUR),
    "jobs/a-small.yaml": make_job("a-small", "team-a", 1, 4, rest="  runPolicy: {activeDeadlineSeconds: 5400}\n"),
    "jobs/a-huge.yaml": make_job("a-huge", "team-a", 8, 8),
    "jobs/b-owner.yaml": make_job("b-owner", "team-b", 1, 8, rest=HOUR),
    "jobs/b-next.yaml": make_job("b-next", "team-b", 1, 8),
    "jobs/c-other.yaml": make_job("c-other", "platform", 1, 8, rest=HOUR),
    "jobs/d-alone.yaml": make_job("d-alone", "", 1, 1, rest=HOUR),
}
PRICES = """\
currency: EUR
prices:
  - {resource: nvidia.com/gpu, match: {flavor: h100}, hourly: 3.2}
  - {resource: nvidia.com/gpu, match: {nodeSelector: {gpu: a100}}, hourly: 1.5}
  - {resource: nvidia.com/gpu, match: {environment: local}, hourly: 0.1}
"""
