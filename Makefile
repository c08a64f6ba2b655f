# The commands of README.md, and its documents as a site. Everything else is cargo: see CONTRIBUTING.md.

.PHONY: demo demo-fleet docs test

# A real throughput measurement between real processes over loopback, from a clean clone.
demo:
	@packaging/prerequisites.sh demo
	@packaging/demo.sh

# A fleet of three hosts in network namespaces of this machine, ending in the matrix of what limits each direction.
demo-fleet:
	@packaging/prerequisites.sh demo
	@packaging/demo-fleet.sh

# The whole test suite from one build: integration tests with the real iperf3 and in the lab, and those that need root. The
# lab's kernel is built once and stays in the user's cache. `make test ARGUMENTS=--without-root` leaves out the latter.
test:
	@packaging/test.sh $(ARGUMENTS)

# The documents as a site, below target/site: mdBook is installed below target/tools at first.
docs:
	@cargo xtask site
