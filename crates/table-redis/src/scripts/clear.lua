-- Removes some rooms of a scheduler, and with the last one everything else. Asked for: how many at most, why (CLEARING or
-- REMOVING), and whether it begins. The answer: whether there are more, and whether anything had to be done.
--
-- What is to be rebuilt is cleared unless it is all there. Nothing counts meanwhile; and if somebody else has gone on from
-- there, that is left alone.

local rooms_max, why, begins = asked[1], asked[2], asked[3] == 1
local now, mark = lineage(), call('GET', MARK)
if why == CLEARING and mark == now then
  return finish({ 0, 0 })
elseif not begins and mark ~= now .. why then
  return finish({ 0, 1 })
end
call('SET', MARK, now .. why)
local some = call('ZRANGE', ORDER, 0, rooms_max - 1)
for _, id in ipairs(some) do
  if not remove(id) then
    call('ZREM', ORDER, id)
  end
end
if #some == rooms_max then
  return finish({ 1, 1 })
end
for field in pairs(deltas) do
  deltas[field] = nil
end
-- Also what is left of rooms without a place in the order: only damaged data has such.
call('UNLINK', ROOMS, ORDER, COUNTS, GROUPS, HELD, DUE .. 'firm', DUE .. 'other', RULES, WAITING, SEARCH)
if why == CLEARING then
  call('SET', MARK, now .. REBUILDING)
  call('PERSIST', TOLD)
  call('PERSIST', TELLING)
else
  call('DEL', MARK)
  -- They are carried soon, if anybody carries.
  call('EXPIRE', TOLD, GONE_FOR)
  call('EXPIRE', TELLING, GONE_FOR)
end
return finish({ 0, 1 })
