"""What the webhooks of Kueue refuse: one module for queues, one for flavors, one for workloads.

Each function lists errors of fields, with the texts of Kubernetes. The schemas of the CRDs are checked elsewhere.
"""
