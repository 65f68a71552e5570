-- claim takes keys for their owners, or refreshes them.
--
-- KEYS     the keys
-- ARGV     for each: owner, for how long (ms), whether its job is on record
-- returns  for each who has it, and whether that one's job is on record
local holders = {}
for n, key in ipairs(KEYS) do
  local owner, ms, confirmed = text(), number(), text() == '1'
  local holder, known = other(key, owner)
  if holder then
    holders[n] = {holder, known and 1 or 0}
  else
    holders[n] = {owner, grant(key, owner, ms, confirmed) and 1 or 0}
  end
end
return holders
