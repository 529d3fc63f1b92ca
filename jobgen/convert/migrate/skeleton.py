"""An MXNet job as the beginning of a PyTorch job: what both have is kept, the rest is a list of things to do."""

from __future__ import annotations

from jobgen.convert.migrate.draft import Draft, say_of_all
from jobgen.convert.migrate.tables import MEANINGS
from jobgen.model.data import Data


def skeleton(draft: Draft) -> None:
    """Workers become the nodes of one process group; schedulers and servers have nothing to do there."""
    spec = draft.spec
    draft.say(("framework",), "changed", "MXNet is archived, and its operator is gone since 1.9; it is `pytorch` now")
    spec["framework"] = draft.framework = "pytorch"
    if "mxnet" in spec:
        draft.lose(("mxnet",), "PyTorch has no such setting")
    if "ports" in spec:
        draft.lose(("ports",), "the operator adds the port of torch.distributed itself")
    own: dict[str, Data] = spec.pop("roles", None) or {}
    worker = dict(own.get("worker") or {})
    for name in own:
        if name != "worker":
            draft.say(("roles", name), "lost", "gradients are exchanged among the workers: there is no such role")
    count = worker.pop("replicas", None) or 1
    for field, value in worker.items():
        if field == "ports":
            draft.say(("roles", "worker", field), "lost", "the operator adds the port of torch.distributed itself")
        else:
            say_of_all(draft, ("roles", "worker"), field, value)
    if count > 1:
        draft.spec["roles"] = {"master": {}, "worker": {"replicas": count - 1}}
        draft.say(("roles", "worker"), "changed", "the first worker is the master")
    elif own:
        draft.say(("roles", "worker"), "moved", "the only node is the master")
    for field, why in MEANINGS["kubeflow MXJob", "PyTorch"]:
        draft.say(tuple(field.split(".")), "check", why)
