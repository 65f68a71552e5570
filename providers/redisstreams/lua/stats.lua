-- stats counts one queue, in one moment.
--
-- KEYS     stream, held, dead
-- ARGV     group, parked consumer
-- returns  entries, of these delivered and not settled, of these given back, held, dead,
--          and the ages in milliseconds of the first that is ready and of the first dead
--          letter, -1 if there is none
local stream, group, parked = KEYS[1], ARGV[1], ARGV[2]
local function age(id)
  return math.max(0, now - tonumber(string.match(id, '^%d+')))
end

local entries, delivered, back, last = redis.call('XLEN', stream), 0, 0, '-'
local g = groupOf(stream, group)
if g then
  last = '(' .. g['last-delivered-id']
  local summary = redis.call('XPENDING', stream, group)
  delivered = summary[1]
  for _, c in ipairs(summary[4] or {}) do
    if c[1] == parked then
      back = tonumber(c[2])
    end
  end
end

local ready = -1
local first = redis.call('XRANGE', stream, last, '+', 'COUNT', 1)[1]
if first then
  ready = age(first[1])
end
if back > 0 then
  local row = redis.call('XPENDING', stream, group, '-', '+', 1, parked)[1]
  ready = math.max(ready, row and row[3] or 0)
end

local oldest, dead = redis.call('ZRANGE', KEYS[3], 0, 0)[1], -1
if oldest then
  dead = math.max(0, now - math.floor(tonumber(oldest) / 1000))
end
return {entries, delivered, back, redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[3]), ready, dead}
