-- A job on its way into a queue is written as
--
--   queue body id bounded claim ms delay stamp order
--
-- which says whether a bound holds it back, the place of its claim's key among KEYS and
-- for how long, how long it is held (empty: not at all), in which state, and the place
-- of its ordering key's; 0 for what it does not have.

local queues = {}

-- readJob reads one.
local function readJob()
  return {
    queue = queues[number()], body = text(), id = text(), bounded = text() == '1',
    claim = KEYS[number()], ms = number(), delay = number(), stamp = text(), order = KEYS[number()],
  }
end

-- room is how many jobs more a queue takes from clients.
local room = {}
local function full(h)
  if not room[h] then
    local bound = tonumber(redis.call('GET', h.bound) or 0)
    if bound == 0 then
      room[h] = math.huge
    else
      room[h] = bound - redis.call('XLEN', h.stream) - redis.call('ZCARD', h.held)
    end
  end
  return room[h] <= 0
end

-- store stores a job with its claim, in one step of its own: what goes wrong with it
-- concerns no other job of the script. Returns nothing if it is stored; else a word,
-- and who has the claim or what went wrong:
--   full        its queue has no room
--   pending     another has its claim, whose job is not on record yet
--   duplicate   another has it, whose job is
--   error       something of somebody else's is in the way
local function store(j)
  if j.bounded and full(j.queue) then
    return 'full', ''
  end
  if j.claim then
    local holder, confirmed = other(j.claim, j.id)
    if holder then
      return confirmed and 'duplicate' or 'pending', holder
    end
  end
  if j.delay then
    hold(j.queue, j.id, j.stamp, j.body, after(j.delay), j.order)
  else
    local added = redis.pcall('XADD', j.queue.stream, '*', 'job', j.body)
    if type(added) == 'table' then
      return 'error', added.err
    end
  end
  if j.claim then
    grant(j.claim, j.id, j.ms, true)
  end
  if room[j.queue] then
    room[j.queue] = room[j.queue] - 1
  end
end

