-- Rooms for an operation: the candidates that it has claimed before and those that it claims now, in their order. Those
-- that it had claimed before count first. Asked for: the operation, the candidates, flags of the statuses, whether only
-- known rooms, how many more than those that were claimed before, and how many of these are known to have been.

local operation, candidates, statuses, known_only = asked[1], asked[2], asked[3], asked[4]
local left, counted = asked[5], asked[6]

local function claim(room)
  local may = room[CLAIM] == UNCLAIMED and (room[KNOWN] == 1 or known_only == 0)
  if not may or not is_set(statuses, status_of(room)) then
    return false
  end
  room[CLAIM], room[CLAIMED_BY], room[NUMBER] = CLAIMED, operation, room[NUMBER] + 1
  return true
end

if not is_whole() then
  return LOST
end
local mine = {}
for place, id in ipairs(candidates) do
  local packed = call('HGET', ROOMS, id)
  mine[place] = packed ~= false and cmsgpack.unpack(packed)[CLAIMED_BY] == operation
  if mine[place] then
    counted = counted - 1
  end
end
-- The same call may have been made twice, at the same time.
left = left + min(0, counted)
local claimed = {}
for place, id in ipairs(candidates) do
  local taken = not mine[place] and left > 0 and change(id, claim)
  if taken then
    left = left - 1
  end
  if mine[place] or taken then
    claimed[#claimed + 1] = id
  end
end
return finish({ claimed, left })
