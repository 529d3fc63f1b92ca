"""Words of other tools, fields at wrong places, and what no suggestion may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lintfiles import lint_files
from sampling import laws
from test_misread import RUN, H

from jobgen.model.meant import count_changes, is_near, is_same_name
from jobgen.model.suggest import find_closest
from jobgen.rendering.config import compile_format, complete_schemas, load_frameworks
from jobgen.repo.layout import own_layers

JOB = H + RUN
FRAMEWORKS = load_frameworks(own_layers(Path(__file__).parent.parent))
OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\nspec: {}\n"
FIELDS = complete_schemas(FRAMEWORKS)["trainingjob_v1.json"]["$defs"]["fields"]["properties"]

# What other tools call it, and what to write here.
WORDS = {
    # Slurm
    "time: 12:30:00": "write `activeDeadlineSeconds: 45000` below `runPolicy`",
    "time: 2-00": "write `runPolicy.activeDeadlineSeconds`",
    "time_limit: 3-12:00:00": "write `activeDeadlineSeconds: 302400` below `runPolicy`",
    "walltime: 90:00": "write `activeDeadlineSeconds: 5400` below `runPolicy`",
    "tasks-per-node: 2": "write `nprocPerNode: 2` below `pytorch`",
    "gres: gpu:h100:4": "write `gpu: 4` below `resources`",
    "mem: 96G": "write `memory: 96Gi` below `resources`",
    "cpus-per-task: 12": "write `resources.cpu`",
    "partition: a100": "write `queue`",
    "array: 0-3": "write `matrix`, which makes a job for each combination",
    "output: log.txt": "remove it: Kubernetes keeps what the program prints",
    "account: ml": "write a label in `metadata.labels`",
    # Docker Compose
    "shm_size: 8gb": "write `shm: 8Gi`",
    "shm-size: 512m": "write `shm: 512Mi`",
    "env_file: .env": "write `envFrom`, or `env: true` of an entry of `configs`",
    "depends_on: [db]": "remove it: jobs do not wait for each other",
    "cap_add: [IPC_LOCK]": "write `securityContext`",
    "mem_limit: 4g": "write `memory: 4Gi` below `resources`",
    "working_dir: /app": "did you mean `workingDir`?",
    # Argo Workflows
    "templates: []": "write `roles.<role>`",
    "withItems: [1, 2]": "write `matrix`, which makes a job for each combination",
    "retryStrategy: {limit: 2}": "write `runPolicy.backoffLimit`",
    # Ray
    "rayVersion: 2.9.0": "write `ray.version`",
    "num_gpus: 2": "write `resources.gpu`",
    "headGroupSpec: {}": "write `roles.head`",
    # Helm
    "replicaCount: 2": "write `replicas`, the number of all pods; or `replicas` of each role",
    "nameOverride: a": "write `metadata.name`",
    "extraEnv: []": "write `env`",
    "podAnnotations: {}": "write `annotations`",
    # Operators
    "slotsPerWorker: 2": "`mpi.slotsPerWorker`",
    "timeout: 90m": "write `activeDeadlineSeconds: 5400` below `runPolicy`",
    "timeout: soon": "write `runPolicy.activeDeadlineSeconds`",
}


@pytest.mark.parametrize("typed", WORDS)
def test_a_word_of_another_tool_is_translated(typed, tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": f"{JOB}  {typed}\n"})

    assert (found["rule"], found["line"]) == ("unknown-field", 10)
    assert WORDS[typed] in found["message"]


def test_processes_of_a_node_are_those_of_the_framework(tmp_path):
    text = JOB.replace("pytorch", "mpi") + "  ntasks-per-node: 3\n  mpi: {slotsPerWorker: 1}\n"
    found = lint_files(tmp_path, {"jobs/a.yaml": text})
    assert "write `slotsPerWorker: 3` below `mpi`" in found[0]["message"]


# A field in a mapping of the document that does not have it.
PLACES = {
    "metadata: {name: a, namespace: ml, replicas: 2}\n": "put it below `spec`",
    "metadata: {name: a, namespace: ml, shm: 2Gi}\n": "put it below `spec`",
    "namespace: ml\nmetadata: {name: a}\n": "put it below `metadata`",
    "annotation: {}\nmetadata: {name: a, namespace: ml}\n": "is not a field of a training job",
    "queue: a\nmetadata: {name: a, namespace: ml}\n": "put it below `spec`",
}


@pytest.mark.parametrize("typed", PLACES)
def test_a_field_in_a_wrong_mapping_is_moved(typed, tmp_path):
    found = lint_files(tmp_path, {"jobs/a.yaml": JOB.replace("metadata: {name: a, namespace: ml}\n", typed)})

    assert len(found) == 1
    assert PLACES[typed] in found[0]["message"]
    assert "did you mean `name`" not in found[0]["message"]


def test_a_field_of_the_job_is_moved_out_of_a_block(tmp_path):
    typed = "  runPolicy: {queue: a}\n  volumes: {data: {pvc: d, mountPath: /d, env: {}}}\n  pytorch: {replicas: 2}\n"
    found = lint_files(tmp_path, {"jobs/a.yaml": JOB + typed})

    assert [each["line"] for each in found] == [10, 11, 12]
    assert all(each["message"].endswith("; put it directly below `spec`") for each in found)


@pytest.mark.parametrize("field", ["namespace: ml", "extends: [base]", "locked: [image]"])
def test_a_field_of_an_overlay_is_moved_out_of_its_metadata(field, tmp_path):
    text = OVERLAY.replace("{name: prod}", f"{{name: prod, {field}}}")
    found = lint_files(tmp_path, {"jobs/a.yaml": JOB, "overlays/prod/overlay.yaml": text})

    assert found[0]["message"].endswith("below `spec`")


def test_no_word_of_another_tool_is_a_field_here():
    from jobgen.schema.foreign_words import _JOB_WORDS

    assert not {*_JOB_WORDS} & {*FIELDS}


WORD = st.from_regex(r"[a-z]{2,8}([A-Z_-][a-z]{1,6}){0,2}", fullmatch=True)


def is_allowed(word: str, meant: str) -> bool:
    """Return True if a third of the letters at most differ, or the end of the word is left out."""
    one, other = (name.lower().replace("-", "").replace("_", "") for name in (word, meant))
    changes = count_changes(one, other)
    return 3 * changes <= max(len(one), len(other)) or other.startswith(one)


@laws(300)
@given(WORD)
def test_what_is_suggested_is_near(word):
    for known in (list(FIELDS), ["name", "namespace", "labels"], ["dev", "staging", "prod"]):
        meant = find_closest(word, known)
        assert not meant or is_same_name(word, meant) or is_allowed(word, meant)


FOREIGN = st.one_of(WORD, st.sampled_from("time image mage size page table named frames spaces values".split()))


@laws(150)
@given(FOREIGN, st.sampled_from(["trainingjob", "overlay"]))
def test_what_is_suggested_for_a_field_is_near_and_valid_there(word, name):
    from jobgen.model.sentence import values_of

    kind = "TrainingJob" if name == "trainingjob" else "Overlay"
    spec = {word: "x", **({"image": "a:1"} if kind == "TrainingJob" else {})}
    document = {"apiVersion": "jobgen.dev/v1", "kind": kind, "metadata": {"name": "a", word: "x"}, "spec": spec}
    problems: list = []
    compile_format(name, FRAMEWORKS)(document, "document", None, problems)
    for problem in problems:
        _, _, meant = str(problem.sentence).partition("did you mean ")
        for other in filter(None, values_of(meant)):
            assert is_same_name(word, other) or is_allowed(word, other) or is_word_of_another_tool(word, other)


def is_word_of_another_tool(word: str, meant: str) -> bool:
    """Return True if a word is a slip of another tool's word for the field: `enviroment` for `env`."""
    from jobgen.schema.foreign_words import _FOREIGN_WORDS

    return any(
        text == f"`{meant}`" and is_near(word, other)
        for words in _FOREIGN_WORDS.values()
        for other, text in words.items()
    )


@pytest.mark.parametrize(
    ("word", "known"),
    [("time", "image"), ("name", "volumes"), ("namespace", "name"), ("gpus", "args"), ("spec", "shm")],
)
def test_words_that_share_letters_are_not_near(word, known):
    assert find_closest(word, [known]) == ""


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("replcias", "replicas"),
        ("ttlSeconds", "ttlSecondsAfterFinished"),
        ("enviroments", "environments"),
        ("h1oo", "h100"),
    ],
)
def test_a_slip_is_near(word, known):
    assert find_closest(word, [known]) == known
