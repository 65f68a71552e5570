-- bury keeps bytes among the dead letters of a queue.
--
-- KEYS     dead, letters
-- ARGV     the bytes
-- returns  nothing
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
local at = whole(math.max(seconds * 1000000 + micros, tonumber(last or 0) + 1))
redis.call('HSET', KEYS[2], at, ARGV[1])
redis.call('ZADD', KEYS[1], at, at)
return {}
