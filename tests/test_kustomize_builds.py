"""jobgen's own build of kustomizations equals that of kubectl, field by field and for made-up ones."""

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kustomize_samples import KUBECTL, PLUGIN, run_kubectl, write_files
from sampling import examples, sample

from jobgen.kustomize import build
from jobgen.kustomize.select import matches_labels
from jobgen.kustomize.tree import FolderTree, Tool

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {tier: front}
  annotations: {note: "1"}
spec:
  replicas: 1
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
  template:
    metadata: {labels: {tier: front}}
    spec:
      serviceAccountName: runner
      initContainers: [{name: init, image: busybox}]
      containers:
      - name: main
        image: nginx:1.25
        args: [--host, $(HOST)]
        env:
        - {name: A, value: "1"}
        - {name: B, valueFrom: {configMapKeyRef: {name: settings, key: b}}}
        ports: [{containerPort: 80, protocol: TCP}, {containerPort: 81}]
        volumeMounts: [{name: data, mountPath: /data}]
      - {name: side, image: registry.example.com:5000/team/side@sha256:abc}
      volumes:
      - {name: data, emptyDir: {}}
      - {name: config, configMap: {name: settings}}
      - {name: claim, persistentVolumeClaim: {claimName: disk}}
"""
OTHERS = """apiVersion: v1
kind: Service
metadata: {name: web, namespace: other}
spec: {selector: {tier: front}, ports: [{port: 80, name: http}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner}
---
apiVersion: v1
kind: Namespace
metadata: {name: base}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get], resourceNames: [settings]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects:
- {kind: ServiceAccount, name: runner, namespace: default}
- {kind: ServiceAccount, name: default, namespace: default}
- {kind: ServiceAccount, name: stranger, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: local}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: runner}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: check}
webhooks:
- name: a.example.com
  clientConfig: {service: {name: web, namespace: other, path: /x}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trains.example.com}
spec:
  group: example.com
  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: web, namespace: other}}}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.example.com}
spec: {service: {name: web, namespace: other}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {storageClassName: fast}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: other}
spec: {defaultBackend: {service: {name: web}}, tls: [{secretName: cert}], rules: [{host: $(HOST)}]}
---
apiVersion: example.com/v1
kind: Train
metadata: {name: t}
spec:
  parts: [{name: a, size: 1}, {name: b, size: 2}]
  template: {spec: {containers: [{name: x, image: nginx}]}}
  podTemplate: {containers: [{name: y, image: "nginx:2"}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  jobTemplate: {spec: {template: {spec: {containers: [{name: x, image: nginx, envFrom: [{secretRef: {name: keys}}]}]}}}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: "1", b: "x=1,y=2"}}
- {apiVersion: v1, kind: Secret, metadata: {name: keys}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec: {serviceName: web, volumeClaimTemplates: [{metadata: {name: d}}], template: {spec: {containers: []}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: local, annotations: {config.kubernetes.io/local-config: "true"}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {matchLabels: {tier: front}}, ingress: [{from: [{podSelector: {matchLabels: {a: b}}}]}]}
"""
BASE = {"web.yaml": DEPLOYMENT, "others.yaml": OTHERS}
PATCH = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
POD = "spec:\n  template:\n    spec:\n"
CONTAINER = f"{PATCH}{POD}      containers:\n      - name: main\n        "

# The fields of a kustomization of the objects above, and more files.
CASES = {
    "resources": ("", {}),
    "namespace": ("namespace: prod", {}),
    "prefix and suffix": ("namePrefix: a-\nnameSuffix: -z", {}),
    "all names": ("namespace: prod\nnamePrefix: a-\nnameSuffix: -z", {}),
    "common labels": ("commonLabels: {app: web, tier: back}", {}),
    "labels": ("labels: [{pairs: {app: web}}]", {}),
    "labels with selectors": ("labels: [{pairs: {app: web}, includeSelectors: true}]", {}),
    "labels with templates": ("labels: [{pairs: {app: web}, includeTemplates: true}]", {}),
    "labels of fields": (
        "labels: [{pairs: {app: web}, fields: [{path: spec/labels, kind: Train, create: true}]}]",
        {},
    ),
    "annotations": ("commonAnnotations: {owner: ml}", {}),
    "image tag": ("images: [{name: nginx, newTag: '2'}]", {}),
    "image name": ("images: [{name: nginx, newName: example.com/nginx}]", {}),
    "image digest": ("images: [{name: nginx, digest: 'sha256:123'}, {name: busybox, newName: b, newTag: '1'}]", {}),
    "image with a port": ("images: [{name: registry.example.com:5000/team/side, newTag: v1}]", {}),
    "image by pattern": ("images: [{name: '.*/team/(side|main)', newName: x}]", {}),
    "image by a group": ("images: [{name: '(nginx|busybox)', newTag: x}]", {}),
    "image by alternatives": ("images: [{name: 'busy|nginx', newTag: x}]", {}),
    "image by a class": ("images: [{name: '[a-n]ginx', newTag: x}, {name: 'x?busybox', newTag: z}]", {}),
    "replicas": ("replicas: [{name: web, count: 3}, {name: db, count: 0}]", {}),
    "a patch": ("patches: [{path: p.yaml}]", {"p.yaml": f"{PATCH}spec: {{replicas: 5, paused: true}}\n"}),
    "an inline patch": (
        f"patches:\n- patch: |-\n    {PATCH.replace(chr(10), chr(10) + '    ')}spec: {{replicas: 5}}",
        {},
    ),
    "a patch of containers": (
        "patches: [{path: p.yaml}]",
        {"p.yaml": f"{CONTAINER}env: [{{name: C, value: c}}, {{name: A, value: '2'}}]\n        image: other\n"},
    ),
    "a patch of ports": (
        "patches: [{path: p.yaml}]",
        {"p.yaml": f"{CONTAINER}ports: [{{containerPort: 81, name: x}}, {{containerPort: 82}}]\n"},
    ),
    "a patch that deletes": (
        "patches: [{path: p.yaml}]",
        {
            "p.yaml": f"{CONTAINER}env: [{{name: A, $patch: delete}}]\n        args: null\n"
            "      volumes: [{name: data, $patch: delete}]\n"
        },
    ),
    "a patch that replaces": (
        "patches: [{path: p.yaml}]",
        {
            "p.yaml": f"{CONTAINER}env: [{{$patch: replace}}, {{name: Z, value: z}}]\n"
            "  strategy: {$patch: replace, type: Recreate}\n"
        },
    ),
    "a patch that deletes an object": (
        "patches: [{path: p.yaml}]",
        {"p.yaml": f"$patch: delete\n{PATCH}"},
    ),
    "patches in one file": (
        "patches: [{path: p.yaml}]",
        {
            "p.yaml": f"{PATCH}spec: {{replicas: 5}}\n---\napiVersion: v1\nkind: ServiceAccount\n"
            "metadata: {name: runner, annotations: {a: b}}\nimagePullSecrets: [{name: keys}]\n"
        },
    ),
    "a patch of a custom object": (
        "patches: [{path: p.yaml}]",
        {
            "p.yaml": "apiVersion: example.com/v1\nkind: Train\nmetadata: {name: t}\n"
            "spec: {parts: [{name: b, size: 3}], new: {a: null, b: [null, 1]}}\n"
        },
    ),
    "targets": (
        (
            "patches:\n"
            "- {target: {kind: 'Deployment|StatefulSet'}, path: p.yaml}\n"
            "- {target: {group: apps, version: v1, name: 'w.*', labelSelector: 'tier in (front),!x'}, path: p2.yaml}\n"
            "- {target: {kind: Service, namespace: oth.r, annotationSelector: 'note!=1'}, path: p2.yaml}"
        ),
        {
            "p.yaml": "apiVersion: x\nkind: x\nmetadata: {name: x, labels: {added: y}}\n",
            "p2.yaml": "apiVersion: x\nkind: x\nmetadata: {name: x, annotations: {added: y}}\n",
        },
    ),
    "a change of name and kind": (
        (
            "namePrefix: a-\npatches: [{path: p.yaml, target: {kind: ServiceAccount},"
            " options: {allowNameChange: true}},"
            " {path: k.yaml, target: {kind: Train}, options: {allowKindChange: true}}]"
        ),
        {
            "p.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: walker}\n",
            "k.yaml": "apiVersion: v1\nkind: Bus\nmetadata: {name: other}\n",
        },
    ),
    "JSON patches": (
        (
            "patches:\n- target: {kind: Deployment}\n  patch: |-\n"
            "    - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: D, value: d}}\n"
            "    - {op: replace, path: /spec/replicas, value: 7}\n"
            "    - {op: replace, path: /spec/missing, value: 7}\n"
            "    - {op: remove, path: /metadata/annotations/note}\n"
            "    - {op: add, path: /metadata/labels/a~1b, value: c}\n"
            "    - {op: test, path: /spec/replicas, value: 7}\n"
            "- {target: {kind: Train}, path: p.json}"
        ),
        {"p.json": '[{"op": "move", "from": "/spec/parts/0", "path": "/spec/first"}]'},
    ),
    "old patches": (
        (
            "patchesStrategicMerge:\n- p.yaml\n- |-\n  apiVersion: v1\n  kind: Service\n"
            "  metadata: {name: web, namespace: other}\n  spec: {type: LoadBalancer}\n"
            "patchesJson6902: [{target: {group: apps, version: v1, kind: Deployment, name: web}, path: j.yaml}]"
        ),
        {
            "p.yaml": f"{PATCH}spec: {{replicas: 5}}\n",
            "j.yaml": "- {op: add, path: /spec/paused, value: true}\n",
        },
    ),
    "a generated ConfigMap": (
        (
            "namePrefix: a-\nconfigMapGenerator:\n"
            "- {name: settings, literals: [b=1, 'c=\"<x> & y\"', d=], files: [f.txt, g=f.txt, bin], envs: [e.env]}"
        ),
        {"f.txt": "a\nb\n", "bin": b"\xff\xfe" * 60, "e.env": "# x\nE=1\nF\n G=a=b\n"},
    ),
    "generated objects with options": (
        (
            "generatorOptions: {labels: {g: g, h: h}, annotations: {a: a}}\n"
            "configMapGenerator:\n- {name: settings, namespace: space, literals: [a=1],"
            " options: {labels: {h: own}, immutable: true, disableNameSuffixHash: true}}\n- {name: empty}\n"
            "secretGenerator: [{name: cert, type: kubernetes.io/tls, files: [tls.crt=f.txt], literals: [tls.key=k]},"
            " {name: none}]"
        ),
        {"f.txt": "x" * 200},
    ),
    "generators without hashes": (
        "generatorOptions: {disableNameSuffixHash: true}\nconfigMapGenerator: [{name: settings, env: e.env}]",
        {"e.env": "A=1"},
    ),
    "generators that merge and replace": (
        (
            "configMapGenerator:\n- {name: one, behavior: merge, literals: [a=2, c=3]}\n"
            "secretGenerator: [{name: keys, behavior: replace, literals: [a=2]}]"
        ),
        {},
    ),
    "replacements": (
        (
            "replacements:\n"
            "- source: {kind: ConfigMap, name: one, fieldPath: data.b, options: {delimiter: ',', index: 1}}\n"
            "  targets:\n"
            "  - select: {kind: Deployment}\n"
            "    fieldPaths: ['spec.template.spec.containers.[name=main].env.[name=A].value']\n"
            "  - {select: {kind: Train}, fieldPaths: [spec.parts.*.name]}\n"
            "  - {select: {kind: Train}, fieldPaths: [spec.new.deep], options: {create: true}}\n"
            "- source: {kind: Deployment, name: web, fieldPath: spec.replicas}\n"
            "  targets:\n"
            "  - {select: {kind: ConfigMap}, reject: [{name: local}], fieldPaths: [data.n], options: {create: true}}\n"
            "  - {select: {kind: Train}, fieldPaths: [spec.parts.0.size]}\n"
            "- sourceValue: fixed\n"
            "  targets: [{select: {name: web, kind: Service}, fieldPaths: [spec.ports.0.name],"
            " options: {delimiter: t, index: 1}}]\n"
            "- path: r.yaml"
        ),
        {
            "r.yaml": "source: {kind: Service, name: web}\n"
            'targets: [{select: {kind: Train}, fieldPaths: ["metadata.annotations.[a.b/c]"],'
            " options: {create: true}}]\n"
        },
    ),
    "a copied mapping": (
        (
            "replacements:\n- source: {kind: Deployment, name: web, fieldPath: metadata.labels}\n"
            "  targets: [{select: {kind: Train}, fieldPaths: [spec.labels], options: {create: true}}]"
        ),
        {},
    ),
    "variables": (
        (
            "vars:\n- {name: HOST, objref: {kind: Service, name: web, apiVersion: v1},"
            " fieldref: {fieldPath: metadata.name}}\n"
            "namePrefix: a-"
        ),
        {},
    ),
    "configurations": (
        "namePrefix: a-\ncommonLabels: {x: z}\nconfigurations: [c.yaml]",
        {
            "c.yaml": "nameReference:\n- kind: ServiceAccount\n  fieldSpecs: [{path: spec/first, kind: Train}]\n"
            "commonLabels: [{path: spec/labels, kind: Train, create: true}]\n"
        },
    ),
    "sorted as listed": ("sortOptions: {order: fifo}", {}),
    "sorted by own kinds": (
        "sortOptions: {order: legacy, legacySortOptions: {orderFirst: [Train], orderLast: [Namespace]}}",
        {},
    ),
    "a component": (
        "components: [part]\nnamePrefix: a-",
        {
            "part/kustomization.yaml": "kind: Component\nresources: [x.yaml]\nnamespace: prod\n"
            "images: [{name: nginx, newTag: x}]\n"
            'patches: [{target: {kind: Deployment}, patch: \'[{"op": "remove", "path": "/spec/strategy"}]\'}]\n',
            "part/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
        },
    ),
    "OpenAPI": (
        "openapi: {path: o.json}\npatches: [{path: p.yaml}]",
        {
            "o.json": '{"definitions": {"T": {"x-kubernetes-group-version-kind":'
            ' [{"group": "example.com", "version": "v1",'
            ' "kind": "Train"}], "properties": {"spec": {"properties": {"parts": {"type": "array", "items": {"type":'
            ' "object"}, "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge"}}}}}}}',
            "p.yaml": "apiVersion: example.com/v1\nkind: Train\nmetadata: {name: t}\n"
            "spec: {parts: [{name: b, size: 3}]}\n",
        },
    ),
    "labels of a patch with a target": (
        "patches: [{path: p.yaml, target: {kind: Deployment}}]",
        {"p.yaml": f"{PATCH}  labels: {{tier: null, n: 1}}\n".replace("{name: web}\n", "\n  name: web\n")},
    ),
    "a text at the end of a file": (
        "resources: [y.yaml, z.yaml]",
        {
            "y.yaml": "kind: X\napiVersion: a/v1\nmetadata: {name: y, namespace: a-b}\nspec:\n- |\n  a\n\n  b",
            "z.yaml": "kind: X\napiVersion: a/v1\nmetadata: {name: z, namespace: a}\nspec: |\n  a\n# b",
        },
    ),
    "words of YAML 1.1": (
        "resources: [y.yaml]",
        {"y.yaml": "kind: X\napiVersion: a/v1\nmetadata: {name: yes}\nspec: {on: off, no: 'n', x: [y, true]}\n"},
    ),
}


def built_by_jobgen(folder):
    found = build(FolderTree(folder), "kustomization.yaml")
    assert found.unbuilt == ()
    return found


@pytest.mark.parametrize("name", sample(CASES, 2))
def test_every_field_builds_what_kubectl_builds(name, tmp_path):
    fields, files = CASES[name]
    listed = "" if fields.startswith("resources:") else "resources: [web.yaml, others.yaml]\n"
    write_files(tmp_path, {**BASE, **files, "kustomization.yaml": f"{listed}{fields}\n"})
    expected = run_kubectl(tmp_path)
    assert expected is not None, "kubectl cannot build the case"

    found = built_by_jobgen(tmp_path)

    assert [each.message for each in found.findings if each.severity == "error"] == []
    assert [each.data for each in found.objects] == expected
    assert all(show(each.traced) for each in found.objects), "all values have locations"


OVERLAY = {
    "kustomization.yaml": "resources: [base]\nnamespace: prod\nnamePrefix: p-\nimages: [{name: nginx, newTag: '9'}]\n"
    "configMapGenerator: [{name: settings, behavior: merge, literals: [c=2]}]\n"
    "patches: [{path: p.yaml}, {path: q.yaml, target: {name: b-web, kind: Deployment}}]\n",
    "p.yaml": f"{PATCH}spec: {{replicas: 5}}\n",
    "q.yaml": f"{PATCH}spec: {{paused: true}}\n",
    "base/kustomization.yaml": "resources: [web.yaml, others.yaml]\nnamePrefix: b-\nnameSuffix: -s\n"
    "configMapGenerator: [{name: settings, literals: [b=1]}]\ncommonLabels: {app: web}\n",
    "base/web.yaml": DEPLOYMENT,
    "base/others.yaml": OTHERS,
}


def test_an_overlay_builds_what_kubectl_builds(tmp_path):
    write_files(tmp_path, OVERLAY)

    assert [each.data for each in built_by_jobgen(tmp_path).objects] == run_kubectl(tmp_path)


def show(node):
    """A traced tree with the locations and layers of its values."""
    if isinstance(node, dict):
        # A JSON patch adds keys without locations of their own.
        return {(str(key), str(getattr(key, "location", ""))): show(value) for key, value in node.items()}
    if isinstance(node, list):
        return [show(item) for item in node]
    return node.value, str(node.location), node.layer


def test_the_values_of_a_tool_have_the_locations_of_the_own_build(tmp_path):
    write_files(tmp_path, OVERLAY | {"kustomization.yaml": OVERLAY["kustomization.yaml"] + PLUGIN})
    own = build(FolderTree(tmp_path), "kustomization.yaml")

    found = build(FolderTree(tmp_path), "kustomization.yaml", Tool("kubectl", KUBECTL))

    assert (own.by, found.by) == ("jobgen", "kubectl")
    assert [show(each.traced) for each in found.objects] == [show(each.traced) for each in own.objects]


def test_a_tool_builds_what_jobgen_cannot(tmp_path):
    transformer = (
        "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\nprefix: t-\n"
        "fieldSpecs: [{path: metadata/name}]\n"
    )
    text = "resources: [web.yaml]\ntransformers: [t.yaml]\n"
    write_files(tmp_path, {**BASE, "kustomization.yaml": text, "t.yaml": transformer})
    own = build(FolderTree(tmp_path), "kustomization.yaml")

    found = build(FolderTree(tmp_path), "kustomization.yaml", Tool("kubectl", KUBECTL))

    assert own.unbuilt == ("`t.yaml` in `transformers` of `kustomization.yaml` is a plugin",)
    assert (found.by, found.unbuilt) == ("kubectl", ())
    (deployment,) = found.objects
    assert deployment.data["metadata"]["name"] == "t-web"
    assert deployment.traced["spec"]["replicas"].location.line == 8


NAMES = st.sampled_from(["web", "api", "job"])
KINDS = {
    "Deployment": "apps/v1",
    "Service": "v1",
    "ConfigMap": "v1",
    "Train": "example.com/v1",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
}
WORDS = st.sampled_from(["a", "b", "c"])
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": WORDS},
        optional={
            "image": st.sampled_from(["nginx", "nginx:1", "busybox@sha256:1"]),
            "env": st.lists(st.fixed_dictionaries({"name": WORDS, "value": WORDS}), max_size=3),
            "ports": st.lists(
                st.fixed_dictionaries({"containerPort": st.sampled_from([80, 81])}, optional={"name": WORDS}),
                max_size=2,
            ),
        },
    ),
    max_size=3,
    unique_by=lambda each: each["name"],
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 3),
        "template": st.fixed_dictionaries(
            {"spec": st.fixed_dictionaries({}, optional={"containers": CONTAINERS, "serviceAccountName": NAMES})}
        ),
        "other": st.recursive(
            st.none() | st.integers(0, 2) | WORDS,
            lambda below: (
                st.lists(below.filter(lambda each: each is not None), max_size=2)
                | st.dictionaries(WORDS, below, max_size=2)
            ),
            max_leaves=4,
        ),
    },
)
METADATA = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "labels": st.dictionaries(WORDS, WORDS, max_size=2),
        "annotations": st.dictionaries(WORDS, WORDS, max_size=2),
    },
)
OBJECTS = st.builds(
    lambda kind, metadata, spec: {"apiVersion": KINDS[kind], "kind": kind, "metadata": metadata, "spec": spec},
    st.sampled_from(sorted(KINDS)),
    METADATA,
    SPECS,
)
# kustomize lets the fields of an object share the labels that it adds, so a patch of one of them changes all others.
ADDED = st.sampled_from(["d", "e"])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "namespace": WORDS,
        "namePrefix": st.sampled_from(["p-", "q-"]),
        "nameSuffix": st.just("-s"),
        "commonLabels": st.dictionaries(ADDED, WORDS, min_size=1, max_size=2),
        "labels": st.lists(
            st.fixed_dictionaries({"pairs": st.just({"l": "x"}), "includeTemplates": st.booleans()}),
            min_size=1,
            max_size=1,
        ),
        "commonAnnotations": st.dictionaries(ADDED, WORDS, min_size=1, max_size=1),
        "images": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["nginx", "busybox"])}, optional={"newTag": WORDS, "newName": WORDS}
            ),
            min_size=1,
            max_size=2,
        ),
    },
)


@settings(
    max_examples=examples(8),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    objects=st.lists(OBJECTS, min_size=1, max_size=4, unique_by=lambda each: (each["kind"], each["metadata"]["name"])),
    base=FIELDS,
    top=FIELDS,
    patched=st.lists(st.tuples(st.integers(0, 3), SPECS, METADATA), max_size=2),
)
def test_made_up_kustomizations_build_what_kubectl_builds(objects, base, top, patched, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made-up")
    patches = []
    for at, spec, metadata in patched:
        like = objects[at % len(objects)]
        patches.append({**like, "metadata": {**metadata, "name": like["metadata"]["name"]}, "spec": spec})
    files = {
        "base/objects.yaml": yaml.safe_dump_all(objects),
        "base/kustomization.yaml": yaml.safe_dump({"resources": ["objects.yaml"], **base}),
        **{f"patch{number}.yaml": yaml.safe_dump(patch) for number, patch in enumerate(patches)},
        "kustomization.yaml": yaml.safe_dump(
            {
                "resources": ["base"],
                "patches": [
                    {
                        "path": f"patch{number}.yaml",
                        "target": {"kind": patch["kind"], "name": patch["metadata"]["name"]},
                    }
                    for number, patch in enumerate(patches)
                ],
                **top,
            }
        ),
    }
    write_files(folder, files)
    expected = run_kubectl(folder)

    found = build(FolderTree(folder), "kustomization.yaml")

    errors = [each.message for each in found.findings if each.severity == "error"]
    assert bool(errors) == (expected is None), errors
    if expected is not None:
        assert [each.data for each in found.objects] == expected


@pytest.mark.parametrize("value", ["--5", "-", "five", "٥", ""])
def test_labels_that_are_no_numbers_are_neither_greater_nor_less(value):
    assert not matches_labels({"rank": value}, "rank>3")
    assert not matches_labels({"rank": value}, "rank<3")
