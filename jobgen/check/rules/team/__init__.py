"""Rules about what the objects of a team may use."""
