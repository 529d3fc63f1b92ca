"""Properties of merge; then merges of manifests of real kinds, as overlays do them."""

from copy import deepcopy

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws

from jobgen.model.data import Location, TracedKey, TracedList, TracedScalar, location_of, untraced
from jobgen.rendering import config
from jobgen.rendering.render_task import render_jobs
from jobgen.spec.merge import LIST_KEYS, merge

WORDS = st.sampled_from(["a", "b", "c"])
KEYS = st.lists(st.sampled_from(["word", "map", "list", "env", "ports", "containers"]), max_size=3, unique=True)


@st.composite
def trees(draw, *, nulls=False, repeats=False, depth=2):
    """Maps of maps; a key always holds the same type, and items of a keyed list have their keys."""
    tree = {}
    for key in draw(KEYS):
        if nulls and draw(st.integers(0, 3)) == 0:
            tree[key] = None
        elif key == "word" or depth == 0:
            tree["word"] = draw(WORDS)
        elif key == "list":
            tree[key] = draw(st.lists(WORDS, max_size=2))
        elif key == "map":
            tree[key] = draw(trees(nulls=nulls, repeats=repeats, depth=depth - 1))
        else:
            tree[key] = [
                {**identified, **draw(trees(nulls=nulls, repeats=repeats, depth=depth - 1))}
                for identified in draw(identities(key, repeats=repeats))
            ]
    return tree


def identities(name, *, repeats):
    if name != "ports":
        return st.lists(st.fixed_dictionaries({"name": WORDS}), max_size=3, unique_by=None if repeats else str)
    port = st.fixed_dictionaries(
        {"containerPort": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"])}
    )
    return st.lists(port, max_size=3, unique_by=None if repeats else lambda item: identity(item, "ports"))


def identity(item, name):
    return tuple(item.get(key, "TCP") for key in LIST_KEYS[name])


FULL = trees()
PATCHES = trees(nulls=True)
REPEATING = trees(repeats=True)
MAPS = st.dictionaries(
    st.sampled_from(["word", "map", "env", "ports"]),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(0, 1), st.sampled_from(["a", "b", "delete", "replace"])),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["word", "name", "value", "env", "ports", "$patch"]), inner, max_size=3),
        ),
        max_leaves=8,
    ),
    max_size=3,
)
"""Arbitrary trees."""


def traced(tree, file):
    """The tree as it would be read with places: every scalar, key and list on a line of its own."""
    count = iter(range(1, 1_000_000))

    def walk(node):
        location = Location(file, next(count))
        if isinstance(node, dict):
            return {TracedKey.at(key, Location(file, next(count))): walk(value) for key, value in node.items()}
        if isinstance(node, list):
            return TracedList([walk(value) for value in node], location)
        return TracedScalar(node, location)

    return walk(tree)


def merged(base, over):
    return merge(base, over, [])


def without_nulls(tree, name=""):
    """The result of a patch of nothing."""
    if isinstance(tree, dict):
        return {key: without_nulls(value, key) for key, value in tree.items() if value is not None}
    if isinstance(tree, list) and name in LIST_KEYS:
        return [without_nulls(item) for item in tree]
    return tree


@laws(13)
@given(MAPS)
def test_empty_patch_changes_nothing(tree):
    assert merged(tree, {}) == tree


@laws(13)
@given(PATCHES)
def test_patch_of_nothing_is_the_patch_without_nulls(patch):
    assert merged({}, patch) == without_nulls(patch)


@laws(13)
@given(MAPS, MAPS)
def test_merge_is_idempotent(base, patch):
    once = merged(base, patch)

    assert merged(once, patch) == once


@laws(13)
@given(MAPS, MAPS)
def test_merge_does_not_modify_its_arguments(base, patch):
    before = deepcopy((base, patch))

    merged(base, patch)

    assert (base, patch) == before


@laws(13)
@given(REPEATING, REPEATING, REPEATING)
def test_merge_without_nulls_is_associative(one, two, three):
    assert merged(merged(one, two), three) == merged(one, merged(two, three))


@laws(13)
@given(MAPS, MAPS)
def test_locations_do_not_change_the_merge(base, patch):
    assert untraced(merged(traced(base, "base"), traced(patch, "patch"))) == merged(base, patch)


def words(tree, path=()):
    """Every scalar that is reached through maps alone."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from words(value, (*path, str(key)))
        elif not isinstance(value, list):
            yield (*path, str(key)), value


@laws(13)
@given(FULL, PATCHES)
def test_merged_value_has_its_location_and_the_value_it_replaced(base, patch):
    below, above = traced(base, "base"), traced(patch, "patch")
    losers, winners = dict(words(below)), dict(words(above))

    result = dict(words(merged(below, above)))

    for path, leaf in result.items():
        if path in winners:
            assert leaf.location == winners[path].location
            assert leaf.overridden is losers.get(path)
        else:
            assert leaf is losers[path]


@laws(13)
@given(FULL, PATCHES)
def test_null_deletes_and_records_whether_the_value_existed(base, patch):
    deletions = []
    present = {path for path, _ in nodes(base)}
    nulls = [path for path, value in nodes(patch) if value is None]

    result = merge(base, patch, deletions)

    assert not {path for path, _ in nodes(result)} & set(nulls)
    assert [(deletion.key, deletion.found) for deletion in deletions] == [(path[-1], path in present) for path in nulls]


def nodes(tree, path=()):
    """Every value under a key in the order of a walk; an item of a keyed list goes by its key."""
    for key, value in tree.items():
        yield (*path, key), value
        if isinstance(value, dict):
            yield from nodes(value, (*path, key))
        elif isinstance(value, list) and key in LIST_KEYS:
            for item in value:
                yield from nodes(item, (*path, key, identity(item, key)))


@laws(13)
@given(REPEATING, REPEATING)
def test_keyed_lists_keep_the_order_of_the_base(base, patch):
    result = merged(base, patch)

    for name in LIST_KEYS:
        before = [identity(item, name) for item in base.get(name, [])]
        new = [identity(item, name) for item in patch.get(name, []) if identity(item, name) not in before]
        after = [identity(item, name) for item in result.get(name, [])]
        assert after == before + list(dict.fromkeys(new))


@pytest.mark.parametrize("name", LIST_KEYS)
def test_keyed_lists_merge_by_their_key(name):
    first = LIST_KEYS[name][0]
    base = {name: [{first: 1, "kept": "base", "word": "base"}, {first: 2, "word": "base"}]}
    patch = {name: [{first: 3, "word": "patch"}, {first: 1, "word": "patch"}]}

    result = merged(base, patch)

    assert result == {
        name: [
            {first: 1, "kept": "base", "word": "patch"},
            {first: 2, "word": "base"},
            {first: 3, "word": "patch"},
        ]
    }


def test_port_without_a_protocol_is_tcp():
    base = {"ports": [{"containerPort": 53, "name": "dns"}]}

    tcp = merged(base, {"ports": [{"containerPort": 53, "protocol": "TCP", "hostPort": 53}]})
    udp = merged(base, {"ports": [{"containerPort": 53, "protocol": "UDP"}]})

    assert tcp == {"ports": [{"containerPort": 53, "name": "dns", "protocol": "TCP", "hostPort": 53}]}
    assert udp == {"ports": [{"containerPort": 53, "name": "dns"}, {"containerPort": 53, "protocol": "UDP"}]}


@pytest.mark.parametrize("name", ["command", "args", "tolerations", "envFrom", "targetJobs", "matchExpressions"])
def test_lists_without_keys_are_replaced(name):
    base = {name: [{"name": "a", "word": "base"}, {"name": "b"}]}

    assert merged(base, {name: [{"name": "a"}]}) == {name: [{"name": "a"}]}
    assert merged(base, {name: []}) == {name: []}


def test_empty_keyed_list_changes_nothing():
    assert merged({"env": [{"name": "A"}]}, {"env": []}) == {"env": [{"name": "A"}]}


@pytest.mark.parametrize(
    ("base", "over", "result"),
    [
        (
            {"env": [{"name": "a"}]},
            {"env": [{"name": "b"}, {"$patch": "merge"}]},
            {"env": [{"name": "a"}, {"name": "b"}]},
        ),
        ({"env": [{"name": "a"}], "x": 1}, {"env": [{"$patch": "delete"}]}, {"x": 1}),
        (
            {"env": [{"name": "a"}, {"name": "b"}]},
            {"$setElementOrder/env": [{"name": "b"}, {"name": "a"}]},
            {"env": [{"name": "b"}, {"name": "a"}]},
        ),
        (
            {"env": [{"name": "x"}, {"name": "a"}]},
            {"$setElementOrder/env": [{"name": "b"}, {"name": "a"}], "env": [{"name": "b"}]},
            {"env": [{"name": "x"}, {"name": "b"}, {"name": "a"}]},
        ),
        (
            {"strategy": {"type": "a", "x": 1}},
            {"strategy": {"$retainKeys": ["type"], "type": "b"}},
            {"strategy": {"type": "b"}},
        ),
        ({"strategy": {"type": "a"}}, {"strategy": {"$retainKeys": ["y"], "y": 1}}, {"strategy": {"y": 1}}),
        ({"args": [1, 2, 3]}, {"$deleteFromPrimitiveList/args": [2]}, {"args": [1, 3]}),
        ({"args": ["b", "a"]}, {"$setElementOrder/args": ["a", "b"]}, {"args": ["a", "b"]}),
        ({}, {"tolerations": [{"$retainKeys": ["a"], "a": 1}]}, {"tolerations": [{"a": 1}]}),
    ],
)
def test_directives_of_kubectl(base, over, result):
    assert merged(base, over) == result


def test_keyed_list_with_items_without_key_is_replaced():
    nameless = {"ports": [{"port": 80, "targetPort": 8080}]}

    assert merged(nameless, {"ports": [{"port": 443}]}) == {"ports": [{"port": 443}]}
    assert merged(nameless, {"ports": [{"containerPort": 1}]}) == {"ports": [{"containerPort": 1}]}


def test_last_of_items_with_the_same_key_is_merged():
    base = {"env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]}

    result = merged(base, {"env": [{"name": "A", "value": "3"}]})

    assert result == {"env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "3"}]}


def test_deleted_item_deletes_all_with_its_key():
    deletions = []
    base = {"env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]}

    result = merge(base, {"env": [{"name": "A", "$patch": "delete"}]}, deletions)

    assert result == {"env": [{"name": "B"}]}
    assert [(deletion.key, deletion.found) for deletion in deletions] == [("A", True)]


def test_deletion_of_a_missing_item_is_recorded():
    deletions = []
    base = {"env": [{"name": "A"}]}

    result = merge(base, {"env": [{"name": "B", "$patch": "delete"}]}, deletions)

    assert result == base
    assert [(deletion.key, deletion.found) for deletion in deletions] == [("B", False)]


def test_mapping_is_deleted_by_a_directive_or_null():
    marked, nulled = [], []
    base = {"affinity": {"nodeAffinity": {}}, "word": "a"}

    by_marker = merge(base, {"affinity": {"$patch": "delete"}}, marked)
    by_null = merge(base, {"affinity": None}, nulled)

    assert by_marker == by_null == {"word": "a"}
    assert [deletion.found for deletion in marked + nulled] == [True, True]


def test_replace_directive_of_a_mapping():
    base = {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}

    result = merged(base, {"resources": {"limits": {"$patch": "replace", "cpu": "2"}}})

    assert result == {"resources": {"limits": {"cpu": "2"}}}


def test_replace_directive_of_an_item_keeps_its_position():
    base = {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}

    result = merged(base, {"containers": [{"name": "a", "$patch": "replace", "command": ["z"]}]})

    assert result == {"containers": [{"name": "a", "command": ["z"]}, {"name": "b", "image": "y"}]}


def test_replace_directive_of_a_list():
    base = {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}

    result = merged(base, {"containers": [{"$patch": "replace"}, {"name": "c"}]})

    assert result == {"containers": [{"name": "c"}]}


WHOLE = "the list has no keys, so it is replaced; write the whole list"


@pytest.mark.parametrize(
    ("patch", "fault"),
    [
        ({"$patch": "delete"}, "`$patch: delete` would delete the whole object; delete entries of it"),
        ({"map": {"$patch": "remove"}}, "`$patch` is `remove`; it must be `delete` or `replace`"),
        (
            {"tolerations": [{"key": "a", "$patch": "delete"}, {"key": "b"}]},
            f"nothing in `tolerations` can be deleted: {WHOLE}",
        ),
        (
            {"list": [{"deep": {"er": {"$patch": "delete"}}}]},
            f"nothing in `er` can be deleted: {WHOLE}",
        ),
        (
            {"env": [{"name": "A", "$patch": "delete"}, {"value": "nameless"}]},
            f"nothing in `env` can be deleted: {WHOLE}",
        ),
    ],
)
def test_unusable_directive_is_recorded_and_removed(patch, fault):
    bare, placed = [], []

    result = merge({"env": [{"name": "A"}]}, patch, bare)
    merge({"env": [{"name": "A"}]}, traced(patch, "patch"), placed)

    assert "$patch" not in repr(result)
    assert [(deletion.fault, deletion.found) for deletion in bare] == [(fault, False)]
    assert [type(deletion.asked_by.value) for deletion in placed] == [str]


def test_key_of_a_merged_item_keeps_its_origin():
    base = traced({"env": [{"name": "A", "value": "1"}]}, "base")
    patch = traced({"env": [{"name": "A", "value": "2"}]}, "patch")

    [item] = merged(base, patch)["env"]

    assert item["name"] is base["env"][0]["name"]
    assert location_of(merged(base, patch)["env"]) == patch["env"].location
    assert (item["value"].location.file, item["value"].overridden) == ("patch", base["env"][0]["value"])


def test_null_has_its_location():
    deletions = []
    patch = traced({"env": [{"name": "A", "value": None}], "map": {"word": None}}, "patch")

    merge({}, patch, deletions)

    nulls = [patch["env"][0]["value"], patch["map"]["word"]]
    assert [deletion.location for deletion in deletions] == [null.location for null in nulls]


def test_merge_directive_has_no_effect():
    deletions = []

    result = merge({"map": {"word": "a"}}, {"map": {"$patch": "merge", "list": ["b"]}}, deletions)

    assert result == {"map": {"word": "a", "list": ["b"]}}
    assert deletions == []


def test_replacing_list_records_the_replaced_one():
    base, patch = traced({"args": ["a"]}, "base"), traced({"args": ["b", "c"]}, "patch")

    result = merged(base, patch)

    assert location_of(result["args"]).file == "patch"
    assert result["args"].overridden is base["args"]


# What follows are the things that users of kustomize ask for: merging by key inside custom resources, with no
# schema to write; directives that report when they match nothing; list items by name in JSON patches.

POD = """
serviceAccountName: trainer
imagePullSecrets:
- name: registry
initContainers:
- name: fetch
  image: fetch:1
  command: [fetch, everything]
containers:
- name: main
  image: train:1
  command: [train]
  env:
  - name: A
    value: "1"
  - name: B
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  ports:
  - name: rdzv
    containerPort: 29500
  volumeMounts:
  - name: data
    mountPath: /data
- name: logs
  image: logs:1
volumes:
- name: data
  persistentVolumeClaim: {claimName: data}
- name: cache
  emptyDir: {}
"""

TRAIN_JOB_PATH = ("runtimePatches", 0, "trainingRuntimeSpec", "template", "spec", "replicatedJobs", 0, "template")
KINDS = {
    "PyTorchJob": ("kubeflow.org/v1", ("pytorchReplicaSpecs", "Worker", "template", "spec")),
    "MPIJob": ("kubeflow.org/v2beta1", ("mpiReplicaSpecs", "Worker", "template", "spec")),
    "TensorFlowTrainingJob": ("batch.tensorstack.dev/v1beta1", ("replicaSpecs", 0, "template", "spec")),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1", (*TRAIN_JOB_PATH, "spec", "template", "spec")),
}
ITEM_KEYS = {
    "replicaSpecs": {"type": "worker"},
    "runtimePatches": {"manager": "example.org/team"},
    "replicatedJobs": {"name": "node"},
}


def around(kind, pod):
    """A pod spec where the kind keeps it."""
    node, path = pod, KINDS[kind][1]
    for step, holder in zip(reversed(path), [*reversed(path[:-1]), "spec"], strict=True):
        node = [{**ITEM_KEYS[holder], **node}] if step == 0 else {step: node}
    return {"spec": node}


def inside(kind, manifest):
    """The pod spec of a manifest."""
    node = manifest["spec"]
    for step in KINDS[kind][1]:
        node = node[step]
    return node


def pointer(kind, rest):
    """A JSON pointer into the pod spec, by name wherever there is one."""
    steps = []
    for step, holder in zip(KINDS[kind][1], ["spec", *KINDS[kind][1]], strict=False):
        [[key, value]] = ITEM_KEYS[holder].items() if step == 0 else [[None, None]]
        steps.append(f"[{key}={value}]" if key else step)
    return f"/spec/{'/'.join(steps)}/{rest}"


def patched(kind, root, *patches):
    """The pod spec of a raw manifest behind an overlay with these patches, and what is wrong."""
    manifest = {"apiVersion": KINDS[kind][0], "kind": kind, "metadata": {"name": "job"}}
    overlay = {"apiVersion": "jobgen.dev/v1", "kind": "Overlay", "spec": {"patches": list(patches)}}
    for path, data in (
        ("jobs/job.yaml", {**manifest, **around(kind, yaml.load(POD, yaml.CSafeLoader))}),
        ("overlays/env/overlay.yaml", overlay),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(yaml.safe_dump(data))
    run = render_jobs(config.load_own(root), ["env"])
    objects = [inside(kind, made.object) for made in run.objects]
    return objects, [(finding.rule, finding.message) for finding in run.findings]


every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@pytest.mark.parametrize(
    ("patch", "path", "expected"),
    [
        (
            {"containers": [{"name": "main", "image": "train:2"}]},
            ("containers",),
            [("main", "train:2"), ("logs", "logs:1")],
        ),
        (
            {"containers": [{"name": "metrics", "image": "metrics:1"}]},
            ("containers",),
            [("main", "train:1"), ("logs", "logs:1"), ("metrics", "metrics:1")],
        ),
        ({"initContainers": [{"name": "fetch", "image": "fetch:2"}]}, ("initContainers",), [("fetch", "fetch:2")]),
        ({"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}, ("volumes",), ["data", "cache", "shm"]),
        ({"imagePullSecrets": [{"name": "mirror"}]}, ("imagePullSecrets",), ["registry", "mirror"]),
        (
            {"containers": [{"name": "main", "env": [{"name": "A", "value": "2"}, {"name": "C", "value": "3"}]}]},
            ("containers", 0, "env"),
            ["A", "B", "C"],
        ),
        (
            {"containers": [{"name": "main", "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}]},
            ("containers", 0, "volumeMounts"),
            ["data", "shm"],
        ),
        (
            {"containers": [{"name": "main", "ports": [{"name": "http", "containerPort": 80}]}]},
            ("containers", 0, "ports"),
            ["rdzv", "http"],
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_pod_lists_merge_by_key_in_every_kind(kind, patch, path, expected, tmp_path):
    [pod], findings = patched(kind, tmp_path, {"manifest": around(kind, patch)})

    found = pod
    for step in path:
        found = found[step]
    named = [(item["name"], item["image"]) if "image" in item else item["name"] for item in found]
    assert findings == []
    assert named == expected
    assert pod["containers"][0]["command"] == ["train"]


@every_kind
def test_patch_changes_only_the_named_fields(kind, tmp_path):
    change = {"containers": [{"name": "main", "env": [{"name": "A", "value": "2"}]}]}

    [pod], findings = patched(kind, tmp_path, {"manifest": around(kind, change)})

    expected = yaml.load(POD, yaml.CSafeLoader)
    expected["containers"][0]["env"][0]["value"] = "2"
    assert findings == []
    assert pod == expected


@every_kind
def test_delete_directive_removes_one_item_only(kind, tmp_path):
    change = {
        "containers": [
            {"name": "logs", "$patch": "delete"},
            {"name": "main", "env": [{"name": "B", "$patch": "delete"}]},
        ],
        "volumes": [{"name": "cache", "$patch": "delete"}],
        "serviceAccountName": None,
    }

    [pod], findings = patched(kind, tmp_path, {"manifest": around(kind, change)})

    expected = yaml.load(POD, yaml.CSafeLoader)
    del expected["containers"][1], expected["containers"][0]["env"][1], expected["volumes"][1]
    del expected["serviceAccountName"]
    assert findings == []
    assert pod == expected


@every_kind
def test_delete_directive_without_match_is_an_error(kind, tmp_path):
    change = {"containers": [{"name": "main", "env": [{"name": "NOPE", "$patch": "delete"}]}]}

    _, findings = patched(kind, tmp_path, {"manifest": around(kind, change)})

    assert findings == [("deletes-nothing", "`$patch: delete` of `NOPE` deletes nothing; remove it")]


@every_kind
def test_json_patch_finds_items_by_name(kind, tmp_path):
    operations = [
        {"op": "replace", "path": pointer(kind, "containers/[name=main]/env/[name=A]/value"), "value": "2"},
        {"op": "remove", "path": pointer(kind, "volumes/[name=cache]")},
    ]

    [pod], findings = patched(kind, tmp_path, {"jsonPatch": operations})

    expected = yaml.load(POD, yaml.CSafeLoader)
    expected["containers"][0]["env"][0]["value"] = "2"
    del expected["volumes"][1]
    assert findings == []
    assert pod == expected


@every_kind
def test_json_pointer_without_match_is_an_error(kind, tmp_path):
    path = pointer(kind, "containers/[name=main]/env/[name=NOPE]/value")

    _, findings = patched(kind, tmp_path, {"jsonPatch": [{"op": "replace", "path": path, "value": "2"}]})

    missing = f"`{path.removesuffix('/value')}` does not exist; there are `A` and `B`"
    assert findings == [("json-patch-failed", missing)]
