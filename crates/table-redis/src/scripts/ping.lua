-- Pings, in their order; an answer for each: what came of it, the status before and after, whether the room was heard
-- again, what it is for, whether holds have ended.

local P_ROOM, P_STATUS, P_MATCHES, P_METADATA, P_SENT_AT, P_LATE_MAX, P_AT, P_BEGUN = 1, 2, 3, 4, 5, 6, 7, 8

local UNKNOWN_ROOM = { PING_UNKNOWN_ROOM, 0, 0, 0, 0, 0 }

-- A later ping came before this one. An unknown room has not said anything yet.
local function was_overtaken(room, ping)
  local sent, last = ping[P_SENT_AT], room[LAST_SENT_AT]
  return sent ~= NEVER and last ~= NEVER and room[KNOWN] == 1 and sent < last and last - sent < ping[P_LATE_MAX]
end

-- `Holds::begun_by` in crates/core. As a set of places among the firm holds.
local function begun_by(room, firm, ping, newly_running)
  local begun = {}
  if #ping[P_BEGUN] > 0 then
    for _, hold in ipairs(firm) do
      for _, named in ipairs(ping[P_BEGUN]) do
        begun[hold] = begun[hold] or hold[H_ALLOCATION] == named
      end
    end
    return begun
  end
  local left = ping[P_STATUS] == PING_OCCUPIED and #firm or 0
  if matches_max_of(room) > 1 then
    left = min(#firm, newly_running)
    table.sort(firm, function(one, other)
      if one[H_EXPIRES_AT] ~= other[H_EXPIRES_AT] then
        return one[H_EXPIRES_AT] < other[H_EXPIRES_AT]
      end
      return one[H_NUMBER] < other[H_NUMBER]
    end)
  end
  for place = 1, left do
    begun[firm[place]] = true
  end
  return begun
end

-- Whether any hold has ended.
local function end_holds(room, ping, newly_running)
  local firm = {}
  for _, hold in ipairs(room[HOLDS]) do
    if hold[H_STAGE] == STAGE_FIRM then
      firm[#firm + 1] = hold
    end
  end
  local begun, ended = begun_by(room, firm, ping, newly_running), 0
  for _, hold in ipairs(firm) do
    if begun[hold] then
      hold[H_STAGE], ended = STAGE_BEGUN, 1
    elseif hold[H_EXPIRES_AT] <= ping[P_AT] then
      hold[H_STAGE], ended = STAGE_EXPIRED, 1
    end
  end
  return ended
end

local function take_up(room, ping)
  local before = status_of(room)
  if was_overtaken(room, ping) then
    room[LAST_PING_AT], room[SILENT] = ping[P_AT], 0
    return { PING_TAKEN, before, before, 0, room[PURPOSE], 0 }
  end
  local after = composed(room, instance_of(room), ping[P_STATUS], ping[P_MATCHES])
  if not may_become(before, after) then
    return { PING_REFUSED, before, after, 0, 0, 0 }
  end
  local heard_again, matches_before = 1 - room[KNOWN], room[MATCHES]
  room[PING], room[MATCHES], room[KNOWN], room[SILENT] = ping[P_STATUS], ping[P_MATCHES], 1, 0
  room[LAST_PING_AT] = ping[P_AT]
  if ping[P_SENT_AT] ~= NEVER then
    room[LAST_SENT_AT] = ping[P_SENT_AT]
  end
  if ping[P_STATUS] ~= PING_TERMINATING then
    room[TERMINATING_SINCE] = NEVER
  elseif room[TERMINATING_SINCE] == NEVER then
    room[TERMINATING_SINCE] = ping[P_AT]
  end
  if ping[P_METADATA] ~= '' then
    room[METADATA] = ping[P_METADATA]
  end
  local ended = 0
  if #room[HOLDS] > 0 then
    -- The first ping after the table was lost says how many matches there are, not how many have begun.
    local newly_running = heard_again == 1 and 0 or max(0, ping[P_MATCHES] - matches_before)
    ended = end_holds(room, ping, newly_running)
  end
  return { PING_TAKEN, before, after, heard_again, room[PURPOSE], ended }
end

if not is_whole() then
  return LOST
end
local answers = {}
for place, ping in ipairs(asked) do
  answers[place] = change(ping[P_ROOM], take_up, ping) or UNKNOWN_ROOM
end
return finish(answers)
