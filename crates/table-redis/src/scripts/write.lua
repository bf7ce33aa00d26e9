-- Writes what is decided elsewhere. Asked for: `rules` and the new ones, or `waiting`, what is there and what shall be
-- there. True in the answer: it is written; otherwise something else was there. Rules count from the mark on, as rooms do.

if asked[1] == 'rules' then
  call('SET', RULES, asked[2])
  return finish(1)
elseif not is_whole() then
  return LOST
elseif (call('GET', WAITING) or '') ~= asked[2] then
  return finish(0)
end
call('SET', WAITING, asked[3])
return finish(1)
