//! Commands that open a port, keep it open, close it and check it. Nothing is run here.

use core::fmt;
use core::time::Duration;

use linerate_units::Port;

use super::FirewallManager;
use super::nftables::{self, NftTable};
use crate::command::command_line;

/// Port to open, with its lifetime and the tag of its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FirewallTarget {
    pub(super) port: Port,
    lifetime: Duration,
    /// Marks our rules among the others': no other process has this one.
    pub(super) tag: String,
}

impl FirewallTarget {
    pub(super) fn new(port: Port, lifetime: Duration, process: u32) -> Self {
        Self { port, lifetime, tag: format!("linerate-{port}-{process}") }
    }

    /// The lifetime in whole seconds: at least one, as firewalld takes zero for ever.
    pub(super) fn seconds(&self) -> u64 {
        self.lifetime.as_secs().max(1)
    }

    /// The name of the nftables set: nft allows no `-` in the places where a name is looked up.
    pub(super) fn set_name(&self) -> String {
        self.tag.replace('-', "_")
    }
}

/// A program to run, with what it reads from its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandInvocation {
    pub(super) program: &'static str,
    pub(super) arguments: Vec<String>,
    pub(super) input: Option<String>,
}

impl CommandInvocation {
    pub(super) fn new(program: &'static str, arguments: &[&str]) -> Self {
        Self { program, arguments: arguments.iter().map(|word| (*word).to_owned()).collect(), input: None }
    }

    /// A script for nft, which does all of it or nothing.
    pub(super) fn nft_script(script: String) -> Self {
        Self { input: Some(script), ..Self::new("nft", &["-f", "-"]) }
    }
}

impl fmt::Display for CommandInvocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        f.write_str(&command_line(self.program, &arguments))
    }
}

/// The transports that a test needs: TCP for control and data, UDP for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransportProtocol {
    Tcp,
    Udp,
}

impl TransportProtocol {
    pub(super) const BOTH: [Self; 2] = [Self::Tcp, Self::Udp];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// One thing to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FirewallStep {
    /// A port in a zone of firewalld.
    Firewalld { zone: String, transport: TransportProtocol },
    /// A rule of ufw.
    Ufw { transport: TransportProtocol },
    /// A rule in iptables' own input chain, which other programs than iptables should not touch.
    Iptables { program: &'static str, transport: TransportProtocol },
    /// Rules in the input chains of one table.
    Nftables { table: NftTable, chains: Vec<String> },
}

impl fmt::Display for FirewallStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Firewalld { zone, transport } => write!(f, "zone {zone} {}", transport.name()),
            Self::Ufw { transport } => f.write_str(transport.name()),
            Self::Iptables { program, transport } => write!(f, "{program} INPUT {}", transport.name()),
            Self::Nftables { table, chains } => write!(f, "{table} {}", chains.join(" and ")),
        }
    }
}

impl FirewallStep {
    /// Command that opens it.
    pub(super) fn open(&self, target: &FirewallTarget) -> CommandInvocation {
        match self {
            Self::Firewalld { zone, transport } => {
                let add = firewalld(target, zone, "add", *transport);
                let mut arguments = add.arguments;
                arguments.push(format!("--timeout={}", target.seconds()));
                CommandInvocation { arguments, ..add }
            }
            Self::Ufw { transport } => {
                let port = ufw_port(target, *transport);
                CommandInvocation::new("ufw", &["allow", "in", &port, "comment", &target.tag])
            }
            Self::Iptables { program, transport } => iptables(target, program, "-I", *transport),
            Self::Nftables { table, chains } => {
                CommandInvocation::nft_script(nftables::open_script(target, table, chains))
            }
        }
    }

    /// Commands that restart the lifetime; none where rules have none. firewalld cannot prolong a port, so it is closed
    /// for a moment: connections that exist are not affected.
    pub(super) fn renew(&self, target: &FirewallTarget) -> Vec<CommandInvocation> {
        match self {
            Self::Firewalld { zone, transport } => {
                vec![firewalld(target, zone, "remove", *transport), self.open(target)]
            }
            Self::Ufw { .. } | Self::Iptables { .. } => Vec::new(),
            Self::Nftables { table, .. } => vec![CommandInvocation::nft_script(nftables::renew_script(target, table))],
        }
    }

    /// True when [`FirewallStep::close`] needs the current rules.
    pub(super) fn close_needs_ruleset(&self) -> bool {
        matches!(self, Self::Nftables { .. })
    }

    /// Command that closes it. `ruleset` is the output of `nft -j list ruleset`.
    pub(super) fn close(&self, target: &FirewallTarget, ruleset: &str) -> CommandInvocation {
        match self {
            Self::Firewalld { zone, transport } => firewalld(target, zone, "remove", *transport),
            Self::Ufw { transport } => {
                CommandInvocation::new("ufw", &["delete", "allow", "in", &ufw_port(target, *transport)])
            }
            Self::Iptables { program, transport } => iptables(target, program, "-D", *transport),
            Self::Nftables { table, .. } => {
                CommandInvocation::nft_script(nftables::close_script(target, table, ruleset))
            }
        }
    }

    /// Command that checks if it is open.
    pub(super) fn probe(&self, target: &FirewallTarget) -> CommandInvocation {
        match self {
            Self::Firewalld { zone, transport } => firewalld(target, zone, "query", *transport),
            Self::Ufw { .. } => CommandInvocation::new("ufw", &["show", "added"]),
            Self::Iptables { program, transport } => iptables(target, program, "-C", *transport),
            Self::Nftables { table, .. } => {
                CommandInvocation::new("nft", &["list", "set", &table.family, &table.name, &target.set_name()])
            }
        }
    }

    /// Result of [`FirewallStep::probe`], true when open; `None` when the answer is not understood.
    pub(super) fn parse_probe(
        &self,
        target: &FirewallTarget,
        status: Option<i32>,
        stdout: &str,
        stderr: &str,
    ) -> Option<bool> {
        const NOT_RUNNING: i32 = 252; // firewall-cmd: a firewall that does not run has no rules
        match (self, status) {
            (Self::Ufw { transport }, Some(0)) => Some(ufw_allows(target, *transport, stdout)),
            (Self::Ufw { .. }, _) => None,
            (_, Some(0)) => Some(true),
            (Self::Firewalld { .. }, Some(1 | NOT_RUNNING)) | (Self::Iptables { .. }, Some(1)) => Some(false),
            (Self::Nftables { .. }, Some(1)) if stderr.contains("No such file or directory") => Some(false),
            _ => None,
        }
    }
}

fn firewalld(target: &FirewallTarget, zone: &str, verb: &str, transport: TransportProtocol) -> CommandInvocation {
    let port = format!("--{verb}-port={}/{}", target.port, transport.name());
    CommandInvocation::new("firewall-cmd", &[&format!("--zone={zone}"), &port])
}

fn ufw_port(target: &FirewallTarget, transport: TransportProtocol) -> String {
    format!("{}/{}", target.port, transport.name())
}

/// True when the output of `ufw show added` has a rule for this port and transport.
fn ufw_allows(target: &FirewallTarget, transport: TransportProtocol, added: &str) -> bool {
    let rule = format!("ufw allow {}", ufw_port(target, transport));
    added.lines().any(|line| line.strip_prefix(&rule).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

fn iptables(
    target: &FirewallTarget,
    program: &'static str,
    verb: &str,
    transport: TransportProtocol,
) -> CommandInvocation {
    let port = target.port.to_string();
    let words = ["-w", "5", verb, "INPUT", "-p", transport.name(), "--dport", &port];
    let more = ["-m", "comment", "--comment", &target.tag, "-j", "ACCEPT"];
    CommandInvocation::new(program, &[words.as_slice(), &more].concat())
}

/// Commands for users to type, for a known or an unknown firewall.
pub(super) fn manual_commands(target: &FirewallTarget, firewall: Option<FirewallManager>) -> String {
    let (port, seconds) = (target.port, target.seconds());
    let firewalld = format!("`firewall-cmd --add-port={port}/tcp --add-port={port}/udp --timeout={seconds}`");
    let ufw = format!("`ufw allow {port}/tcp` and `ufw allow {port}/udp`");
    let nft = format!("`nft insert rule inet filter input meta l4proto '{{ tcp, udp }}' th dport {port} accept`");
    match firewall {
        Some(FirewallManager::Firewalld) => firewalld,
        Some(FirewallManager::Ufw) => ufw,
        Some(FirewallManager::Nftables) => format!("{nft} with your own table and chain"),
        None => format!("with firewalld {firewalld}, with ufw {ufw}, with nftables {nft}"),
    }
}
