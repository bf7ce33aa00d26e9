-- Which schedulers may have holds: those that were noted, until they were seen without. Asked for: `note` and a name, or
-- `list`, or `drop`, a name and since when it is noted. One that is noted again meanwhile, or has been noted just now, stays:
-- its hold may be on the way.

local NOTED = P .. 'noted'
local now = tonumber(call('TIME')[1])
if asked[1] == 'note' then
  call('ZADD', NOTED, now, asked[2])
elseif asked[1] == 'drop' then
  local since = tonumber(call('ZSCORE', NOTED, asked[2]) or now)
  if since == asked[3] and now - since > NOTED_MIN then
    call('ZREM', NOTED, asked[2])
  end
elseif asked[1] == 'list' then
  local noted, names = call('ZRANGE', NOTED, 0, -1, 'WITHSCORES'), {}
  for place = 1, #noted, 2 do
    names[#names + 1] = { noted[place], tonumber(noted[place + 1]) }
  end
  return finish(names)
end
return finish(0)
