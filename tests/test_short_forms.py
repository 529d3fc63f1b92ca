"""Short forms of jobs and overlays: mistakes are findings on their lines, and no value raises an exception."""

import json

import pytest
from sampling import sample
from transcripts import write_files

import jobgen
from jobgen.rendering.patch_objects import rewrite_images
from jobgen.spec.overlay import ImageChange

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  resources: {cpu: 4, memory: 16Gi}
  volumes: {data: {pvc: datasets, mountPath: /data}}
"""
FETCH = 'image: "registry.example.com/fetch:1"'


def list_problems(folder, job, overlays=()):
    """The errors and warnings of a repository, as `line: message [rule]`."""
    files = {"jobgen.yaml": "{}\n", "jobs/job.yaml": job}
    for name, spec in dict(overlays).items():
        files[f"overlays/{name}/overlay.yaml"] = f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n{spec}"
    write_files(folder, {path: text.encode() for path, text in files.items()})
    found = jobgen.lint(folder).findings
    return [f"{each.location.line}: {each.message} [{each.rule}]" for each in found if each.severity.value != "info"]


CONTAINERS = {
    "no image": ("fetch: {command: [a]}", "9: container `fetch` requires `image`; set it [missing-pod-field]"),
    "unknown volume": (
        f"fetch: {{{FETCH}, mounts: {{dat: /data}}}}",
        "9: the pod has no volume `dat`; did you mean `data`? [unknown-volume]",
    ),
    "mount without a path": (
        f"fetch: {{{FETCH}, mounts: {{data: {{readOnly: true}}}}}}",
        "9: a mount needs `mountPath` [missing-field]",
    ),
    "mount of a list": (
        f"fetch: {{{FETCH}, mounts: {{data: [/data]}}}}",
        "9: `data` is a list, and must be a mapping or a string; write `data: /data` [wrong-type]",
    ),
    "unknown field": (
        f"fetch: {{{FETCH}, comand: [a]}}",
        "9: `comand` is not a field of a container; did you mean `command`? [unknown-field]",
    ),
    "text": (
        "fetch: registry.example.com/fetch:1",
        (
            "9: `fetch` is `registry.example.com/fetch:1`, and must be a mapping; "
            "write `fetch: {image: registry.example.com/fetch:1}` [wrong-type]"
        ),
    ),
    "unknown resource": (
        f"fetch: {{{FETCH}, resources: {{gpus: 1}}}}",
        "9: containers cannot request the resource `gpus`; write `gpu` [unknown-resource]",
    ),
    "no quantity": (
        f"fetch: {{{FETCH}, resources: {{memory: 4 GB}}}}",
        "9: `memory` is `4 GB`, and must be a quantity such as `4G` or `4Gi` [invalid-quantity]",
    ),
    "two sources": (
        f"fetch: {{{FETCH}, env: {{A: {{secretKeyRef: {{name: a, key: b}}, fieldRef: {{fieldPath: c}}}}}}}}",
        "9: `A` of `env` has 2 sources, `secretKeyRef` and `fieldRef`; remove all but one [conflicting-env]",
    ),
    "name of the main container": (
        f"pytorch: {{{FETCH}}}",
        "9: two containers of the pod are named `pytorch`; rename one of them [duplicate-container-name]",
    ),
    "deletion of nothing": (
        f"fetch: {{{FETCH}}}, none: null",
        "9: `none: null` deletes nothing; remove it [deletes-nothing]",
    ),
}


@pytest.mark.parametrize("field", ["initContainers", "sidecars"])
@pytest.mark.parametrize("case", CONTAINERS)
def test_mistake_in_a_container_is_one_finding_on_its_line(tmp_path, field, case):
    text, message = CONTAINERS[case]

    [problem] = list_problems(tmp_path, f"{JOB}  {field}: {{{text}}}\n")

    assert problem == message


def test_container_that_is_listed_twice_is_reported(tmp_path):
    item = "{name: fetch, image: registry.example.com/fetch:1}"

    [problem] = list_problems(tmp_path, f"{JOB}  initContainers:\n    - {item}\n    - {item}\n")

    assert problem == "11: `fetch` is listed twice; rename one [duplicate-container-name]"


HOSTILE = [
    "x",
    1,
    0.5,
    True,
    None,
    [],
    {},
    [None],
    [[]],
    [{}],
    {"a": None},
    {"a": {"b": {"c": [{}]}}},
    {"": ""},
    [1, "a"],
]


def nest(fields, value):
    """A value at the end of a path of fields; `-` is an item of a list."""
    for field in reversed(fields.split(".")):
        value = [value] if field == "-" else {field: value}
    return value


CONTAINER_PATHS = """
    a - a.env a.env.B a.resources a.resources.limits a.ports a.mounts a.mounts.data a.mounts.data.mountPath a.image
    a.$patch a.securityContext a.volumeMounts
""".split()
SOURCE_PATHS = "a a.env a.env.B a.prefix a.mountPath a.items a.items.b a.defaultMode a.optional a.$patch a.data".split()
JOB_PATHS = [
    path
    for field, below in {
        "initContainers": CONTAINER_PATHS,
        "sidecars": CONTAINER_PATHS,
        "secrets": SOURCE_PATHS,
        "configs": SOURCE_PATHS,
    }.items()
    for path in (field, *(f"{field}.{each}" for each in below))
] + ["serviceAccount", "serviceAccount.name", "serviceAccount.create", "serviceAccount.annotations"]


@pytest.mark.parametrize("path", sample(JOB_PATHS, 3))
def test_hostile_value_in_a_job_raises_nothing(tmp_path, path):
    for number, value in enumerate(HOSTILE):
        spec = {"framework": "pytorch", "image": "a:1", **nest(path, value)}
        job = {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob", "metadata": {"name": f"j{number}"}, "spec": spec}
        write_files(tmp_path, {"jobgen.yaml": b"{}\n", f"jobs/{number}.yaml": json.dumps(job).encode()})

    assert jobgen.lint(tmp_path).findings is not None


def test_gpus_of_sidecars_count_beside_those_of_the_main_container(tmp_path):
    container = "{image: registry.example.com/a:1, resources: {gpu: 2}}"
    job = f"{JOB}  queue: small\n  initContainers: {{fetch: {container}}}\n  sidecars: {{eval: {container}}}\n"
    job = job.replace("memory: 16Gi}", "memory: 16Gi, gpu: 1}\n  shm: 1Gi")

    problems = list_problems(tmp_path, job, {"prod": "  cluster: {queues: {small: {gpus: 3}}}\n"})
    assert [problem for problem in problems if "quota" in problem] == []
    problems = list_problems(tmp_path, job, {"prod": "  cluster: {queues: {small: {gpus: 2}}}\n"})
    assert [problem for problem in problems if "3 GPUs" in problem]


MATCHES = {
    "names": ("{exclude: {names: [bert-debug]}}", ["config", "bert", "gpt"]),
    "labels": ("{frameworks: [pytorch], exclude: {labels: {tier: free}}}", ["bert"]),
    "several fields must all match": ("{exclude: {names: ['bert*'], labels: {tier: free}}}", ["config", "bert", "gpt"]),
    "platforms": ("{platforms: [kube*]}", ["bert", "bert-debug", "gpt"]),
    "excluded platforms": ("{exclude: {platforms: [kubeflow]}}", ["config"]),
    "excluded kinds and names": ("{names: ['bert*', gpt], exclude: {kinds: [TFJob]}}", ["bert", "bert-debug"]),
}
MANY = "---\n".join(
    f"""\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {{name: {name}, namespace: ml, labels: {labels}}}
spec: {{framework: {framework}, image: "registry.example.com/a:1", resources: {{cpu: 1, memory: 1Gi}}}}
"""
    for name, labels, framework in [
        ("bert", "{}", "pytorch"),
        ("bert-debug", "{tier: free}", "pytorch"),
        ("gpt", "{tier: paid}", "tensorflow"),
    ]
)
CONFIG = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: ml}\n"


@pytest.mark.parametrize("place", ["jobs", "patches"])
@pytest.mark.parametrize("case", MATCHES)
def test_match_excludes_jobs(tmp_path, place, case):
    match, expected = MATCHES[case]
    patch = f"  patches: [{{match: {match}, manifest: {{metadata: {{annotations: {{patched: 'true'}}}}}}}}]\n"
    overlay = f"  jobs: {match}\n" if place == "jobs" else patch
    write_files(tmp_path, {"jobgen.yaml": b"{}\n", "jobs/job.yaml": (MANY + CONFIG).encode()})
    overlay = f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n{overlay}"
    write_files(tmp_path, {"overlays/prod/overlay.yaml": overlay.encode()})

    metadata = [made.manifest["metadata"] for made in jobgen.render(tmp_path).objects]

    assert [each["name"] for each in metadata if place == "jobs" or "annotations" in each] == expected


MATCH_MISTAKES = {
    "excludes nothing": (
        "{frameworks: [pytorch], exclude: {names: [gpt]}}",
        "4: `exclude` excludes none of the jobs that match: no job has the name `gpt`; change or remove it",
    ),
    "misspelled": (
        "{exclude: {names: [gt]}}",
        "4: `exclude` excludes none of the jobs that match: no job has the name `gt`; did you mean `gpt`?",
    ),
    "one of two": (
        "{exclude: {names: [bert-debug, gtp]}}",
        "4: no job has the name `gtp`; did you mean `gpt`?",
    ),
    "label": (
        "{exclude: {labels: {teir: free}}}",
        "4: `exclude` excludes none of the jobs that match: no job has the label `teir`; did you mean `tier`?",
    ),
    "misspelled platform": (
        "{platforms: [kubeflow, kubefow]}",
        "4: no job has the platform `kubefow`; did you mean `kubeflow`?",
    ),
}


@pytest.mark.parametrize("place", ["jobs", "patches"])
@pytest.mark.parametrize("case", MATCH_MISTAKES)
def test_exclude_that_excludes_nothing_is_a_warning(tmp_path, place, case):
    match, message = MATCH_MISTAKES[case]
    patch = f"  patches: [{{match: {match}, merge: {{labels: {{a: b}}}}}}]\n"

    problems = list_problems(
        tmp_path, MANY, {"prod": f"  jobs: {match}\n" if place == "jobs" else patch, "all": "  {}\n"}
    )

    assert problems == [f"{message} [selector-matches-nothing]"]


WRONG_MATCHES = {
    "no names": ("{names: []}", "the patch matches no job: `names` is empty; change its `match`"),
    "excludes all": ("{names: [gpt], exclude: {names: ['g*']}}", ": `exclude` excludes all jobs that match"),
    "empty": ("{exclude: {}}", "an exclude is empty"),
    "nested": ("{exclude: {exclude: {names: [gpt]}}}", "`exclude` is not a field of an exclude"),
    "list": ("{exclude: [gpt]}", "`exclude` is a list, and must be a mapping"),
    "unknown framework": ("{exclude: {frameworks: [pytorh]}}", "did you mean `pytorch`?"),
    "text": ("{platforms: kubeflow}", "`platforms` is `kubeflow`, and must be a list"),
}


@pytest.mark.parametrize("case", WRONG_MATCHES)
def test_wrong_exclude_is_an_error(tmp_path, case):
    match, message = WRONG_MATCHES[case]

    [problem] = list_problems(
        tmp_path, MANY, {"prod": f"  patches: [{{match: {match}, merge: {{labels: {{a: b}}}}}}]\n"}
    )

    assert problem.startswith("4: ")
    assert message in problem


DIGEST = "sha256:" + "0123456789abcdef" * 4
BY_NAME = {"name": "a.example.com:5000/ml/bert"}
FROM_DOCKER = {"registry": "docker.io", "newRegistry": "mirror.example.com/docker"}
REWRITTEN = [
    ("a.example.com:5000/ml/bert:1.4", BY_NAME | {"newTag": "1.5"}, "a.example.com:5000/ml/bert:1.5"),
    ("a.example.com:5000/ml/bert", BY_NAME | {"newTag": "1.5"}, "a.example.com:5000/ml/bert:1.5"),
    (f"a.example.com:5000/ml/bert:1@{DIGEST}", BY_NAME | {"newTag": "1.5"}, "a.example.com:5000/ml/bert:1.5"),
    ("a.example.com:5000/ml/bert:1.4", BY_NAME | {"digest": DIGEST}, f"a.example.com:5000/ml/bert@{DIGEST}"),
    ("a.example.com:5000/ml/bert:1.4", BY_NAME | {"newName": "b/bert"}, "b/bert:1.4"),
    (f"a.example.com:5000/ml/bert@{DIGEST}", BY_NAME | {"newName": "bert"}, f"bert@{DIGEST}"),
    ("a.example.com:5000/ml/bert:1.4", BY_NAME | {"newName": "bert", "newTag": "2"}, "bert:2"),
    ("a.example.com:5000/ml/bert2:1.4", BY_NAME | {"newTag": "1.5"}, "a.example.com:5000/ml/bert2:1.4"),
    ("ml/bert:1.4", BY_NAME | {"newTag": "1.5"}, "ml/bert:1.4"),
    ("bert:1.4", {"name": "docker.io/library/bert", "newTag": "1.5"}, "bert:1.4"),
    ("bert:1.4", FROM_DOCKER, "mirror.example.com/docker/library/bert:1.4"),
    (f"ml/bert@{DIGEST}", FROM_DOCKER, f"mirror.example.com/docker/ml/bert@{DIGEST}"),
    ("index.docker.io/ml/bert", FROM_DOCKER, "mirror.example.com/docker/ml/bert"),
    ("localhost/bert:1", FROM_DOCKER, "localhost/bert:1"),
    ("docker.io.example.com/bert:1", FROM_DOCKER, "docker.io.example.com/bert:1"),
    ("bert:1", {"registry": "index.docker.io", "newRegistry": "m.io"}, "m.io/library/bert:1"),
    ("ghcr.io/org/a:1", {"registry": "ghcr.io/org", "newRegistry": "m.io/x"}, "m.io/x/a:1"),
    ("ghcr.io/organ/a:1", {"registry": "ghcr.io/org", "newRegistry": "m.io/x"}, "ghcr.io/organ/a:1"),
    ("*:latest", FROM_DOCKER, "*:latest"),
    ("", FROM_DOCKER, ""),
    (1, FROM_DOCKER, 1),
    (None, BY_NAME | {"newTag": "1.5"}, None),
    ({"a": 1}, FROM_DOCKER, {"a": 1}),
]


@pytest.mark.parametrize(("image", "entry", "expected"), REWRITTEN)
def test_image_is_rewritten(image, entry, expected):
    made = {"kind": "Pod", "spec": {"containers": [{"name": "a", "image": image}], "note": {"image": image}}}

    found = rewrite_images(made, [ImageChange(entry, "prod", 0)], (), [])

    assert found == {**made, "spec": {**made["spec"], "containers": [{"name": "a", "image": expected}]}}


IMAGE_MISTAKES = {
    "tag and digest": (
        f'{{name: registry.example.com/bert, newTag: "1", digest: "{DIGEST}"}}',
        "`newTag` and `digest` cannot be combined; remove one of them [invalid-value]",
    ),
    "nothing": ("{name: registry.example.com/bert}", "the entry changes nothing; add `newName`, `newTag` or `digest` "),
    "no name": ('{newTag: "1"}', "the entry names no image; give it `name` and `newTag`, or `registry` and "),
    "empty": ("{}", "the entry names no image; give it `name` and `newTag`, or `registry` and "),
    "no new registry": ("{registry: docker.io}", "the entry has no `newRegistry`; add it [missing-field]"),
    "both forms": (
        "{registry: docker.io, newRegistry: m.io, name: bert}",
        "`registry` and `name` cannot be in one entry; write two entries [invalid-value]",
    ),
    "tag in the name": (
        '{name: "bert:1", newTag: "2"}',
        "`name` is `bert:1`, and must have no tag and no digest; remove them [invalid-value]",
    ),
    "tag in the new name": (
        '{name: bert, newName: "bert:1"}',
        "`newName` is `bert:1`, and must have no tag and no digest; write them in `newTag` or `digest` [invalid-value]",
    ),
    "number": (
        "{name: registry.example.com/bert, newTag: 1.5}",
        "`newTag` is `1.5`, and must be a string; quote it [wrong-type]",
    ),
    "scheme": (
        "{registry: docker.io, newRegistry: https://m.io}",
        "`newRegistry` is `https://m.io`, and must be a registry such as `docker.io`, without `https://` and without",
    ),
    "short digest": (
        "{name: bert, digest: sha256:12}",
        "`digest` is `sha256:12`, and must be a digest: `sha256:` and ",
    ),
    "idle name": (
        '{name: registry.example.com/brt, newTag: "1"}',
        "no container has the image `registry.example.com/brt`; did you mean `registry.example.com/bert`? [patch-",
    ),
    "idle registry": (
        "{registry: docker.io, newRegistry: m.io}",
        "no image is from `docker.io`; change or remove the entry [patch-matches-nothing]",
    ),
    "misspelled": (
        '{name: registry.example.com/bert, newtag: "1"}',
        "`newtag` is not a field of an entry of `images`; did you mean ",
    ),
    "text": ("bert:1", "`images[0]` is `bert:1`, and must be a mapping; write `images: [{name: bert, newTag: "),
}


@pytest.mark.parametrize("case", IMAGE_MISTAKES)
def test_mistake_in_images_is_one_finding_on_its_line(tmp_path, case):
    entry, message = IMAGE_MISTAKES[case]

    [problem] = list_problems(tmp_path, JOB, {"prod": f"  images:\n    - {entry}\n"})

    assert problem.startswith(f"5: {message}")


def test_entry_of_images_may_match_in_another_environment_or_a_paused_job(tmp_path):
    base = '  images: [{name: registry.example.com/bert, newTag: "1.5"}]\n'
    overlays = {"base": base, "a": "  extends: [base]\n  jobs: {names: [x]}\n", "b": "  extends: [base]\n"}
    other = JOB.replace("name: bert,", "name: x,").replace("/bert:", "/x:")
    assert list_problems(tmp_path, f"{JOB}---\n{other}", overlays) == []
    assert [
        each.rule for each in jobgen.lint(tmp_path, environments=["a"]).findings if each.severity.value == "error"
    ] == []

    paused = f"{JOB}  run: {{state: paused}}\n---\n{other}"
    overlays = {"prod": '  images: [{name: registry.example.com/other, newTag: "1"}]\n'}
    assert list_problems(tmp_path / "paused", paused, overlays) == []


def test_images_are_explained_by_their_layer(tmp_path):
    overlay = '  images:\n    - {name: registry.example.com/bert, newTag: "1.5"}\n'
    list_problems(tmp_path, JOB, {"prod": overlay})

    [field] = jobgen.explain(tmp_path, "bert", "image").fields

    assert [(each.value, each.layer, each.location.line) for each in field.sources] == [
        ("registry.example.com/bert:1.5", "images of prod", 5),
        ("registry.example.com/bert:1.4.2", "job", 6),
    ]


SOURCES = {
    "unused": ("hub: {}", "NOUN `hub` is not used; add `env` or `mountPath` [missing-field]"),
    "no variables": ("hub: {env: {}}", "NOUN `hub` is not used; add `env` or `mountPath` [missing-field]"),
    "env is off": ("hub: {env: false}", "NOUN `hub` is not used; add `env` or `mountPath` [missing-field]"),
    "items without a path": (
        "hub: {env: true, items: {a: b}}",
        "NOUN `hub` has `items`, but no `mountPath`; add one [missing-field]",
    ),
    "prefix of single keys": (
        "hub: {env: {A: a}, prefix: B_}",
        "`prefix` of NOUN `hub` has no effect; set `env: true`, or remove it [invalid-value]",
    ),
    "variable is set twice": (
        "hub: {env: {A: a}}, other: {env: {A: b}}",
        "NOUN `other` sets `A`, which is set already; set one of them to null [conflicting-env]",
    ),
    "path is used twice": (
        "hub: {mountPath: /data}",
        "`hub` is mounted at `/data`, but another volume is mounted there; change one of them [conflicting-volume]",
    ),
    "volume is named twice": (
        "a.b: {mountPath: /a}, a-b: {mountPath: /b}",
        "`a-b` adds a volume named `NOUN-a-b`, but there is one already; rename it [conflicting-volume]",
    ),
    "mode is a number": (
        "hub: {mountPath: /a, defaultMode: 0400}",
        "`defaultMode` is `0400`, which YAML reads as `256`, and must be a string; quote it [wrong-type]",
    ),
    "mode is not octal": (
        'hub: {mountPath: /a, defaultMode: "0899"}',
        "`defaultMode` is `0899`, and must be an octal mode such as `0400`, in quotes [invalid-value]",
    ),
    "name": ("hub: token", "`hub` is `token`, and must be a mapping; "),
    "list": ("hub: {env: [A]}", "`env` is a list, and must be a mapping or true or false; for example, write `env: "),
    "misspelled": (
        "hub: {mounPath: /a}",
        "`mounPath` is not a field of a NOUN; did you mean `mountPath`? [unknown-field]",
    ),
    "no key": ("hub: {env: {A: 1}}", "`A` is `1`, and must be a string; quote it [wrong-type]"),
}


@pytest.mark.parametrize("field", ["secrets", "configs"])
@pytest.mark.parametrize("case", SOURCES)
def test_mistake_in_a_secret_or_config_is_one_finding_on_its_line(tmp_path, field, case):
    text, message = SOURCES[case]

    [problem] = list_problems(tmp_path, f"{JOB}  {field}: {{{text}}}\n")

    assert problem.startswith(f"9: {message.replace('NOUN', field.removesuffix('s'))}")


OVERLAY_PATHS = """
    images images.- images.-.name images.-.newTag images.-.registry jobs.exclude jobs.exclude.names jobs.exclude.labels
    jobs.platforms jobs.exclude.platforms.- patches.-.match.exclude patches.-.match.exclude.names.-
""".split()


@pytest.mark.parametrize("path", OVERLAY_PATHS)
def test_hostile_value_in_an_overlay_raises_nothing(tmp_path, path):
    write_files(tmp_path, {"jobgen.yaml": b"{}\n", "jobs/job.yaml": JOB.encode()})
    for number, value in enumerate(HOSTILE):
        overlay = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": nest(path, value)}
        write_files(tmp_path, {f"overlays/o{number}/overlay.yaml": json.dumps(overlay).encode()})

    assert jobgen.lint(tmp_path).findings is not None


def test_new_image_changes_the_hash_of_a_run(tmp_path):
    names = set()
    for tag in ("1.5", "1.6"):
        overlay = f'  images: [{{name: registry.example.com/bert, newTag: "{tag}"}}]\n'
        list_problems(tmp_path, JOB + "  run: {identity: hash}\n", {"prod": overlay})
        names.update(made.identity.name for made in jobgen.render(tmp_path).objects)

    assert len(names) == 2


def render_configs(folder, text, overlays=()):
    """The names of the ConfigMaps of a job, and the findings."""
    problems = list_problems(folder, f"{JOB}  configs: {{{text}}}\n", overlays)
    objects = [] if problems else jobgen.render(folder).objects
    return [made.identity.name for made in objects if made.identity.kind == "ConfigMap"], problems


def test_name_of_an_inline_config_depends_on_its_content(tmp_path):
    first, _ = render_configs(tmp_path, "a: {mountPath: /a, data: {x: one, w: two}}")
    again, _ = render_configs(tmp_path, "a: {data: {w: two, x: one}, mountPath: /b}")
    other, _ = render_configs(tmp_path, "a: {mountPath: /a, data: {x: one, w: three}}")

    assert first == again != other
    assert first[0].startswith("bert-a-")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a/b: {mountPath: /a, data: {x: v}}",
            "9: `a/b` must be lower-case letters, digits, `-` and `.`, because it is ",
        ),
        ("a: {mountPath: /a, data: {x/w: z}}", "9: "),
        ("a: {mountPath: /a, data: {x: 1}}", "9: `x` is `1`, and must be a string; quote it [wrong-type]"),
        ("a: {data: {x: v}}", "9: config `a` is not used; add `env` or `mountPath` [missing-field]"),
    ],
)
def test_mistake_in_an_inline_config_is_one_finding_on_its_line(tmp_path, text, message):
    [problem] = render_configs(tmp_path, text)[1]

    assert problem.startswith(message)


@pytest.mark.parametrize("metadata", ["null", "{name: null}", "{name: null, generateName: bert-}", "{namespace: null}"])
def test_inline_config_of_an_object_without_a_name_raises_nothing(tmp_path, metadata):
    patch = f"  patches: [{{manifest: {{metadata: {metadata}}}}}]\n"

    assert render_configs(tmp_path, "a: {mountPath: /a, data: {x: v}}", {"prod": patch}) is not None


ACCOUNTS = {
    "no name": ("{create: true}", "9: `serviceAccount` has no `name`; add it [missing-field]"),
    "annotations of another": (
        "{name: a, annotations: {b: c}}",
        "9: `annotations` of `serviceAccount` have no effect; set `create: true`, or remove them [invalid-value]",
    ),
    "wrong name": (
        "{name: A_b, create: true}",
        "9: `name` is `A_b`, and must be lower-case letters, digits, `-` and `.`, such as `a-b` [invalid-value]",
    ),
    "list": (
        "[a]",
        "9: `serviceAccount` is a list, and must be a mapping or a string; write `serviceAccount: a` [wrong-type]",
    ),
    "misspelled": (
        "{name: a, craete: true}",
        "9: `craete` is not a field of a service account; did you mean `create`? [unknown-field]",
    ),
}


@pytest.mark.parametrize("case", ACCOUNTS)
def test_mistake_in_a_service_account_is_one_finding_on_its_line(tmp_path, case):
    text, message = ACCOUNTS[case]

    assert list_problems(tmp_path, f"{JOB}  serviceAccount: {text}\n") == [message]
