-- Some rooms in the order of their ids, as they are stored. Asked for: after which room to begin, how many at most.

if not is_whole() then
  return LOST
end
local some = call('ZRANGEBYLEX', ORDER, asked[1] == '' and '-' or '(' .. asked[1], '+', 'LIMIT', 0, asked[2])
return finish({ some, #some > 0 and call('HMGET', ROOMS, unpack(some)) or some })
