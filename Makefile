# make run    a fleet on this machine, with players; Ctrl-C stops everything
# make test   formatting, lints, all tests: what CI runs
# make bench  figures of this machine, one JSON line each
# make chaos KILLS=200   kill -9 at random moments of a mixed workload, some minutes
.PHONY: run test bench lint build install-tools chaos

CARGO ?= cargo
# What the build needs besides Rust: a C compiler, for the SQLite that is compiled in.
NEEDED := cc

run: install-tools
	$(CARGO) build --quiet --package maestro --package maestro-example-room --package maestro-demo
	./target/debug/maestro-demo $(ARGS)

test: install-tools lint
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

install-tools:
	@command -v $(CARGO) >/dev/null || { echo "Rust is needed: install it with rustup"; exit 1; }
	@for tool in $(NEEDED); do command -v $$tool >/dev/null || ./scripts/install build-essential; done
