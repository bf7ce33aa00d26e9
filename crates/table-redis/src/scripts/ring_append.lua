-- Adds events at the end. Asked for: the id of a ring that begins if it has to, whether events are missing before these,
-- the events (each with its size, its time and itself), and for those of a scheduler its name, since when they are counted, and how many came before these.

local ring, after_loss, events, source = asked[1], asked[2] == 1, asked[3], asked[4]
begin_if_lost(ring)
local skipped = 0
if #source > 0 then
  local scheduler, epoch, before = source[1], source[2], source[3]
  local known = call('HGET', CARRIED, scheduler)
  local known_epoch, carried = string.match(known or '', '^(.*) (%d+)$')
  carried = tonumber(carried or before)
  -- Some were dropped that nobody has carried here.
  after_loss = known and (known_epoch ~= epoch or carried < before)
  skipped = not after_loss and carried - before or 0
  call('HSET', CARRIED, scheduler, epoch .. ' ' .. string.format('%d', before + max(skipped, #events)))
end
if after_loss then
  begin(ring)
end
local last, bytes = number('last'), number('bytes')
for place, event in ipairs(events) do
  if place > skipped then
    last, bytes = last + 1, bytes + event[1]
    call('XADD', RING, string.format('%d-0', last), 'b', event[1], 'a', event[2], 'e', event[3])
    call('HSET', META, 'at', event[2])
  end
end
call('HSET', META, 'last', string.format('%d', last), 'bytes', bytes)
forget()
return finish(0)
