# The commands a person types. Everything else is CMake's.
BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
# Further MPIs beside Debian's and those that `make deps` puts into $(BUILD)/mpi, by their compiler wrappers:
# make MPICC="/path/bin/mpicc;/other/bin/mpicc"
MPICC ?=
# Whether the tests and benchmarks are built too.
TESTS = ON

.PHONY: all configure build packages mpis fetched deps test test-long test-asan test-tsan test-ceph demo demo-nodes demo-checkpoints demo-redundant bench format install deb clean

all: build

build: configure
	cmake --build $(BUILD) -j $(JOBS)

configure:
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX=$(PREFIX) \
	  -DHOLDFAST_TESTS=$(TESTS) -DHOLDFAST_BENCH=$(TESTS) \
	  $(if $(MPICC),-DHOLDFAST_MPICC="$(MPICC)")

packages:
	scripts/install-deps.sh

deps: packages mpis fetched

mpis: packages
	scripts/install-mpis.sh $(BUILD)

# What tests run and nothing is built of.
fetched:
	scripts/fetch-strangers.sh $(BUILD)
	scripts/fetch-slurm.sh $(BUILD)

demo: packages configure
	cmake --build $(BUILD) -j $(JOBS) --target demo_parts
	scripts/demo.sh $(BUILD)

demo-nodes: packages configure
	cmake --build $(BUILD) -j $(JOBS) --target demo_nodes_parts
	scripts/demo-nodes.sh $(BUILD)

demo-redundant: packages configure
	cmake --build $(BUILD) -j $(JOBS) --target demo_redundant_parts
	scripts/demo-redundant.sh $(BUILD)

demo-checkpoints: packages configure
	cmake --build $(BUILD) -j $(JOBS) --target demo_checkpoints_parts
	scripts/demo-checkpoints.sh $(BUILD)

# The MPIs before the build, which looks for them; the rest beside it.
test: packages mpis
	$(MAKE) -j 2 build fetched
	scripts/run-tests.sh $(BUILD)

# A million schedules of the simulator's openers, an hour and a half on one core; what is broken off goes on where it was. SCHEDULES=100000 is a tenth.
# Then those of checkpoints, ten thousand in five minutes, and of openers over a network, as many. Then the mutants: each safeguard is taken out and missed. Before them CPython's and glibc's own tests under every policy, a quarter of an hour,
# and the suite `long`: what `make test` does under one MPI, under the others (docs/testing.md).
SCHEDULES ?= 1000000
CHECKPOINT_SCHEDULES ?= 10000
NETWORK_SCHEDULES ?= 10000
test-long: build
	scripts/fetch-strangers.sh $(BUILD)
	tests/programs/strangers/strangers_test.py --build $(BUILD) || [ $$? -eq 77 ]
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -L '^long$$' -E '^records_'
	HOLDFAST_TEST_LONG=1 ctest --test-dir $(BUILD) --output-on-failure -R '^records_'
	HOLDFAST_TEST_LONG=1 ctest --test-dir $(BUILD) --output-on-failure -j 4 -R '^cli_(.*replicas.*|compare|relaunch|resumed_teams|separate_writes)$$'
	SIM_TEST=$(BUILD)/bin/sim_test tests/sim/run_ranges.sh 1 $(SCHEDULES) $(BUILD)/sim-results
	SIM_FAMILY='Checkpoints.of_*' SIM_TEST=$(BUILD)/bin/sim_test tests/sim/run_ranges.sh 1 $(CHECKPOINT_SCHEDULES) $(BUILD)/sim-results
	SIM_FAMILY='Checkpoints.shared_*' SIM_TEST=$(BUILD)/bin/sim_test tests/sim/run_ranges.sh 1 $(CHECKPOINT_SCHEDULES) $(BUILD)/sim-results
	SIM_FAMILY='Checkpoints.rolled_*' SIM_TEST=$(BUILD)/bin/sim_test tests/sim/run_ranges.sh 1 $(CHECKPOINT_SCHEDULES) $(BUILD)/sim-results
	SIM_FAMILY='Checkpoints.singles_*' SIM_TEST=$(BUILD)/bin/sim_test tests/sim/run_ranges.sh 1 $(CHECKPOINT_SCHEDULES) $(BUILD)/sim-results
	SIM_FAMILY='Checkpoints.renamed_*' SIM_TEST=$(BUILD)/bin/sim_test tests/sim/run_ranges.sh 1 $(CHECKPOINT_SCHEDULES) $(BUILD)/sim-results
	SIM_FAMILY='Checkpoints.together_*' SIM_TEST=$(BUILD)/bin/sim_test tests/sim/run_ranges.sh 1 $(CHECKPOINT_SCHEDULES) $(BUILD)/sim-results
	SIM_FAMILY='Openers.over_a_network_read_*' SIM_TEST=$(BUILD)/bin/sim_test tests/sim/run_ranges.sh 1 $(NETWORK_SCHEDULES) $(BUILD)/sim-results
	SIM_FAMILY='Openers.over_a_network_on_*' SIM_TEST=$(BUILD)/bin/sim_test tests/sim/run_ranges.sh 1 $(NETWORK_SCHEDULES) $(BUILD)/sim-results
	tests/mutants/mutants.py --find --build $(BUILD)

test-asan:
	cmake -S . -B $(BUILD)-asan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOLDFAST_SANITIZE=address,undefined
	cmake --build $(BUILD)-asan -j $(JOBS) --target core_tests
	ctest --test-dir $(BUILD)-asan --output-on-failure -L core -j $(JOBS)

test-tsan:
	cmake -S . -B $(BUILD)-tsan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHOLDFAST_SANITIZE=thread
	cmake --build $(BUILD)-tsan -j $(JOBS) --target core_tests
	ctest --test-dir $(BUILD)-tsan --output-on-failure -L core -j $(JOBS)

# On a Ceph cluster of its own (three OSDs in memory, about 1 GiB): installs what it needs, some minutes.
test-ceph: packages
	scripts/install-deps.sh --ceph
	$(MAKE) build
	tests/ceph/test_ceph.py --build $(BUILD)

bench: build
	bench/run.sh $(BUILD)

# Every C and C++ source as tests/house wants it, by Debian 12's clang-format.
format:
	git ls-files '*.c' '*.cpp' '*.h' '*.hpp' | xargs clang-format -i

install: build
	cmake --install $(BUILD) --strip

# $(BUILD)/holdfast_VERSION_ARCHITECTURE.deb: what `make install` would install, below /usr. In a fresh clone without tests.
deb: TESTS = $(or $(shell sed -n 's/^HOLDFAST_TESTS:BOOL=//p' $(BUILD)/CMakeCache.txt 2>/dev/null),OFF)
deb: build
	cd $(BUILD) && cpack -G DEB

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan
