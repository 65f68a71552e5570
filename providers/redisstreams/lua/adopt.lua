-- adopt hands out what Redis gave to a consumer in an answer that never arrived. It was
-- not started, so this delivery is the same one and counts as none.
--
-- KEYS     the stream of a lane, released
-- ARGV     group, consumer, then for each entry: id, deliveries
-- returns  id, deliveries, how many of these were given back, fields
local group, consumer = text(), text()
local adopted = {}
while cursor < #ARGV do
  local id, deliveries = text(), number()
  local row = redis.call('XPENDING', KEYS[1], group, id, id, 1, consumer)[1]
  if row and row[4] == deliveries then
    local entry = redis.call('XCLAIM', KEYS[1], group, consumer, 0, id, 'RETRYCOUNT', deliveries)[1]
    if entry then
      local back = redis.call('HGET', KEYS[2], id) or 0
      adopted[#adopted + 1] = {id, deliveries, tonumber(back), entry[2]}
    end
  end
end
return adopted
