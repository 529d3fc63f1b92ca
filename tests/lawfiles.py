"""Repositories and folders to edit at random: files of every kind that a command reads."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from overlayfiles import MATCHES, Overlay

Maker = Callable[[Random], str]

_JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: {team}}}}}
spec:
  framework: {framework}
  image: registry.example.com/train:{tag}
  resources: {{cpu: 4, memory: 16Gi, gpu: {gpus}}}
  env: {{SEED: "1"{env}}}
  roles: {{worker: {{replicas: {replicas}}}}}
"""
_MORE = (
    "  run: {expires: 2026-06-01}\n",
    "  volumes: {data: {pvc: data, mountPath: /data}}\n",
    "  matrix: {lr: ['1', '2']}\n  command: [train, '${{ matrix.lr }}']\n",
    "  labels: {kueue.x-k8s.io/queue-name: train}\n",
    "  priority: high\n",
)
_REST = (
    "jobs: {labels: {team: nlp}}",
    'jobs: {names: ["b*"]}',
    "jobs: {paths: [jobs/sub/*]}",
    "defaults: {nodeSelector: {pool: gpu}}",
    "defaults: {labels: {fleet: training}}",
    "defaults: {image: registry.example.com/other:latest}",
    "locked: [nodeSelector]",
    "images: [{name: registry.example.com/train, newTag: '3.0'}]",
)
_CHANGES = (
    "merge: {resources: {gpu: 2}}",
    "merge: {image: registry.example.com/other:latest}",
    "merge: {env: {LOG: debug}}",
    "manifest: {spec: {runPolicy: {backoffLimit: 3}}}",
    "manifest: {metadata: {labels: {kueue.x-k8s.io/queue-name: train}}}",
)
_FAULTY_CHANGES = (
    "merge: {nodeSelector: {pool: null}}",
    "merge: {env: {API_TOKEN: hunter2-and-more}}",
    "merge: {replicas: many}",
    "manifest: {metadata: {labels: {fleet: null}}}",
)
_CLAIMING = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: claiming, labels: {team: nlp}}
spec:
  framework: pytorch
  image: registry.example.com/a:1
  podTemplate:
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: claim}]
      containers: [{name: pytorch, resources: {claims: [{name: gpu}]}}]
"""
_CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: claim, namespace: ml}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com, count: {count}}}}}]}}}}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: gpu.nvidia.com}}
spec: {{extendedResourceName: nvidia.com/gpu}}
"""
_DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {{spec: {{type: object, properties: {{size: {{type: {type}}}}}}}}}
"""
_WIDGET = (
    "apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: widget, namespace: ml}}\nspec: {{size: {size}}}\n"
)
_QUEUES = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {{name: gpus}}
spec:
  namespaceSelector: {{}}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: h100
          resources:
            - {{name: cpu, nominalQuota: 100}}
            - {{name: memory, nominalQuota: 400Gi}}
            - {{name: nvidia.com/gpu, nominalQuota: {gpus}}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {{name: train, namespace: ml}}
spec: {{clusterQueue: gpus}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {{name: h100}}
"""
_QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {{name: gpus, namespace: ml}}
spec: {{hard: {{requests.nvidia.com/gpu: "{gpus}"}}}}
"""
_NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {{name: ml, labels: {{{label}}}}}\n"
_VOLUME_CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: ml}}
spec: {{accessModes: [ReadWriteMany], resources: {{requests: {{storage: 1Ti}}}}, storageClassName: nfs}}
"""
_POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: own}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: [CREATE]}}]
  validations: [{{expression: "{expression}", message: not allowed}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: own}}
spec: {{policyName: own, validationActions: [{action}]}}
"""
_KIND = """\
apiVersion: example.dev/v1
kind: DanceJob
platform: kubeflow
operator: {{name: dance-operator}}
frameworks: {{jax: {{}}}}
replicas: {{at: spec.{field}, shape: map}}
roles:
  worker: {{spelling: Worker, replicas: 1}}
single: worker
container: dancer
nameSuffix: "-{{role}}-{{index}}"
"""
_TEAM = """\
apiVersion: jobgen.dev/v1
kind: Team
spec: {{folders: [{folder}], namespaces: [ml], labels: {{owner: nlp}}, budget: {{gpus: {gpus}}}}}
"""
_SETTINGS = (
    "{}\n",
    "# A comment.\nrules: {mutable-image-tag: error}\n",
    "rules: {mutable-image-tag: off, missing-resource-limit: error}\n",
    "environments: [prod]\n",
    "exclude: [jobs/sub/, loose/run.sh]\n",
    "policies: [cost]\n",
    "mandatory: [mutable-image-tag]\n",
    "cluster: {state: cluster/a}\n",
    "exceptions:\n  - {rule: mutable-image-tag, paths: [jobs/sub], reason: x, owner: '@nlp', expires: '2026-06-01'}\n",
)
_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: {app}}}}}
    spec: {{containers: [{{name: web, image: "web:{tag}"}}]}}
"""
_KUSTOMIZATIONS = (
    "resources: [web.yaml]\nnamePrefix: a-\n",
    "resources: [web.yaml]\npatches: [{path: patch.yaml}]\n",
    "resources: [web.yaml, more.yaml]\nconfigMapGenerator: [{name: settings, envs: [.env]}]\n",
    "resources: [../base]\n",
    "resources: [gone.yaml]\n",
)
_FAULTS = 30
"""One of so many choices is faulty, so that most repositories can be rendered."""
_MOVES = ("# A comment.\n", "# jobgen: ignore-file[mutable-image-tag] -- known\n", "\n\n")
_LABELS = ("", "pod-security.kubernetes.io/enforce: restricted")
_STATE = "cluster/a/objects.yaml"


def _choose_or(random: Random, sound: Sequence[str], faulty: Sequence[str]) -> str:
    return random.choice(sound if random.randrange(_FAULTS) else faulty)


def _make_patch(random: Random) -> str:
    matches = [match for match in MATCHES if "nothing" not in match]
    match = _choose_or(random, matches, MATCHES)
    return ", ".join(filter(None, (match, _choose_or(random, _CHANGES, _FAULTY_CHANGES))))


def _make_job(random: Random, name: str) -> str:
    suppressed = "  # jobgen: ignore[mutable-image-tag] -- known"
    text = _JOB.format(
        name=name,
        team=random.choice(("nlp", "vision")),
        framework=_choose_or(random, ("pytorch", "tensorflow"), ("pytorhc",)),
        tag=random.choice(("1.2", "latest", f"latest{suppressed}", f"1.3{suppressed} until 2026-06-01")),
        gpus=random.choice((1, 8)),
        env=_choose_or(random, ("", ", LOG: info"), (", API_TOKEN: hunter2-and-more", ", OLD: null")),
        replicas=_choose_or(random, ("1", "4"), ("-1",)),
    )
    return text + "".join(random.sample(_MORE, random.randrange(3)))


def _make_overlay(random: Random, env: str) -> str:
    cluster = (
        "state: cluster/a",
        'state: "cluster/\\x61"',
        "operators: {training-operator: 1.9.4, kueue: 0.13.4}",
        "complete: [PersistentVolumeClaim]",
        "kubernetes: '1.34', budgets: {teams: {nlp: {gpus: 4}}}",
    )
    chosen = {each.partition(":")[0]: each for each in random.sample(cluster, random.randrange(4))}
    rest = {each.partition(":")[0]: each for each in random.sample(_REST, random.randrange(4))}
    rest |= {"cluster": f"cluster: {{{', '.join(chosen.values())}}}"} if chosen else {}
    extends = "" if env == "base" else _choose_or(random, ("base", ""), ("nowhere",))
    patches = tuple(_make_patch(random) for _ in range(random.randrange(4)))
    return Overlay(extends, random.randrange(3), ("namespace: ml", *rest.values()), patches).write()


def _choose_namespace(random: Random) -> str:
    return _choose_or(random, ("namespace",), ("namespase",))


def _choose(*texts: str) -> Maker:
    return lambda random: random.choice(texts)


def _make_deployment(random: Random) -> str:
    replicas = random.choice((1, "many", "${REPLICAS}", "<replica-count>"))
    return _DEPLOYMENT.format(
        name=random.choice(("web", "Web", "$APP")),
        replicas=replicas,
        app=random.choice(("web", "other")),
        tag=random.choice(("1", "latest")),
    )


JOBS_REPOSITORY: Mapping[str, Maker] = {
    **{f"jobs/{name}.yaml": lambda random, name=name: _make_job(random, name) for name in ("bert", "bart", "gpt")},
    **{f"jobs/sub/{name}.yaml": lambda random, name=name: _make_job(random, name) for name in ("t5", "vit")},
    "jobs/two.yaml": lambda random: f"{_make_job(random, 'one')}---\n{_make_job(random, 'two')}",
    "jobs/claiming.yaml": lambda random: _choose_or(
        random, (_CLAIMING,), (f"{_CLAIMING}---\n{_CLAIM.format(count=1)}",)
    ),
    "jobs/claim.yaml": lambda random: _CLAIM.format(count=random.choice((1, 8))),
    "jobs/definition.yaml": lambda random: _DEFINITION.format(
        type=_choose_or(random, ("integer", "string"), ("oops",))
    ),
    "jobs/widget.yaml": lambda random: _WIDGET.format(size=random.choice((1, "large"))),
    "jobs/queues.yaml": lambda random: _QUEUES.format(gpus=random.choice((4, 64))),
    "jobs/quota.yaml": lambda random: _QUOTA.format(gpus=random.choice((2, 16))),
    "jobs/namespace.yaml": lambda random: _NAMESPACE.format(label=random.choice(_LABELS)),
    "jobs/volume.yaml": lambda random: _VOLUME_CLAIM.format(name=random.choice(("data", "datum"))),
    "jobs/broken.yaml": lambda random: _choose_or(
        random, ("", "# Nothing.\n"), ("a: [\n", "kind: TrainingJob\n", "\udcff\n")
    ),
    **{
        f"overlays/{env}/overlay.yaml": lambda random, env=env: _make_overlay(random, env)
        for env in ("base", "dev", "prod", "prod")
    },
    "overlays/dev/more.json": lambda random: (
        f'{{"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": {{"{_choose_namespace(random)}": "ml"}}}}'
    ),
    "jobgen.yaml": lambda random: _choose_or(random, _SETTINGS, ("rules: {mutable-image-tag: loud}\n",)),
    "policies/own.yaml": lambda random: _POLICY.format(
        expression=_choose_or(
            random,
            ("object.metadata.name != 'bert'", "object.kind != 'Widget'"),
            ("object.spec.size > 1", "has(object."),
        ),
        action=random.choice(("Deny", "Warn")),
    ),
    "policies/namespace.yaml": lambda random: _NAMESPACE.format(label=random.choice(_LABELS)),
    "schemas/example.dev/dancejob_v1.yaml": lambda random: _KIND.format(field=random.choice(("dancers", "steps"))),
    "teams/nlp.yaml": lambda random: _TEAM.format(
        folder=random.choice(("jobs", "jobs/sub")), gpus=random.choice((8, 80))
    ),
    _STATE: lambda random: random.choice(
        (
            _QUEUES.format(gpus=2),
            _QUOTA.format(gpus=4),
            _NAMESPACE.format(label=_LABELS[1]),
            _VOLUME_CLAIM.format(name="lost"),
            _CLAIM.format(count=8),
        )
    ),
    "loose/web.yaml": _make_deployment,
    "loose/kustomization.yaml": _choose(*_KUSTOMIZATIONS),
}
"""How to write each file of a jobs repository."""


OTHER_FOLDER: Mapping[str, Maker] = {
    "base/web.yaml": _make_deployment,
    "base/more.yaml": lambda random: _QUOTA.format(gpus=random.choice((2, "many"))),
    "base/patch.yaml": lambda random: _DEPLOYMENT.format(name="web", replicas="two", app="web", tag="2"),
    "base/kustomization.yaml": _choose(*_KUSTOMIZATIONS),
    "base/.env": _choose("APP=web\nREPLICAS=2\n", "APP=web\nREPLICAS=two\n", "API_TOKEN=hunter2-and-more\n"),
    "prod/kustomization.yaml": _choose(
        "resources: [../base]\nnamespace: ml\n", "resources: [../base]\nnameSuffix: -b\n"
    ),
    "prod/patch.yaml": _choose("apiVersion: v1\nkind: Pod\n", ""),
    "widget.yaml": lambda random: _WIDGET.format(size=random.choice((1, "large"))),
    "definition.yaml": lambda random: _DEFINITION.format(type=random.choice(("integer", "string", "oops"))),
    "web.yaml": _make_deployment,
    ".env": _choose("APP=web\nREPLICAS=2\n", "APP=web\nREPLICAS=two\n"),
    "deploy.sh": _choose(
        "set -a; . ./.env\nenvsubst < web.yaml | kubectl apply -f -\n",
        "sed -i 's/<replica-count>/3/' web.yaml\n",
        "echo web\n",
    ),
    "chart/Chart.yaml": _choose("apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
    "chart/templates/web.yaml": _choose("a: {{ .Values.a }}\n", "apiVersion: v1\nkind: Pod\n"),
    "notes.txt": _choose("web\n"),
}
"""How to write each file of a folder that is no jobs repository."""


class EditedFolder:
    """A folder whose files are edited at random."""

    def __init__(self, folder: Path, makers: Mapping[str, Maker], random: Random, share: float = 0.7) -> None:
        self.folder = folder
        self.random = random
        self._makers = makers
        self.day = 1
        folder.mkdir(parents=True)
        for path, make in makers.items():
            if random.random() < share or path.startswith("overlays/"):
                self.write(path, make(random))

    def write(self, path: str, text: str) -> None:
        """Write a file; what is in the way is removed."""
        full = self.folder / path
        self.remove(path)
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(text.encode("utf-8", "surrogateescape"))

    def remove(self, path: str) -> None:
        """Remove what is at a path."""
        full = self.folder / path
        if full.is_dir() and not full.is_symlink():
            shutil.rmtree(full)
        elif os.path.lexists(full):
            full.unlink()

    def draft(self) -> tuple[str, str]:
        """Return the path of a file and its next text."""
        path = self.random.choice(sorted(self._makers))
        return path, self._makers[path](self.random)

    def edit(self) -> str:
        """Change one thing, and return what."""
        files = sorted(path for path in self._makers if (self.folder / path).is_file())
        path, text = self.draft()
        old = self.random.choice(files) if files else ""
        match self.random.randrange(16):
            case 0 if old:
                self.remove(old)
                return f"remove {old}"
            case 1 if old:
                new = f"{os.path.dirname(old)}/{self.random.choice(('moved.yaml', 'sub/moved.yaml'))}"
                content = (self.folder / old).read_bytes().decode("utf-8", "surrogateescape")
                self.remove(old)
                self.write(new, content)
                return f"move {old} to {new}"
            case 2 | 3 if old:
                before = (self.folder / old).read_bytes().decode("utf-8", "surrogateescape")
                self.write(old, self.random.choice(_MOVES) + before)
                return f"move the lines of {old}"
            case 4 if old and not self.random.randrange(3):
                self.remove(path)
                self.random.choice((self._link, self._link_nowhere, self._make_folder))(path, old)
                return f"replace {path}"
            case 5 if old and not self.random.randrange(3):
                before = (self.folder / old).read_text("utf-8", "surrogateescape")
                self.write(old, before[: self.random.randrange(len(before) + 1)])
                return f"cut {old}"
            case _:
                self.write(path, text)
                return f"write {path}"

    def _link(self, path: str, old: str) -> None:
        full = self.folder / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.symlink_to(os.path.relpath(self.folder / old, full.parent))

    def _link_nowhere(self, path: str, _: str) -> None:
        full = self.folder / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.symlink_to(self.random.choice(("nowhere", "/", full.name)))

    def _make_folder(self, path: str, _: str) -> None:
        (self.folder / path).mkdir(parents=True)

    def edit_tree(self) -> str:
        """Change a file of the rendered tree by hand."""
        files = sorted(each for each in (self.folder / "rendered").rglob("*") if each.is_file())
        if not files:
            return "no tree"
        chosen = self.random.choice(files)
        if self.random.randrange(3):
            chosen.write_bytes(chosen.read_bytes() + b"# edited\n")
        else:
            chosen.unlink()
        return f"edit {chosen.name}"

    def commit(self) -> str:
        """Commit everything; time goes on."""
        self.day += self.random.choice((0, 1, 200))
        date = f"{2026 + self.day // 365}-{1 + self.day % 365 // 31:02}-15T00:00:00Z"
        if not (self.folder / ".git").exists():
            self._git(date, "init", "-q")
        self._git(date, "add", "-A")
        self._git(date, "commit", "-q", "--allow-empty", "-m", "x")
        return f"commit at {date}"

    def _git(self, date: str, *words: str) -> None:
        who = {f"GIT_{role}_{what}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        dates = {f"GIT_{role}_DATE": date for role in ("AUTHOR", "COMMITTER")}
        env = {**os.environ, **who, **dates, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(["git", *words], cwd=self.folder, check=True, env=env, capture_output=True)
