-- The holds of some rooms in the order of their ids. Asked for: after which room to begin, how many rooms at most. The
-- answer: the holds, and the last room, empty if there are no more.

if not is_whole() then
  return LOST
end
local some = call('ZRANGEBYLEX', HELD, asked[1] == '' and '-' or '(' .. asked[1], '+', 'LIMIT', 0, asked[2])
local holds = {}
for _, id in ipairs(some) do
  local packed = call('HGET', ROOMS, id)
  for _, hold in ipairs(packed and cmsgpack.unpack(packed)[HOLDS] or {}) do
    holds[#holds + 1] = { id, hold }
  end
end
return finish({ #some == asked[2] and some[#some] or '', holds })
