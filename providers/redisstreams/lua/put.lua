-- put stores jobs: each in its queue's stream, or held until it is due.
--
-- KEYS     for each queue of the call its keys; then the keys of claims and of
--          ordering keys
-- ARGV     the number of queues and their names; then jobs, as store.lua says
-- returns  for each job that is not stored: its number, and what store says
--
-- Nothing comes before it in memory that could be refused in the middle: Redis
-- refuses the script as a whole when it is full.
for n = 1, number() do
  queues[n] = queueKeys(n, text())
end
local problems, n = {}, 0
while cursor < #ARGV do
  n = n + 1
  local word, why = store(readJob())
  if word then
    problems[#problems + 1] = {n, word, why}
  end
end
return problems
