"""Pod Security: what the levels `baseline` and `restricted` forbid in a pod, for each minor version of Kubernetes.

`levels` reads the labels of a namespace; `checks` has the checks of both levels, with the versions that make them.
"""
