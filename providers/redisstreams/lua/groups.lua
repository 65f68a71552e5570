-- openGroup makes a queue's group, from the beginning of its stream: what is settled
-- is not there any more. Returns the group's generation, and whether it was made now.
local function openGroup(groups, queue, stream, released, group, generation)
  local made = redis.pcall('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM')
  if made.err and string.sub(made.err, 1, 9) ~= 'BUSYGROUP' then
    error(made)
  end
  local known = redis.call('HGET', groups, queue)
  if made.err and known then
    return known, false
  end
  redis.call('HSET', groups, queue, generation)
  if made.err then
    return generation, false
  end
  redis.call('DEL', released) -- its counts are of deliveries that begin again
  return generation, true
end

