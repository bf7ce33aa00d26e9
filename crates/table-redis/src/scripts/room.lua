-- A room, and the only way to change one: `change`. Counters, indexes and the list of what is told follow from what the
-- room was before and is after.

-- Where things are in the record of a room; `Record` in record.rs is the same list.
local INSTANCE, CLAIM, PING, MATCHES, MATCHES_MAX, KNOWN, WAS_READY, SILENT = 1, 2, 3, 4, 5, 6, 7, 8
local LAST_PING_AT, LAST_SENT_AT, TERMINATING_SINCE, NUMBER, PURPOSE = 9, 10, 11, 12, 13
local VERSION, REGION, CLAIMED_BY, ADDRESS, METADATA, HOLDS = 16, 17, 18, 19, 20, 21

-- And in a hold.
local H_NUMBER, H_ALLOCATION, H_EXPIRES_AT, H_STAGE, H_SINCE = 1, 2, 3, 4, 5

-- What counters and indexes know of a room.
local STATUS, COUNTED_INSTANCE, COUNTED_MATCHES, EXPECTED, COUNTED_KNOWN, SLOTS = 1, 2, 3, 4, 5, 6

local function is_set(flags, index)
  return byte(flags, index + 1) == 49
end

local function instance_of(room)
  if room[CLAIM] == UNCLAIMED then
    return room[INSTANCE]
  end
  return room[CLAIM] == CLAIMED and INSTANCE_TERMINATING or INSTANCE_ERROR
end

local function fill_of(matches, matches_max)
  if matches_max <= 1 then
    return FILL_SINGLE
  elseif matches == 0 then
    return FILL_EMPTY
  end
  return matches >= matches_max and FILL_FULL or FILL_PARTLY
end

-- The status that a room has with these sides.
local function composed(room, instance, ping, matches)
  local sides = (instance * PING_STATUSES + ping) * FILLS + fill_of(matches, room[MATCHES_MAX])
  return byte(COMPOSED, sides * 2 + (#room[HOLDS] > 0 and 1 or 0) + 1) - 48
end

local function status_of(room)
  return composed(room, instance_of(room), room[PING], room[MATCHES])
end

local function may_become(from, to)
  return is_set(MAY_BECOME, from * STATUSES + to)
end

local function matches_max_of(room)
  return max(1, room[MATCHES_MAX])
end

local function slots_of(room, status)
  local is_offered = room[PURPOSE] == FLEET and room[ADDRESS] ~= '' and room[SILENT] == 0 and room[KNOWN] == 1
  if not is_offered or not is_set(HAS_SLOTS, status) then
    return 0
  end
  return max(0, matches_max_of(room) - room[MATCHES] - #room[HOLDS])
end

local function expected_of(room)
  local expected = 0
  for _, hold in ipairs(room[HOLDS]) do
    if hold[H_STAGE] ~= STAGE_BEGUN then
      expected = expected + 1
    end
  end
  return expected
end

local function seen(room)
  local status = status_of(room)
  return {
    status, instance_of(room), room[MATCHES], expected_of(room), room[KNOWN], slots_of(room, status),
  }
end

local function add(field, change)
  if change ~= 0 then
    deltas[field] = (deltas[field] or 0) + change
  end
end

local function count(room, counted, sign)
  add('status:' .. counted[STATUS] .. ':' .. room[REGION], sign)
  add('instance:' .. counted[COUNTED_INSTANCE], sign)
  add('matches', sign * counted[COUNTED_MATCHES])
  add('holds', sign * counted[EXPECTED])
  add('unknown', sign * (1 - counted[COUNTED_KNOWN]))
end

-- Counts up: what was looked up of the groups may be out of date.
local groups_changed = 0

-- Rooms with free slots, by how many, their version and their region.
local function offer(id, room, before, after)
  if before == after then
    return
  end
  local group = ':' .. room[VERSION] .. ':' .. room[REGION]
  if before > 0 then
    local key = FREE .. before .. group
    call('ZREM', key, id)
    if call('EXISTS', key) == 0 then
      call('SREM', GROUPS, before .. group)
      groups_changed = groups_changed + 1
    end
  end
  if after > 0 then
    call('ZADD', FREE .. after .. group, 0, id)
    groups_changed = groups_changed + call('SADD', GROUPS, after .. group)
  end
end

local function recount(id, room, before, after)
  if room[PURPOSE] ~= FLEET then
    return
  end
  local is_same = before and after
  for place = STATUS, is_same and SLOTS or 0 do
    is_same = is_same and before[place] == after[place]
  end
  if is_same then
    return
  end
  if before then
    count(room, before, -1)
  end
  if after then
    count(room, after, 1)
  end
  offer(id, room, before and before[SLOTS] or 0, after and after[SLOTS] or 0)
end

-- When holds have to be settled, apart from the time that a silent room is given.
local function due_at(hold)
  if hold[H_STAGE] == STAGE_PROVISIONAL then
    return hold[H_SINCE] + PROVISIONAL_FOR
  end
  return hold[H_STAGE] == STAGE_FIRM and hold[H_EXPIRES_AT] or ALWAYS_DUE
end

local function due_of(id, room)
  local due = {}
  for _, hold in ipairs(room[HOLDS]) do
    local of_stage = DUE .. (hold[H_STAGE] == STAGE_FIRM and 'firm' or 'other')
    -- A zero byte sorts before everything that is in an id.
    due[#due + 1] = { of_stage, due_at(hold), string.format('%s\0%020d', id, hold[H_NUMBER]) }
  end
  return due
end

local function reschedule(id, before, after)
  local is_same = #before == #after
  for place = 1, is_same and #before or 0 do
    local one, other = before[place], after[place]
    is_same = is_same and one[1] == other[1] and one[2] == other[2] and one[3] == other[3]
  end
  if is_same then
    return
  end
  for _, due in ipairs(before) do
    call('ZREM', due[1], due[3])
  end
  for _, due in ipairs(after) do
    call('ZADD', due[1], due[2], due[3])
  end
  if #before == 0 then
    call('ZADD', HELD, 0, id)
  elseif #after == 0 then
    call('ZREM', HELD, id)
  end
end

local NOTHING = {}

-- `packed`: how it was stored before; nothing if it is new.
local function keep(id, room, before, due_before, packed)
  local after = seen(room)
  if is_set(IS_UP, after[STATUS]) then
    room[WAS_READY] = 1
  end
  recount(id, room, before, after)
  if due_before ~= NOTHING or #room[HOLDS] > 0 then
    reschedule(id, due_before, due_of(id, room))
  end
  if before and before[STATUS] ~= after[STATUS] then
    local time = call('TIME')
    told[#told + 1] = pack({ time[1] * 1000000 + time[2], id, before[STATUS], after[STATUS] })
  end
  local now = pack(room)
  if now ~= packed then
    call('HSET', ROOMS, id, now)
  end
end

-- Nothing: there is no such room. What `how` answers otherwise.
local function change(id, how, ...)
  local packed = call('HGET', ROOMS, id)
  if not packed then
    return nil
  end
  local room = cmsgpack.unpack(packed)
  local before, due_before = seen(room), #room[HOLDS] > 0 and due_of(id, room) or NOTHING
  local answer = how(room, ...)
  keep(id, room, before, due_before, packed)
  return answer
end

-- The holds of a room are in the order of their numbers.
local function add_hold(room, hold)
  local place = 1
  while room[HOLDS][place] and room[HOLDS][place][H_NUMBER] < hold[H_NUMBER] do
    place = place + 1
  end
  local other = room[HOLDS][place]
  if not other or other[H_NUMBER] ~= hold[H_NUMBER] then
    table.insert(room[HOLDS], place, hold)
  end
end

local function restore(room, hold)
  room[NUMBER] = max(room[NUMBER], hold[H_NUMBER])
  add_hold(room, hold)
end

local function release(room, number)
  for place, hold in ipairs(room[HOLDS]) do
    if hold[H_NUMBER] == number then
      table.remove(room[HOLDS], place)
      return
    end
  end
end

local function hold_of(room, number)
  for _, hold in ipairs(room[HOLDS]) do
    if hold[H_NUMBER] == number then
      return hold
    end
  end
end

-- What it was last; nothing if there is no such room.
local function remove(id)
  local packed = call('HGET', ROOMS, id)
  if not packed then
    return nil
  end
  local room = cmsgpack.unpack(packed)
  recount(id, room, seen(room), nil)
  if #room[HOLDS] > 0 then
    reschedule(id, due_of(id, room), NOTHING)
  end
  call('HDEL', ROOMS, id)
  call('ZREM', ORDER, id)
  return packed
end
