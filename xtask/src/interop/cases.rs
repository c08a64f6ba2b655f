//! Cases of the matrix: each option of iperf3's help with one or a few values, and combinations.

/// Command lines of a client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    /// Options of the client, after `-c HOST -p PORT`. `{file}`, `{new}` and `{port}` are replaced.
    pub(super) client: &'static str,
    /// Options of the server, after `-s -1 -p PORT`.
    pub(super) server: &'static str,
    /// Password of a client that authenticates.
    pub(super) password: Option<&'static str>,
}

const fn client(client: &'static str) -> Case {
    Case { client, server: "", password: None }
}

const fn server(server: &'static str, client: &'static str) -> Case {
    Case { client, server, password: None }
}

const fn authenticated(password: &'static str, client: &'static str) -> Case {
    Case { client, server: "", password: Some(password) }
}

impl Case {
    /// Name in tables.
    pub(super) fn name(&self) -> String {
        let client = if self.client.is_empty() { "(none)" } else { self.client };
        let password = self.password.map(|password| format!(" (password {password})")).unwrap_or_default();
        if self.server.is_empty() {
            format!("{client}{password}")
        } else {
            format!("-s {} ← {client}{password}", self.server)
        }
    }

    /// True when a client that prints text is wanted; the others get `-J`.
    pub(super) fn prints_text(&self) -> bool {
        const TEXT: [&str; 9] =
            ["-V", "-d", "-f", "--timestamps", "--logfile", "--forceflush", "-v", "-h", "--json-stream"];
        self.words().any(|word| TEXT.iter().any(|option| word == *option || word.starts_with(&format!("{option}="))))
    }

    /// True for a client that prints an event per line.
    pub(super) fn prints_events(&self) -> bool {
        self.words().any(|word| word == "--json-stream")
    }

    /// True when the case names its end itself.
    pub(super) fn has_end(&self) -> bool {
        self.words().any(|word| ["-t", "-n", "-k", "-F"].contains(&word))
    }

    /// True when the case names its rate itself, or must run at full speed.
    pub(super) fn has_rate(&self) -> bool {
        self.words().any(|word| ["-b", "-u", "-n", "-k", "-F"].contains(&word))
    }

    pub(super) fn is_ipv6(&self) -> bool {
        self.words().any(|word| word == "-6")
    }

    /// Bytes that an exact test must reach.
    pub(super) fn bytes(&self) -> Option<u64> {
        let mut words = self.words();
        let value = words.find(|word| *word == "-n").and_then(|_| words.next())?;
        let (digits, unit) = match value.strip_suffix(['K', 'M']) {
            Some(digits) => (digits, if value.ends_with('K') { 1 << 10 } else { 1 << 20 }),
            None => (value, 1),
        };
        Some(digits.parse::<u64>().ok()? * unit)
    }

    fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.client.split_whitespace()
    }
}

/// All cases.
pub(super) const CASES: &[Case] = &[
    // Direction and streams.
    client(""),
    client("-R"),
    client("--bidir"),
    client("-P 2"),
    client("-P 2 -R"),
    client("-P 2 --bidir"),
    // Ends.
    client("-t 2"),
    client("-n 1"),
    client("-n 100K"),
    client("-n 1234567"),
    client("-n 2M"),
    client("-n 2M -R"),
    client("-n 2M --bidir"),
    client("-n 2M -P 2"),
    client("-n 2M -b 50M"),
    client("-n 2M -b 50M -R"),
    client("-k 1"),
    client("-k 20"),
    client("-k 20 -R"),
    client("-k 20 -P 2"),
    client("-k 20 -b 50M"),
    client("-k 20 -b 50M -R"),
    client("-O 1"),
    client("-O 1 -R"),
    client("-O 1 --bidir"),
    // Intervals.
    client("-i 0"),
    client("-i 0.1"),
    client("-i 0.5 -t 2"),
    // Rate and pacing.
    client("-t 1"),
    client("-b 10M"),
    client("-b 10M/4"),
    client("-b 0"),
    client("-b 1M -R"),
    client("--fq-rate 50M"),
    client("--fq-rate 50M -R"),
    client("--no-fq-socket-pacing"),
    client("--pacing-timer 2000"),
    // Blocks and payload.
    client("-l 1K"),
    client("-l 64K"),
    client("-l 1M"),
    client("-l 1K -R"),
    client("-Z"),
    client("-Z -R"),
    client("--skip-rx-copy"),
    client("--skip-rx-copy -R"),
    client("--repeating-payload"),
    client("-F {file}"),
    client("-F {new} -R -t 1"),
    client("-F {file} -n 64K"),
    // Sockets.
    client("-w 64K"),
    client("-w 128K -R"),
    client("-M 1000"),
    client("-M 1000 -R"),
    client("-N"),
    client("-C reno"),
    client("-C cubic -R"),
    client("-C nosuch"),
    client("-S 0x20"),
    client("-S 16 -R"),
    client("--dscp ef"),
    client("--dscp 10"),
    client("--dont-fragment"),
    client("-m"),
    client("-m -R"),
    client("-L 7"),
    client("-L 7 -6"),
    // Addresses and processors.
    client("-4"),
    client("-6"),
    client("-6 -R"),
    client("-B 127.0.0.1"),
    client("--bind-dev lo"),
    client("--cport {port}"),
    client("-A 0"),
    client("-A 0,0"),
    // Time limits.
    client("--connect-timeout 2000"),
    client("--rcv-timeout 5000 -R"),
    client("--rcv-timeout 5000"),
    client("--snd-timeout 5000"),
    client("--cntl-ka"),
    client("--cntl-ka=10/2/3"),
    // Output.
    client("-V"),
    client("-d"),
    client("-f m"),
    client("-f K"),
    client("--timestamps"),
    client("--timestamps=%H"),
    client("--forceflush"),
    client("--logfile {new}"),
    client("-I {new}"),
    client("--json-stream"),
    client("--json-stream -R"),
    client("--json-stream --get-server-output"),
    client("--json-stream --json-stream-full-output"),
    client("-T title"),
    client("--extra-data more"),
    client("--get-server-output"),
    client("--get-server-output -R"),
    client("-v"),
    client("-h"),
    // UDP.
    client("-u"),
    client("-u -R"),
    client("-u --bidir"),
    client("-u -P 2"),
    client("-u -P 2 -R"),
    client("-u --bidir -P 2 -b 5M"),
    client("-u -b 10M"),
    client("-u -b 10M -R"),
    client("-u -b 10M/4"),
    client("-u -b 100M -n 1M -l 1400"),
    client("-u -l 100"),
    client("-u -l 1400 -b 10M"),
    client("-u -n 100K -b 10M"),
    client("-u -n 100K -b 10M -R"),
    client("-u -k 50 -b 10M -l 1400"),
    client("-u -O 1 -b 10M"),
    client("-u --udp-counters-64bit"),
    client("-u --gsro -b 10M -l 1400"),
    client("-u --gsro -b 10M -l 1400 -R"),
    client("-u --dont-fragment -l 1400"),
    client("-u -w 128K"),
    client("-u -S 16"),
    client("-u --repeating-payload"),
    client("-u --skip-rx-copy"),
    client("-u -Z"),
    client("-u -i 0.1 -b 10M"),
    client("-u -6"),
    client("-u -L 7 -6"),
    client("-u --cport {port}"),
    client("-u --get-server-output"),
    client("-u --json-stream"),
    client("-u -V"),
    // Refused by the client.
    client("--nope"),
    client("-t 100000"),
    client("-P 200"),
    client("-l 2M"),
    client("-u -l 70000"),
    client("-u -l 10"),
    client("-w 1G"),
    client("-M 40000"),
    client("-i 100"),
    client("-O 700"),
    client("-R --bidir"),
    client("-n 1 -k 1"),
    client("-S 300"),
    client("--dscp zz"),
    client("-f x"),
    client("-b 1X"),
    client("-u -F {file}"),
    client("--username mario"),
    client("-A 5000"),
    client("-L 0"),
    // Options of the server.
    server("-i 0.5", ""),
    server("-J", "-R"),
    server("-J", "--get-server-output"),
    server("-V", ""),
    server("-f m", ""),
    server("--json-stream", ""),
    server("-F {new}", "-n 100K"),
    server("-A 0", ""),
    server("-B 127.0.0.1", ""),
    server("-4", ""),
    server("-6", "-6"),
    server("--rcv-timeout 5000", ""),
    server("--idle-timeout 10", ""),
    server("--forceflush", ""),
    server("-m", "-m"),
    server("--server-bitrate-limit 5M", "-b 20M"),
    server("--server-bitrate-limit 50M", "-b 10M"),
    server("--server-bitrate-limit 5M", "-u -b 20M"),
    server("--server-max-duration 2", "-t 5"),
    server("--server-max-duration 5", "-t 1"),
    // Authentication.
    authenticated("rossi", ""),
    authenticated("rossi", "-u"),
    authenticated("rossi", "--use-pkcs1-padding"),
    authenticated("wrong", ""),
    Case { client: "", server: "--time-skew-threshold 5", password: Some("rossi") },
    Case { client: "", server: "--use-pkcs1-padding", password: Some("rossi") },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_case_occurs_once() {
        let names: BTreeSet<String> = CASES.iter().map(Case::name).collect();
        assert_eq!(names.len(), CASES.len());
    }

    #[test]
    fn a_case_is_read_from_its_command_line() {
        assert_eq!(client("-u -n 100K -b 10M").bytes(), Some(102_400));
        assert_eq!((client("-n 1").bytes(), client("-k 1").bytes()), (Some(1), None));
        assert!(client("--timestamps=%H").prints_text() && !client("-t 2").prints_text());
        assert!(client("-6 -R").is_ipv6() && client("-F {file}").has_end() && !client("-R").has_rate());
    }
}
