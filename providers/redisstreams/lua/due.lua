-- due says which queues hold jobs and when the first of each is due.
--
-- KEYS     due
-- ARGV     the most queues
-- returns  the time now, then queues and times, earliest first
local reply = redis.call('ZRANGE', KEYS[1], 0, tonumber(ARGV[1]) - 1, 'WITHSCORES')
table.insert(reply, 1, whole(now))
return reply
