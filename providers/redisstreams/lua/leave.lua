-- leave removes a consumer from the groups in which it has nothing. What it has stays
-- its own until the lease ends: XGROUP DELCONSUMER would drop that for ever.
--
-- KEYS     the streams of its lanes
-- ARGV     group, consumer
for _, stream in ipairs(KEYS) do
  local rows = redis.pcall('XPENDING', stream, ARGV[1], '-', '+', 1, ARGV[2])
  if not rows.err and #rows == 0 then
    redis.call('XGROUP', 'DELCONSUMER', stream, ARGV[1], ARGV[2])
  end
end
return {}
