-- Sets how many matches some rooms hold. Asked for: after which room to begin, how many at most, the matches. The
-- answer: the last room, empty if there are no more.

local function set(room, matches_max)
  room[MATCHES_MAX] = matches_max
end

if not is_whole() then
  return LOST
end
local some = call('ZRANGEBYLEX', ORDER, asked[1] == '' and '-' or '(' .. asked[1], '+', 'LIMIT', 0, asked[2])
for _, id in ipairs(some) do
  change(id, set, asked[3])
end
return finish(#some == asked[2] and some[#some] or '')
