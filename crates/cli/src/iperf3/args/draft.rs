//! A command line while it is read, and the checks at its end.

use std::ffi::OsString;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::parameters::{Direction, EndCondition, Protocol};
use linerate_units::iperf3::Format;
use linerate_units::{BitRate, BlockCount, ByteCount};

use super::command::{
    ClientArguments, ClientAuthentication, CommonArguments, Iperf3Command, JsonOutput, Parsed, ServerArguments,
    ServerAuthentication,
};
use super::error::{ArgumentsError, ParameterError, Refusal, Stop};
use super::options::{CommandOption, Commitment};
use super::value::Value;

/// iperf3's UDP rate: 1 Mbit/s, with a binary Mega.
const UDP_RATE: f64 = 1_048_576.0;
/// iperf3's UDP payload when the path tells nothing: an Ethernet frame's, less IPv4 and TCP headers.
const UDP_BLOCK_SIZE: ByteCount = ByteCount::new(1460);
const MIN_UDP_BLOCK_SIZE: ByteCount = ByteCount::new(16);
const MAX_UDP_BLOCK_SIZE: ByteCount = ByteCount::new(65_507);
const MAX_BLOCK_SIZE: ByteCount = ByteCount::from_mebibytes(1);
/// iperf3's limit on the difference of clocks.
const TIME_SKEW: Duration = Duration::from_secs(10);

/// Server or client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Server,
    Client,
}

/// What the options so far have set. Both roles are filled in, because `-s` or `-c` may come last.
#[derive(Default)]
pub(crate) struct Draft {
    role: Option<Role>,
    pub(super) common: CommonArguments,
    pub(super) client: ClientArguments,
    pub(super) server: ServerArguments,
    /// An option was given that only clients may have.
    pub(super) client_option_given: bool,
    server_option_given: bool,
    pub(super) json: bool,
    pub(super) json_stream: bool,
    pub(super) json_full_output: bool,
    pub(super) receive_timeout_given: bool,
    /// `-b`.
    pub(super) rate: Option<BitRate>,
    /// `-t`.
    pub(super) time: Option<Duration>,
    /// `-n`; zero is as if it were not given.
    pub(super) bytes: ByteCount,
    /// `-k`; zero is as if it were not given.
    pub(super) blocks: BlockCount,
    /// `-l`; zero is the default.
    pub(super) block_size: ByteCount,
    pub(super) username: Option<String>,
    pub(super) public_key: Option<PathBuf>,
    pub(super) private_key: Option<PathBuf>,
    pub(super) users: Option<PathBuf>,
    pub(super) time_skew: Option<Duration>,
    /// `--user`.
    pub(super) user: Option<String>,
    warnings: Vec<String>,
}

impl Draft {
    pub(super) fn apply(&mut self, option: &CommandOption, value: &Value) -> Result<(), Stop> {
        (option.apply)(self, value)?;
        match option.commitment {
            Commitment::Any => {}
            Commitment::Server => self.server_option_given = true,
            Commitment::Client => self.client_option_given = true,
        }
        Ok(())
    }

    pub(super) fn take_role(&mut self, role: Role) -> Result<(), Stop> {
        if self.role.is_some_and(|taken| taken != role) {
            return Err(Refusal::ServerAndClient.into());
        }
        self.role = Some(role);
        Ok(())
    }

    pub(super) fn take_direction(&mut self, direction: Direction) -> Result<(), Stop> {
        let taken = &mut self.client.parameters.direction;
        if *taken != Direction::Forward && *taken != direction {
            return Err(Refusal::ReverseAndBidirectional.into());
        }
        *taken = direction;
        Ok(())
    }

    /// Sets the device to bind to, if there is one.
    pub(super) fn bind_device(&mut self, device: Option<String>) {
        if device.is_some() {
            self.common.bind_device = device;
        }
    }

    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// The error as it leaves this module.
    pub(super) fn refuse(&self, error: ParameterError) -> ArgumentsError {
        ArgumentsError::Parameter { error, timestamps: self.common.timestamps.clone() }
    }

    /// Checks what needs more than one option, in iperf3's order, and puts the command together.
    pub(super) fn finish(mut self, operands: &[OsString]) -> Result<Parsed, ArgumentsError> {
        let command = self.command().map_err(|refusal| self.refuse(refusal.into()))?;
        self.warn_of(operands);
        Ok(Parsed { command, warnings: self.warnings })
    }

    fn command(&mut self) -> Result<Iperf3Command, Refusal> {
        self.check_role()?;
        self.authenticate()?;
        if self.role == Some(Role::Client) && self.receive_timeout_given && self.only_sends() {
            return Err(Refusal::ReceiveTimeoutOfSender);
        }
        if self.is_udp() && self.common.file.is_some() {
            return Err(Refusal::UdpFile);
        }
        self.settle_block_size()?;
        self.settle_end()?;
        self.settle_rate();
        self.common.json = self.json_output();
        let common = self.common.clone();
        match self.role.ok_or(Refusal::NoRole)? {
            Role::Server => {
                let user = self.user.take();
                Ok(Iperf3Command::Server(Box::new(ServerArguments { common, user, ..self.server.clone() })))
            }
            Role::Client => Ok(Iperf3Command::Client(Box::new(ClientArguments { common, ..self.client.clone() }))),
        }
    }

    fn is_udp(&self) -> bool {
        self.client.parameters.protocol == Protocol::Udp
    }

    fn only_sends(&self) -> bool {
        self.client.parameters.direction == Direction::Forward
    }

    fn check_role(&mut self) -> Result<(), Refusal> {
        match self.role {
            Some(Role::Client) if self.server_option_given => Err(Refusal::ServerOnly),
            Some(Role::Server) if self.client_option_given => Err(Refusal::ClientOnly),
            Some(Role::Client) => {
                // iperf3 reads --user as a shortened --username.
                self.username = self.username.take().or_else(|| self.user.take());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn authenticate(&mut self) -> Result<(), Refusal> {
        match self.role {
            Some(Role::Client) => self.authenticate_client(),
            Some(Role::Server) => self.authenticate_server(),
            None => Ok(()),
        }
    }

    fn authenticate_client(&mut self) -> Result<(), Refusal> {
        self.client.authentication = match (self.username.take(), self.public_key.take()) {
            (Some(username), Some(public_key)) => Some(ClientAuthentication { username, public_key }),
            (None, None) => None,
            _ => return Err(Refusal::ClientAuthentication),
        };
        let server_only = self.private_key.is_some() || self.users.is_some() || self.time_skew.is_some();
        if server_only { Err(Refusal::ServerOnly) } else { Ok(()) }
    }

    fn authenticate_server(&mut self) -> Result<(), Refusal> {
        if self.username.is_some() || self.public_key.is_some() {
            return Err(Refusal::ClientOnly);
        }
        let time_skew = self.time_skew.unwrap_or(TIME_SKEW);
        self.server.authentication = match (self.private_key.take(), self.users.take()) {
            (Some(private_key), Some(users)) => Some(ServerAuthentication { private_key, users, time_skew }),
            (None, None) => None,
            _ => return Err(Refusal::ServerAuthentication),
        };
        Ok(())
    }

    fn settle_block_size(&mut self) -> Result<(), Refusal> {
        let size = self.block_size;
        if size > MAX_BLOCK_SIZE {
            return Err(Refusal::BlockSize);
        }
        if size.is_zero() {
            if self.is_udp() {
                self.client.parameters.block_size = UDP_BLOCK_SIZE;
            }
            return Ok(());
        }
        if self.is_udp() && !(MIN_UDP_BLOCK_SIZE..=MAX_UDP_BLOCK_SIZE).contains(&size) {
            return Err(Refusal::UdpBlockSize);
        }
        self.client.parameters.block_size = size;
        self.client.block_size = Some(size);
        Ok(())
    }

    fn settle_end(&mut self) -> Result<(), Refusal> {
        let bytes = (!self.bytes.is_zero()).then_some(EndCondition::Bytes(self.bytes));
        let blocks = (!self.blocks.is_zero()).then_some(EndCondition::Blocks(self.blocks));
        let time = self.time.map(EndCondition::Time);
        let mut given = [time, bytes, blocks].into_iter().flatten();
        if let Some(end) = given.next() {
            self.client.parameters.end = end;
            self.client.end_given = true;
        }
        if given.next().is_some() { Err(Refusal::EndConditions) } else { Ok(()) }
    }

    /// Zero is "unlimited", also for UDP.
    fn settle_rate(&mut self) {
        let default = if self.is_udp() { BitRate::from_bits_per_second(UDP_RATE) } else { BitRate::ZERO };
        let rate = self.rate.unwrap_or(default);
        self.client.parameters.rate = (!rate.is_zero()).then_some(rate);
    }

    /// The full output is an addition to the stream; alone it is the plain document.
    fn json_output(&self) -> Option<JsonOutput> {
        match (self.json_stream, self.json_full_output) {
            (true, true) => Some(JsonOutput::StreamAndDocument),
            (true, false) => Some(JsonOutput::Stream),
            (false, full) => (self.json || full).then_some(JsonOutput::Document),
        }
    }

    fn warn_of(&mut self, operands: &[OsString]) {
        if self.common.json.is_some() {
            if self.common.format != Format::default() {
                self.warn("Report format (-f) flag ignored with JSON output (-J)");
            }
            if self.common.verbose {
                self.warn("Verbose output (-v) may interfere with JSON output (-J)");
            }
            if self.common.debug.is_some() {
                self.warn("Debug output (-d) may interfere with JSON output (-J)");
            }
        }
        for operand in operands {
            self.warn(format!("ignored '{}': it belongs to no option", operand.display()));
        }
    }
}

/// `host%device`, taken apart, unless it is an IPv6 link-local address, to which the device belongs (RFC 4007 §11).
pub(super) fn split_device(text: &str) -> (String, Option<String>) {
    let whole = || (text.to_owned(), None);
    let Some((host, device)) = text.split_once('%') else { return whole() };
    if host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_unicast_link_local()) {
        return whole();
    }
    (host.to_owned(), (!device.is_empty()).then(|| device.to_owned()))
}
