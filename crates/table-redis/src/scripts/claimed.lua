-- How many of the candidates an operation has claimed.

if not is_whole() then
  return LOST
end
local operation, candidates = asked[1], asked[2]
local claimed = 0
for _, packed in ipairs(call('HMGET', ROOMS, unpack(candidates))) do
  if packed and cmsgpack.unpack(packed)[CLAIMED_BY] == operation then
    claimed = claimed + 1
  end
end
return finish(claimed)
