//! Bare loop over the system calls of linerate's data path: the limit that a program can reach on a machine.
//!
//! `bench bare serve PORT` and `bench bare send HOST PORT SECONDS OPTIONS` move data as a cell of the bench asks, without a
//! protocol, intervals, samples or accounts; `bench bare get HOST PORT SECONDS` is the HTTP client for the web page. Writes and thresholds are those of linerate.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use linerate_sys::data::tcp;
use linerate_sys::data::udp::{DatagramReceiver, DatagramSender};
use linerate_sys::{host, options};
use linerate_units::{ByteCount, PacketCount};

/// Bytes of a write, and of the data that wake a receiver, also where streams share processors.
const WRITE: usize = 128 << 10;
const LOW_WATER: ByteCount = ByteCount::from_mebibytes(1);
const LOW_WATER_CROWDED: ByteCount = ByteCount::from_kibibytes(384);
/// Bytes that one call discards.
const DISCARD: usize = 8 << 20;
const UDP_TRAIN: u64 = 65_507;
const RECEIVE_BUFFER: ByteCount = ByteCount::from_mebibytes(32);

/// Order of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BareOrder {
    is_udp: bool,
    streams: usize,
    up: bool,
    down: bool,
    /// Bytes per write or datagram.
    block: usize,
    discards: bool,
}

/// Runs a server or a client; prints the client's document.
pub(super) fn run(arguments: &[String]) -> Result<bool> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", port] => serve(port.parse().context("a port")?),
        ["send", host, port, seconds, ref options @ ..] => {
            let server =
                SocketAddr::new(host.parse::<IpAddr>().context("an address")?, port.parse().context("a port")?);
            let seconds = Duration::from_secs(seconds.parse().context("seconds")?);
            println!("{}", send(server, seconds, BareOrder::parse(options)?)?);
            Ok(true)
        }
        ["rr-serve", port, kind] => super::rr::serve(port, kind),
        ["rr-send", port, kind, seconds] => super::rr::send(port, kind, seconds),
        ["get", host, port, seconds] => {
            let server = SocketAddr::new(host.parse().context("an address")?, port.parse().context("a port")?);
            println!("{}", get(server, Duration::from_secs(seconds.parse().context("seconds")?))?);
            Ok(true)
        }
        _ => bail!(
            "usage: cargo xtask bench bare serve PORT | send HOST PORT SECONDS [OPTION]... | get HOST PORT SECONDS"
        ),
    }
}

impl BareOrder {
    /// Parses the options of a cell.
    fn parse(options: &[&str]) -> Result<Self> {
        let has = |name| options.contains(&name);
        let value =
            |name| options.iter().position(|option| *option == name).and_then(|at| options.get(at + 1)).copied();
        let is_udp = has("-u");
        let block = match value("-l") {
            None => WRITE,
            Some(text) => match text.strip_suffix('K') {
                Some(kibibytes) => kibibytes.parse::<usize>().context("-l")? << 10,
                None => text.parse().context("-l")?,
            },
        };
        let streams = value("-P").unwrap_or("1").parse().context("-P")?;
        let (up, down) = (!has("-R"), has("-R") || has("--bidir"));
        Ok(Self { is_udp, streams, up, down, block, discards: has("--skip-rx-copy") })
    }

    fn line(self) -> String {
        format!("{} {} {} {} {} {}\n", self.is_udp, self.streams, self.up, self.down, self.block, self.discards)
    }

    fn from_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [is_udp, streams, up, down, block, discards] = fields[..] else { return None };
        Some(Self {
            is_udp: is_udp.parse().ok()?,
            streams: streams.parse().ok()?,
            up: up.parse().ok()?,
            down: down.parse().ok()?,
            block: block.parse().ok()?,
            discards: discards.parse().ok()?,
        })
    }
}

fn serve(port: u16) -> Result<bool> {
    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let datagrams = UdpSocket::bind(any)?;
    let listener = TcpListener::bind(any)?;
    let control = listener.accept()?.0;
    let mut lines = BufReader::new(control.try_clone()?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let order = BareOrder::from_line(&line).context("an unknown order")?;
    let stop = Arc::new(AtomicBool::new(false));
    let receivers = if order.is_udp {
        vec![receive_datagrams(datagrams, Arc::clone(&stop))]
    } else {
        let streams = order.streams * (usize::from(order.up) + usize::from(order.down));
        let accepted: Vec<TcpStream> =
            (0..streams).map(|_| Ok(listener.accept()?.0)).collect::<std::io::Result<_>>()?;
        // As many are opened upwards first.
        let upwards = if order.up { order.streams } else { 0 };
        accepted
            .into_iter()
            .enumerate()
            .map(|(number, stream)| start(stream, number >= upwards, order, &stop))
            .collect()
    };
    (&control).write_all(b"ready\n")?;
    // The client's next line, or its end, ends the test.
    lines.read_line(&mut line)?;
    stop.store(true, Ordering::Relaxed);
    writeln!(&control, "{}", join(receivers))?;
    Ok(true)
}

fn send(server: SocketAddr, seconds: Duration, order: BareOrder) -> Result<serde_json::Value> {
    ensure!(!(order.is_udp && order.down), "datagrams go up only");
    let control = TcpStream::connect(server)?;
    (&control).write_all(order.line().as_bytes())?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut streams = Vec::new();
    for _ in 0..(if order.is_udp { 0 } else { order.streams * (usize::from(order.up) + usize::from(order.down)) }) {
        streams.push(TcpStream::connect(server)?);
    }
    let mut lines = BufReader::new(control.try_clone()?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let started = Instant::now();
    let upwards = if order.up { order.streams } else { 0 };
    let mut threads = Vec::new();
    for (number, stream) in streams.iter().enumerate() {
        threads.push(start(stream.try_clone()?, number < upwards, order, &stop));
    }
    if order.is_udp {
        threads.push(send_datagrams(server, order.block, &stop)?);
    }
    thread::sleep(seconds);
    let elapsed = started.elapsed();
    stop.store(true, Ordering::Relaxed);
    for stream in &streams {
        drop(stream.shutdown(std::net::Shutdown::Both));
    }
    let own = join(threads);
    (&control).write_all(b"stop\n")?;
    line.clear();
    lines.read_line(&mut line)?;
    let far: u64 = line.trim().parse().context("the server's count")?;
    Ok(serde_json::json!({ "received_bytes": own + far, "seconds": elapsed.as_secs_f64() }))
}

/// Downloads over HTTP, one response after another, for this time.
fn get(server: SocketAddr, time: Duration) -> Result<serde_json::Value> {
    let (started, mut bytes, mut buffer) = (Instant::now(), 0_u64, vec![0; WRITE]);
    while started.elapsed() < time {
        let mut stream = TcpStream::connect(server)?;
        write!(stream, "GET /garbage?ckSize=1024 HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n")?;
        let mut is_first = true;
        while started.elapsed() < time {
            let count = tcp::receive(&stream, &mut buffer)?;
            if is_first {
                ensure!(buffer.starts_with(b"HTTP/1.1 200"), "the server refused the download");
                is_first = false;
            }
            if count == 0 {
                break;
            }
            bytes += count as u64;
        }
    }
    Ok(serde_json::json!({ "received_bytes": bytes, "seconds": started.elapsed().as_secs_f64() }))
}

/// Starts the thread of a stream, which returns the bytes that it received.
fn start(stream: TcpStream, sends: bool, order: BareOrder, stop: &Arc<AtomicBool>) -> JoinHandle<u64> {
    let stop = Arc::clone(stop);
    thread::spawn(move || if sends { send_blocks(&stream, order, &stop) } else { receive_blocks(&stream, order) })
}

fn send_blocks(stream: &TcpStream, order: BareOrder, stop: &AtomicBool) -> u64 {
    let block = vec![0x5a; order.block];
    while !stop.load(Ordering::Relaxed) && tcp::send(stream, &block).is_ok() {}
    0
}

fn receive_blocks(stream: &TcpStream, order: BareOrder) -> u64 {
    let mut buffer = vec![0; WRITE];
    // Where the kernel refuses, each segment wakes.
    let is_crowded = order.streams > host::cpu_count().get();
    let _ = options::set_receive_low_water(stream, if is_crowded { LOW_WATER_CROWDED } else { LOW_WATER });
    let mut total = 0;
    let mut receive = || {
        if order.discards { tcp::receive_discarding(stream, DISCARD) } else { tcp::receive(stream, &mut buffer) }
    };
    while let Ok(count @ 1..) = receive() {
        total += count as u64;
    }
    total
}

fn send_datagrams(server: SocketAddr, size: usize, stop: &Arc<AtomicBool>) -> Result<JoinHandle<u64>> {
    let socket = UdpSocket::bind(SocketAddr::new(if server.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() }, 0))?;
    socket.connect(server)?;
    let stop = Arc::clone(stop);
    Ok(thread::spawn(move || {
        let size = ByteCount::from_usize(size);
        let at_once = PacketCount::new((UDP_TRAIN / size.get().max(1)).max(1));
        if let Ok(mut sender) = DatagramSender::new(&socket, size, at_once) {
            let train = sender.capacity().min(sender.train());
            while !stop.load(Ordering::Relaxed) && sender.send(train).is_ok() {}
        }
        0
    }))
}

fn receive_datagrams(socket: UdpSocket, stop: Arc<AtomicBool>) -> JoinHandle<u64> {
    thread::spawn(move || {
        let _ = options::force_receive_buffer(&socket, RECEIVE_BUFFER);
        let _ = socket.set_read_timeout(Some(Duration::from_millis(100)));
        let mut total = 0;
        let Ok(mut receiver) = DatagramReceiver::new(&socket) else { return 0 };
        while !stop.load(Ordering::Relaxed) {
            if let Ok(messages) = receiver.receive() {
                total += messages.map(|message| message.bytes.len() as u64).sum::<u64>();
            }
        }
        total
    })
}

fn join(threads: Vec<JoinHandle<u64>>) -> u64 {
    threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        for options in
            [&["-P", "4", "-R"][..], &["-u", "-l", "1448", "-b", "0"], &["-l", "8K", "--bidir", "--skip-rx-copy"]]
        {
            let order = BareOrder::parse(options).expect("an order");
            assert_eq!(BareOrder::from_line(&order.line()), Some(order));
        }
        let order = BareOrder::parse(&["-l", "8K", "-R"]).expect("an order");
        assert_eq!((order.block, order.up, order.down, order.streams), (8192, false, true, 1));
    }

    #[test]
    fn data_arrive_in_every_direction() {
        for options in [&["-P", "2", "-R"][..], &["--bidir", "--skip-rx-copy"], &["-u", "-l", "200", "-b", "0"]] {
            let port = TcpListener::bind("[::]:0").expect("a port").local_addr().expect("bound").port();
            let server = thread::spawn(move || serve(port));
            let order = BareOrder::parse(options).expect("an order");
            let address = SocketAddr::new([127, 0, 0, 1].into(), port);
            let document = loop {
                match send(address, Duration::from_millis(50), order) {
                    Err(_) if !server.is_finished() => thread::yield_now(),
                    other => break other.expect("a document"),
                }
            };
            assert!(document["received_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{options:?}: {document}");
            assert!(server.join().expect("no panic").is_ok());
        }
    }
}
