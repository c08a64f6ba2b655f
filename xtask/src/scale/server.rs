//! Clients of one server at once: memory, threads, processor time, and the wait of one more client.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use linerate_sys::net::{self, ConnectOptions};
use linerate_sys::process;

use super::curve::{Curve, Section};
use crate::bench::process::RunningChild;
use crate::bench::run::{free_port, wait_until_listening};

const CLIENTS: [usize; 5] = [1, 10, 100, 1000, 5000];

/// Clients of one address: a network takes half of what is left at most.
const CLIENTS_PER_ADDRESS: usize = 20;

/// Time over which the clients send a kilobyte a second each.
const STEADY: Duration = Duration::from_secs(10);

/// Further clients whose wait is measured.
const PROBES: usize = 21;

/// Limit of each step of the protocol.
const PATIENCE: Duration = Duration::from_secs(20);

/// State bytes of iperf3 (`iperf_api.h`).
const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;
const IPERF_DONE: u8 = 16;

const PARAMETERS: &str = r#"{"tcp":true,"omit":0,"time":0,"num":0,"blockcount":0,"parallel":1,"len":1000,"pacing_timer":1000,"client_version":"3.21"}"#;
const RESULTS: &str = r#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":1,"streams":[{"id":1,"bytes":0,"retransmits":0,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1}]}"#;

/// Client with one TCP stream, by iperf3's protocol.
struct Client {
    control: TcpStream,
    stream: TcpStream,
}

impl Client {
    fn open(port: u16, number: usize) -> Result<Self> {
        let mut control = connect(port, number)?;
        let cookie = cookie(number);
        control.write_all(&cookie)?;
        expect(&mut control, PARAM_EXCHANGE)?;
        send_document(&mut control, PARAMETERS)?;
        expect(&mut control, CREATE_STREAMS)?;
        let mut stream = connect(port, number)?;
        stream.write_all(&cookie)?;
        expect(&mut control, TEST_START)?;
        expect(&mut control, TEST_RUNNING)?;
        Ok(Self { control, stream })
    }

    /// Ends the test; an error when the server does not report results.
    fn end(mut self) -> Result<()> {
        self.control.write_all(&[TEST_END])?;
        expect(&mut self.control, EXCHANGE_RESULTS)?;
        send_document(&mut self.control, RESULTS)?;
        let mut length = [0; 4];
        self.control.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        ensure!(length < 1 << 20, "results of {length} bytes");
        self.control.read_exact(&mut vec![0; length])?;
        expect(&mut self.control, DISPLAY_RESULTS)?;
        self.control.write_all(&[IPERF_DONE])?;
        Ok(())
    }
}

fn connect(port: u16, number: usize) -> Result<TcpStream> {
    let group = number / CLIENTS_PER_ADDRESS;
    let byte = |part: usize| u8::try_from(part % 250 + 1).unwrap_or(1);
    let from = Ipv4Addr::new(127, 1, byte(group / 250), byte(group));
    let bind = Some(SocketAddr::new(from.into(), 0));
    let options = ConnectOptions { bind, ..ConnectOptions::to((Ipv4Addr::LOCALHOST, port).into()) };
    let stream = net::connect_tcp(&options, None)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Cookie of 36 letters and a zero byte, another one for each client.
fn cookie(number: usize) -> [u8; 37] {
    let mut cookie = [b'a'; 37];
    for (place, digit) in cookie.iter_mut().zip(format!("{number:08}").bytes()) {
        *place = digit - b'0' + b'b';
    }
    cookie[36] = 0;
    cookie
}

fn expect(control: &mut TcpStream, state: u8) -> Result<()> {
    let mut found = [0];
    control.read_exact(&mut found).with_context(|| format!("waiting for state {state}"))?;
    ensure!(found[0] == state, "state {} instead of {state}", found[0]);
    Ok(())
}

fn send_document(control: &mut TcpStream, document: &str) -> Result<()> {
    let length = u32::try_from(document.len()).unwrap_or(u32::MAX);
    control.write_all(&[&length.to_be_bytes(), document.as_bytes()].concat())?;
    Ok(())
}

/// Figures of a server with a number of clients.
struct ServerFigures {
    memory_per_client: f64,
    threads: f64,
    processors: f64,
    wait: f64,
    failures: usize,
}

pub(super) fn measure(linerate: &Path, _scratch: &Path) -> Result<Section> {
    process::raise_open_file_limit()?;
    let mut memory = Curve::new("memory per client", "kB");
    let mut threads = Curve::new("threads", "threads");
    let mut processors = Curve::new("processors in use", "processors");
    let mut wait = Curve::new("wait of one more client", "ms");
    let mut failures = 0;
    for count in CLIENTS {
        println!("  {count} clients");
        let figures = measure_clients(linerate, count)?;
        let work = f64::from(u32::try_from(count)?);
        memory.points.push((work, figures.memory_per_client));
        threads.points.push((work, figures.threads));
        processors.points.push((work, figures.processors));
        wait.points.push((work, figures.wait));
        failures += figures.failures;
    }
    Ok(Section {
        name: "server",
        title: "Clients of a server at once",
        method: format!(
            "`linerate serve --max-sessions 5100` and clients with one TCP stream each, {CLIENTS_PER_ADDRESS} of each address, \
             which send a kilobyte a second for {} s. Memory is the growth of the server's largest resident set; the wait \
             is the median of {PROBES} further clients from the connection to the start of their test.",
            STEADY.as_secs()
        ),
        work: "clients",
        curves: vec![memory, threads, processors, wait],
        findings: vec![format!("{failures} of {} clients failed.", CLIENTS.iter().sum::<usize>())],
    })
}

fn measure_clients(linerate: &Path, count: usize) -> Result<ServerFigures> {
    let port = free_port()?;
    let line = [&linerate.to_string_lossy(), "serve", "--port", &port.to_string(), "--max-sessions", "5100"]
        .map(str::to_owned);
    let mut server = RunningChild::start(&line)?;
    wait_until_listening(&mut server, port)?;
    let idle = status_of(server.id(), "VmHWM")?;
    let mut clients: Vec<Client> = Vec::new();
    let mut failures = 0;
    for number in 0..count {
        match Client::open(port, number) {
            Ok(client) => clients.push(client),
            Err(error) => {
                failures += 1;
                eprintln!("  client {number}: {error:#}");
            }
        }
    }
    let (before, begun) = (processor_seconds(server.id())?, Instant::now());
    while begun.elapsed() < STEADY {
        for client in &mut clients {
            let _ = client.stream.write_all(&[0; 1000]);
        }
        thread::sleep(Duration::from_secs(1));
    }
    let processors = (processor_seconds(server.id())? - before) / begun.elapsed().as_secs_f64();
    let threads = status_of(server.id(), "Threads")?;
    let mut waits = Vec::new();
    for number in 0..PROBES {
        let begun = Instant::now();
        let probe = Client::open(port, 6000 + number).context("one more client")?;
        waits.push(begun.elapsed().as_secs_f64() * 1e3);
        probe.end()?;
    }
    waits.sort_by(f64::total_cmp);
    let memory = status_of(server.id(), "VmHWM")? - idle;
    let ended = clients.into_iter().map(Client::end).filter(|ended| match ended {
        Err(error) => {
            eprintln!("  end of a client: {error:#}");
            true
        }
        Ok(()) => false,
    });
    failures += ended.count();
    let work = f64::from(u32::try_from(count)?);
    Ok(ServerFigures { memory_per_client: memory / work, threads, processors, wait: waits[PROBES / 2], failures })
}

/// A number of `/proc/PID/status`; sizes are kB.
fn status_of(process: u32, key: &str) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.with_context(|| format!("/proc/{process}/status has no {key}"))
}

/// Processor time of a process so far, from fields 14 and 15 of `/proc/PID/stat` in ticks of 10 ms.
fn processor_seconds(process: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let rest = text.rsplit_once(')').context("no name in /proc/PID/stat")?.1;
    let ticks: f64 = rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}
