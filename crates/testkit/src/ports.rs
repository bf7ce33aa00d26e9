//! Ports for tests that run side by side, also in several test programs at once.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;

use anyhow::{Context, bail};

/// Below the ports that the kernel gives to outgoing connections: one of those could take a port that a server
/// wants back after its restart.
const FIRST: u16 = 10_000;
const SLICES: u16 = 100;
const SLICE_SIZE: u16 = 200;
/// A server's three APIs come first, the rest is for rooms.
const API_PORTS_AMONG: u16 = 20;

/// Ports that no other test has, for as long as it lives.
pub struct PortSlice {
    first: u16,
    _lock: File,
}

impl PortSlice {
    pub fn take() -> anyhow::Result<Self> {
        let directory = std::env::temp_dir().join("maestro-e2e-ports");
        fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
        for slice in 0..SLICES {
            let first = FIRST + slice * SLICE_SIZE;
            let lock =
                OpenOptions::new().create(true).append(true).open(directory.join(first.to_string()))?;
            match lock.try_lock() {
                Ok(()) => return Ok(Self { first, _lock: lock }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        bail!("all {SLICES} slices of ports are taken by tests that run now")
    }

    /// For the management, rooms and internal API.
    pub fn api_ports(&self) -> anyhow::Result<[u16; 3]> {
        let candidates = self.first..self.first + API_PORTS_AMONG;
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        let free: Vec<u16> = candidates.filter(is_free).take(3).collect();
        free.try_into().map_err(|_| anyhow::anyhow!("fewer than three free ports from {}", self.first))
    }

    pub fn room_ports(&self) -> RangeInclusive<u16> {
        self.first + API_PORTS_AMONG..=self.first + SLICE_SIZE - 1
    }
}
