-- Writes the mark of a scheduler whose rooms have all been inserted since its rebuild began; lost if they were lost since.

local now, mark = lineage(), call('GET', MARK)
if mark ~= now and mark ~= now .. REBUILDING then
  return LOST
end
call('SET', MARK, now)
return finish(1)
