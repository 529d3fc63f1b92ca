"""Comments survive `import`, `migrate` and `lint --fix`, at the fields that they describe."""

from io import StringIO

import pytest
import yaml
from command import run_jobgen_text
from ruamel.yaml import YAML
from test_seed_manifests import SEEDS

MANIFEST = """\
# The model of the search team.
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: bert  # see the wiki
  namespace: ml
spec:
  # Delete pods at once: they hold GPUs.
  runPolicy: {cleanPodPolicy: All}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/bert:1.2.3  # pinned
              # The learning rate was tuned in May.
              command: [python, train.py, --lr=0.1]
              resources:
                limits: {nvidia.com/gpu: 8}  # one node
    Worker:
      replicas: 3  # more does not help
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/bert:1.2.3
              command: [python, train.py, --lr=0.1]
              resources:
                limits: {nvidia.com/gpu: 8}
"""
SPEC = """\
# The model of the search team.
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata:
  name: bert  # see the wiki
  namespace: ml
spec:
  framework: pytorch
  image: registry.example.com/bert:1.2.3  # pinned
  # The learning rate was tuned in May.
  command: [python, train.py, --lr=0.1]
  resources: {gpu: 8}  # one node
  roles:
    worker:
      replicas: 3  # more does not help
"""


def comments(text):
    """Every comment of a text, as ruamel.yaml finds it when it loads documents to write them again."""
    tokens = []
    for document in YAML(typ="rt").load_all(StringIO(text)):
        collect(document, tokens)
    lines = [line.strip() for token in tokens for line in token.value.splitlines()]
    return sorted({line for line in lines if line})


def collect(node, tokens):
    attached = getattr(node, "ca", None)
    if attached is not None:
        for several in [attached.comment or (), *attached.items.values(), attached.end or ()]:
            for each in several or ():
                tokens += each if isinstance(each, list) else [each] if each is not None else []
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        collect(child, tokens)


def end_comments(node, found, path=()):
    """The comment at the end of the line of a value, by its path."""
    attached = getattr(node, "ca", None)
    for key, several in attached.items.items() if attached is not None else ():
        token = several[2] if len(several) > 2 else None
        if token is not None and not isinstance(token, list):
            found[(*path, key)] = token.value.splitlines()[0].strip()
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        end_comments(child, found, (*path, key))
    return found


def test_the_reader_of_comments_finds_all():
    assert comments(SPEC) == [
        "# The learning rate was tuned in May.",
        "# The model of the search team.",
        "# more does not help",
        "# one node",
        "# pinned",
        "# see the wiki",
    ]
    assert comments("a: 1\n") == []


def test_import_moves_comments_to_the_lines_of_their_values(tmp_path):
    (tmp_path / "bert.yaml").write_text(MANIFEST)
    done = run_jobgen_text(tmp_path, "import", "bert.yaml")

    assert done.returncode == 0
    assert "comment was not converted" not in done.stderr
    assert comments(done.stdout) == comments(MANIFEST)
    [spec] = YAML(typ="rt").load_all(StringIO(done.stdout))
    at = {path[-1]: text for path, text in end_comments(spec, {}).items()}
    assert (at["image"], at["name"], at["limits"]) == ("# pinned", "# see the wiki", "# one node")


PLACES = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert}
spec:
  # all roles
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: &template
        spec:
          # where it runs
          tolerations:
            # - {key: spot}
            # the GPU nodes
            - {key: gpu, operator: Exists} # tainted
            # - {key: old}
          containers:
            - name: pytorch # the only name that counts
              image: registry.example.com/bert:1.2.3
              command:
                - python
                # the newest script
                - train.py # in the image
              # what it needs
              env:
                - name: NCCL_DEBUG
                  value: INFO
                # - name: OLD
                #   value: none
              resources:
                # the whole node
                limits: {nvidia.com/gpu: 8, cpu: 4}
    Worker: {replicas: 3, template: *template} # more does not help
# the end
"""
PLACED = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.2.3
  command:
    - python
    # the newest script
    - train.py # in the image
  # what it needs
  env:
    NCCL_DEBUG: INFO
    # - name: OLD
    #   value: none
  resources:
    # the whole node
    limits: {gpu: 8, cpu: 4}
  restartPolicy: null
  # where it runs
  tolerations:
    # - {key: spot}
    # the GPU nodes
    - {key: gpu, operator: Exists} # tainted
    # - {key: old}
  # all roles
  roles:
    master: {}
    worker: {replicas: 3} # more does not help
# the end
"""


def test_import_moves_comments_of_maps_lists_and_items(tmp_path):
    """Each comment is at what it was written at: a map, an item, the end of a list; never at the field after it."""
    (tmp_path / "bert.yaml").write_text(PLACES)
    done = run_jobgen_text(tmp_path, "import", "bert.yaml")

    assert done.stdout == PLACED
    assert "bert.yaml:18: the comment was not converted: # the only name that counts\n" in done.stderr


def test_items_that_are_commented_out_stay_in_a_list_that_is_indented_as_its_key(tmp_path):
    env = "        env:\n        - name: A\n          value: b\n        # - name: OLD\n        #   value: none\n"
    rest = "        # for the probe\n        ports:\n        - containerPort: 80\n        # - containerPort: 81\n"
    head = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n      containers:\n"
    (tmp_path / "a.yaml").write_text(f"{head}      - name: main\n        image: a:1\n{env}{rest}")
    done = run_jobgen_text(tmp_path, "import", "a.yaml").stdout

    assert "  env:\n    A: b\n    # - name: OLD\n    #   value: none\n" in done
    assert "  # for the probe\n  ports:\n    - {containerPort: 80}\n    # - containerPort: 81\n" in done


@pytest.mark.parametrize("name", SEEDS)
def test_each_comment_stays_at_its_value(name, tmp_path):
    """Each scalar has its own text as a comment above it and at its end; the import says which it cannot place."""
    lines = yaml.safe_dump(SEEDS[name], sort_keys=False, width=9999).splitlines()
    plain = [line if line.endswith(":") or "'" in line else f"{line} # {line.strip()}" for line in lines]
    above = [f"{' ' * (len(line) - len(line.lstrip()))}# {line.strip()}" for line in lines]
    (tmp_path / "a.yaml").write_text("\n".join(text for pair in zip(above, plain, strict=True) for text in pair))
    done = run_jobgen_text(tmp_path, "import", "a.yaml")
    made = done.stdout.splitlines()
    for number, line in enumerate(made):
        value = line.partition("# ")[2].partition(": ")[2].strip("'")
        target = next((each for each in made[number:] if not each.lstrip().startswith("#")), "")
        assert value in target.partition(" # ")[0] or not value or number == 0, line
    found = set(comments(done.stdout))
    lost = {line.partition("not converted: ")[2] for line in done.stderr.splitlines()}
    assert set(comments((tmp_path / "a.yaml").read_text())) <= found | lost


@pytest.mark.parametrize("target", ["trainer", "jobset", "volcano", "ray"])
def test_migrate_keeps_comments(tmp_path, target):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(SPEC)
    done = run_jobgen_text(tmp_path, "migrate", "bert", "--to", target, *(["--accept=ray"] if target == "ray" else []))
    left = set(comments(SPEC)) - set(comments(done.stdout))

    assert done.stdout, done.stderr
    # Fields that the other kind does not have take their comments with them.
    assert left <= {"# more does not help"}


def test_fix_keeps_comments_and_all_other_bytes(tmp_path):
    """Spaces that a writer of YAML would not write stay, too."""
    odd = SPEC.replace("gpu: 8", "gpu:   8").replace("[python,", "[ python ,")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(odd.replace("replicas: 3", "replcias: 3"))
    done = run_jobgen_text(tmp_path, "lint", "--fix-unsafe")

    assert "1 finding fixed in 1 file" in done.stderr
    assert (tmp_path / "jobs/bert.yaml").read_text() == odd
    assert comments(odd) == comments(SPEC)
