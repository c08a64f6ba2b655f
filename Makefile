# The two commands of the README. Everything else is cargo: see CONTRIBUTING.md.

.PHONY: demo test

# A real throughput measurement between real processes over loopback, from a clean clone.
demo:
	@packaging/prerequisites.sh demo
	@packaging/demo.sh

# The whole test suite from one build: integration tests with the real iperf3 and in the lab, and those that need root. The
# lab's kernel is built once and stays in the user's cache. `make test ARGUMENTS=--without-root` leaves out the latter.
test:
	@packaging/test.sh $(ARGUMENTS)
