//! Names and autonomous systems of addresses, looked up by a thread of its own: no probe waits for a name server.

use core::time::Duration;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use linerate_model::autonomous_systems::AutonomousSystemTable;
use linerate_model::route::AutonomousSystem;
use linerate_sys::net::{self, UdpOptions};
use linerate_sys::{clock, host};
use linerate_wire::dns;

/// Longest wait for labels at the end of a measurement.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// Longest wait for an answer of a name server.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Sources of labels; nothing is asked for by default.
#[derive(Clone, Debug, Default)]
pub struct LabelOptions {
    /// Look up host names by this host's resolver.
    pub names: bool,
    /// Table from a file of this host.
    pub table: Option<Arc<AutonomousSystemTable>>,
    /// Ask Team Cymru's service for autonomous systems by DNS: it learns the addresses of the routers.
    pub by_dns: bool,
}

/// Labels of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AddressLabel {
    pub(super) name: Option<String>,
    pub(super) autonomous_system: Option<AutonomousSystem>,
}

/// Known labels; `None` while they are looked up.
type LabelTable = HashMap<IpAddr, Option<AddressLabel>>;

#[derive(Debug, Default)]
struct SharedLabels {
    known: Mutex<LabelTable>,
    found: Condvar,
}

impl SharedLabels {
    fn known(&self) -> MutexGuard<'_, LabelTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Thread that looks labels up. It ends after the look-up that it is at when this is dropped.
#[derive(Debug)]
pub(super) struct LabelThread {
    shared: Arc<SharedLabels>,
    requests: Sender<IpAddr>,
}

impl LabelThread {
    /// `None` where no label is asked for, or there can be no thread.
    pub(super) fn start(options: &LabelOptions) -> Option<Self> {
        (options.names || options.by_dns || options.table.is_some()).then_some(())?;
        let shared = Arc::<SharedLabels>::default();
        let (requests, queue) = channel();
        let (own, options) = (Arc::clone(&shared), options.clone());
        std::thread::Builder::new().name("labels".to_owned()).spawn(move || serve(&queue, &own, &options)).ok()?;
        Some(Self { shared, requests })
    }

    /// Has the labels of an address looked up, once.
    pub(super) fn request(&self, address: IpAddr) {
        let mut known = self.shared.known();
        if !known.contains_key(&address) && self.requests.send(address).is_ok() {
            known.insert(address, None);
        }
    }

    /// Labels of an address; `None` as long as they are unknown.
    pub(super) fn of(&self, address: IpAddr) -> Option<AddressLabel> {
        self.shared.known().get(&address).cloned().flatten()
    }

    /// Waits for the labels that are looked up, at most some seconds.
    pub(super) fn wait(&self) {
        let pending = |known: &mut LabelTable| known.values().any(Option::is_none);
        drop(self.shared.found.wait_timeout_while(self.shared.known(), MAX_WAIT, pending));
    }
}

fn serve(queue: &Receiver<IpAddr>, shared: &SharedLabels, options: &LabelOptions) {
    while let Ok(address) = queue.recv() {
        let label = AddressLabel {
            name: options.names.then(|| net::host_name_of(address)).flatten(),
            autonomous_system: autonomous_system(address, options),
        };
        shared.known().insert(address, Some(label));
        shared.found.notify_all();
    }
}

fn autonomous_system(address: IpAddr, options: &LabelOptions) -> Option<AutonomousSystem> {
    let local = options.table.as_ref().and_then(|table| table.find(address));
    local.or_else(|| (options.by_dns && is_public(address)).then(|| by_dns(address)).flatten())
}

/// False for addresses that no autonomous system announces: name servers know nothing of them.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            !(address.is_private() || address.is_loopback() || address.is_link_local() || is_shared)
        }
        IpAddr::V6(address) => address != Ipv6Addr::LOCALHOST && address.segments()[0] & 0xe000 == 0x2000,
    }
}

fn by_dns(address: IpAddr) -> Option<AutonomousSystem> {
    let number = dns::origin(&ask(&dns::origin_name(address))?)?;
    let holder = ask(&dns::holder_name(number)).and_then(|record| dns::holder(&record));
    Some(AutonomousSystem { number, holder })
}

/// First TXT record of a name, by the name servers of this host.
fn ask(name: &str) -> Option<String> {
    net::name_servers().into_iter().take(2).find_map(|server| ask_server(SocketAddr::new(server, 53), name))
}

fn ask_server(server: SocketAddr, name: &str) -> Option<String> {
    let mut random = [0; 2];
    host::random_bytes(&mut random).ok()?;
    let id = u16::from_ne_bytes(random);
    let socket = net::connect_udp(&UdpOptions::default(), server).ok()?;
    socket.send(&dns::txt_query(id, name)?).ok()?;
    let end = clock::monotonic_now() + ANSWER_LIMIT;
    let mut buffer = [0; 1232];
    loop {
        let left = end.since(clock::monotonic_now());
        let is_late = left.is_zero();
        (!is_late).then_some(())?;
        socket.set_read_timeout(Some(left)).ok()?;
        let length = socket.recv(&mut buffer).ok()?;
        if let Some(records) = dns::txt_records(&buffer[..length], id) {
            return records.into_iter().next();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn labels_come_from_the_table() {
        let table = AutonomousSystemTable::parse("127.0.0.0\t127.255.255.255\t64500\tZZ\tLOOPBACK\n").expect("a table");
        let options = LabelOptions { table: Some(Arc::new(table)), ..LabelOptions::default() };
        let labels = LabelThread::start(&options).expect("a table is a source");
        let address = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(labels.of(address), None);
        labels.request(address);
        labels.request(IpAddr::from([192, 0, 2, 1]));
        labels.wait();
        let found = labels.of(address).expect("looked up").autonomous_system.expect("in the table");
        assert_eq!((found.number, found.holder.as_deref()), (64_500, Some("LOOPBACK")));
        assert_eq!(labels.of(IpAddr::from([192, 0, 2, 1])), Some(AddressLabel::default()));
        assert!(LabelThread::start(&LabelOptions::default()).is_none());
    }

    #[test]
    fn a_name_server_answers() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let address = server.local_addr().expect("an address");
        let thread = std::thread::spawn(move || {
            let mut query = [0; 512];
            let (length, from) = server.recv_from(&mut query).expect("a question");
            let mut answer = query[..length].to_vec();
            answer[2] |= 0x80;
            answer[7] = 1;
            answer.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 9, 0, 8, 7]);
            answer.extend(b"64500 |");
            // An answer to another question comes first.
            let mut other = answer.clone();
            other[0] ^= 1;
            server.send_to(&other, from).expect("sent");
            server.send_to(&answer, from).expect("sent");
        });
        let record = ask_server(address, "1.2.0.192.origin.asn.cymru.com").expect("an answer");
        assert_eq!(dns::origin(&record), Some(64_500));
        thread.join().expect("no panic");
    }

    #[test]
    fn addresses_of_private_networks_are_not_asked_for() {
        let is_asked = |address: &str| is_public(address.parse().expect("an address"));
        assert!(
            ["10.0.0.1", "192.168.1.1", "100.64.0.1", "169.254.0.1", "fe80::1", "fd00::1"]
                .iter()
                .all(|one| !is_asked(one))
        );
        assert!(["192.0.2.1", "100.128.0.1", "2001:db8::1"].iter().all(|one| is_asked(one)));
    }
}
