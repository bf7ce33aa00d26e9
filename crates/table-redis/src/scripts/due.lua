-- Holds that have to be settled, the earliest first, of each kind at most so many. Asked for: until when firm ones were
-- due, until when the others, how many of each.

if not is_whole() then
  return LOST
end
local due = {}
for place, kind in ipairs({ 'firm', 'other' }) do
  for _, member in ipairs(call('ZRANGEBYSCORE', DUE .. kind, '-inf', asked[place], 'LIMIT', 0, asked[3])) do
    local id, number = string.match(member, '^(.*)%z(%d+)$')
    local packed = call('HGET', ROOMS, id)
    local hold = packed and hold_of(cmsgpack.unpack(packed), tonumber(number))
    if hold then
      due[#due + 1] = { id, hold }
    end
  end
end
return finish({ call('EXISTS', HELD), due })
