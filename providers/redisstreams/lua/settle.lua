-- settle ends runs, each as its worker decided, those that are no longer their
-- worker's not at all.
--
-- KEYS     the keys of all queues that take part; then for each lane: groups,
--          released, looked, dead, letters; then the keys of claims
-- ARGV     group, consumer, parked consumer, the most dead letters of a queue (0: no
--          limit); the number of queues and their names; then for each lane:
--          its queue, the place of its first key, its group's generation, the range of
--          ids (low, high, most), the number of its runs, and for each:
--            id deliveries kind
--              a   acknowledged, with a claim that ends (its place, 0: none), the job's
--                  id, the number of next jobs and these
--              r   again: the record, at the end of the stream
--              h   again later: the record, id, stamp, delay
--              d   dead: the record, the claim that ends (0: none), id
--              l   released
-- returns  for each run that is not settled its number, in the order in which they were
--          written, a word and what belongs to it:
--            lost      it is not this worker's run any more
--            pending   a next job's claim is another's, whose job is not on record yet
--            full      there are as many dead letters as there may be
--            error     something of somebody else's is in the way
--
-- What a run leaves behind is written before its entry is removed, so that an error
-- in between, which should not be, leaves too much and not too little.
local group, consumer, parked, mostDead = text(), text(), text(), number()
for n = 1, number() do
  queues[n] = queueKeys(n, text())
end

-- readRun reads one run.
local function readRun()
  local r = {id = text(), deliveries = number(), kind = text()}
  if r.kind == 'a' then
    r.claim, r.job, r.next = KEYS[number()], text(), {}
    for n = 1, number() do
      r.next[n] = readJob()
    end
  elseif r.kind == 'r' then
    r.body = text()
  elseif r.kind == 'h' then
    r.body, r.job, r.stamp, r.delay = text(), text(), text(), number()
  elseif r.kind == 'd' then
    r.body, r.claim, r.job = text(), KEYS[number()], text()
  end
  return r
end

-- handOff stores next jobs. One whose claim another has is merged into that one. Those
-- whose claim is pending keep the run open, before anything of it is done.
local function handOff(r)
  for _, j in ipairs(r.next) do
    if j.claim then
      local holder, confirmed = other(j.claim, j.id)
      if holder and not confirmed then
        return 'pending', holder
      end
    end
  end
  for _, j in ipairs(r.next) do
    if j.claim and j.claim == r.claim then
      free(r.claim, r.job) -- for this next job
    end
    local word, why = store(j)
    if word and word ~= 'duplicate' then
      return word, why
    end
  end
  if r.claim then
    free(r.claim, r.job)
  end
end

-- giveUp makes a run's job a dead letter.
local function giveUp(lane, r)
  if mostDead > 0 and redis.call('ZCARD', lane.dead) >= mostDead then
    return 'full', ''
  end
  bury(lane.dead, lane.letters, r.body)
  if r.claim then
    free(r.claim, r.job)
  end
end

-- finish does what a run leaves behind, other than nothing.
local function finish(lane, r)
  if r.kind == 'a' then
    return handOff(r)
  elseif r.kind == 'r' then
    local added = redis.pcall('XADD', lane.keys.stream, '*', 'job', r.body)
    if type(added) == 'table' then
      return 'error', added.err
    end
  elseif r.kind == 'h' then
    hold(lane.keys, r.job, r.stamp, r.body, after(r.delay))
  elseif r.kind == 'd' then
    return giveUp(lane, r)
  end
end

-- remove takes entries out of the stream.
local function remove(lane, ids)
  redis.call('XACK', lane.keys.stream, group, unpack(ids))
  redis.call('XDEL', lane.keys.stream, unpack(ids))
  if redis.call('EXISTS', lane.released) == 1 then
    redis.call('HDEL', lane.released, unpack(ids))
  end
end

-- release gives entries to nobody: the next worker takes them, and does not count what
-- their runs were.
local function release(lane, ids)
  ids[#ids + 1] = 'JUSTID' -- the number of deliveries stays: it never falls, or old runs would pass the fence
  for _, id in ipairs(redis.call('XCLAIM', lane.keys.stream, group, parked, 0, unpack(ids))) do
    redis.call('HINCRBY', lane.released, id, 1)
  end
  redis.call('HDEL', lane.looked, lane.keys.name) -- whoever looks next finds them
end

local problems, n = {}, 0
local function problem(at, word, why)
  problems[#problems + 1] = {at, word, why or ''}
end

while cursor < #ARGV do
  local lane = {keys = queues[number()]}
  local k = number()
  lane.groups, lane.released, lane.looked = KEYS[k], KEYS[k + 1], KEYS[k + 2]
  lane.dead, lane.letters = KEYS[k + 3], KEYS[k + 4]
  local generation, low, high, most = text(), text(), text(), number()
  local list, ids, found = {}, {}, {}
  for i = 1, number() do
    list[i] = readRun()
    ids[i] = list[i].id
  end
  if current(lane.groups, lane.keys.name, generation) then
    found = runs(lane.keys.stream, group, consumer, ids, low, high, most)
  end
  local gone, back = {}, {}
  for _, r in ipairs(list) do
    n = n + 1
    local word, why
    if found[r.id] ~= r.deliveries then
      word = 'lost'
    else
      word, why = finish(lane, r)
    end
    if word then
      problem(n, word, why)
    elseif r.kind == 'l' then
      back[#back + 1] = r.id
    else
      gone[#gone + 1] = r.id
    end
  end
  if #gone > 0 then
    remove(lane, gone)
  end
  if #back > 0 then
    release(lane, back)
  end
end
return problems
