//! A Redis that cannot hold the room table is refused in one line that names the setting.

use std::time::Duration;

use maestro_table_redis::{Options, RedisRoomTable};
use maestro_testkit::RedisServer;

async fn refusal(url: &str) -> String {
    let options = Options { deadline: Duration::from_secs(5), ..Options::new(url) };
    match RedisRoomTable::open(&options).await {
        Ok(_) => panic!("{url} was opened"),
        Err(error) => error.to_string(),
    }
}

async fn check(url: &str, expected: &str) {
    let refusal = refusal(url).await;
    assert!(refusal.starts_with("roomTable.redis.url: "), "{refusal}");
    assert!(refusal.contains(expected), "{refusal}, and not {expected}");
    assert!(!refusal.contains('\n'), "{refusal}");
    assert!(!refusal.contains("wrong-password"), "{refusal}");
}

#[tokio::test]
async fn what_is_no_address() {
    for url in ["", "127.0.0.1:6379", "http://127.0.0.1:6379", "redis://127.0.0.1:port"] {
        check(url, "not the address of a Redis").await;
    }
}

#[tokio::test]
async fn nobody_listens() {
    check("redis://127.0.0.1:1/0", "127.0.0.1:1").await;
}

#[tokio::test]
async fn passwords() {
    let user = ["--user", "maestro", "on", ">other", "allkeys", "allchannels", "+@all"];
    let server = RedisServer::start(&[&["--requirepass", "secret"], &user[..]].concat()).unwrap();
    let at = |user: &str| server.url().replace("redis://", &format!("redis://{user}"));
    check(&at(""), "Authentication required").await;
    check(&at(":wrong-password@"), "user or password is wrong").await;
    check(&at("nobody:wrong-password@"), "user or password is wrong").await;
    for user in [":secret@", "maestro:other@"] {
        assert!(RedisRoomTable::open(&Options::new(&at(user))).await.is_ok(), "{user}");
    }
}

#[tokio::test]
async fn servers_that_forget_or_cannot_be_written_to() {
    let evicting = RedisServer::start(&["--maxmemory-policy", "allkeys-lru"]).unwrap();
    check(&evicting.url(), "maxmemory-policy is allkeys-lru").await;
    // Its first replica changes the history that a server is on: not the one that all tests share.
    let master = RedisServer::start(&[]).unwrap();
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &master.port().to_string()]).unwrap();
    check(&replica.url(), "its role is slave").await;
    let cluster = RedisServer::start(&["--cluster-enabled", "yes"]).unwrap();
    check(&cluster.url(), "a node of a Redis Cluster").await;
}
