use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex};

use linerate_change::RollbackGuard;
use linerate_sys::companion::CompanionOutput;
use linerate_sys::host_access::HostAccess as _;
use linerate_sys::poll::{PollInterest, wait_for};
use linerate_units::MonotonicTime;

use super::*;
use crate::far::connection::MAX_NOISE_LINES;
use crate::tuning::agent::{serve, tests as agent_tests};
use crate::tuning::near::NearHost;
use crate::tuning::scratch::ScratchDirectory;

/// A far end that plays a script, one piece per receive, and records requests.
#[derive(Default)]
struct ScriptedHost {
    pieces: VecDeque<Vec<u8>>,
    heard: String,
    is_closed: bool,
}

struct ScriptWire(Arc<Mutex<ScriptedHost>>, CompanionOutput);

impl AgentConnection for ScriptWire {
    fn send(&mut self, bytes: &[u8], _: MonotonicTime) -> linerate_sys::Result<()> {
        self.0.lock().expect("no panic").heard.push_str(&String::from_utf8_lossy(bytes));
        Ok(())
    }

    fn receive(
        &mut self,
        to: &mut Vec<u8>,
        _: MonotonicTime,
        _: Option<&InterruptSignals>,
    ) -> linerate_sys::Result<CompanionOutput> {
        let piece = self.0.lock().expect("no panic").pieces.pop_front();
        Ok(piece.map_or(self.1, |piece| {
            to.extend(piece);
            CompanionOutput::Bytes
        }))
    }

    fn close(&mut self, _: Duration) -> String {
        self.0.lock().expect("no panic").is_closed = true;
        "`ssh far` ended".to_owned()
    }
}

const GREETING: &str = "{\"schema\":1,\"hello\":\"linerate tune --agent\",\"linerate_version\":\"9.9.9\"}\n";

fn scripted(pieces: &[&str], at_end: CompanionOutput) -> (Result<FarHost, TunedHostError>, Arc<Mutex<ScriptedHost>>) {
    let pieces = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
    let script = Arc::new(Mutex::new(ScriptedHost { pieces, ..ScriptedHost::default() }));
    let far = FarHost::with_connection(Box::new(ScriptWire(Arc::clone(&script), at_end)), "ssh:far".to_owned());
    (far.receive_greeting(None), script)
}

fn refused(pieces: &[&str], at_end: CompanionOutput) -> String {
    let (far, script) = scripted(pieces, at_end);
    let error = far.err().expect("refused").to_string();
    assert!(
        script.lock().expect("no panic").is_closed && error.starts_with("ssh:far: ") && error.contains("ended"),
        "{error}"
    );
    error
}

#[test]
fn output_of_shells_is_skipped() {
    let noise = "Welcome!\n\x1b[2J{\"schema\":1}\n".repeat(MAX_NOISE_LINES / 2);
    let (head, tail) = GREETING.split_at(9);
    assert!(scripted(&[&noise, head, tail], CompanionOutput::End).0.is_ok());
    let error = refused(&[&noise, "one more\n", GREETING], CompanionOutput::End);
    assert!(error.contains("within 64 lines"), "{error}");
    let endless = "x".repeat(crate::far::lines::MAX_LINE_LENGTH + 1);
    assert!(refused(&[&endless], CompanionOutput::End).contains("a line of more than 4 MiB"));
}

#[test]
fn a_far_end_without_greeting_is_an_error() {
    assert!(refused(&["Welcome!\n"], CompanionOutput::End).contains("the connection is closed"));
    assert!(refused(&[], CompanionOutput::Late).contains("no answer in time"));
    let newer = GREETING.replace("\"schema\":1", "\"schema\":2");
    let error = refused(&[&newer], CompanionOutput::End);
    assert!(error.contains("schema 2") && error.contains("same version at both ends"), "{error}");
}

#[test]
fn an_invalid_answer_closes_the_connection() {
    for (answer, part) in [
        ("garbage\n", "not a JSON object"),
        ("{\"schema\":1,\"answer\":\"done\"}\n", "unexpected reply"),
        ("{\"schema\":1,\"answer\":\"dance\"}\n", "unknown to this version"),
        (
            "{\"schema\":1,\"answer\":\"applied\",\"outcomes\":[{\"change\":{\"target\":{\"kind\":\"setting\",\"key\":\"net.x\"},\
          \"from\":null,\"to\":\"1\",\"group\":\"buffers\",\"takes_effect\":\"now\",\"reason\":{}},\"written\":\"written\",\
          \"now\":\"1\"}]}\n",
            "unexpected reply",
        ),
        ("", "the connection is closed"),
    ] {
        let (far, script) =
            scripted(&[GREETING, "{\"schema\":1,\"answer\":\"begun\",\"left\":[]}\n", answer], CompanionOutput::End);
        let mut far = far.expect("greeted");
        let plan = ChangePlan { made_at: linerate_units::WallTime::from_unix(Duration::ZERO), changes: Vec::new() };
        assert_eq!(far.begin(&plan, "a test", Duration::from_secs(9)), Ok(Vec::new()));
        assert!(far.is_on_trial() && script.lock().expect("no panic").heard.contains("\"limit_ms\":9000"));
        let error = far.apply(ChangeGroup::Buffers).expect_err("unfit").to_string();
        assert!(error.contains(part) && error.contains("rolls its changes back"), "{error}");
        assert!(script.lock().expect("no panic").is_closed && !far.is_on_trial());
        let later = far.describe(None).expect_err("lost").to_string();
        assert!(later.contains("was lost earlier"), "{later}");
    }
}

#[test]
fn a_refusal_keeps_the_connection() {
    let failed = "{\"schema\":1,\"answer\":\"failed\",\"reason\":\"no\\u001b[2J\",\"needs_privilege\":true}\n";
    let (far, _) = scripted(&[GREETING, failed, "{\"schema\":1,\"answer\":\"done\"}\n"], CompanionOutput::End);
    let mut far = far.expect("greeted");
    let error = far.renew(Duration::from_secs(1)).expect_err("refused");
    assert!(
        error.needs_privilege() && error.to_string().starts_with("ssh:far: no\\x1b[2J (on the far host"),
        "{error}"
    );
    assert_eq!(far.renew(Duration::from_secs(1)), Ok(()));
}

/// A far end connected by two pipes.
struct PipeWire(Option<PipeWriter>, PipeReader);

impl AgentConnection for PipeWire {
    fn send(&mut self, bytes: &[u8], _: MonotonicTime) -> linerate_sys::Result<()> {
        self.0.as_mut().expect("open").write_all(bytes).expect("it reads");
        Ok(())
    }

    fn receive(
        &mut self,
        to: &mut Vec<u8>,
        deadline: MonotonicTime,
        _: Option<&InterruptSignals>,
    ) -> linerate_sys::Result<CompanionOutput> {
        if !wait_for(&self.1, PollInterest::READ, Some(deadline - monotonic_now()))? {
            return Ok(CompanionOutput::Late);
        }
        let mut block = vec![0; 1000];
        let length = self.1.read(&mut block).expect("open");
        to.extend_from_slice(&block[..length]);
        Ok(if length == 0 { CompanionOutput::End } else { CompanionOutput::Bytes })
    }

    fn close(&mut self, _: Duration) -> String {
        self.0 = None;
        String::new()
    }
}

/// Runs a conversation with an in-memory host; returns the final value of the target.
fn with_agent(speak: impl FnOnce(&mut FarHost)) -> String {
    let (mut input, to) = io::pipe().expect("descriptors");
    let (from, mut output) = io::pipe().expect("descriptors");
    std::thread::scope(|scope| {
        let there = scope.spawn(move || {
            let (host, scratch) = (agent_tests::host(), ScratchDirectory::new());
            let store = ChangeStore::at(scratch.path());
            let mut near = NearHost::new(&store, &host, RollbackGuard::Unguarded);
            serve(&mut near, &mut input, &mut output, None);
            drop(near);
            host.read(&agent_tests::target()).expect("in memory").expect("there")
        });
        let far = FarHost::with_connection(Box::new(PipeWire(Some(to), from)), "far".to_owned());
        let mut far = far.receive_greeting(None).expect("it greets");
        speak(&mut far);
        drop(far);
        there.join().expect("no panic")
    })
}

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn both_ends_interoperate() {
    let now = with_agent(|far| {
        let own = "127.0.0.1".parse().expect("valid");
        let host = far.describe(Some(ConnectionAddresses { own, peer: own })).expect("reported");
        assert!(host.settings.contains_key("net.ipv4.tcp_rmem") && host.kernel.is_some(), "{host:?}");
        let first = agent_tests::plan(agent_tests::target(), "1 2 3");
        let second = agent_tests::plan(agent_tests::target(), "4 5 6");
        assert_eq!(far.begin(&first, "a test", LIMIT), Ok(Vec::new()));
        let outcomes = far.apply(ChangeGroup::Buffers).expect("applied");
        assert_eq!((outcomes.len(), outcomes[0].now.as_deref()), (1, Some("1 2 3")));
        let error = far.extend(&second).expect_err("in effect").to_string();
        assert!(error.contains("is in effect"), "{error}");
        assert_eq!(far.roll_back_group(ChangeGroup::Buffers), Ok(Vec::new()));
        far.extend(&second).expect("replaced");
        far.renew(LIMIT).expect("renewed");
        assert_eq!(far.apply(ChangeGroup::Buffers).expect("applied")[0].now.as_deref(), Some("4 5 6"));
        let keep = KeepOptions { file: None, evidence: "a test".to_owned(), warnings: vec!["w".to_owned()] };
        let kept = far.keep(&keep).expect("kept");
        assert_eq!((kept.until_reboot, kept.warnings), (vec![agent_tests::target()], vec!["w".to_owned()]));
        assert!(!far.is_on_trial());
    });
    assert_eq!(now, "4 5 6");
}

#[test]
fn a_drop_or_rollback_restores_the_value() {
    for asked in [false, true] {
        let now = with_agent(|far| {
            far.begin(&agent_tests::plan(agent_tests::target(), "1 2 3"), "a test", LIMIT).expect("begun");
            far.apply(ChangeGroup::Buffers).expect("applied");
            if asked {
                assert_eq!(far.roll_back("a test"), Ok(Vec::new()));
                assert!(!far.is_on_trial());
            }
        });
        assert_eq!(now, agent_tests::BEFORE);
    }
}

#[test]
fn kept_changes_are_rolled_back_by_a_command_for_this_host() {
    for (address, command) in [
        ("ssh:me@far", "ssh me@far linerate rollback 3"),
        ("ssh:me@far:2222", "ssh -p 2222 me@far linerate rollback 3"),
    ] {
        let address: FarAddress = address.parse().expect("an address");
        assert_eq!(address.rollback_command(ChangeId::new(3)), command);
    }
}
