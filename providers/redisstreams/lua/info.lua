-- named makes a table of what XINFO writes as names and values in turn.
local function named(list)
  local t = {}
  for i = 1, #list, 2 do
    t[list[i]] = list[i + 1]
  end
  return t
end

-- groupOf returns what XINFO says of one group of a stream, nil if there is none.
local function groupOf(stream, group)
  local groups = redis.pcall('XINFO', 'GROUPS', stream)
  if groups.err then
    return nil
  end
  for _, info in ipairs(groups) do
    local g = named(info)
    if g.name == group then
      return g
    end
  end
end

