-- extend is the heartbeat of runs: XCLAIM begins their leases anew, and with JUSTID the
-- numbers of their deliveries stay. It claims only what this consumer has: XCLAIM alone
-- would also take what another has by now.
--
-- KEYS     for each lane: its stream, groups
-- ARGV     group, consumer; then for each lane: its name, its group's generation, the
--          range of ids (low, high, most), the number of its runs, and for each run: id
--          deliveries
-- returns  the numbers of the runs that are not this consumer's any more
local group, consumer = text(), text()
local lost, n, k = {}, 0, 1
while cursor < #ARGV do
  local stream, groups = KEYS[k], KEYS[k + 1]
  k = k + 2
  local name, generation, low, high, most = text(), text(), text(), text(), number()
  local ids, deliveries = {}, {}
  for i = 1, number() do
    ids[i], deliveries[i] = text(), number()
  end
  local found = {}
  if current(groups, name, generation) then
    found = runs(stream, group, consumer, ids, low, high, most)
  end
  local held, kept = {}, {}
  for i, id in ipairs(ids) do
    if found[id] == deliveries[i] then
      held[#held + 1] = id
    end
  end
  if #held > 0 then
    held[#held + 1] = 'JUSTID'
    for _, id in ipairs(redis.call('XCLAIM', stream, group, consumer, 0, unpack(held))) do
      kept[id] = true -- an entry that somebody deleted is not among them
    end
  end
  for i, id in ipairs(ids) do
    n = n + 1
    if found[id] ~= deliveries[i] or not kept[id] then
      lost[#lost + 1] = n
    end
  end
end
return lost
