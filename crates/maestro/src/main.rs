//! The `maestro` program: only its `main`. Everything else is in the library.

/// Many small things are allocated and freed on every ping, by many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Before anything else: it is a process that should cost next to nothing.
    if std::env::args_os().nth(1).is_some_and(|command| command == maestro::LOG_KEEPER) {
        return maestro_runtime_process::keep_logs();
    }
    maestro::cli::main()
}
