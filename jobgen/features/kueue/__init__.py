"""Kueue's admission decision: which workloads of which queues are admitted, wait, or never fit."""

from jobgen.model.features import Feature

FEATURE = Feature(
    parts={
        "cluster.state": "state_part:PART",
        "diff.queues": "queues.compare:find_queue_changes",
        "diff.queues.json": "queues.change_sections:describe_queues",
        "diff.queues.markdown": "queues.change_sections:render_markdown",
        "diff.queues.text": "queues.change_sections:render_text",
    },
)
