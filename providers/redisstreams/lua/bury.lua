-- bury keeps bytes among the dead letters of a queue.
--
-- KEYS     dead, letters
-- ARGV     the bytes
-- returns  nothing
bury(KEYS[1], KEYS[2], ARGV[1])
return {}
