//! What two linerates say to each other while one changes the other's host: a JSON object in a line each, questions one
//! way, answers the other.

use core::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use linerate_change::{ChangeId, Kept, Outcome, Written};
use linerate_model::change::{Change, Target};
use linerate_model::schema::change::{ChangeDocument, NotAPlan, PlanDocument, TargetDocument};
use linerate_report::escape;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::host_document::HostDocument;

/// Version of the lines.
pub(super) const SCHEMA: u64 = 1;

/// The longest line, in bytes.
pub(super) const LONGEST: usize = 4 << 20;

/// By which the first line is known among what shells say when they start.
pub(super) const HELLO: &str = "linerate tune --agent";

/// The first line of the far end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// [`HELLO`].
    pub(super) hello: String,
    /// Its version.
    pub(super) linerate_version: String,
}

/// What the far end is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// To tell of its host.
    Host { peer: Option<IpAddr> },
    /// To begin.
    Begin { plan: PlanDocument, purpose: String, limit_ms: u64 },
    /// To take up further changes.
    Extend { plan: PlanDocument },
    /// To carry out a group, by its name.
    Apply { group: String },
    /// To take a group back.
    TakeBack { group: String },
    /// To go on for this time.
    Renew { limit_ms: u64 },
    /// To forget earlier connections.
    ForgetMetrics { peer: IpAddr },
    /// To keep what is in force; in linerate's own file, or until the next boot.
    Keep { in_file: bool, evidence: String, warnings: Vec<String> },
    /// To take everything back.
    RollBack { reason: String },
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Answer {
    /// Its host.
    Host { host: Box<HostDocument> },
    /// That it has begun, and what an earlier trial had left.
    Begun { left: Vec<String> },
    /// What it has carried out.
    Applied { outcomes: Vec<OutcomeDocument> },
    /// What could not be put back.
    TakenBack { left: Vec<String> },
    /// What is kept.
    Kept { kept: KeptDocument },
    /// It is done.
    Done,
    /// It was not done.
    Failed { reason: String, needs_privilege: bool },
}

/// [`Outcome`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutcomeDocument {
    change: ChangeDocument,
    written: Written,
    now: Option<String>,
}

/// [`Kept`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptDocument {
    id: u64,
    file: Option<String>,
    lasting: Vec<TargetDocument>,
    until_reboot: Vec<TargetDocument>,
    warnings: Vec<String>,
}

impl From<&Outcome> for OutcomeDocument {
    fn from(outcome: &Outcome) -> Self {
        Self { change: (&outcome.change).into(), written: outcome.written, now: outcome.now.clone() }
    }
}

impl TryFrom<OutcomeDocument> for Outcome {
    type Error = NotAPlan;

    fn try_from(document: OutcomeDocument) -> Result<Self, NotAPlan> {
        let change = Change::try_from(&document.change)?;
        Ok(Self { change, written: document.written, now: document.now })
    }
}

impl From<&Kept> for KeptDocument {
    fn from(kept: &Kept) -> Self {
        let targets = |targets: &[Target]| targets.iter().map(TargetDocument::from).collect();
        Self {
            id: kept.id.get(),
            file: kept.file.as_ref().map(|file| file.display().to_string()),
            lasting: targets(&kept.lasting),
            until_reboot: targets(&kept.until_reboot),
            warnings: kept.warnings.clone(),
        }
    }
}

impl TryFrom<KeptDocument> for Kept {
    type Error = NotAPlan;

    fn try_from(document: KeptDocument) -> Result<Self, NotAPlan> {
        let targets = |targets: &[TargetDocument]| targets.iter().map(Target::try_from).collect::<Result<_, _>>();
        Ok(Self {
            id: ChangeId::new(document.id),
            lasting: targets(&document.lasting)?,
            until_reboot: targets(&document.until_reboot)?,
            file: document.file.map(PathBuf::from),
            warnings: document.warnings,
        })
    }
}

/// Why a line is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// Longer than [`LONGEST`].
    TooLong,
    /// No JSON object.
    NotJson(String),
    /// Another version of the lines.
    Schema(Option<u64>),
    /// A word or a key that this version does not know.
    Unknown(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(formatter, "a line of more than {} MiB", LONGEST >> 20),
            Self::NotJson(cause) => write!(formatter, "a line that is no JSON object ({cause})"),
            Self::Schema(Some(found)) => write!(
                formatter,
                "a line of schema {found}, where this linerate speaks {SCHEMA}: use the same version at both ends"
            ),
            Self::Schema(None) => formatter.write_str("a line without a schema"),
            Self::Unknown(cause) => {
                write!(
                    formatter,
                    "a line that this version does not understand ({cause}): use the same version at both ends"
                )
            }
        }
    }
}

/// One line, with its end.
pub(super) fn encode(message: &impl Serialize) -> Result<String, Wrong> {
    let value = serde_json::to_value(message).map_err(|cause| Wrong::NotJson(cause.to_string()))?;
    let Value::Object(mut object) = value else { return Err(Wrong::NotJson("no object".to_owned())) };
    object.insert("schema".to_owned(), SCHEMA.into());
    let line = Value::Object(object).to_string() + "\n";
    if line.len() > LONGEST { Err(Wrong::TooLong) } else { Ok(line) }
}

/// What a line says. All texts in it are made harmless for a terminal.
pub(super) fn decode<T: DeserializeOwned>(line: &str) -> Result<T, Wrong> {
    let value: Value = serde_json::from_str(line).map_err(|cause| Wrong::NotJson(cause.to_string()))?;
    let Value::Object(mut object) = value else { return Err(Wrong::NotJson("something else".to_owned())) };
    match object.remove("schema").map(|schema| schema.as_u64()) {
        Some(Some(SCHEMA)) => {}
        found => return Err(Wrong::Schema(found.flatten())),
    }
    let mut value = Value::Object(object);
    make_harmless(&mut value);
    serde_json::from_value(value).map_err(|cause| Wrong::Unknown(escape::line(&cause.to_string()).into_owned()))
}

fn make_harmless(value: &mut Value) {
    match value {
        Value::String(text) => *text = escape::text(text).into_owned(),
        Value::Array(values) => values.iter_mut().for_each(make_harmless),
        Value::Object(object) => {
            let odd = object.keys().any(|key| escape::line(key) != *key);
            if odd {
                let keys = core::mem::take(object).into_iter();
                *object = keys.map(|(key, value)| (escape::line(&key).into_owned(), value)).collect();
            }
            object.values_mut().for_each(make_harmless);
        }
        _ => {}
    }
}

/// Puts lines together from what comes.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// What has come and was not taken yet.
    pub(super) bytes: Vec<u8>,
    /// So many of them have no line feed.
    looked: usize,
}

impl Lines {
    /// The next whole line, without its end; `None` when more has to come first. Bytes that are no text are replaced.
    pub(super) fn next(&mut self) -> Result<Option<String>, Wrong> {
        let end = self.bytes[self.looked..].iter().position(|byte| *byte == b'\n').map(|place| place + self.looked);
        self.looked = self.bytes.len();
        if end.unwrap_or(self.looked) >= LONGEST {
            return Err(Wrong::TooLong);
        }
        let Some(end) = end else { return Ok(None) };
        let line = String::from_utf8_lossy(&self.bytes[..end]).trim_end_matches('\r').to_owned();
        self.bytes.drain(..=end);
        self.looked = 0;
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use linerate_model::change::{Group, Plan, Reason, TakesEffect};
    use linerate_units::WallTime;

    use super::*;

    pub(crate) fn change() -> Change {
        Change {
            target: Target::Setting { key: "net.ipv4.tcp_rmem".to_owned() },
            from: Some("4096 131072 6291456".to_owned()),
            to: "4096 131072 67108864".to_owned(),
            group: Group::Buffers,
            takes_effect: TakesEffect::NewConnections,
            reason: Reason::default(),
        }
    }

    #[test]
    fn each_request_and_answer_is_read_as_it_was_written() {
        let made_at = WallTime::from_unix(Duration::from_secs(5));
        let plan = || PlanDocument::from(&Plan { made_at, changes: vec![change()] });
        let peer: IpAddr = "2001:db8::1".parse().expect("valid");
        for request in [
            Request::Host { peer: Some(peer) },
            Request::Begin { plan: plan(), purpose: "a \"test\"\nof lines".to_owned(), limit_ms: 5 },
            Request::Extend { plan: plan() },
            Request::Apply { group: "buffers".to_owned() },
            Request::TakeBack { group: "buffers".to_owned() },
            Request::Renew { limit_ms: u64::MAX },
            Request::ForgetMetrics { peer },
            Request::Keep { in_file: true, evidence: String::new(), warnings: vec!["w".to_owned()] },
            Request::RollBack { reason: "why".to_owned() },
        ] {
            let line = encode(&request).expect("short");
            assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line}");
            assert_eq!(decode(&line), Ok(request));
        }
        let outcome = Outcome { change: change(), written: Written::Adjusted, now: None };
        let targets = vec![change().target];
        let (id, file) = (ChangeId::new(7), Some(PathBuf::from("/etc/x")));
        let kept = Kept { id, file, lasting: targets.clone(), until_reboot: targets, warnings: Vec::new() };
        for answer in [
            Answer::Host { host: Box::default() },
            Answer::Begun { left: vec!["x".to_owned()] },
            Answer::Applied { outcomes: vec![(&outcome).into()] },
            Answer::TakenBack { left: Vec::new() },
            Answer::Kept { kept: (&kept).into() },
            Answer::Done,
            Answer::Failed { reason: "no".to_owned(), needs_privilege: true },
        ] {
            assert_eq!(decode(&encode(&answer).expect("short")), Ok(answer));
        }
        assert_eq!(Outcome::try_from(OutcomeDocument::from(&outcome)), Ok(outcome));
        assert_eq!(Kept::try_from(KeptDocument::from(&kept)), Ok(kept));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        let wrong = |line: &str| decode::<Answer>(line).expect_err("wrong");
        assert!(matches!(wrong("hello"), Wrong::NotJson(_)) && matches!(wrong("[1]"), Wrong::NotJson(_)));
        assert_eq!(wrong(r#"{"answer":"done"}"#), Wrong::Schema(None));
        assert_eq!(wrong(r#"{"answer":"done","schema":2}"#), Wrong::Schema(Some(2)));
        assert!(wrong(r#"{"answer":"dance","schema":1}"#).to_string().contains("dance"));
        assert!(matches!(wrong(r#"{"answer":"begun","left":[],"schema":1,"more":1}"#), Wrong::Unknown(_)));
        assert_eq!(encode(&Answer::Begun { left: vec!["x".repeat(LONGEST)] }), Err(Wrong::TooLong));
    }

    #[test]
    fn texts_are_harmless() {
        let line = r#"{"schema":1,"answer":"begun","left":["a\u001b[2Jb","c\nd"]}"#;
        let left = vec!["a\\x1b[2Jb".to_owned(), "c\nd".to_owned()];
        assert_eq!(decode(line), Ok(Answer::Begun { left }));
    }

    #[test]
    fn lines_come_in_pieces() {
        let mut lines = Lines::default();
        let mut taken = Vec::new();
        for piece in ["", "a", "b\r\n", "\nc\nd", "\n\u{fffd}", "e"] {
            lines.bytes.extend_from_slice(piece.as_bytes());
            while let Some(line) = lines.next().expect("short") {
                taken.push(line);
            }
        }
        assert_eq!(taken, ["ab", "", "c", "d"]);
        lines.bytes.resize(LONGEST, b'x');
        assert_eq!(lines.next(), Err(Wrong::TooLong));
        let mut lines = Lines { bytes: vec![b'x'; LONGEST - 1], looked: 0 };
        assert_eq!(lines.next(), Ok(None));
        lines.bytes.push(b'\n');
        assert_eq!(lines.next().map(|line| line.map(|line| line.len())), Ok(Some(LONGEST - 1)));
    }
}
