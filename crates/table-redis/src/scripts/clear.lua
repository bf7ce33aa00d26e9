-- Removes some rooms of a scheduler, and with the last one everything else. Asked for: how many at most, and what the mark
-- is from now on, empty if it stays what it is. True in the answer: there are more.

if asked[2] ~= '' then
  call('SET', MARK, lineage() .. asked[2])
elseif not is_whole() then
  return LOST
end
local some = call('ZRANGE', ORDER, 0, asked[1] - 1)
for _, id in ipairs(some) do
  if not remove(id) then
    call('ZREM', ORDER, id)
  end
end
if #some == asked[1] then
  return finish(1)
end
for field in pairs(deltas) do
  deltas[field] = nil
end
-- Also what is left of rooms without a place in the order: only damaged data has such.
call('UNLINK', ROOMS, ORDER, COUNTS, GROUPS, HELD, DUE .. 'firm', DUE .. 'other', RULES, WAITING, SEARCH)
return finish(0)
