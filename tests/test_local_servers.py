"""Servers that listen to 127.0.0.1 where a probe or other pods are to reach them."""

from __future__ import annotations

import json

import pytest
from lintfiles import lint_files

PORT = "ports: [{name: http, containerPort: 8000}]"
PROBE = "readinessProbe: {httpGet: {path: /health, port: 8000}}"
MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: predictor, namespace: ml}
spec:
  selector: {matchLabels: {app: predictor}}
  template:
    metadata: {labels: {app: predictor}}
    spec:
      containers:
        - name: main
          image: registry.example.com/predictor:1.2.0
          command: COMMAND
          FIELD
          resources: {requests: {cpu: 8, memory: 64Gi}, limits: {memory: 64Gi}}
          volumeMounts: [{name: shm, mountPath: /dev/shm}]
      volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}]
"""
SIDECAR = (
    "        - {name: proxy, image: 'registry.example.com/proxy:1.0.0', resources: {limits: {cpu: 1, memory: 1Gi}}}\n"
)


def list_local(folder, command, field=PORT, more=""):
    words = command if isinstance(command, list) else command.split()
    text = MANIFEST.replace("COMMAND", json.dumps(words)).replace("FIELD", field)
    text = text.replace("      volumes:", f"{more}      volumes:")
    found = lint_files(folder, {"jobs/serve.yaml": text})
    return [(each["line"], each["severity"], each["message"]) for each in found if each["rule"] == "failing-probe"]


@pytest.mark.parametrize(
    ("command", "field", "message"),
    [
        (
            "gunicorn app:app --bind 127.0.0.1:8000 --workers 4",
            PORT,
            "`gunicorn` listens to `127.0.0.1`, so other pods cannot reach it; write `0.0.0.0:8000`",
        ),
        ("gunicorn app:app -b localhost:8000", PROBE, "so the readinessProbe cannot reach it; write `0.0.0.0:8000`"),
        ("uvicorn app:app --host 127.0.0.1", PORT, "`uvicorn` listens to `127.0.0.1`, so other pods"),
        ("uvicorn app:app --port 8000", PORT, "listens to `127.0.0.1` without an option, so other pods"),
        (["python", "-m", "uvicorn", "app:app"], PROBE, "write `--host=0.0.0.0`"),
        (["bash", "-c", "cd /app && exec uvicorn app:app"], PROBE, "so the readinessProbe cannot reach it"),
        ("vllm serve m --host 127.0.0.1", PORT, "`vllm` listens to `127.0.0.1`, so other pods cannot reach it"),
        ("tensorboard --logdir=/logs --port=8000", PORT, "write `--bind_all`"),
        ("jupyter lab --ip=127.0.0.1 --port=8000", PORT, "write `0.0.0.0`"),
    ],
)
def test_a_server_that_only_its_pod_reaches_is_a_warning(tmp_path, command, field, message):
    [(line, severity, found)] = list_local(tmp_path, command, field)

    assert (line, severity) == (12, "warning")
    assert message in found


@pytest.mark.parametrize(
    ("command", "field"),
    [
        ("gunicorn app:app --bind 0.0.0.0:8000", PORT),
        ("gunicorn app:app", PORT),
        ("gunicorn app:app --bind 127.0.0.1:8001", PORT),
        ("gunicorn app:app --bind 127.0.0.1:8000 --bind 0.0.0.0:8000", PORT),
        ("uvicorn app:app --host 0.0.0.0", PORT),
        ("uvicorn app:app --host $(HOST)", PORT),
        ("uvicorn app:app --uds /tmp/a.sock", PORT),
        ("uvicorn app:app", f"{PORT}\n          env: [{{name: UVICORN_HOST, value: 0.0.0.0}}]"),
        ("uvicorn app:app", f"{PORT}\n          envFrom: [{{configMapRef: {{name: server}}}}]"),
        ("uvicorn app:app", "imagePullPolicy: Always"),
        ("uvicorn app:app", "readinessProbe: {exec: {command: [curl, 'http://127.0.0.1:8000']}}"),
        ("tensorboard --logdir=/logs --port=8000 --bind_all", PORT),
        ("vllm bench --host 127.0.0.1", PORT),
        (["bash", "-c", "nginx; uvicorn app:app"], PORT),
        ("python serve.py --host 127.0.0.1", PORT),
    ],
)
def test_a_server_that_may_be_reached_is_none(tmp_path, command, field):
    assert list_local(tmp_path, command, field) == []


def test_a_sidecar_may_pass_requests_on(tmp_path):
    assert list_local(tmp_path, "uvicorn app:app", PORT, SIDECAR) == []


SERVICE = """\
---
apiVersion: v1
kind: Service
metadata: {name: predictor, namespace: ml}
spec: {selector: {app: predictor}, ports: [PORT]}
"""
PLAIN = "imagePullPolicy: Always"


def list_behind_service(folder, command, port, field=PLAIN):
    text = MANIFEST.replace("COMMAND", json.dumps(command.split())).replace("FIELD", field)
    found = lint_files(folder, {"jobs/serve.yaml": text + SERVICE.replace("PORT", port)})
    return [(each["line"], each["message"]) for each in found if each["rule"] == "failing-probe"]


@pytest.mark.parametrize(
    ("command", "port"),
    [
        ("uvicorn app:app --host 127.0.0.1", "{port: 80, targetPort: 8000}"),
        ("uvicorn app:app", "{port: 8000}"),
        ("gunicorn app:app --bind localhost:9000", "{port: 9000}, {port: 80, targetPort: 9000}"),
    ],
)
def test_a_service_alone_shows_that_a_server_is_to_be_reached(tmp_path, command, port):
    [(line, message)] = list_behind_service(tmp_path, command, port)

    assert line == 12
    assert "so the Service `predictor` cannot reach it; write" in message


def test_a_service_that_leads_elsewhere_or_is_reported_by_a_port_adds_nothing(tmp_path):
    assert list_behind_service(tmp_path, "uvicorn app:app", "{port: 8001}") == []
    assert list_behind_service(tmp_path, "uvicorn app:app --host 0.0.0.0", "{port: 8000}") == []
    [(_, message)] = list_behind_service(tmp_path, "uvicorn app:app", "{port: 8000}", PORT)
    assert "so other pods cannot reach it" in message
