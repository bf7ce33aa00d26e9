//! How a room table is opened, and why it may be refused.

use std::time::Duration;

use redis::Client;

use crate::server::Server;

/// What people write the address in, and messages name.
const SETTING: &str = "roomTable.redis.url";

/// The oldest with all commands that are used, in scripts too.
const MAJOR_VERSION_MIN: u32 = 7;

#[derive(Debug, Clone)]
pub struct Options {
    /// `redis://user:password@host:port/database`; all but the host may be left out.
    pub url: String,
    /// What all keys begin with: several installations may share a Redis.
    pub prefix: String,
    /// Nothing that is asked of Redis lasts longer. What goes in parts has so long for each of them.
    pub deadline: Duration,
}

impl Options {
    pub const PREFIX: &'static str = "maestro";
    pub const DEADLINE: Duration = Duration::from_secs(2);

    pub fn new(url: &str) -> Self {
        Self { url: url.to_owned(), prefix: Self::PREFIX.to_owned(), deadline: Self::DEADLINE }
    }
}

/// One line that names the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{SETTING}: {0}")]
pub struct OpenError(String);

/// A server that can hold the room table. Nothing is changed in it.
pub(crate) async fn connect(options: &Options) -> Result<Server, OpenError> {
    let client = Client::open(options.url.as_str()).map_err(|error| {
        let why = error.detail().map_or_else(|| error.to_string(), str::to_owned);
        OpenError(format!("not the address of a Redis: {why}; write it as redis://user:password@host:6379/0"))
    })?;
    let server = Server::new(client, options.deadline);
    for (section, check) in [
        ("server", check_server as fn(&Info) -> Result<(), String>),
        ("cluster", check_cluster),
        ("memory", check_memory),
        ("replication", check_replication),
    ] {
        let text: String = server
            .query(redis::cmd("INFO").arg(section))
            .await
            .map_err(|failure| OpenError(failure.to_string()))?;
        check(&Info(text)).map_err(|why| OpenError(format!("Redis at {}: {why}", server.address())))?;
    }
    Ok(server)
}

/// A section of `INFO`.
struct Info(String);

impl Info {
    fn get(&self, name: &str) -> &str {
        let mut fields = self.0.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(field, _)| *field == name).map_or("", |(_, value)| value.trim_end())
    }
}

fn check_server(info: &Info) -> Result<(), String> {
    let version = info.get("redis_version");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major >= MAJOR_VERSION_MIN => Ok(()),
        Some(_) | None => {
            Err(format!("its version is {version:?}; at least {MAJOR_VERSION_MIN}.0 is needed"))
        }
    }
}

fn check_cluster(info: &Info) -> Result<(), String> {
    match info.get("cluster_enabled") {
        "1" => {
            Err("it is a node of a Redis Cluster, which this version cannot use; name a single Redis".into())
        }
        _ => Ok(()),
    }
}

fn check_memory(info: &Info) -> Result<(), String> {
    match info.get("maxmemory_policy") {
        "noeviction" => Ok(()),
        policy => Err(format!(
            "its maxmemory-policy is {policy}, so that it would drop rooms that are in use; set it to noeviction"
        )),
    }
}

fn check_replication(info: &Info) -> Result<(), String> {
    match info.get("role") {
        "master" => Ok(()),
        role => Err(format!("its role is {role}, so that it cannot be written to; name the master")),
    }
}
