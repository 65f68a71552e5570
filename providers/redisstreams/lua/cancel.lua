-- cancel removes copies of a held job, if nobody promotes them at this moment, and frees
-- the job's claim.
--
-- KEYS     the keys of a queue; then the keys of claims and of ordering keys
-- ARGV     the queue's name, the job's id, then for each copy: stamp, the record as it was
--          read, the places of its claim and of its ordering key (0: none)
-- returns  the numbers of those that were removed
local h, id = queueKeys(1, text()), text()
local removed, n = {}, 0
while cursor < #ARGV do
  n = n + 1
  local stamp, body, claim, order = text(), text(), KEYS[number()], KEYS[number()]
  local list, m = copies(h, id), member(id, stamp)
  local c, i = copy(list, stamp)
  local promoted = redis.call('HGET', h.begun, m)
  if promoted and promoted ~= '' then
    promoted = tonumber(redis.call('ZSCORE', h.held, m) or 0) > now
  else
    promoted = false
  end
  if c and c.body == body and not promoted then
    drop(h, id, list, i, order)
    if claim then
      free(claim, id)
    end
    removed[#removed + 1] = n
  end
end
index(h)
return removed
