//! `--follow`: stays with a shaper, and sets it up again when the interface comes back or somebody else has changed its
//! queueing.

mod follower;

use std::os::fd::AsFd;

use linerate_sys::clock::monotonic_now;
use linerate_sys::interface::Interface;
use linerate_sys::poll::{self, Interest, PollItem};
use linerate_sys::route_events::RouteEvents;
use linerate_sys::signals::Interrupts;
use linerate_sys::{Error, facts};

use self::follower::{Follower, Presence, Saying, Step};
use super::error::ShapeError;
use crate::console;
use crate::exit::Exit;

/// What to follow, and how to look at it and set it up.
pub(crate) struct Followed<'a> {
    /// The interface.
    pub(crate) device: &'a str,
    /// Other interfaces that belong to the shaper: the intermediate device.
    pub(crate) others: &'a [String],
    /// Whether what stands is as planned.
    pub(crate) is_as_planned: &'a mut dyn FnMut() -> Result<bool, ShapeError>,
    /// Sets it up again; whether what then stands is as planned. An interface with the same name may be another one
    /// than before.
    pub(crate) reapply: &'a mut dyn FnMut() -> Result<bool, ShapeError>,
}

/// Follows it until somebody asks this process to end; the shaper stays then.
pub(crate) fn follow(followed: &mut Followed<'_>, stop: Interrupts) -> Result<Exit, ShapeError> {
    follow_until(followed, &stop, &|| stop.pending().is_some())
}

/// The same until `is_stopped`, for which `stop` becomes readable.
fn follow_until(
    shaper: &mut Followed<'_>,
    stop: &impl AsFd,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Exit, ShapeError> {
    let device = shaper.device;
    let mut events = RouteEvents::open()?;
    let mut follower = Follower::new(device, shaper.others, presence(&events, device), monotonic_now());
    console::note(&format!("following {device}: its shaper is set up again when something takes it away"));
    while !is_stopped() {
        match follower.next(monotonic_now()) {
            Step::Wait(time) => {
                poll::wait(&mut [PollItem::new(stop, Interest::READ), PollItem::new(&events, Interest::READ)], time)?;
                hear(&mut follower, &mut events)?;
            }
            Step::Look => {
                let found = (shaper.is_as_planned)();
                hear(&mut follower, &mut events)?;
                follower.looked(monotonic_now(), found.map_err(text_of));
            }
            Step::Reapply => {
                let done = (shaper.reapply)();
                hear(&mut follower, &mut events)?;
                follower.reapplied(monotonic_now(), done.map_err(text_of));
            }
        }
        tell(&mut follower, device);
    }
    console::note(&format!("asked to end: the shaper of {device} stays as it is"));
    Ok(Exit::Success)
}

fn presence(events: &RouteEvents, device: &str) -> Presence {
    match (events.index(device), events.is_up(device)) {
        (Some(index), Some(is_up)) => Presence::There { index, is_up },
        _ => Presence::Absent,
    }
}

fn hear(follower: &mut Follower, events: &mut RouteEvents) -> Result<(), Error> {
    let now = monotonic_now();
    for event in events.read()? {
        follower.hear(now, &event);
    }
    Ok(())
}

fn tell(follower: &mut Follower, device: &str) {
    for saying in follower.take_sayings() {
        // Only when somebody is to be named: it takes a look at the whole host.
        let owner = if saying == Saying::Contended { owner_of(device) } else { None };
        console::note(&saying.text(device, owner.as_deref()));
    }
}

fn text_of(error: ShapeError) -> String {
    error.text
}

/// Who looks after the interface, and what shows it, in words.
fn owner_of(device: &str) -> Option<String> {
    Interface::by_name(device).ok()?;
    let managers = facts::read().managers;
    let ownership = managers.interfaces.get(device)?;
    Some(format!("{} ({})", ownership.manager, ownership.evidence))
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use linerate_sys::clock::sleep_until;
    use linerate_sys::command;
    use linerate_sys::namespace::NetworkNamespace;
    use linerate_sys::poll::Waker;

    use super::*;

    fn run(words: &str) -> String {
        let words: Vec<&str> = words.split(' ').collect();
        let done = command::run_checked(words[0], &words[1..], None, Duration::from_secs(20));
        done.expect("done").stdout_text()
    }

    fn is_shaped() -> bool {
        let shown = command::run("tc", &["qdisc", "show", "dev", "t0"], None, Duration::from_secs(20)).expect("tc");
        shown.stdout_text().contains("tbf")
    }

    fn wait_until(what: &str, holds: impl Fn() -> bool) {
        let deadline = monotonic_now() + Duration::from_secs(60);
        while !holds() {
            assert!(monotonic_now() < deadline, "{what}");
            sleep_until(monotonic_now() + Duration::from_millis(20));
        }
    }

    fn add_link() {
        run("ip link add t0 type veth peer name t1");
        run("ip link set t1 up");
        run("ip link set t0 up");
    }

    /// What somebody does to the interface while it is followed.
    fn disturb(attempts: &AtomicUsize) {
        wait_until("what did not stand is set up", is_shaped);
        run("tc qdisc del dev t0 root");
        wait_until("what was taken away is set up again", is_shaped);
        run("tc qdisc replace dev t0 root bfifo limit 9000");
        wait_until("what was replaced is set up again", is_shaped);
        run("ip link del t0");
        add_link();
        wait_until("another interface of that name is shaped", is_shaped);
        assert_eq!(attempts.load(Ordering::Relaxed), 4, "each time once, and never because of itself");
    }

    #[test]
    #[ignore = "needs root, ip and tc: an interface of a network namespace"]
    fn whatever_happens_to_the_interface_it_is_shaped_again() {
        let (stop, is_stopped, attempts) =
            (Waker::new().expect("eventfd"), AtomicBool::new(false), AtomicUsize::new(0));
        let follow = || {
            let mut reapply = || {
                attempts.fetch_add(1, Ordering::Relaxed);
                run("tc qdisc replace dev t0 root handle 1: tbf rate 1mbit burst 5kb latency 50ms");
                Ok(is_shaped())
            };
            let (is_as_planned, reapply) = (&mut || Ok(is_shaped()), &mut reapply);
            let mut shaper = Followed { device: "t0", others: &[], is_as_planned, reapply };
            follow_until(&mut shaper, &stop, &|| is_stopped.load(Ordering::Relaxed))
        };
        let within = || {
            add_link();
            std::thread::scope(|scope| {
                let following = scope.spawn(follow);
                let disturbed = scope.spawn(|| disturb(&attempts)).join();
                is_stopped.store(true, Ordering::Relaxed);
                stop.wake();
                assert_eq!(following.join().expect("no panic"), Ok(Exit::Success));
                assert!(disturbed.is_ok() && is_shaped(), "it stays when nobody follows it any more");
            });
        };
        NetworkNamespace::create().expect("root").within(within).expect("entered");
    }
}
