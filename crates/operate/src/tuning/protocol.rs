//! Agent protocol of `linerate tune`: one JSON object per line, requests in one direction, answers in the other.

use std::net::IpAddr;

use linerate_change::{ApplyOutcome, KeptChanges};
use linerate_model::change::ChangeGroup;
use linerate_model::change::document::PlanDocument;
use linerate_rules::tuning::TuningHost;
use serde::{Deserialize, Serialize};

use super::tuned_host::ConnectionAddresses;
pub(super) use crate::far::lines::{AgentProtocolError, LineBuffer, decode, encode};

/// Identifies the greeting among the start output of shells.
pub(super) const GREETING_TEXT: &str = "linerate tune --agent";

/// Greeting: first line of the far end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AgentGreeting {
    /// [`GREETING_TEXT`].
    pub(super) hello: String,
    /// Version of linerate.
    pub(super) linerate_version: String,
}

/// Request to the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum AgentRequest {
    /// Describe the host.
    Host { connection: Option<ConnectionAddresses> },
    /// Begin a trial.
    Begin { plan: PlanDocument, purpose: String, limit_ms: u64 },
    /// Add changes.
    Extend { plan: PlanDocument },
    /// Apply a group.
    Apply { group: ChangeGroup },
    /// Roll a group back.
    TakeBack { group: ChangeGroup },
    /// Restart the watchdog with this limit.
    Renew { limit_ms: u64 },
    /// Delete cached metrics of earlier connections.
    ForgetMetrics { peer: IpAddr },
    /// Keep the changes in effect, in linerate's own file or until reboot.
    Keep { in_file: bool, evidence: String, warnings: Vec<String> },
    /// Roll everything back.
    RollBack { reason: String },
}

/// Answer of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum AgentAnswer {
    /// Description of the host.
    Host { host: Box<TuningHost> },
    /// Trial begun; changes left by an earlier trial.
    Begun { left: Vec<String> },
    /// Applied changes.
    Applied { outcomes: Vec<ApplyOutcome> },
    /// Group rolled back; targets that could not be restored.
    TakenBack { left: Vec<String> },
    /// Kept changes.
    Kept { kept: KeptChanges },
    /// Done.
    Done,
    /// Failed.
    Failed { reason: String, needs_privilege: bool },
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::path::PathBuf;

    use linerate_change::{ChangeId, WriteOutcome};
    use linerate_model::change::{ChangeGroup, ChangePlan, ChangeReason, ChangeTarget, EffectTiming, HostChange};
    use linerate_units::WallTime;

    use super::*;
    use crate::far::lines::MAX_LINE_LENGTH;

    pub(crate) fn change() -> HostChange {
        HostChange {
            target: ChangeTarget::Setting { key: "net.ipv4.tcp_rmem".to_owned() },
            from: Some("4096 131072 6291456".to_owned()),
            to: "4096 131072 67108864".to_owned(),
            group: ChangeGroup::Buffers,
            takes_effect: EffectTiming::NewConnections,
            reason: ChangeReason::default(),
        }
    }

    #[test]
    fn each_request_and_answer_round_trips() {
        let made_at = WallTime::from_unix(Duration::from_secs(5));
        let plan = || PlanDocument::from(&ChangePlan { made_at, changes: vec![change()] });
        let peer: IpAddr = "2001:db8::1".parse().expect("valid");
        for request in [
            AgentRequest::Host { connection: Some(ConnectionAddresses { own: peer, peer }) },
            AgentRequest::Begin { plan: plan(), purpose: "a \"test\"\nof lines".to_owned(), limit_ms: 5 },
            AgentRequest::Extend { plan: plan() },
            AgentRequest::Apply { group: ChangeGroup::Buffers },
            AgentRequest::TakeBack { group: ChangeGroup::Buffers },
            AgentRequest::Renew { limit_ms: u64::MAX },
            AgentRequest::ForgetMetrics { peer },
            AgentRequest::Keep { in_file: true, evidence: String::new(), warnings: vec!["w".to_owned()] },
            AgentRequest::RollBack { reason: "why".to_owned() },
        ] {
            let line = encode(&request).expect("short");
            assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line}");
            assert_eq!(decode(&line), Ok(request));
        }
        let outcome = ApplyOutcome { change: change(), written: WriteOutcome::Adjusted, now: None };
        let targets = vec![change().target];
        let (id, file) = (ChangeId::new(7), Some(PathBuf::from("/etc/x")));
        let kept = KeptChanges { id, file, lasting: targets.clone(), until_reboot: targets, warnings: Vec::new() };
        for answer in [
            AgentAnswer::Host { host: Box::default() },
            AgentAnswer::Begun { left: vec!["x".to_owned()] },
            AgentAnswer::Applied { outcomes: vec![outcome] },
            AgentAnswer::TakenBack { left: Vec::new() },
            AgentAnswer::Kept { kept },
            AgentAnswer::Done,
            AgentAnswer::Failed { reason: "no".to_owned(), needs_privilege: true },
        ] {
            assert_eq!(decode(&encode(&answer).expect("short")), Ok(answer));
        }
    }

    #[test]
    fn errors_in_a_line_are_reported() {
        let wrong = |line: &str| decode::<AgentAnswer>(line).expect_err("wrong");
        assert!(
            matches!(wrong("hello"), AgentProtocolError::NotJson(_))
                && matches!(wrong("[1]"), AgentProtocolError::NotJson(_))
        );
        assert_eq!(wrong(r#"{"answer":"done"}"#), AgentProtocolError::Schema(None));
        assert_eq!(wrong(r#"{"answer":"done","schema":2}"#), AgentProtocolError::Schema(Some(2)));
        assert!(wrong(r#"{"answer":"dance","schema":1}"#).to_string().contains("dance"));
        assert!(matches!(wrong(r#"{"answer":"begun","left":[],"schema":1,"more":1}"#), AgentProtocolError::Unknown(_)));
        assert_eq!(
            encode(&AgentAnswer::Begun { left: vec!["x".repeat(MAX_LINE_LENGTH)] }),
            Err(AgentProtocolError::TooLong)
        );
    }

    #[test]
    fn texts_are_harmless() {
        let line = r#"{"schema":1,"answer":"begun","left":["a\u001b[2Jb","c\nd"]}"#;
        let left = vec!["a\\x1b[2Jb".to_owned(), "c\nd".to_owned()];
        assert_eq!(decode(line), Ok(AgentAnswer::Begun { left }));
    }
}
