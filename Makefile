# make run    a fleet on this machine, with players; Ctrl-C stops everything
# make test   formatting, lints, all tests: what CI runs
# make bench  figures of this machine, one JSON line each
# make chaos KILLS=200         kill -9 at random moments of a mixed workload, some minutes
# make simulate SEEDS=1..1000  lives of the engine under faults, one per seed; see docs/simulation.md
.PHONY: run test bench lint build install-tools chaos simulate

CARGO ?= cargo
# What the build needs besides Rust: a C compiler, for the SQLite that is compiled in.
NEEDED := cc

run: install-tools
	$(CARGO) build --quiet --package maestro --package maestro-example-room --package maestro-demo
	./target/debug/maestro-demo $(ARGS)

# A real browser attacks a real server in one of the tests.
test: install-tools lint
	@command -v chromium >/dev/null || ./scripts/install chromium
	$(CARGO) build --workspace --all-features --bins
	$(CARGO) test --workspace --all-features

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features -- --deny warnings

# Valgrind counts instructions; without it there are no figures of them, and all others.
bench: install-tools
	@command -v valgrind >/dev/null || ./scripts/install valgrind || true
	$(CARGO) build --release --quiet --package maestro --package maestro-bench
	./target/release/maestro-bench $(ARGS)

# Several fleets, a user who never rests, and a server that is killed so often; scripts/chaos has another workload.
KILLS ?= 200
chaos: install-tools
	$(CARGO) build --quiet --package maestro --package maestro-example-room
	./scripts/chaos mixed --kills $(KILLS) $(ARGS)

# Optimised, with every assertion on. KIND=rollouts: only such lives. BREAK=one-executor: without the guard of that
# invariant, which must fail. TRACE=1: prints all that happens.
SEEDS ?= 1..1000
simulate: install-tools
	@$(CARGO) build --quiet --profile sim --package maestro-simulation --features breakable --bin simulate
	@./target/sim/simulate --seeds $(SEEDS) $(if $(KIND),--kind $(KIND)) $(if $(BREAK),--break $(BREAK)) \
		$(if $(TRACE),--trace) $(ARGS)

install-tools:
	@command -v $(CARGO) >/dev/null || { echo "Rust is needed: install it with rustup"; exit 1; }
	@for tool in $(NEEDED); do command -v $$tool >/dev/null || ./scripts/install build-essential; done
