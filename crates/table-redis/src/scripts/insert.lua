-- A new room, unless it is there: its id, its record without holds, its holds. Whether it counts is not asked: it does from
-- the mark on.

local id, room, holds = asked[1], asked[2], asked[3]
if call('HEXISTS', ROOMS, id) == 0 then
  for _, hold in ipairs(holds) do
    restore(room, hold)
  end
  call('ZADD', ORDER, 0, id)
  keep(id, room, nil, NOTHING, nil)
end
return finish(0)
