//! Buffer sizes of the host's settings, for comparison with a socket's own.

use linerate_model::flow::BufferSettings;
use linerate_units::ByteCount;

/// Reads `tcp_wmem` and `tcp_rmem` of the calling network namespace.
pub(crate) fn buffer_settings() -> BufferSettings {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
        initial_and_largest(&text)
    };
    BufferSettings { send: read("tcp_wmem"), receive: read("tcp_rmem") }
}

/// Initial and largest size of `least initial largest`.
fn initial_and_largest(text: &str) -> Option<(ByteCount, ByteCount)> {
    let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [_, initial, largest] = numbers[..] else { return None };
    Some((ByteCount::new(initial), ByteCount::new(largest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_or_nothing() {
        let expected = Some((ByteCount::new(16_384), ByteCount::new(4_194_304)));
        assert_eq!(initial_and_largest("4096\t16384\t4194304\n"), expected);
        assert_eq!((initial_and_largest("4096 16384"), initial_and_largest("")), (None, None));
    }
}
