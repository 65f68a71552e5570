-- Arguments are read one after the other, in the order in which they were written.
local cursor = 0
local function text()
  cursor = cursor + 1
  return ARGV[cursor]
end
local function number()
  return tonumber(text())
end

