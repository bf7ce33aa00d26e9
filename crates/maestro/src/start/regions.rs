//! Opens the regions that this process looks after. What it knows of the others is in its configuration.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use maestro_core::room::Region;
use maestro_engine::ports::{RegionElsewhere, Runtime};
use maestro_engine::{Tasks, bind_region};
use maestro_runtime_process::{ProcessRuntime, ProcessScanner};
use maestro_store_embedded::server_of;
use tokio::net::TcpListener;

use crate::config::{Config, RegionConfig, RuntimeKind};

use super::apis::url;
use super::room_user::room_user;
use super::stores::Stores;
use super::system::{default_rooms_max, host_identity};

/// All that are configured.
#[derive(Default)]
pub(super) struct Regions {
    pub(super) here: Vec<OpenRegion>,
    pub(super) elsewhere: BTreeMap<Region, RegionElsewhere>,
}

/// A region of processes.
pub(super) struct OpenRegion {
    pub(super) name: Region,
    pub(super) runtime: Arc<ProcessRuntime>,
    /// Its rooms end with this server.
    pub(super) stop_rooms: bool,
}

impl Regions {
    /// `is_needed`: this process touches runtimes. `rooms_api`: where it serves that itself.
    pub(super) async fn open(
        config: &Config,
        is_needed: bool,
        stores: &Stores,
        rooms_api: Option<&TcpListener>,
        tasks: &Tasks,
    ) -> anyhow::Result<Self> {
        let mut regions = Self::default();
        let opener = match is_needed {
            true => Some(Opener::new(config, &stores.store_id, rooms_api, tasks)?),
            false => None,
        };
        for (name, region) in &config.regions {
            let RuntimeKind::Process = region.runtime;
            match &opener {
                Some(opener) if is_of_this_host(name, stores).await? => {
                    regions.here.push(opener.open(name, region).await?);
                }
                Some(_) | None => {
                    regions.elsewhere.insert(name.clone(), elsewhere(config, region));
                }
            }
        }
        Ok(regions)
    }

    pub(super) fn runtimes(&self) -> BTreeMap<Region, Arc<dyn Runtime>> {
        let runtime = |region: &OpenRegion| (region.name.clone(), region.runtime.clone() as Arc<dyn Runtime>);
        self.here.iter().map(runtime).collect()
    }
}

/// The processes of a region are all on one host. A process without others is on it.
async fn is_of_this_host(region: &Region, stores: &Stores) -> anyhow::Result<bool> {
    if stores.wake_up_channel.is_none() {
        return Ok(true);
    }
    let host = host_identity();
    let bound_to = bind_region(&*stores.store, region, &host).await;
    let bound_to =
        bound_to.with_context(|| format!("regions.{region}: finding the host that it is bound to"))?;
    let is_here = bound_to == host;
    if !is_here {
        tracing::warn!(
            %region,
            host = bound_to,
            this_host = host,
            "the rooms of this region are processes of another host; it is left alone here. Give each host a region of \
             its own"
        );
    }
    Ok(is_here)
}

/// Rooms that players reach at different addresses may be on different hosts.
fn elsewhere(config: &Config, region: &RegionConfig) -> RegionElsewhere {
    RegionElsewhere {
        host: Some(region.host.as_ref().unwrap_or(&config.process_runtime.host).clone()),
        runs_containers: false,
        capacity_setting: "adapters.runtime.process.roomsMax",
    }
}

/// What all regions have in common.
struct Opener<'a> {
    config: &'a Config,
    store_id: &'a str,
    rooms_api_url: String,
    user: Option<maestro_runtime_process::RoomUser>,
    scanner: ProcessScanner,
    working_directory: std::path::PathBuf,
    tasks: &'a Tasks,
}

impl<'a> Opener<'a> {
    fn new(
        config: &'a Config,
        store_id: &'a str,
        rooms_api: Option<&TcpListener>,
        tasks: &'a Tasks,
    ) -> anyhow::Result<Self> {
        let user = room_user(config)?;
        Ok(Self {
            config,
            store_id,
            rooms_api_url: rooms_api_url(config, rooms_api)?,
            scanner: ProcessScanner::new(user.as_ref().map(|user| user.user_id)),
            user,
            working_directory: std::env::current_dir().context("finding the working directory")?,
            tasks,
        })
    }

    async fn open(&self, name: &Region, region: &RegionConfig) -> anyhow::Result<OpenRegion> {
        let (for_all, data_dir) = (&self.config.process_runtime, &self.config.storage.data_dir);
        let directory = region.directory(name, data_dir);
        let rooms_api_url = region.rooms_api_url.as_ref().unwrap_or(&self.rooms_api_url);
        // What a region leaves unset is as for all regions.
        let options = maestro_runtime_process::Options {
            log_keeper: log_keeper(&directory),
            directory,
            data_directory: data_dir.clone(),
            store_id: self.store_id.to_owned(),
            region: name.clone(),
            host: region.host.as_ref().unwrap_or(&for_all.host).clone(),
            rooms_api_url: rooms_api_url.clone(),
            log_limit_bytes: region.log_limit_bytes.unwrap_or(for_all.log_limit_bytes),
            working_directory: self.working_directory.clone(),
            scanner: self.scanner.clone(),
            rooms_max: region.rooms_max.unwrap_or_else(|| share_of_rooms(self.config)),
            rooms_directory: for_all.rooms_dir.clone(),
            user: self.user.clone(),
            server_of,
            tasks: self.tasks.clone(),
            scheduler_log_limit_bytes: for_all.scheduler_log_limit_bytes,
            ended_rooms_max: usize::try_from(for_all.ended_rooms_max).unwrap_or(usize::MAX),
        };
        let runtime = ProcessRuntime::open(options).await;
        let runtime = runtime.with_context(|| format!("opening the process runtime of region {name}"))?;
        let stop_rooms = region.stop_rooms_on_shutdown.unwrap_or(for_all.stop_rooms_on_shutdown);
        Ok(OpenRegion { name: name.clone(), runtime, stop_rooms })
    }
}

/// Where rooms find the rooms API, unless their region says something else.
fn rooms_api_url(config: &Config, rooms_api: Option<&TcpListener>) -> anyhow::Result<String> {
    if let Some(url) = &config.process_runtime.rooms_api_url {
        return Ok(url.clone());
    }
    if let Some(listener) = rooms_api {
        return Ok(url(listener)?);
    }
    let (host, port) = (&config.rooms_api.host, config.rooms_api.port);
    anyhow::ensure!(
        port != 0 || config.regions.values().all(|region| region.rooms_api_url.is_some()),
        "adapters.runtime.process.roomsApiUrl must be set: the rooms API is another process, on a port that it picks itself"
    );
    let host = match host.parse::<std::net::IpAddr>() {
        Ok(address) if address.is_unspecified() => "127.0.0.1".to_owned(),
        Ok(std::net::IpAddr::V6(address)) => format!("[{address}]"),
        Ok(std::net::IpAddr::V4(_)) | Err(_) => host.clone(),
    };
    Ok(format!("http://{host}:{port}"))
}

/// All regions of processes are on this machine: those that say nothing share what is left by those that do.
fn share_of_rooms(config: &Config) -> u32 {
    let all = config.process_runtime.rooms_max.unwrap_or_else(default_rooms_max);
    let own: u32 = config.regions.values().filter_map(|region| region.rooms_max).fold(0, u32::saturating_add);
    let sharing = config.regions.values().filter(|region| region.rooms_max.is_none()).count();
    let sharing = u32::try_from(sharing).unwrap_or(u32::MAX).max(1);
    (all.saturating_sub(own) / sharing).max(1)
}

/// This very program, also when its file has been replaced meanwhile. The directory is for people who look at `ps`.
fn log_keeper(directory: &Path) -> Vec<OsString> {
    vec!["/proc/self/exe".into(), crate::LOG_KEEPER.into(), directory.into()]
}
