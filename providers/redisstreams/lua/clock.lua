-- Redis' own clock, which stands still during a script: every process shares it.
local time = redis.call('TIME')
local seconds, micros = tonumber(time[1]), tonumber(time[2])
local now = seconds * 1000 + math.floor(micros / 1000) -- in milliseconds

-- after returns the first millisecond that is so many microseconds from now.
local function after(delay)
  return seconds * 1000 + math.ceil((micros + delay) / 1000)
end

-- whole writes a number as Redis reads it: Lua would write 1.7e+12.
local function whole(n)
  return string.format('%.0f', n)
end

