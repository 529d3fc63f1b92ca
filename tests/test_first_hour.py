"""Mistakes of the first hour with jobs, launchers and the commands that write: all answers, with their lines."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from command import run_jobgen_text
from lintfiles import lint_files
from sampling import sample

HEAD = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a, namespace: ml}\nspec:\n"
DEFAULTS = {
    "framework": "pytorch",
    "image": "registry.example.com/a:1.0.0",
    "resources": "{cpu: 8, memory: 64Gi, gpu: 1}",
    "shm": "16Gi",
}


def write_spec(text: str) -> str:
    """Return a job with some fields, which begin in line 5, and the usual ones."""
    own = yaml.safe_load(text)
    usual = "".join(f"  {name}: {value}\n" for name, value in DEFAULTS.items() if name not in own)
    return f"{HEAD}{text}{usual}"


class Case(NamedTuple):
    """The fields of a job, and all findings: the line of each, counted from the first field, and its words."""

    text: str
    found: tuple[tuple[int, str], ...]


def case(text: str, *found: tuple[int, str]) -> Case:
    return Case(text, found)


def command(words: str, *found: tuple[int, str]) -> Case:
    """A job of four pods with a command."""
    return case(f"  replicas: 4\n  command: {words}\n", *found)


DS = """\
  configs:
    ds:
      mountPath: /etc/ds
      data:
        ds.json: |
          {
            "train_batch_size": 32,
            "train_micro_batch_size_per_gpu": 4,
            "gradient_accumulation_steps": 1
          }
"""
INLINE = '\'{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}\''
FITTING = "write `train_batch_size: 16`, or remove it"
FOUR = "{cpu: 8, memory: 64Gi, gpu: 4}"
ALONE = "each of the 4 pods trains alone"


def batch(words: str, line: int = 9) -> Case:
    return case(f"  replicas: 4\n  command: {words}\n{DS}", (line, FITTING))


def four(words: str, rest: str, *found: tuple[int, str]) -> Case:
    """A job of one pod with four GPUs."""
    return case(f"  resources: {FOUR}\n  command: {words}\n{rest}", *found)


def other(framework: str, words: str, *found: tuple[int, str]) -> Case:
    return case(f"  framework: {framework}\n  replicas: 4\n  command: {words}\n", *found)


def script(header: str, lines: str, *found: tuple[int, str]) -> Case:
    """A job with a script that begins in line 5."""
    body = "".join(f"      {line}\n" for line in lines.split("\n"))
    return case(f"  command:\n    - bash\n    - -c\n    {header}\n{body}", *found)


def mpi(words: str, *found: tuple[int, str], more: str = "") -> Case:
    """A job of MPI whose launcher has a command, in line 6."""
    fields = (
        f"  framework: mpi\n  resources: {{cpu: 8, memory: 64Gi}}\n  runPolicy: {{cleanPodPolicy: Running}}\n{more}"
    )
    lines = more.count("\n")
    roles = f"  roles:\n    launcher: {{command: {words}}}\n    worker: {{replicas: 2, resources: {{gpu: 1}}}}\n"
    return case(f"{fields}{roles}", *((line + lines, text) for line, text in found))


ROOT = "  securityContext: {runAsUser: 0}\n"
AS_ROOT = "write `--allow-run-as-root` behind it"


def init(words: str, *found: tuple[int, str]) -> Case:
    """A job with an init container in line 3."""
    container = f"{{name: prep, image: registry.example.com/a:1.0.0, command: {words}}}"
    return case(f"  command: [torchrun, train.py]\n  initContainers:\n  - {container}\n", *found)


CASES = {
    # The batch sizes of DeepSpeed
    "config of deepspeed": batch("[torchrun, train.py, --deepspeed, --deepspeed_config, /etc/ds/ds.json]"),
    "config of an unknown script": batch("[torchrun, train.py, --deepspeed, /etc/ds/ds.json]"),
    "config of another option": batch("[torchrun, train.py, --ds-config=/etc/ds/ds.json]"),
    "config in the command": command(f"[torchrun, train.py, --deepspeed, {INLINE}]", (2, FITTING)),
    "config of accelerate": batch(
        "[accelerate, launch, --use_deepspeed, --deepspeed_multinode_launcher=standard, --num_machines=4, "
        "--num_processes=4, --machine_rank=$(RANK), --main_process_ip=$(MASTER_ADDR), --main_process_port=29500, "
        "--deepspeed_config_file=/etc/ds/ds.json, train.py]"
    ),
    "config with tensor parallelism": case(
        "  replicas: 4\n  command: [torchrun, train.py, --tensor-parallel=2, --deepspeed=/etc/ds/ds.json]\n" + DS
    ),
    "config that is no number of the job": command("[torchrun, train.py, --deepspeed=/mnt/ds.json]"),
    # One fault of a variable is one finding
    "absent GPUs": four(
        "[python, t.py]", "  env: {CUDA_VISIBLE_DEVICES: '4,5'}\n", (3, "`CUDA_VISIBLE_DEVICES` has `4`")
    ),
    "absent GPU": four(
        "[torchrun, --nproc-per-node=4, t.py]", "  env: {CUDA_VISIBLE_DEVICES: '0,1,2,7'}\n", (3, "has `7`, but")
    ),
    "absent GPUs of a script": four(
        '[bash, -c, "export CUDA_VISIBLE_DEVICES=4,5,6,7; torchrun --nproc-per-node=4 t.py"]',
        "",
        (2, "`CUDA_VISIBLE_DEVICES` has `4`, but a pod has 4 GPUs"),
    ),
    "hidden GPUs": four("[python, t.py]", "  env: {CUDA_VISIBLE_DEVICES: '0,1'}\n", (3, "leaves GPUs idle")),
    # Init containers
    "init container with -m": init("[python, -m, prep.py]", (3, "write `prep`, or remove `-m`")),
    "init container with accelerate": init("[accelerate, train.py]", (3, "write `launch` before it")),
    "init container without a script": init("[torchrun, --nproc_per_node=2]", (3, "gets no script to start")),
    "init container with a script for a number": init("[torchrun, --nproc_per_node, p.py]", (3, "write `gpu p.py`")),
    "init container that works alone": init("[torchrun, --nproc-per-node=8, prep.py]"),
    "init container with nodes of its own": init("[torchrun, --nnodes=1, prep.py]"),
    # Launchers and operators of other frameworks
    "torchrun of tensorflow": other("tensorflow", "[torchrun, t.py]", (3, f"{ALONE}, because the operator of a TFJob")),
    "torchrun of jax": other("jax", "[torchrun, t.py]", (3, "use `framework: pytorch`")),
    "accelerate of tensorflow": other("tensorflow", "[accelerate, launch, t.py]", (3, ALONE)),
    "deepspeed of xgboost": other("xgboost", "[deepspeed, t.py]", (3, "of a PyTorchJob (`framework: pytorch`)")),
    "paddle of pytorch": other(
        "pytorch", "[python, -m, paddle.distributed.launch, t.py]", (3, "use `framework: paddle`")
    ),
    "horovodrun of pytorch": other("pytorch", "[horovodrun, -np, '4', python, t.py]", (3, "use `framework: mpi`")),
    "mpirun of pytorch": other("pytorch", "[mpirun, -np, '4', python, t.py]", (3, "use `framework: mpi`")),
    "mpirun with a hostfile": other("pytorch", "[mpirun, --hostfile, /h, python, t.py]"),
    "paddle with an address": other(
        "pytorch", "[python, -m, paddle.distributed.launch, --master=$(MASTER_ADDR):80, --nnodes=4, t.py]"
    ),
    "program of another framework": other("tensorflow", "[python, torch_train.py]"),
    # Variables of variables
    "braces": case(
        "  command: [python, t.py]\n  env:\n    DATA: /d\n    OUT: ${DATA}/x\n", (4, "in a value; write `$(DATA)`")
    ),
    "no braces": case("  command: [python, t.py]\n  env:\n    DATA: /d\n    OUT: $DATA/x\n", (4, "write `$(DATA)`")),
    "braces above": case(
        "  command: [python, t.py]\n  env:\n    OUT: ${DATA}/x\n    DATA: /d\n",
        (3, "`DATA` is set below `OUT`; write `$(DATA)`, and `DATA` above it"),
    ),
    "parentheses above": case(
        "  command: [python, t.py]\n  env:\n    OUT: $(DATA)/x\n    DATA: /d\n", (3, "`DATA` is set below `OUT`")
    ),
    "filled in by another tool": case("  command: [python, t.py]\n  env: {TOKEN_FILE: '${TOKEN_FILE}', B: '${C}'}\n"),
    # Words of other tools in commands and scripts
    "python behind torchrun": command("[torchrun, python, train.py]", (2, "remove `python`")),
    "python without torchrun": command("[torchrun, --no-python, python, train.py]"),
    "srun": command("[srun, -n, '4', torchrun, train.py]", (2, "such as `[torchrun, train.py]`")),
    "srun in a script": command('[bash, -c, "srun python train.py"]', (2, "write only the command that it starts")),
    "srun with a Slurm": command('[bash, -c, "apt-get install slurm-client; srun python train.py"]'),
    "conda activate": command('[bash, -c, "conda activate ml && torchrun t.py"]', (2, "`conda run -n ml …` instead")),
    "conda with its setup": command(
        '[bash, -c, ". /opt/conda/etc/profile.d/conda.sh; conda activate ml; torchrun t.py"]'
    ),
    "conda of a login": command('[bash, -lc, "conda activate ml && torchrun t.py"]'),
    "cd and a command": command(
        '[bash, -c, "cd /workspace torchrun t.py"]', (2, "write `cd /workspace && torchrun t.py`")
    ),
    "cd": command('[bash, -c, "cd /workspace && torchrun t.py"]'),
    "accelerate lauch": command("[accelerate, lauch, t.py]", (2, "did you mean `launch`?")),
    "module of a server": command("[python, -m, vllm.entrypoint.openai.api_server]", (2, "`vllm.entrypoints.openai")),
    "the only config": command(
        f"[torchrun, t.py, --deepspeed=/etc/ds/ds_config.json]\n{DS}", (2, "`/etc/ds/ds.json`?")
    ),
    "hosts of mpirun": case(
        "  framework: mpi\n  resources: {cpu: 8, memory: 64Gi}\n  roles:\n"
        "    launcher: {command: [mpirun, -H, 'worker-0,worker-1', python, t.py]}\n    worker: {replicas: 2}\n",
        (4, "write `a-worker-0`, or remove the option"),
    ),
    "waiting in two roles": command('[bash, -c, "torchrun t.py; sleep infinity"]', (2, "each pod ends with")),
    "file without python": command("[train.py, --lr=1]", (2, "write `[python, train.py, --lr=1]`")),
    "file with a path": command("[/app/train.py, --lr=1]"),
    "docker": command("[docker, run, --gpus=all, a, python, t.py]", (2, "write its image as `image`")),
    "port": command("[torchrun, --master_port=99999, t.py]", (2, "`99999` is not a port")),
    "backend": command(
        "[torchrun, --nnodes=4, --rdzv_backend=c10, '--rdzv_endpoint=$(MASTER_ADDR):29400', t.py]",
        (2, "did you mean `c10d`?"),
    ),
    "backend of a plugin": command(
        "[torchrun, --nnodes=4, --rdzv_backend=zookeeper, '--rdzv_endpoint=$(MASTER_ADDR):29400', t.py]"
    ),
    "hostfile of nobody": command("[deepspeed, --hostfile=/job/hostfile, t.py]", (2, "`deepspeed` has no hostfile")),
    "hostfile of a script": command('[bash, -c, "python hosts.py; deepspeed --hostfile=/job/hostfile t.py"]'),
    # Scripts that are comments
    "comment in joined lines": script(
        "- >", "# start\ntorchrun\n--nproc-per-node=1\nt.py", (4, "`torchrun` becomes a part of the comment `# start`")
    ),
    "comment above a file": script("- >", "set -e;\n# start\n./run.sh", (4, "write `- |`, or remove the comment")),
    "comment behind &&": script("- >-", "cd /app &&\n# start\ntorchrun\nt.py", (4, "of the comment `# start`")),
    "comment in joined lines of another program": script(
        "- >", "# start\nserve it\nnow", (4, "is a comment, because YAML joins its lines, so that nothing runs")
    ),
    "comment and a command in one line": command(
        '[bash, -c, "# start; torchrun t.py"]', (2, "the whole script is a comment, so that nothing runs")
    ),
    "comments in lines": script("- |", "# start\n# torchrun t.py", (5, "write the command in a line of its own")),
    "comment in lines": script("- |", "# start\ntorchrun t.py"),
    "comment at the end of joined lines": script("- >", "torchrun t.py\n--epochs=3  # all"),
    "comment in a string": script("- >", "torchrun t.py\n--tag=a#b"),
    # Variables and users of mpirun
    "variable without -x": mpi(
        "[mpirun, -np, '2', -x, NCCL_DEBUG=INFO, LD_LIBRARY_PATH, python, t.py]",
        (5, "`mpirun` takes `LD_LIBRARY_PATH` for the program to start; write `-x` before it"),
    ),
    "variable of a job without -x": mpi(
        "[mpirun, --allow-run-as-root, MY_DATA, python, t.py]", (5, "`mpirun` takes `MY_DATA` for the program")
    ),
    "value without -x": mpi("[mpirun, LD_LIBRARY_PATH=/x, python, t.py]", (5, "write `-x` before it")),
    "value for another mpirun": mpi(
        "[mpirun, -genv, A, b, C=d, python, t.py]", (5, "write the variable as `-genv NAME VALUE`")
    ),
    "program behind -x": mpi("[mpirun, -np, '2', -x, python, t.py]", (5, "and gets the program `python`")),
    "variables of mpirun": mpi("[mpirun, -x, A_B, -x, C=d, python, t.py]"),
    "variables by env": mpi("[mpirun, env, C=d, python, t.py]"),
    "variable of horovodrun": mpi("[horovodrun, -np, '2', NCCL_DEBUG, python, t.py]", (5, "all variables are passed")),
    "value of horovodrun": mpi("[horovodrun, -np, '2', C=d, python, t.py]"),
    "program in capitals": mpi("[mpirun, -x, A, MY_SOLVER, input.txt]"),
    "mpirun as root": mpi("[mpirun, python, t.py]", (5, AS_ROOT), more=ROOT),
    "mpirun in a script as root": mpi("[bash, -c, 'mpirun -np 2 python t.py']", (5, AS_ROOT), more=ROOT),
    "mpirun as root with a variable of two": mpi(
        "[mpirun, python, t.py]", (5, AS_ROOT), more=f"{ROOT}  env: {{OMPI_ALLOW_RUN_AS_ROOT: '1'}}\n"
    ),
    "mpirun as root with variables": mpi(
        "[mpirun, python, t.py]",
        more=f"{ROOT}  env: {{OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1'}}\n",
    ),
    "mpirun as root with the option": mpi("[mpirun, --allow-run-as-root, python, t.py]", more=ROOT),
    "horovodrun as root": mpi("[horovodrun, -np, '2', python, t.py]", more=ROOT),
    "mpirun of Intel as root": mpi(
        "[mpirun, python, t.py]", more=f"{ROOT}  image: registry.example.com/intel-mpi:1.0.0\n"
    ),
    "mpirun as another user": mpi("[mpirun, python, t.py]", more="  securityContext: {runAsUser: 1000}\n"),
    # Servers
    "command of vllm": case("  command: [vllm, server, m]\n", (1, "did you mean `serve`?")),
    "option of vllm": case(
        "  command: [vllm, serve, m, --tensor-paralel-size=1]\n", (1, "did you mean `--tensor-parallel-size`?")
    ),
    "start of an option of vllm": case("  command: [vllm, serve, m, --tensor-parallel=1]\n"),
    "other option of vllm": case("  command: [vllm, serve, m, --lora-modules=a]\n"),
    "type of vllm": case("  command: [vllm, serve, m, --dtype=fp16]\n", (1, "write `float16`")),
    "memory of vllm": case("  command: [vllm, serve, m, --gpu-memory-utilization=95]\n", (1, "such as `0.9`")),
    "all memory of vllm": case("  command: [vllm, serve, m, --gpu-memory-utilization=0.95]\n"),
    "model of sglang": case("  command: [python, -m, sglang.launch_server, --tp=1]\n", (1, "write `--model-path`")),
    "option of the allocator": case(
        "  command: [python, t.py]\n  env: {PYTORCH_CUDA_ALLOC_CONF: 'expandable_segment:True'}\n",
        (2, "write `expandable_segments:`"),
    ),
    "sign of the allocator": case(
        "  command: [python, t.py]\n  env: {PYTORCH_CUDA_ALLOC_CONF: 'max_split_size_mb=512'}\n",
        (2, "write `max_split_size_mb:`"),
    ),
    "options of the allocator": case(
        "  command: [python, t.py]\n"
        "  env: {PYTORCH_CUDA_ALLOC_CONF: 'roundup_power2_divisions:[256:1,512:2,>:8],backend:native,new_option:1'}\n"
    ),
    "folder to work in": case("  command: [python, t.py]\n  workingDir: src\n", (2, "must begin with `/`")),
    # Fields
    "list for a matrix": case("  command: [python, t.py]\n  matrix: [0.1, 0.2]\n", (2, "`matrix` is a list")),
    "text for the data of a config": case(
        "  command: [python, t.py]\n  configs: {a: {env: true, data: 'LR=0.1'}}\n", (2, "write `data: {LR: …}`")
    ),
    "bounds of an elastic job": case(
        "  command: [torchrun, t.py]\n  replicas: 4\n  pytorch: {elasticPolicy: {minReplicas: 4, maxReplicas: 2}}\n",
        (3, "`minReplicas` is 4, which is above `maxReplicas`"),
    ),
    "long dash": command("[torchrun, t.py, –-lr=0.1]", (2, "write `--lr=0.1`")),
    "address of jax": other(
        "jax", "[python, t.py, --coordinator_address=localhost:1234]", (3, "such as `$(COORDINATOR_ADDRESS)`")
    ),
    "letters of an image": case(
        "  image: registry.example.com/NLP/bert:V1\n  command: [python, t.py]\n",
        (1, "write `registry.example.com/nlp/bert:V1`"),
    ),
    "claim without a field": case(
        "  command: [python, t.py]\n  volumes: {data: datasets}\n", (2, "`data: {pvc: datasets, mountPath: /data}`")
    ),
    "queue": case("  command: [python, t.py]\n  queue: Team A\n", (2, "`Team A` is not a valid queue name")),
}


@pytest.mark.parametrize("name", CASES)
def test_answer(name, tmp_path):
    text, expected = CASES[name]
    found = lint_files(tmp_path, {"jobs/a.yaml": write_spec(text)})
    answers = [(each["line"] - HEAD.count("\n"), each["message"]) for each in found]

    assert [line for line, _ in answers] == [line for line, _ in expected], answers
    assert all(words in message for (_, message), (_, words) in zip(answers, expected, strict=True)), answers


LAYERS = {
    "tag of an image": (
        "overlays/prod/overlay.yaml",
        "Overlay",
        "prod",
        "images: [{name: a, tag: '1'}]",
        "write `newTag`",
    ),
    "paths of a team": ("teams/nlp.yaml", "Team", "nlp", "paths: [jobs/]", "write `folders`"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_answer_about_a_layer(name, tmp_path):
    path, kind, own, spec, words = LAYERS[name]
    text = f"apiVersion: jobgen.dev/v1\nkind: {kind}\nmetadata: {{name: {own}}}\nspec:\n  {spec}\n"
    found = lint_files(tmp_path, {"jobs/a.yaml": write_spec("  command: [python, t.py]\n"), path: text})
    assert [(each["file"], each["line"]) for each in found] == [(path, 5)]
    assert words in found[0]["message"]


def test_a_list_of_objects_is_told_how_to_separate_them(tmp_path):
    [found] = lint_files(tmp_path, {"jobs/a.yaml": "- apiVersion: v1\n  kind: Pod\n"})
    assert found["message"].endswith("a list of objects; remove each `-`, and write `---` between the objects")


# Commands


OVERLAY = "apiVersion: jobgen.dev/v1\nkind: Overlay\nmetadata: {name: prod}\nspec:\n  cluster: {platforms: [%s]}\n"
PLATFORMS = ("jobset", "kubeflow", "kubernetes", "tensorstack", "trainer", "volcano")
RESTARTS = (None, "OnFailure", "Never")


def lint_again(folder: Path) -> str:
    return run_jobgen_text(folder, "lint", "--no-cache", "--format", "concise").stdout


@pytest.mark.parametrize(
    ("source", "target", "policy"),
    # Each pair, with one policy or two.
    sample([(*pair, policy) for pair in itertools.permutations(PLATFORMS, 2) for policy in RESTARTS], 2),
)
def test_what_migrate_writes_lints_as_clean_as_the_source(source, target, policy, tmp_path):
    restart = f"  restartPolicy: {policy}\n" if policy and source != "trainer" else ""
    text = write_spec(f"  command: [torchrun, train.py]\n{restart}  replicas: 2\n")
    platforms = ", ".join(dict.fromkeys((source, target)))
    files = {"jobgen.yaml": "", "overlays/prod/overlay.yaml": OVERLAY % platforms}
    files["jobs/a.yaml"] = f"{text}  platform: {source}\n"
    is_clean = not lint_files(tmp_path, files)
    done = run_jobgen_text(tmp_path, "migrate", "a", "--to", target, "-o", "out")
    written = tmp_path / "out/a.yaml"

    assert written.exists() == (done.returncode == 0)
    if written.exists() and is_clean:
        assert lint_files(tmp_path, {"jobs/a.yaml": written.read_text()}) == [], done.stderr


def test_migrate_says_how_to_write_one_job(tmp_path):
    lint_files(tmp_path, {"jobs/a.yaml": write_spec("  command: [torchrun, t.py]\n  replicas: 2\n")})
    for options in (["a", "--write"], ["a", "--all", "--write"]):
        done = run_jobgen_text(tmp_path, "migrate", "--to", "jobset", *options)
        assert (done.returncode, "`-o DIR`" in done.stderr) == (2, True), done.stderr
    assert run_jobgen_text(tmp_path, "migrate", "a", "--to", "kubernetes", "-o", "out").returncode == 0


def test_the_files_of_a_repository_are_explained(tmp_path):
    run_jobgen_text(tmp_path, "init")
    (tmp_path / "jobs/notes.yaml.bak").write_text("a: 1\n")
    out = run_jobgen_text(tmp_path, "lint", "--explain-files").stdout
    lines = dict(line.split(": ", 1) for line in out.splitlines())
    written = {
        str(path.relative_to(tmp_path))
        for path in tmp_path.rglob("*.[yj]*")
        if ".y" in path.name or "json" in path.name
    }

    assert lines.keys() == {path for path in written if not path.startswith(".")}
    assert lines["jobs/pytorch.yaml"].startswith("job spec: ")
    assert lines["overlays/dev/overlay.yaml"].startswith("overlay: a layer of `dev`")
    assert lines["jobs/notes.yaml.bak"].startswith("not read: ")
    one = run_jobgen_text(tmp_path, "lint", "--explain-files", "jobs/pytorch.yaml").stdout
    assert one.startswith("jobs/pytorch.yaml: job spec: ")
    assert one.count("\n") == 1


@pytest.mark.parametrize("platform", ["kubeflow", "trainer", "jobset", "kubernetes"])
def test_the_page_says_where_a_config_of_deepspeed_is_taken(platform, tmp_path):
    page = (Path(__file__).parent.parent / "docs/jobs.md").read_text()
    cell = next(line for line in page.splitlines() if line.startswith("| `deepspeed.configFile`")).split(" | ")[-1]
    framework = "pytorch" if f"`{platform}` with `framework: pytorch`" in cell else "deepspeed"
    job = write_spec(f"  framework: {framework}\n  platform: {platform}\n  command: [t.py]\n  replicas: 2\n")
    files = {"overlays/prod/overlay.yaml": OVERLAY % platform}

    assert f"`{platform}`" in cell
    assert lint_files(tmp_path, {**files, "jobs/a.yaml": f"{job}  deepspeed: {{configFile: /etc/ds.json}}\n"}) == []


WRONG_ARGUMENTS = {
    "render prod": "for the environment, write `-e prod`",
    "lint jobs/pytorc.yaml": "did you mean `jobs/pytorch.yaml`?",
    "lint jobs/bert.yaml": "no such file or folder; check the path",
    "lint --rule missing-shm": "use `--select`",
    "new b --framework torch": "did you mean `pytorch`?",
    "init --platform k8s": "did you mean `kubernetes`?",
    "new b --replicas 3": "write `replicas` in the file of the job",
    "fix": "use `jobgen lint --fix`",
}


def test_wrong_arguments_are_answered_with_the_right_ones(tmp_path):
    run_jobgen_text(tmp_path, "init")
    for line, words in WRONG_ARGUMENTS.items():
        done = run_jobgen_text(tmp_path, *line.split())
        assert words in done.stdout + done.stderr, (line, done.stderr)
