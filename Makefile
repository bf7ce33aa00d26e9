# make run      a fleet on this machine, with players; Ctrl-C stops everything
# make test     formatting, lints, all tests: what CI runs
# make install  puts `maestro` and `maestro-example-room` into PREFIX/bin
# make bench    figures of this machine, one JSON line each
# make chaos KILLS=200         kill -9 at random moments of a mixed workload, some minutes
# make differential            the room tables in memory and in Redis take 100,000 random steps, a minute or two
# make contest                 64 matchmakers compete for 1,000 rooms of a fleet that changes, a minute
# make simulate SEEDS=1..1000  runs the engine under faults, once per seed; see docs/simulation.md
.PHONY: run test install bench lint shipped install-tools install-test-tools chaos contest simulate differential

CARGO ?= cargo
# What the build needs besides Rust: a C compiler, for SQLite.
NEEDED := cc

# What people install, with the default features; the other crates are for building and testing it.
SHIPPED := --package maestro --package maestro-example-room --package maestro-demo

run: install-tools
	@echo "Building Maestro, its example room and the demo; the first time takes some minutes."
	$(CARGO) build $(SHIPPED)
	./target/debug/maestro-demo $(ARGS)

test: install-tools install-test-tools lint shipped
	$(CARGO) build --workspace --all-features --bins
	$(CARGO) test --workspace --all-features

# Twice: tests need features that what ships must not have, so what ships is linted separately.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(SHIPPED) -- --deny warnings
	$(CARGO) clippy --workspace --all-targets --all-features -- --deny warnings

# Cargo would replace these with builds with all features, so they are copied for the tests that need them.
shipped:
	$(CARGO) build $(SHIPPED)
	mkdir -p target/shipped
	cp -f $(foreach name,maestro maestro-example-room maestro-demo,target/debug/$(name) target/debug/$(name).d) target/shipped

# Where rustup puts cargo, which is in PATH already; PREFIX=/usr/local installs for all users.
PREFIX ?= $(or $(CARGO_HOME),$(HOME)/.cargo)
# Where the programs to install are.
BUILT ?= target/release
install: install-tools
	$(CARGO) build --release --locked --package maestro --package maestro-example-room
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 $(BUILT)/maestro $(BUILT)/maestro-example-room "$(DESTDIR)$(PREFIX)/bin"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo "Add $(PREFIX)/bin to PATH to find them." ;; esac

# Valgrind counts instructions; without it, only those figures are missing.
bench: install-tools
	@command -v valgrind >/dev/null || ./scripts/install valgrind || true
	@command -v redis-server >/dev/null || ./scripts/install redis-server
	$(CARGO) build --release --quiet --package maestro --package maestro-bench
	./target/release/maestro-bench $(ARGS)

# Several fleets, a busy user, and a server that is killed KILLS times; scripts/chaos has another workload.
KILLS ?= 200
chaos: install-tools
	$(CARGO) build --quiet --package maestro --package maestro-example-room
	./scripts/chaos mixed --kills $(KILLS) $(ARGS)

# The fleet scales, rolls out and loses rooms; no room may be given twice. ARGS="--rooms 200 --seconds 20": a smaller one.
contest: install-tools
	$(CARGO) build --quiet --package maestro --package maestro-example-room
	./scripts/chaos allocations $(ARGS)

# `make test` takes fewer steps. STEPS=1000000: more.
STEPS ?= 100000
differential: install-tools install-test-tools
	MAESTRO_DIFFERENTIAL_STEPS=$(STEPS) $(CARGO) test --package maestro-table-redis nobody_can_tell_the_tables_apart

# Optimised, with every assertion on. KIND=rollouts: only runs of this kind. BREAK=one-executor: without the guard of
# that invariant, which must fail. TRACE=1: prints everything that happens.
SEEDS ?= 1..1000
simulate: install-tools
	@$(CARGO) build --quiet --profile sim --package maestro-simulation --features breakable --bin simulate
	@./target/sim/simulate --seeds $(SEEDS) $(if $(KIND),--kind $(KIND)) $(if $(BREAK),--break $(BREAK)) \
		$(if $(TRACE),--trace) $(ARGS)

install-tools:
	@command -v $(CARGO) >/dev/null || { echo "Rust is needed: install it with rustup"; exit 1; }
	@for tool in $(NEEDED); do command -v $$tool >/dev/null || ./scripts/install build-essential; done

# Tests run the example rooms in Python and Go, the commands of the documentation, a browser that attacks a server, servers
# of PostgreSQL (whose programs are not in PATH) and Redis, promtool, which reads the alert rules, and grpcurl, which is
# built in less than a minute.
GRPCURL := target/test-tools/grpcurl
install-test-tools:
	@command -v python3 >/dev/null || ./scripts/install python3
	@command -v go >/dev/null || ./scripts/install golang-go
	@command -v jq >/dev/null || ./scripts/install jq
	@command -v chromium >/dev/null || ./scripts/install chromium
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || ./scripts/install postgresql
	@command -v redis-server >/dev/null || ./scripts/install redis-server
	@command -v promtool >/dev/null || ./scripts/install prometheus
	@test -x $(GRPCURL) || GOBIN="$(CURDIR)/target/test-tools" GOFLAGS=-buildvcs=false \
		go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3
