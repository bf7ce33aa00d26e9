-- What every script begins with. The constants in capitals that are not defined here come from crates/core: see
-- `constants` in scripts/mod.rs.
--
-- KEYS[1] is what all keys of the scheduler begin with, ARGV[1] what is asked for, as MessagePack. The answer is the
-- word OK or LOST, whether statuses have changed that somebody has to tell, and the answer itself as MessagePack.

local call, pack, byte, max, min = redis.call, cmsgpack.pack, string.byte, math.max, math.min

local P = KEYS[1]
local MARK, ROOMS, ORDER, COUNTS = P .. 'mark', P .. 'rooms', P .. 'order', P .. 'counts'
local GROUPS, FREE, HELD, DUE = P .. 'groups', P .. 'free:', P .. 'held', P .. 'due:'
local TOLD, TELLING, RULES, WAITING = P .. 'told', P .. 'telling', P .. 'rules', P .. 'waiting'
local SEARCH = P .. 'search'

local asked = ARGV[1] and cmsgpack.unpack(ARGV[1])

-- Which history the data of this server is of. It is another one after a restart and after a failover.
local function lineage()
  return string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
end

-- The rooms of the scheduler are all there, and nothing of them is older than what this server was last told.
local function is_whole()
  return call('GET', MARK) == lineage()
end

local LOST = { 'LOST', 0, '' }

local told = {}

-- What has changed its status is told to those who watch: kept here until it is in the ring of events.
local function tell()
  local kept = call('RPUSH', TOLD, unpack(told))
  if kept == #told then
    local time = call('TIME')
    call('HSETNX', TELLING, 'epoch', time[1] .. '-' .. time[2])
  end
  if kept > TOLD_MAX then
    call('LTRIM', TOLD, kept - TOLD_MAX, -1)
    call('HINCRBY', TELLING, 'first', kept - TOLD_MAX)
  end
end

local deltas = {}

local function finish(answer)
  for field, change in pairs(deltas) do
    if change ~= 0 and call('HINCRBY', COUNTS, field, change) == 0 then
      call('HDEL', COUNTS, field)
    end
  end
  if #told > 0 then
    tell()
  end
  return { 'OK', #told > 0 and 1 or 0, pack(answer) }
end
