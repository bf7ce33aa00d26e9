-- Reads events. Asked for: the id of a ring that begins if it has to, from where (RING_NOW, RING_OLDEST, or RING_AFTER with a
-- ring and a number), how many at most. The answer: the ring, the number up to which all is read or known, why it cannot
-- be read from there, when the last event was, the events.

local from, from_ring, from_number, events_max = asked[2], asked[3], asked[4], asked[5]
begin_if_lost(asked[1])
forget()
local ring, last, kept = call('HGET', META, 'ring'), number('last'), call('XLEN', RING)
local oldest = last - kept

local function reset(cause)
  return finish({ ring, last, cause, kept > 0 and number('at') or NEVER, {} })
end

if from == RING_NOW then
  return reset(RING_BEGINS)
elseif from == RING_OLDEST then
  from_number = oldest
elseif from_ring ~= ring or from_number > last then
  return reset(RING_OTHER)
elseif from_number < oldest then
  return reset(RING_GONE)
end
local events = {}
local first = string.format('%d-0', from_number + 1)
for place, entry in ipairs(call('XRANGE', RING, first, '+', 'COUNT', events_max)) do
  events[place] = entry[2][6]
end
return finish({ ring, from_number + #events, RING_GOES_ON, NEVER, events })
