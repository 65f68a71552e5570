-- reserve gives jobs that are due to one promoter, which publishes them elsewhere: until
-- its lease ends nobody else gets them.
--
-- KEYS     the keys of queues with jobs that are due
-- ARGV     the most jobs, the most bytes, the lease (ms), the promoter's token, the names
--          of the queues
-- returns  queue, id, stamp, record of each; no record if somebody removed it by hand
local most, bytes, lease, token = number(), number(), number(), text()
local reserved = {}
for n = 1, #KEYS / 7 do
  local h = queueKeys(n, text())
  if most > 0 and bytes > 0 then
    for _, m in ipairs(redis.call('ZRANGE', h.held, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, most)) do
      local id, stamp = split(m)
      local c = copy(copies(h, id), stamp)
      if c then
        redis.call('ZADD', h.held, whole(now + lease), m)
        redis.call('HSET', h.begun, m, token)
        reserved[#reserved + 1] = {n, id, stamp, c.body}
        bytes = bytes - #c.body
      else
        redis.call('ZREM', h.held, m)
        redis.call('HDEL', h.begun, m)
        reserved[#reserved + 1] = {n, id, stamp}
      end
      most = most - 1
      if bytes <= 0 then
        break
      end
    end
    index(h)
  end
end
return reserved
