//! The way of a ping through the server and nothing else, for counting its instructions: no sockets, and nobody gets to run
//! who tells receivers what it said.

use std::time::Duration;

use anyhow::ensure;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use maestro_core::room::PingStatus;
use maestro_engine::ports::room_table::Ping;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::fleet;
use crate::server::{engine_that_only_answers, rooms_api};

use super::{ROOMS, forwarder};

/// Between two pings of the first room.
const PAUSE: Duration = Duration::from_millis(20);

/// Makes so many pings of a fleet with so many forwarders, and sends these of them.
pub(crate) fn repeat(forwarders: u32, made: u32, sent: u32) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let receiver = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = receiver.local_addr()?;
        let names = (0..forwarders).map(|number| format!("matchmaker-{number}"));
        let forwarders: Vec<_> = names.map(|name| forwarder(name, address.to_string())).collect();
        let is_told = !forwarders.is_empty();
        let directory = tempfile::tempdir()?;
        let (engine, _running) = engine_that_only_answers(directory.path(), ROOMS, forwarders).await?;
        let scheduler = fleet::scheduler();
        let mut is_known = !is_told;
        for index in 0..ROOMS {
            let room = fleet::room_id(&scheduler, index);
            let ping = Ping::of(scheduler.as_str(), room.as_str(), PingStatus::Ready);
            engine.ping(ping).await?;
            // Pings are handed over as soon as the fleet's forwarders are known.
            while !is_known {
                is_known = timeout(PAUSE, receiver.accept()).await.is_ok();
                engine.ping(ping).await?;
            }
        }
        let pings = (0..made).map(ping).collect::<Result<Vec<_>, _>>()?;
        let api = rooms_api(engine);
        for ping in pings.into_iter().take(sent as usize) {
            let status = api.clone().oneshot(ping).await?.status();
            ensure!(status == StatusCode::OK, "a ping is answered with {status}");
        }
        Ok(())
    })
}

fn ping(number: u32) -> anyhow::Result<Request<Body>> {
    let (scheduler, index) = (fleet::scheduler(), number % ROOMS);
    let path = format!("/scheduler/{scheduler}/rooms/{}/ping", fleet::room_id(&scheduler, index));
    let request =
        Request::put(path).header("host", "127.0.0.1:8070").header("content-type", "application/json");
    Ok(request.body(fleet::ready(index).into())?)
}
