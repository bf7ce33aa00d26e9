-- What is kept of a scheduler, as it is stored. Asked for: `room` and its id, `counts`, `rules` or `waiting`.

local reads = {}

function reads.room(id)
  return call('HGET', ROOMS, id) or ''
end

function reads.counts()
  return call('HGETALL', COUNTS)
end

function reads.rules()
  return call('GET', RULES) or ''
end

function reads.waiting()
  return call('GET', WAITING) or ''
end

if not is_whole() then
  return LOST
end
return finish(reads[asked[1]](asked[2]))
