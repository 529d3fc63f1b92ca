"""Config files and scripts of jobs: what is missing or does not parse is reported, on the line that was written."""

import pytest

from jobgen import lint

HEADER = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: a, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/a:1.0.0
  resources: {cpu: 8, memory: 64Gi, gpu: 1}
  shm: 16Gi
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec: {cluster: {platforms: [kubeflow, ray, jobset], operators: {training-operator: 1.9.3}}}
"""
ARITHMETIC = """\
  replicas: 2
  command: [torchrun, train.py, --deepspeed_config=/etc/t/ds.json]
  configs:
    t:
      mountPath: /etc/t
      data:
        ds.json: |%s
          {
            "gradient_accumulation_steps": 1,
            "train_micro_batch_size_per_gpu": 8,
            "train_batch_size": 8
          }
"""
COMMENT = "  # jobgen: ignore[launch-refused] -- fixed by the next change"
INLINE = "  command: [{}]\n  configs: {{t: {{mountPath: {}, data: {{{}}}}}}}\n"
SCRIPT = """\
  command: [bash, /r/t.sh]
  configs:
    t:
      mountPath: /r
      data:
        t.sh: |
          set -e
          torchrun --nproc-per-node=4 t.py
"""
CASES = {
    "missing config": (
        INLINE.format("python, t.py, --config=/etc/t/d.yaml", "/etc/t", "c.yaml: 'a: 1'"),
        9,
        "/etc/t/c.yaml",
    ),
    "missing script": (INLINE.format("bash, /opt/run/train.sh", "/opt/run", "trian.sh: 'ls'"), 9, "/opt/run/trian.sh"),
    "file as folder": (
        INLINE.format("python, t.py, --config=/etc/t/c.yaml", "/etc/t/c.yaml", "c.yaml: 'a: 1'"),
        10,
        "becomes a folder",
    ),
    "an output": (INLINE.format("python, t.py, --config_dir=/etc/t/x", "/etc/t", "c.yaml: 'a: 1'"), 0, ""),
    "an image's file": (INLINE.format("python, t.py, --config=/etc/u/x", "/etc/t", "c.yaml: 'a: 1'"), 0, ""),
    "arithmetic": (ARITHMETIC % "", 19, "do not multiply out"),
    "suppressed": (ARITHMETIC % COMMENT, 0, ""),
    "trailing comma": ((ARITHMETIC % "").replace(": 8\n          }", ": 16,\n          }"), 19, "a comma precedes"),
    "comma for the Trainer": (
        (ARITHMETIC % "")
        .replace(": 8\n          }", ": 16,\n          }")
        .replace("--deepspeed_config=", "--output_dir=/x, --per_device_train_batch_size=8, --deepspeed="),
        19,
        "the Trainer cannot read",
    ),
    "a script": (
        SCRIPT,
        16,
        "4 processes",
    ),
    "a script in the command": (
        "  command:\n    - bash\n    - -c\n    - |\n      set -e\n      torchrun --nproc-per-node=4 t.py\n",
        14,
        "4 processes",
    ),
}


def write(folder, files):
    for path, text in {"overlays/prod/overlay.yaml": OVERLAY, **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.mark.parametrize("name", CASES)
def test_reports_a_file_on_its_line(name, tmp_path):
    text, line, part = CASES[name]
    write(tmp_path, {"jobs/a.yaml": HEADER + text})

    found = lint(tmp_path).findings

    assert [each.location.line for each in found] == ([line] if line else []), found
    assert all(part in each.message for each in found)


def test_reports_the_line_in_the_file_of_a_config_map_and_sees_its_edits(tmp_path):
    job = "  command: [bash, /r/t.sh]\n  configs: {run: {mountPath: /r}}\n"
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: run, namespace: ml}\n"
    config += "data:\n  t.sh: |\n    torchrun --nproc-per-node=%s t.py\n"
    write(tmp_path, {"jobs/a.yaml": HEADER + job, "jobs/cm.yaml": config % 1})
    assert lint(tmp_path).findings == ()

    write(tmp_path, {"jobs/cm.yaml": config % 4})
    [found] = lint(tmp_path).findings

    assert (found.location.file, found.location.line) == ("jobs/cm.yaml", 6)
    assert any(note.location.file == "jobs/a.yaml" for note in found.related)


RAY = HEADER.replace("framework: pytorch", "framework: ray").partition("  resources")[0] + "  command: [python, t.py]\n"


@pytest.mark.parametrize(
    ("env", "line", "part"),
    [
        ('{pip: [a], env_vars: {EPOCHS: "3"}}', 0, ""),
        ("{env_vars: {EPOCHS: 3}, pip: [a]}", 9, '`EPOCHS: "3"`'),
        ("{pip: [1]}", 9, "`pip`"),
        ("{pip: [a], conda: train}", 9, "`pip` and `conda`"),
        ("{env_var: {A: b}}", 9, "did you mean `env_vars`?"),
        ("|\n      pip: [a]\n      env_vars:\n        A: true\n", 12, '`A: "true"`'),
        ("|\n      pip: [a\n", 9, "not a mapping in YAML"),
    ],
)
def test_checks_the_runtime_environment_of_ray(env, line, part, tmp_path):
    job = f"{RAY}  ray:\n    runtimeEnv: {env}\n  roles:\n    head: {{resources: {{cpu: 4, memory: 16Gi}}}}\n"
    write(tmp_path, {"jobs/a.yaml": job})

    found = [each for each in lint(tmp_path).findings if each.rule == "never-starts"]

    assert [(each.location.line, part in each.message) for each in found] == ([(line, True)] if line else [])


@pytest.mark.parametrize(
    "option", ["--out", "--output", "--output-dir", "--output_folder", "--save_path", "--tb_dir", "--results_dir"]
)
def test_reports_a_shared_output_of_a_sweep(option, tmp_path):
    job = HEADER + f"  command: [python, t.py, {option}=/ckpt/x, '--lr=${{{{ matrix.lr }}}}']\n"
    job += "  volumes: {ckpt: {pvc: c, mountPath: /ckpt}}\n"
    job += "  matrix: {lr: [1, 2]}\n"
    write(tmp_path, {"jobs/a.yaml": job})

    assert "shared-output" in [each.rule for each in lint(tmp_path).findings]
