//! The user's own ssh, with its configuration.

use core::time::Duration;

use linerate_sys::command;
use linerate_sys::companion::{InteractiveCommand, InteractiveProcess};
use linerate_units::Port;

/// Options of ssh: batch mode, as questions cannot be answered; no forwarded ports, which belong to other sessions; and a
/// connection without answers for 20 s ends, as after a change that cuts the network. The far end then restores its host.
const SSH_OPTIONS: [&str; 9] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=4",
    "-o",
    "ClearAllForwardings=yes",
];

/// Time limit of `ssh -G`, which only reads the configuration.
const CONFIGURATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Host in ssh's syntax.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SshDestination<'a> {
    /// `[USER@]HOST`.
    pub(crate) destination: &'a str,
    /// Port, if not the one of ssh's configuration.
    pub(crate) port: Option<Port>,
}

/// Host as ssh's configuration resolves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResolvedHost {
    /// `HostName`; `None` when ssh does not report it.
    pub(crate) name: Option<String>,
    /// `ProxyJump` or `ProxyCommand`: ssh does not connect directly.
    pub(crate) proxy: Option<String>,
}

impl SshDestination<'_> {
    /// Starts `ssh` with more options, and these words as the remote command.
    pub(crate) fn start<'w>(
        &self,
        options: &[&str],
        words: impl Iterator<Item = &'w str>,
    ) -> linerate_sys::Result<InteractiveProcess> {
        let mut arguments: Vec<String> = SSH_OPTIONS.iter().chain(options).map(|&word| word.to_owned()).collect();
        arguments.extend(self.arguments());
        arguments.push("--".to_owned());
        arguments.extend(words.map(str::to_owned));
        InteractiveProcess::start(&InteractiveCommand {
            program: "ssh",
            arguments: &arguments,
            environment: &[],
            namespace: None,
        })
    }

    fn arguments(&self) -> Vec<String> {
        let port = self.port.map(|port| ["-p".to_owned(), port.to_string()]);
        port.into_iter().flatten().chain([self.destination.to_owned()]).collect()
    }

    /// Reads ssh's configuration for this host (`ssh -G`).
    pub(crate) fn resolve(&self) -> linerate_sys::Result<ResolvedHost> {
        let arguments = self.arguments();
        let arguments: Vec<&str> = core::iter::once("-G").chain(arguments.iter().map(String::as_str)).collect();
        let output = command::run_checked("ssh", &arguments, None, CONFIGURATION_TIMEOUT)?;
        Ok(resolved(&output.stdout_text()))
    }

    /// Host without the user.
    pub(crate) fn host(&self) -> &str {
        self.destination.rsplit_once('@').map_or(self.destination, |(_, host)| host)
    }
}

fn resolved(configuration: &str) -> ResolvedHost {
    let value = |key: &str| {
        let lines = configuration.lines().filter_map(|line| line.split_once(' '));
        let mut values = lines.filter(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.trim());
        values.next().filter(|value| !value.is_empty() && *value != "none").map(str::to_owned)
    };
    ResolvedHost { name: value("hostname"), proxy: value("proxyjump").or_else(|| value("proxycommand")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_names_the_host_and_a_proxy() {
        let plain = "user me\nhostname 192.0.2.7\nport 22\nproxycommand none\n";
        assert_eq!(resolved(plain), ResolvedHost { name: Some("192.0.2.7".to_owned()), proxy: None });
        let jump = "HostName far.example\nproxyjump gate.example\n";
        let (name, proxy) = (Some("far.example".to_owned()), Some("gate.example".to_owned()));
        assert_eq!(resolved(jump), ResolvedHost { name, proxy });
        assert_eq!(resolved("hostname \nproxyjump\n"), ResolvedHost::default());
    }

    #[test]
    fn the_port_precedes_the_host() {
        let far = SshDestination { destination: "me@far", port: Port::new(2222) };
        assert_eq!((far.arguments().join(" ").as_str(), far.host()), ("-p 2222 me@far", "far"));
        let far = SshDestination { destination: "2001:db8::1", port: None };
        assert_eq!((far.arguments().join(" ").as_str(), far.host()), ("2001:db8::1", "2001:db8::1"));
    }
}
