-- The ring of events, which is not of a scheduler: `Ring` in crates/core. Its events are a stream whose ids are their
-- numbers. Numbers go on when another ring begins, so that whoever waits for a later one is woken.

local META, RING, CARRIED = P .. 'meta', P .. 'ring', P .. 'carried'

local function begin(id)
  call('UNLINK', RING)
  call('HSET', META, 'ring', id, 'lineage', lineage(), 'bytes', 0)
end

-- Old data that has come back is no ring that anybody can go on with.
local function begin_if_lost(id)
  local ring = call('HMGET', META, 'ring', 'lineage')
  if not ring[1] or ring[2] ~= lineage() then
    begin(id)
  end
end

local function number(field)
  return tonumber(call('HGET', META, field) or 0)
end

local function forget()
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local bytes, kept = number('bytes'), call('XLEN', RING)
  for _ = 1, TOUCHED_MAX do
    local oldest = call('XRANGE', RING, '-', '+', 'COUNT', 1)[1]
    if not oldest then
      break
    end
    local event_bytes, event_at = oldest[2][2], oldest[2][4]
    if kept <= EVENTS_MAX and bytes <= KEPT_BYTES_MAX and now - event_at < KEPT_FOR then
      break
    end
    call('XDEL', RING, oldest[1])
    bytes, kept = bytes - event_bytes, kept - 1
  end
  call('HSET', META, 'bytes', bytes)
end
