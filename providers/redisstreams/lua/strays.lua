-- strays finds entries that a consumer has and does not know of, because an answer never
-- arrived: of lanes in which it has more than it knows, everything.
--
-- KEYS     the streams of lanes
-- ARGV     group, consumer, then how many runs it knows in each lane
-- returns  for each lane ids, each followed by the number of its deliveries
local found = {}
for n, stream in ipairs(KEYS) do
  local known, list = tonumber(ARGV[n + 2]), {}
  local rows = redis.pcall('XPENDING', stream, ARGV[1], '-', '+', known + 100, ARGV[2])
  if not rows.err and #rows > known then
    for _, row in ipairs(rows) do
      list[#list + 1] = row[1]
      list[#list + 1] = row[4]
    end
  end
  found[n] = list
end
return found
