-- add stores jobs that are ready and have nothing beside their record, which are most:
-- put does the same for all others.
--
-- KEYS     for each queue: its stream, bound, held
-- ARGV     for each queue: whether its bound holds the jobs back (b) or not (r), their
--          number, and their records
-- returns  as put does, the numbers being those of the records in order; and the numbers
--          of the queues that have a bound
local problems, bounded, n, at = {}, {}, 0, 1
for k = 1, #KEYS, 3 do
  local stream, room = KEYS[k], math.huge
  if ARGV[at] == 'b' then
    local bound = tonumber(redis.call('GET', KEYS[k + 1]) or 0)
    if bound > 0 then
      bounded[#bounded + 1] = (k + 2) / 3
      room = bound - redis.call('XLEN', stream) - redis.call('ZCARD', KEYS[k + 2])
    end
  end
  local last = at + 1 + tonumber(ARGV[at + 1])
  for i = at + 2, last do
    n = n + 1
    if room <= 0 then
      problems[#problems + 1] = {n, 'full', ''}
    else
      local added = redis.pcall('XADD', stream, '*', 'job', ARGV[i])
      if type(added) == 'table' then
        problems[#problems + 1] = {n, 'error', added.err}
      end
      room = room - 1
    end
  end
  at = last + 1
end
return {problems, bounded}
