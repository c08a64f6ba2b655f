//! Veth pair between two network namespaces of this bench, as ip-netns(8) makes them.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::output_of;

const CLIENT_ADDRESS: &str = "10.77.0.1";
/// Address of the servers.
pub(super) const SERVER_ADDRESS: &str = "10.77.0.2";

/// The pair, removed on drop.
pub(super) struct VethPair {
    client: String,
    server: String,
}

impl VethPair {
    /// Creates two namespaces of this process, and the pair between them.
    pub(super) fn new(mtu: u16) -> Result<Self> {
        let name = |end: &str| format!("linerate-bench-{}-{end}", std::process::id());
        let pair = Self { client: name("client"), server: name("server") };
        let mtu = mtu.to_string();
        for namespace in [&pair.client, &pair.server] {
            ip(&["netns", "add", namespace])?;
        }
        ip(&["-n", &pair.client, "link", "add", "veth0", "type", "veth", "peer", "veth0", "netns", &pair.server])?;
        pair.connect(&mtu)?;
        Ok(pair)
    }

    fn connect(&self, mtu: &str) -> Result<()> {
        for (namespace, address) in [(&self.client, CLIENT_ADDRESS), (&self.server, SERVER_ADDRESS)] {
            ip(&["-n", namespace, "address", "add", &format!("{address}/24"), "dev", "veth0"])?;
            ip(&["-n", namespace, "link", "set", "veth0", "mtu", mtu, "up"])?;
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    /// Command line in the client's namespace.
    pub(super) fn in_client(&self, line: Vec<String>) -> Vec<String> {
        inside(&self.client, line)
    }

    /// Command line in the server's namespace.
    pub(super) fn in_server(&self, line: Vec<String>) -> Vec<String> {
        inside(&self.server, line)
    }
}

/// ip(8) becomes the program, so that the process is the same.
fn inside(namespace: &str, line: Vec<String>) -> Vec<String> {
    ["ip", "netns", "exec", namespace].into_iter().map(str::to_owned).chain(line).collect()
}

fn ip(arguments: &[&str]) -> Result<()> {
    output_of(Command::new("ip").args(arguments)).map(drop).context("veth cells need root and iproute2")
}

impl Drop for VethPair {
    fn drop(&mut self) {
        for namespace in [&self.client, &self.server] {
            // One that was not made cannot be removed.
            let _ = ip(&["netns", "delete", namespace]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs root: creates network namespaces"]
    fn the_pair_carries_packets_of_its_size_and_leaves_nothing() {
        let pair = VethPair::new(9000).expect("root");
        let line = ["ping", "-c", "1", "-M", "do", "-s", "8972", SERVER_ADDRESS].map(str::to_owned).to_vec();
        let line = pair.in_client(line);
        output_of(Command::new(&line[0]).args(&line[1..])).expect("an answer");
        let name = pair.client.clone();
        drop(pair);
        let names = output_of(Command::new("ip").args(["netns", "list"])).expect("root");
        assert!(!names.contains(&name), "{names}");
    }
}
