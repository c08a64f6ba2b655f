//! Description, members, locks and tasks on a cluster, and a client that is cut off.

#[path = "support/relay.rs"]
mod relay;

use std::time::{Duration, Instant, SystemTime};

use linerate_nats::{Delivery, FleetTask, MemberRecord, NatsError, NatsFleet, NatsSettings, TaskQueue, TaskTime};
use relay::Relay;

use crate::support::{NatsServers, eventually};

const LIVENESS: Duration = Duration::from_secs(2);

fn record(name: &str, instance: &str) -> MemberRecord {
    MemberRecord { name: name.to_owned(), instance: instance.to_owned(), version: "1.2.3".to_owned(), clock: None }
}

fn names(fleet: &NatsFleet) -> Vec<String> {
    fleet.members().expect("a list").into_iter().map(|member| member.record.name).collect()
}

fn task(id: &str) -> FleetTask {
    FleetTask { id: id.to_owned(), task: "good put".to_owned(), addresses: ["a.b".to_owned(), "c".to_owned()] }
}

/// Next task of the queue within ten seconds.
fn next(queue: &TaskQueue) -> linerate_nats::ReceivedTask {
    let start = Instant::now();
    loop {
        if let Some(task) = queue.next(Duration::from_millis(500)).expect("a queue") {
            return task;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "no task came");
    }
}

#[test]
fn a_cluster_carries_descriptions_members_locks_and_tasks() {
    let servers = NatsServers::cluster();
    let connect = || NatsFleet::connect(&NatsSettings::new(servers.urls(), "site-1")).expect("connected");
    let fleet = connect();
    assert!(matches!(fleet.description(), Err(NatsError::Unprepared { .. })));
    assert!(matches!(fleet.members(), Err(NatsError::Unprepared { .. })));
    assert!(matches!(fleet.join(record("a", "1")), Err(NatsError::Unprepared { .. })));
    assert_eq!(fleet.prepare(LIVENESS).expect("prepared").replicas, 3);
    assert_eq!(fleet.prepare(LIVENESS).expect("prepared").created, [""; 0]);
    descriptions_replace_each_other(&fleet);
    members_come_and_go(&fleet, &connect());
    locks_exclude_each_other(&fleet, &connect());
    tasks_come_one_at_a_time(&fleet, &connect());
    schedules_give_tasks(&fleet);
}

fn descriptions_replace_each_other(fleet: &NatsFleet) {
    assert_eq!(fleet.description().expect("read"), None);
    let first = fleet.store_description("{}", 0).expect("stored");
    assert_eq!(
        fleet.description().expect("read").map(|found| (found.revision, found.text)),
        Some((first, "{}".to_owned()))
    );
    // Another client that read it before the first change.
    assert!(matches!(fleet.store_description("{ }", 0), Err(NatsError::Changed(_))));
    let second = fleet.store_description("{ }", first).expect("stored");
    assert!(second > first);
    assert!(matches!(fleet.store_description(&"x".repeat(2_000_000), second), Err(NatsError::TooLarge { .. })));
    assert_eq!(fleet.description().expect("read").expect("there").text, "{ }");
}

fn members_come_and_go(fleet: &NatsFleet, other: &NatsFleet) {
    let mut lisbon = fleet.join(record("lis.bon", "1")).expect("joined");
    let clock = lisbon.record().clock.expect("compared");
    assert!(clock.certain() < Duration::from_millis(500), "{clock:?}");
    // An agent of the same name, while the first is alive.
    let refused = std::thread::scope(|scope| {
        let second = scope.spawn(|| other.join(record("lis.bon", "2")).map(drop));
        while !second.is_finished() {
            lisbon.renew().expect("renewed");
            std::thread::sleep(LIVENESS / 4);
        }
        second.join().expect("no panic").expect_err("refused").to_string()
    });
    assert!(refused.contains("\"lis.bon\": instance 1, linerate 1.2.3"), "{refused}");
    lisbon.renew().expect("renewed");
    let berlin = other.join(record("berlin", "3")).expect("joined");
    assert_eq!(names(fleet), ["berlin", "lis.bon"]);
    berlin.leave().expect("left");
    assert_eq!(names(fleet), ["lis.bon"]);
    // The agent ended: its entry does so, and the next has its name.
    drop(lisbon);
    let begin = Instant::now();
    let next = other.join(record("lis.bon", "4")).expect("joined");
    assert!(begin.elapsed() < 3 * LIVENESS, "{:?}", begin.elapsed());
    assert_eq!(next.record().instance, "4");
    drop(next);
    eventually("the entry ends", || names(fleet).is_empty());
}

fn locks_exclude_each_other(fleet: &NatsFleet, other: &NatsFleet) {
    let resources = ["host a".to_owned(), "host b".to_owned()];
    let take = |fleet: &NatsFleet, names: &[String], holder: &str, seconds| {
        fleet.lock(names, holder, Duration::from_secs(seconds)).expect("an answer")
    };
    let held = take(fleet, &resources, "one", 60).expect("free");
    for names in [&resources[..], &resources[1..], &["host a".to_owned(), "host c".to_owned()]] {
        assert!(take(other, names, "two", 60).is_none(), "{names:?}");
    }
    // A refused attempt keeps nothing: host c is free.
    let free = take(other, &["host c".to_owned()], "three", 60).expect("free");
    free.release().expect("released");
    held.release().expect("released");
    // A holder that was killed: its locks end with their TTL, also those that were made anew after a release.
    drop(take(other, &resources, "two", 1).expect("free"));
    assert!(take(fleet, &resources, "one", 60).is_none());
    eventually("the locks end", || take(fleet, &resources, "one", 60).is_some());
    // All tries at once, and one has it.
    let count = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8)
            .map(|index| {
                let holder = format!("try {index}");
                scope.spawn(move || take(fleet, &["host d".to_owned()], &holder, 60).is_some())
            })
            .collect();
        tries.into_iter().map(|one| one.join().expect("no panic")).filter(|held| *held).count()
    });
    assert_eq!(count, 1);
}

fn tasks_come_one_at_a_time(fleet: &NatsFleet, other: &NatsFleet) {
    let queue = fleet.tasks("a.b").expect("a queue");
    for id in ["1", "1", "2"] {
        fleet.assign(&task(id), "a.b", &TaskTime::Now).expect("assigned");
    }
    let first = next(&queue);
    assert_eq!(first.task, task("1"));
    // Signs of life for longer than the time after which a task is given away; the second waits, for other agents, too.
    let waiting = other.tasks("a.b").expect("a queue");
    for _ in 0..3 {
        assert!(waiting.next(LIVENESS / 2).expect("a queue").is_none(), "two at once");
    }
    // Its agent is killed.
    drop(first);
    let again = next(&waiting);
    assert_eq!(again.task, task("1"));
    again.finish().expect("finished");
    let second = next(&queue);
    assert_eq!(second.task, task("2"));
    second.give_back().expect("given back");
    let second = next(&waiting);
    assert_eq!(second.task, task("2"));
    second.finish().expect("finished");
    assert!(queue.next(Duration::from_millis(100)).expect("a queue").is_none());
}

fn schedules_give_tasks(fleet: &NatsFleet) {
    let queue = fleet.tasks("c").expect("a queue");
    let error = fleet.assign(&task("x"), "c", &TaskTime::Every("often".to_owned())).expect_err("refused").to_string();
    assert!(error.contains("refuses the schedule \"often\"") && error.contains("@every 15m"), "{error}");
    // Twice the same pair: one schedule.
    for id in ["3", "4"] {
        fleet.assign(&task(id), "c", &TaskTime::Every("@every 1s".to_owned())).expect("assigned");
    }
    for _ in 0..2 {
        let repeated = next(&queue);
        assert_eq!(repeated.task.id, "4");
        repeated.finish().expect("finished");
    }
    assert_eq!(fleet.end_schedule(&task("any")).expect("ended"), 1);
    assert_eq!(fleet.end_schedule(&task("any")).expect("ended"), 0);
    while let Some(repeated) = queue.next(Duration::from_millis(1500)).expect("a queue") {
        repeated.finish().expect("finished");
    }
    let begin = SystemTime::now();
    let at = begin.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs() + 2;
    // 1970 had no leap days, so the calendar is `date`'s.
    let text =
        std::process::Command::new("date").args(["-u", "-d", &format!("@{at}"), "+%FT%TZ"]).output().expect("date");
    let time = String::from_utf8(text.stdout).expect("text").trim().to_owned();
    fleet.assign(&task("5"), "c", &TaskTime::At(time)).expect("assigned");
    let once = next(&queue);
    assert_eq!(once.task.id, "5");
    assert!(SystemTime::now() >= SystemTime::UNIX_EPOCH + Duration::from_secs(at));
    once.finish().expect("finished");
}

#[test]
fn a_client_that_is_cut_off_goes_on_without_losses() {
    let servers = NatsServers::single("");
    let relay = Relay::to(servers.port());
    let direct = NatsFleet::connect(&NatsSettings::new(servers.urls(), "fleet")).expect("connected");
    let prepared = direct.prepare(LIVENESS).expect("prepared");
    assert_eq!(prepared.replicas, 1);
    assert!(prepared.refusal.is_some_and(|text| text.contains("replicas")));
    let far = NatsFleet::connect(&NatsSettings::new(vec![relay.url()], "fleet")).expect("connected");
    let mut membership = far.join(record("far", "1")).expect("joined");
    let publisher = far.publisher("far").expect("a publisher");
    assert_eq!(publisher.publish("r.1", b"{\"id\":\"r.1\"}").expect("stored"), Delivery::Delivered);
    assert_eq!(publisher.publish("r.1", b"{\"id\":\"r.1\"}").expect("stored"), Delivery::Duplicate);
    // A document of five megabytes, and one that no compression makes small enough.
    let large = format!("{{\"id\":\"r.3\",\"samples\":[{}1]}}", "12345,".repeat(900_000));
    assert_eq!(publisher.publish("r.3", large.as_bytes()).expect("stored"), Delivery::Delivered);
    let mut number = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (number >> 56) as u8
    })
    .take(2_000_000)
    .collect();
    assert!(matches!(publisher.publish("r.4", &noise), Err(NatsError::TooLarge { .. })));
    relay.cut();
    let error = publisher.publish("r.2", b"{\"id\":\"r.2\"}").expect_err("cut off");
    assert!(
        error.is_transient() && error.to_string().starts_with("publishing the result \"r.2\" on nats://"),
        "{error}"
    );
    eventually("its entry ends", || names(&direct).is_empty());
    relay.mend();
    let mut delivery = None;
    eventually("it is connected", || {
        delivery = publisher.publish("r.2", b"{\"id\":\"r.2\"}").ok();
        delivery.is_some()
    });
    membership.renew().expect("renewed");
    assert_eq!(names(&direct), ["far"]);
    let reader = direct.reader("one").expect("a reader");
    let mut ids = Vec::new();
    eventually("all come", || {
        let results = reader.next(10, Duration::from_millis(200)).expect("results");
        reader.acknowledge(&results).expect("acknowledged");
        assert!(results.iter().filter(|result| result.id == "r.3").all(|result| result.bytes == large.as_bytes()));
        ids.extend(results.into_iter().map(|result| result.id));
        ids.len() >= 3
    });
    assert_eq!(
        (ids, reader.next(10, Duration::from_millis(200)).expect("none").len()),
        (vec!["r.1".to_owned(), "r.3".to_owned(), "r.2".to_owned()], 0)
    );
    // Cut off for longer than the TTL, and another agent has the name.
    relay.cut();
    eventually("its entry ends", || names(&direct).is_empty());
    let taken = direct.join(record("far", "2")).expect("joined");
    relay.mend();
    assert!(matches!(membership.renew(), Err(NatsError::NameTaken { instance, .. }) if instance == "2"));
    drop(taken);
}
