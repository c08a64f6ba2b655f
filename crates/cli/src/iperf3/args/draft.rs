//! Command line during parsing, and the final checks.

use std::ffi::OsString;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::parameters::{EndCondition, TestDirection, TestProtocol};
use linerate_units::iperf3::UnitFormat;
use linerate_units::{BitRate, BlockCount, ByteCount};

use super::command::{
    ClientArguments, ClientAuthentication, CommonArguments, Iperf3Command, JsonOutput, ParsedCommand, ServerArguments,
    ServerAuthentication,
};
use super::error::{ArgumentsError, ParameterError, ParameterRefusal, ParseStop};
use super::options::{CommandOption, RequiredRole};
use super::value::ArgumentValue;

/// iperf3's UDP rate: 1 Mbit/s, with a binary Mega.
const DEFAULT_UDP_RATE: f64 = 1_048_576.0;
/// Default UDP payload of iperf3 if the path MTU is unknown: an Ethernet frame's, less IPv4 and TCP headers.
const DEFAULT_UDP_BLOCK_SIZE: ByteCount = ByteCount::new(1460);
const MIN_UDP_BLOCK_SIZE: ByteCount = ByteCount::new(16);
const MAX_UDP_BLOCK_SIZE: ByteCount = ByteCount::new(65_507);
const MAX_BLOCK_SIZE: ByteCount = ByteCount::from_mebibytes(1);
/// Default limit of iperf3 on the difference of clocks.
const DEFAULT_TIME_SKEW: Duration = Duration::from_secs(10);

/// Server or client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandRole {
    Server,
    Client,
}

/// Options parsed so far. Both roles are filled in, because `-s` or `-c` may come last.
#[derive(Default)]
pub(crate) struct CommandDraft {
    role: Option<CommandRole>,
    pub(super) common: CommonArguments,
    pub(super) client: ClientArguments,
    pub(super) server: ServerArguments,
    /// True when a client-only option was given.
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
    /// `-n`; zero counts as not given.
    pub(super) bytes: ByteCount,
    /// `-k`; zero counts as not given.
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

impl CommandDraft {
    pub(super) fn apply(&mut self, option: &CommandOption, value: &ArgumentValue) -> Result<(), ParseStop> {
        (option.apply)(self, value)?;
        match option.commitment {
            RequiredRole::Any => {}
            RequiredRole::Server => self.server_option_given = true,
            RequiredRole::Client => self.client_option_given = true,
        }
        Ok(())
    }

    pub(super) fn set_role(&mut self, role: CommandRole) -> Result<(), ParseStop> {
        if self.role.is_some_and(|previous| previous != role) {
            return Err(ParameterRefusal::ServerAndClient.into());
        }
        self.role = Some(role);
        Ok(())
    }

    pub(super) fn set_direction(&mut self, direction: TestDirection) -> Result<(), ParseStop> {
        let current = &mut self.client.parameters.direction;
        if *current != TestDirection::Forward && *current != direction {
            return Err(ParameterRefusal::ReverseAndBidirectional.into());
        }
        *current = direction;
        Ok(())
    }

    /// Sets the device to bind to, if given.
    pub(super) fn bind_device(&mut self, device: Option<String>) {
        if device.is_some() {
            self.common.bind_device = device;
        }
    }

    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// Wraps an error for the caller.
    pub(super) fn refuse(&self, error: ParameterError) -> ArgumentsError {
        ArgumentsError::Parameter { error, timestamps: self.common.timestamps.clone() }
    }

    /// Checks combinations of options, in iperf3's order, and assembles the command.
    pub(super) fn finish(mut self, operands: &[OsString]) -> Result<ParsedCommand, ArgumentsError> {
        let command = self.command().map_err(|refusal| self.refuse(refusal.into()))?;
        self.add_warnings(operands);
        Ok(ParsedCommand { command, warnings: self.warnings })
    }

    fn command(&mut self) -> Result<Iperf3Command, ParameterRefusal> {
        self.check_role()?;
        self.authenticate()?;
        if self.role == Some(CommandRole::Client) && self.receive_timeout_given && self.only_sends() {
            return Err(ParameterRefusal::ReceiveTimeoutOfSender);
        }
        if self.is_udp() && self.common.file.is_some() {
            return Err(ParameterRefusal::UdpFile);
        }
        self.resolve_block_size()?;
        self.resolve_end()?;
        self.resolve_rate();
        self.common.json = self.json_output();
        let common = self.common.clone();
        match self.role.ok_or(ParameterRefusal::NoRole)? {
            CommandRole::Server => {
                let user = self.user.take();
                Ok(Iperf3Command::Server(Box::new(ServerArguments { common, user, ..self.server.clone() })))
            }
            CommandRole::Client => {
                Ok(Iperf3Command::Client(Box::new(ClientArguments { common, ..self.client.clone() })))
            }
        }
    }

    fn is_udp(&self) -> bool {
        self.client.parameters.protocol == TestProtocol::Udp
    }

    fn only_sends(&self) -> bool {
        self.client.parameters.direction == TestDirection::Forward
    }

    fn check_role(&mut self) -> Result<(), ParameterRefusal> {
        match self.role {
            Some(CommandRole::Client) if self.server_option_given => Err(ParameterRefusal::ServerOnly),
            Some(CommandRole::Server) if self.client_option_given => Err(ParameterRefusal::ClientOnly),
            Some(CommandRole::Client) => {
                // iperf3 reads --user as a shortened --username.
                self.username = self.username.take().or_else(|| self.user.take());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn authenticate(&mut self) -> Result<(), ParameterRefusal> {
        match self.role {
            Some(CommandRole::Client) => self.authenticate_client(),
            Some(CommandRole::Server) => self.authenticate_server(),
            None => Ok(()),
        }
    }

    fn authenticate_client(&mut self) -> Result<(), ParameterRefusal> {
        self.client.authentication = match (self.username.take(), self.public_key.take()) {
            (Some(username), Some(public_key)) => Some(ClientAuthentication { username, public_key }),
            (None, None) => None,
            _ => return Err(ParameterRefusal::ClientAuthentication),
        };
        let server_only = self.private_key.is_some() || self.users.is_some() || self.time_skew.is_some();
        if server_only { Err(ParameterRefusal::ServerOnly) } else { Ok(()) }
    }

    fn authenticate_server(&mut self) -> Result<(), ParameterRefusal> {
        if self.username.is_some() || self.public_key.is_some() {
            return Err(ParameterRefusal::ClientOnly);
        }
        let time_skew = self.time_skew.unwrap_or(DEFAULT_TIME_SKEW);
        self.server.authentication = match (self.private_key.take(), self.users.take()) {
            (Some(private_key), Some(users)) => Some(ServerAuthentication { private_key, users, time_skew }),
            (None, None) => None,
            _ => return Err(ParameterRefusal::ServerAuthentication),
        };
        Ok(())
    }

    fn resolve_block_size(&mut self) -> Result<(), ParameterRefusal> {
        let size = self.block_size;
        if size > MAX_BLOCK_SIZE {
            return Err(ParameterRefusal::BlockSize);
        }
        if size.is_zero() {
            if self.is_udp() {
                self.client.parameters.block_size = DEFAULT_UDP_BLOCK_SIZE;
            }
            return Ok(());
        }
        if self.is_udp() && !(MIN_UDP_BLOCK_SIZE..=MAX_UDP_BLOCK_SIZE).contains(&size) {
            return Err(ParameterRefusal::UdpBlockSize);
        }
        self.client.parameters.block_size = size;
        self.client.block_size = Some(size);
        Ok(())
    }

    fn resolve_end(&mut self) -> Result<(), ParameterRefusal> {
        let bytes = (!self.bytes.is_zero()).then_some(EndCondition::Bytes(self.bytes));
        let blocks = (!self.blocks.is_zero()).then_some(EndCondition::Blocks(self.blocks));
        let time = self.time.map(EndCondition::Time);
        let mut given = [time, bytes, blocks].into_iter().flatten();
        if let Some(end) = given.next() {
            self.client.parameters.end = end;
            self.client.end_given = true;
        }
        if given.next().is_some() { Err(ParameterRefusal::EndConditions) } else { Ok(()) }
    }

    /// Zero is "unlimited", also for UDP.
    fn resolve_rate(&mut self) {
        let default = if self.is_udp() { BitRate::from_bits_per_second(DEFAULT_UDP_RATE) } else { BitRate::ZERO };
        let rate = self.rate.unwrap_or(default);
        self.client.parameters.rate = (!rate.is_zero()).then_some(rate);
    }

    /// Full output adds the document to the stream; alone it is the plain document.
    fn json_output(&self) -> Option<JsonOutput> {
        match (self.json_stream, self.json_full_output) {
            (true, true) => Some(JsonOutput::StreamAndDocument),
            (true, false) => Some(JsonOutput::Stream),
            (false, _) => self.json.then_some(JsonOutput::Document),
        }
    }

    fn add_warnings(&mut self, operands: &[OsString]) {
        if self.common.json.is_some() {
            if self.common.format != UnitFormat::default() {
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
            self.warn(format!("ignored '{}': unexpected argument", operand.display()));
        }
    }
}

/// Splits `host%device`, except an IPv6 link-local address, which keeps its device (RFC 4007 §11).
pub(super) fn split_device(text: &str) -> (String, Option<String>) {
    let whole = || (text.to_owned(), None);
    let Some((host, device)) = text.split_once('%') else { return whole() };
    if host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_unicast_link_local()) {
        return whole();
    }
    (host.to_owned(), (!device.is_empty()).then(|| device.to_owned()))
}
