-- conclude ends reservations: it forgets jobs that were published, and gives back those
-- that were refused. A job that was held anew meanwhile, or that another promoter has by
-- now, is left alone.
--
-- KEYS     the keys of queues; then the keys of ordering keys
-- ARGV     the promoter's token, the number of queues and their names; then for each job:
--          queue, id, stamp, the place of its ordering key's (0: none), and when it is to
--          be tried again (ms; empty: forget it)
-- returns  nothing
local token, queues = text(), {}
for n = 1, number() do
  queues[n] = queueKeys(n, text())
end
local touched = {}
while cursor < #ARGV do
  local h, id, stamp, order, again = queues[number()], text(), text(), KEYS[number()], number()
  local m = member(id, stamp)
  if redis.call('HGET', h.begun, m) == token then
    touched[h] = true
    if again then
      redis.call('ZADD', h.held, whole(now + again), m)
      redis.call('HSET', h.begun, m, '') -- it is nobody's, and still the first of its key
    else
      local list = copies(h, id)
      local _, i = copy(list, stamp)
      if i then
        drop(h, id, list, i, order)
      end
    end
  end
end
for h in pairs(touched) do
  index(h)
end
return {}
