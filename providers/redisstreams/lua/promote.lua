-- promote moves jobs that are due into their streams. A job that somebody removed by
-- hand is forgotten.
--
-- KEYS     the keys of queues with jobs that are due
-- ARGV     the most jobs, the most bytes, the names of the queues
-- returns  for each queue: how many were moved, how many were not there
local most, bytes = number(), number()
local moved = {}
for n = 1, #KEYS / 7 do
  local h = queueKeys(n, text())
  local count, ghosts, done = 0, 0, {}
  if most > 0 and bytes > 0 then
    for _, m in ipairs(redis.call('ZRANGE', h.held, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, most)) do
      local id, stamp = split(m)
      local list = copies(h, id)
      local c, i = copy(list, stamp)
      if c then
        redis.call('XADD', h.stream, '*', 'job', c.body)
        bytes = bytes - #c.body
        count = count + 1
        table.remove(list, i)
        keep(h, id, list)
      else
        ghosts = ghosts + 1
      end
      done[#done + 1] = m
      if bytes <= 0 then
        break
      end
    end
    if #done > 0 then
      redis.call('ZREM', h.held, unpack(done))
      most = most - #done
    end
    index(h)
  end
  moved[n] = {count, ghosts}
end
return moved
