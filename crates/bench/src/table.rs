//! Pings into the room table in Redis, beside the script alone: the same batches, packed before, over one connection. And what
//! a room takes there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use maestro_core::room::{PingStatus, Region, RoomId};
use maestro_engine::ports::RoomTable;
use maestro_engine::ports::room_table::Ping;
use maestro_table_redis::{Options, RedisRoomTable};
use maestro_testkit::RedisServer;
use tokio::runtime::Runtime;

use crate::figure::Figure;
use crate::statistics::{in_turns, median};
use crate::{Effort, fleet};

/// So many rooms ping at the same time, each when its last ping is answered.
const CALLERS: [usize; 2] = [32, 256];

/// Inserted at the same time.
const TOGETHER: usize = 256;

const BARE: &str = "the script alone, in batches of as many";

struct Bench {
    runtime: Runtime,
    table: Arc<RedisRoomTable>,
    rooms: Arc<Vec<RoomId>>,
    server: RedisServer,
}

pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Figure>> {
    let rooms = effort.pick(10_000, 600);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let server = RedisServer::start(&[])?;
    let table = runtime.block_on(RedisRoomTable::open(&Options::new(&server.url())))?;
    let scheduler = fleet::scheduler();
    let rooms = (0..rooms).map(|index| fleet::room_id(&scheduler, index)).collect();
    let bench = Bench { runtime, table: Arc::new(table), rooms: Arc::new(rooms), server };
    let mut figures = vec![bench.memory()?];
    for callers in CALLERS {
        figures.push(bench.pings(effort, callers)?);
    }
    Ok(figures)
}

impl Bench {
    fn memory(&self) -> anyhow::Result<Figure> {
        let before = self.used_bytes()?;
        self.runtime.block_on(async {
            let scheduler = fleet::scheduler();
            self.table.begin_rebuild(&scheduler).await?;
            self.table.end_rebuild(&scheduler).await?;
            let indexes: Vec<u32> = (0..).take(self.rooms.len()).collect();
            for together in indexes.chunks(TOGETHER) {
                let inserts = together.iter().map(|index| async move {
                    let room = fleet::new_room(&fleet::scheduler(), &Region::default_region(), *index);
                    let id = room.id.clone();
                    self.table.insert(room).await?;
                    ping(&self.table, &id).await
                });
                for inserted in futures_util::future::join_all(inserts).await {
                    inserted?;
                }
            }
            anyhow::Ok(())
        })?;
        let bytes = self.used_bytes()?.saturating_sub(before);
        Ok(Figure::new("table.redis.room", bytes as f64 / self.rooms.len() as f64, "bytes"))
    }

    fn used_bytes(&self) -> anyhow::Result<u64> {
        let info = self.server.command("INFO memory")?;
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory_dataset:"));
        used.and_then(|bytes| bytes.parse().ok()).context("Redis does not say how much memory it uses")
    }

    fn pings(&self, effort: Effort, callers: usize) -> anyhow::Result<Figure> {
        let lasts = Duration::from_millis(effort.pick(2_000, 50));
        let pairs = in_turns(
            effort.pick(7, 1),
            || self.runtime.block_on(self.through_table(callers, lasts)),
            || self.runtime.block_on(self.alone(callers, lasts)),
        )?;
        let ratio = median(pairs.iter().map(|(table, bare)| table / bare));
        let per_second = median(pairs.iter().map(|(table, _)| *table));
        let figure = Figure::new(format!("table.redis.pings.callers{callers}"), per_second, "pings/s");
        Ok(figure.compared(BARE, ratio))
    }

    /// Pings per second.
    async fn through_table(&self, callers: usize, lasts: Duration) -> anyhow::Result<f64> {
        let (started, made) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let tasks = (0..callers).map(|caller| {
            let (table, rooms, made) = (self.table.clone(), self.rooms.clone(), made.clone());
            tokio::spawn(async move {
                for room in rooms.iter().cycle().skip(caller).step_by(callers) {
                    ping(&table, room).await?;
                    made.fetch_add(1, Ordering::Relaxed);
                    if started.elapsed() >= lasts {
                        break;
                    }
                }
                anyhow::Ok(())
            })
        });
        for task in futures_util::future::join_all(tasks).await {
            task??;
        }
        Ok(made.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
    }

    async fn alone(&self, size: usize, lasts: Duration) -> anyhow::Result<f64> {
        let scheduler = fleet::scheduler();
        let pings: Vec<Ping<'_>> = self
            .rooms
            .iter()
            .map(|room| Ping::of(scheduler.as_str(), room.as_str(), PingStatus::Ready))
            .collect();
        let batches = pings.chunks_exact(size).map(|batch| RedisRoomTable::pack_pings(batch, fleet::at(10)));
        let batches = batches.collect::<Result<Vec<_>, _>>()?;
        let (started, mut made) = (Instant::now(), 0);
        for batch in batches.iter().cycle() {
            self.table.send_packed(&scheduler, batch).await?;
            made += size;
            if started.elapsed() >= lasts {
                break;
            }
        }
        Ok(made as f64 / started.elapsed().as_secs_f64())
    }
}

async fn ping(table: &RedisRoomTable, room: &RoomId) -> anyhow::Result<()> {
    let scheduler = fleet::scheduler();
    let metadata = Some(r#"{"tier":42}"#);
    let ping = Ping { metadata, ..Ping::of(scheduler.as_str(), room.as_str(), PingStatus::Ready) };
    table.ping(ping, fleet::at(10)).await?;
    Ok(())
}
