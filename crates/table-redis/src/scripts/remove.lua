-- Removes one room. The answer: what it was last, as it was stored; empty if there was none.

if not is_whole() then
  return LOST
end
return finish(remove(asked[1]) or '')
