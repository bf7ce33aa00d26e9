-- Changes of single rooms, in their order: the name of the change, the room, and what it needs. An answer for each: numbers,
-- none where there is nothing to say, or no such room.

local changes = {}

function changes.observe(room, instance)
  local before = status_of(room)
  if room[CLAIM] ~= UNCLAIMED then
    room[INSTANCE] = instance
    room[CLAIM] = instance == INSTANCE_ERROR and CLAIMED_AND_FAILED or CLAIMED
  elseif may_become(before, composed(room, instance, room[PING], room[MATCHES])) then
    room[INSTANCE] = instance
  end
  local after = status_of(room)
  return before ~= after and { before, after } or NOTHING
end

function changes.address(room, address)
  room[ADDRESS] = address
end

function changes.unclaim(room, operation)
  if room[CLAIMED_BY] == operation then
    room[CLAIMED_BY], room[CLAIM] = '', UNCLAIMED
  end
end

function changes.confirm(room, number)
  local hold = room[CLAIM] == UNCLAIMED and hold_of(room, number)
  if not hold then
    return NOTHING
  end
  if hold[H_STAGE] == STAGE_PROVISIONAL then
    hold[H_STAGE] = STAGE_FIRM
  end
  return { hold[H_STAGE] }
end

function changes.mark(room, number, stage)
  local hold = hold_of(room, number)
  if not hold then
    return NOTHING
  end
  if hold[H_STAGE] == STAGE_PROVISIONAL or hold[H_STAGE] == STAGE_FIRM then
    hold[H_STAGE] = stage
  end
  return { hold[H_STAGE] }
end

changes.release, changes.restore = release, restore

if not is_whole() then
  return LOST
end
local answers = {}
for place, each in ipairs(asked) do
  answers[place] = change(each[2], changes[each[1]], each[3], each[4]) or NOTHING
end
return finish(answers)
