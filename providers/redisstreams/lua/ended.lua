-- ended says which entries are settled: nobody has them, and they are not in the stream.
--
-- KEYS     stream, groups
-- ARGV     group, the queue's name, the generation of its group, then ids
-- returns  the numbers of those that are
--
-- It writes what is there already, so that who waits for replicas waits for all that was
-- written before.
local group, name, generation = text(), text(), text()
local settled, n = {}, 0
if not current(KEYS[2], name, generation) then
  return settled
end
redis.call('HSET', KEYS[2], name, generation)
while cursor < #ARGV do
  n = n + 1
  local id = text()
  local rows = redis.pcall('XPENDING', KEYS[1], group, id, id, 1)
  if not rows.err and #rows == 0 and #redis.call('XRANGE', KEYS[1], id, id) == 0 then
    settled[#settled + 1] = n
  end
end
return settled
