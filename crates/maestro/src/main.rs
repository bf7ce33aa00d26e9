fn main() -> std::process::ExitCode {
    maestro::cli::main()
}
