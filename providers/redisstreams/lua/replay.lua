-- replay returns one dead letter to its queue, with its claim.
--
-- KEYS     dead, letters, stream, and the claim's key if it has one
-- ARGV     address, the letter as it was read, the record to store, the job's id, for how
--          long the claim (ms, 0 as long as the job lives)
-- returns  a word, and who has the claim: stored, gone, duplicate, pending
local address, was, body, id, ms = text(), text(), text(), text(), number()
if redis.call('HGET', KEYS[2], address) ~= was then
  return {'gone', ''}
end
if KEYS[4] then
  local holder, confirmed = other(KEYS[4], id)
  if holder then
    return {confirmed and 'duplicate' or 'pending', holder}
  end
end
redis.call('XADD', KEYS[3], '*', 'job', body)
if KEYS[4] then
  grant(KEYS[4], id, ms, true)
end
redis.call('ZREM', KEYS[1], address)
redis.call('HDEL', KEYS[2], address)
return {'stored', ''}
