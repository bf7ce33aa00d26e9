-- Changes of status that are not in the ring of events yet. Asked for: how many at most; and how many, counted since when,
-- are in the ring now. The answer: since when they are counted, how many came before these, these.

local epoch, before = call('HGET', TELLING, 'epoch') or '', tonumber(call('HGET', TELLING, 'first') or 0)
if asked[2] == epoch and asked[3] > before then
  call('LTRIM', TOLD, asked[3] - before, -1)
  call('HSET', TELLING, 'first', asked[3])
  before = asked[3]
end
return finish({ epoch, before, call('LRANGE', TOLD, 0, asked[1] - 1) })
