"""Rules about access to the node and about secrets."""
