//! NATS `JetStream` as the transport of a fleet.
//!
//! A [`NatsFleet`] is one connection to the servers; agents dial out, so that they may be behind NAT. On the servers are, each
//! with the name of the fleet in front:
//!
//! | name | kind | contents |
//! |---|---|---|
//! | `description` | bucket | the description, replaced by compare-and-set |
//! | `members` | bucket whose entries end after the TTL | a [`MemberRecord`] per agent that runs |
//! | `locks` | bucket whose entries have TTLs of their own | hosts and uplinks that a [`FleetTask`] uses |
//! | `tasks` | work queue with schedules | tests to run now, at a time or again and again |
//! | `results` | stream with one message per id | results of tests |
//!
//! The API blocks; a runtime of one thread is inside.

#![forbid(unsafe_code)]

mod compare_and_set;
mod compression;
mod connection;
mod description;
mod error;
mod locks;
mod membership;
mod names;
mod publisher;
mod reader;
mod result_file;
mod settings;
mod storage;
mod tasks;

pub use connection::NatsFleet;
pub use description::StoredDescription;
pub use error::NatsError;
pub use locks::HeldLocks;
pub use membership::{ClockOffset, ListedMember, MemberRecord, Membership};
pub use publisher::{Delivery, Publisher};
pub use reader::{ReceivedResult, ResultReader};
pub use result_file::{AppendedResults, PublishedResult, RefusedResult, ResultFile};
pub use settings::{ClientCertificate, NatsLogin, NatsSettings};
pub use storage::PreparedStorage;
pub use tasks::{FleetTask, ReceivedTask, TaskQueue, TaskTime};
