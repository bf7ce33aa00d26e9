//! The suite of wake-ups between processes. Any of them may be lost, so what must arrive is sent until it has.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::ports::WakeUpChannel;
use crate::ports::wake_ups::{NAMED_MAX, Named, WakeUpBatch};

use super::run_cases;

/// How long to listen before it is sent again. One that is slower than this fails no case, it only makes it longer.
const LISTEN_FOR: Duration = Duration::from_secs(1);
const ATTEMPTS: usize = 30;

/// Two processes on one channel.
pub struct Connected {
    pub one: Arc<dyn WakeUpChannel>,
    pub other: Arc<dyn WakeUpChannel>,
}

pub async fn run_all<F, Fresh>(fresh: F)
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = Box<Connected>>,
{
    run_cases!(
        "wake-up channel",
        fresh,
        [
            each_thing_that_is_sent_is_received_by_the_other,
            both_ways_are_open,
            as_many_names_as_there_may_be_pass,
            what_is_sent_in_a_row_is_received,
            what_comes_back_does_no_harm,
            waiting_may_be_given_up,
        ]
    );
}

fn naming(names: impl IntoIterator<Item = impl AsRef<str>>) -> Named {
    let mut named = Named::default();
    names.into_iter().for_each(|name| named.add(name.as_ref()));
    named
}

/// It says at least all that `sent` says.
fn covers(received: &WakeUpBatch, sent: &WakeUpBatch) -> bool {
    let mut both = received.clone();
    both.merge(sent.clone());
    both == *received
}

/// Sends until all of it has arrived.
async fn pass(from: &dyn WakeUpChannel, to: &dyn WakeUpChannel, batches: &[WakeUpBatch]) {
    let mut received = WakeUpBatch::default();
    for _ in 0..ATTEMPTS {
        for batch in batches {
            from.send(batch).await.unwrap();
        }
        while let Ok(batch) = timeout(LISTEN_FOR, to.receive()).await {
            received.merge(batch.unwrap());
            if batches.iter().all(|batch| covers(&received, batch)) {
                return;
            }
        }
    }
    panic!("sent {batches:?}, received {received:?}");
}

async fn each_thing_that_is_sent_is_received_by_the_other(pair: &Connected) {
    let arena = || naming(["arena"]);
    let nothing = WakeUpBatch::default();
    for batch in [
        WakeUpBatch { queues: arena(), ..nothing.clone() },
        WakeUpBatch { rooms: arena(), ..nothing.clone() },
        WakeUpBatch { events: arena(), ..nothing.clone() },
        WakeUpBatch { workforce: true, ..nothing.clone() },
        WakeUpBatch { regions: true, ..nothing.clone() },
        WakeUpBatch { queues: naming(["arena", "race"]), rooms: Named::All, ..nothing },
        WakeUpBatch::everything(),
    ] {
        pass(&*pair.one, &*pair.other, &[batch]).await;
    }
}

async fn both_ways_are_open(pair: &Connected) {
    let batch = WakeUpBatch { queues: naming(["arena"]), ..WakeUpBatch::default() };
    pass(&*pair.one, &*pair.other, std::slice::from_ref(&batch)).await;
    pass(&*pair.other, &*pair.one, &[batch]).await;
}

/// Each is as long as it may be.
async fn as_many_names_as_there_may_be_pass(pair: &Connected) {
    let names = || naming((0..NAMED_MAX).map(|number| format!("{number:063}")));
    let batch = WakeUpBatch { queues: names(), rooms: names(), events: names(), ..WakeUpBatch::default() };
    pass(&*pair.one, &*pair.other, &[batch]).await;
}

/// Several may come as one.
async fn what_is_sent_in_a_row_is_received(pair: &Connected) {
    let of = |number| WakeUpBatch { rooms: naming([format!("fleet-{number}")]), ..WakeUpBatch::default() };
    let batches: Vec<WakeUpBatch> = (0..100).map(of).collect();
    pass(&*pair.one, &*pair.other, &batches).await;
}

async fn what_comes_back_does_no_harm(pair: &Connected) {
    let batch = WakeUpBatch { events: naming(["arena"]), ..WakeUpBatch::default() };
    pair.one.send(&batch).await.unwrap();
    // It may hear itself, or not.
    if let Ok(own) = timeout(LISTEN_FOR, pair.one.receive()).await {
        own.unwrap();
    }
    pass(&*pair.one, &*pair.other, &[batch]).await;
}

async fn waiting_may_be_given_up(pair: &Connected) {
    for _ in 0..3 {
        drop(timeout(Duration::from_millis(10), pair.other.receive()).await);
    }
    let batch = WakeUpBatch { regions: true, ..WakeUpBatch::default() };
    pass(&*pair.one, &*pair.other, &[batch]).await;
}
