"""The pods that operators create from objects, and what differs between the pods of two objects."""
