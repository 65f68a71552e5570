-- ack ends runs that leave nothing behind, which are most: those of jobs that were
-- delivered once, acknowledged, without next jobs and without a claim that ends. settle
-- does all others.
--
-- KEYS     for each lane: its stream, groups, released
-- ARGV     group, consumer; then for each lane: its name, its group's generation, the
--          range of ids (low, high, most), the number of its runs, and their ids
-- returns  the numbers of the runs that are not this consumer's any more
local group, consumer = text(), text()
local lost, n = {}, 0
for k = 1, #KEYS, 3 do
  local name, generation, low, high, most = text(), text(), text(), text(), number()
  local ids = {}
  for i = 1, number() do
    ids[i] = text()
  end
  local found, gone = {}, {}
  if current(KEYS[k + 1], name, generation) then
    found = runs(KEYS[k], group, consumer, ids, low, high, most)
  end
  for i, id in ipairs(ids) do
    if found[id] == 1 then
      gone[#gone + 1] = id
    else
      lost[#lost + 1] = n + i
    end
  end
  n = n + #ids
  if #gone > 0 then
    redis.call('XACK', KEYS[k], group, unpack(gone))
    redis.call('XDEL', KEYS[k], unpack(gone))
    if redis.call('EXISTS', KEYS[k + 2]) == 1 then
      redis.call('HDEL', KEYS[k + 2], unpack(gone)) -- of a group that was made anew
    end
  end
end
return lost
