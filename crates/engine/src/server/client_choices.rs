//! Choices of clients that cost the server's host something: a server for strangers bounds them.

use linerate_model::parameters::{CpuIndex, TestParameters};
use linerate_units::ByteCount;
use linerate_wire::error::ErrorCode;

use crate::error::Error;

/// Largest sum of the socket buffers that a stranger may request for a test.
const MAX_WINDOWS: ByteCount = ByteCount::from_mebibytes(128);

/// Choices that a server grants its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientChoices {
    /// All that the kernel grants the server, as iperf3.
    #[default]
    All,
    /// For strangers: no processor, no tracing, socket buffers of 128 MiB in all, and no congestion control that the kernel allows only
    /// root, which could load modules.
    Bounded,
}

impl ClientChoices {
    /// Reason to refuse a test, if any. `processors` are those that the server may use; empty where they are unknown.
    pub(super) fn refusal(self, parameters: &TestParameters, processors: &[CpuIndex]) -> Option<Error> {
        if self == Self::All {
            let CpuIndex(index) =
                parameters.server_affinity.filter(|chosen| !processors.is_empty() && !processors.contains(chosen))?;
            let detail = format!("the server may not use processor {index}, or its host has none");
            return Some(Error::new(ErrorCode::AFFINITY).with_detail(detail));
        }
        if parameters.server_affinity.is_some() {
            let detail = "a public server lets no client choose its processor";
            return Some(Error::new(ErrorCode::AFFINITY).with_detail(detail));
        }
        let windows = parameters.window? * 2 * parameters.total_streams().get();
        let detail =
            format!("a public server grants {} for all streams", linerate_units::display::size_binary(MAX_WINDOWS));
        (windows > MAX_WINDOWS).then(|| Error::new(ErrorCode::SET_SOCKET_BUFFER).with_detail(detail))
    }

    /// True when clients may have the server trace the events of its host's kernel.
    pub(super) fn grants_kernel_events(self) -> bool {
        self == Self::All
    }

    /// True when clients may choose this congestion control, given those that the kernel allows everybody.
    pub(super) fn grants_congestion(self, name: &str, allowed: &[String]) -> bool {
        self == Self::All || allowed.iter().any(|one| one == name)
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::StreamCount;

    use super::*;

    #[test]
    fn strangers_choose_no_processor_and_no_huge_buffers() {
        let window = |mebibytes, streams| TestParameters {
            window: Some(ByteCount::from_mebibytes(mebibytes)),
            parallel: StreamCount::new(streams),
            ..TestParameters::default()
        };
        let pinned = TestParameters { server_affinity: Some(CpuIndex(0)), ..TestParameters::default() };
        for (parameters, code) in [
            (TestParameters::default(), None),
            (pinned, Some(ErrorCode::AFFINITY)),
            (window(64, 1), None),
            (window(65, 1), Some(ErrorCode::SET_SOCKET_BUFFER)),
            (window(1, 64), None),
            (window(1, 65), Some(ErrorCode::SET_SOCKET_BUFFER)),
        ] {
            let processors = [CpuIndex(0)];
            assert_eq!(ClientChoices::All.refusal(&parameters, &processors), None);
            assert_eq!(
                ClientChoices::Bounded.refusal(&parameters, &processors).map(|error| error.code()),
                code,
                "{parameters:?}"
            );
        }
    }

    #[test]
    fn a_processor_that_the_server_may_not_use_is_refused() {
        let pinned = |index| TestParameters { server_affinity: Some(CpuIndex(index)), ..TestParameters::default() };
        let code = |index, processors: &[CpuIndex]| {
            ClientChoices::All.refusal(&pinned(index), processors).map(|error| error.code())
        };
        let processors = [CpuIndex(0), CpuIndex(3)];
        assert_eq!((code(3, &processors), code(1, &processors)), (None, Some(ErrorCode::AFFINITY)));
        assert_eq!(code(1, &[]), None, "unknown");
    }

    #[test]
    fn strangers_choose_only_the_congestion_controls_of_all_users() {
        let allowed = ["reno", "cubic"].map(str::to_owned);
        for (name, granted) in [("cubic", true), ("bbr", false), ("", false)] {
            assert!(ClientChoices::All.grants_congestion(name, &allowed));
            assert_eq!(ClientChoices::Bounded.grants_congestion(name, &allowed), granted, "{name}");
        }
    }

    #[test]
    fn strangers_have_no_kernel_traced() {
        assert!(ClientChoices::All.grants_kernel_events() && !ClientChoices::Bounded.grants_kernel_events());
    }
}
