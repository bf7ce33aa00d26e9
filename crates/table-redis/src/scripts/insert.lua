-- A new room, unless it is there: its id, its record without holds, its holds. While the table is rebuilt, too.

local mark, now = call('GET', MARK) or '', lineage()
local rebuilding = now .. REBUILDING
if mark ~= now and string.sub(mark, 1, #rebuilding) ~= rebuilding then
  return LOST
end
local id, room, holds = asked[1], asked[2], asked[3]
if call('HEXISTS', ROOMS, id) == 0 then
  for _, hold in ipairs(holds) do
    restore(room, hold)
  end
  call('ZADD', ORDER, 0, id)
  keep(id, room, nil, NOTHING, nil)
end
return finish(0)
