//! `--follow`: keeps a shaper active, and sets it up again when the interface reappears or another program changes its
//! queueing.

mod follower;

use std::os::fd::AsFd;

use linerate_sys::clock::monotonic_now;
use linerate_sys::interface::NetworkInterface;
use linerate_sys::poll::{self, PollInterest, PollItem};
use linerate_sys::route_events::RouteEvents;
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{Error, facts};

use self::follower::{FollowAction, FollowEvent, InterfacePresence, ShaperFollower};
use super::error::ShapeError;

/// A shaper to follow, with its check and its setup.
pub(crate) struct FollowedShaper<'a> {
    /// Interface.
    pub(crate) device: &'a str,
    /// Other interfaces that belong to the shaper: the intermediate device.
    pub(crate) others: &'a [String],
    /// Returns true when the active shaper matches the plan.
    pub(crate) is_as_planned: &'a mut dyn FnMut() -> Result<bool, ShapeError>,
    /// Sets the shaper up again; returns true when it then matches the plan. An interface of the same name may be a new
    /// one.
    pub(crate) reapply: &'a mut dyn FnMut() -> Result<bool, ShapeError>,
    /// Told what happens, in words.
    pub(crate) note: &'a mut dyn FnMut(&str),
}

/// Follows the shaper until a signal arrives; the shaper stays active.
pub(crate) fn follow(followed: &mut FollowedShaper<'_>, stop: InterruptSignals) -> Result<(), ShapeError> {
    follow_until(followed, &stop, &|| stop.pending().is_some())
}

/// Follows until `is_stopped`, which makes `stop` readable.
fn follow_until(
    shaper: &mut FollowedShaper<'_>,
    stop: &impl AsFd,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), ShapeError> {
    let device = shaper.device;
    let mut events = RouteEvents::open()?;
    let mut follower = ShaperFollower::new(device, shaper.others, presence(&events, device), monotonic_now());
    (shaper.note)(&format!("following {device}: its shaper is set up again when something takes it away"));
    while !is_stopped() {
        match follower.next(monotonic_now()) {
            FollowAction::Wait(time) => {
                poll::wait(
                    &mut [PollItem::new(stop, PollInterest::READ), PollItem::new(&events, PollInterest::READ)],
                    time,
                )?;
                handle_events(&mut follower, &mut events)?;
            }
            FollowAction::Look => {
                let found = (shaper.is_as_planned)();
                handle_events(&mut follower, &mut events)?;
                follower.handle_check(monotonic_now(), found.map_err(error_text));
            }
            FollowAction::Reapply => {
                let done = (shaper.reapply)();
                handle_events(&mut follower, &mut events)?;
                follower.handle_setup(monotonic_now(), done.map_err(error_text));
            }
        }
        report_events(&mut follower, device, shaper.note);
    }
    (shaper.note)(&format!("asked to end: the shaper of {device} stays as it is"));
    Ok(())
}

fn presence(events: &RouteEvents, device: &str) -> InterfacePresence {
    match (events.index(device), events.is_up(device)) {
        (Some(index), Some(is_up)) => InterfacePresence::There { index, is_up },
        _ => InterfacePresence::Absent,
    }
}

fn handle_events(follower: &mut ShaperFollower, events: &mut RouteEvents) -> Result<(), Error> {
    let now = monotonic_now();
    for event in events.read()? {
        follower.handle_event(now, &event);
    }
    Ok(())
}

fn report_events(follower: &mut ShaperFollower, device: &str, note: &mut dyn FnMut(&str)) {
    for saying in follower.take_events() {
        // Looked up only when needed, as it scans the whole host.
        let owner = if saying == FollowEvent::Contended { owner_text(device) } else { None };
        note(&saying.text(device, owner.as_deref()));
    }
}

fn error_text(error: ShapeError) -> String {
    error.text
}

/// Manager of the interface, with the evidence for it.
fn owner_text(device: &str) -> Option<String> {
    NetworkInterface::by_name(device).ok()?;
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

    /// Disturbs the interface while it is followed.
    fn disturb(attempts: &AtomicUsize) {
        wait_until("a missing shaper is set up", is_shaped);
        run("tc qdisc del dev t0 root");
        wait_until("a removed shaper is set up again", is_shaped);
        run("tc qdisc replace dev t0 root bfifo limit 9000");
        wait_until("a replaced shaper is set up again", is_shaped);
        run("ip link del t0");
        add_link();
        wait_until("another interface of that name is shaped", is_shaped);
        assert_eq!(attempts.load(Ordering::Relaxed), 4, "each time once, and never because of itself");
    }

    #[test]
    #[ignore = "needs root, ip and tc: an interface of a network namespace"]
    fn a_disturbed_interface_is_shaped_again() {
        let (stop, is_stopped, attempts) =
            (Waker::new().expect("eventfd"), AtomicBool::new(false), AtomicUsize::new(0));
        let follow = || {
            let mut reapply = || {
                attempts.fetch_add(1, Ordering::Relaxed);
                run("tc qdisc replace dev t0 root handle 1: tbf rate 1mbit burst 5kb latency 50ms");
                Ok(is_shaped())
            };
            let (is_as_planned, reapply) = (&mut || Ok(is_shaped()), &mut reapply);
            let note: &mut dyn FnMut(&str) = &mut |_| {};
            let mut shaper = FollowedShaper { device: "t0", others: &[], is_as_planned, reapply, note };
            follow_until(&mut shaper, &stop, &|| is_stopped.load(Ordering::Relaxed))
        };
        let within = || {
            add_link();
            std::thread::scope(|scope| {
                let following = scope.spawn(follow);
                let disturbed = scope.spawn(|| disturb(&attempts)).join();
                is_stopped.store(true, Ordering::Relaxed);
                stop.wake();
                assert_eq!(following.join().expect("no panic"), Ok(()));
                assert!(disturbed.is_ok() && is_shaped(), "it stays active when following ends");
            });
        };
        NetworkNamespace::create().expect("root").within(within).expect("entered");
    }
}
