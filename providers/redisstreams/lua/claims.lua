-- A claim is a key with its owner: "c:OWNER" when the owner's job is on record,
-- "p:OWNER" while that is pending. It ends by its own time to live, or, without
-- one, with its job.

-- other returns who else has a claim, and whether that one's job is on record; nil
-- if nobody has, or the owner itself.
local function other(key, owner)
  local value = redis.call('GET', key)
  if not value or string.sub(value, 3) == owner then
    return nil
  end
  return string.sub(value, 3), string.sub(value, 1, 2) ~= 'p:'
end

-- grant gives a claim to an owner whom no other keeps from it, for so many
-- milliseconds, 0 for as long as its job lives. A refresh makes it neither shorter
-- nor pending again. Returns whether the owner's job is on record.
local function grant(key, owner, ms, confirmed)
  if redis.call('GET', key) == 'c:' .. owner then
    confirmed = true
  end
  local left = redis.call('PTTL', key) -- -1 without an end, -2 without the key
  local value = (confirmed and 'c:' or 'p:') .. owner
  if ms == 0 or left == -1 then
    redis.call('SET', key, value)
  else
    redis.call('SET', key, value, 'PX', math.max(ms, left))
  end
  return confirmed
end

-- free ends a claim, if the owner has it.
local function free(key, owner)
  local value = redis.call('GET', key)
  if value and string.sub(value, 3) == owner then
    redis.call('DEL', key)
  end
end

