-- Rooms that may fit a wish for metadata, with what they say, from a start that moves with every search. Asked for: the
-- rules, the pairs, the rank of each, the draw in two halves, how many rooms at most.

local places = places_of(asked[2])
local ranks, high, low, rooms_max = unpack(asked[3])

if not is_whole() then
  return LOST
end
local groups = groups_now(places)
if (call('GET', RULES) or '') ~= asked[1] or not groups then
  return stale()
end
local from, chosen = call('GET', SEARCH), {}
for _, group in ipairs(ranked(groups, ranks)) do
  local left = rooms_max - #chosen
  if left > 0 and from then
    append(chosen, call('ZREVRANGEBYLEX', group.key, '(' .. from, '-', 'LIMIT', 0, left))
    left = rooms_max - #chosen
    append(chosen, call('ZREVRANGEBYLEX', group.key, '+', '[' .. from, 'LIMIT', 0, left))
  elseif left > 0 then
    spread(chosen, group, high, low, rooms_max)
  end
end
if #chosen > 0 then
  -- Not always after the last one: of several who look in turns, each would see the same part every time.
  call('SET', SEARCH, chosen[modulo(high, low, #chosen) + 1])
else
  call('DEL', SEARCH)
end
local said = {}
for place, id in ipairs(chosen) do
  said[place] = { id, cmsgpack.unpack(call('HGET', ROOMS, id))[METADATA] }
end
return finish({ HOLD_DONE, '', {}, said })
