"""Tokens are recognized by their form. None is written out here, so that no scanner reports it."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, strategies
from limitedrun import run_limited
from lintfiles import lint_in_formats
from sampling import laws

from jobgen import cache
from jobgen.api.diff import diff
from jobgen.cli.commands.explain import explain_name
from jobgen.features.page.report import report
from jobgen.k8s.redaction import redact_words
from jobgen.k8s.secrets_in_text import (
    find_assignments,
    find_secrets_in_text,
    find_spans,
    find_token,
    is_secret_name,
    is_secret_value,
    looks_like_secret,
    may_contain_secret,
    may_hold_secret,
)
from jobgen.pipeline.encoded_results import dump_plain, load_plain, without_secret

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
TOKENS = {
    "hugging face": "hf" + "_" + LETTERS[:34],
    "hugging face, digits": "hf" + "_" + (LETTERS + "0123456789")[-40:],
    "github": "ghp" + "_" + LETTERS[:36],
    "github, fine": "github" + "_pat_" + LETTERS[:22] + "_" + (LETTERS * 2)[:59],
    "gitlab": "glpat" + "-" + LETTERS[:20],
    "openai": "sk" + "-" + LETTERS[:20] + "T3Blbk" + "FJ" + LETTERS[:20],
    "anthropic": "sk" + "-ant-api03-" + (LETTERS * 2)[:93],
    "google": "AIza" + LETTERS[:35],
    "nvidia": "nvapi" + "-" + (LETTERS * 2)[:64],
    "a key": "-----BEGIN RSA " + "PRIVATE KEY-----",
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_tokens_are_found_alone_and_in_scripts(token):
    assert may_contain_secret(token)
    assert find_token(token) == token
    assert find_token(f"login --token={token}; train") == token


NAMES = {
    True: """
        HF_TOKEN token hub-token TOKEN CLIENT_SECRET clientSecret authToken NGROK_AUTHTOKEN hubAccessToken
        DB_PASSWORD PGPASSWORD dbPassword password MYSQL_ROOT_PASSWORD RSYNC_PASSWD MYSQL_PWD ssh_passphrase
        WANDB_API_KEY apiKey awsAccessKey AWS_SECRET_ACCESS_KEY private-key ENCRYPTION_KEY
    """,
    False: """
        PWD OLDPWD tokenizer TOKENIZERS_PARALLELISM pad_token NUM_TOKEN max-token eosToken serviceAccountToken
        tlsSecret imagePullSecret secretName passwordFile PASSWORD_FILE key KEY primaryKey keyboard monkey HOTKEY
    """,
}


@pytest.mark.parametrize(("name", "is_one"), [(name, is_one) for is_one in NAMES for name in NAMES[is_one].split()])
def test_names_that_mean_a_secret(name, is_one):
    text = f"  {name}: z7Kq-2vLm9\n"

    assert is_secret_name(name) == is_one
    assert bool(find_spans(text)) == is_one
    assert may_hold_secret(text) or not is_one


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--hf-token=short"], "--hf-token=…"),
        (["--password", "two words", "--n=2"], "--password … --n=2"),
        (["--use-auth-token", "--n=2"], "--use-auth-token --n=2"),
        (["model.api_key=a"], "model.api_key=…"),
        (["--max-token=4096", "--pad_token", "end"], "--max-token=4096 --pad_token end"),
        (["--auth", "walrus51", "--id=walrus51-a"], "--auth … --id=…-a"),
        (["--token", "walrus77", "--id=walrus77"], "--token … --id=…"),
        (["curl", "https://user:walrus9@host"], "curl https://…@host"),
    ],
)
def test_words_are_shown_without_secrets(words, shown):
    assert " ".join(redact_words(words, {"DB_PASSWORD": "walrus51", "N": "2"})) == shown


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ('train --password "walrus51 okapi93"', {"walrus51", "walrus51 okapi93"}),
        ("K=zebra77; API_KEY=$K; train", {"zebra77"}),
        ("K=zebra77\nL=${K}\ntrain --token ${L} --n $N", {"zebra77"}),
        ("N=zebra77; train --n $N", set()),
        ("A=$B; B=$A; TOKEN=$A", set()),
    ],
)
def test_values_that_become_secrets_are_found(text, secrets):
    assert find_secrets_in_text(text) == secrets


@pytest.mark.parametrize("text", ["hf_" + "x" * 34, "hf_abc", "hf_" + LETTERS[:33], "a" + TOKENS["hugging face"], ""])
def test_token_prefix_alone_is_not_a_secret(text):
    assert find_token(text) == ""


@pytest.mark.parametrize("value", ["", "short", "$(TOKEN)", "<token>", "{token}", "/run/token", "my-token", "xxxxxxxx"])
def test_placeholder_is_not_a_secret(value):
    assert not looks_like_secret("API_TOKEN", value)
    assert not is_secret_value("WANDB_API_KEY", value)


@pytest.mark.parametrize("name", ["API_TOKEN", "password", "db-password", "S3_SECRET_KEY", "openai_api_key"])
def test_names_of_secrets(name):
    assert looks_like_secret(name, "Tr0ub4dor")


@pytest.mark.parametrize("name", ["PAD_TOKEN", "TOKENIZER", "KEY", "SORT_KEY", "AWS_ACCESS_KEY_ID", "SECRET_NAME"])
def test_names_that_are_not_secrets(name):
    assert not looks_like_secret(name, "Tr0ub4dor")


# --- No output holds the characters of a secret.

FAKE = "Zq7" + "xW2v9LpKd4Tn"
KEY_LINE = "MIIEvQIBADANBgkq" + "hkiG9w0BAQEFAASC"
JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:latest
"""
SECRETS = {
    "variable of a job": JOB + "  env: {DB_PASSWORD: SECRET}\n",
    "variable of a job on the line of another finding": JOB + "  env: {DB_PASSWORD: SECRET, A: '$(NO'}\n  imag: 1\n",
    "variable of a manifest": """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
            - name: pytorch
              image: a
              env: [{name: DB_PASSWORD, value: SECRET}, {name: DB_PASSWORD, value: SECRET, valu: SECRET}]
""",
    "variable that is a list": JOB + "  env: {DB_PASSWORD: [SECRET]}\n",
    "variable that is not text": JOB + "  env: {DB_PASSWORD: 73912046582}\n",
    "argument": JOB + "  args: [--db-password=SECRET, --api-key, SECRET]\n  imag: 1\n",
    "command line": JOB + "  command: [sh, -c, 'export API_KEY=\"SECRET\" && python train.py --token SECRET']\n",
    "address": JOB + "  args: ['https://me:SECRET@example.com/a']\n  env: {A: 'https://me:SECRET@example.com/a'}\n",
    "token": JOB + "  env: {A: TOKEN}\n  args: [--a=TOKEN]\n",
    "private key": JOB
    + "  env:\n    A: |\n      -----BEGIN PRIVATE KEY-----\n      PEM\n      -----END PRIVATE KEY-----\n",
    "private key in quotes": JOB
    + '  env: {A: "-----BEGIN PRIVATE KEY-----\\n PEM\\n-----END PRIVATE KEY-----", X: [1]}\n',
    "value with quotes": JOB + """  env: {DB_PASSWORD: "SECRET'\\"\\\\x", API_KEY: 'SECRET''"', X: [1]}\n""",
    "Secret": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: SECRET}\ndata: [SECRET]\n",
    "Secret in one line": "{apiVersion: v1, kind: Secret, metadata: {name: A_B}, stringData: {a: SECRET}}\n",
    "job that is not YAML": JOB + "  env: {DB_PASSWORD: SECRET\n",
    "duplicate key": JOB + "  env:\n    DB_PASSWORD: SECRET\n    DB_PASSWORD: SECRET\n",
    "address with a slash": JOB.replace("registry.example.com/bert:latest", "'https://me:SECRET/VbX@example.com/a:1'"),
    "address with a token": JOB + "  env: {A: 'https://SECRET@example.com/a'}\n  args: ['https://SECRET@h/a', [1]]\n",
    "escaped variable": JOB + '  env: {DB_PASSWORD: ["\\x5a\\x71SECRET"], X: [1]}\n',
    "escaped token": JOB + '  env: {HF: "\\x20TOKEN", X: [1]}\n',
    "tag": JOB + "  env: {DB_PASSWORD: !!binary SECRET}\n",
    "name and value on different lines": JOB + "  x:\n    - name: DB_PASSWORD\n      value: SECRET: x\n",
    "value on the next line": JOB + "  x:\n    DB_PASSWORD:\n      SECRET: x: y\n",
    "Secret that is not YAML": "apiVersion: v1\nkind: Secret\nstringData:\n  a: SECRET: x\n",
    "Secret in JSON": '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": 1}, "stringData": {"a": "SECRET"}}',
}
PRINTED = {"SECRET": FAKE, "TOKEN": TOKENS["hugging face"], "PEM": KEY_LINE}


def with_secrets(text: str) -> str:
    for word, secret in PRINTED.items():
        text = (
            text.replace(f" {word}", f" {secret}").replace(f'"{word}', f'"{secret}').replace(f"={word}", f"={secret}")
        )
        text = (
            text.replace(f":{word}", f":{secret}").replace(f"[{word}", f"[{secret}").replace(f"/{word}", f"/{secret}")
        )
        text = (
            text.replace(f"'{word}", f"'{secret}")
            .replace(f"71{word}", f"71{secret}")
            .replace(f"20{word}", f"20{secret}")
        )
    return text


def leaked(text: str) -> list[str]:
    """Parts of secrets in a text: any five characters in a row, or eight digits, as times have five."""
    values = [*((value, 5) for value in PRINTED.values()), ("73912046582", 8)]
    parts = [value[at : at + size] for value, size in values for at in range(3, len(value) - size + 1)]
    return [part for part in parts if part in text]


@pytest.mark.parametrize("case", SECRETS)
def test_no_format_shows_a_secret(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, case: str) -> None:
    (tmp_path / "jobs").mkdir()
    kept = tmp_path_factory.mktemp("cache")
    text = with_secrets(SECRETS[case])
    assert leaked(text), "the secret is in the file"
    (tmp_path / "jobs/a.yaml").write_text(text)

    def lint_all() -> list[str]:
        cache.enable(kept, "test")
        return [*lint_in_formats(tmp_path).values()]

    # In a process of its own: others have no cache.
    printed = run_limited(lint_all)
    assert not [text for text in printed if leaked(text)]
    written = [path.read_bytes().decode("latin-1") for path in kept.rglob("*") if path.is_file()]
    assert not [found for content in written for found in leaked(content)]


def test_secret_of_an_overlay_is_not_shown(tmp_path: Path) -> None:
    copy = {
        "jobs/a.yaml": JOB,
        "overlays/prod/o.yaml": with_secrets(
            "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec:\n  patches:\n"
            "  - merge: {env: {DB_PASSWORD: SECRET, API_KEY: [SECRET]}}\n"
        ),
    }
    for path, text in copy.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for printed in lint_in_formats(tmp_path).values():
        assert not leaked(printed), printed


def test_explain_shows_no_secret(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(with_secrets(SECRETS["variable of a job"]))
    overlay = (
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {patches: [{merge: {env: {DB_PASSWORD: Qq8aLwRt5Bn2}}}]}\n"
    )
    (tmp_path / "overlays/prod").mkdir(parents=True)
    (tmp_path / "overlays/prod/o.yaml").write_text(overlay)
    for form in ("text", "json"):
        result = explain_name(tmp_path, "bert", "", (), format_=form)
        assert "DB_PASSWORD" in result.out
        assert not leaked(result.out)
        assert "aLwRt" not in result.out


def test_explain_shows_no_secret_of_a_config(tmp_path: Path) -> None:
    config = "  configs: {c: {mountPath: /c, data: {password: SECRET, own.yaml: 'api_token: SECRET'}}}\n"
    text = with_secrets(JOB + config)
    assert leaked(text), "the secret is in the file"
    overlay = (
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {patches: [{merge: {configs: {c: {data:"
        " {password: Qq8aLwRt5Bn2, own.yaml: 'api_token: Qq8aLwRt5Bn2'}}}}}]}\n"
    )
    for path, content in (("jobs/a.yaml", text), ("overlays/prod/o.yaml", overlay)):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(content)
    for form in ("text", "json"):
        result = explain_name(tmp_path, "bert", "configs", (), format_=form)
        assert "password" in result.out
        assert not leaked(result.out)
        assert "aLwRt" not in result.out


def test_diff_shows_only_that_a_secret_changed(tmp_path: Path) -> None:
    for side, secret in (("old", FAKE), ("new", FAKE[::-1])):
        (tmp_path / side).mkdir()
        manifest = SECRETS["variable of a manifest"].replace(", valu: SECRET", "").replace("SECRET", secret)
        (tmp_path / side / "a.yaml").write_text(manifest)
    for form in ("text", "json", "markdown"):
        text = diff(tmp_path, folders=(f"{tmp_path}/old", f"{tmp_path}/new"), format=form).text
        assert "env" in text
        assert not leaked(text)
        assert FAKE[::-1][3:9] not in text


PAGE_SECRETS = {
    **SECRETS,
    "config": JOB + "  configs: {c: {mountPath: /c, data: {password: SECRET, own.yaml: 'api_token: SECRET'}}}\n",
    "script": JOB + "  command:\n  - sh\n  - -c\n  - |\n    export API_KEY=SECRET\n    curl https://me:SECRET@h/x\n",
    "settings": JOB + "  configs: {c: {mountPath: /c, data: {own.ini: 'db_password = SECRET'}}}\n",
    "password of two lines": JOB + "  env:\n    DB_PASSWORD: |\n      SECRET\n      PEM\n",
    "labels": JOB.replace("namespace: ml", "namespace: ml, labels: {owner: TOKEN, team: TOKEN}") + "  queue: TOKEN\n",
    "annotation": JOB.replace("namespace: ml", "namespace: ml, annotations: {owner: 'https://me:SECRET@x'}"),
    "comment": JOB + "  # DB_PASSWORD: SECRET\n  # TOKEN\n",
    "name": JOB.replace("name: bert", "name: TOKEN"),
}


def find_in_page(page: str) -> tuple[list[str], bool]:
    """Find secrets in the title and the data of a page; its script has all letters in their order."""
    text = page.partition("<style>")[0] + page.partition('id="data">')[2].partition("</script>")[0]
    return leaked(text), "aLwRt" in text


def test_page_shows_no_secret(tmp_path: Path) -> None:
    """Neither in the page of the fleet nor in that of a change; each job is read as a file of its own."""
    base, head = tmp_path / "base", tmp_path / with_secrets(" TOKEN").strip()
    overlay = (
        "apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {patches: [{merge: {env: {DB_PASSWORD: Qq8aLwRt5Bn2}}}]}\n"
    )
    for folder in (base, head):
        (folder / "jobs").mkdir(parents=True)
        (folder / "overlays/prod").mkdir(parents=True)
        (folder / "overlays/prod/o.yaml").write_text(overlay)
    for number, (name, text) in enumerate(PAGE_SECRETS.items()):
        written = with_secrets(text).replace("name: bert,", f"name: bert-{number},")
        assert leaked(written), name
        (head / f"jobs/{number}.yaml").write_text(written)
    (base / "jobs/0.yaml").write_text(JOB)
    found = report(head)
    assert '"DB_PASSWORD' in found.data
    assert find_in_page(found.page) == ([], False)
    for file in {error.location.file for error in found.errors}:
        (head / file).unlink()
    for folders in ((base, head), (head, base)):
        page = diff(tmp_path, folders=tuple(map(str, folders)), format="html").text
        assert page.count("PyTorchJob")
        assert find_in_page(page) == ([], False)


def test_page_masks_what_a_secret_overrides(tmp_path: Path) -> None:
    """A JSON patch does not name the variable that it sets."""
    path = "/spec/pytorchReplicaSpecs/Master/template/spec/containers/0/env/0/value"
    patches = [f"{{jsonPatch: [{{op: add, path: {path}, value: {value}}}]}}" for value in ("Qq1aLwRt5", "Qq2aLwRt5")]
    overlay = f"apiVersion: jobgen.dev/v1\nkind: Overlay\nspec: {{patches: [{', '.join(patches)}]}}\n"
    for file, text in (("jobs/a.yaml", with_secrets(SECRETS["variable of a job"])), ("overlays/prod/o.yaml", overlay)):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
    found = report(tmp_path)
    assert '"value: …"' in found.data
    assert find_in_page(found.page) == ([], False)


BEFORE_NAMES = ["", "x", "MY_", "my-", "a1_b-", "MYX", "é_", "x" * 99 + "_", "x" * 101, "1"]
NAMES = ["TOKEN", "secret", "Password", "passwd", "api-key", "APIKEY", "access_key", "ENCRYPTION-KEY", "key", "tokens"]
FOLDED_NAMES = ["apı_key", "acceſſ_key", "APİ_KEY", "to\u212aen"]
VALUE = "Zq1aLwRt5x"


@pytest.mark.parametrize("name", NAMES + FOLDED_NAMES)
def test_the_value_of_every_name_that_means_a_secret_is_found(name: str) -> None:
    texts = ("a: 1\n{}: {}\nb: 2", "run --{}={}")
    for before, form in product(BEFORE_NAMES, texts):
        means_secret, text = looks_like_secret(before + name, VALUE), form.format(before + name, VALUE)
        # In a text, a word of more than 101 characters is cut.
        if means_secret and (before + name).isascii() and before != "1" and len(before) < 80:
            assert VALUE in find_secrets_in_text(text)
        # What is found alone is found in a file, which is tested first.
        assert not (means_secret or find_secrets_in_text(text)) or may_hold_secret(text)


@pytest.mark.parametrize(
    "text", [*TOKENS.values(), "at: https://me:Zq1a@host/x", 'a: "\\nTOKEN: Zq1aLwRt5x"', "kind: Secret\n"]
)
def test_a_text_with_a_secret_may_hold_one(text: str) -> None:
    assert may_hold_secret(text)


def states_secret(text: str) -> bool:
    return bool(find_token(text)) or any(looks_like_secret(*pair) for pair in find_assignments(text))


@laws(100)
@given(
    strategies.lists(
        strategies.tuples(
            strategies.sampled_from(["", "é", '"', "\\", "\n", "\\n", "--", "x", "\u2028", "a=b "]),
            strategies.sampled_from(["", *TOKENS.values(), *(f"{name}=" for name in (*NAMES, *FOLDED_NAMES))]),
            strategies.sampled_from(["", VALUE, "…", "'quoted'", '"', "\n"]),
        ).map("".join)
    )
)
def test_data_is_stored_unless_a_text_in_it_states_a_secret(texts: list[str]) -> None:
    plain = [texts, {text: [text] for text in texts}]
    stored = without_secret(dump_plain(plain))

    assert (stored is None) == any(map(states_secret, texts))
    assert stored is None or load_plain(stored) == plain


@pytest.mark.parametrize(
    "text", ["", "automountServiceAccountToken: false", "topologyKey: zone", "secretName: a", "keys: 1"]
)
def test_most_texts_hold_no_secret(text: str) -> None:
    assert not may_hold_secret(text)


def test_many_names_take_linear_time() -> None:
    text = "\n".join(f"{'x' * 100}TOKEN: {number:09}" for number in range(20_000))

    assert run_limited(lambda: len(find_secrets_in_text(text))) >= 0


def test_many_private_keys_take_linear_time() -> None:
    text = "-----BEGIN PRIVATE KEY-----" * 40_000

    assert run_limited(lambda: len(find_secrets_in_text(text))) > 0


NAMED = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.0.0
  env:
    API_TOKEN: hunter2hunter2
    DB_PASSWORD: {valueFrom: {secretKeyRef: {name: database, key: db-password}}}
    OTHER_TOKEN: {secretKeyRef: {name: hub-token, key: api-token}}
  secrets:
    hub: {env: {HF_TOKEN: hub-token-key}}
  volumes:
    credentials: {secret: s3-credentials-secret, mountPath: /credentials}
  roles: {master: {}}
---
apiVersion: v1
kind: Secret
metadata: {name: database, namespace: ml}
stringData: {db-password: correct-horse, api-token: battery-staple}
"""


def test_page_shows_the_names_of_secrets_and_of_their_keys(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(NAMED)
    page = report(tmp_path).page

    for line in NAMED.splitlines()[8:15]:
        assert f'"{line.strip()}"' in page
    for line in ("name: DB_PASSWORD", "key: db-password", "key: hub-token-key", "secretName: s3-credentials-secret"):
        assert line in page
    assert all(value not in page for value in ("hunter2", "correct-horse", "battery-staple"))


SCRIPT = """apiVersion: v1
kind: ConfigMap
metadata: {name: scripts}
data:
  run.sh: |
    K=zebra77quagga
    API_KEY=$K
    PASSWORD=ferret68stoat
    torchrun --nproc-per-node=$PASSWORD train.py --token $PASSWORD --auth $API_KEY --secret "okapi93 ibis"
---
apiVersion: batch/v1
kind: Job
metadata: {name: b}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: 'a:1', command: [bash, /app/run.sh], volumeMounts: [{name: code, mountPath: /app}]}
      volumes: [{name: code, configMap: {name: scripts}}]
"""


def test_the_command_of_a_script_in_a_config_map_is_shown_without_secrets(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/b.yaml").write_text(SCRIPT)
    shown = explain_name(tmp_path, "b", "launch", (), format_="text").out
    assert "torchrun --nproc-per-node=… train.py --token … --auth … --secret …" in shown
