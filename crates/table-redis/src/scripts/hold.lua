-- Rooms for matchmakers, each request by itself and all or none of it. Asked for: the rules and the pairs of version and
-- region that the ranks were made of, and the requests.
--
-- The answer: HOLD_STALE if rules or pairs are others now; otherwise HOLD_DONE and an answer for each request, with how many
-- rooms were found silent. Requests behind the last answer have to be asked for again: too many were for one script.

local HELD_IT, UNFIT, FELL_SILENT = 1, 2, 3

local rules, places, requests = asked[1], places_of(asked[2]), asked[3][1]
local groups, groups_of = nil, -1

local touched, silent_found = 0, 0

local function read(request)
  return {
    class = request[1], now = request[2], expires_at = request[3], heard_since = request[4], latest = request[5],
    metadata = request[6], allocations = request[7], wishes = request[8],
  }
end

-- `said`: the metadata that was found to fit; false: it was found not to fit; nothing: anything fits.
local function hold(room, id, request, allocation, said)
  if slots_of(room, status_of(room)) == 0 then
    return { UNFIT }
  elseif not is_alive(room, request) then
    room[SILENT], silent_found = 1, silent_found + 1
    return { FELL_SILENT }
  elseif said ~= nil and said ~= room[METADATA] then
    return { UNFIT }
  end
  room[NUMBER] = room[NUMBER] + 1
  local number = room[NUMBER]
  add_hold(room, { number, allocation, request.expires_at, STAGE_PROVISIONAL, request.now, request.metadata })
  return { HELD_IT, { id, number, room[VERSION], room[REGION], room[ADDRESS], matches_max_of(room) } }
end

local function try(id, request, allocation, said)
  touched = touched + 1
  return change(id, hold, id, request, allocation, said) or { UNFIT }
end

-- One of these groups.
local function hold_ranked(request, wish, allocation)
  -- Nearly always the first one is right, so that no others have to be listed.
  local rooms_max, left = 1, CANDIDATES_MAX
  while true do
    if groups_of ~= groups_changed then
      groups, groups_of = groups_now(places), groups_changed
    end
    local chosen = {}
    for _, group in ipairs(ranked(groups, wish)) do
      if #chosen < rooms_max then
        spread(chosen, group, allocation[2], allocation[3], rooms_max)
      end
    end
    local silent = 0
    for _, id in ipairs(chosen) do
      local came = try(id, request, allocation[1], nil)
      if came[1] == HELD_IT then
        return came[2]
      elseif came[1] == FELL_SILENT then
        silent = silent + 1
      else
        left = left - 1
      end
    end
    -- A room that was found silent is no candidate any more. However many fell silent together, they do not keep others
    -- from being found.
    if #chosen < rooms_max or left <= 0 or (silent == 0 and rooms_max >= left) then
      return nil
    elseif touched > TOUCHED_MAX then
      return nil, true
    end
    rooms_max = left
  end
end

-- One of these candidates; those with what they said have said what is wanted.
local function hold_listed(request, candidates, allocation)
  for _, candidate in ipairs(candidates) do
    local came = try(candidate[1], request, allocation[1], candidate[2] or false)
    if came[1] == HELD_IT then
      return came[2]
    end
  end
end

local function hold_one(request, allocation)
  for _, wish in ipairs(request.wishes) do
    local held, is_too_much
    if wish[1] == WISH_RANKED then
      held, is_too_much = hold_ranked(request, wish[2], allocation)
    else
      held = hold_listed(request, wish[2], allocation)
    end
    if held or is_too_much then
      return held, is_too_much
    end
  end
end

-- What is held, empty if it is not enough. Nothing: it has to be asked for again.
local function hold_all_or_none(request)
  local all = {}
  for place, allocation in ipairs(request.allocations) do
    local held, is_too_much = hold_one(request, allocation)
    if not held then
      for _, other in ipairs(all) do
        change(other[1], release, other[2])
      end
      return not is_too_much and {} or nil
    end
    all[place] = held
  end
  return all
end

if not is_whole() then
  return LOST
elseif (call('GET', RULES) or '') ~= rules or not groups_now(places) then
  return stale()
end
-- Those who wait mostly want the same, and each would look at hundreds of rooms again.
local not_found, answers = {}, {}
for place, packed in ipairs(requests) do
  local request = read(packed)
  silent_found = 0
  local held = not_found[request.class] and {} or hold_all_or_none(request)
  if not held then
    break
  end
  if #held == 0 and #request.allocations == 1 then
    not_found[request.class] = true
  end
  answers[place] = { held, silent_found }
  if touched > TOUCHED_MAX then
    break
  end
end
return finish({ HOLD_DONE, '', {}, answers })
