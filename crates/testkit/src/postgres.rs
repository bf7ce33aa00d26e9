//! A PostgreSQL of a test's own: an empty data directory, a socket and a free port on loopback. It is stopped and removed
//! when it is dropped, and also when the test ends in any other way: a shell looks after it, which sees the end of its input
//! when the process is gone that started it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail};

use crate::Lines;

/// The user of a [`Server`], with all rights, and its password, which is asked for on the port and not on the socket.
pub const USER: &str = "maestro";
pub const PASSWORD: &str = "secret";

/// Where Debian's packages put the programs of each version.
const PROGRAMS: &str = "/usr/lib/postgresql";

/// PostgreSQL refuses to run as root.
const UNPRIVILEGED: &str = "postgres";

/// Another program may take the port between our look and the server's.
const STARTS_MAX: u32 = 5;

pub struct Server {
    keeper: Child,
    programs: PathBuf,
    directory: PathBuf,
    port: u16,
    databases: AtomicU32,
}

impl Server {
    /// One for all tests of this process.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::start().unwrap_or_else(|error| panic!("PostgreSQL: {error:#}")))
    }

    /// One that forgets what it was told when the machine crashes: for tests of meaning.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with(&["fsync=off", "full_page_writes=off"])
    }

    /// With settings in the form `name=value`.
    pub fn start_with(settings: &[&str]) -> anyhow::Result<Self> {
        let programs = programs()?;
        let mut tried = 0;
        loop {
            match try_to_start(&programs, settings) {
                Err(error) if tried == STARTS_MAX => return Err(error),
                Err(_) => tried += 1,
                Ok(server) => return Ok(server),
            }
        }
    }

    /// An empty one, or a copy of another that nobody is connected to. Answers its name.
    pub fn create_database(&self, template: Option<&str>) -> anyhow::Result<String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.create_named(&name, template)?;
        Ok(name)
    }

    pub fn create_named(&self, name: &str, template: Option<&str>) -> anyhow::Result<()> {
        let template = template.unwrap_or("template0");
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}")).map(drop)
    }

    /// By the socket, without a password.
    pub fn url(&self, database: &str) -> String {
        format!("postgres:///{database}?user={USER}&host={}&port={}", self.directory.display(), self.port)
    }

    /// By the port.
    pub fn tcp_url(&self, database: &str) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Carries out statements, and answers what they return: a line for each row.
    pub fn sql(&self, database: &str, statements: &str) -> anyhow::Result<String> {
        let psql = Command::new(self.programs.join("psql"))
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"])
            .args(["--dbname", &self.url(database), "--command", statements])
            .stdin(Stdio::null())
            .output()
            .context("starting psql")?;
        if !psql.status.success() {
            bail!("{statements}: {}", String::from_utf8_lossy(&psql.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&psql.stdout).trim().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // It has stopped the server and removed the directory when it ends.
        let _ = self.keeper.wait();
    }
}

/// Begins with the directory; says `ready` when the server answers, and stops it when there is nobody left to say more.
/// Signals to the terminal's programs are not for it: it has to survive whoever is interrupted.
const KEEP: &str = r#"
programs=$1 port=$2 user=$3 password=$4
shift 4
trap '' INT TERM HUP
directory=$(mktemp -d "${TMPDIR:-/tmp}/maestro-postgres.XXXXXX") || exit 1
echo "$directory"
echo "$password" > "$directory/password"
stop() { rm -rf "$directory"; exit "$1"; }
"$programs/initdb" --pgdata "$directory/data" --username "$user" --auth-local trust --auth-host scram-sha-256 \
    --pwfile "$directory/password" --encoding UTF8 --locale C --no-sync > "$directory/log" 2>&1 \
    || { cat "$directory/log" >&2; stop 1; }
"$programs/postgres" -D "$directory/data" -p "$port" -k "$directory" -c listen_addresses=127.0.0.1 \
    -c max_connections=200 -c deadlock_timeout=100ms "$@" > "$directory/log" 2>&1 &
server=$!
until "$programs/pg_isready" --quiet --host "$directory" --port "$port"; do
    kill -0 $server 2>/dev/null || { cat "$directory/log" >&2; stop 1; }
    sleep 0.02
done
echo ready
cat > /dev/null
kill -QUIT $server
wait $server
stop 0
"#;

fn try_to_start(programs: &Path, settings: &[&str]) -> anyhow::Result<Server> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let mut keeper = keep_command()
        .args(["sh", "-c", KEEP, "postgres"])
        .arg(programs)
        .args([&port.to_string(), USER, PASSWORD])
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting a shell for PostgreSQL")?;
    let output = Lines::of(keeper.stdout.take().context("the shell has no output")?);
    let directory = output.wait(|_| true)?.into();
    let server = Server { keeper, programs: programs.into(), directory, port, databases: AtomicU32::new(0) };
    output.wait(|line| line == "ready")?;
    Ok(server)
}

/// In a group of its own, and as a user whom PostgreSQL accepts.
fn keep_command() -> Command {
    use std::os::unix::process::CommandExt;

    let mut command = if rustix::process::getuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", UNPRIVILEGED, "--regid", UNPRIVILEGED, "--init-groups", "--"]);
        command
    } else {
        Command::new("env")
    };
    command.process_group(0);
    command
}

fn programs() -> anyhow::Result<PathBuf> {
    let versions =
        std::fs::read_dir(PROGRAMS).with_context(|| format!("{PROGRAMS}: make install-test-tools"))?;
    let newest = versions.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()).max();
    let newest = newest.with_context(|| format!("{PROGRAMS} is empty: make install-test-tools"))?;
    Ok(Path::new(PROGRAMS).join(newest.to_string()).join("bin"))
}
