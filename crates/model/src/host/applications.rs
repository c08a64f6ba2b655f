//! Applications that transfer data on a host: NFS mounts, and known transfer programs.

use linerate_units::ByteCount;

use crate::fact::Fact;
use crate::socket::ProcessId;

/// Applications that transfer data on a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransferApplications {
    /// NFS mounts.
    pub nfs_mounts: Fact<Vec<NfsMount>>,
    /// Running transfer programs.
    pub transfers: Fact<Vec<TransferProcess>>,
}

/// NFS mount (nfs(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NfsMount {
    /// Exported file system: `server:/path`.
    pub source: String,
    /// Mount point.
    pub target: String,
    /// Protocol version: `3`, `4.2`.
    pub version: Option<String>,
    /// Transport: `tcp`, `udp`, `rdma`, with the suffix `6` over IPv6.
    pub transport: Option<String>,
    /// Maximum bytes of a read request (`rsize`).
    pub read_size: Option<ByteCount>,
    /// Maximum bytes of a write request (`wsize`).
    pub write_size: Option<ByteCount>,
    /// TCP connections to the server (`nconnect`); the kernel lists the option only when it is not 1.
    pub connections: Option<u32>,
    /// Address of the server.
    pub server: Option<String>,
}

impl NfsMount {
    /// Parses the NFS entries of `/proc/mounts`.
    #[must_use]
    pub fn parse_all(text: &str) -> Vec<Self> {
        text.lines().filter_map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (source, target, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
        matches!(kind, "nfs" | "nfs4").then_some(())?;
        let option = |name: &str| options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
        let size = |name| option(name).and_then(|size| size.parse().ok()).map(ByteCount::new);
        Some(Self {
            source: unescape(source),
            target: unescape(target),
            version: option("vers").map(str::to_owned),
            transport: option("proto").map(str::to_owned),
            read_size: size("rsize"),
            write_size: size("wsize"),
            connections: option("nconnect").map_or(Some(1), |count| count.parse().ok()),
            server: option("addr").map(str::to_owned),
        })
    }
}

/// Decodes the octal escapes of the kernel's list: blanks, tabs, newlines and backslashes.
fn unescape(word: &str) -> String {
    let mut parts = word.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(code) = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            text.push(char::from(code));
            text.push_str(&part[3..]);
        } else {
            text.push('\\');
            text.push_str(part);
        }
    }
    text
}

/// Running transfer program. Of its command line only the options that affect its speed are kept: no names, paths,
/// addresses or secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferProcess {
    /// Process id.
    pub process: ProcessId,
    /// Program.
    pub program: TransferProgram,
    /// True when it compresses (`-C`, `-z`).
    pub compresses: bool,
    /// Ciphers given by option (`-c`, `-o Ciphers=`); `None` without one.
    pub ciphers: Option<String>,
    /// Rate limit given by option, as written (`--bwlimit`, `-l`, `--limit-rate`).
    pub rate_limit: Option<String>,
}

/// Known transfer programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferProgram {
    /// ssh(1).
    Ssh,
    /// A session of sshd(8).
    Sshd,
    /// scp(1).
    Scp,
    /// sftp(1) and its server.
    Sftp,
    /// rsync(1).
    Rsync,
    /// curl(1).
    Curl,
    /// wget(1).
    Wget,
    /// A thread of the kernel's NFS server.
    Nfsd,
    /// iperf3(1).
    Iperf3,
}

impl TransferProgram {
    /// Returns the program with this file name; `None` for all others.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "ssh" => Self::Ssh,
            "sshd" | "sshd-session" => Self::Sshd,
            "scp" => Self::Scp,
            "sftp" | "sftp-server" => Self::Sftp,
            "rsync" => Self::Rsync,
            "curl" => Self::Curl,
            "wget" => Self::Wget,
            "nfsd" => Self::Nfsd,
            "iperf3" => Self::Iperf3,
            _ => return None,
        })
    }

    /// Name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ssh => "ssh",
            Self::Sshd => "sshd",
            Self::Scp => "scp",
            Self::Sftp => "sftp",
            Self::Rsync => "rsync",
            Self::Curl => "curl",
            Self::Wget => "wget",
            Self::Nfsd => "nfsd",
            Self::Iperf3 => "iperf3",
        }
    }

    /// Short options that take a value, which may be part of the same argument.
    const fn options_with_value(self) -> &'static str {
        match self {
            Self::Ssh | Self::Scp | Self::Sftp => "BbcDEeFIiJLlmOoPpQRSWwX",
            Self::Rsync => "efBTM@",
            _ => "",
        }
    }
}

impl TransferProcess {
    /// Extracts the options that affect speed; the first argument is the program's name and is skipped.
    #[must_use]
    pub fn from_arguments(process: ProcessId, program: TransferProgram, arguments: &[String]) -> Self {
        let mut found = Self { process, program, compresses: false, ciphers: None, rate_limit: None };
        let mut words = arguments.iter().skip(1).map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let takes_value = matches!(name, "bwlimit" | "limit-rate" | "rsh");
                let value = if takes_value { value.or_else(|| words.next()) } else { value };
                found.long_option(name, value);
            } else if let Some(short) = word.strip_prefix('-') {
                found.short_options(short, &mut words);
            } else if matches!(program, TransferProgram::Ssh) {
                break; // the host: the arguments after it are the remote command
            }
        }
        found
    }

    fn long_option(&mut self, name: &str, value: Option<&str>) {
        match (self.program, name) {
            (TransferProgram::Rsync, "compress") | (TransferProgram::Curl, "compressed") => self.compresses = true,
            (TransferProgram::Rsync, "compress-choice" | "zc") => self.compresses = value != Some("none"),
            (TransferProgram::Rsync, "no-compress") => self.compresses = false,
            (TransferProgram::Rsync, "bwlimit") | (TransferProgram::Curl | TransferProgram::Wget, "limit-rate") => {
                self.rate_limit = value.map(str::to_owned);
            }
            (TransferProgram::Rsync, "rsh") => self.remote_shell(value.unwrap_or_default()),
            _ => {}
        }
    }

    fn short_options<'a>(&mut self, options: &str, rest: &mut impl Iterator<Item = &'a str>) {
        for (place, option) in options.char_indices() {
            if self.program.options_with_value().contains(option) {
                let joined = &options[place + option.len_utf8()..];
                let value = if joined.is_empty() { rest.next().unwrap_or_default() } else { joined };
                return self.option_with_value(option, value);
            }
            let compresses = match self.program {
                TransferProgram::Ssh | TransferProgram::Scp | TransferProgram::Sftp => 'C',
                TransferProgram::Rsync => 'z',
                _ => continue,
            };
            self.compresses |= option == compresses;
        }
    }

    fn option_with_value(&mut self, option: char, value: &str) {
        match (self.program, option) {
            (TransferProgram::Rsync, 'e') => self.remote_shell(value),
            (TransferProgram::Rsync, _) => {}
            (_, 'c') => self.ciphers = Some(value.to_owned()),
            (TransferProgram::Scp | TransferProgram::Sftp, 'l') => self.rate_limit = Some(value.to_owned()),
            (_, 'o') => {
                let (name, value) = value.split_once(['=', ' ']).unwrap_or((value, ""));
                let value = value.trim_start_matches([' ', '=']);
                match name.to_ascii_lowercase().as_str() {
                    "ciphers" => self.ciphers = Some(value.to_owned()),
                    "compression" => self.compresses = value.eq_ignore_ascii_case("yes"),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Parses the command of rsync's remote shell.
    fn remote_shell(&mut self, command: &str) {
        let words: Vec<String> = command.split_ascii_whitespace().map(str::to_owned).collect();
        if words.first().is_some_and(|program| program.rsplit('/').next() == Some("ssh")) {
            let shell = Self::from_arguments(self.process, TransferProgram::Ssh, &words);
            self.ciphers = shell.ciphers;
            self.compresses |= shell.compresses;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOUNTS: &str = "proc /proc proc rw 0 0\n\
        nas:/export/my\\040data /data/a\\134b nfs4 rw,relatime,vers=4.2,rsize=1048576,wsize=524288,namlen=255,hard,\
        proto=tcp,nconnect=8,timeo=600,clientaddr=192.0.2.2,local_lock=none,addr=192.0.2.1 0 0\n\
        old:/ /old nfs rw,vers=3,rsize=8192,wsize=8192,proto=udp,mountproto=udp,addr=192.0.2.9 0 0\n";

    #[test]
    fn mounts_of_nfs() {
        let mounts = NfsMount::parse_all(MOUNTS);
        assert_eq!(mounts.len(), 2);
        let new = &mounts[0];
        assert_eq!((new.source.as_str(), new.target.as_str()), ("nas:/export/my data", "/data/a\\b"));
        assert_eq!((new.version.as_deref(), new.transport.as_deref()), (Some("4.2"), Some("tcp")));
        assert_eq!((new.read_size, new.write_size), (Some(ByteCount::new(1 << 20)), Some(ByteCount::new(1 << 19))));
        assert_eq!((new.connections, new.server.as_deref()), (Some(8), Some("192.0.2.1")));
        assert_eq!((mounts[1].connections, mounts[1].transport.as_deref()), (Some(1), Some("udp")));
    }

    fn transfer(program: TransferProgram, line: &str) -> TransferProcess {
        let words: Vec<String> = line.split('|').map(str::to_owned).collect();
        TransferProcess::from_arguments(ProcessId(7), program, &words)
    }

    #[test]
    fn only_options_that_affect_speed_are_kept() {
        let scp = transfer(TransferProgram::Scp, "scp|-Cq|-l|8192|-oCiphers=3des-cbc|-i|/key|a|host:b");
        assert_eq!((scp.compresses, scp.rate_limit.as_deref()), (true, Some("8192")));
        assert_eq!(scp.ciphers.as_deref(), Some("3des-cbc"));
        let ssh = transfer(TransferProgram::Ssh, "ssh|-c|aes128-ctr|-p|22|host|tar|-C|/x");
        assert_eq!((ssh.ciphers.as_deref(), ssh.compresses), (Some("aes128-ctr"), false), "-C is tar's");
        let rsync = transfer(TransferProgram::Rsync, "rsync|-avz|--bwlimit=10m|-e|/usr/bin/ssh -c aes256-cbc|a|h:b");
        assert_eq!((rsync.compresses, rsync.rate_limit.as_deref()), (true, Some("10m")));
        assert_eq!(rsync.ciphers.as_deref(), Some("aes256-cbc"));
        let plain = transfer(TransferProgram::Rsync, "rsync|-a|--no-compress|--|-z");
        assert!(!plain.compresses && plain.rate_limit.is_none());
        let curl = transfer(TransferProgram::Curl, "curl|--limit-rate|1M|-O|https://x");
        assert_eq!(curl.rate_limit.as_deref(), Some("1M"));
        let slow = transfer(TransferProgram::Ssh, "ssh|-o|Compression yes|host");
        assert!(slow.compresses);
    }

    #[test]
    fn programs_by_name() {
        for name in ["ssh", "sshd", "scp", "sftp", "rsync", "curl", "wget", "nfsd", "iperf3"] {
            assert_eq!(TransferProgram::by_name(name).map(TransferProgram::name), Some(name));
        }
        assert_eq!(TransferProgram::by_name("bash"), None);
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in ".{0,200}", words in proptest::collection::vec(".{0,12}", 0..12)) {
            prop_assert!(NfsMount::parse_all(&text).len() <= text.lines().count());
            for program in [TransferProgram::Rsync, TransferProgram::Scp, TransferProgram::Ssh, TransferProgram::Curl] {
                prop_assert_eq!(TransferProcess::from_arguments(ProcessId(1), program, &words).process, ProcessId(1));
            }
        }
    }
}
