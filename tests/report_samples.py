"""Pages of made-up data, in the encoding of docs/report_data.md: a fleet of any size, and a pull request."""

from __future__ import annotations

import random
from itertools import count

from jobgen.features.page.page import Line, LineSource, Table, assemble_page, encode, find_changes, parse_repo_url

TEAMS = ("vision", "language", "speech", "ranking", "robotics", "safety", "")
OWNERS = ("ada", "grace", "linus", "edsger", "barbara", "")
QUEUES = ("gpu-a100", "gpu-h100", "spot", "")
KINDS = {"pytorch": "PyTorchJob", "jax": "JAXJob", "tensorflow": "TFJob", "mpi": "MPIJob", "ray": "RayJob"}
ENVIRONMENTS = ("dev", "staging", "prod", "prod-eu", "prod-us")
MODELS = "bert resnet whisper llama gpt t5 vit clip dlrm unet wav2vec mixtral".split()
RULES = (
    ("mutable-image-tag", "image", "warning", "`latest` is a mutable tag; pin a version or a digest"),
    ("idle-gpus", "resources", "warning", "the master requests `8` GPUs and starts one process"),
    ("missing-deadline", "policy", "info", "no deadline ends this run; set `activeDeadlineSeconds`"),
    ("quota-exceeded", "quota", "error", "the namespace allows `64` GPUs, and its jobs request `96`"),
    ("secret-in-env", "security", "error", "`AWS_SECRET_ACCESS_KEY` has a literal value; use `valueFrom.secretKeyRef`"),
    (
        "unknown-field",
        "schema",
        "error",
        "`spec.pytorchReplicaSpecs.Worker.replica` is unknown; did you mean `replicas`?",
    ),
    ("no-memory-limit", "resources", "warning", "the container `pytorch` has no memory limit"),
    ("privileged", "security", "error", "the namespace enforces `restricted`, and the container is privileged"),
)
JOB, KIND = "job", "kind PyTorchJob"
JOB_COLUMNS = ("name:text", "sweep:text", "framework:text", "isJob", "file:files", "line", "spec:specs")
CELL_COLUMNS = (
    *("job:jobs", "environment:environments", "state:text", "reason:text", "kind:text", "namespace:text"),
    *("name:text", "queue:text", "team:text", "owner:text", "pods", "gpus", "cpu", "memory"),
    *("errors", "warnings", "infos", "decision:text", "deadline", "gpuSeconds", "cost", "manifest:manifests"),
)
FINDING_COLUMNS = (
    *("rule:text", "category:text", "severity:text", "message:text", "job:jobs", "environment:environments"),
    *("file:files", "line", "column", "team:text", "status:text"),
)


def make_fleet(
    jobs: int,
    environments: tuple[str, ...] = ENVIRONMENTS,
    *,
    names: tuple[str, ...] = (),
    url: str = "",
    has_manifests: bool = True,
) -> str:
    """Return a page of a fleet; `names` are put in place of names, values and file names of the first jobs."""
    maker = _FleetMaker(environments, names, has_manifests)
    for number in range(jobs):
        maker.add_job(number)
    head = {
        "name": names[0] if names else "training-jobs",
        "revision": "4f2a9c1be07d5a6b8f0e1c2d3a4b5c6d7e8f9012",
        "date": "2026-11-16",
        "url": url,
        "link": parse_repo_url(url).template,
        "prefix": "",
        "jobgen": "0.3.0",
        "since": "v1.4.0",
        "currency": "EUR",
    }
    return assemble_page(f"{head['name']} @ 4f2a9c1be0", encode("fleet", head, maker.list_tables()))


class _FleetMaker:
    def __init__(self, environments: tuple[str, ...], names: tuple[str, ...], has_manifests: bool) -> None:
        self.has_manifests = has_manifests
        self.random = random.Random(7)
        self.environments = environments
        self.names = names
        self.jobs: list[tuple] = []
        self.cells: list[tuple] = []
        self.findings: list[tuple] = []
        self.specs: list[tuple] = []
        self.spec_lines: list[tuple] = []
        self.manifests: list[tuple] = []
        self.manifest_lines: list[tuple] = []

    def add_job(self, number: int) -> None:
        choose = self.random.choice
        model, framework, team = choose(MODELS), choose(tuple(KINDS)), choose(TEAMS)
        sweep = f"{MODELS[number // 12 % len(MODELS)]}-lr-sweep" if number % 97 < 12 and number > 90 else ""
        name = f"{sweep}-{number:03}" if sweep else f"{model}-{choose(('base', 'large', 'finetune', 'eval'))}-{number}"
        hostile = self.names[number % len(self.names)] if self.names else ""
        name, team = hostile or name, hostile or team
        file = hostile or f"jobs/{team or 'shared'}/{name}.yaml"
        self.specs.append((file,))
        self.spec_lines.append(find_changes([(text, ()) for text in _spec_lines(name, framework, hostile)]))
        self.jobs.append((name, sweep, framework, 1, file, 1, number))
        base: list[Line] = []
        base_number = -1
        for env, environment in enumerate(self.environments):
            if self.random.random() < 0.22 and env:
                continue
            state = self.random.choices(("active", "suspended", "inactive", "broken"), (90, 5, 3, 2))[0]
            pods, gpus = choose((1, 2, 4, 4, 8, 16)), choose((0, 1, 2, 4, 8, 8))
            manifest = -1
            if state != "broken" and self.has_manifests:
                lines = [
                    self._to_line(file, *row)
                    for row in self._manifest_rows(name, framework, environment, pods, gpus, hostile)
                ]
                manifest = len(self.manifests)
                self.manifests.append((len(self.cells), base_number))
                self.manifest_lines.append(find_changes(lines, base))
                if base_number < 0:
                    base, base_number = lines, manifest
            found = self._add_findings(number, env, team, hostile, file)
            self.cells.append(
                (
                    *(number, env, state, "it is suspended in Git" if state == "suspended" else ""),
                    *(
                        hostile or KINDS[framework],
                        f"ml-{team or 'shared'}-{environment}",
                        name,
                        hostile or choose(QUEUES),
                    ),
                    *(team, hostile or choose(OWNERS), pods, pods * gpus if state == "active" else 0, pods * 8000),
                    *(pods << 35, *found, choose(("", "admitted", "waits", "never")), 0, -1, -1, manifest),
                )
            )

    def _add_findings(self, job: int, env: int, team: str, hostile: str, file: str) -> tuple[int, int, int]:
        counts = {"error": 0, "warning": 0, "info": 0}
        for rule, category, severity, message in RULES:
            if self.random.random() < {"error": 0.012, "warning": 0.07, "info": 0.1}[severity]:
                counts[severity] += 1
                status = "new" if self.random.random() < 0.04 else "known"
                self.findings.append(
                    (hostile or rule, category, severity, hostile or message, job, env, file, 9, 10, team, status)
                )
        return counts["error"], counts["warning"], counts["info"]

    def _manifest_rows(self, name, framework, environment, pods, gpus, hostile):
        defaults, patch = f"defaults of {environment}", f"patch of {environment}"
        is_production = environment.startswith("prod")
        pod = list(_pod_rows(defaults, patch, environment, gpus))
        return [
            ("apiVersion: kubeflow.org/v1", KIND, 2),
            (f"kind: {KINDS[framework]}", KIND, 3),
            ("metadata:", "", 0),
            (f"  name: {name}", JOB, 3),
            (f"  namespace: ml-{environment}", defaults, 4),
            ("  labels:", "", 0),
            (f"    owner: {hostile or 'ada'}", JOB, 3),
            ("spec:", "", 0),
            ("  runPolicy:", "", 0),
            ("    cleanPodPolicy: Running", defaults, 12),
            *([("    backoffLimit: 3", patch, 22)] if is_production else []),
            ("  pytorchReplicaSpecs:", "", 0),
            ("    Master:", "", 0),
            ("      replicas: 1", KIND, 12),
            *pod,
            ("    Worker:", "", 0),
            (f"      replicas: {max(0, pods - 1)}", patch if is_production else JOB, 20),
            *pod,
        ]

    def _to_line(self, file: str, text: str, layer: str, line: int) -> Line:
        if not layer:
            return text, ()
        env = layer.rpartition(" ")[2]
        files = {JOB: file, KIND: "schemas/kubeflow.org/pytorchjob_v1.yaml"}
        sources: tuple[LineSource, ...] = ((layer, files.get(layer, f"overlays/{env}/overlay.yaml"), line, ""),)
        if "replicas" in text and layer != JOB:
            sources = (*sources, (JOB, file, 7, "2"))
        return text, sources

    def list_tables(self) -> list[Table]:
        fixed = self.findings[::31][:24]
        cell = count()
        waiting = self.cells[:40]
        return [
            Table("environments", ("name:text",), [(env,) for env in self.environments]),
            Table("jobs", JOB_COLUMNS, self.jobs),
            Table("cells", CELL_COLUMNS, self.cells),
            Table("findings", FINDING_COLUMNS, self.findings),
            Table("fixed", FINDING_COLUMNS, fixed),
            Table("specs", ("file:files",), self.specs, self.spec_lines),
            Table("manifests", ("cell:cells", "base:manifests"), self.manifests, self.manifest_lines),
            Table(
                "quotas",
                (
                    *(
                        "environment:environments",
                        "kind:text",
                        "name:text",
                        "cohort:text",
                        "flavor:text",
                        "resource:text",
                    ),
                    *("nominal", "used", "borrowed", "lent", "waiting", "borrowingLimit", "lendingLimit"),
                ),
                [
                    (
                        env,
                        "ClusterQueue",
                        self.names[0] if self.names else queue,
                        cohort,
                        flavor,
                        resource,
                        *amounts,
                        16,
                        -1,
                    )
                    for env in range(min(2, len(self.environments)))
                    for queue, cohort, flavor, resource, amounts in _QUOTAS
                ],
            ),
            Table(
                "workloads",
                (
                    *(
                        "environment:environments",
                        "cell:cells",
                        "kind:text",
                        "namespace:text",
                        "name:text",
                        "queue:text",
                    ),
                    *(
                        "clusterQueue:text",
                        "decision:text",
                        "reason:text",
                        "change:text",
                        "behind:text",
                        "evictedBy:text",
                        "obstacle:text",
                    ),
                ),
                [
                    (
                        0,
                        next(cell),
                        row[4],
                        row[5],
                        row[6],
                        row[7],
                        "research",
                        *_DECISIONS[number % len(_DECISIONS)],
                        self.names[0] if self.names else "",
                        "",
                        "",
                    )
                    for number, row in enumerate(waiting)
                ],
            ),
            Table(
                "notes", ("environment:environments", "level:text", "text:text"), [(0, "note", text) for text in _NOTES]
            ),
            Table("runs", ("cell:cells", "scheduled"), [(number, 0) for number in range(len(waiting))]),
            Table(
                "costs",
                (
                    *("environment:environments", "by:text", "name:text", "jobs", "bounded", "priced", "scheduled"),
                    *("gpuSeconds", "cost"),
                ),
                [
                    (0, "team", team, 40 - at, 12 + at, 12, at % 2, 6_625_800 * (at + 1), 4_100_000 * (at + 1))
                    for at, team in enumerate(TEAMS)
                ],
            ),
        ]


_QUOTAS = (
    ("research", "main", "a100", "nvidia.com/gpu", (64, 72, 8, 0, 24)),
    ("research", "main", "a100", "cpu", (512000, 300000, 0, 0, 64000)),
    ("research", "main", "a100", "memory", (4 << 40, 3 << 40, 0, 0, 0)),
    ("production", "main", "h100", "nvidia.com/gpu", (128, 96, 0, 8, 0)),
    ("production", "main", "h100", "cpu", (1024000, 800000, 0, 0, 0)),
    ("evaluation", "main", "a100", "nvidia.com/gpu", (16, 4, 0, 0, 0)),
    ("spot", "", "spot", "nvidia.com/gpu", (32, 32, 0, 0, 40)),
)
_DECISIONS = (
    ("admitted", "it fits the quota of `research`", ""),
    ("admitted", "it fits the quota of `research`", ""),
    ("admitted", "it fits the quota of `research`", ""),
    ("waits", "insufficient unused quota for nvidia.com/gpu in flavor a100, 8 more needed", ""),
    (
        "never",
        "the job requests 256 GPUs, and the cohort has 208",
        "request at most 208 GPUs, or raise the quota by 48",
    ),
    ("borrows", "it borrows 8 GPUs of the cohort `main`", ""),
)
_NOTES = (
    "Kueue 0.19.2, without fair sharing; jobs arrive by priority, then by namespace and queue, then by name",
    "not simulated: time, autoscaling, admission checks, MultiKueue",
    "Git does not know how long a run takes; only deadlines bound it",
)


def make_pull_request(*, text: str = "", url: str = "") -> str:
    """Return the page of a pull request; `text` is put in place of names and values."""
    job, overlay = text or "jobs/vision/bert.yaml", "overlays/prod/overlay.yaml"
    names = [text or f"{model}-large" for model in MODELS]
    effects = ("rejected", "stops-running", "restart", "new-run", "in-place", "no-effect")
    actions = ("changed", "removed", "changed", "added", "changed", "changed")
    why = (
        "Kueue rejects the change while the job is not suspended",
        "the object and its pods are deleted",
        "Kueue queues it again, so its pods are deleted",
        "training starts for the first time",
        "the job is elastic, so pods are added or removed",
        "running pods are never changed; only pods created later use the new value",
    )
    groups, changes, fields, dangers = [], [], [], []
    for number, effect in enumerate(effects):
        members = (1, 2, 14, 1, 3, 48)[number]
        before, after = ((8, 8), (16, 0), (224, 224), (0, 64), (24, 48), (0, 0))[number]
        groups.append((actions[number], effect, text or why[number], members, 0, before, after))
        for member in range(members):
            name = names[(number * 3 + member) % len(names)] + (f"-{member}" if members > 3 else "")
            changes.append(
                (
                    *(
                        1,
                        actions[number],
                        effect,
                        text or why[number],
                        int(effect == "stops-running"),
                        "PyTorchJob",
                        "ml-prod",
                        name,
                        "",
                    ),
                    *(job, 4 + member, before // members, after // members, 0, 0, 0, 0, number),
                )
            )
        if actions[number] == "changed":
            fields.append(
                (
                    *(
                        number,
                        text or "spec.pytorchReplicaSpecs.Worker.template.spec.containers[name=pytorch].image",
                        "replace",
                    ),
                    *(
                        text or '"registry.example.com/train:1"',
                        text or '"registry.example.com/train:2"',
                        effect,
                        text or why[number],
                    ),
                )
            )
    dangers.append(("deletes-running-job", "is deleted and can be running", 1))
    dangers.append(("restarts-long-run", "has no deadline", 3))
    dangers.append(("exceeds-quota", text or "`research` has 64 GPUs, and its jobs request 96", -1))
    finding = (
        "rule:text",
        "category:text",
        "severity:text",
        "message:text",
        "environment:environments",
        "file:files",
        "line",
        "column",
    )
    tables = [
        Table("environments", ("name:text",), [("dev",), ("prod",)]),
        Table(
            "changes",
            (
                *(
                    "environment:environments",
                    "action:text",
                    "effect:text",
                    "why:text",
                    "stops",
                    "kind:text",
                    "namespace:text",
                ),
                *("name:text", "was:text", "file:files", "line", "gpusBefore", "gpusAfter", "cpuBefore", "cpuAfter"),
                *("memoryBefore", "memoryAfter", "group:groups"),
            ),
            changes,
        ),
        Table(
            "groups", ("action:text", "effect:text", "why:text", "members", "hidden", "gpusBefore", "gpusAfter"), groups
        ),
        Table(
            "fields",
            (
                *(
                    "group:groups",
                    "field:text",
                    "op:text",
                    "old:text",
                    "new:text",
                    "effect:text",
                    "why:text",
                ),
            ),
            fields,
        ),
        Table(
            "causes",
            ("old", "layer:text", "file:files", "line", "changes"),
            [(0, "patch of prod", overlay, 20, 14), (0, "job", job, 8, 3), (1, "job", job, 9, 0)],
        ),
        Table(
            "causedBy",
            ("cause:causes", "change:changes", "field:fields"),
            [*((0, number, 1) for number in range(3, 17)), *((1, number, 2) for number in range(18, 21))],
        ),
        Table(
            "wasSetBy",
            ("cause:causes", "change:changes", "field:fields"),
            [(2, number, 1) for number in range(3, 17)],
        ),
        Table(
            "totals",
            (
                *(
                    "environment:environments",
                    "by:text",
                    "name:text",
                    "gpusBefore",
                    "gpusAfter",
                    "cpuBefore",
                    "cpuAfter",
                ),
                *("memoryBefore", "memoryAfter"),
            ),
            [
                (0, "environment", "dev", 40, 40, 0, 0, 0, 0),
                (1, "environment", "prod", 272, 344, 0, 0, 0, 0),
                (1, "team", text or "vision", 120, 184, 0, 0, 0, 0),
                (1, "queue", "gpu-a100", 152, 136, 0, 0, 0, 0),
            ],
        ),
        Table("dangers", ("code:text", "message:text", "change:changes"), dangers),
        Table("findings", finding, [(*RULES[3][:3], text or RULES[3][3], 1, job, 9, 10)]),
        Table("fixed", finding, [(*RULES[0], 1, job, 8, 10), (*RULES[1], 1, job, 12, 10)]),
        Table(
            "queueMoves",
            (
                *("environment:environments", "kind:text", "namespace:text", "name:text", "clusterQueue:text"),
                *("transition:text", "reason:text"),
            ),
            [
                (
                    1,
                    "PyTorchJob",
                    "ml-prod",
                    names[2],
                    "research",
                    "admitted → waits",
                    "insufficient unused quota for nvidia.com/gpu",
                )
            ],
        ),
    ]
    head = {
        "name": text or "training-jobs",
        "revision": "4f2a9c1be0",
        "url": url,
        "link": parse_repo_url(url).template,
        "prefix": "",
        "jobgen": "0.3.0",
        "base": "main",
        "head": "scale-vision",
        "baseRevision": "1c2d3a4b5c",
        "basePrefix": "",
        "headRevision": "4f2a9c1be0",
        "headPrefix": "",
        "added": 1,
        "removed": 2,
        "changed": 66,
        "unchanged": 812,
        "stoppedJobs": 16,
        "stoppedGpus": 240,
    }
    return assemble_page("training-jobs: main → scale-vision", encode("changes", head, tables))


def _pod_rows(defaults: str, patch: str, environment: str, gpus: int):
    is_dev = environment == "dev"
    yield from (
        ("      restartPolicy: OnFailure", KIND, 22),
        ("      template:", "", 0),
        ("        spec:", "", 0),
        ("          containers:", "", 0),
        ("          - name: pytorch", KIND, 16),
        (
            f"            image: registry.example.com/train:{'latest' if is_dev else 'v1.4.2'}",
            patch if is_dev else JOB,
            8,
        ),
        ("            command:", "", 0),
        ("            - python3", JOB, 10),
        ("            - /opt/train.py", JOB, 10),
        ("            - --epochs=1" if is_dev else "            - --epochs=40", JOB, 10),
        ("            resources:", "", 0),
        ("              limits:", "", 0),
        ('                cpu: "8"', defaults, 14),
        ("                memory: 32Gi", defaults, 15),
    )
    if gpus:
        yield f"                nvidia.com/gpu: {gpus}", JOB, 14
    if environment.startswith("prod"):
        yield "          priorityClassName: production", patch, 25


def _spec_lines(name: str, framework: str, hostile: str) -> list[str]:
    return [
        "apiVersion: jobgen.dev/v1",
        "kind: TrainingJob",
        f"metadata: {{name: {name}, labels: {{owner: {hostile or 'ada'}}}}}",
        "spec:",
        f"  framework: {framework}",
        "  # The number of workers is set by the overlays of production.",
        "  replicas: 2",
        "  image: registry.example.com/train:v1.4.2",
        "  imagePullPolicy: Always",
        "  command: [python3, /opt/train.py, --epochs=40]",
        "  roles:",
        "    master: {}",
        "    worker:",
        "      resources: {gpu: 8}",
    ]
