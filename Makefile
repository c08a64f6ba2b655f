# The two commands of the README. Everything else is cargo: see CONTRIBUTING.md.

.PHONY: demo test

# A real throughput measurement between real processes over loopback, from a clean clone.
demo:
	@packaging/prerequisites.sh demo
	@packaging/demo.sh

# The whole test suite, integration tests with the real iperf3 included. The lab's tests need its kernel, which is built
# once and stays in the user's cache.
test:
	@packaging/prerequisites.sh test
	cargo run --profile test --package linerate-cli --locked -- lab kernel build --if-missing
	cargo test --workspace --locked --no-fail-fast
	@packaging/as-root.sh
