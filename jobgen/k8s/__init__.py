"""Facts about Kubernetes objects that checks, rules and reports share."""
