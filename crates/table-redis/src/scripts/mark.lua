-- The mark of a scheduler whose rooms are all there. Asked for: what to do, and the token of a rebuild.
--
-- `is`: 1 in the answer if it is marked. `new`: marks a scheduler that nothing is known of. `begin`: the old rooms are
-- gone, the new ones come. `end`: they are all there; 0 if the rebuild is not the one that has begun last. `gone`: the
-- scheduler is removed, and what is left of it goes after a while.

local now, mark = lineage(), call('GET', MARK) or ''
local what, token = asked[1], asked[2]
if what == 'is' then
  return finish(mark == now and 1 or 0)
elseif what == 'gone' then
  for _, key in ipairs({ MARK, TELLING, TOLD }) do
    call('EXPIRE', key, GONE_FOR)
  end
  return finish(1)
elseif mark == now then
  for _, key in ipairs({ MARK, TELLING, TOLD }) do
    call('PERSIST', key)
  end
  return finish(1)
elseif what == 'new' then
  local is_new = mark == '' and call('EXISTS', ROOMS) == 0
  return finish(is_new and call('SET', MARK, now) and 1 or 0)
elseif what == 'begin' and mark == now .. CLEARING .. token then
  call('SET', MARK, now .. REBUILDING .. token)
  return finish(1)
elseif what == 'end' and mark == now .. REBUILDING .. token then
  call('SET', MARK, now)
  return finish(1)
end
return finish(0)
