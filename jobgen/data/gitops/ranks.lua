local ranks, verdicts = {}, {}
for rank, state in ipairs(states) do
  ranks[state[1]], verdicts[state[1]] = rank, state[2]
end
