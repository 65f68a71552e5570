-- open makes the groups of lanes that have none.
--
-- KEYS     for each lane: its stream, groups, released
-- ARGV     group, generation for new ones, then the name of each lane
-- returns  the generation of each lane's group
local group, generation = text(), text()
local generations = {}
for n = 1, #KEYS / 3 do
  local k = (n - 1) * 3
  generations[n] = openGroup(KEYS[k + 2], text(), KEYS[k + 1], KEYS[k + 3], group, generation)
end
return generations
