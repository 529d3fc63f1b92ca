"""Kueue's admission decision: which workloads of which queues are admitted, wait, or never fit. No files, no YAML."""

from jobgen.kueue.tables import answer

__all__ = ["answer"]
