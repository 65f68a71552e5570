-- bury keeps a dead letter. Its address is the microsecond of its death, or the next that
-- no letter of the queue has.
local function bury(dead, letters, body)
  local last = redis.call('ZRANGE', dead, -1, -1, 'WITHSCORES')[2]
  local at = whole(math.max(seconds * 1000000 + micros, tonumber(last or 0) + 1))
  redis.call('HSET', letters, at, body)
  redis.call('ZADD', dead, at, at)
end

