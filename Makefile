# The two commands of the README. Everything else is cargo: see CONTRIBUTING.md.

.PHONY: demo test

# A real throughput measurement between real processes over loopback, from a clean clone.
demo:
	@packaging/prerequisites.sh demo
	@packaging/demo.sh

# The whole test suite, integration tests with the real iperf3 included.
test:
	@packaging/prerequisites.sh test
	cargo test --workspace --locked --no-fail-fast
