-- discard removes dead letters of one queue.
--
-- KEYS     dead, letters
-- ARGV     their addresses
-- returns  the letter at each, empty if there was none
local letters = {}
for n, address in ipairs(ARGV) do
  letters[n] = redis.call('HGET', KEYS[2], address) or ''
  redis.call('ZREM', KEYS[1], address)
  redis.call('HDEL', KEYS[2], address)
end
return letters
