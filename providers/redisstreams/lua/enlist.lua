-- enlist puts queues on the list of queues.
--
-- KEYS     the list
-- ARGV     the names of the queues
redis.call('SADD', KEYS[1], unpack(ARGV))
return {}
