-- read hands out jobs that start now: first what dead workers and those that stop have
-- left, then what waits in the lanes, in their order, up to a number in all.
--
-- KEYS     for each lane, in the order asked for: its stream, groups, released, looked
-- ARGV     group, consumer, the most jobs, whether to look for what others have left,
--          how long ago another worker may have looked instead (ms), how long a consumer
--          that has nothing must be silent to be taken for dead (ms), whether to take
--          what waits, whether the places are wanted from which to wait, generation for
--          new groups, then the name of each lane
-- returns  1  the generation of each lane's group
--          2  what was left: lane, id, deliveries, how many of these were given back,
--             fields
--          3  what waited: lane, entries (id, fields)
--          4  how many left entries of each lane had no job any more
--          5  the lanes whose group had vanished
--          6  whether there may be more that was left
--          7  the last id of each lane that was handed out
local group, consumer, most = text(), text(), number()
local looking, recent, silent, taking = text() == '1', number(), number(), text() == '1'
local places, generation = text() == '1', text()
local lanes = {}
for n = 1, #KEYS / 4 do
  local k = (n - 1) * 4
  lanes[n] = {stream = KEYS[k + 1], groups = KEYS[k + 2], released = KEYS[k + 3], looked = KEYS[k + 4], name = text()}
end

local generations, left, waited, ghosts, vanished, more, lasts = {}, {}, {}, {}, {}, 0, {}

-- unknownLease is the lease of consumers that are not ours.
local unknownLease = 60000

-- takeSome takes some of what one consumer has had for longer than its lease, and
-- returns how many entries it looked at.
local function takeSome(n, lane, from, lease)
  local rows
  if lease > 0 then
    rows = redis.call('XPENDING', lane.stream, group, 'IDLE', lease, '-', '+', most, from)
  else
    rows = redis.call('XPENDING', lane.stream, group, '-', '+', most, from)
  end
  if #rows == 0 then
    return 0
  end
  local ids, deliveries = {}, {}
  for i, row in ipairs(rows) do
    ids[i], deliveries[row[1]] = row[1], row[4] + 1
  end
  local gone = #ids
  for _, entry in ipairs(redis.call('XCLAIM', lane.stream, group, consumer, lease, unpack(ids))) do
    if entry then
      local back = redis.call('HGET', lane.released, entry[1]) or 0
      left[#left + 1] = {n, entry[1], deliveries[entry[1]], tonumber(back), entry[2]}
      gone = gone - 1
      most = most - 1
    end
  end
  ghosts[n] = ghosts[n] + gone -- XCLAIM has acknowledged them
  return #rows
end

-- patience is how often one script looks again because all that it found were ghosts.
local patience = 500

-- takeOver takes all of it, as far as there is room: ghosts take none.
local function takeOver(n, lane, from, lease)
  while most > 0 do
    if patience == 0 then
      more = 1
      return
    end
    patience = patience - 1
    local asked = most
    if takeSome(n, lane, from, lease) < asked then
      return
    end
  end
end

-- look looks for what others have left in a lane.
local function look(n, lane)
  local at = tonumber(redis.call('HGET', lane.looked, lane.name) or 0)
  if at <= now and now - at < recent then
    return
  end
  local consumers = redis.pcall('XINFO', 'CONSUMERS', lane.stream, group)
  if consumers.err then
    return -- the group is gone; reading makes a new one
  end
  for _, info in ipairs(consumers) do
    local c = named(info)
    local lease = tonumber(string.match(c.name, '@(%d+)$') or unknownLease)
    if most == 0 and c.pending > 0 then
      more = 1 -- look again when there is room
      return
    elseif c.pending > 0 then
      takeOver(n, lane, c.name, lease)
    elseif c.idle > lease + silent and c.name ~= consumer then
      redis.call('XGROUP', 'DELCONSUMER', lane.stream, group, c.name)
    end
  end
  if most > 0 and more == 0 then
    redis.call('HSET', lane.looked, lane.name, whole(now))
  else
    more = 1
  end
end

-- reopen makes the group of a lane that has none.
local function reopen(n, lane)
  local fresh
  generations[n], fresh = openGroup(lane.groups, lane.name, lane.stream, lane.released, group, generation)
  if fresh then
    vanished[#vanished + 1] = n
  end
end

-- readNew takes what waits in a lane.
local function readNew(n, lane)
  local reply = redis.pcall('XREADGROUP', 'GROUP', group, consumer, 'COUNT', most, 'STREAMS', lane.stream, '>')
  if reply and reply.err then
    reopen(n, lane)
    reply = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', most, 'STREAMS', lane.stream, '>')
  end
  if reply then
    local entries = reply[1][2]
    waited[#waited + 1] = {n, entries}
    most = most - #entries
  end
end

for n, lane in ipairs(lanes) do
  ghosts[n] = 0
  if looking then
    look(n, lane)
  end
end
for n, lane in ipairs(lanes) do
  generations[n] = redis.call('HGET', lane.groups, lane.name)
  if not generations[n] then
    reopen(n, lane)
  end
  if taking and most > 0 then
    readNew(n, lane)
  end
  lasts[n] = '0-0'
  if places then
    local g = groupOf(lane.stream, group)
    lasts[n] = g and g['last-delivered-id'] or lasts[n]
  end
end
return {generations, left, waited, ghosts, vanished, more, lasts}
