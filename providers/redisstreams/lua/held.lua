-- Held jobs. A queue has a sorted set of what is held, by the millisecond in which
-- it is due, and a hash of bodies. A job may be held in several copies, one for
-- each state (stamp) it is in, because a store that was cut off may hold a job
-- again that went on elsewhere. The sorted set has "STAMP ID" for each copy; the
-- hash has, for each id, "STAMP SEQ SIZE BODY" of one copy after the other.
--
-- A borrower's jobs may have an ordering key. Then seq is the job's place in the
-- sequence of all holds, and the key has a sorted set of its own, with "SEQ STAMP
-- ID" by the time when each is due. Of a key only the first is due; the others are
-- in the queue's sorted set beyond all times. One that a promoter has begun with
-- stays the first, whatever is due before it, until it is stored.

-- queueKeys are the keys of queue n.
local function queueKeys(n, name)
  local k = (n - 1) * 7
  return {
    name = name, stream = KEYS[k + 1], bound = KEYS[k + 2], held = KEYS[k + 3], bodies = KEYS[k + 4],
    due = KEYS[k + 5], begun = KEYS[k + 6], seq = KEYS[k + 7],
  }
end

-- beyond is added to the time of what waits behind another of its key.
local beyond = 4503599627370496

local function member(id, stamp)
  return stamp .. ' ' .. id
end

-- split returns the id and the stamp of a member.
local function split(m)
  local stamp, at = string.match(m, '^(%S+) ()')
  return string.sub(m, at), stamp
end

-- copies reads what is held of an id.
local function copies(h, id)
  local list, value, at = {}, redis.call('HGET', h.bodies, id), 1
  while value and at <= #value do
    local stamp, seq, size, from = string.match(value, '^(%S+) (%d+) (%d+) ()', at)
    list[#list + 1] = {stamp = stamp, seq = seq, body = string.sub(value, from, from + size - 1)}
    at = from + size
  end
  return list
end

-- copy finds one of them, and its place.
local function copy(list, stamp)
  for i, c in ipairs(list) do
    if c.stamp == stamp then
      return c, i
    end
  end
end

-- keep writes them back.
local function keep(h, id, list)
  if #list == 0 then
    redis.call('HDEL', h.bodies, id)
    return
  end
  local value = ''
  for _, c in ipairs(list) do
    value = value .. c.stamp .. ' ' .. c.seq .. ' ' .. #c.body .. ' ' .. c.body
  end
  redis.call('HSET', h.bodies, id, value)
end

-- index notes when the first held job of a queue is due.
local function index(h)
  local first = redis.call('ZRANGE', h.held, 0, 0, 'WITHSCORES')
  if first[1] then
    redis.call('ZADD', h.due, first[2], h.name)
  else
    redis.call('ZREM', h.due, h.name)
  end
end

-- waiting is a member of an ordering key.
local function waiting(seq, m)
  return string.format('%016.0f', seq) .. ' ' .. m
end

-- place puts the n-th of an ordering key beyond all times, or among them.
local function place(h, order, n, among)
  local at = redis.call('ZRANGE', order, n, n)[1]
  if not at then
    return
  end
  local m = string.sub(at, 18)
  local due = tonumber(redis.call('ZSCORE', h.held, m) or 0)
  if among and due >= beyond then
    redis.call('ZADD', h.held, whole(due - beyond), m)
  elseif not among and due < beyond then
    redis.call('ZADD', h.held, whole(due + beyond), m)
  end
end

-- lead lets the first of an ordering key be due, and no other.
local function lead(h, order)
  place(h, order, 1, false)
  place(h, order, 0, true)
end

-- pin keeps what a promoter has begun with the first of its key.
local function pin(h, order)
  local first = redis.call('ZRANGE', order, 0, 0)[1]
  if first and redis.call('HEXISTS', h.begun, string.sub(first, 18)) == 1 then
    redis.call('ZADD', order, 0, first)
  end
end

-- drop removes one copy of a held job, the i-th of its list.
local function drop(h, id, list, i, order)
  local m, seq = member(id, list[i].stamp), list[i].seq
  table.remove(list, i)
  keep(h, id, list)
  redis.call('ZREM', h.held, m)
  redis.call('HDEL', h.begun, m)
  if order then
    redis.call('ZREM', order, waiting(seq, m))
    lead(h, order)
  end
end

-- hold keeps a copy of a job until it is due. It replaces the copy of the same
-- state, and whoever promotes that one will not make this one forgotten.
local function hold(h, id, stamp, body, due, order)
  local list, m, seq = copies(h, id), member(id, stamp), 0
  local _, i = copy(list, stamp)
  if i then
    drop(h, id, list, i, order)
  end
  if order then
    pin(h, order)
    seq = redis.call('INCR', h.seq)
    redis.call('ZADD', order, whole(due), waiting(seq, m))
    redis.call('ZADD', h.held, whole(due + beyond), m)
  else
    redis.call('ZADD', h.held, whole(due), m)
  end
  list[#list + 1] = {stamp = stamp, seq = seq, body = body}
  keep(h, id, list)
  if order then
    lead(h, order)
  end
  index(h)
end

