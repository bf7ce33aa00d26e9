-- Which rooms may be held, the best first. Which groups of rooms are preferred has been decided by `Wish::rank` in
-- crates/core; here, the fullest come first among equals.

-- A number of 64 bits, in two halves, is more than a number of Lua holds exactly.
local function modulo(high, low, divisor)
  return ((high % divisor) * (4294967296 % divisor) + low % divisor) % divisor
end

-- Groups as those who ask know them: the place of each version and region among the pairs.
local function places_of(pairs_known)
  local places = {}
  for place, pair in ipairs(pairs_known) do
    places[pair[1] .. ':' .. pair[2]] = place
  end
  return places
end

-- Groups that have rooms, each with its slots and its pair. Nothing: there is a pair that those who ask do not know.
local function groups_now(places)
  local groups = {}
  for _, name in ipairs(call('SMEMBERS', GROUPS)) do
    local slots, pair = string.match(name, '^(%d+):(.*)$')
    if not places[pair] then
      return nil
    end
    groups[#groups + 1] = { key = FREE .. name, slots = tonumber(slots), place = places[pair] }
  end
  return groups
end

-- Groups that fit, the best first.
local function ranked(groups, ranks)
  local fit = {}
  for _, group in ipairs(groups) do
    if ranks[group.place] >= 0 then
      fit[#fit + 1] = group
    end
  end
  table.sort(fit, function(one, other)
    if ranks[one.place] ~= ranks[other.place] then
      return ranks[one.place] < ranks[other.place]
    elseif one.slots ~= other.slots then
      return one.slots < other.slots
    end
    return one.place < other.place
  end)
  return fit
end

local function append(chosen, rooms, skipped)
  for place, room in ipairs(rooms) do
    if place ~= skipped then
      chosen[#chosen + 1] = room
    end
  end
end

-- From the far end of the order of removal, first one of the last rooms, then the others.
local function spread(chosen, group, high, low, rooms_max)
  local left = rooms_max - #chosen
  local first = modulo(high, low, max(1, min(SPREAD, call('ZCARD', group.key))))
  append(chosen, call('ZREVRANGE', group.key, first, first))
  if left > 1 then
    -- One more, in case that the first one is among them.
    append(chosen, call('ZREVRANGE', group.key, 0, left - 1), first + 1)
    while #chosen > rooms_max do
      table.remove(chosen)
    end
  end
end

-- What those who ask know is out of date: what they have to know.
local function stale()
  local pairs_now, is_there = {}, {}
  for _, name in ipairs(call('SMEMBERS', GROUPS)) do
    local version, region = string.match(name, '^%d+:([^:]*):(.*)$')
    if not is_there[version .. ':' .. region] then
      is_there[version .. ':' .. region] = true
      pairs_now[#pairs_now + 1] = { version, region }
    end
  end
  return finish({ HOLD_STALE, call('GET', RULES) or '', pairs_now, {} })
end

-- A room that has not pinged lately may be dead, and one whose ping lies ahead is from before the clock was set back.
local function is_alive(room, request)
  local at = room[LAST_PING_AT]
  return at ~= NEVER and request.heard_since <= at and at <= request.latest
end
