-- The fence: a delivery is the run of an entry by one consumer, which is one
-- subscription and no other, ever; with the number of times that the entry was
-- delivered; in one generation of the queue's group, because a group that is made
-- anew counts from the beginning.

-- runs returns the number of deliveries of those of the ids that the consumer has
-- now. They are asked for in one range from low to high, or, with most being 0, one
-- by one. A range may have entries in between that are not asked for.
local function runs(stream, group, consumer, ids, low, high, most)
  local found = {}
  local function find(from, to, count)
    local rows = redis.pcall('XPENDING', stream, group, from, to, count, consumer)
    if rows.err then -- the group is gone, and with it all that was delivered
      return 0
    end
    for _, row in ipairs(rows) do
      found[row[1]] = row[4]
    end
    return #rows
  end
  if most > 0 and find(low, high, most) < most then
    return found
  end
  for _, id in ipairs(ids) do
    if not found[id] then
      find(id, id, 1)
    end
  end
  return found
end

-- current reports whether a generation is the one of a queue's group.
local function current(groups, queue, generation)
  return redis.call('HGET', groups, queue) == generation
end

