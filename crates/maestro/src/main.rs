/// Many small things are allocated and freed on every ping, by many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    maestro::cli::main()
}
