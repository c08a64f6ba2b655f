use super::*;

const START: MonotonicTime = MonotonicTime::from_nanos(1_000_000_000_000);
const DAY: Duration = Duration::from_secs(86_400);

const UP: InterfacePresence = InterfacePresence::There { index: 3, is_up: true };

/// Host with one interface, where time passes only while the follower waits.
struct SimulatedHost {
    follower: ShaperFollower,
    now: MonotonicTime,
    is_as_planned: bool,
    /// Delay after each attempt before a rival replaces the tree.
    rival: Option<Duration>,
    rival_acts_at: Option<MonotonicTime>,
    /// Result of a setup.
    answer: Result<bool, String>,
    looks: usize,
    attempts: Vec<MonotonicTime>,
    told: Vec<FollowEvent>,
}

fn queueing() -> RouteEvent {
    RouteEvent::QueueingChanged { index: 3, name: Some("eth0".to_owned()) }
}

fn appeared(index: u32) -> RouteEvent {
    RouteEvent::Appeared { index, name: "eth0".to_owned(), is_up: true }
}

fn gone(index: u32) -> RouteEvent {
    RouteEvent::Gone { index, name: "eth0".to_owned() }
}

impl SimulatedHost {
    fn new(presence: InterfacePresence) -> Self {
        Self {
            follower: ShaperFollower::new("eth0", &["ifb4eth0".to_owned()], presence, START),
            now: START,
            is_as_planned: true,
            rival: None,
            rival_acts_at: None,
            answer: Ok(true),
            looks: 0,
            attempts: Vec::new(),
            told: Vec::new(),
        }
    }

    fn hear(&mut self, event: &RouteEvent) {
        self.follower.handle_event(self.now, event);
    }

    fn replace(&mut self) {
        self.is_as_planned = false;
        self.hear(&queueing());
    }

    /// Runs until this much time has passed.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..100_000 {
            match self.follower.next(self.now) {
                FollowAction::Wait(wait) => {
                    let waited = wait.map_or(end, |wait| (self.now + wait).min(end));
                    match self.rival_acts_at.filter(|at| *at <= waited) {
                        Some(at) => {
                            self.now = at;
                            self.rival_acts_at = None;
                            self.replace();
                        }
                        None => self.now = waited,
                    }
                    self.told.append(&mut self.follower.take_events());
                    if self.now >= end {
                        return;
                    }
                }
                FollowAction::Look => {
                    self.looks += 1;
                    self.follower.handle_check(self.now, Ok(self.is_as_planned));
                }
                FollowAction::Reapply => self.reapply(),
            }
        }
        panic!("it never waits");
    }

    fn reapply(&mut self) {
        self.attempts.push(self.now);
        self.is_as_planned = self.answer == Ok(true);
        // Its own commands cause events, too.
        self.hear(&queueing());
        self.follower.handle_setup(self.now, self.answer.clone());
        self.rival_acts_at = self.rival.map(|time| self.now + time);
    }

    fn pauses(&self) -> Vec<u64> {
        self.attempts.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect()
    }
}

#[test]
fn a_matching_shaper_is_left_alone() {
    let mut world = SimulatedHost::new(UP);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.looks, 1, "something may have happened before it listened");
    for _ in 0..100 {
        world.hear(&queueing());
        world.pass(Duration::from_millis(10));
    }
    world.pass(Duration::from_secs(10));
    assert!((2..=3).contains(&world.looks), "one burst: {}", world.looks);
    assert_eq!((world.attempts.len(), world.told.len()), (0, 0));
    assert_eq!(world.follower.next(world.now), FollowAction::Wait(None), "nothing keeps it awake");
}

#[test]
fn a_burst_without_end_is_looked_at_in_time() {
    let mut world = SimulatedHost::new(UP);
    world.pass(Duration::from_secs(1));
    let before = world.looks;
    for _ in 0..100 {
        world.hear(&queueing());
        world.pass(PAUSE_IN_BURST / 3);
    }
    // For ten seconds.
    let bound = usize::try_from((PAUSE_IN_BURST / 3 * 100).as_secs() / MAX_BURST.as_secs()).expect("small");
    assert!((bound - 1..=bound + 1).contains(&(world.looks - before)), "{}", world.looks - before);
}

#[test]
fn a_replaced_tree_is_set_up_again_once() {
    let mut world = SimulatedHost::new(UP);
    world.pass(Duration::from_secs(5));
    world.replace();
    let replaced = world.now;
    world.pass(Duration::from_secs(3600));
    assert_eq!(world.attempts, [replaced + PAUSE_IN_BURST]);
    assert_eq!(world.told, [FollowEvent::ShapedAgain(1)]);
    assert_eq!(world.looks, 3, "at the start, for the event, and for its own events: those find all as planned");
}

#[test]
fn a_rival_is_answered_ever_more_slowly_and_then_named() {
    let mut world = SimulatedHost::new(UP);
    world.rival = Some(Duration::ZERO);
    world.replace();
    world.pass(Duration::from_secs(63 + 3 * 600 + 30));
    assert_eq!(world.pauses(), [1, 2, 4, 8, 16, 32, 600, 600, 600]);
    let contended = world.told.iter().filter(|saying| **saying == FollowEvent::Contended).count();
    assert_eq!(contended, 1, "reported once: {:?}", world.told);
    world.pass(DAY);
    assert!(world.attempts.len() <= 10 + 144, "{} in a day", world.attempts.len());
    let text = FollowEvent::Contended.text("eth0", Some("NetworkManager (/run/NetworkManager/devices/3)"));
    assert!(text.contains("managed by NetworkManager") && text.contains("10 min"), "{text}");
}

#[test]
fn a_patient_rival_is_no_loop_either() {
    for seconds in [1, 5, 20, 59, 61, 200, 299] {
        let mut world = SimulatedHost::new(UP);
        world.rival = Some(Duration::from_secs(seconds));
        world.replace();
        world.pass(DAY);
        // As many as count as contention, and one per ten minutes.
        let most = usize::try_from(CONTENTION_THRESHOLD).expect("small") + 144;
        assert!(world.attempts.len() <= most, "every {seconds} s: {}", world.attempts.len());
        assert!(world.told.contains(&FollowEvent::Contended), "every {seconds} s");
    }
}

#[test]
fn quiet_resets_the_contention() {
    let mut world = SimulatedHost::new(UP);
    world.rival = Some(Duration::ZERO);
    world.replace();
    world.pass(Duration::from_secs(700));
    world.rival = None;
    world.rival_acts_at = None;
    // One more attempt is due at the end of a pause, and another pause follows it.
    world.pass(2 * CONTENTION_PAUSE + QUIET_TIME + Duration::from_secs(1));
    world.told.clear();
    world.attempts.clear();
    for _ in 0..2 {
        world.replace();
        world.pass(Duration::from_secs(10));
    }
    assert_eq!(world.told, [FollowEvent::ShapedAgain(1), FollowEvent::ShapedAgain(2)]);
    assert_eq!(world.pauses(), [10], "it waits seconds again, not minutes");
}

#[test]
fn nothing_is_done_without_the_interface() {
    let mut world = SimulatedHost::new(InterfacePresence::Absent);
    world.pass(DAY);
    world.hear(&queueing());
    world.hear(&RouteEvent::Lost);
    world.pass(DAY);
    assert_eq!((world.looks, world.attempts.len(), world.told.as_slice()), (0, 0, [FollowEvent::Absent].as_slice()));
    assert_eq!(world.follower.next(world.now), FollowAction::Wait(None));
    world.is_as_planned = false;
    world.hear(&appeared(9));
    let came = world.now;
    world.pass(Duration::from_secs(60));
    assert_eq!(world.attempts, [came + PAUSE_IN_BURST]);
    assert_eq!(world.told, [FollowEvent::Absent, FollowEvent::ShapedAnew]);
}

#[test]
fn a_redialled_link_is_shaped_each_time() {
    let mut world = SimulatedHost::new(UP);
    for index in 3..33 {
        world.pass(Duration::from_secs(120));
        world.hear(&gone(index));
        world.is_as_planned = false;
        world.pass(Duration::from_secs(5));
        world.hear(&appeared(index + 1));
        let came = world.now;
        world.pass(Duration::from_secs(1));
        assert_eq!(world.attempts.last(), Some(&(came + PAUSE_IN_BURST)), "{index}");
    }
    assert_eq!(world.attempts.len(), 30);
    assert!(!world.told.iter().any(|saying| matches!(saying, FollowEvent::Contended | FollowEvent::ShapedAgain(_))));
}

#[test]
fn a_flapping_link_causes_no_loop() {
    let mut world = SimulatedHost::new(UP);
    for index in 3..603 {
        world.hear(&gone(index));
        world.is_as_planned = false;
        world.hear(&appeared(index + 1));
        world.pass(Duration::from_secs(1));
    }
    // One, two, four … seconds, and then one in a minute: ten minutes have seven and ten of them.
    assert!(world.attempts.len() <= 17, "{}", world.attempts.len());
}

#[test]
fn a_new_interface_is_shaped_despite_contention() {
    let mut world = SimulatedHost::new(UP);
    world.rival = Some(Duration::ZERO);
    world.replace();
    world.pass(Duration::from_secs(70));
    assert!(world.told.contains(&FollowEvent::Contended));
    world.rival = None;
    world.hear(&gone(3));
    world.hear(&appeared(4));
    let came = world.now;
    world.pass(Duration::from_secs(600));
    assert!(world.attempts.last().is_some_and(|at| *at <= came + MAX_PAUSE), "{:?}", world.attempts);
}

#[test]
fn the_end_of_another_interface_is_ignored() {
    let mut world = SimulatedHost::new(UP);
    world.pass(Duration::from_secs(1));
    let before = world.looks;
    world.hear(&gone(99));
    world.hear(&RouteEvent::QueueingChanged { index: 99, name: Some("eth9".to_owned()) });
    world.hear(&RouteEvent::Appeared { index: 98, name: "eth8".to_owned(), is_up: true });
    assert_eq!(world.follower.next(world.now), FollowAction::Wait(None));
    world.hear(&RouteEvent::Gone { index: 5, name: "ifb4eth0".to_owned() });
    world.pass(Duration::from_secs(1));
    assert_eq!(world.looks, before + 1, "the intermediate device is part of it");
}

#[test]
fn without_a_carrier_it_waits() {
    let mut world = SimulatedHost::new(UP);
    world.pass(Duration::from_secs(1));
    world.hear(&RouteEvent::Down { index: 3, name: "eth0".to_owned() });
    world.replace();
    world.pass(DAY);
    assert_eq!((world.attempts.len(), world.told.as_slice()), (0, [FollowEvent::Down].as_slice()));
    world.hear(&RouteEvent::Up { index: 3, name: "eth0".to_owned() });
    let up = world.now;
    world.pass(Duration::from_secs(1));
    assert_eq!(world.attempts, [up + PAUSE_IN_BURST]);
}

#[test]
fn another_name_is_another_interface() {
    let mut world = SimulatedHost::new(UP);
    let renamed = |from: &str, to: &str| RouteEvent::Renamed { index: 3, from: from.to_owned(), to: to.to_owned() };
    world.hear(&renamed("eth0", "wan"));
    world.pass(Duration::from_secs(60));
    assert_eq!((world.looks, world.told.as_slice()), (0, [FollowEvent::Absent].as_slice()));
    world.is_as_planned = false;
    world.hear(&renamed("wan", "eth0"));
    world.pass(Duration::from_secs(60));
    assert_eq!(world.attempts.len(), 1);
}

#[test]
fn failures_are_reported_once_and_retried_with_back_off() {
    let mut world = SimulatedHost::new(UP);
    world.answer = Err("tc: no such thing".to_owned());
    world.replace();
    world.pass(Duration::from_secs(63 + 120 + 30));
    assert_eq!(world.pauses(), [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(world.told, [FollowEvent::Failed("tc: no such thing".to_owned(), FIRST_PAUSE)]);
    world.answer = Ok(false);
    world.pass(Duration::from_secs(180));
    world.answer = Ok(true);
    world.pass(Duration::from_secs(3600));
    let last = &world.told[1..];
    assert_eq!(last, [FollowEvent::NotAsPlanned(MAX_PAUSE), FollowEvent::ShapedAgain(1)]);
    assert!(world.is_as_planned);
}

#[test]
fn an_interface_that_disappears_during_setup_is_no_failure() {
    let mut world = SimulatedHost::new(UP);
    world.is_as_planned = false;
    assert_eq!(world.follower.next(world.now), FollowAction::Look);
    world.follower.handle_check(world.now, Ok(false));
    assert_eq!(world.follower.next(world.now), FollowAction::Reapply);
    world.hear(&gone(3));
    world.follower.handle_setup(world.now, Err("no such device".to_owned()));
    world.pass(Duration::from_secs(60));
    assert_eq!(world.told, [FollowEvent::Absent]);
}

#[test]
fn an_event_during_a_check_causes_another_check() {
    let mut world = SimulatedHost::new(UP);
    assert_eq!(world.follower.next(world.now), FollowAction::Look);
    world.hear(&queueing());
    world.follower.handle_check(world.now, Ok(true));
    assert_eq!(world.follower.next(world.now), FollowAction::Wait(Some(PAUSE_IN_BURST)));
}

#[test]
fn numbers_in_words() {
    let words = [1, 2, 3, 4, 11, 12, 13, 21, 22, 103, 111].map(ordinal);
    assert_eq!(words, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "103rd", "111th"]);
}
